/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "urxed/session/quota.h"
#include "urxed/session/user_counts.h"

#define LIMIT 1024

/* A user that is neither root nor the user of this test. */
static uid_t stranger(void)
{
	return geteuid() + 1;
}

/* The most entries that a user gets while other users have `others`. */
static uint32_t greed(uint32_t others)
{
	uint32_t own = 0;

	while (quota_allows(stranger(), own, own + others, LIMIT))
		own++;
	return own;
}

static void user_gets_half_of_what_others_leave(void **state)
{
	(void)state;
	assert_int_equal(greed(0), LIMIT / 2);
	assert_int_equal(greed(LIMIT / 2), LIMIT / 4);
	assert_int_equal(greed(LIMIT - 2), 1);
	assert_int_equal(greed(LIMIT - 1), 1);
	assert_int_equal(greed(LIMIT), 0);
	/* Entries of root count in the total. */
	assert_int_equal(greed(LIMIT + 1), 0);
}

static void next_user_always_gets_some(void **state)
{
	uint32_t user, taken = 0;

	(void)state;
	for (user = 0; user < 8; user++) {
		uint32_t got = greed(taken);

		assert_true(got > 0);
		taken += got;
	}
	assert_true(taken < LIMIT);
}

/* As many greedy users as there may be in a small group. */
static void greedy_users_leave_room_for_many_others(void **state)
{
	const uint32_t limit = 64 * LIMIT;
	uint32_t user, taken = 0, own;

	(void)state;
	for (user = 0; user < 40; user++) {
		for (own = 0; quota_allows(stranger(), own, own + taken, limit); own++)
			;
		assert_true(own >= limit / 1024);
		taken += own;
	}
	assert_true(taken < limit);
}

static void root_and_daemon_user_have_no_quota(void **state)
{
	(void)state;
	assert_true(quota_allows(0, LIMIT, LIMIT, LIMIT));
	assert_true(quota_allows(geteuid(), LIMIT, LIMIT, LIMIT));
}

static void connections_are_limited_by_descriptors(void **state)
{
	struct rlimit before, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 1000;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_in_range(quota_connections(4096), 50, 100);
	assert_int_equal(quota_connections(20), 20);
	few.rlim_cur = 10;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(quota_connections(4096), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Each user is counted for itself, and only as long as it holds something. */
static void counts_of_users_are_separate(void **state)
{
	struct user_counts counts = {0};
	uid_t user;

	(void)state;
	for (user = stranger(); user < stranger() + 20; user++) {
		assert_int_equal(user_counts_take(&counts, user, LIMIT), 0);
		assert_int_equal(user_counts_add(&counts, user), 0);
		assert_int_equal(user_counts_get(&counts, user), 2);
	}
	assert_int_equal(counts.total, 40);
	assert_int_equal(counts.len, 20);
	/* 40 of 42 are taken: one of these users gets no third, another user gets a first. */
	assert_int_equal(user_counts_take(&counts, stranger(), 42), -ENOSPC);
	assert_int_equal(user_counts_take(&counts, user, 42), 0);
	user_counts_drop(&counts, user);
	while (user-- > stranger()) {
		user_counts_drop(&counts, user);
		user_counts_drop(&counts, user);
		assert_int_equal(user_counts_get(&counts, user), 0);
	}
	assert_int_equal(counts.total, 0);
	assert_int_equal(counts.len, 0);
	user_counts_free(&counts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_gets_half_of_what_others_leave),
		cmocka_unit_test(next_user_always_gets_some),
		cmocka_unit_test(greedy_users_leave_room_for_many_others),
		cmocka_unit_test(root_and_daemon_user_have_no_quota),
		cmocka_unit_test(connections_are_limited_by_descriptors),
		cmocka_unit_test(counts_of_users_are_separate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
