/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/busy_poll.h"

#include <stdbool.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "poll/polling.h"

#define US 1000u
#define MS 1000000u

/* A busy poll ends after this time without a frame, ns: about the time of a sleep and a wake-up. */
#define QUIET_NS (50 * US)
/*
 * Time from one run of the engine to the next in a busy poll, ns. Frames gather meanwhile: the
 * engine handles several for about the cost of one, and the peer gets one acknowledgement.
 */
#define GATHER_NS 1000u
/* If one look without frames takes longer, ns, this thread lost its processor to other threads. */
#define CROWDED_NS (40 * US)
/* Least and greatest pause after useless busy polls (set_pause), ns; it doubles after each. */
#define PAUSE_MIN_NS (250 * US)
#define PAUSE_MAX_NS (128 * MS)

static struct polling *const polling = &adapter_polling;

static bool is_ours(void)
{
	return polling->state == POLL_BUSY && !adapter_thread.stop;
}

static void gather_frames(uint64_t since)
{
	while (clock_monotonic() - since < GATHER_NS)
		lock_relax();
}

/* Runs the engine once, and waits for GATHER_NS. False: other threads want the processor, another
 * thread has taken over the engine, or this thread must end. */
static bool look_once(void)
{
	uint64_t began_at = clock_monotonic(), heard_at = polling->heard_at;

	engine_run(clock_now());
	/* QUIET_NS counts from the end of the run that received the frames. */
	if (polling->heard_at != heard_at)
		polling->heard_at = clock_now();
	if (!is_ours())
		return false;
	adapter_unlock();
	gather_frames(began_at);
	adapter_claim();
	if (!is_ours())
		return false;
	return polling->heard_at != heard_at || clock_monotonic() - began_at < CROWDED_NS;
}

/* Sets the earliest time of the next busy poll. After each useless one, which received nothing or
 * in which other threads wanted the processor, the pause is twice as long. */
static void set_pause(bool useful)
{
	if (useful)
		polling->pause = 0;
	else if (!polling->pause)
		polling->pause = PAUSE_MIN_NS;
	else if (polling->pause < PAUSE_MAX_NS)
		polling->pause *= 2;
	polling->busy_from = clock_now() + polling->pause;
}

void busy_poll(void)
{
	uint64_t heard_at = polling->heard_at;
	bool alone = true;

	if (clock_now() < polling->busy_from)
		return;
	polling_event(POLL_STREAM);
	while (alone && adapter_running() && clock_now() - polling->heard_at < QUIET_NS)
		alone = look_once();
	if (is_ours())
		set_pause(alone && polling->heard_at != heard_at);
}
