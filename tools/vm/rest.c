/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/rest.h"

#define QUICK_NS          100000u
#define BUSY_NS           50000u
#define BUSY_PAUSE_MIN_NS 250000u
#define BUSY_PAUSE_MAX_NS 128000000u
#define LOOK_BUSY_NS      200000u
#define LOOK_PAUSE_MIN_NS 20000u
#define LOOK_PAUSE_MAX_NS 50000000u
#define LOOK_SHARE        64u
/* While the process looks for work without pauses, it looks for events, which costs a system call,
 * only after each SPINS-th look. */
#define SPINS 8
/* Only before a pause of at least this length the process asks urxed and peers for wake-ups, ns. */
#define ARMED_PAUSE_NS 200000u

/* --- Trapped doorbells */

void rest_rung(struct rest_doorbells *doorbells, uint64_t now)
{
	doorbells->quick = doorbells->rung_at && now - doorbells->rung_at < REST_DOORBELL_NS;
	doorbells->rung_at = now;
}

static bool expects_doorbell(const struct rest_doorbells *doorbells, uint64_t now)
{
	return doorbells->quick && now - doorbells->rung_at < REST_DOORBELL_NS;
}

static void end_wait(struct poll_hold *hold, uint64_t now, uint64_t completions)
{
	*hold = (struct poll_hold){.replied_at = now, .completions = completions};
}

void poll_hold_polled(struct poll_hold *hold, uint64_t now, uint64_t completions)
{
	/* If a completion has come since the last reply, the poll does not wait: the guest may have
	 * polled before it could see the completion. */
	if (completions == hold->completions && now - hold->replied_at <= POLL_HOLD_SPIN_NS)
		hold->until = now + POLL_HOLD_NS;
	else
		end_wait(hold, now, completions);
}

void poll_hold_end_series(struct poll_hold *hold)
{
	hold->replied_at = 0;
}

bool poll_hold_waits(struct poll_hold *hold, uint64_t now, uint64_t completions)
{
	if (!hold->until)
		return false;
	if (now < hold->until && completions == hold->completions)
		return true;
	end_wait(hold, now, completions);
	return false;
}

/* --- The main loop */

static bool start_busy_poll(struct rest *r, uint64_t now)
{
	if (r->woke_at - r->slept_at > QUICK_NS || now < r->busy_after)
		return false;
	r->state = REST_BUSY;
	r->busy_since = now;
	return true;
}

static void end_busy_poll(struct rest *r, uint64_t now)
{
	r->pause = r->pause ? 2 * r->pause : BUSY_PAUSE_MIN_NS;
	if (r->pause > BUSY_PAUSE_MAX_NS)
		r->pause = BUSY_PAUSE_MAX_NS;
	r->busy_after = now + r->pause;
}

/* Sets the state after a look. False: the state is ASLEEP. */
static bool stays_awake(struct rest *r, uint64_t now, bool work)
{
	if (work) {
		if (r->state == REST_BUSY)
			r->pause = 0;
		r->state = REST_RUNNING;
		return true;
	}
	if (r->state == REST_RUNNING && start_busy_poll(r, now))
		return true;
	if (r->state == REST_BUSY) {
		if (now - r->busy_since < BUSY_NS)
			return true;
		end_busy_poll(r, now);
	}
	r->state = REST_ASLEEP;
	return false;
}

void rest_woke(struct rest *r, uint64_t slept_at, uint64_t now)
{
	r->slept_at = slept_at;
	r->woke_at = now;
}

uint64_t rest_between_looks(struct rest *r, uint64_t now, bool work, bool spare)
{
	uint64_t pause;

	if (work)
		r->worked_at = now;
	if (spare && now - r->worked_at < LOOK_BUSY_NS)
		return 0;
	pause = (now - r->worked_at) / LOOK_SHARE;
	if (pause < LOOK_PAUSE_MIN_NS)
		return LOOK_PAUSE_MIN_NS;
	return pause < LOOK_PAUSE_MAX_NS ? pause : LOOK_PAUSE_MAX_NS;
}

enum rest_kind rest_next(struct rest *r, uint64_t now, const struct rest_look *look,
			 uint64_t *pause)
{
	/* Doorbells in memory have their own schedule (below), without a busy poll. */
	if (stays_awake(r, now, look->work && !(look->mapped && look->rdma_work)))
		return REST_EVENTS;
	if (look->mapped) {
		*pause = rest_between_looks(r, now, look->rdma_work,
					    spare_processor_exists(&r->spare, now));
		if (!*pause && ++r->spins % SPINS)
			return REST_LOOK;
		return *pause < ARMED_PAUSE_NS ? REST_PAUSE : REST_DOORBELL;
	}
	if (look->doorbells && expects_doorbell(look->doorbells, now) &&
	    spare_processor_exists(&r->spare, now))
		return REST_YIELD;
	return REST_SLEEP;
}
