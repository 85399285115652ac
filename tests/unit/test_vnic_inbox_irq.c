/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When frames in an inbox raise its interrupt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inbox.h"

static void test_wake(void **state)
{
	struct fixture *f = *state;

	send_all(f, f->first, 1);
	assert_false(interrupted(f)); /* masked from the start */
	assert_true(vnic_inbox_irq_unmask(f->inbox, false));
	assert_int_equal(receive(f), 1);
	assert_false(vnic_inbox_irq_unmask(f->inbox, false));
	send_all(f, f->first, BURST);
	assert_true(interrupted(f));
	/* Delivery masks. */
	send_all(f, f->second, 1);
	assert_false(interrupted(f));
	assert_true(vnic_inbox_irq_unmask(f->inbox, false));
	vnic_inbox_irq_mask(f->inbox);
	send_all(f, f->second, 1);
	assert_false(interrupted(f));
	assert_int_equal(receive(f), BURST + 2);
}

/* A peer can fill the eventfd: no sender blocks in its write to it. */
static void test_filled(void **state)
{
	struct fixture *f = *state;
	int fd = vnic_inbox_irq_fd(f->inbox);

	assert_int_equal(eventfd_write(fd, UINT64_MAX - 1), 0);
	assert_false(vnic_inbox_irq_unmask(f->inbox, false));
	send_all(f, f->first, 1);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 1);
	assert_false(vnic_inbox_irq_unmask(f->inbox, false));
	send_all(f, f->second, 1);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 1);
}

static void send_quiet(struct fixture *f, uint32_t n)
{
	uint8_t data[LEN];
	const struct vnic_frame frame = {.data = data, .len = LEN, .quiet = true};
	enum vnic_outbox_status status;

	while (n--) {
		memset(data, f->next, LEN);
		assert_int_equal(send_frames(f, f->first, &frame, 1, &status), 1);
		f->next++;
	}
}

/* They wake who wants every frame, and one who does not only where there are many. */
static void test_quiet(void **state)
{
	struct fixture *f = *state;
	uint32_t n = 1;

	send_all(f, f->first, 1);
	assert_int_equal(receive(f), 1);
	assert_false(vnic_inbox_irq_unmask(f->inbox, false));
	send_quiet(f, 1);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 1);
	assert_false(vnic_inbox_irq_unmask(f->inbox, true));
	send_quiet(f, 3);
	assert_false(interrupted(f));
	send_all(f, f->second, 1);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 4);
	assert_false(vnic_inbox_irq_unmask(f->inbox, true));
	send_quiet(f, 1);
	assert_false(interrupted(f));
	assert_true(vnic_inbox_irq_unmask(f->inbox, false));
	assert_int_equal(receive(f), 1);
	assert_false(vnic_inbox_irq_unmask(f->inbox, true));
	for (send_quiet(f, 1); !interrupted(f); send_quiet(f, 1))
		assert_true(++n < VNIC_INBOX_FRAMES / 2);
	assert_int_equal(receive(f), n);
}

/* Of frames that were written in place, too. */
static void test_quiet_reserved(void **state)
{
	struct fixture *f = *state;
	struct vnic_frame frames[2];

	send_all(f, f->first, 1);
	assert_int_equal(receive(f), 1);
	assert_false(vnic_inbox_irq_unmask(f->inbox, true));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(vnic_outbox_reserve(f->first, frames, 2), 2);
		for (int k = 0; k < 2; k++) {
			memset(frames[k].data, f->next++, LEN);
			frames[k].len = LEN;
			frames[k].quiet = !i || k;
		}
		vnic_outbox_commit(f->first, frames, 2);
		assert_int_equal(interrupted(f), i);
	}
	assert_int_equal(receive(f), 4);
}

/* Without a frame, as with one. */
static void test_call(void **state)
{
	struct fixture *f = *state;

	vnic_outbox_wake(f->first);
	assert_false(interrupted(f)); /* masked from the start */
	assert_false(vnic_inbox_irq_unmask(f->inbox, false));
	vnic_outbox_wake(f->first);
	assert_true(interrupted(f));
	vnic_outbox_wake(f->second);
	assert_false(interrupted(f));
	assert_false(vnic_inbox_irq_unmask(f->inbox, false));
	vnic_outbox_wake(f->second);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wake, open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_filled, open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_quiet, open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_quiet_reserved, open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_call, open_inbox, close_inbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
