/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wake-ups of the engine thread. The test plays the thread. */
#include "poll/engine_wake.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/emulated_fd.h"

#define LATER UINT64_C(1000000)

ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n);

/* The thread wakes up at once, runs, and sleeps again before the write returns. */
ssize_t __wrap_write(int fd, const void *data, size_t n)
{
	if (fd != adapter_thread.wake_fd)
		return __real_write(fd, data, n);
	adapter_thread.wake_at = LATER;
	return (ssize_t)n;
}

/* Otherwise other threads believe that the thread is awake, and do not wake it for its work. */
static void the_next_sleep_of_a_woken_thread_is_known(void **state)
{
	(void)state;
	adapter_thread.wake_fd = -2;
	adapter_thread.wake_at = 1;
	engine_wake();
	assert_true(adapter_thread.wake_at == LATER);
}

/* --- The descriptor that the program must not close. */

#define WAKE_FD 1026

static int as_the_process_of_the_thread(void **state)
{
	(void)state;
	fd_set_owner();
	adapter_thread.wake_fd = WAKE_FD;
	return 0;
}

static void a_range_around_the_eventfd_has_it(void **state)
{
	(void)state;
	assert_int_equal(engine_wake_fd_within(WAKE_FD, WAKE_FD), WAKE_FD);
	assert_int_equal(engine_wake_fd_within(3, UINT_MAX), WAKE_FD);
}

static void other_ranges_have_none(void **state)
{
	(void)state;
	assert_int_equal(engine_wake_fd_within(3, WAKE_FD - 1), -1);
	assert_int_equal(engine_wake_fd_within(WAKE_FD + 1, UINT_MAX), -1);
	assert_int_equal(engine_wake_fd_within(UINT_MAX, UINT_MAX), -1);
}

static void a_process_without_a_thread_has_none(void **state)
{
	(void)state;
	adapter_thread.wake_fd = -1;
	assert_int_equal(engine_wake_fd_within(0, UINT_MAX), -1);
	adapter_thread.wake_fd = 0; /* never attached */
	assert_int_equal(engine_wake_fd_within(0, UINT_MAX), -1);
}

static void a_child_has_none(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(engine_wake_fd_within(0, UINT_MAX) == -1 ? 0 : 1);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_sleep_of_a_woken_thread_is_known),
		cmocka_unit_test_setup(a_range_around_the_eventfd_has_it,
				       as_the_process_of_the_thread),
		cmocka_unit_test_setup(other_ranges_have_none, as_the_process_of_the_thread),
		cmocka_unit_test_setup(a_process_without_a_thread_has_none,
				       as_the_process_of_the_thread),
		cmocka_unit_test_setup(a_child_has_none, as_the_process_of_the_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
