/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Programs that reply to messages at once, late, or not at all, and when an ACK is kept for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "poll/delayed_ack.h"

static void reply(struct delayed_ack *detect, uint64_t away, unsigned int times)
{
	while (times--)
		delayed_ack_posted(detect, away);
}

static struct delayed_ack expecting(void)
{
	struct delayed_ack detect = {DELAYED_ACK_FIRST};

	reply(&detect, 1, DELAYED_ACK_FIRST);
	assert_true(delayed_ack_allowed(&detect));
	return detect;
}

static void test_replies_in_a_row_allow_delayed_acks(void **state)
{
	struct delayed_ack detect = {DELAYED_ACK_FIRST};

	(void)state;
	reply(&detect, DELAYED_ACK_REPLY_NS, DELAYED_ACK_FIRST - 1);
	assert_false(delayed_ack_allowed(&detect));
	reply(&detect, DELAYED_ACK_REPLY_NS, 1);
	assert_true(delayed_ack_allowed(&detect));
}

static void test_late_reply_ends_delayed_acks(void **state)
{
	struct delayed_ack detect = expecting();

	(void)state;
	reply(&detect, DELAYED_ACK_REPLY_NS + 1, 1);
	assert_false(delayed_ack_allowed(&detect));
	reply(&detect, 1, DELAYED_ACK_FIRST - 1);
	assert_false(delayed_ack_allowed(&detect));
}

/* A second request after the same message tells nothing. */
static void test_second_post_is_no_reply(void **state)
{
	struct delayed_ack detect = {DELAYED_ACK_FIRST};

	(void)state;
	reply(&detect, 0, 2 * DELAYED_ACK_FIRST);
	assert_false(delayed_ack_allowed(&detect));
	detect = expecting();
	reply(&detect, 0, 1);
	assert_true(delayed_ack_allowed(&detect));
}

static void test_missing_reply_ends_delayed_acks(void **state)
{
	struct delayed_ack detect = expecting();

	(void)state;
	delayed_ack_missed(&detect, false);
	assert_false(delayed_ack_allowed(&detect));
	reply(&detect, 1, DELAYED_ACK_FIRST);
	assert_true(delayed_ack_allowed(&detect));
	delayed_ack_missed(&detect, true);
	reply(&detect, 1, DELAYED_ACK_LATE - 1);
	assert_false(delayed_ack_allowed(&detect));
	reply(&detect, 1, 1);
	assert_true(delayed_ack_allowed(&detect));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replies_in_a_row_allow_delayed_acks),
		cmocka_unit_test(test_late_reply_ends_delayed_acks),
		cmocka_unit_test(test_second_post_is_no_reply),
		cmocka_unit_test(test_missing_reply_ends_delayed_acks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
