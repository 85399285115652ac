/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "engine/lock.h"

#define BUSY  4    /* threads of each kind: more than a small machine has processors */
#define TURNS 1000 /* times that a waiter gets the lock while the busy threads continue */
#define OFTEN 8    /* more than the times that other threads pass a waiter without a claim */

static struct {
	struct lock lock;
	/* With the lock. */
	bool inside;
	uint32_t turns; /* of the waiting threads */
	uint32_t state; /* what changes */
	/* Without it, too. */
	_Atomic uint32_t seen;   /* turns */
	_Atomic uint32_t both;   /* times that two threads held the lock at once */
	_Atomic uint32_t passed; /* times that a thread which came after a claim took the lock
				    before the claimant */
	_Atomic uint32_t running;
	_Atomic bool stop;
	_Atomic uint32_t changes;
} shared;

static int set_up(void **state)
{
	(void)state;
	memset(&shared, 0, sizeof(shared));
	return 0;
}

static bool is_claimed(void)
{
	return atomic_load(&shared.lock.word) >= LOCK_CLAIM;
}

/* A thread sleeps for the lock, or claims it. */
static bool is_wanted(void)
{
	return atomic_load(&shared.lock.word) & ~LOCK_HELD;
}

static void enter(void)
{
	if (shared.inside)
		atomic_fetch_add(&shared.both, 1);
	shared.inside = true;
}

static void leave(void)
{
	shared.inside = false;
	lock_release(&shared.lock);
}

/* Counts a waiting thread's turn with the lock. */
static void take_turn(void)
{
	enter();
	atomic_store(&shared.seen, ++shared.turns);
	leave();
}

/* With the lock: a claim was visible after `turns`, so this turn must be the claimant's. */
static void check_passed(bool claimed, uint32_t turns)
{
	if (claimed && shared.turns == turns)
		atomic_fetch_add(&shared.passed, 1);
}

/* Polls without end. */
static void *try_for_ever(void *unused)
{
	(void)unused;
	shared.running++;
	while (!shared.stop) {
		uint32_t turns = atomic_load(&shared.seen);
		bool claimed = is_claimed();

		if (!lock_try(&shared.lock)) {
			sched_yield();
			continue;
		}
		enter();
		check_passed(claimed, turns);
		leave();
	}
	return NULL;
}

/* Posts without end. */
static void *take_for_ever(void *unused)
{
	(void)unused;
	shared.running++;
	while (!shared.stop) {
		uint32_t turns = atomic_load(&shared.seen);
		bool claimed = is_claimed();

		lock_take(&shared.lock);
		check_passed(claimed, turns);
		take_turn();
	}
	return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *))
{
	assert_int_equal(pthread_create(thread, NULL, run, NULL), 0);
}

static void start_busy(pthread_t *threads, void *(*run)(void *))
{
	uint32_t all = shared.running + BUSY;

	for (int i = 0; i < BUSY; i++)
		start(&threads[i], run);
	while (shared.running < all)
		sched_yield();
}

static void end(const pthread_t *threads, int n)
{
	shared.stop = true;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared.both, 0);
	assert_int_equal(shared.passed, 0);
	assert_int_equal(shared.lock.word, 0);
}

static void claimant_is_passed_by_no_thread(void **state)
{
	pthread_t threads[2 * BUSY];

	(void)state;
	start_busy(threads, try_for_ever);
	start_busy(threads + BUSY, take_for_ever);
	for (int i = 0; i < TURNS; i++) {
		lock_claim(&shared.lock);
		take_turn();
	}
	end(threads, 2 * BUSY);
}

static void waiter_gets_the_lock_from_busy_threads(void **state)
{
	pthread_t threads[BUSY];

	(void)state;
	start_busy(threads, try_for_ever);
	for (int i = 0; i < TURNS; i++) {
		lock_take(&shared.lock);
		take_turn();
	}
	end(threads, BUSY);
}

static void *take_once(void *unused)
{
	(void)unused;
	lock_take(&shared.lock);
	take_turn();
	return NULL;
}

/* A thread that releases the lock and takes it again at once passes a sleeping waiter. */
static void waiter_that_was_passed_often_claims_the_lock(void **state)
{
	pthread_t thread;
	int passes = 0;

	(void)state;
	assert_true(lock_try(&shared.lock));
	start(&thread, take_once);
	do {
		while (!is_wanted() && !shared.seen)
			sched_yield();
		lock_release(&shared.lock);
	} while (!shared.seen && passes++ < OFTEN && lock_try(&shared.lock));
	end(&thread, 1);
	assert_true(passes <= OFTEN);
}

static void *claim_once(void *unused)
{
	(void)unused;
	lock_claim(&shared.lock);
	take_turn();
	return NULL;
}

static void claimant_comes_before_later_threads(void **state)
{
	pthread_t thread;

	(void)state;
	assert_true(lock_try(&shared.lock));
	assert_false(is_wanted());
	assert_false(lock_try(&shared.lock));
	start(&thread, claim_once);
	while (!is_claimed())
		sched_yield();
	assert_true(is_wanted());
	assert_int_equal(shared.seen, 0);
	lock_release(&shared.lock);
	if (!lock_try(&shared.lock))
		lock_take(&shared.lock);
	assert_int_equal(shared.turns, 1);
	lock_release(&shared.lock);
	end(&thread, 1);
}

static void *change_for_ever(void *unused)
{
	(void)unused;
	while (!shared.stop) {
		lock_take(&shared.lock);
		enter();
		shared.state++;
		lock_notify(&shared.changes);
		leave();
	}
	return NULL;
}

/* A thread that waits for a change releases the lock meanwhile, and misses no change. */
static void await_releases_the_lock_and_misses_no_change(void **state)
{
	pthread_t thread;

	(void)state;
	start(&thread, change_for_ever);
	for (int i = 0; i < TURNS; i++) {
		uint32_t before;

		lock_take(&shared.lock);
		before = shared.state;
		while (shared.state == before)
			lock_wait(&shared.lock, &shared.changes);
		take_turn();
	}
	end(&thread, 1);
}

static void wait_is_counted_with_its_time(void **state)
{
	pthread_t thread;

	(void)state;
	assert_true(lock_try(&shared.lock));
	assert_int_equal(shared.lock.waits, 0);
	start(&thread, take_once);
	while (!is_wanted())
		sched_yield();
	lock_release(&shared.lock);
	end(&thread, 1);
	assert_int_equal(shared.lock.waits, 1);
	assert_true(shared.lock.waited_ns > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(claimant_is_passed_by_no_thread, set_up),
		cmocka_unit_test_setup(waiter_gets_the_lock_from_busy_threads, set_up),
		cmocka_unit_test_setup(waiter_that_was_passed_often_claims_the_lock, set_up),
		cmocka_unit_test_setup(claimant_comes_before_later_threads, set_up),
		cmocka_unit_test_setup(await_releases_the_lock_and_misses_no_change, set_up),
		cmocka_unit_test_setup(wait_is_counted_with_its_time, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
