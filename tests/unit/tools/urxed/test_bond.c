/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Health and roles of a bond's members, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "urxed/bond/bond.h"

#define MS     1000000ull
#define SECOND 1000000000ull
#define T0     (1000 * SECOND)

/* Uplink 0 is a virtual machine; the bond has these three. */
enum { A = 1, B = 2, C = 3, UPLINKS = 4 };
#define TWO   (1u << A | 1u << B)
#define THREE (TWO | 1u << C)

static const char *const names[UPLINKS] = {"vm", "a", "b", "c"};

static struct bond bond;
static uint64_t now;

static struct {
	bool answers[UPLINKS]; /* stations answer probes through this uplink */
	bool busy;             /* RoCE frames flow */
	bool no_neighbour;     /* no station is known that could answer */
	uint32_t asked[UPLINKS];
	uint32_t announced[UPLINKS];
	uint32_t unanswered; /* bit mask of uplinks whose probe awaits its answer */
} world;

static bool on_probe(void *ctx, uint32_t uplink)
{
	(void)ctx;
	if (world.no_neighbour)
		return false;
	world.asked[uplink]++;
	world.unanswered |= 1u << uplink;
	return true;
}

static void on_announce(void *ctx, uint32_t uplink)
{
	(void)ctx;
	world.announced[uplink]++;
}

static const struct bond_ops ops = {on_probe, on_announce};

static void start(enum bond_mode mode, uint32_t mask)
{
	const bool links[UPLINKS] = {true, true, true, true};

	memset(&world, 0, sizeof(world));
	world.answers[A] = world.answers[B] = world.answers[C] = true;
	now = T0;
	bond_init(&bond, now, mode, mask, names, links, &ops, NULL);
}

static void answer_probes(void)
{
	for (uint32_t i = 0; i < UPLINKS; i++)
		if (world.unanswered >> i & 1 && world.answers[i])
			bond_note_answer(&bond, now, i);
	world.unanswered = 0;
}

/* Runs all timers of a span of time. Stations answer after a millisecond. */
static void run(uint64_t ns)
{
	const uint64_t end = now + ns;

	for (; now < end; now += MS) {
		answer_probes();
		if (world.busy)
			bond_note_sent(&bond, now);
		bond_tick(&bond, now);
	}
}

/* The last answer comes now. */
static void silence(uint32_t uplink)
{
	world.answers[uplink] = false;
	bond_note_answer(&bond, now, uplink);
}

static void set_link(uint32_t uplink, bool up)
{
	bond_set_link(&bond, now, uplink, up);
}

#define assert_role(uplink, role) assert_string_equal(bond_role(&bond, uplink), role)

static void assert_active(uint32_t uplink)
{
	assert_role(uplink, "active");
	for (uint32_t flow = 0; flow < 100; flow++)
		assert_int_equal(bond_choose(&bond, flow), uplink);
	assert_int_equal(bond_lead(&bond), uplink);
}

/* --- The health of one member */

