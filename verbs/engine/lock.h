/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The type of adapter.lock (adapter/adapter.h): waiters get it, however busy the other threads are.
 *
 * A thread that polls or posts without end would take a plain mutex again before a thread that
 * slept for it runs. Waiters of this lock stand in a queue, by tickets. A thread that finds the
 * lock free may take it before them, because a switch of threads for each turn costs more than the
 * turn. But no thread passes a waiter that has claimed the lock (lock_claim), or that others have
 * passed four times: threads that come later queue up behind that waiter, and lock_try fails.
 *
 * All zero is a free lock. For threads of one process; not recursive.
 */
#ifndef URXE_VERBS_ENGINE_LOCK_H
#define URXE_VERBS_ENGINE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LOCK_HELD   1u
#define LOCK_WAITED 2u /* the first waiter of the queue sleeps; only while the lock is held */
#define LOCK_CLAIM  4u /* added to `word` for each claim, during which later threads queue up */

struct lock {
	_Atomic uint32_t word;
	_Atomic uint32_t tickets; /* number of tickets given out so far */
	_Atomic uint32_t first;   /* the ticket of the first waiter of the queue */
	/* Only the holder of the lock accesses these: */
	uint64_t waits;     /* number of waits in the queue so far */
	uint64_t waited_ns; /* duration of all these waits together */
	bool orphaned;      /* lock_orphan was called */
};

/*
 * Waits 10 to 50 ns, in loops that read memory until another processor has written to it. On arm64
 * the yield instruction takes no time, so isb is used there.
 */
static inline void lock_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" : : : "memory");
#endif
}

/* The slow path of lock_take and, with `claim`, of lock_claim: spins shortly if no thread waits,
 * then waits in the queue, and takes the lock. */
void lock_queue(struct lock *lock, bool claim);
/* The slow path of lock_release: wakes the first waiter of the queue. */
void lock_wake(struct lock *lock);

/* Takes the lock if no thread holds or claims it. False: not taken. Never waits. */
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

/* Takes the lock: waits in the queue, and no thread that comes later takes the lock first. */
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
 * In the child, if a thread forked while it held the lock or waited for it: sets lock->orphaned.
 * From then on a wait in lock_queue ends at once, because no thread of the child would release the
 * lock.
 */
void lock_orphan(struct lock *lock);

/*
 * The caller holds the lock. Releases it, sleeps until a thread calls lock_notify for the same
 * `changes`, and takes the lock again. May return without such a call, so the caller checks.
 */
void lock_wait(struct lock *lock, _Atomic uint32_t *changes);
/* Increments *changes, and wakes all threads in lock_wait for it. With or without the lock. */
void lock_notify(_Atomic uint32_t *changes);

#endif
