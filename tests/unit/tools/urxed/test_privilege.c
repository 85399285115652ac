/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the daemon may still do after it has dropped its privileges. Each test runs in a child. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <netdev/netdev.h>

#include "common/clock.h"
#include "common/rundir.h"
#include "require.h"
#include "urxed/privilege/capabilities.h"
#include "urxed/privilege/namespace_query.h"
#include "urxed/privilege/privilege.h"
#include "urxed/privilege/syscall_filter.h"
#include "urxed/privilege/vm_socket.h"

#define BODY_ENDED 3 /* a program that is executed in its place ends with another status */

static void run_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		body();
		_exit(BODY_ENDED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), BODY_ENDED);
}

/* Returns a flag, true, that processes forked later share. */
static atomic_bool *share_flag(void)
{
	atomic_bool *flag = mmap(NULL, sizeof(*flag), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	require(flag != MAP_FAILED);
	atomic_store(flag, true);
	return flag;
}

static void *end_thread(void *arg)
{
	return arg;
}

/* --- The filter */

#define FORBIDDEN(call)                      \
	do {                                 \
		errno = 0;                   \
		require((long)(call) == -1); \
		require(errno == EPERM);     \
	} while (0)

static void make_forbidden_calls(void)
{
	const char *argv[] = {"/bin/true", NULL};
	uint8_t page[64];

	require(!syscall_filter_install());
	FORBIDDEN(execve(argv[0], (char **)argv, NULL));
	FORBIDDEN(syscall(SYS_execveat, -1, argv[0], argv, NULL, 0));
	FORBIDDEN(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
	FORBIDDEN(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0));
	FORBIDDEN(syscall(SYS_open_by_handle_at, -1, page, 0));
	FORBIDDEN(syscall(SYS_pidfd_getfd, -1, 0, 0));
	FORBIDDEN(syscall(SYS_kill, getppid(), 0));
	FORBIDDEN(syscall(SYS_mount, "a", "b", "c", 0, NULL));
	FORBIDDEN(syscall(SYS_setuid, 0));
	FORBIDDEN(syscall(SYS_fchownat, AT_FDCWD, "/", 0, 0, 0));
	FORBIDDEN(syscall(SYS_keyctl, 0, 0, 0, 0, 0));
	FORBIDDEN(syscall(SYS_init_module, page, 0, ""));
	FORBIDDEN(syscall(SYS_io_uring_setup, 1, page));
	FORBIDDEN(syscall(SYS_userfaultfd, 0));
	FORBIDDEN(unshare(CLONE_NEWUSER));
	FORBIDDEN(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
	FORBIDDEN(socket(AF_VSOCK, SOCK_STREAM, 0));
	FORBIDDEN(socket(AF_ALG, SOCK_SEQPACKET, 0));
	FORBIDDEN(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0));
}

static void make_allowed_calls(void)
{
	void *memory;
	pthread_t thread;
	int ends[2];
	pid_t pid;

	require(!syscall_filter_install());
	require(!syscall_filter_install()); /* again */
	require(!pthread_create(&thread, NULL, end_thread, NULL));
	require(!pthread_join(thread, NULL));
	require(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
	require(socket(AF_INET6, SOCK_DGRAM, 0) >= 0);
	require(memfd_create("test", MFD_ALLOW_SEALING) >= 0);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(memory != MAP_FAILED);
	require(!mprotect(memory, 4096, PROT_READ | PROT_EXEC));
	pid = fork();
	if (!pid)
		_exit(3);
	require(waitpid(pid, NULL, 0) == pid);
}

static void forbidden_calls_fail(void **state)
{
	(void)state;
	run_child(make_forbidden_calls);
}

static void daemon_calls_work(void **state)
{
	(void)state;
	run_child(make_allowed_calls);
}

/* --- All threads */

static uint64_t read_field(const char *tid, const char *name, int base)
{
	char path[300], line[128];
	size_t len = strlen(name);
	uint64_t value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	file = fopen(path, "re");
	require(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, len) && line[len] == ':')
			value = strtoull(line + len + 1, NULL, base);
	fclose(file);
	return value;
}

/* Returns the number of threads. */
static int check_threads(uint64_t capabilities)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		require(read_field(entry->d_name, "CapPrm", 16) == capabilities);
		require(read_field(entry->d_name, "CapEff", 16) == capabilities);
		require(read_field(entry->d_name, "NoNewPrivs", 10) == 1);
		require(read_field(entry->d_name, "Seccomp", 10) == 2);
		n++;
	}
	closedir(dir);
	return n;
}

static void *block(void *arg)
{
	char byte;

	/* Restarted after the signal. */
	require(read(*(int *)arg, &byte, 1) == 0);
	return arg;
}

