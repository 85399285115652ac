/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/rundir.h"

static char top[] = "/tmp/test-rundir-XXXXXX";
static char path[RUNDIR_MAX];
static char error[RUNDIR_ERROR];

static void in_top(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", top, name);
}

static int setup(void **state)
{
	(void)state;
	unsetenv("URXE_DIR");
	unsetenv("XDG_RUNTIME_DIR");
	return !mkdtemp(top);
}

static int teardown(void **state)
{
	(void)state;
	rundir_remove(top, ".");
	return rmdir(top) && errno != ENOENT;
}

static void the_option_comes_before_the_environment(void **state)
{
	(void)state;
	setenv("URXE_DIR", "/from/environment", 1);
	assert_int_equal(rundir_path("/from/option", path, error), 0);
	assert_string_equal(path, "/from/option");
	assert_int_equal(rundir_path(NULL, path, error), 0);
	assert_string_equal(path, "/from/environment");
	unsetenv("URXE_DIR");
}

static void a_relative_path_becomes_absolute(void **state)
{
	char cwd[PATH_MAX], expected[PATH_MAX + 8];

	(void)state;
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(top), 0);
	assert_int_equal(rundir_path("here", path, error), 0);
	snprintf(expected, sizeof(expected), "%s/here", top);
	assert_string_equal(path, expected);
	assert_int_equal(chdir(cwd), 0);
}

static void slashes_at_the_end_do_not_count(void **state)
{
	char given[80], expected[64];
	struct stat st;

	(void)state;
	snprintf(expected, sizeof(expected), "%s/none/run", top);
	snprintf(given, sizeof(given), "%s//", expected);
	assert_int_equal(rundir_path(given, path, error), 0);
	assert_string_equal(path, expected);
	assert_int_equal(rundir_create(path, error), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0711);
	assert_int_equal(rundir_path("/", path, error), 0);
	assert_string_equal(path, "/");
	rundir_remove(top, "none");
}

static void the_default_carries_the_namespace(void **state)
{
	char netns[32];

	(void)state;
	snprintf(netns, sizeof(netns), "/%llu", (unsigned long long)rundir_netns());
	assert_int_not_equal(rundir_netns(), 0);
	assert_int_equal(rundir_path(NULL, path, error), 0);
	assert_non_null(strstr(path, netns));
	assert_non_null(strstr(path, "urxe"));
}

/* Another user than in a test of another checkout that runs meanwhile. */
#define VICTIM (54321 + getpid() % 10000)

/* Another user has made /tmp/urxe-UID: a directory in the home directory takes its place. */
static void squatted_directory_is_avoided(void **state)
{
	char expected[PATH_MAX], squatted[32], home[64];
	const char *old = getenv("HOME");

	(void)state;
	snprintf(squatted, sizeof(squatted), "/tmp/urxe-%d", VICTIM);
	snprintf(home, sizeof(home), "%s/home", top);
	if (getuid())
		skip();
	/* An aborted run of this test may have left it. */
	rmdir(squatted);
	assert_int_equal(mkdir(squatted, 0777), 0);
	assert_int_equal(mkdir(home, 0700) | chown(home, VICTIM, VICTIM) | chmod(top, 0755), 0);
	setenv("HOME", home, 1);
	assert_int_equal(seteuid(VICTIM), 0);
	assert_int_equal(rundir_path(NULL, path, error), 0);
	snprintf(expected, sizeof(expected), "%s/.cache/urxe/%llu", home,
		 (unsigned long long)rundir_netns());
	assert_string_equal(path, expected);
	assert_int_equal(rundir_create(path, error), 1);
	/* Without a home directory of its own the user is told what to do. */
	setenv("HOME", "/", 1);
	assert_int_equal(rundir_path(NULL, path, error), -EPERM);
	assert_non_null(strstr(error, squatted));
	assert_non_null(strstr(error, "user 0"));
	assert_non_null(strstr(error, "--run-dir"));
	assert_int_equal(seteuid(0), 0);
	rmdir(squatted);
	/* The name is free again. */
	assert_int_equal(seteuid(VICTIM), 0);
	assert_int_equal(rundir_path(NULL, path, error), 0);
	assert_int_equal(strncmp(path, squatted, strlen(squatted)), 0);
	assert_int_equal(seteuid(0), 0);
	if (old)
		setenv("HOME", old, 1);
	rundir_remove(top, "home");
}

static void too_long_path_is_refused(void **state)
{
	char name[200] = "/";

	(void)state;
	memset(name + 1, 'x', sizeof(name) - 2);
	assert_int_equal(rundir_path(name, path, error), -ENAMETOOLONG);
	assert_non_null(strstr(error, "longer"));
	assert_int_equal(rundir_path("", path, error), -EINVAL);
}

