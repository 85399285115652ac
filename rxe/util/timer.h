/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deadlines of QPs. Every acknowledgement moves a deadline to a later time, which only stores that
 * time; the timer is queued again when the old time falls due. So arming costs one store on the
 * fast path.
 *
 * Most deadlines are the same span from now, thus later than all earlier ones. Runs, which are FIFO
 * rings, hold these: with many QPs each operation touches one cache line. A binary heap, which
 * touches a cache line at each level, holds all others.
 */
#ifndef URXE_UTIL_TIMER_H
#define URXE_UTIL_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct timer {
	uint64_t due;    /* URXE_NEVER: not armed */
	uint64_t queued; /* time by which the timer is queued; at most due */
	uint32_t place;  /* position in the queue, private to timer.c */
	uint8_t kind;    /* for the owner's use */
};

/* A queued timer with its time, so that comparisons do not read the timer. */
struct timers_entry {
	uint64_t queued;
	struct timer *timer; /* NULL: the timer has left the run */
};

/* A timer goes to the first run that has room and whose last entry is not later than the timer. So
 * the first run gets most new deadlines; the other runs get earlier ones. */
#define TIMER_RUNS 3

/* A ring in the order of times; indices are free-running. */
struct timer_run {
	struct timers_entry *ring;
	uint32_t head, tail;
};

struct timers {
	uint64_t next; /* at most the earliest deadline */
	struct timer_run runs[TIMER_RUNS];
	struct timers_entry *heap; /* followed by the rings of the runs */
	uint32_t n;                /* timers in the heap */
	uint32_t room;             /* of the heap, a power of two */
	uint32_t run_room;         /* of each run, a power of two */
};

void timers_init(struct timers *timers);
void timers_free(struct timers *timers);
/* Makes room for n_timers in all; -ENOMEM. */
int timers_reserve(struct timers *timers, uint32_t n_timers);
void timer_init(struct timer *timer, uint8_t kind);
/* Arms the timer for the time `due`; timers_reserve has made room for it. */
void timer_set(struct timers *timers, struct timer *timer, uint64_t due);
/* Takes the timer out of the queue, before its memory is freed. Does not disarm it. */
void timer_remove(struct timers *timers, struct timer *timer);
/* Removes, disarms and returns a timer that is due at `now` or earlier; NULL: there is none. */
struct timer *timers_pop(struct timers *timers, uint64_t now);

/*
 * The order of timers that are due at the same time depends on the layout of the queue, so a replay
 * restores the layout. timers_place iterates over the places of the heap, then of each run: *place
 * is {0} at first, and each call moves it on. It sets *entry to the contents of the place; its
 * timer is NULL if that timer was removed from the run. False: there are no more places.
 */
struct timers_place {
	uint32_t number; /* of the heap (0), or of a run (1 on) */
	uint32_t index;
};
bool timers_place(const struct timers *timers, struct timers_place *place,
		  struct timers_entry *entry);
/* Empties the queue without disarming timers: the caller puts armed ones back by timers_put. */
void timers_clear(struct timers *timers);
/*
 * Adds a timer to the heap or run of that timers_place.number, as if it was queued for the time
 * `queued`. False: no room, no such run, an entry of the run is later, or the timer is queued.
 */
bool timers_put(struct timers *timers, uint32_t number, struct timer *timer, uint64_t queued);
/* As timers_put, for an empty entry in place of a removed timer: a replayed run then becomes full
 * when the recorded one did. */
bool timers_put_empty(struct timers *timers, uint32_t number, uint64_t queued);
/* Queues the timer if it is armed and timers_put has not queued it. */
void timers_put_armed(struct timers *timers, struct timer *timer);

/* Returns a time no later than the earliest deadline; URXE_NEVER: the queue is empty. */
static inline uint64_t timers_next(const struct timers *timers)
{
	return timers->next;
}

static inline bool timer_armed(const struct timer *timer)
{
	return timer->due != UINT64_MAX;
}

/* Disarms the timer: it does not fire. It stays queued until timers_pop or timer_remove. */
static inline void timer_clear(struct timer *timer)
{
	timer->due = UINT64_MAX;
}

#endif
