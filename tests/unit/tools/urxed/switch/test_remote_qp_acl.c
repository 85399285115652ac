/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registrations of remote QPs, and the DPDK hash table that finds them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lan.h"
#include "urxed/switch/tables/dpdk_hash.h"
#include "urxed/switch/tables/remote_qp_acl.h"

/* QPNs: the first ones of the leases of processes a and b. */
#define A LEASE_QPNS
#define B (9 * LEASE_QPNS)

#define USER_A 1000
#define USER_B 1001

static struct remote_qp_acl table;
static struct remote_qp_owner a, b;

static int setup(void **state)
{
	(void)state;
	a = (struct remote_qp_owner){.process = 1, .user = USER_A};
	b = (struct remote_qp_owner){.process = 9, .user = USER_B};
	return remote_qp_acl_open(&table);
}

static int teardown(void **state)
{
	(void)state;
	remote_qp_acl_close(&table);
	return 0;
}

static struct remote_qp_key key(uint8_t host, uint32_t qpn)
{
	return (struct remote_qp_key){.gid = {0xfe, 0x80, [15] = host}, .qpn = qpn};
}

static int add(struct remote_qp_owner *owner, uint32_t local, uint8_t host, uint32_t qpn)
{
	const struct remote_qp_key k = key(host, qpn);

	return remote_qp_acl_add(&table, owner, local, &k);
}

static int drop(struct remote_qp_owner *owner, uint32_t local, uint8_t host, uint32_t qpn)
{
	const struct remote_qp_key k = key(host, qpn);

	return remote_qp_acl_remove(&table, owner, local, &k);
}

static enum remote_qp_access ask(const struct remote_qp_owner *owner,
				 enum remote_qp_service service, uint8_t host, uint32_t qpn)
{
	const struct remote_qp_key k = key(host, qpn);

	return remote_qp_acl_check_other_host(&table, owner, service, &k);
}

static enum remote_qp_access rc(const struct remote_qp_owner *owner, uint8_t host, uint32_t qpn)
{
	return ask(owner, REMOTE_QP_RC, host, qpn);
}

static enum remote_qp_access uc(const struct remote_qp_owner *owner, uint8_t host, uint32_t qpn)
{
	return ask(owner, REMOTE_QP_UC, host, qpn);
}

/* From the host's address `from` to its address `to`. */
static enum remote_qp_access same_host(const struct remote_qp_owner *owner, uint8_t from,
				       uint8_t to, uint32_t qpn)
{
	const struct remote_qp_key k = key(to, qpn), sip = key(from, 0);

	return remote_qp_acl_check_same_host(&table, owner, sip.gid, &k);
}

static bool cnp(const struct remote_qp_owner *owner, uint8_t host, uint32_t qpn)
{
	const struct remote_qp_key k = key(host, qpn);

	return remote_qp_acl_cnp_to_other_host(&table, owner, &k);
}

static bool same_host_cnp(const struct remote_qp_owner *owner, uint8_t host, uint32_t qpn)
{
	const struct remote_qp_key k = key(host, qpn);

	return remote_qp_acl_cnp_to_same_host(&table, owner, k.gid, &k);
}

static void hear(uint32_t qpn, uint8_t host, enum remote_qp_service service)
{
	const struct remote_qp_key k = key(host, 0);

	remote_qp_acl_heard(&table, qpn, k.gid, service);
}

/* --- Within the host */

static void both_qps_must_be_registered_with_each_other(void **state)
{
	(void)state;
	assert_int_equal(same_host(&a, 1, 1, B), REMOTE_QP_UNREGISTERED);
	assert_int_equal(add(&a, A, 1, B), 0);
	assert_int_equal(same_host(&a, 1, 1, B), REMOTE_QP_NOT_MUTUAL);
	/* Another QP of b, another QP of a, and another host's QP with the same number. */
	assert_int_equal(add(&b, B + 1, 1, A), 0);
	assert_int_equal(add(&b, B, 1, A + 1), 0);
	assert_int_equal(add(&b, B, 2, A), 0);
	assert_int_equal(same_host(&a, 1, 1, B), REMOTE_QP_NOT_MUTUAL);
	assert_int_equal(add(&b, B, 1, A), 0);
	assert_int_equal(same_host(&a, 1, 1, B), REMOTE_QP_GRANTED);
	assert_int_equal(same_host(&b, 1, 1, A), REMOTE_QP_GRANTED);
	/* Each address of the host is another one. */
	assert_int_equal(same_host(&a, 3, 1, B), REMOTE_QP_NOT_MUTUAL);
	assert_int_equal(same_host(&a, 1, 3, B), REMOTE_QP_UNREGISTERED);
	assert_int_equal(drop(&b, B, 1, A), 0);
	assert_int_equal(same_host(&a, 1, 1, B), REMOTE_QP_NOT_MUTUAL);
}