static void drop_with_threads(void)
{
	const char *const uplinks[] = {"af_packet:eth0", "tap:t0"};
	const char *const machines[] = {"qemu:/a", "qemu:/b,connect", "vhost:/c",
					"vhost:/d,connect", "qemu:/e,dgram"};
	uint64_t wanted = CAPABILITY(CAP_NET_RAW) | CAPABILITY(CAP_NET_ADMIN);
	char error[PRIVILEGE_ERROR];
	pthread_t threads[3];
	int ends[2];

	require(privilege_needed(uplinks, 2) == wanted);
	require(privilege_needed(NULL, 0) == 0);
	require(privilege_needed(machines, 4) == 0);
	require(privilege_needed(machines, 5) == CAPABILITY(CAP_DAC_OVERRIDE));
	wanted &= capabilities_get();
	require(!pipe(ends));
	for (int i = 0; i < 3; i++)
		require(!pthread_create(&threads[i], NULL, block, &ends[0]));
	require(!privilege_drop(privilege_needed(uplinks, 2), error));
	require(check_threads(wanted) == 4);
	close(ends[1]);
	for (int i = 0; i < 3; i++)
		require(!pthread_join(threads[i], NULL));
}

static void all_threads_drop_privileges(void **state)
{
	(void)state;
	run_child(drop_with_threads);
}

static bool clock_is_stepped;

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	const int rc = __real_clock_gettime(clock, ts);

	if (clock == CLOCK_REALTIME && clock_is_stepped)
		ts->tv_sec -= 3600;
	return rc;
}

static void drop_during_a_step(void)
{
	clock_is_stepped = true;
	drop_with_threads();
}

/* At the host's start the clock may be set while the daemon waits for its threads. */
static void step_of_the_clock_does_not_end_the_drop(void **state)
{
	(void)state;
	run_child(drop_during_a_step);
}

static void drop_without_queued_signals(void)
{
	const struct rlimit none = {0};

	require(!setrlimit(RLIMIT_SIGPENDING, &none));
	drop_with_threads();
}

/* Real-time signals that wait for other programs of the user count against the same limit. */
static void limit_of_queued_signals_does_not_end_the_drop(void **state)
{
	(void)state;
	run_child(drop_without_queued_signals);
}

/* --- The helper that compares user namespaces */

static pid_t fork_pausing(bool other_namespace)
{
	int ready[2];
	char byte;
	pid_t pid;

	require(!pipe(ready));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (other_namespace && unshare(CLONE_NEWUSER))
			_exit(1);
		require(write(ready[1], "", 1) == 1);
		pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		pid = 0;
	close(ready[0]);
	return pid;
}

static void compare_namespaces(void)
{
	char error[PRIVILEGE_ERROR];
	pid_t same = fork_pausing(false), other = fork_pausing(true);

	require(!namespace_query_start());
	require(!privilege_drop(0, error));
	require(capabilities_get() == 0);
	require(!namespace_query(NULL, getpid(), same));
	require(!other || namespace_query(NULL, getpid(), other) == -EPERM);
	require(namespace_query(NULL, getpid(), 0) == -EPERM);
	require(namespace_query(NULL, -1, getpid()) == -EPERM);
	namespace_query_stop();
}

/* While *is_slow, which the helper shares, it takes longer for an answer than the daemon waits. */
static atomic_bool *is_slow;

bool __real_vnic_server_share_user_namespace(pid_t a, pid_t b);
bool __wrap_vnic_server_share_user_namespace(pid_t a, pid_t b);

bool __wrap_vnic_server_share_user_namespace(pid_t a, pid_t b)
{
	while (is_slow && atomic_load(is_slow))
		usleep(1000);
	return __real_vnic_server_share_user_namespace(a, b);
}

/* While *fails, the kernel has no memory for what the daemon sends, or the helper. */
static atomic_bool *fails;
static pid_t daemon_pid;
static bool helper_fails;

ssize_t __real_send(int fd, const void *data, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t size, int flags);

ssize_t __wrap_send(int fd, const void *data, size_t size, int flags)
{
	if (!fails || !atomic_load(fails) || (getpid() == daemon_pid) == helper_fails)
		return __real_send(fd, data, size, flags);
	errno = ENOBUFS;
	return -1;
}

/* Returns how long the daemon waits for an answer that does not come. */
static uint64_t ask_in_vain(pid_t pid)
{
	const uint64_t start = now_ns();

	require(namespace_query(NULL, getpid(), pid) == -EBUSY);
	return now_ns() - start;
}

static void ask_until_answered(pid_t pid)
{
	for (int i = 0; i < 1000 && namespace_query(NULL, getpid(), pid) == -EBUSY; i++)
		usleep(10000);
	require(!namespace_query(NULL, getpid(), pid));
}

