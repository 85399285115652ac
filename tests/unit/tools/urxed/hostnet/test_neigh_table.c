/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of neighbours: which entries make room for others, the limits of each user, and the
 * addresses of the host that requests come from.
 */
#include "neigh_world.h"

/* --- Several users */

#define MANY 300

static struct neigh_waiter waiters[NEIGH_ENTRIES * 4];
static uint32_t n_waiters;

/* A user neither root nor that of this test. */
static uid_t stranger(uint32_t i)
{
	return geteuid() + 1 + i;
}

static int resolve_for(uint64_t now, uid_t user, uint32_t i)
{
	return neigh_resolve(&w.neigh, now, user, 2, address_of(i), &waiters[n_waiters++], &w.hop);
}

/* A user that resolves many absent addresses displaces its own oldest questions only. */
static void absent_addresses_of_a_user_displace_only_its_own(void **state)
{
	uint32_t i;

	(void)state;
	n_waiters = 0;
	assert_int_equal(resolve_for(T0, 0, 100000), -EINPROGRESS);
	assert_int_equal(resolve_for(T0, NEIGH_PEERS, 200000), -EINPROGRESS);
	assert_int_equal(resolve_for(T0, stranger(1), 300000), -EINPROGRESS);
	for (i = 0; i < MANY; i++)
		assert_int_equal(resolve_for(T0 + 1 + i, stranger(0), i), -EINPROGRESS);
	assert_in_range(w.neigh.table.n_incomplete, 4, NEIGH_INCOMPLETE_MAX / 2 + 3);
	/* No callback ran within neigh_resolve. The newest questions are still asked. */
	assert_int_equal(w.answers, 0);
	neigh_tick(&w.neigh, T0 + MANY);
	assert_int_equal(w.answers, MANY + 3 - w.neigh.table.n_incomplete);
	assert_int_equal(w.status, -EHOSTUNREACH);
	assert_false(waiters[3].waits);
	assert_true(waiters[n_waiters - 1].waits);
	for (i = 0; i < 3; i++)
		assert_true(waiters[i].waits);
	/* An address that answers is resolved for everybody, also for that user. */
	w.answers = 0;
	for (i = 0; i < 4; i++) {
		const uid_t users[] = {0, stranger(1), NEIGH_PEERS, stranger(0)};

		assert_int_equal(resolve_for(T0 + MANY + i, users[i], 400000 + i), -EINPROGRESS);
		advertise(T0 + MANY + i, 400000 + i, peer_mac, 0);
		assert_int_equal(w.answers, i + 1);
		assert_int_equal(w.status, 0);
	}
}

/* Questions never displace addresses that are known. */
static void known_addresses_stay_while_others_are_asked(void **state)
{
	uint32_t i;

	(void)state;
	n_waiters = 0;
	for (i = 0; i < 100; i++) {
		assert_int_equal(resolve_for(T0, stranger(1), 100000 + i), -EINPROGRESS);
		advertise(T0, 100000 + i, peer_mac, 0);
	}
	for (i = 0; i < 1500; i++) {
		resolve_for(T0 + 1, stranger(0), i);
		resolve_for(T0 + 1, NEIGH_PEERS, 200000 + i / 2);
		neigh_tick(&w.neigh, T0 + 1);
	}
	for (i = 0; i < 100; i++)
		assert_int_equal(resolve_for(T0 + 2, 0, 100000 + i), 0);
}

/* Who makes many stations answer fills its own share of the table. */
static void answered_addresses_of_a_user_displace_only_its_own(void **state)
{
	uint32_t i;

	(void)state;
	n_waiters = 0;
	for (i = 0; i < 10; i++) {
		assert_int_equal(resolve_for(T0, NEIGH_PEERS, 100000 + i), -EINPROGRESS);
		advertise(T0, 100000 + i, peer_mac, 0);
	}
	for (i = 0; i < 2 * NEIGH_ENTRIES; i++) {
		assert_int_equal(resolve_for(T0 + 1 + i, stranger(0), i), -EINPROGRESS);
		advertise(T0 + 1 + i, i, peer_mac, 0);
	}
	for (i = 0; i < 10; i++)
		assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES + 1, 0, 100000 + i), 0);
	assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES + 1, 0, 2 * NEIGH_ENTRIES - 1), 0);
	assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES + 1, 0, 0), -EINPROGRESS);
	/* Its share is half of the table, also while nobody else needs the rest. */
	assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES + 1, 0,
				     2 * NEIGH_ENTRIES - NEIGH_ENTRIES * 3 / 4),
			 -EINPROGRESS);
}