static void third_process_cannot_join_a_pair(void **state)
{
	struct remote_qp_owner thief = {.process = 20, .user = USER_A + 7};
	const uint32_t own = 20 * LEASE_QPNS;

	(void)state;
	assert_int_equal(add(&thief, own, 1, B), 0);
	assert_int_equal(add(&a, A, 1, B), 0);
	assert_int_equal(add(&b, B, 1, A), 0);
	assert_int_equal(same_host(&thief, 1, 1, B), REMOTE_QP_NOT_MUTUAL);
	assert_int_equal(same_host(&thief, 1, 1, A), REMOTE_QP_UNREGISTERED);
	assert_int_equal(same_host(&a, 1, 1, B), REMOTE_QP_GRANTED);
	assert_false(same_host_cnp(&thief, 1, B));
	assert_true(same_host_cnp(&a, 1, B));
	assert_true(same_host_cnp(&thief, 1, B + 1));
	remote_qp_acl_remove_all(&table, &thief);
}

static void qp_may_be_connected_to_itself(void **state)
{
	(void)state;
	assert_int_equal(add(&a, A, 1, A), 0);
	assert_int_equal(same_host(&a, 1, 1, A), REMOTE_QP_GRANTED);
}

/* --- Other hosts */

static void no_registration_makes_another_one_fail(void **state)
{
	(void)state;
	assert_int_equal(rc(&a, 2, 5), REMOTE_QP_UNREGISTERED);
	assert_int_equal(add(&a, A, 2, 5), 0);
	assert_int_equal(rc(&a, 2, 5), REMOTE_QP_GRANTED);
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_UNREGISTERED);
	assert_int_equal(add(&b, B, 2, 5), 0);
	assert_int_equal(rc(&a, 2, 6), REMOTE_QP_UNREGISTERED);
	assert_int_equal(rc(&a, 3, 5), REMOTE_QP_UNREGISTERED);
}

/* Whoever sends, the responder answers to its own peer. */
static void rc_peer_is_found_by_what_the_remote_host_sends(void **state)
{
	(void)state;
	assert_int_equal(add(&b, B, 2, 5), 0); /* the thief was first */
	assert_int_equal(add(&a, A, 2, 5), 0);
	assert_int_equal(rc(&a, 2, 5), REMOTE_QP_GRANTED);
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_GRANTED);
	/* Of other hosts, to other QPs, or of the other service. */
	hear(A, 3, REMOTE_QP_RC);
	hear(A + 1, 2, REMOTE_QP_RC);
	hear(A, 2, REMOTE_QP_UC);
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_GRANTED);
	hear(A, 2, REMOTE_QP_RC);
	assert_int_equal(rc(&a, 2, 5), REMOTE_QP_GRANTED);
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_CONTESTED);
	/* Registering once more does not help the thief. */
	assert_int_equal(add(&b, B + 1, 2, 5), 0);
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_CONTESTED);
	assert_int_equal(drop(&a, A, 2, 5), 0);
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_GRANTED);
}

static void later_process_cannot_take_a_proven_remote_qp(void **state)
{
	(void)state;
	assert_int_equal(add(&a, A, 2, 5), 0);
	hear(A, 2, REMOTE_QP_RC);
	assert_int_equal(add(&b, B, 2, 5), 0);
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_CONTESTED);
	hear(B, 2, REMOTE_QP_RC); /* of another QP of that host, which b is connected to */
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_CONTESTED);
	assert_int_equal(rc(&a, 2, 5), REMOTE_QP_GRANTED);
	/* The earlier one of two that were heard, also if it was heard later. */
	assert_int_equal(drop(&a, A, 2, 5), 0);
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_GRANTED);
}

