/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/busy_poll.h"

#include <stdbool.h>

#include "engine/clock.h"
#include "engine/engine_run.h"
#include "port/port.h"

#define US 1000u
#define MS 1000000u

/* Without a frame for so long the busy poll ends: about what a sleep and a wake-up take. */
#define QUIET (50 * US)
/* Frames gather for so long: a burst costs the engine, and its acknowledgement the peer, as one
 * frame. */
#define GATHER 1000u
/* A look that takes longer shows that other threads want the processor. */
#define CROWDED (40 * US)
/* Between two busy polls of which the first was of no use; doubled with each further one. */
#define PAUSE_MIN (250 * US)
#define PAUSE_MAX (128 * MS)

static struct polling *const polling = &port.polling;

static bool is_ours(void)
{
	return polling->state == POLL_BUSY && !port.thread.stop;
}

static void gather_frames(uint64_t since)
{
	while (clock_monotonic() - since < GATHER)
		lock_relax();
}

/* One look for frames. False: another thread wants the processor, or runs the engine. */
static bool look_once(void)
{
	uint64_t began_at = clock_monotonic(), heard_at = polling->heard_at;

	engine_run(clock_now());
	/* To handle a burst takes its time, too. */
	if (polling->heard_at != heard_at)
		polling->heard_at = clock_now();
	if (!is_ours())
		return false;
	port_unlock();
	gather_frames(began_at);
	port_claim();
	if (!is_ours())
		return false;
	return polling->heard_at != heard_at || clock_monotonic() - began_at < CROWDED;
}

/* Busy polls that are of no use come ever more seldom. */
static void set_pause(bool useful)
{
	if (useful)
		polling->pause = 0;
	else if (!polling->pause)
		polling->pause = PAUSE_MIN;
	else if (polling->pause < PAUSE_MAX)
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
	while (alone && port_connected() && clock_now() - polling->heard_at < QUIET)
		alone = look_once();
	if (is_ours())
		set_pause(alone && polling->heard_at != heard_at);
}