static void resolve_answered(uint64_t now, uid_t user, uint32_t i)
{
	assert_int_equal(resolve_for(now, user, i), -EINPROGRESS);
	advertise(now, i, peer_mac, 0);
}

/* In a table that other users have filled, each user gets the place of one entry. */
static void user_without_entries_displaces_one_in_a_full_table(void **state)
{
	uint32_t i;

	(void)state;
	n_waiters = 0;
	for (i = 0; i < NEIGH_ENTRIES; i++)
		resolve_answered(T0 + i, stranger(i), i);
	for (i = 0; i < 10; i++)
		resolve_answered(T0 + NEIGH_ENTRIES + i, stranger(NEIGH_ENTRIES), 100000 + i);
	for (i = 1; i < NEIGH_ENTRIES; i++)
		assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES, 0, i), 0);
	assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES, 0, 100009), 0);
}

/* Questions without an answer displace one entry of root, too, and then one another. */
static void questions_displace_one_in_a_full_table(void **state)
{
	uint32_t i;

	(void)state;
	n_waiters = 0;
	for (i = 0; i < NEIGH_ENTRIES; i++)
		resolve_answered(T0 + i, 0, i);
	for (i = 0; i < 10; i++)
		assert_int_equal(resolve_for(T0 + NEIGH_ENTRIES + i, stranger(0), 100000 + i),
				 -EINPROGRESS);
	for (i = 1; i < NEIGH_ENTRIES; i++)
		assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES, 0, i), 0);
	advertise(T0 + 2 * NEIGH_ENTRIES, 100009, peer_mac, 0);
	assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES, 0, 100009), 0);
}

/* --- Proven entries */

/* Returns true if other hosts' entry of the address has that MAC, without a use of the entry. */
static bool has_entry(uint32_t i, const uint8_t *mac)
{
	struct neigh_key key = {.resolver = NEIGH_BY_DAEMON};
	struct neigh_entry *e;

	memcpy(key.ip, address_of(i), sizeof(key.ip));
	e = neigh_table_find(&w.neigh.table, &key);
	return e && !memcmp(e->mac, mac, 6);
}

static void learn_for_peers(uint64_t now, uint32_t i, const uint8_t *mac, bool use)
{
	struct neigh_waiter waiter;

	assert_int_equal(
		neigh_resolve(&w.neigh, now, NEIGH_PEERS, 2, address_of(i), &waiter, &w.hop),
		-EINPROGRESS);
	advertise(now, i, mac, 0);
	if (use)
		assert_true(neigh_knows(&w.neigh, now, address_of(i), 0, mac));
}

static void learn_some(uint64_t now, uint32_t first, uint32_t n, bool many_macs, bool use)
{
	uint8_t mac[6] = {2, 0x66};

	for (uint32_t i = first; i < first + n; i++) {
		if (many_macs)
			memcpy(mac + 2, &i, sizeof(i));
		learn_for_peers(now + i, i, mac, use);
	}
}

/* Learns more addresses than other hosts have places. They have a MAC each, or all the same. */
static void learn_many(uint64_t now, uint32_t first, bool many_macs, bool use)
{
	learn_some(now, first, NEIGH_ENTRIES, many_macs, use);
}

