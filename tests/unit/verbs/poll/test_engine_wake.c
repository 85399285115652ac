/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wake-ups of the engine thread. The test plays the thread. */
#include "poll/engine_wake.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/own_fd.h"

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

/* --- A program that closes all descriptors. */

static int eventfds[2]; /* of the thread, and of the program */

static int make_eventfds(void **state)
{
	(void)state;
	fd_set_owner();
	for (int i = 0; i < 2; i++)
		eventfds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	adapter_thread.wake_fd = eventfds[0];
	return eventfds[0] > 0 && eventfds[1] > 0 ? 0 : -1;
}

static int close_eventfds(void **state)
{
	(void)state;
	return close_range(3, ~0u, 0);
}

/* The number has changed, and is outside of the range; it is of the same file. */
static void expect_moved(unsigned int first, unsigned int last)
{
	const uint64_t one = 1;
	uint64_t count = 0;
	int fd;

	errno = EXDEV;
	engine_wake_keep(first, last);
	assert_int_equal(errno, EXDEV);
	fd = adapter_thread.wake_fd;
	assert_true(fd > 2 && ((unsigned int)fd < first || (unsigned int)fd > last));
	assert_int_equal(__real_write(fd, &one, sizeof(one)), sizeof(one));
	assert_int_equal(read(eventfds[0], &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 1);
}

static void a_close_moves_the_eventfd(void **state)
{
	(void)state;
	expect_moved((unsigned int)eventfds[0], (unsigned int)eventfds[0]);
	assert_true(adapter_thread.wake_fd > eventfds[0]);
}

static void a_range_to_the_end_moves_the_eventfd_below(void **state)
{
	int gap = eventfds[0];

	(void)state;
	/* The thread has the higher number, and the lower one is free. */
	eventfds[0] = adapter_thread.wake_fd = dup(gap);
	assert_true(eventfds[0] > gap);
	close(gap);
	expect_moved((unsigned int)eventfds[0], UINT_MAX);
	assert_int_equal(adapter_thread.wake_fd, gap);
}

static void other_descriptors_move_nothing(void **state)
{
	(void)state;
	engine_wake_keep((unsigned int)eventfds[1], UINT_MAX);
	engine_wake_keep(0, (unsigned int)eventfds[0] - 1);
	engine_wake_keep((unsigned int)-1, (unsigned int)-1);
	assert_int_equal(adapter_thread.wake_fd, eventfds[0]);
	/* A process without the thread. */
	adapter_thread.wake_fd = -1;
	engine_wake_keep(0, UINT_MAX);
	assert_int_equal(adapter_thread.wake_fd, -1);
	adapter_thread.wake_fd = 0;
	engine_wake_keep(0, UINT_MAX);
	assert_int_equal(adapter_thread.wake_fd, 0);
}

/* No number below the range is free: the eventfd stays, and no copy is left. */
static void a_range_of_all_numbers_moves_nothing(void **state)
{
	const int next = dup(eventfds[1]);

	(void)state;
	close(next);
	engine_wake_keep(0, UINT_MAX);
	assert_int_equal(adapter_thread.wake_fd, eventfds[0]);
	assert_int_equal(dup(eventfds[1]), next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_sleep_of_a_woken_thread_is_known),
		cmocka_unit_test_setup_teardown(a_close_moves_the_eventfd, make_eventfds,
						close_eventfds),
		cmocka_unit_test_setup_teardown(a_range_to_the_end_moves_the_eventfd_below,
						make_eventfds, close_eventfds),
		cmocka_unit_test_setup_teardown(other_descriptors_move_nothing, make_eventfds,
						close_eventfds),
		cmocka_unit_test_setup_teardown(a_range_of_all_numbers_moves_nothing, make_eventfds,
						close_eventfds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