static void uc_needs_the_first_registration_or_an_answer(void **state)
{
	(void)state;
	assert_int_equal(add(&a, A, 2, 5), 0);
	assert_int_equal(add(&b, B, 2, 5), 0);
	assert_int_equal(uc(&a, 2, 5), REMOTE_QP_GRANTED);
	assert_int_equal(uc(&b, 2, 5), REMOTE_QP_CONTESTED);
	hear(B, 2, REMOTE_QP_UC);
	assert_int_equal(uc(&a, 2, 5), REMOTE_QP_CONTESTED);
	assert_int_equal(uc(&b, 2, 5), REMOTE_QP_GRANTED);
	hear(A, 2, REMOTE_QP_UC);
	assert_int_equal(uc(&a, 2, 5), REMOTE_QP_GRANTED);
	assert_int_equal(uc(&b, 2, 5), REMOTE_QP_CONTESTED);
}

/* A packet for a QP with two registered peers on one host shows neither. */
static void ambiguous_packet_proves_nothing(void **state)
{
	(void)state;
	assert_int_equal(add(&a, A, 2, 5), 0);
	assert_int_equal(add(&b, B, 2, 5), 0);
	assert_int_equal(add(&b, B, 2, 6), 0);
	hear(B, 2, REMOTE_QP_UC);
	assert_int_equal(uc(&b, 2, 5), REMOTE_QP_CONTESTED);
	assert_int_equal(drop(&b, B, 2, 6), 0);
	hear(B, 2, REMOTE_QP_UC);
	assert_int_equal(uc(&b, 2, 5), REMOTE_QP_GRANTED);
}

static void cnp_passes_unless_another_process_is_connected(void **state)
{
	(void)state;
	assert_true(cnp(&b, 2, 5));
	assert_int_equal(add(&a, A, 2, 5), 0);
	assert_true(cnp(&b, 2, 5));
	hear(A, 2, REMOTE_QP_RC);
	assert_true(cnp(&a, 2, 5));
	assert_false(cnp(&b, 2, 5));
}

/* --- Counting and limits */

static void repeated_adds_are_counted(void **state)
{
	(void)state;
	assert_int_equal(add(&a, A, 2, 5), 0);
	assert_int_equal(add(&a, A, 2, 5), 0);
	assert_int_equal(drop(&b, A, 2, 5), -ENOENT);
	assert_int_equal(drop(&a, A + 1, 2, 5), -ENOENT);
	assert_int_equal(drop(&a, A, 2, 5), 0);
	assert_int_equal(rc(&a, 2, 5), REMOTE_QP_GRANTED);
	assert_int_equal(drop(&a, A, 2, 5), 0);
	assert_int_equal(drop(&a, A, 2, 5), -ENOENT);
	assert_int_equal(rc(&a, 2, 5), REMOTE_QP_UNREGISTERED);
	/* Two QPs of one process are connected to one remote QP. */
	assert_int_equal(add(&a, A, 2, 5), 0);
	assert_int_equal(add(&a, A + 1, 2, 5), 0);
	assert_int_equal(drop(&a, A, 2, 5), 0);
	assert_int_equal(rc(&a, 2, 5), REMOTE_QP_GRANTED);
	assert_int_equal(drop(&a, A + 1, 2, 5), 0);
	assert_int_equal(rc(&a, 2, 5), REMOTE_QP_UNREGISTERED);
}

static void leaving_process_releases_all(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(add(&a, A + i, 2, i), 0);
	assert_int_equal(add(&b, B, 2, 0), 0);
	remote_qp_acl_remove_all(&table, &a);
	for (i = 0; i < 100; i++)
		assert_int_equal(rc(&a, 2, i), REMOTE_QP_UNREGISTERED);
	assert_int_equal(a.n, 0);
	assert_null(table.by_local[1]);
	assert_int_equal(rc(&b, 2, 0), REMOTE_QP_GRANTED);
}

