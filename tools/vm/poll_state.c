/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/poll_state.h"

#define QUICK_NS     100000u
#define BUSY_NS      50000u
#define PAUSE_MIN_NS 250000u
#define PAUSE_MAX_NS 128000000u

static bool fall_asleep(struct poll_machine *m)
{
	m->state = POLL_ASLEEP;
	return false;
}

static bool start_busy_poll(struct poll_machine *m, uint64_t now)
{
	if (m->woke_at - m->slept_at > QUICK_NS || now < m->busy_after)
		return fall_asleep(m);
	m->state = POLL_BUSY;
	m->busy_since = now;
	return true;
}

static bool end_busy_poll(struct poll_machine *m, uint64_t now)
{
	m->pause = m->pause ? 2 * m->pause : PAUSE_MIN_NS;
	if (m->pause > PAUSE_MAX_NS)
		m->pause = PAUSE_MAX_NS;
	m->busy_after = now + m->pause;
	return fall_asleep(m);
}

bool poll_machine_looked(struct poll_machine *m, uint64_t now, bool work)
{
	if (work) {
		if (m->state == POLL_BUSY)
			m->pause = 0;
		m->state = POLL_RUNNING;
		return true;
	}
	switch (m->state) {
	case POLL_RUNNING: return start_busy_poll(m, now);
	case POLL_BUSY: return now - m->busy_since < BUSY_NS ? true : end_busy_poll(m, now);
	default: return false;
	}
}

void poll_machine_woke(struct poll_machine *m, uint64_t slept_at, uint64_t now)
{
	m->slept_at = slept_at;
	m->woke_at = now;
}