static void used_neighbour_stays_when_many_come(void **state)
{
	for (int how = 0; how < 4; how++) {
		neigh_fini(&w.neigh);
		setup(state);
		learn_for_peers(T0, 100000, peer_mac, true);
		learn_for_peers(T0, 100001, peer_mac, false);
		learn_many(T0, 0, how & 1, how & 2);
		assert_true(has_entry(100000, peer_mac));
		/* One that the host never used again goes. */
		assert_false(has_entry(100001, peer_mac));
		learn_many(T0 + SECOND, 200000, how & 1, how & 2);
		assert_true(has_entry(100000, peer_mac));
	}
}

/*
 * The neighbour is in use, so many stations' entries become the oldest before it does. These do not
 * take all places of proven entries first.
 */
static void neighbour_in_use_stays_when_many_come(void **state)
{
	(void)state;
	learn_for_peers(T0, 100000, peer_mac, true);
	learn_some(T0, 0, NEIGH_ENTRIES / 2 - 10, true, true);
	assert_true(neigh_knows(&w.neigh, T0 + NEIGH_ENTRIES, address_of(100000), 0, peer_mac));
	learn_many(T0 + NEIGH_ENTRIES, 200000, true, true);
	assert_true(has_entry(100000, peer_mac));
}

/* Places are left for other stations while one answers for any number of addresses. */
static void station_with_many_addresses_leaves_places(void **state)
{
	(void)state;
	learn_many(T0, 0, false, true);
	learn_for_peers(T0 + SECOND, 100000, peer_mac, true);
	learn_many(T0 + SECOND, 200000, false, true);
	assert_true(has_entry(100000, peer_mac));
}

static void idle_neighbour_makes_place_for_a_used_one(void **state)
{
	const uint64_t later = T0 + NEIGH_PROVEN_IDLE_NS / 2;

	(void)state;
	learn_for_peers(T0, 100000, peer_mac, true);
	learn_for_peers(T0, 100001, peer_mac, true);
	learn_many(T0, 0, true, true);
	assert_true(neigh_knows(&w.neigh, later, address_of(100000), 0, peer_mac));
	learn_many(later, 200000, true, true);
	assert_true(has_entry(100001, peer_mac));
	learn_many(T0 + NEIGH_PROVEN_IDLE_NS, 300000, true, true);
	assert_true(has_entry(100000, peer_mac));
	assert_false(has_entry(100001, peer_mac));
}

/* The station that takes an address over does not take the protection of the former one. */
static void station_that_takes_over_an_address_is_not_proven(void **state)
{
	(void)state;
	learn_for_peers(T0, 100000, peer_mac, true);
	learn_many(T0, 0, true, true);
	advertise(T0 + SECOND, 100000, thief_mac, 0);
	for (uint64_t i = 1; i <= NEIGH_PROBES; i++)
		neigh_tick(&w.neigh, T0 + SECOND + i * NEIGH_PROBE_NS);
	assert_true(has_entry(100000, thief_mac));
	learn_many(T0 + 2 * SECOND, 200000, true, false);
	assert_false(has_entry(100000, thief_mac));
}

/* Claims of its own addresses put a station's entries into PROBING: these go before proven ones. */
static void probed_neighbours_go_before_proven_ones(void **state)
{
	(void)state;
	learn_for_peers(T0, 100000, peer_mac, true);
	learn_many(T0, 0, true, true);
	for (uint32_t i = 0; i < NEIGH_ENTRIES; i++)
		advertise(T0 + SECOND, i, thief_mac, 0);
	assert_true(neigh_knows(&w.neigh, T0 + SECOND, address_of(100000), 0, peer_mac));
	for (uint32_t i = 0; i < 100; i++)
		learn_for_peers(T0 + SECOND, 200000 + i, thief_mac, false);
	assert_true(has_entry(100000, peer_mac));
}

/* --- Quotas */

/* Root has no quota, but cannot keep others from resolving. */
static void users_without_quota_leave_room(void **state)
{
	(void)state;
	n_waiters = 0;
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(resolve_for(T0 + i, 0, i), -EINPROGRESS);
	assert_int_equal(w.neigh.table.n_incomplete, NEIGH_INCOMPLETE_MAX);
	assert_int_equal(resolve_for(T0 + MANY, NEIGH_PEERS, 100000), -EINPROGRESS);
	assert_int_equal(resolve_for(T0 + MANY, stranger(0), 100001), -EINPROGRESS);
	assert_int_equal(resolve_for(T0 + MANY + 1, 0, 100002), -EINPROGRESS);
	assert_true(waiters[MANY].waits);
	assert_true(waiters[MANY + 1].waits);
	advertise(T0 + MANY + 1, 100000, peer_mac, 0);
	assert_false(waiters[MANY].waits);
}

