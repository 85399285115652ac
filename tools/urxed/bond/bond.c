/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/bond/bond.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <netdev/packet_port.h>

#include "common/clock.h"
#include "common/log.h"

#define LINE 256 /* longest list of members in the log */

static const char *const mode_names[] = {
	[BOND_ACTIVE_BACKUP] = "active-backup", [BOND_BALANCE] = "balance"};

enum bond_mode bond_mode_parse(const char *text)
{
	for (enum bond_mode mode = BOND_ACTIVE_BACKUP; mode <= BOND_BALANCE; mode++)
		if (!strcmp(text, mode_names[mode]))
			return mode;
	return BOND_NONE;
}

static struct bond_member *find_member(struct bond *b, uint32_t uplink)
{
	uint32_t i = 0;

	while (i < b->n && b->members[i].uplink != uplink)
		i++;
	return i < b->n ? &b->members[i] : NULL;
}

static const struct bond_member *get_member(const struct bond *b, uint32_t uplink)
{
	uint32_t i = 0;

	while (b->members[i].uplink != uplink)
		i++;
	return &b->members[i];
}

static bool has_link(const struct bond_member *m)
{
	return m->health.state != BOND_DOWN;
}

/* --- Which members carry frames */

static uint32_t list_members(const struct bond *b, enum bond_state state, uint32_t *list)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n; i++)
		if (b->members[i].health.state == state)
			list[n++] = i;
	return n;
}

/* Lists the members in the best state that any member has; returns their number. Even recovering or
 * silent members are in the list if none is better. If no member has a link, the list is empty. */
static uint32_t list_best(const struct bond *b, uint32_t *list)
{
	static const enum bond_state order[] = {BOND_HEALTHY, BOND_RECOVERING, BOND_SILENT};
	uint32_t n = 0;

	for (uint32_t i = 0; !n && i < sizeof(order) / sizeof(order[0]); i++)
		n = list_members(b, order[i], list);
	return n;
}

static bool contains(const uint32_t *list, uint32_t n, uint32_t i)
{
	while (n && list[n - 1] != i)
		n--;
	return n;
}

/* Returns the first member if it is healthy; else the present carrier if it is in the list of best
 * members; else the first of the list. */
static uint32_t choose_active(const struct bond *b, const uint32_t *best, uint32_t n)
{
	const bool first = b->members[0].health.state == BOND_HEALTHY;

	return !first && contains(best, n, b->carriers[0]) ? b->carriers[0] : best[0];
}

/* Writes the indices of the members that have to carry frames; returns their number. If no member
 * has a link, the present carriers stay. */
static uint32_t choose_carriers(const struct bond *b, uint32_t *list)
{
	uint32_t n = list_best(b, list);

	if (!n) {
		memcpy(list, b->carriers, sizeof(b->carriers));
		return b->n_carriers;
	}
	if (b->mode == BOND_BALANCE)
		return n;
	list[0] = choose_active(b, list, n);
	return 1;
}

/* --- Moves */

static void announce(struct bond *b, uint64_t now)
{
	b->announcements--;
	b->announced_at = now;
	for (uint32_t i = 0; i < b->n_carriers; i++)
		b->ops->announce(b->ctx, b->members[b->carriers[i]].uplink);
}

static const char *describe_state(const struct bond_member *m)
{
	switch (m->health.state) {
	case BOND_DOWN: return "has no link";
	case BOND_SILENT: return "receives no answers to its probes";
	case BOND_RECOVERING: return "is recovering";
	default: return "is healthy";
	}
}

static void list_carriers(const struct bond *b, char line[LINE])
{
	size_t at = 0;

	line[0] = '\0';
	for (uint32_t i = 0; i < b->n_carriers && at < LINE; i++)
		at += (size_t)snprintf(line + at, LINE - at, "%s%s", i ? ", " : "",
				       b->members[b->carriers[i]].name);
}

static void use_carriers(struct bond *b, uint64_t now, const uint32_t *list, uint32_t n)
{
	for (uint32_t i = 0; i < b->n_carriers; i++) {
		struct bond_member *m = &b->members[b->carriers[i]];

		m->failovers +=
			m->health.state < BOND_RECOVERING && !contains(list, n, b->carriers[i]);
	}
	memcpy(b->carriers, list, n * sizeof(*list));
	b->n_carriers = n;
	b->moves++;
	b->announcements = BOND_ANNOUNCEMENTS;
	announce(b, now);
}

/* Handles and logs a change of a member's state: if other members are better now, they carry
 * frames. */