static void ask_a_slow_helper(void)
{
	pid_t same = fork_pausing(false);

	is_slow = share_flag();
	require(!namespace_query_start());
	ask_in_vain(same);
	/* No second wait. */
	require(ask_in_vain(same) < NS_PER_SEC / 2);
	atomic_store(is_slow, false);
	ask_until_answered(same);
	/* The late answer is not that of the next question. */
	require(namespace_query(NULL, getpid(), 0) == -EPERM);
	/* No long wait any more. */
	atomic_store(is_slow, true);
	require(ask_in_vain(same) < NS_PER_SEC / 2);
	atomic_store(is_slow, false);
	ask_until_answered(same);
	namespace_query_stop();
}

static void ask_without_memory(void)
{
	pid_t same = fork_pausing(false);

	fails = share_flag();
	daemon_pid = getpid();
	require(!namespace_query_start());
	ask_in_vain(same);
	atomic_store(fails, false);
	ask_until_answered(same);
	namespace_query_stop();
}

static void answer_without_memory(void)
{
	helper_fails = true;
	ask_without_memory();
}

static void late_answer_does_not_end_the_helper(void **state)
{
	(void)state;
	if (!(capabilities_get() & CAPABILITY(CAP_SYS_PTRACE)))
		skip();
	run_child(ask_a_slow_helper);
}

static void lack_of_memory_does_not_end_the_helper(void **state)
{
	(void)state;
	if (!(capabilities_get() & CAPABILITY(CAP_SYS_PTRACE)))
		skip();
	run_child(ask_without_memory);
	run_child(answer_without_memory);
}

static void namespaces_are_compared_without_privileges(void **state)
{
	(void)state;
	run_child(compare_namespaces);
}

/* --- The helper that connects to virtual machines */

static char vm_dir[] = "/tmp/vm-socket-XXXXXX";
static char vm_spec[64];

static int listen_in_vm_dir(struct sockaddr_un *address, const char *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", vm_dir, name);
	require(!bind(fd, (struct sockaddr *)address, sizeof(*address)));
	require(!listen(fd, 1));
	return fd;
}

static uint64_t peers(struct netdev *port)
{
	uint64_t counters[NETDEV_COUNTER_COUNT];

	netdev_counters(port, counters);
	return counters[NETDEV_PEERS];
}

/* Lets the port try to connect three times. Returns how long the calls took. */
static uint64_t retry(struct netdev *port)
{
	static uint64_t now;
	const uint64_t start = now_ns();
	struct netdev_frame frame;

	for (int i = 0; i < 3; i++)
		netdev_rx(port, now += NS_PER_SEC, &frame, 1);
	return now_ns() - start;
}

static void await_peer(struct netdev *port)
{
	for (int i = 0; i < 1000 && !peers(port); i++) {
		retry(port);
		usleep(10000);
	}
	require(peers(port) == 1);
}

/* The directory is another user's: root without capabilities cannot enter it. */
static void connect_to_machine(void)
{
	const char *const specs[] = {vm_spec};
	struct sockaddr_un address, other;
	char error[PRIVILEGE_ERROR], text[128];
	struct netdev *port;
	int listener, peer;

	snprintf(vm_spec, sizeof(vm_spec), "qemu:%s/vm,connect", vm_dir);
	require(!vm_socket_start(specs, 1));
	require(!netdev_qemu_open(vm_spec, 1500, &port, text, sizeof(text)));
	netdev_close(port);
	listener = listen_in_vm_dir(&address, "vm");
	require(listen_in_vm_dir(&other, "other") >= 0);
	require(!chmod(vm_dir, 0700) && !chown(vm_dir, 12345, 12345));
	require(!privilege_drop(privilege_needed(specs, 1), error));
	require(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address,
			sizeof(address)) &&
		errno == EACCES);
	require(!netdev_qemu_open(vm_spec, 1500, &port, text, sizeof(text)));
	await_peer(port);
	peer = accept(listener, NULL, NULL);
	require(peer >= 0);
	netdev_close(port);
	/* No other path. */
	snprintf(vm_spec, sizeof(vm_spec), "qemu:%s/other,connect", vm_dir);
	require(netdev_qemu_open(vm_spec, 1500, &port, text, sizeof(text)) == -EPERM);
	vm_socket_stop();
}

static void machine_is_reached_without_privileges(void **state)
{
	(void)state;
	if (!(capabilities_get() & CAPABILITY(CAP_DAC_OVERRIDE)) || !mkdtemp(vm_dir))
		skip();
	run_child(connect_to_machine);
	assert_int_equal(rundir_remove(vm_dir, "vm") | rundir_remove(vm_dir, "other"), 0);
	assert_int_equal(rmdir(vm_dir), 0);
}

