/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What code in the process of a vhost: port can do: each attempt runs in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "urxed/vhost/vhost_syscalls.h"

/* An attempt: 0 if the system call succeeded, else errno. */
typedef int attempt_fn(void);

static int result_of(long rc)
{
	return rc < 0 ? errno : 0;
}

/* Returns the wait status of a confined process, whose exit status is the result of the attempt. */
static int wait_confined(attempt_fn *attempt, bool connects, bool further)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || vhost_syscalls_limit(connects) ||
		    (further && vhost_syscalls_limit_further(connects)))
			_exit(255);
		_exit(attempt());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int run_confined(attempt_fn *attempt, bool connects, bool further)
{
	const int status = wait_confined(attempt, connects, further);

	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), 255);
	return WEXITSTATUS(status);
}

static void expect_refused(attempt_fn *attempt)
{
	assert_int_equal(run_confined(attempt, false, false), EPERM);
	assert_int_equal(run_confined(attempt, true, true), EPERM);
}

/* --- Against urxed; any other process stands for it */

static int signal_process(void)
{
	return result_of(kill(1, 0));
}

static int trace_process(void)
{
	return result_of(ptrace(PTRACE_ATTACH, 1, NULL, NULL));
}

static int read_process(void)
{
	char byte;
	const struct iovec local = {&byte, 1}, remote = {&byte, 1};

	return result_of(process_vm_readv(1, &local, 1, &remote, 1, 0));
}

static int limit_process(void)
{
	struct rlimit limit;

	return result_of(prlimit(1, RLIMIT_NOFILE, NULL, &limit));
}

/* The owner of a descriptor gets its signals. */
static int own_descriptor(void)
{
	return result_of(fcntl(STDIN_FILENO, F_SETOWN, 1));
}

static void test_other_processes_are_out_of_reach(void **state)
{
	(void)state;
	expect_refused(signal_process);
	expect_refused(trace_process);
	expect_refused(read_process);
	expect_refused(limit_process);
	expect_refused(own_descriptor);
}

/* --- New things */

static int open_file(void)
{
	return result_of(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static int execute(void)
{
	return result_of(execl("/bin/true", "true", NULL));
}

static int start_process(void)
{
	return result_of(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL));
}

static int open_inet(void)
{
	return result_of(socket(AF_INET, SOCK_STREAM, 0));
}

static int open_datagram(void)
{
	return result_of(socket(AF_UNIX, SOCK_DGRAM, 0));
}

static int map_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? errno : 0;
}