static void handle_change(struct bond *b, uint64_t now, const struct bond_member *m)
{
	uint32_t list[BOND_MEMBERS], n = choose_carriers(b, list);
	char carriers[LINE];

	if (n == b->n_carriers && !memcmp(list, b->carriers, n * sizeof(*list))) {
		log_line("bond: %s %s", m->name, describe_state(m));
		return;
	}
	use_carriers(b, now, list, n);
	list_carriers(b, carriers);
	log_line("bond: %s %s: connections use %s", m->name, describe_state(m), carriers);
}

static void report_event(struct bond *b, uint64_t now, struct bond_member *m, enum bond_event event)
{
	if (bond_health_event(&m->health, now, event))
		handle_change(b, now, m);
}

void bond_set_link(struct bond *b, uint64_t now, uint32_t uplink, bool up)
{
	struct bond_member *m = find_member(b, uplink);

	if (m && up != has_link(m))
		report_event(b, now, m, up ? BOND_LINK_FOUND : BOND_LINK_LOST);
}

/* --- Rounds of probes */

static uint32_t count_links(const struct bond *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n; i++)
		n += has_link(&b->members[i]);
	return n;
}

static bool is_answered(const struct bond *b, const struct bond_member *m)
{
	return m->answered_at >= b->round_at;
}

static void start_round(struct bond *b, uint64_t now)
{
	bool asked = false;

	b->urgent = false;
	for (uint32_t i = 0; i < b->n; i++) {
		struct bond_member *m = &b->members[i];

		if (!has_link(m))
			continue;
		m->asked_at = now;
		asked |= b->ops->probe(b->ctx, m->uplink);
	}
	if (asked)
		b->round_at = now;
}

static bool is_excused(const struct bond *b, struct bond_member *m)
{
	return m->heard_at >= b->round_at && m->excused++ < BOND_EXCUSED_ROUNDS;
}

static bool is_failing(const struct bond_member *m)
{
	return m->health.unanswered && m->health.state > BOND_SILENT;
}

/* Ends a round of probes. A member without an answer gets BOND_NO_ANSWER, unless it is excused. If
 * no member got an answer, that counts for none of them, because the stations may be absent. */
static void end_round(struct bond *b, uint64_t now)
{
	bool missed[BOND_MEMBERS] = {false};
	uint32_t answered = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		struct bond_member *m = &b->members[i];

		missed[i] = has_link(m) && !is_answered(b, m);
		answered += has_link(m) && !missed[i];
	}
	for (uint32_t i = 0; i < b->n && answered; i++) {
		if (missed[i] && !is_excused(b, &b->members[i]))
			report_event(b, now, &b->members[i], BOND_NO_ANSWER);
		b->urgent |= is_failing(&b->members[i]);
	}
	b->round_at = 0;
	b->unanswered_rounds = answered ? 0 : b->unanswered_rounds + 1;
}

/* Returns the interval of probes after rounds in which no member got an answer: it doubles with
 * each such round, up to BOND_IDLE_NS. */
static uint64_t unanswered_interval(const struct bond *b)
{
	const uint64_t ns = BOND_ROUND_NS << (b->unanswered_rounds < 6 ? b->unanswered_rounds : 6);

	return ns < BOND_IDLE_NS ? ns : BOND_IDLE_NS;
}

static uint64_t probe_interval(const struct bond *b, uint64_t now, uint32_t i)
{
	const enum bond_state state = b->members[i].health.state;
	const bool busy = now - b->busy_at < BOND_BUSY_NS;

	if (b->unanswered_rounds)
		return busy ? unanswered_interval(b) : BOND_IDLE_NS;
	if (state != BOND_HEALTHY)
		return BOND_RETURN_NS;
	return busy && contains(b->carriers, b->n_carriers, i) ? BOND_FRESH_NS : BOND_IDLE_NS;
}

static uint64_t max_time(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns when the next round begins, ns; UINT64_MAX: fewer than two members have a link, so no
 * round is needed. */
static uint64_t next_round(const struct bond *b, uint64_t now)
{
	uint64_t next = UINT64_MAX, due;

	if (count_links(b) < 2)
		return UINT64_MAX;
	if (b->urgent)
		return now;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct bond_member *m = &b->members[i];

		due = max_time(m->asked_at, m->answered_at) + probe_interval(b, now, i);
		if (has_link(m) && due < next)
			next = due;
	}
	return next;
}

/* --- Timers */