static void directory_is_created_and_removed(void **state)
{
	char other[64];
	struct stat st;
	int fd;

	(void)state;
	in_top("urxe/1/2");
	assert_int_equal(rundir_create(path, error), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0711);
	fd = rundir_lock(path, true, error);
	assert_true(fd >= 0);
	assert_int_equal(rundir_lock(path, true, error), -EBUSY);
	snprintf(other, sizeof(other), "another urxed (process %d) ", getpid());
	assert_non_null(strstr(error, other));
	rundir_release(path, fd, true);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(rundir_lock(path, true, error), -EBUSY);
}

/* Makes and releases the run directory `name` in `parent`. Returns whether the parent is left. */
static bool parent_stays(const char *parent, const char *name)
{
	char in_parent[64];
	int fd;

	snprintf(in_parent, sizeof(in_parent), "%s/%s", parent, name);
	in_top(in_parent);
	assert_int_equal(rundir_create(path, error), 1);
	fd = rundir_lock(path, true, error);
	assert_true(fd >= 0);
	rundir_release(path, fd, true);
	assert_int_equal(access(path, F_OK), -1);
	in_top(parent);
	return !access(path, F_OK);
}

/* That of a default run directory, named after the network namespace, is urxe's own. */
static void parent_that_the_user_named_stays(void **state)
{
	char netns[24];

	(void)state;
	snprintf(netns, sizeof(netns), "%llu", (unsigned long long)rundir_netns());
	in_top("urxe-job42");
	assert_int_equal(mkdir(path, 0755), 0);
	assert_true(parent_stays("urxe-job42", "run"));
	assert_false(parent_stays("urxe-1000", netns));
	assert_true(parent_stays("results", netns));
}

/* systemd-tmpfiles takes such a lock before it removes old files of a directory. */
static bool can_lock_dir(void)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY);
	bool locked = !flock(fd, LOCK_SH | LOCK_NB);

	close(fd);
	return locked;
}

static void directory_is_locked(void **state)
{
	int fd;

	(void)state;
	in_top("locked");
	assert_int_equal(rundir_create(path, error), 1);
	assert_true(can_lock_dir());
	fd = rundir_lock(path, false, error);
	assert_true(fd >= 0);
	assert_false(can_lock_dir());
	rundir_release(path, fd, false);
	assert_true(can_lock_dir());
}

static void existing_directory_is_kept(void **state)
{
	struct stat st;
	int fd;

	(void)state;
	in_top("mine");
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(rundir_create(path, error), 0);
	fd = rundir_lock(path, true, error);
	assert_true(fd >= 0);
	rundir_release(path, fd, false);
	assert_int_equal(stat(path, &st), 0);
}

