/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Programs that reply to messages at once, late, or not at all, and when an ACK is kept for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "poll/reply_detect.h"

static void reply(struct reply_detect *detect, uint64_t away, unsigned int times)
{
	while (times--)
		reply_detect_posted(detect, away);
}

static struct reply_detect expecting(void)
{
	struct reply_detect detect = {REPLY_DETECT_FIRST};

	reply(&detect, 1, REPLY_DETECT_FIRST);
	assert_true(reply_detect_expected(&detect));
	return detect;
}

static void test_replies_in_a_row(void **state)
{
	struct reply_detect detect = {REPLY_DETECT_FIRST};

	(void)state;
	reply(&detect, REPLY_DETECT_NS, REPLY_DETECT_FIRST - 1);
	assert_false(reply_detect_expected(&detect));
	reply(&detect, REPLY_DETECT_NS, 1);
	assert_true(reply_detect_expected(&detect));
}

static void test_a_late_reply(void **state)
{
	struct reply_detect detect = expecting();

	(void)state;
	reply(&detect, REPLY_DETECT_NS + 1, 1);
	assert_false(reply_detect_expected(&detect));
	reply(&detect, 1, REPLY_DETECT_FIRST - 1);
	assert_false(reply_detect_expected(&detect));
}

/* A second request after the same message tells nothing. */
static void test_posts_that_are_no_replies(void **state)
{
	struct reply_detect detect = {REPLY_DETECT_FIRST};

	(void)state;
	reply(&detect, 0, 2 * REPLY_DETECT_FIRST);
	assert_false(reply_detect_expected(&detect));
	detect = expecting();
	reply(&detect, 0, 1);
	assert_true(reply_detect_expected(&detect));
}

static void test_a_missing_reply(void **state)
{
	struct reply_detect detect = expecting();

	(void)state;
	reply_detect_missed(&detect, false);
	assert_false(reply_detect_expected(&detect));
	reply(&detect, 1, REPLY_DETECT_FIRST);
	assert_true(reply_detect_expected(&detect));
	reply_detect_missed(&detect, true);
	reply(&detect, 1, REPLY_DETECT_LATE - 1);
	assert_false(reply_detect_expected(&detect));
	reply(&detect, 1, 1);
	assert_true(reply_detect_expected(&detect));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replies_in_a_row),
		cmocka_unit_test(test_a_late_reply),
		cmocka_unit_test(test_posts_that_are_no_replies),
		cmocka_unit_test(test_a_missing_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