/* The number of those who wait is limited for each user, whatever they wait for. */
static void waiters_of_a_user_are_limited(void **state)
{
	static struct neigh_waiter crowd[NEIGH_WAITERS_MAX];
	struct neigh_waiter waiter;
	uint32_t n = 0;

	(void)state;
	while (!neigh_resolve(&w.neigh, T0, stranger(0), 2, address_of(1), &crowd[n], &w.hop) ||
	       crowd[n].waits)
		n++;
	assert_int_equal(n, NEIGH_WAITERS_MAX / 2);
	assert_int_equal(
		neigh_resolve(&w.neigh, T0, stranger(0), 2, address_of(1), &waiter, &w.hop),
		-ENOSPC);
	assert_int_equal(
		neigh_resolve(&w.neigh, T0, stranger(1), 2, address_of(1), &waiter, &w.hop),
		-EINPROGRESS);
	neigh_cancel(&w.neigh, &waiter);
	neigh_cancel(&w.neigh, &crowd[0]);
	assert_int_equal(
		neigh_resolve(&w.neigh, T0, stranger(0), 2, address_of(1), &crowd[0], &w.hop),
		-EINPROGRESS);
	advertise(T0, 1, peer_mac, 0);
	assert_int_equal(w.answers, n);
	assert_int_equal(w.neigh.waiting.total, 0);
}

/* --- Several addresses of the host */

/* The entry is that of the first request, whose source is another address. */
/* Two requests from different addresses wait for one next hop; the address `removed` goes. */
static void remove_source(uint8_t removed)
{
	struct neigh_waiter asked[2];
	struct host_address *vip = &w.host.addresses[3];

	assert_int_equal(host_add_text(&w.host, "2001:db8:1::7/128", 0), 0);
	assert_int_equal(vip->prefix_len, 128);
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 2, address_of(1), &asked[0], &w.hop),
			 -EINPROGRESS);
	assert_int_equal(
		neigh_resolve_persistently(&w.neigh, T0, 0, 3, address_of(1), &asked[1], &w.hop),
		-EINPROGRESS);
	w.host.addresses[removed].valid = false;
	neigh_host_changed(&w.neigh);
	assert_int_equal(w.answers, 1);
	assert_int_equal(w.status, -ENETUNREACH);
	assert_int_equal(asked[0].waits, removed == 3);
	assert_int_equal(asked[1].waits, removed == 2);
	advertise(T0, 1, peer_mac, 0);
	assert_int_equal(w.answers, 2);
	assert_int_equal(w.status, 0);
}

static void later_request_ends_with_its_source(void **state)
{
	(void)state;
	remove_source(3);
}

static void first_request_ends_with_its_source(void **state)
{
	(void)state;
	remove_source(2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(absent_addresses_of_a_user_displace_only_its_own),
		TEST(known_addresses_stay_while_others_are_asked),
		TEST(answered_addresses_of_a_user_displace_only_its_own),
		TEST(user_without_entries_displaces_one_in_a_full_table),
		TEST(questions_displace_one_in_a_full_table),
		TEST(used_neighbour_stays_when_many_come),
		TEST(neighbour_in_use_stays_when_many_come),
		TEST(station_with_many_addresses_leaves_places),
		TEST(idle_neighbour_makes_place_for_a_used_one),
		TEST(station_that_takes_over_an_address_is_not_proven),
		TEST(probed_neighbours_go_before_proven_ones),
		TEST(users_without_quota_leave_room),
		TEST(waiters_of_a_user_are_limited),
		TEST(later_request_ends_with_its_source),
		TEST(first_request_ends_with_its_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
