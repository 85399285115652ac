/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The lock of the adapter (adapter/adapter.h): waiters get it, however busy the other threads are.
 *
 * A thread that polls or posts without end would take a plain mutex again before a thread that
 * slept for it runs. Waiters of this lock stand in a queue, by tickets. A thread that finds the
 * lock free may take it before them, because a switch of threads for each turn costs more than the
 * turn. But no thread passes a waiter that has claimed the lock, or that others have passed often:
 * threads that come later queue up behind it, and lock_try fails.
 *
 * All zero is a free lock. For threads of one process; not recursive.
 */
#ifndef URXE_VERBS_ENGINE_LOCK_H
#define URXE_VERBS_ENGINE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LOCK_HELD   1u
#define LOCK_WAITED 2u /* the first of the queue sleeps; only while the lock is held */
#define LOCK_CLAIM  4u /* for each claim: no thread passes the queue */

struct lock {
	_Atomic uint32_t word;
	_Atomic uint32_t tickets; /* given out so far */
	_Atomic uint32_t first;   /* the ticket of the first of the queue */
	/* Under the lock: */
	uint64_t waits;     /* of threads that slept for it, so far */
	uint64_t waited_ns; /* by all of them */
	bool orphaned;      /* lock_orphan was called */
};

/* In loops that read memory until another processor has written to it. */
static inline void lock_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* The slow paths of lock_take and lock_release. */
void lock_queue(struct lock *lock, bool claim);
void lock_wake(struct lock *lock);

/* Takes the lock if no thread holds or claims it. */
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

/* As lock_take, but no thread that comes later takes the lock before. */
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

/*
 * In a child of a thread that forked while it held the lock or waited for it: no thread of the
 * child releases it, so no waiter waits any more.
 */
void lock_orphan(struct lock *lock);

/*
 * The caller holds the lock. Releases it, sleeps until a thread calls lock_notify for the same
 * `changes`, a counter of calls, and takes the lock again. May return without such a call.
 */
void lock_wait(struct lock *lock, _Atomic uint32_t *changes);
void lock_notify(_Atomic uint32_t *changes);

#endif