/* What one event does in each state; silence only after BOND_ROUNDS events. */
static void each_event_leads_to_the_state_of_the_table(void **state)
{
	static const struct {
		enum bond_state from;
		enum bond_event event;
		enum bond_state once, repeated;
	} rows[] = {
		{BOND_DOWN, BOND_LINK_LOST, BOND_DOWN, BOND_DOWN},
		{BOND_DOWN, BOND_LINK_FOUND, BOND_RECOVERING, BOND_RECOVERING},
		{BOND_DOWN, BOND_ANSWER, BOND_DOWN, BOND_DOWN},
		{BOND_DOWN, BOND_NO_ANSWER, BOND_DOWN, BOND_DOWN},
		{BOND_SILENT, BOND_LINK_LOST, BOND_DOWN, BOND_DOWN},
		{BOND_SILENT, BOND_LINK_FOUND, BOND_SILENT, BOND_SILENT},
		{BOND_SILENT, BOND_ANSWER, BOND_RECOVERING, BOND_RECOVERING},
		{BOND_SILENT, BOND_NO_ANSWER, BOND_SILENT, BOND_SILENT},
		{BOND_RECOVERING, BOND_LINK_LOST, BOND_DOWN, BOND_DOWN},
		{BOND_RECOVERING, BOND_LINK_FOUND, BOND_RECOVERING, BOND_RECOVERING},
		{BOND_RECOVERING, BOND_ANSWER, BOND_RECOVERING, BOND_RECOVERING},
		{BOND_RECOVERING, BOND_NO_ANSWER, BOND_RECOVERING, BOND_SILENT},
		{BOND_HEALTHY, BOND_LINK_LOST, BOND_DOWN, BOND_DOWN},
		{BOND_HEALTHY, BOND_LINK_FOUND, BOND_HEALTHY, BOND_HEALTHY},
		{BOND_HEALTHY, BOND_ANSWER, BOND_HEALTHY, BOND_HEALTHY},
		{BOND_HEALTHY, BOND_NO_ANSWER, BOND_HEALTHY, BOND_SILENT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bond_health h = {.state = rows[i].from, .since = T0};

		assert_int_equal(bond_health_event(&h, T0, rows[i].event),
				 rows[i].once != rows[i].from);
		assert_int_equal(h.state, rows[i].once);
		if (rows[i].once != rows[i].from)
			continue;
		for (uint32_t n = 1; n < BOND_ROUNDS; n++)
			bond_health_event(&h, T0, rows[i].event);
		assert_int_equal(h.state, rows[i].repeated);
	}
}

static void answer_between_two_missing_ones_keeps_a_member(void **state)
{
	struct bond_health h;

	(void)state;
	bond_health_init(&h, T0, true);
	for (int i = 0; i < 10; i++) {
		assert_false(bond_health_event(&h, T0, BOND_NO_ANSWER));
		assert_false(bond_health_event(&h, T0, BOND_ANSWER));
	}
	assert_int_equal(h.state, BOND_HEALTHY);
}

static void lost_link_forgets_missing_answers(void **state)
{
	struct bond_health h;

	(void)state;
	bond_health_init(&h, T0, true);
	bond_health_event(&h, T0, BOND_NO_ANSWER);
	bond_health_event(&h, T0, BOND_LINK_LOST);
	bond_health_event(&h, T0, BOND_LINK_FOUND);
	assert_false(bond_health_event(&h, T0, BOND_NO_ANSWER));
	assert_int_equal(h.state, BOND_RECOVERING);
}

static uint64_t recovery_time(struct bond_health *h, uint64_t at)
{
	bond_health_event(h, at, BOND_LINK_LOST);
	bond_health_event(h, at, BOND_LINK_FOUND);
	assert_false(bond_health_tick(h, bond_health_deadline(h) - 1));
	assert_true(bond_health_tick(h, bond_health_deadline(h)));
	assert_int_equal(h->state, BOND_HEALTHY);
	assert_int_equal(bond_health_deadline(h), UINT64_MAX);
	return h->since - at;
}

/* A loose cable: each failure soon after the return doubles the time to the next return. */
static void repeated_failures_delay_the_return(void **state)
{
	struct bond_health h;
	uint64_t wanted = BOND_STABLE_NS;

	(void)state;
	bond_health_init(&h, T0, true);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(recovery_time(&h, h.since + 1), wanted);
		if (wanted < BOND_STABLE_MAX_NS)
			wanted *= 2;
	}
	assert_int_equal(wanted, BOND_STABLE_MAX_NS);
	assert_int_equal(recovery_time(&h, h.since + BOND_TRIAL_NS), BOND_STABLE_NS);
}

static void member_without_a_link_at_the_start_recovers(void **state)
{
	struct bond_health h;

	(void)state;
	bond_health_init(&h, T0, false);
	assert_int_equal(h.state, BOND_DOWN);
	bond_health_event(&h, T0, BOND_LINK_FOUND);
	assert_int_equal(bond_health_deadline(&h), T0 + BOND_STABLE_NS);
}

/* --- active-backup */

