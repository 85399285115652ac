/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Looks of the sleeping engine thread at the poll grant, and its sleep where RLIMIT_NOFILE forbids
 * to watch descriptors. The test plays program, clock and kernel.
 */
#include "poll/thread_sleep.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "objects/comp_channel.h"
#include "poll/engine_wake.h"
#include "poll/polling.h"

#define MS UINT64_C(1000000)

static struct {
	uint64_t time;    /* ns */
	uint64_t late;    /* delay of the thread's wake-ups, ns */
	uint32_t polls;   /* sleeps during which the program polls, the last of them in part */
	uint64_t last;    /* when the program polled last */
	uint64_t length;  /* of a grant, ns */
	uint32_t wakings; /* of the thread so far */
	nfds_t most;      /* descriptors that RLIMIT_NOFILE permits to watch */
	int closed;       /* a descriptor that the program has closed, or -1 */
} w;

uint64_t __wrap_clock_read_kernel(void);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask);

uint64_t __wrap_clock_read_kernel(void)
{
	return w.time;
}

static void poll_at(uint64_t time)
{
	w.last = time;
	adapter_polling.grant_ns = w.length;
	adapter_polling.grant_until = time + w.length;
}

/* Whether the kernel reports a descriptor that the program has closed. */
static bool reports_closed(struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++) {
		fds[i].revents = fds[i].fd >= 0 && fds[i].fd == w.closed ? POLLNVAL : 0;
		if (fds[i].revents)
			return true;
	}
	return false;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	(void)mask;
	if (n > w.most) {
		errno = EINVAL;
		return -1;
	}
	if (reports_closed(fds, n))
		return 1;
	w.time += (uint64_t)timeout->tv_sec * 1000 * MS + (uint64_t)timeout->tv_nsec;
	w.time += w.late;
	if (w.polls)
		poll_at(w.time - (--w.polls ? 1000 : w.length / 2));
	w.wakings++;
	return 0;
}

/* The program polls during so many sleeps of the thread. Returns the ns from its last poll until
 * the thread takes over. */
static uint64_t time_to_take_over(uint32_t polls)
{
	struct thread_sleep sleep = {0};

	w.polls = polls;
	poll_at(w.time);
	sleep.until = adapter_polling.grant_until;
	thread_sleep_wait(&sleep, w.time);
	return w.time - w.last;
}

static int start(void **state)
{
	(void)state;
	w.time = 1000 * MS;
	w.late = 0;
	w.length = POLL_GRANT_NS;
	w.wakings = 0;
	w.most = THREAD_SLEEP_FDS;
	w.closed = -1;
	adapter_thread.look = POLL_GRANT_NS;
	return 0;
}

static void prompt_thread_looks_each_millisecond(void **state)
{
	(void)state;
	assert_in_range(time_to_take_over(20), MS, MS + 1000);
	assert_int_equal(w.wakings, 21);
	assert_int_equal(adapter_thread.look, POLL_GRANT_NS);
}

static void late_thread_takes_over_after_8_ms_and_its_delay(void **state)
{
	(void)state;
	w.late = MS;
	assert_in_range(time_to_take_over(20), MS, 8 * MS + w.late);
	assert_int_equal(adapter_thread.look, 8 * MS);
}

static void long_grant_does_not_add_to_the_interval_of_looks(void **state)
{
	(void)state;
	w.late = MS;
	w.length = adapter_thread.look = 8 * MS;
	assert_in_range(time_to_take_over(20), 8 * MS, 8 * MS + w.late);
	assert_int_equal(w.wakings, 21);
	assert_int_equal(adapter_thread.look, 8 * MS);
}

static void thread_that_may_watch_nothing_looks_each_millisecond(void **state)
{
	struct thread_sleep sleep = {0};
	const uint64_t begin = w.time;

	(void)state;
	w.most = 0;
	adapter_polling.grant_until = 0;
	adapter.reconnecting = true; /* neither daemon nor vNIC */
	adapter_thread.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	thread_sleep_prepare(&sleep, w.time, true);
	sleep.until = w.time + 1000 * MS;
	thread_sleep_wait(&sleep, w.time);
	assert_int_equal(w.time, begin + MS);
	assert_int_equal(w.wakings, 1);
	assert_true(sleep.fds[0].revents); /* the thread may have been woken */
	assert_false(sleep.hangup);
	close(adapter_thread.wake_fd);
	adapter.reconnecting = false;
}

/* Such a descriptor would end each sleep at once. */
static void thread_looks_each_millisecond_after_the_program_closed_a_descriptor(void **state)
{
	struct comp_channel channel = {.writer = 1000};
	struct thread_sleep sleep = {0};
	const uint64_t begin = w.time;

	(void)state;
	adapter.dead = true;
	adapter_polling.state = POLL_DISCONNECTED;
	LIST_INSERT_HEAD(&adapter.waiting_channels, &channel, waiting_link);
	thread_sleep_prepare(&sleep, w.time, true);
	w.closed = channel.writer;
	thread_sleep_wait(&sleep, w.time);
	assert_int_equal(w.time, begin + MS);
	LIST_REMOVE(&channel, waiting_link);
	adapter.dead = false;
}

/* The device has died while a frame waited for room in a peer's inbox. */
static void thread_of_a_dead_device_does_not_wake_for_a_waiting_frame(void **state)
{
	struct thread_sleep sleep = {0};

	(void)state;
	adapter.dead = true;
	adapter.tx.count = 1;
	adapter.tx.retry_at = w.time - MS;
	adapter_polling.state = POLL_DISCONNECTED;
	sleep.grants = adapter_polling.grants;
	thread_sleep_prepare(&sleep, w.time, true);
	assert_true(sleep.until == URXE_NEVER);
	adapter.dead = false;
	adapter.tx.count = 0;
}

/* The socket of such a channel has room, and would end each sleep. */
static void thread_does_not_watch_a_channel_that_lacks_memory(void **state)
{
	struct comp_channel channel = {.writer = 1000, .lacks_memory = true};
	struct thread_sleep sleep = {0};

	(void)state;
	adapter.dead = true;
	adapter_polling.state = POLL_DISCONNECTED;
	sleep.grants = adapter_polling.grants;
	LIST_INSERT_HEAD(&adapter.waiting_channels, &channel, waiting_link);
	thread_sleep_prepare(&sleep, w.time, true);
	for (nfds_t i = 0; i < sleep.n; i++)
		assert_int_not_equal(sleep.fds[i].fd, channel.writer);
	assert_in_range(sleep.until, w.time + 1, w.time + 10 * MS);
	channel.lacks_memory = false;
	thread_sleep_prepare(&sleep, w.time, true);
	assert_int_equal(sleep.fds[sleep.n - 1].fd, channel.writer);
	assert_true(sleep.until == URXE_NEVER);
	LIST_REMOVE(&channel, waiting_link);
	adapter.dead = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(prompt_thread_looks_each_millisecond, start),
		cmocka_unit_test_setup(late_thread_takes_over_after_8_ms_and_its_delay, start),
		cmocka_unit_test_setup(thread_that_may_watch_nothing_looks_each_millisecond, start),
		cmocka_unit_test_setup(
			thread_looks_each_millisecond_after_the_program_closed_a_descriptor, start),
		cmocka_unit_test_setup(thread_of_a_dead_device_does_not_wake_for_a_waiting_frame,
				       start),
		cmocka_unit_test_setup(thread_does_not_watch_a_channel_that_lacks_memory, start),
		cmocka_unit_test_setup(long_grant_does_not_add_to_the_interval_of_looks, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
