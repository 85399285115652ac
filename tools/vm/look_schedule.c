/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/look_schedule.h"

uint64_t look_schedule_looked(struct look_schedule *schedule, uint64_t now, bool work, bool spare)
{
	uint64_t pause;

	if (work)
		schedule->worked_at = now;
	if (spare && now - schedule->worked_at < LOOK_BUSY_NS)
		return 0;
	pause = (now - schedule->worked_at) / LOOK_SHARE;
	if (pause < LOOK_PAUSE_MIN_NS)
		return LOOK_PAUSE_MIN_NS;
	return pause < LOOK_PAUSE_MAX_NS ? pause : LOOK_PAUSE_MAX_NS;
}