/* While *is_blocked, which the helper shares, connect does not return for a path with this name. */
#define BLOCKED "blocked"
/* The process that connects to a path with this name ends, while *is_blocked. */
#define ENDS "ends"
static atomic_bool *is_blocked;

int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	const char *path = ((const struct sockaddr_un *)address)->sun_path;

	if (address->sa_family == AF_UNIX && strstr(path, "/" ENDS) && is_blocked &&
	    atomic_load(is_blocked))
		_exit(1);
	while (address->sa_family == AF_UNIX && strstr(path, "/" BLOCKED) && is_blocked &&
	       atomic_load(is_blocked))
		usleep(1000);
	return __real_connect(fd, address, size);
}

/* A file system that does not answer delays the port of its path, but neither urxed nor others. */
static void connect_beside_blocked_path(void)
{
	char specs[2][64], text[128];
	const char *const uplinks[] = {specs[0], specs[1]};
	struct sockaddr_un address;
	struct netdev *blocked, *other;
	int listeners[2];

	is_blocked = share_flag();
	snprintf(specs[0], sizeof(specs[0]), "qemu:%s/" BLOCKED ",connect", vm_dir);
	snprintf(specs[1], sizeof(specs[1]), "qemu:%s/vm,connect", vm_dir);
	listeners[0] = listen_in_vm_dir(&address, BLOCKED);
	listeners[1] = listen_in_vm_dir(&address, "vm");
	require(!vm_socket_start(uplinks, 2));
	require(!netdev_qemu_open(specs[0], 1500, &blocked, text, sizeof(text)));
	require(!peers(blocked));
	require(!netdev_qemu_open(specs[1], 1500, &other, text, sizeof(text)));
	await_peer(other);
	require(accept(listeners[1], NULL, NULL) >= 0);
	/* No further wait, and no further order. */
	require(retry(blocked) < NS_PER_SEC / 2);
	require(!peers(blocked));
	atomic_store(is_blocked, false);
	await_peer(blocked);
	require(accept(listeners[0], NULL, NULL) >= 0);
	require(!fcntl(listeners[0], F_SETFL, O_NONBLOCK));
	require(accept(listeners[0], NULL, NULL) < 0 && errno == EAGAIN);
	netdev_close(blocked);
	netdev_close(other);
	vm_socket_stop();
}

/* Runs `body`, which makes these two sockets in a new vm_dir. */
static void run_in_vm_dir(void (*body)(void), const char *socket, const char *other)
{
	if (!(capabilities_get() & CAPABILITY(CAP_DAC_OVERRIDE)))
		skip();
	strcpy(strrchr(vm_dir, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(vm_dir));
	run_child(body);
	assert_int_equal(rundir_remove(vm_dir, socket), 0);
	if (other)
		assert_int_equal(rundir_remove(vm_dir, other), 0);
	assert_int_equal(rmdir(vm_dir), 0);
}

static void blocked_path_delays_no_other(void **state)
{
	(void)state;
	run_in_vm_dir(connect_beside_blocked_path, "vm", BLOCKED);
}

/* The process that connects for the helper is killed before its answer. */
static void connect_after_a_killed_process(void)
{
	const char *const uplinks[] = {vm_spec};
	struct sockaddr_un address;
	struct netdev *port;
	char text[128];
	int listener;

	is_blocked = share_flag();
	snprintf(vm_spec, sizeof(vm_spec), "qemu:%s/" ENDS ",connect", vm_dir);
	listener = listen_in_vm_dir(&address, ENDS);
	require(!vm_socket_start(uplinks, 1));
	require(!netdev_qemu_open(vm_spec, 1500, &port, text, sizeof(text)));
	retry(port);
	require(!peers(port));
	atomic_store(is_blocked, false);
	await_peer(port);
	require(accept(listener, NULL, NULL) >= 0);
	netdev_close(port);
	vm_socket_stop();
}

static void killed_process_is_no_last_attempt(void **state)
{
	(void)state;
	run_in_vm_dir(connect_after_a_killed_process, ENDS, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forbidden_calls_fail),
		cmocka_unit_test(daemon_calls_work),
		cmocka_unit_test(all_threads_drop_privileges),
		cmocka_unit_test(step_of_the_clock_does_not_end_the_drop),
		cmocka_unit_test(limit_of_queued_signals_does_not_end_the_drop),
		cmocka_unit_test(namespaces_are_compared_without_privileges),
		cmocka_unit_test(late_answer_does_not_end_the_helper),
		cmocka_unit_test(lack_of_memory_does_not_end_the_helper),
		cmocka_unit_test(machine_is_reached_without_privileges),
		cmocka_unit_test(blocked_path_delays_no_other),
		cmocka_unit_test(killed_process_is_no_last_attempt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
