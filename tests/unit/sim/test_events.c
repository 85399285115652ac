/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/events.h"
#include "sim/rand.h"

static void test_events_come_in_order_of_time(void **state)
{
	struct events events = {0};
	struct rand r = {3};
	struct event event;
	uint64_t last = 0;
	int object;

	(void)state;
	for (int i = 0; i < 5000; i++)
		events_add(&events, rand_below(&r, 1000), EVENT_WAKE, &object);
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(events_next(&events), events.heap[0].at);
		assert_true(events_pop(&events, &event));
		assert_true(event.at >= last);
		last = event.at;
	}
	assert_false(events_pop(&events, &event));
	assert_int_equal(events_next(&events), UINT64_MAX);
	events_free(&events);
}

/* Two frames that arrive at one instant arrive in the order in which they were sent. */
static void test_one_instant_keeps_the_order(void **state)
{
	struct events events = {0};
	struct event event;
	int object[100];

	(void)state;
	for (int i = 0; i < 100; i++)
		events_add(&events, i % 2, i % 3 ? EVENT_ARRIVE : EVENT_SWITCH, &object[i]);
	for (int at = 0; at < 2; at++)
		for (int i = at; i < 100; i += 2) {
			assert_true(events_pop(&events, &event));
			assert_ptr_equal(event.object, &object[i]);
			assert_int_equal(event_kind(&event), i % 3 ? EVENT_ARRIVE : EVENT_SWITCH);
		}
	events_free(&events);
}

static void test_frames_are_counted(void **state)
{
	struct events events = {0};
	struct event event;
	int object;

	(void)state;
	events_add(&events, 1, EVENT_WAKE, &object);
	assert_int_equal(events.n_frames, 0);
	events_add(&events, 2, EVENT_SWITCH, &object);
	events_add(&events, 3, EVENT_ARRIVE, &object);
	assert_int_equal(events.n_frames, 2);
	for (uint32_t left = 2; events_pop(&events, &event);) {
		left -= event_kind(&event) != EVENT_WAKE;
		assert_int_equal(events.n_frames, left);
	}
	events_free(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_come_in_order_of_time),
		cmocka_unit_test(test_one_instant_keeps_the_order),
		cmocka_unit_test(test_frames_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