static uint64_t tick_health(struct bond *b, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < b->n; i++) {
		struct bond_member *m = &b->members[i];

		if (bond_health_tick(&m->health, now))
			handle_change(b, now, m);
		next = earlier(next, bond_health_deadline(&m->health));
	}
	return next;
}

static uint64_t tick_rounds(struct bond *b, uint64_t now)
{
	if (b->round_at && now - b->round_at >= BOND_ROUND_NS)
		end_round(b, now);
	if (!b->round_at && next_round(b, now) <= now)
		start_round(b, now);
	return b->round_at ? b->round_at + BOND_ROUND_NS : next_round(b, now);
}

static uint64_t tick_announcements(struct bond *b, uint64_t now)
{
	if (b->announcements && now - b->announced_at >= BOND_ANNOUNCEMENT_NS)
		announce(b, now);
	return b->announcements ? b->announced_at + BOND_ANNOUNCEMENT_NS : UINT64_MAX;
}

uint64_t bond_tick(struct bond *b, uint64_t now)
{
	uint64_t next;

	if (b->mode == BOND_NONE)
		return UINT64_MAX;
	/* Before the other timers, because the end of a round may change what they have to do. */
	next = tick_rounds(b, now);
	next = earlier(next, tick_health(b, now));
	return earlier(next, tick_announcements(b, now));
}

/* --- Frames */

uint32_t bond_choose(const struct bond *b, uint32_t flow)
{
	return b->members[packet_group_choose(flow, b->n, bond_carrier_mask(b))].uplink;
}

uint32_t bond_carrier_mask(const struct bond *b)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < b->n_carriers; i++)
		mask |= 1u << b->carriers[i];
	return mask;
}

uint32_t bond_lead(const struct bond *b)
{
	return b->members[b->carriers[0]].uplink;
}

bool bond_carries(const struct bond *b, uint32_t uplink)
{
	for (uint32_t i = 0; i < b->n_carriers; i++)
		if (b->members[b->carriers[i]].uplink == uplink)
			return true;
	return false;
}

void bond_note_answer(struct bond *b, uint64_t now, uint32_t uplink)
{
	struct bond_member *m = find_member(b, uplink);

	m->answered_at = now;
	m->excused = 0;
	report_event(b, now, m, BOND_ANSWER);
}

void bond_note_heard(struct bond *b, uint64_t now, uint32_t uplink)
{
	find_member(b, uplink)->heard_at = now;
}

void bond_note_roce(struct bond *b, uint64_t now, uint32_t uplink, bool response)
{
	b->busy_at = now;
	find_member(b, uplink)->heard_at = now;
	if (response && b->mode == BOND_ACTIVE_BACKUP)
		bond_note_answer(b, now, uplink);
}

void bond_note_astray(struct bond *b, uint64_t now)
{
	if (now - b->announced_at < BOND_ROUND_NS)
		return;
	if (!b->announcements)
		b->announcements = 1;
	announce(b, now);
}

/* --- Reports */

const char *bond_role(const struct bond *b, uint32_t uplink)
{
	static const char *const names[] = {[BOND_DOWN] = "down",
					    [BOND_SILENT] = "silent",
					    [BOND_RECOVERING] = "recovering",
					    [BOND_HEALTHY] = "backup"};
	const struct bond_member *m = get_member(b, uplink);

	return has_link(m) && bond_carries(b, uplink) ? "active" : names[m->health.state];
}

uint64_t bond_failovers_of(const struct bond *b, uint32_t uplink)
{
	return get_member(b, uplink)->failovers;
}

uint64_t bond_failovers(const struct bond *b)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < b->n; i++)
		sum += b->members[i].failovers;
	return sum;
}

void bond_init(struct bond *b, uint64_t now, enum bond_mode mode, uint32_t mask,
	       const char *const *names, const bool *links, const struct bond_ops *ops, void *ctx)
{
	*b = (struct bond){.mode = mode, .ops = ops, .ctx = ctx, .mask = mask};
	b->port = (uint32_t)__builtin_ctz(mask);
	for (uint32_t i = 0; i < BOND_MEMBERS; i++) {
		struct bond_member *m = &b->members[b->n];

		if (!bond_has(b, i))
			continue;
		*m = (struct bond_member){
			.uplink = i, .name = names[i], .asked_at = now, .answered_at = now};
		bond_health_init(&m->health, now, links[i]);
		b->n++;
	}
	b->n_carriers = 1;
	b->n_carriers = choose_carriers(b, b->carriers);
}
