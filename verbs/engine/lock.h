/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock whose waiters get it, however busy the others are.
 *
 * A thread that polls or posts without end has a plain mutex again before one that
 * slept for it runs. Here those that must wait stand in a queue, by tickets. A thread that
 * finds the lock free may still have it before them, since to switch threads for each turn
 * costs more than the turn; but whoever claims the lock, or was passed often, is not
 * passed any more: newcomers queue up behind, and lock_try fails.
 *
 * All zero is a free lock. For threads of one process; not recursive.
 */
#ifndef URXE_VERBS_ENGINE_LOCK_H
#define URXE_VERBS_ENGINE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LOCK_HELD   1u
#define LOCK_WAITED 2u /* the first of the queue sleeps, only while it is held */
#define LOCK_CLAIM  4u /* for each claim: nobody passes the queue */

struct lock {
	_Atomic uint32_t word;
	_Atomic uint32_t tickets; /* given out so far */
	_Atomic uint32_t first;   /* the ticket of the first of the queue */
};

/* For loops that look at memory until another core has written to it. */
static inline void lock_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* For lock_take and lock_release. */
void lock_queue(struct lock *lock, bool claim);
void lock_wake(struct lock *lock);

/* Takes the lock if nobody has it, nor claims it. */
static inline bool lock_try(struct lock *lock)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong_explicit(&lock->word, &free, LOCK_HELD,
						       memory_order_acquire, memory_order_relaxed);
}

static inline void lock_take(struct lock *lock)
{
	if (!lock_try(lock))
		lock_queue(lock, false);
}

/* As lock_take, but nobody who comes later has it before. */
static inline void lock_claim(struct lock *lock)
{
	if (!lock_try(lock))
		lock_queue(lock, true);
}

static inline void lock_release(struct lock *lock)
{
	uint32_t was = atomic_fetch_and_explicit(&lock->word, ~(LOCK_HELD | LOCK_WAITED),
						 memory_order_release);

	if (was & LOCK_WAITED)
		lock_wake(lock);
}

/* Whether somebody sleeps for the lock or claims it; a hint for those that only try. */
static inline bool lock_wanted(const struct lock *lock)
{
	return atomic_load_explicit(&lock->word, memory_order_relaxed) & ~LOCK_HELD;
}

/*
 * With the lock, which is free meanwhile: sleeps until somebody who had it has called
 * lock_tell for the same `changes`, a number of its own; or wakes for no reason.
 */
void lock_await(struct lock *lock, _Atomic uint32_t *changes);
void lock_tell(_Atomic uint32_t *changes);

#endif
