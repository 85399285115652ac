/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/poll_hold.h"

static void end_wait(struct poll_hold *hold, uint64_t now, uint64_t completions)
{
	*hold = (struct poll_hold){.replied_at = now, .completions = completions};
}

void poll_hold_polled(struct poll_hold *hold, uint64_t now, uint64_t completions)
{
	/* After a newer completion no poll waits: the guest may have polled before it. */
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
