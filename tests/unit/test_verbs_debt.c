/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * To whom completions are given before they are acknowledged, for how many frames and how long;
 * and which streams are acknowledged less often than their senders ask.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "debt.h"

#define START 1000000u
#define LATE  (DEBT_PROMPT_NS + 1)

/* It came back at once, so often. */
static void come_back(struct debt *debt, unsigned int times)
{
	while (times--)
		debt_returned(debt, DEBT_PROMPT_NS);
}

static struct debt prompt_program(void)
{
	struct debt debt = {0};

	come_back(&debt, DEBT_PROMPT_TIMES);
	return debt;
}

/* A turn of a ping-pong: the message that came is found, answered, and waited for again. */
static bool turn(struct debt *debt, uint64_t now, uint64_t away)
{
	bool owed;

	debt_received(debt, 1);
	if (debt_allowed(debt, now))
		debt_incur(debt, now);
	owed = debt_owed(debt);
	debt_settle(debt);
	debt_returned(debt, away);
	return owed;
}

/* Of 100 turns all but the first ones are answered before they are acknowledged. */
static void test_conversation(void **state)
{
	struct debt debt = {0};
	uint32_t owed = 0;

	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		owed += turn(&debt, START + i, 1);
	assert_int_equal(owed, 100 - DEBT_PROMPT_TIMES);
}

/* One that takes its time now and then has to be prompt so many times again. */
static void test_absent_at_times(void **state)
{
	static const struct {
		unsigned int every; /* of so many turns, one ends late */
		uint32_t owed;      /* of 100 */
	} rows[] = {
		{1, 0},
		{DEBT_PROMPT_TIMES, 0},
		{DEBT_PROMPT_TIMES + 1, 11},
		{20, 60},
	};

	(void)state;
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct debt debt = {0};
		uint32_t owed = 0;

		for (unsigned int i = 1; i <= 100; i++)
			owed += turn(&debt, START + i, i % rows[row].every ? 1 : LATE);
		assert_int_equal(owed, rows[row].owed);
	}
}

static void test_promptness(void **state)
{
	struct debt debt = {0};

	(void)state;
	assert_false(debt_allowed(&debt, START));
	come_back(&debt, DEBT_PROMPT_TIMES - 1);
	assert_false(debt_allowed(&debt, START));
	come_back(&debt, 1);
	assert_true(debt_allowed(&debt, START));
	come_back(&debt, 1000); /* no credit for absences */
	debt_returned(&debt, LATE);
	assert_false(debt_allowed(&debt, START));
	come_back(&debt, DEBT_PROMPT_TIMES - 1);
	assert_false(debt_allowed(&debt, START));
	come_back(&debt, 1);
	assert_true(debt_allowed(&debt, START));
	/* The time of another thread, which looked before. */
	debt_returned(&debt, UINT64_MAX);
	assert_false(debt_allowed(&debt, START));
}

static void test_waits_for_acknowledgements(void **state)
{
	struct debt debt = prompt_program();

	(void)state;
	debt_acknowledged(&debt);
	assert_false(debt_allowed(&debt, START));
	come_back(&debt, DEBT_PROMPT_TIMES - 1);
	assert_false(debt_allowed(&debt, START));
	come_back(&debt, 1);
	assert_true(debt_allowed(&debt, START));
}

/* Polls of a program that only receives. */
static void test_frames(void **state)
{
	struct debt debt = prompt_program();

	(void)state;
	for (unsigned int i = 1; i < DEBT_FRAMES; i++) {
		debt_received(&debt, 1);
		assert_true(debt_allowed(&debt, START));
		debt_incur(&debt, START);
	}
	debt_received(&debt, 1);
	assert_false(debt_allowed(&debt, START));
	assert_true(debt_owed(&debt));
	debt_settle(&debt);
	assert_false(debt_owed(&debt));
	assert_true(debt_allowed(&debt, START));
	debt_received(&debt, DEBT_FRAMES); /* a burst */
	assert_false(debt_allowed(&debt, START));
}

static void test_overdue(void **state)
{
	struct debt debt = prompt_program();

	(void)state;
	assert_false(debt_overdue(&debt, START));
	debt_incur(&debt, START);
	debt_incur(&debt, START + DEBT_NS - 1); /* it is as old as its oldest part */
	assert_true(debt_allowed(&debt, START + DEBT_NS - 1));
	assert_false(debt_overdue(&debt, START + DEBT_NS - 1));
	assert_true(debt_overdue(&debt, START + DEBT_NS));
	assert_false(debt_allowed(&debt, START + DEBT_NS));
	debt_settle(&debt);
	assert_false(debt_overdue(&debt, START + DEBT_NS));
	assert_true(debt_allowed(&debt, START + DEBT_NS));
}

/* One acknowledgement for so many frames, where they come without a pause. */
static void test_stream(void **state)
{
	struct debt debt = {0};

	(void)state;
	for (unsigned int turn = 0; turn < 3; turn++) {
		for (unsigned int i = 1; i < DEBT_FRAMES; i++) {
			debt_received(&debt, 1);
			assert_true(debt_of_stream(&debt, 0));
			debt_incur(&debt, START);
			assert_true(debt_of_stream(&debt, DEBT_SILENCE_NS - 1));
		}
		debt_received(&debt, 1);
		assert_false(debt_of_stream(&debt, 0));
		debt_settle(&debt);
	}
}

/* How many of the next acknowledgements are sent at once, before one is put off; silence ends that.
 */
static unsigned int at_once(struct debt *debt)
{
	unsigned int n = 0;

	debt_received(debt, 1);
	for (; !debt_of_stream(debt, 0); n++) {
		debt_settle(debt);
		debt_received(debt, 1);
	}
	debt_incur(debt, START);
	assert_false(debt_of_stream(debt, DEBT_SILENCE_NS));
	debt_settle(debt);
	return n;
}

/* A sender that waits for each acknowledgement waits longer for fewer and fewer of them. */
static void test_stream_that_pauses(void **state)
{
	static const unsigned int expected[] = {0, 1, 3, 7, 15, 31, 63, 127, 255, 255, 255};
	struct debt debt = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(at_once(&debt), expected[i]);
	/* Many at a time: it streams. */
	debt_received(&debt, DEBT_FRAMES);
	assert_false(debt_of_stream(&debt, 0));
	debt_settle(&debt);
	assert_int_equal(at_once(&debt), 255);
	assert_int_equal(at_once(&debt), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conversation),
		cmocka_unit_test(test_absent_at_times),
		cmocka_unit_test(test_promptness),
		cmocka_unit_test(test_waits_for_acknowledgements),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_overdue),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_stream_that_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