static void first_member_is_active(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	assert_active(A);
	assert_role(B, "backup");
	assert_true(bond_carries(&bond, A));
	assert_false(bond_carries(&bond, B));
	assert_int_equal(bond_port_of(&bond, B), A);
	assert_int_equal(bond_port_of(&bond, 0), 0);
	run(10 * SECOND);
	assert_active(A);
	assert_int_equal(world.announced[A] + world.announced[B], 0);
}

static void lost_link_moves_at_once_and_back_after_a_stable_time(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	set_link(A, false);
	assert_active(B);
	assert_role(A, "down");
	assert_int_equal(world.announced[B], 1);
	run(SECOND);
	assert_int_equal(world.announced[B], BOND_ANNOUNCEMENTS);
	assert_int_equal(world.announced[A], 0);
	set_link(A, true);
	assert_active(B);
	assert_role(A, "recovering");
	run(BOND_STABLE_NS - 2 * MS);
	assert_active(B);
	run(4 * MS);
	assert_active(A);
	assert_role(B, "backup");
	run(SECOND);
	assert_int_equal(world.announced[A], BOND_ANNOUNCEMENTS);
	assert_int_equal(bond_failovers_of(&bond, A), 1);
	assert_int_equal(bond_failovers_of(&bond, B), 0);
	assert_int_equal(bond_failovers(&bond), 1);
}

static void silence_of_the_active_member_moves(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	world.busy = true;
	run(SECOND);
	silence(A);
	run(BOND_FRESH_NS + BOND_ROUND_NS + BOND_ROUND_NS / 2);
	assert_active(A);
	run(BOND_ROUND_NS);
	assert_active(B);
	assert_role(A, "silent");
	assert_int_equal(bond_failovers_of(&bond, A), 1);
	run(10 * SECOND);
	assert_active(B);
	world.answers[A] = true;
	run(BOND_RETURN_NS + BOND_STABLE_NS + 5 * MS);
	assert_active(A);
}

static void one_lost_round_does_not_move(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	world.busy = true;
	run(SECOND);
	silence(A);
	run(BOND_FRESH_NS + BOND_ROUND_NS + BOND_ROUND_NS / 2);
	world.answers[A] = true;
	bond_note_answer(&bond, now, A);
	run(SECOND);
	assert_active(A);
	assert_int_equal(bond_failovers(&bond), 0);
}

static void nothing_moves_without_any_answer(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	world.busy = true;
	run(SECOND);
	world.answers[A] = world.answers[B] = false;
	run(60 * SECOND);
	assert_active(A);
	assert_role(B, "backup");
	/* Probes become rare. */
	world.asked[A] = 0;
	run(10 * SECOND);
	assert_in_range(world.asked[A], 9, 11);
	/* Then one network returns, and the host finds it. */
	world.answers[B] = true;
	run(2 * SECOND);
	assert_active(B);
}

static void nothing_moves_without_known_neighbours(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	world.busy = world.no_neighbour = true;
	for (int i = 0; i < 1000; i++) {
		bond_note_roce(&bond, now, A, true);
		run(10 * MS);
	}
	assert_active(A);
	assert_role(B, "backup");
}

/* Responses of connections count as answers, so a busy host hardly sends probes. */
static void responses_spare_probes(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	world.busy = true;
	world.answers[A] = false;
	for (int i = 0; i < 1000; i++) {
		bond_note_roce(&bond, now, A, true);
		run(10 * MS);
	}
	assert_active(A);
	assert_in_range(world.asked[A], 9, 11);
	assert_int_equal(world.asked[A], world.asked[B]);
}

/* A stream of requests fills the queue in which the answers wait. But that excuses not for ever. */
static void arriving_frames_excuse_missing_answers(void **state)
{
	int rounds = 0;

	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	run(SECOND);
	world.answers[A] = false;
	while (!strcmp(bond_role(&bond, A), "active") && rounds < 10000) {
		bond_note_roce(&bond, now, A, false);
		run(MS);
		rounds++;
	}
	assert_in_range(rounds * MS, BOND_EXCUSED_ROUNDS * BOND_ROUND_NS,
			2 * BOND_EXCUSED_ROUNDS * BOND_ROUND_NS + 100 * MS);
}

