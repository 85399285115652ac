/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The state of a thread that copies between processes: while it runs, frozen, and ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "samehost/thread_state.h"

#define SIZE  (8u << 20) /* of a copy: the child is almost always in its system call */
#define TRIES 20

/* A freezer of one version of cgroups. */
struct freezer {
	const char *type;   /* of the file system */
	const char *option; /* of the mount; NULL: any */
	const char *file, *freeze, *thaw;
	const char *state_file, *frozen; /* what the file contains while all are frozen */
};

static const struct freezer version_1 = {"cgroup", "freezer",       "freezer.state", "FROZEN",
					 "THAWED", "freezer.state", "FROZEN"};
static const struct freezer version_2 = {"cgroup2",       NULL,      "cgroup.freeze", "1", "0",
					 "cgroup.events", "frozen 1"};

static struct {
	pid_t pid;
	uint64_t start;
	const struct freezer *freezer;
	char group[256]; /* folder; empty: none */
} child;

/* --- The child. */

static void copy_for_ever(void)
{
	uint8_t *from = calloc(1, SIZE), *to = calloc(1, SIZE);
	const struct iovec local = {to, SIZE}, remote = {from, SIZE};

	while (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == SIZE)
		;
	_exit(1);
}

static int start_child(void **state)
{
	(void)state;
	memset(&child, 0, sizeof(child));
	child.pid = fork();
	if (!child.pid)
		copy_for_ever();
	return child.pid > 0 && process_started_at(child.pid, &child.start) ? 0 : -1;
}

static bool read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

static bool read_proc(const char *name, char *text, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/%s", child.pid, name);
	return read_file(path, text, size);
}

/* While the child runs, /proc names no system call. */
static bool child_is_in_copy(void)
{
	char text[128];

	return read_proc("syscall", text, sizeof(text)) && atol(text) == SYS_process_vm_readv;
}

static enum thread_state state_of_child(void)
{
	uint64_t ticks;

	return thread_state(child.pid, child.start, child.pid, &ticks);
}

/* --- The freezer. */

static bool write_file(const char *name, const char *text)
{
	char path[300];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", child.group, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text);
}

static bool is_frozen(void)
{
	char path[300], text[200];

	snprintf(path, sizeof(path), "%s/%s", child.group, child.freezer->state_file);
	assert_true(read_file(path, text, sizeof(text)));
	return strstr(text, child.freezer->frozen);
}

