/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A timer of a queue pair, saved as the time that is left. */
#include "objects/device.h"
#include "state/state_records.h"

void timer_field(struct state_stream *s, struct urxe_qp *qp, struct timer *timer)
{
	uint64_t due = timer->due;

	state_time(s, &due);
	if (s->restoring && state_ok(s) && due != URXE_NEVER)
		timer_set(&qp->dev->timers, timer, due);
}