/* An owner gets at most its share; many owners together fill the table completely. */
static void owner_gets_at_most_its_share(void **state)
{
	static struct remote_qp_owner owners[REMOTE_QP_MAX / REMOTE_QP_PER_OWNER];
	uint32_t i, n = sizeof(owners) / sizeof(owners[0]);

	(void)state;
	for (i = 0; i < REMOTE_QP_MAX; i++)
		assert_int_equal(add(&owners[i % n], A + i, 2, i), 0);
	assert_int_equal(add(&owners[0], A + i, 2, i), -ENOSPC);
	assert_int_equal(add(&a, A + i, 2, i), -ENOSPC);
	for (i = 0; i < REMOTE_QP_MAX; i++)
		assert_int_equal(uc(&owners[i % n], 2, i), REMOTE_QP_GRANTED);
	assert_int_equal(drop(&owners[3], A + 3, 2, 3), 0);
	assert_int_equal(add(&a, A, 3, 0), 0);
	for (i = 0; i < n; i++)
		remote_qp_acl_remove_all(&table, &owners[i]);
	assert_int_equal(uc(&owners[0], 2, 4), REMOTE_QP_UNREGISTERED);
}

static void local_qp_has_few_remote_qps(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < REMOTE_QP_PER_LOCAL; i++)
		assert_int_equal(add(&a, A, 2, i), 0);
	assert_int_equal(add(&a, A, 2, i), -ENOSPC);
	assert_int_equal(add(&a, A, 2, 0), 0);
	assert_int_equal(add(&a, A + 1, 2, i), 0);
}

/* So that the processes of one user do not make the table slow for another user. */
static void processes_of_a_user_at_one_remote_qp_are_limited(void **state)
{
	struct remote_qp_owner many[REMOTE_QP_CLAIMS_PER_USER + 1];
	uint32_t i;

	(void)state;
	for (i = 0; i <= REMOTE_QP_CLAIMS_PER_USER; i++) {
		many[i] = (struct remote_qp_owner){.process = 100 + i, .user = USER_A};
		assert_int_equal(add(&many[i], (100 + i) * LEASE_QPNS, 2, 5),
				 i < REMOTE_QP_CLAIMS_PER_USER ? 0 : -ENOSPC);
	}
	assert_int_equal(add(&b, B, 2, 5), 0);
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_GRANTED);
	remote_qp_acl_remove_all(&table, &many[0]);
	assert_int_equal(add(&a, A, 2, 5), 0);
	for (i = 1; i < REMOTE_QP_CLAIMS_PER_USER; i++)
		remote_qp_acl_remove_all(&table, &many[i]);
}

/* --- Restart */

/* The record that the store callback has got last for each place. */
static struct remote_qp_record told[8];

static void listen(void *ctx, uint32_t place, const struct remote_qp_record *record)
{
	assert_ptr_equal(ctx, &table);
	assert_in_range(place, 0, 7);
	told[place] = *record;
}

static int recall(uint32_t place, uint32_t process, uint8_t host, uint32_t qpn, uint64_t order)
{
	const struct remote_qp_record record = {.key = key(host, qpn),
						.local = process * LEASE_QPNS + qpn,
						.process = process,
						.order = order};

	return remote_qp_acl_restore(&table, place, &record);
}

static void changes_are_stored(void **state)
{
	(void)state;
	memset(told, 0, sizeof(told));
	table.store = listen;
	table.store_ctx = &table;
	add(&a, A, 2, 5);
	add(&a, A, 2, 5);
	add(&b, B, 2, 6);
	assert_int_equal(told[0].process, a.process);
	assert_int_equal(told[0].local, A);
	assert_int_equal(told[0].key.qpn, 5);
	assert_int_equal(told[1].process, b.process);
	assert_true(told[1].order > told[0].order);
	drop(&a, A, 2, 5);
	assert_int_equal(told[0].process, a.process);
	drop(&a, A, 2, 5);
	assert_int_equal(told[0].process, 0);
	remote_qp_acl_remove_all(&table, &b);
	assert_int_equal(told[1].process, 0);
}

static bool claimable[LEASE_BLOCKS]; /* processes that may claim their leases yet */

