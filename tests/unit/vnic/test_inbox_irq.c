/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Conditions under which frames in an inbox raise its interrupt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
		cmocka_unit_test_setup_teardown(test_interrupt_without_frame_wakes, open_inbox,
						close_inbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
