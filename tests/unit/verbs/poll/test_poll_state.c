/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The state machine of polling and sleeping, as docs/locking.md shows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "poll/poll_state.h"

static void assert_step(enum poll_state state, enum poll_event event, enum poll_state next,
			enum poll_action action)
{
	const struct poll_step step = poll_step(state, event);

	assert_int_equal(step.next, next);
	assert_int_equal(step.action, action);
}

static void assert_no_effect(enum poll_state state, enum poll_event event)
{
	assert_step(state, event, state, POLL_NOTHING);
}

static void empty_poll_gives_the_engine_to_the_program(void **state)
{
	(void)state;
	assert_step(POLL_ASLEEP, POLL_EMPTY, POLL_PROGRAM, POLL_MASK);
	assert_step(POLL_RUNNING, POLL_EMPTY, POLL_PROGRAM, POLL_MASK);
	assert_step(POLL_BUSY, POLL_EMPTY, POLL_PROGRAM, POLL_MASK);
	assert_no_effect(POLL_PROGRAM, POLL_EMPTY);
}

static void pause_of_the_program_unmasks_the_interrupt(void **state)
{
	(void)state;
	assert_step(POLL_PROGRAM, POLL_PAUSE, POLL_ASLEEP, POLL_UNMASK);
	assert_no_effect(POLL_ASLEEP, POLL_PAUSE);
	assert_no_effect(POLL_RUNNING, POLL_PAUSE);
	assert_no_effect(POLL_BUSY, POLL_PAUSE);
}

static void thread_that_wakes_runs_the_engine(void **state)
{
	(void)state;
	assert_step(POLL_ASLEEP, POLL_WAKE, POLL_RUNNING, POLL_NOTHING);
	assert_step(POLL_PROGRAM, POLL_WAKE, POLL_RUNNING, POLL_NOTHING);
	assert_no_effect(POLL_RUNNING, POLL_WAKE);
}

static void empty_rings_put_the_thread_to_sleep(void **state)
{
	(void)state;
	assert_step(POLL_RUNNING, POLL_DRAINED, POLL_ASLEEP, POLL_UNMASK);
	assert_step(POLL_BUSY, POLL_DRAINED, POLL_ASLEEP, POLL_UNMASK);
	/* The program has taken the engine meanwhile. */
	assert_no_effect(POLL_PROGRAM, POLL_DRAINED);
}

static void frames_before_the_unmasking_are_run(void **state)
{
	(void)state;
	assert_step(POLL_ASLEEP, POLL_FRAMES, POLL_RUNNING, POLL_MASK);
}

static void stream_keeps_the_thread_awake(void **state)
{
	(void)state;
	assert_step(POLL_RUNNING, POLL_STREAM, POLL_BUSY, POLL_NOTHING);
	assert_no_effect(POLL_PROGRAM, POLL_STREAM);
}

static void without_a_daemon_only_attachment_counts(void **state)
{
	(void)state;
	for (int i = 0; i < POLL_DISCONNECTED; i++)
		assert_step((enum poll_state)i, POLL_LOST, POLL_DISCONNECTED, POLL_NOTHING);
	for (int i = 0; i < POLL_ATTACHED; i++)
		assert_no_effect(POLL_DISCONNECTED, (enum poll_event)i);
	assert_step(POLL_DISCONNECTED, POLL_ATTACHED, POLL_RUNNING, POLL_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_poll_gives_the_engine_to_the_program),
		cmocka_unit_test(pause_of_the_program_unmasks_the_interrupt),
		cmocka_unit_test(thread_that_wakes_runs_the_engine),
		cmocka_unit_test(empty_rings_put_the_thread_to_sleep),
		cmocka_unit_test(frames_before_the_unmasking_are_run),
		cmocka_unit_test(stream_keeps_the_thread_awake),
		cmocka_unit_test(without_a_daemon_only_attachment_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