/* The survivor stays the first one, before and after it claims its lease. */
static void restored_remote_qp_keeps_its_order(void **state)
{
	(void)state;
	assert_int_equal(recall(2, a.process, 2, 5, 7), 0);
	assert_int_equal(recall(5, a.process, 2, 6, 8), 0);
	assert_int_equal(recall(6, 40, 2, 5, 3), 0);
	assert_int_equal(add(&b, B, 2, 5), 0);
	assert_int_equal(uc(&b, 2, 5), REMOTE_QP_CONTESTED);
	remote_qp_acl_reclaim(&table, &b);
	assert_int_equal(uc(&b, 2, 5), REMOTE_QP_CONTESTED);
	remote_qp_acl_reclaim(&table, &a);
	/* Process 40 was before a. */
	assert_int_equal(uc(&a, 2, 5), REMOTE_QP_CONTESTED);
	remote_qp_acl_forget(&table, 40);
	assert_int_equal(uc(&a, 2, 5), REMOTE_QP_GRANTED);
	assert_int_equal(drop(&a, A + 5, 2, 5), -ENOENT);
	assert_int_equal(add(&a, A + 5, 2, 5), 0);
	assert_int_equal(a.n, 2);
	/* Remote QPs that the owner has not registered again are dropped, the others count once. */
	remote_qp_acl_end_restore(&table, claimable);
	assert_int_equal(a.n, 1);
	assert_int_equal(uc(&a, 2, 6), REMOTE_QP_UNREGISTERED);
	assert_int_equal(uc(&b, 2, 5), REMOTE_QP_CONTESTED);
	assert_int_equal(drop(&a, A + 5, 2, 5), 0);
	assert_int_equal(uc(&b, 2, 5), REMOTE_QP_GRANTED);
}

/* The next daemon knows to whom a host has sent: an earlier registration does not take over. */
static void restored_remote_qp_keeps_its_answers(void **state)
{
	struct remote_qp_record record;

	(void)state;
	table.store = listen;
	table.store_ctx = &table;
	add(&a, A, 2, 5);
	hear(A, 2, REMOTE_QP_RC);
	record = told[0];
	remote_qp_acl_remove_all(&table, &a);
	table.store = NULL;
	remote_qp_acl_close(&table);
	assert_int_equal(remote_qp_acl_open(&table), 0);
	record.order = 9;
	assert_int_equal(remote_qp_acl_restore(&table, 0, &record), 0);
	assert_int_equal(recall(1, b.process, 2, 5, 1), 0);
	remote_qp_acl_reclaim(&table, &a);
	remote_qp_acl_reclaim(&table, &b);
	assert_int_equal(rc(&a, 2, 5), REMOTE_QP_GRANTED);
	assert_int_equal(rc(&b, 2, 5), REMOTE_QP_CONTESTED);
}

static void unclaimed_remote_qp_is_released(void **state)
{
	(void)state;
	assert_int_equal(recall(0, 3, 2, 5, 1), 0);
	assert_int_equal(recall(1, 4, 2, 6, 2), 0);
	assert_int_equal(add(&a, A, 2, 5), 0);
	assert_int_equal(add(&a, A + 1, 2, 6), 0);
	assert_int_equal(uc(&a, 2, 5), REMOTE_QP_CONTESTED);
	remote_qp_acl_forget(&table, 3);
	assert_int_equal(uc(&a, 2, 5), REMOTE_QP_GRANTED);
	assert_int_equal(uc(&a, 2, 6), REMOTE_QP_CONTESTED);
	claimable[4] = true;
	remote_qp_acl_end_restore(&table, claimable);
	assert_int_equal(uc(&a, 2, 6), REMOTE_QP_CONTESTED);
	claimable[4] = false;
	remote_qp_acl_end_restore(&table, claimable);
	assert_int_equal(uc(&a, 2, 6), REMOTE_QP_GRANTED);
}

static void invalid_stored_entry_is_ignored(void **state)
{
	struct remote_qp_record wrong = {.key = key(2, 9), .local = 1u << 24, .process = 3};
	uint32_t i;

	(void)state;
	assert_int_equal(recall(3, 3, 2, 5, 1), 0);
	assert_int_equal(recall(3, 3, 2, 6, 2), -EINVAL);
	assert_int_equal(recall(2, 3, 2, 6, 2), -EINVAL);
	assert_int_equal(recall(4, 3, 2, 5, 2), -EINVAL);
	assert_int_equal(recall(4, LEASE_BLOCKS, 2, 6, 2), -EINVAL);
	assert_int_equal(recall(4, 0, 2, 6, 2), -EINVAL);
	assert_int_equal(recall(REMOTE_QP_MAX, 3, 2, 6, 2), -EINVAL);
	assert_int_equal(remote_qp_acl_restore(&table, 4, &wrong), -EINVAL);
	/* The skipped places are usable. */
	for (i = 0; i < REMOTE_QP_PER_OWNER; i++)
		assert_int_equal(add(&a, B + i, 2, i), 0);
	assert_int_equal(table.n, REMOTE_QP_PER_OWNER + 1);
	remote_qp_acl_remove_all(&table, &a);
}

