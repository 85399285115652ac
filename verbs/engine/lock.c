/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "engine/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/clock.h"

/* Number of looks at a held lock before the thread sleeps: as many as in glibc's adaptive mutex. */
#define SPINS 100
/* Number of wake-ups of the first waiter that find the lock taken again, before it claims the lock.
 */
#define PASSES 4

/* Sleeps while *word is `value`, until a futex_wake with a bit in common, or a signal. */
static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint32_t bits)
{
	int saved = errno; /* the program must not see a change: to wait is no error */

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, NULL, NULL, bits);
	errno = saved;
}

static void futex_wake(_Atomic uint32_t *word, int n, uint32_t bits)
{
	syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, n, NULL, NULL, bits);
}

/* Returns the futex bit of the waiter with that ticket. In a queue of up to 32 waiters each has a
 * bit of its own, so a wake-up with it wakes that waiter only. */
static uint32_t wake_bit(uint32_t ticket)
{
	return 1u << ticket % 32;
}

/* Spins, because the holder may be about to release the lock. True: this thread has taken it.
 * False: the holder has not released it, or other threads wait. */
static bool spin_for_lock(struct lock *lock)
{
	for (int i = 0; i < SPINS; i++) {
		uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);

		if (word & ~LOCK_HELD)
			return false;
		if (!word && lock_try(lock))
			return true;
		lock_relax();
	}
	return false;
}

static void add_claim(struct lock *lock)
{
	atomic_fetch_add(&lock->word, LOCK_CLAIM);
}

/* Waits until the thread is the first of the queue, or the lock is orphaned. */
static void queue_up(struct lock *lock, bool claim)
{
	uint32_t ticket = atomic_fetch_add(&lock->tickets, 1), first;

	/* The claim follows the ticket, so a thread that sees the claim gets a later ticket. */
	if (claim)
		add_claim(lock);
	while ((first = atomic_load(&lock->first)) != ticket && !lock->orphaned)
		futex_wait(&lock->first, first, wake_bit(ticket));
}

static void leave_queue(struct lock *lock)
{
	uint32_t next = atomic_fetch_add(&lock->first, 1) + 1;

	if (atomic_load(&lock->tickets) != next)
		futex_wake(&lock->first, INT_MAX, wake_bit(next));
}

/* Sleeps until the holder releases the lock. Only the first thread of the queue calls this
 * function. False: did not sleep, because the lock's word is no longer `word`. */
static bool await_release(struct lock *lock, uint32_t word)
{
	const uint32_t waited = word | LOCK_WAITED;

	if (!atomic_compare_exchange_strong(&lock->word, &word, waited))
		return false;
	futex_wait(&lock->word, waited, FUTEX_BITSET_MATCH_ANY);
	return true;
}

/* Takes the lock for the first thread of the queue, which competes with threads that come later.
 * Returns without the lock once it is orphaned. */
static void compete(struct lock *lock, bool claimed)
{
	int passed = 0;

	while (!lock->orphaned) {
		uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);
		uint32_t ours = (word | LOCK_HELD) - (claimed ? LOCK_CLAIM : 0);

		if (!(word & LOCK_HELD)) {
			if (atomic_compare_exchange_strong_explicit(&lock->word, &word, ours,
								    memory_order_acquire,
								    memory_order_relaxed))
				return;
		} else if (!claimed && passed == PASSES) {
			claimed = true;
			add_claim(lock);
		} else {
			passed += await_release(lock, word);
		}
	}
}

void lock_queue(struct lock *lock, bool claim)
{
	uint64_t since;

	if (spin_for_lock(lock))
		return;
	since = clock_monotonic();
	queue_up(lock, claim);
	compete(lock, claim);
	leave_queue(lock);
	lock->waits++;
	lock->waited_ns += clock_monotonic() - since;
}

/* Changes both futex words, so that a futex_wait of the child's thread that expects an old value
 * returns at once. */
void lock_orphan(struct lock *lock)
{
	lock->orphaned = true;
	atomic_fetch_xor(&lock->first, 1u << 31);
	atomic_fetch_xor(&lock->word, 1u << 31);
}

void lock_wake(struct lock *lock)
{
	futex_wake(&lock->word, 1, FUTEX_BITSET_MATCH_ANY);
}

void lock_wait(struct lock *lock, _Atomic uint32_t *changes)
{
	uint32_t seen = atomic_load(changes);

	lock_release(lock);
	futex_wait(changes, seen, FUTEX_BITSET_MATCH_ANY);
	lock_take(lock);
}

void lock_notify(_Atomic uint32_t *changes)
{
	atomic_fetch_add(changes, 1);
	futex_wake(changes, INT_MAX, FUTEX_BITSET_MATCH_ANY);
}
