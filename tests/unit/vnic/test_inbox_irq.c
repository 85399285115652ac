/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Conditions under which frames in an inbox raise its interrupt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inbox.h"

static void test_unmasked_interrupt_wakes_the_receiver(void **state)
{
	struct fixture *f = *state;

	send_all(f, f->first, 1);
	assert_false(interrupted(f)); /* masked at the start */
	assert_true(vnic_inbox_irq_unmask(f->inbox));
	assert_int_equal(receive(f), 1);
	assert_false(vnic_inbox_irq_unmask(f->inbox));
	send_all(f, f->first, BURST);
	assert_true(interrupted(f));
	/* Delivery masks. */
	send_all(f, f->second, 1);
	assert_false(interrupted(f));
	assert_true(vnic_inbox_irq_unmask(f->inbox));
	vnic_inbox_irq_mask(f->inbox);
	send_all(f, f->second, 1);
	assert_false(interrupted(f));
	assert_int_equal(receive(f), BURST + 2);
}

/* A peer can fill the eventfd: a sender's write to it does not block. */
static void test_filled_eventfd_does_not_block_senders(void **state)
{
	struct fixture *f = *state;
	int fd = vnic_inbox_irq_fd(f->inbox);

	assert_int_equal(eventfd_write(fd, UINT64_MAX - 1), 0);
	assert_false(vnic_inbox_irq_unmask(f->inbox));
	send_all(f, f->first, 1);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 1);
	assert_false(vnic_inbox_irq_unmask(f->inbox));
	send_all(f, f->second, 1);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 1);
}

/* Under this limit poll(2) fails. */
static void test_limit_of_no_descriptors_does_not_stop_wake_ups(void **state)
{
	struct fixture *f = *state;
	struct rlimit limit;
	rlim_t before;

	assert_false(vnic_inbox_irq_unmask(f->inbox));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	send_all(f, f->first, 1);
	limit.rlim_cur = before;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 1);
}

static void *wake_without_descriptors(void *outbox)
{
	assert_int_equal(unshare(CLONE_FILES), 0);
	assert_int_equal(syscall(SYS_close_range, 3, ~0u, 0), 0);
	vnic_outbox_wake(outbox);
	return NULL;
}

/* The thread has a table of descriptors of its own, without the eventfd. */
static void test_sender_that_cannot_wake_masks_nothing(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;

	assert_false(vnic_inbox_irq_unmask(f->inbox));
	assert_int_equal(pthread_create(&thread, NULL, wake_without_descriptors, f->first), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(interrupted(f));
	vnic_outbox_wake(f->second);
	assert_true(interrupted(f));
}

static bool returned;

static void cancel_self(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(state, NULL);
}

static void *wake_when_cancelled(void *outbox)
{
	cancel_self();
	vnic_outbox_wake(outbox);
	returned = true;
	pthread_testcancel();
	return NULL;
}

static void *close_when_cancelled(void *outbox)
{
	cancel_self();
	vnic_outbox_close(outbox);
	returned = true;
	pthread_testcancel();
	return NULL;
}

/* The thread has locks, which it would not release. */
static void expect_return_when_cancelled(void *(*call)(void *), struct vnic_outbox *outbox)
{
	pthread_t thread;
	void *result;

	returned = false;
	assert_int_equal(pthread_create(&thread, NULL, call, outbox), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(returned);
}

static void test_cancelled_thread_does_not_end_in_a_wake_up(void **state)
{
	struct fixture *f = *state;

	assert_false(vnic_inbox_irq_unmask(f->inbox));
	expect_return_when_cancelled(wake_when_cancelled, f->first);
	assert_true(interrupted(f));
}

static void test_cancelled_thread_does_not_end_when_it_closes_an_outbox(void **state)
{
	struct fixture *f = *state;

	expect_return_when_cancelled(close_when_cancelled, open_outbox(f->inbox, FIRST));
}

/* An interrupt without a frame has the same effect. */
static void test_interrupt_without_frame_wakes(void **state)
{
	struct fixture *f = *state;

	vnic_outbox_wake(f->first);
	assert_false(interrupted(f)); /* masked at the start */
	assert_false(vnic_inbox_irq_unmask(f->inbox));
	vnic_outbox_wake(f->first);
	assert_true(interrupted(f));
	vnic_outbox_wake(f->second);
	assert_false(interrupted(f));
	assert_false(vnic_inbox_irq_unmask(f->inbox));
	vnic_outbox_wake(f->second);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unmasked_interrupt_wakes_the_receiver,
						open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_filled_eventfd_does_not_block_senders,
						open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_limit_of_no_descriptors_does_not_stop_wake_ups,
						open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_sender_that_cannot_wake_masks_nothing,
						open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_cancelled_thread_does_not_end_in_a_wake_up,
						open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(
			test_cancelled_thread_does_not_end_when_it_closes_an_outbox, open_inbox,
			close_inbox),
		cmocka_unit_test_setup_teardown(test_interrupt_without_frame_wakes, open_inbox,
						close_inbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