static void dpdk_hash_keeps_the_newest_value(void **state)
{
	struct hash *h;
	uint32_t k = 7;

	(void)state;
	assert_int_equal(hash_create("test", 8, sizeof(k), &h), 0);
	assert_int_equal(hash_get(h, &k), -1);
	assert_int_equal(hash_set(h, &k, 1), 0);
	assert_int_equal(hash_set(h, &k, UINT32_MAX), 0);
	assert_int_equal(hash_get(h, &k), UINT32_MAX);
	hash_remove(h, &k);
	assert_int_equal(hash_get(h, &k), -1);
	hash_destroy(h);
}

static void dpdk_hash_holds_its_capacity(void **state)
{
	struct hash *h;
	uint32_t k;

	(void)state;
	assert_int_equal(hash_create("test", 64, sizeof(k), &h), 0);
	for (k = 0; k < 64; k++)
		assert_int_equal(hash_set(h, &k, k), 0);
	assert_int_equal(hash_set(h, &k, k), -ENOSPC);
	k = 9;
	hash_remove(h, &k);
	k = 64;
	assert_int_equal(hash_set(h, &k, k), 0);
	for (k = 0; k <= 64; k++)
		assert_int_equal(hash_get(h, &k), k == 9 ? -1 : (int64_t)k);
	hash_destroy(h);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* What the peer of a direct uplink answers does not pass the switch. */
static void process_with_a_direct_uplink_has_its_remote_qps(void **state)
{
	(void)state;
	add(&b, B, 2, 7);
	add(&a, A, 2, 7);
	add(&b, B + 1, 2, 8);
	assert_int_equal(rc(&b, 2, 7), REMOTE_QP_GRANTED);
	remote_qp_acl_hear_always(&table, &a);
	add(&a, A + 1, 2, 8);
	for (uint32_t qpn = 7; qpn <= 8; qpn++) {
		assert_int_equal(rc(&a, 2, qpn), REMOTE_QP_GRANTED);
		assert_int_equal(rc(&b, 2, qpn), REMOTE_QP_CONTESTED);
		assert_int_equal(uc(&b, 2, qpn), REMOTE_QP_CONTESTED);
	}
	drop(&a, A, 2, 7);
	assert_int_equal(rc(&b, 2, 7), REMOTE_QP_GRANTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_qps_must_be_registered_with_each_other),
		TEST(third_process_cannot_join_a_pair),
		TEST(qp_may_be_connected_to_itself),
		TEST(no_registration_makes_another_one_fail),
		TEST(rc_peer_is_found_by_what_the_remote_host_sends),
		TEST(later_process_cannot_take_a_proven_remote_qp),
		TEST(process_with_a_direct_uplink_has_its_remote_qps),
		TEST(uc_needs_the_first_registration_or_an_answer),
		TEST(ambiguous_packet_proves_nothing),
		TEST(cnp_passes_unless_another_process_is_connected),
		TEST(repeated_adds_are_counted),
		TEST(leaving_process_releases_all),
		TEST(owner_gets_at_most_its_share),
		TEST(local_qp_has_few_remote_qps),
		TEST(processes_of_a_user_at_one_remote_qp_are_limited),
		TEST(changes_are_stored),
		TEST(restored_remote_qp_keeps_its_order),
		TEST(restored_remote_qp_keeps_its_answers),
		TEST(unclaimed_remote_qp_is_released),
		TEST(invalid_stored_entry_is_ignored),
		cmocka_unit_test(dpdk_hash_keeps_the_newest_value),
		cmocka_unit_test(dpdk_hash_holds_its_capacity),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