/* A peer that gets no acknowledgements sends again, but with pauses. */
static void repeated_requests_do_not_excuse(void **state)
{
	static const uint64_t pauses_ms[] = {10, 20, 40, 80, 160};
	uint64_t since;

	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	world.busy = true;
	run(SECOND);
	silence(A);
	since = now;
	for (int i = 0; i < 5 && !strcmp(bond_role(&bond, A), "active"); i++) {
		run(pauses_ms[i] * MS);
		bond_note_roce(&bond, now, A, false);
	}
	assert_active(B);
	assert_true(now - since <= 150 * MS);
}

/* The excuses of a member end with its next answer. */
static void late_answers_keep_a_member(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	run(SECOND);
	world.answers[A] = false;
	for (int i = 0; i < 10000; i++) {
		bond_note_roce(&bond, now, A, false);
		if (i % 500 == 0)
			bond_note_answer(&bond, now, A);
		run(MS);
	}
	assert_active(A);
	assert_int_equal(bond_failovers(&bond), 0);
}

static void idle_host_asks_once_a_second(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	run(10 * SECOND);
	assert_in_range(world.asked[A], 9, 10);
	assert_in_range(world.asked[B], 9, 10);
	world.answers[A] = false;
	run(5 * BOND_ROUND_NS);
	assert_active(B);
}

static void silent_backup_is_noticed_and_not_used(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	world.answers[B] = false;
	run(3 * SECOND);
	assert_active(A);
	assert_role(B, "silent");
	assert_int_equal(bond_failovers(&bond), 0);
	/* It is still better than no link. */
	set_link(A, false);
	assert_active(B);
}

static void next_member_takes_over(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, THREE);
	set_link(B, false);
	set_link(A, false);
	assert_active(C);
	/* C goes on until A has returned: only the first member is preferred. */
	set_link(B, true);
	run(2 * SECOND);
	assert_role(B, "backup");
	assert_active(C);
	set_link(A, true);
	run(2 * SECOND);
	assert_active(A);
}

static void recovering_member_is_used_if_no_other_has_a_link(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	set_link(A, false);
	set_link(B, false);
	assert_true(bond_carries(&bond, B));
	assert_role(B, "down");
	set_link(B, true);
	assert_active(B);
	/* Both are recovering: the connections stay. */
	set_link(A, true);
	assert_active(B);
	run(SECOND + 5 * MS);
	assert_active(A);
}

static void recovering_member_is_better_than_a_silent_one(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	world.answers[A] = false;
	run(3 * SECOND);
	assert_role(A, "silent");
	set_link(B, false);
	assert_active(A);
	set_link(B, true);
	assert_active(B);
}

static void single_link_is_not_probed(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	world.busy = true;
	set_link(A, false);
	run(10 * SECOND);
	assert_int_equal(world.asked[A] + world.asked[B], 0);
}

/* A frame to the host by another way shows that a bridge has learned a wrong one. */
static void astray_frame_makes_the_host_announce_itself(void **state)
{
	(void)state;
	start(BOND_ACTIVE_BACKUP, TWO);
	for (int i = 0; i < 5; i++)
		bond_note_astray(&bond, now);
	assert_int_equal(world.announced[A], 1);
	run(BOND_ROUND_NS);
	bond_note_astray(&bond, now);
	assert_int_equal(world.announced[A], 2);
	run(SECOND);
	assert_int_equal(world.announced[A], 2);
}

/* --- balance */

static uint32_t count_flows(uint32_t uplink, uint32_t step)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 64; i++)
		n += bond_choose(&bond, 0x4711 + i * step) == uplink;
	return n;
}

