/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deadlines of QPs, repaired lazily: one that moves later, which every acknowledgement does, is
 * only noted; the queue learns of it when the old one falls due. Arming thus costs a store on the
 * fast path.
 *
 * Most deadlines are set for the same time from now, so that each is behind the one before. Those
 * stand in runs, to which they are added at the end, and from which they are taken at the front: of
 * many QPs that costs one line of memory, where the binary heap, for all others, has one at each
 * level.
 */
#ifndef URXE_TIMER_H
#define URXE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct timer {
	uint64_t due;    /* URXE_NEVER: not armed */
	uint64_t queued; /* what the queue goes by; at most due */
	uint32_t place;  /* in the queue: of timer.c */
	uint8_t kind;    /* its owner's */
};

/* With the deadline beside it, so that a queue of many needs to look into few of them. */
struct timers_entry {
	uint64_t queued;
	struct timer *timer; /* NULL: it has left the run */
};

/* One for deadlines as they are set, and others for those that were moved, or are further away. */
#define TIMER_RUNS 3

/* A ring in the order of time; indices are free-running. */
struct timer_run {
	struct timers_entry *ring;
	uint32_t head, tail;
};

struct timers {
	uint64_t next; /* no later than the earliest of all */
	struct timer_run runs[TIMER_RUNS];
	struct timers_entry *heap; /* the runs' rings are behind it */
	uint32_t n;                /* in the heap */
	uint32_t room;             /* of the heap, a power of two */
	uint32_t run_room;         /* of each run, likewise */
};

void timers_init(struct timers *timers);
void timers_free(struct timers *timers);
/* Makes room for n_timers in all; -ENOMEM. */
int timers_reserve(struct timers *timers, uint32_t n_timers);
void timer_init(struct timer *timer, uint8_t kind);
void timer_set(struct timers *timers, struct timer *timer, uint64_t due);
void timer_remove(struct timers *timers, struct timer *timer);
/* Takes out and disarms a timer that is due at now; NULL where there is none. */
struct timer *timers_pop(struct timers *timers, uint64_t now);

/* No later than the earliest deadline. */
static inline uint64_t timers_next(const struct timers *timers)
{
	return timers->next;
}

static inline bool timer_armed(const struct timer *timer)
{
	return timer->due != UINT64_MAX;
}

static inline void timer_clear(struct timer *timer)
{
	timer->due = UINT64_MAX;
}

#endif