/* The pid file may be missing: the file system was full, or RLIMIT_FSIZE was 0. */
static void directory_without_pid_file_is_removed(void **state)
{
	struct rlimit none, was;
	struct stat st;

	(void)state;
	in_top("full");
	assert_int_equal(rundir_create(path, error), 1);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(rundir_lock(path, true, error), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(stat(path, &st), -1);
}

static void the_pid_file_names_this_process(void **state)
{
	char name[PATH_MAX];
	FILE *file;
	int fd, pid;

	(void)state;
	in_top("pid");
	assert_int_equal(rundir_create(path, error), 1);
	fd = rundir_lock(path, true, error);
	assert_true(fd >= 0);
	snprintf(name, sizeof(name), "%s/" RUNDIR_PID, path);
	file = fopen(name, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d\n", &pid), 1);
	assert_int_equal(pid, getpid());
	fclose(file);
	rundir_release(path, fd, false);
	assert_int_equal(access(name, F_OK), -1);
}

static void group_gets_access_to_one_file(void **state)
{
	char name[PATH_MAX];
	struct stat st;
	int fd;

	(void)state;
	in_top("group");
	assert_int_equal(rundir_create(path, error), 1);
	snprintf(name, sizeof(name), "%s/file", path);
	fd = open(name, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(rundir_grant_group(path, "file", getegid(), error), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0711);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	assert_int_equal(rundir_create(path, error), 0);
	assert_int_equal(rundir_grant_group(path, "missing", getegid(), error), -ENOENT);
	assert_non_null(strstr(error, path));
}

static void unsafe_directories_are_refused(void **state)
{
	char other[RUNDIR_MAX];
	int fd;

	(void)state;
	in_top("shared");
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(rundir_create(path, error), -EPERM);

	memcpy(other, path, sizeof(other));
	assert_int_equal(chmod(other, 0700), 0);
	in_top("link");
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(rundir_create(path, error), -ENOTDIR);

	in_top("file");
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(rundir_create(path, error), -ENOTDIR);
	assert_int_equal(rundir_create("/proc/nowhere/below", error), -ENOENT);
	assert_non_null(strstr(error, "/proc/nowhere/below"));
}

static void remove_does_not_follow_links(void **state)
{
	char kept[PATH_MAX], link[PATH_MAX];
	struct stat st;

	(void)state;
	snprintf(kept, sizeof(kept), "%s/kept", top);
	snprintf(link, sizeof(link), "%s/tree", top);
	assert_int_equal(mkdir(kept, 0700), 0);
	assert_int_equal(mkdir(link, 0700), 0);
	snprintf(link, sizeof(link), "%s/tree/link", top);
	assert_int_equal(symlink(kept, link), 0);
	assert_int_equal(rundir_remove(top, "tree"), 0);
	assert_int_equal(lstat(link, &st), -1);
	assert_int_equal(stat(kept, &st), 0);
	assert_int_equal(rundir_remove(top, "not there"), 0);
}

static void make_file(const char *name)
{
	char file[PATH_MAX];
	int fd;

	snprintf(file, sizeof(file), "%s/%s", path, name);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
}

/* A daemon removes sys, dev, dpdk and urxed.log from its run directory. */
static void files_of_a_user_are_refused(void **state)
{
	(void)state;
	in_top("notes");
	assert_int_equal(mkdir(path, 0700), 0);
	make_file("other");
	assert_int_equal(rundir_create(path, error), 0);
	make_file("dev");
	assert_int_equal(rundir_create(path, error), -EEXIST);
	assert_non_null(strstr(error, "/notes/dev"));
	/* A killed daemon leaves its lock file beside such files. */
	make_file("urxed.lock");
	assert_int_equal(rundir_create(path, error), 0);
}

static void root_directory_is_refused(void **state)
{
	(void)state;
	if (getuid())
		skip();
	assert_int_equal(rundir_create("/", error), -EEXIST);
	assert_non_null(strstr(error, " /sys,"));
}

/* A daemon that ends while programs have the device leaves them its files. */
static void lock_file_stays_with_the_files_of_the_device(void **state)
{
	int fd;

	(void)state;
	in_top("left");
	assert_int_equal(rundir_create(path, error), 1);
	fd = rundir_lock(path, true, error);
	assert_true(fd >= 0);
	make_file("sys");
	rundir_release(path, fd, true);
	assert_int_equal(rundir_create(path, error), 0);
}

/* The first daemon's directory was removed, and another daemon has made a directory of that name.
 */
static void files_of_the_next_daemon_are_kept(void **state)
{
	char moved[PATH_MAX], name[PATH_MAX];
	int fd;

	(void)state;
	in_top("again");
	assert_int_equal(rundir_create(path, error), 1);
	fd = rundir_lock(path, true, error);
	assert_true(fd >= 0);
	snprintf(moved, sizeof(moved), "%s.moved", path);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(rundir_create(path, error), 1);
	make_file("urxed.lock");
	make_file("dev");
	snprintf(name, sizeof(name), "%s/dev", path);
	assert_int_equal(rundir_remove(path, "dev"), -ESTALE);
	assert_int_equal(access(name, F_OK), 0);
	rundir_release(path, fd, true);
	snprintf(name, sizeof(name), "%s/urxed.lock", path);
	assert_int_equal(access(name, F_OK), 0);
	assert_int_equal(rundir_remove(path, "dev"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_option_comes_before_the_environment),
		cmocka_unit_test(a_relative_path_becomes_absolute),
		cmocka_unit_test(slashes_at_the_end_do_not_count),
		cmocka_unit_test(the_default_carries_the_namespace),
		cmocka_unit_test(squatted_directory_is_avoided),
		cmocka_unit_test(too_long_path_is_refused),
		cmocka_unit_test(directory_is_created_and_removed),
		cmocka_unit_test(parent_that_the_user_named_stays),
		cmocka_unit_test(directory_is_locked),
		cmocka_unit_test(existing_directory_is_kept),
		cmocka_unit_test(directory_without_pid_file_is_removed),
		cmocka_unit_test(the_pid_file_names_this_process),
		cmocka_unit_test(group_gets_access_to_one_file),
		cmocka_unit_test(unsafe_directories_are_refused),
		cmocka_unit_test(remove_does_not_follow_links),
		cmocka_unit_test(files_of_a_user_are_refused),
		cmocka_unit_test(root_directory_is_refused),
		cmocka_unit_test(lock_file_stays_with_the_files_of_the_device),
		cmocka_unit_test(files_of_the_next_daemon_are_kept),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