static void flows_are_spread_evenly(void **state)
{
	(void)state;
	start(BOND_BALANCE, TWO);
	for (uint32_t step = 1; step <= 16; step++)
		assert_in_range(count_flows(A, step), 24, 40);
	assert_in_range(count_flows(A, 1), 31, 33);
	assert_in_range(count_flows(A, 4096), 28, 36);
	start(BOND_BALANCE, THREE);
	for (uint32_t uplink = A; uplink <= C; uplink++)
		assert_in_range(count_flows(uplink, 1), 18, 25);
	assert_role(C, "active");
}

static void only_flows_of_the_lost_member_move(void **state)
{
	uint32_t before[64], moved[UPLINKS] = {0};

	(void)state;
	start(BOND_BALANCE, THREE);
	for (uint32_t flow = 0; flow < 64; flow++)
		before[flow] = bond_choose(&bond, flow);
	set_link(B, false);
	for (uint32_t flow = 0; flow < 64; flow++) {
		uint32_t after = bond_choose(&bond, flow);

		assert_int_not_equal(after, B);
		if (before[flow] == B)
			moved[after]++;
		else
			assert_int_equal(after, before[flow]);
	}
	assert_in_range(moved[A], 5, 17);
	assert_in_range(moved[C], 5, 17);
	assert_int_equal(world.announced[A], 1);
	assert_int_equal(world.announced[C], 1);
	assert_int_equal(bond_failovers_of(&bond, B), 1);
	set_link(B, true);
	run(BOND_STABLE_NS + 5 * MS);
	for (uint32_t flow = 0; flow < 64; flow++)
		assert_int_equal(bond_choose(&bond, flow), before[flow]);
}

/* The peer may answer by another member, so only answers to probes show a member's health. */
static void responses_do_not_hide_silence(void **state)
{
	(void)state;
	start(BOND_BALANCE, TWO);
	world.busy = true;
	run(SECOND);
	world.answers[B] = false;
	for (int i = 0; i < 10; i++) {
		bond_note_roce(&bond, now, B, true);
		run(30 * MS);
	}
	assert_role(B, "silent");
	assert_active(A);
}

static void modes_have_names(void **state)
{
	(void)state;
	assert_int_equal(bond_mode_parse("active-backup"), BOND_ACTIVE_BACKUP);
	assert_int_equal(bond_mode_parse("balance"), BOND_BALANCE);
	assert_int_equal(bond_mode_parse("802.3ad"), BOND_NONE);
	assert_int_equal(bond_mode_parse(""), BOND_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_event_leads_to_the_state_of_the_table),
		cmocka_unit_test(answer_between_two_missing_ones_keeps_a_member),
		cmocka_unit_test(lost_link_forgets_missing_answers),
		cmocka_unit_test(repeated_failures_delay_the_return),
		cmocka_unit_test(member_without_a_link_at_the_start_recovers),
		cmocka_unit_test(first_member_is_active),
		cmocka_unit_test(lost_link_moves_at_once_and_back_after_a_stable_time),
		cmocka_unit_test(silence_of_the_active_member_moves),
		cmocka_unit_test(one_lost_round_does_not_move),
		cmocka_unit_test(nothing_moves_without_any_answer),
		cmocka_unit_test(nothing_moves_without_known_neighbours),
		cmocka_unit_test(responses_spare_probes),
		cmocka_unit_test(arriving_frames_excuse_missing_answers),
		cmocka_unit_test(repeated_requests_do_not_excuse),
		cmocka_unit_test(late_answers_keep_a_member),
		cmocka_unit_test(idle_host_asks_once_a_second),
		cmocka_unit_test(silent_backup_is_noticed_and_not_used),
		cmocka_unit_test(next_member_takes_over),
		cmocka_unit_test(recovering_member_is_used_if_no_other_has_a_link),
		cmocka_unit_test(recovering_member_is_better_than_a_silent_one),
		cmocka_unit_test(single_link_is_not_probed),
		cmocka_unit_test(astray_frame_makes_the_host_announce_itself),
		cmocka_unit_test(flows_are_spread_evenly),
		cmocka_unit_test(only_flows_of_the_lost_member_move),
		cmocka_unit_test(responses_do_not_hide_silence),
		cmocka_unit_test(modes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
