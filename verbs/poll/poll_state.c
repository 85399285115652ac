/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/poll_state.h"

#include <stdbool.h>

struct cell {
	bool changes; /* false: the event has no effect in the state */
	struct poll_step step;
};

#define TO(state, action)                           \
	{                                           \
		true,                               \
		{                                   \
			POLL_##state, POLL_##action \
		}                                   \
	}

static const struct cell cells[POLL_STATES][POLL_EVENTS] = {
	[POLL_ASLEEP] =
		{
			[POLL_EMPTY] = TO(PROGRAM, MASK),
			[POLL_FRAMES] = TO(RUNNING, MASK),
			[POLL_WAKE] = TO(RUNNING, NOTHING),
			[POLL_LOST] = TO(DISCONNECTED, NOTHING),
		},
	[POLL_RUNNING] =
		{
			[POLL_EMPTY] = TO(PROGRAM, MASK),
			[POLL_DRAINED] = TO(ASLEEP, UNMASK),
			[POLL_STREAM] = TO(BUSY, NOTHING),
			[POLL_LOST] = TO(DISCONNECTED, NOTHING),
		},
	[POLL_BUSY] =
		{
			[POLL_EMPTY] = TO(PROGRAM, MASK),
			[POLL_DRAINED] = TO(ASLEEP, UNMASK),
			[POLL_LOST] = TO(DISCONNECTED, NOTHING),
		},
	[POLL_PROGRAM] =
		{
			[POLL_PAUSE] = TO(ASLEEP, UNMASK),
			[POLL_WAKE] = TO(RUNNING, NOTHING),
			[POLL_LOST] = TO(DISCONNECTED, NOTHING),
		},
	[POLL_DISCONNECTED] =
		{
			[POLL_ATTACHED] = TO(RUNNING, NOTHING),
		},
};

struct poll_step poll_step(enum poll_state state, enum poll_event event)
{
	const struct cell *cell = &cells[state][event];

	return cell->changes ? cell->step : (struct poll_step){state, POLL_NOTHING};
}