/* Finds the mount; false: there is none. */
static bool find_mount(const struct freezer *freezer, char *path, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct mntent *entry;
	bool found = false;

	while (mounts && !found && (entry = getmntent(mounts))) {
		found = !strcmp(entry->mnt_type, freezer->type) &&
			(!freezer->option || hasmntopt(entry, freezer->option));
		if (found)
			snprintf(path, size, "%s", entry->mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
	return found;
}

static void skip_because(const char *reason)
{
	print_message("skipped: %s\n", reason);
	skip();
}

/* Moves the child to a group of its own. */
static void join_group(const struct freezer *freezer)
{
	char mount[200], path[256], pid[16];

	if (!find_mount(freezer, mount, sizeof(mount)))
		skip_because("this version of cgroups is not mounted");
	snprintf(path, sizeof(path), "%s/urxe-test-%d", mount, getpid());
	if (mkdir(path, 0755))
		skip_because(strerror(errno));
	snprintf(child.group, sizeof(child.group), "%s", path);
	child.freezer = freezer;
	snprintf(pid, sizeof(pid), "%d", child.pid);
	if (!write_file("cgroup.procs", pid))
		skip_because("the child may not join a new cgroup");
}

static void freeze_child(void)
{
	assert_true(write_file(child.freezer->file, child.freezer->freeze));
	while (!is_frozen())
		usleep(1000);
}

static void thaw_child(void)
{
	assert_true(write_file(child.freezer->file, child.freezer->thaw));
}

static int end_child(void **state)
{
	(void)state;
	if (child.freezer)
		write_file(child.freezer->file, child.freezer->thaw);
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
	/* The kernel removes an ended process from its group a little later. */
	for (int i = 0; child.group[0] && rmdir(child.group) && i < 1000; i++)
		usleep(1000);
	return 0;
}

/* --- Tests. */

static void test_running_and_ended_threads_are_told_apart(void **state)
{
	(void)state;
	while (state_of_child() != THREAD_BUSY)
		usleep(1000);
	kill(child.pid, SIGKILL);
	while (state_of_child() != THREAD_GONE)
		usleep(1000);
}

/* Without a free descriptor /proc cannot be read: a running thread still counts as one that runs.
 */
static void test_thread_counts_as_busy_without_descriptors(void **state)
{
	struct rlimit limit;
	uint64_t ticks = 1;
	rlim_t before;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(thread_state(child.pid, child.start, child.pid, &ticks), THREAD_BUSY);
	assert_int_equal(ticks, 0);
	kill(child.pid, SIGKILL);
	while (state_of_child() != THREAD_GONE)
		usleep(1000);
	limit.rlim_cur = before;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void cancel_self(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(state, NULL);
}

static void *look_when_cancelled(void *seen)
{
	cancel_self();
	*(enum thread_state *)seen = state_of_child();
	pthread_testcancel();
	return NULL;
}

/* The thread has locks, which it would not release. */
static void test_cancelled_thread_does_not_end_in_a_look(void **state)
{
	enum thread_state seen = THREAD_GONE;
	pthread_t thread;
	void *result;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, look_when_cancelled, &seen), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_not_equal(seen, THREAD_GONE);
}

/* A thread of this process has no part in the child. */
static void test_thread_of_another_process_counts_as_gone(void **state)
{
	uint64_t ticks;

	(void)state;
	assert_int_equal(thread_state(child.pid, child.start, getpid(), &ticks), THREAD_GONE);
}

/* The frozen child has ended its copy, though /proc shows it in the system call. */
static void expect_stopped_when_frozen(const struct freezer *freezer)
{
	char function[64];
	int tries = 0;

	join_group(freezer);
	for (freeze_child(); !child_is_in_copy(); freeze_child()) {
		assert_true(++tries < TRIES);
		thaw_child();
		usleep(10000);
	}
	if (!read_proc("wchan", function, sizeof(function)) || !strcmp(function, "0"))
		skip_because("the kernel does not tell where a thread sleeps");
	assert_int_equal(state_of_child(), THREAD_STOPPED);
	thaw_child();
	while (state_of_child() != THREAD_BUSY)
		usleep(1000);
}

static void test_thread_frozen_by_cgroup_v1_counts_as_stopped(void **state)
{
	struct utsname name;

	(void)state;
	assert_int_equal(uname(&name), 0);
	if (strverscmp(name.release, "6.1") < 0)
		skip_because("before Linux 6.1, a thread can freeze within its system call");
	expect_stopped_when_frozen(&version_1);
}

static void test_thread_frozen_by_cgroup_v2_counts_as_stopped(void **state)
{
	(void)state;
	expect_stopped_when_frozen(&version_2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_running_and_ended_threads_are_told_apart,
						start_child, end_child),
		cmocka_unit_test_setup_teardown(test_thread_counts_as_busy_without_descriptors,
						start_child, end_child),
		cmocka_unit_test_setup_teardown(test_cancelled_thread_does_not_end_in_a_look,
						start_child, end_child),
		cmocka_unit_test_setup_teardown(test_thread_of_another_process_counts_as_gone,
						start_child, end_child),
		cmocka_unit_test_setup_teardown(test_thread_frozen_by_cgroup_v1_counts_as_stopped,
						start_child, end_child),
		cmocka_unit_test_setup_teardown(test_thread_frozen_by_cgroup_v2_counts_as_stopped,
						start_child, end_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
