/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deadlines of QPs: a binary heap that is repaired lazily.
 *
 * A deadline that moves later, which every acknowledgement does, is only
 * noted; the heap learns of it when the old one falls due. Arming thus costs a
 * store on the fast path.
 */
#ifndef URXE_TIMER_H
#define URXE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct urxe_qp;

struct timer {
	uint64_t due;  /* URXE_NEVER: not armed */
	uint32_t slot; /* place in the heap plus one; 0 = not in it */
	void (*fired)(struct urxe_qp *qp);
	struct urxe_qp *qp;
};

/* With the deadline beside it, so that a heap of many needs to look into few of them. */
struct timers_entry {
	uint64_t queued; /* what the heap goes by; at most the timer's due */
	struct timer *timer;
};

struct timers {
	struct timers_entry *heap;
	uint32_t n;
	uint32_t room;
};

void timers_free(struct timers *timers);
/* Makes room for n_timers in all; -ENOMEM. */
int timers_reserve(struct timers *timers, uint32_t n_timers);
void timer_init(struct timer *timer, struct urxe_qp *qp, void (*fired)(struct urxe_qp *qp));
void timer_set(struct timers *timers, struct timer *timer, uint64_t due);
void timer_remove(struct timers *timers, struct timer *timer);
/* Takes out and disarms a timer that is due at now; NULL where there is none. */
struct timer *timers_pop(struct timers *timers, uint64_t now);
/* No later than the earliest deadline. */
uint64_t timers_next(const struct timers *timers);

static inline bool timer_armed(const struct timer *timer)
{
	return timer->due != UINT64_MAX;
}

static inline void timer_clear(struct timer *timer)
{
	timer->due = UINT64_MAX;
}

#endif