static int make_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return result_of(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

static int make_dumpable(void)
{
	return result_of(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

/* TIOCSTI would type into a terminal. An epoll set is none, so the kernel would answer ENOTTY. */
static int type_into_terminal(void)
{
	return result_of(ioctl(epoll_create1(0), TIOCSTI, "x"));
}

static int raise_limit(void)
{
	const struct rlimit limit = {64, 64};

	return result_of(setrlimit(RLIMIT_NOFILE, &limit));
}

static void test_files_processes_and_sockets_cannot_be_opened(void **state)
{
	(void)state;
	expect_refused(open_file);
	expect_refused(execute);
	expect_refused(start_process);
	expect_refused(open_inet);
	expect_refused(open_datagram);
	expect_refused(map_code);
	expect_refused(make_code);
	expect_refused(make_dumpable);
	expect_refused(type_into_terminal);
	expect_refused(raise_limit);
}

/* The kernel uses the lower 32 bits of a command, so the filter compares no others. */
static int get_flags_with_upper_bits(void)
{
	return result_of(syscall(SYS_fcntl, STDERR_FILENO, F_GETFL | 1ull << 32));
}

static void test_upper_bits_of_arguments_are_ignored(void **state)
{
	(void)state;
	assert_int_equal(run_confined(get_flags_with_upper_bits, false, true), 0);
}

/* The kernel answers EFAULT for a filter at address 0. */
static int filter_again(void)
{
	return result_of(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
}

static void test_the_second_filter_is_the_last(void **state)
{
	(void)state;
	assert_int_equal(run_confined(filter_again, false, false), EFAULT);
	assert_int_equal(run_confined(filter_again, false, true), EPERM);
}

/* --- Threads that run before the filter */

static sem_t limited;

static void *open_when_limited(void *unused)
{
	sem_wait(&limited);
	_exit(open_file());
	return unused;
}

static void test_earlier_threads_are_limited(void **state)
{
	pthread_t thread;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(sem_init(&limited, 0, 0), 0);
	pid = fork();
	if (!pid) {
		if (pthread_create(&thread, NULL, open_when_limited, NULL) ||
		    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || vhost_syscalls_limit(false))
			_exit(255);
		sem_post(&limited);
		pthread_join(thread, NULL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EPERM);
}

/* --- System calls of other architectures, whose numbers mean other calls */

#ifdef __x86_64__
/* Number 20 is getpid in i386's table. */
static int call_as_i386(void)
{
	long number = 20;

	__asm__ volatile("int $0x80" : "+a"(number) : : "memory");
	return 0;
}

static int call_as_x32(void)
{
	return result_of(syscall(SYS_getpid | 0x40000000));
}

static void test_calls_of_other_architectures_kill(void **state)
{
	attempt_fn *const attempts[] = {call_as_i386, call_as_x32};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const int status = wait_confined(attempts[i], false, i);

		assert_true(WIFSIGNALED(status));
		/* A kernel without i386's calls sends SIGSEGV for int $0x80. */
		if (attempts[i] != call_as_i386 || WTERMSIG(status) != SIGSEGV)
			assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}
#endif

/* --- The socket of the port */

static int open_stream(void)
{
	return result_of(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int connect_stream(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/no/socket"};

	return result_of(connect(STDIN_FILENO, (struct sockaddr *)&address, sizeof(address)));
}

static int bind_stream(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/no/socket"};

	return result_of(bind(STDIN_FILENO, (struct sockaddr *)&address, sizeof(address)));
}

static void test_a_listener_makes_its_socket_only(void **state)
{
	(void)state;
	assert_int_equal(run_confined(open_stream, false, false), 0);
	assert_int_not_equal(run_confined(bind_stream, false, false), EPERM);
	assert_int_equal(run_confined(connect_stream, false, false), EPERM);
	assert_int_equal(run_confined(open_stream, false, true), EPERM);
	assert_int_equal(run_confined(bind_stream, false, true), EPERM);
}

static void test_who_connects_may_do_so_again(void **state)
{
	(void)state;
	assert_int_equal(run_confined(open_stream, true, true), 0);
	assert_int_not_equal(run_confined(connect_stream, true, true), EPERM);
	assert_int_equal(run_confined(bind_stream, true, true), EPERM);
}

/* --- What DPDK needs */

static void *do_nothing(void *unused)
{
	return unused;
}

static int start_thread(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, do_nothing, NULL) ?: pthread_join(thread, NULL);
}

/* Refused without an error: DPDK's threads would not start with one. */
static int set_affinity(void)
{
	cpu_set_t none;

	CPU_ZERO(&none);
	return result_of(sched_setaffinity(0, sizeof(none), &none));
}

static void test_threads_start_before_the_port_does(void **state)
{
	(void)state;
	assert_int_equal(run_confined(start_thread, false, false), 0);
	assert_int_equal(run_confined(set_affinity, false, false), 0);
	assert_int_not_equal(run_confined(start_thread, false, true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_processes_are_out_of_reach),
		cmocka_unit_test(test_files_processes_and_sockets_cannot_be_opened),
		cmocka_unit_test(test_upper_bits_of_arguments_are_ignored),
		cmocka_unit_test(test_the_second_filter_is_the_last),
		cmocka_unit_test(test_earlier_threads_are_limited),
#ifdef __x86_64__
		cmocka_unit_test(test_calls_of_other_architectures_kill),
#endif
		cmocka_unit_test(test_a_listener_makes_its_socket_only),
		cmocka_unit_test(test_who_connects_may_do_so_again),
		cmocka_unit_test(test_threads_start_before_the_port_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
