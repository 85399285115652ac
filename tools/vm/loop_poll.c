/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/loop_poll.h"

#define QUICK_NS     100000u
#define BUSY_NS      50000u
#define PAUSE_MIN_NS 250000u
#define PAUSE_MAX_NS 128000000u

static bool fall_asleep(struct loop_poll *m)
{
	m->state = LOOP_ASLEEP;
	return false;
}

static bool start_busy_poll(struct loop_poll *m, uint64_t now)
{
	if (m->woke_at - m->slept_at > QUICK_NS || now < m->busy_after)
		return fall_asleep(m);
	m->state = LOOP_BUSY;
	m->busy_since = now;
	return true;
}

static bool end_busy_poll(struct loop_poll *m, uint64_t now)
{
	m->pause = m->pause ? 2 * m->pause : PAUSE_MIN_NS;
	if (m->pause > PAUSE_MAX_NS)
		m->pause = PAUSE_MAX_NS;
	m->busy_after = now + m->pause;
	return fall_asleep(m);
}

bool loop_poll_looked(struct loop_poll *m, uint64_t now, bool work)
{
	if (work) {
		if (m->state == LOOP_BUSY)
			m->pause = 0;
		m->state = LOOP_RUNNING;
		return true;
	}
	switch (m->state) {
	case LOOP_RUNNING: return start_busy_poll(m, now);
	case LOOP_BUSY: return now - m->busy_since < BUSY_NS ? true : end_busy_poll(m, now);
	default: return false;
	}
}

void loop_poll_woke(struct loop_poll *m, uint64_t slept_at, uint64_t now)
{
	m->slept_at = slept_at;
	m->woke_at = now;
}
