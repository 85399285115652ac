/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Owners of remote QPs, and the DPDK hash table that stores them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lan.h"
#include "urxed/switch/dpdk_hash.h"
#include "urxed/switch/remote_qp_acl.h"

static struct remote_qp_acl table;
static struct remote_qp_owner a, b;

static int setup(void **state)
{
	(void)state;
	a = b = (struct remote_qp_owner){0};
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

static int take(struct remote_qp_owner *owner, uint8_t host, uint32_t qpn)
{
	const struct remote_qp_key k = key(host, qpn);

	return remote_qp_acl_add(&table, owner, &k);
}

static int put(struct remote_qp_owner *owner, uint8_t host, uint32_t qpn)
{
	const struct remote_qp_key k = key(host, qpn);

	return remote_qp_acl_remove(&table, owner, &k);
}

static struct remote_qp_owner *find(uint8_t host, uint32_t qpn)
{
	const struct remote_qp_key k = key(host, qpn);

	return remote_qp_acl_find(&table, &k);
}

static void first_process_owns_a_remote_qp(void **state)
{
	(void)state;
	assert_null(find(1, 5));
	assert_int_equal(take(&a, 1, 5), 0);
	assert_int_equal(take(&b, 1, 5), -EADDRINUSE);
	assert_ptr_equal(find(1, 5), &a);
	assert_int_equal(take(&b, 2, 5), 0);
	assert_int_equal(take(&b, 1, 6), 0);
	assert_ptr_equal(find(2, 5), &b);
}

static void repeated_adds_are_counted(void **state)
{
	(void)state;
	assert_int_equal(take(&a, 1, 5), 0);
	assert_int_equal(take(&a, 1, 5), 0);
	assert_int_equal(put(&b, 1, 5), -ENOENT);
	assert_int_equal(put(&a, 1, 5), 0);
	assert_int_equal(take(&b, 1, 5), -EADDRINUSE);
	assert_int_equal(put(&a, 1, 5), 0);
	assert_int_equal(put(&a, 1, 5), -ENOENT);
	assert_int_equal(take(&b, 1, 5), 0);
}

static void leaving_process_releases_all(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(take(&a, 1, i), 0);
	assert_int_equal(take(&b, 2, 0), 0);
	remote_qp_acl_remove_all(&table, &a);
	for (i = 0; i < 100; i++)
		assert_null(find(1, i));
	assert_int_equal(a.n, 0);
	assert_ptr_equal(find(2, 0), &b);
}

/* An owner gets at most its share; many owners together fill the table completely. */
static void owner_gets_at_most_its_share(void **state)
{
	static struct remote_qp_owner owners[REMOTE_QP_MAX / REMOTE_QP_PER_OWNER];
	uint32_t i, n = sizeof(owners) / sizeof(owners[0]);

	(void)state;
	for (i = 0; i < REMOTE_QP_MAX; i++)
		assert_int_equal(take(&owners[i % n], 1, i), 0);
	assert_int_equal(take(&owners[0], 2, 0), -ENOSPC);
	assert_int_equal(take(&a, 2, 0), -ENOSPC);
	for (i = 0; i < REMOTE_QP_MAX; i++)
		assert_ptr_equal(find(1, i), &owners[i % n]);
	assert_int_equal(put(&owners[3], 1, 3), 0);
	assert_int_equal(take(&a, 2, 0), 0);
	for (i = 0; i < n; i++)
		remote_qp_acl_remove_all(&table, &owners[i]);
	assert_null(find(1, 4));
}

/* The owner that the store callback has got last for each place. */
static uint32_t told[8];

static void listen(void *ctx, uint32_t place, const struct remote_qp_key *k, uint32_t process)
{
	(void)k;
	assert_ptr_equal(ctx, &table);
	assert_in_range(place, 0, 7);
	told[place] = process;
}

static int recall(uint32_t place, uint8_t host, uint32_t qpn, uint32_t process)
{
	const struct remote_qp_key k = key(host, qpn);

	return remote_qp_acl_restore(&table, place, &k, process);
}

static void owner_changes_are_stored(void **state)
{
	(void)state;
	memset(told, 0, sizeof(told));
	table.store = listen;
	table.store_ctx = &table;
	a.process = 3;
	b.process = 4;
	take(&a, 1, 5);
	take(&a, 1, 5);
	take(&b, 1, 6);
	assert_int_equal(told[0], 3);
	assert_int_equal(told[1], 4);
	put(&a, 1, 5);
	assert_int_equal(told[0], 3);
	put(&a, 1, 5);
	assert_int_equal(told[0], 0);
	remote_qp_acl_remove_all(&table, &b);
	assert_int_equal(told[1], 0);
}

/* The remote QP stays its owner's, before and after the owner claims its lease. */
static void restored_remote_qp_belongs_to_its_survivor(void **state)
{
	(void)state;
	a.process = 3;
	b.process = 4;
	assert_int_equal(recall(2, 1, 5, 3), 0);
	assert_int_equal(recall(5, 1, 6, 3), 0);
	assert_int_equal(take(&b, 1, 5), -EADDRINUSE);
	remote_qp_acl_reclaim(&table, &b);
	assert_int_equal(take(&b, 1, 5), -EADDRINUSE);
	remote_qp_acl_reclaim(&table, &a);
	assert_int_equal(take(&b, 1, 5), -EADDRINUSE);
	assert_int_equal(put(&a, 1, 5), -ENOENT);
	assert_int_equal(take(&a, 1, 5), 0);
	assert_int_equal(a.n, 2);
	/* Remote QPs that the owner has not registered again are free, the others count once. */
	remote_qp_acl_end_restore(&table);
	assert_int_equal(a.n, 1);
	assert_int_equal(take(&b, 1, 6), 0);
	assert_int_equal(take(&b, 1, 5), -EADDRINUSE);
	assert_int_equal(put(&a, 1, 5), 0);
	assert_int_equal(take(&b, 1, 5), 0);
}

static void unclaimed_remote_qp_is_released(void **state)
{
	(void)state;
	assert_int_equal(recall(0, 1, 5, 3), 0);
	assert_int_equal(recall(1, 1, 6, 4), 0);
	remote_qp_acl_forget(&table, 3);
	assert_int_equal(take(&a, 1, 5), 0);
	assert_int_equal(take(&a, 1, 6), -EADDRINUSE);
	remote_qp_acl_end_restore(&table);
	assert_int_equal(take(&a, 1, 6), 0);
	assert_ptr_equal(find(1, 5), &a);
}

static void invalid_stored_entry_is_ignored(void **state)
{
	uint32_t i;

	(void)state;
	assert_int_equal(recall(3, 1, 5, 3), 0);
	assert_int_equal(recall(3, 1, 6, 3), -EINVAL);
	assert_int_equal(recall(2, 1, 6, 3), -EINVAL);
	assert_int_equal(recall(4, 1, 5, 3), -EINVAL);
	assert_int_equal(recall(4, 1, 6, LEASE_BLOCKS), -EINVAL);
	assert_int_equal(recall(REMOTE_QP_MAX, 1, 6, 3), -EINVAL);
	/* The skipped places are usable. */
	for (i = 0; i < REMOTE_QP_PER_OWNER; i++)
		assert_int_equal(take(&a, 2, i), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(first_process_owns_a_remote_qp),
		TEST(repeated_adds_are_counted),
		TEST(leaving_process_releases_all),
		TEST(owner_gets_at_most_its_share),
		TEST(owner_changes_are_stored),
		TEST(restored_remote_qp_belongs_to_its_survivor),
		TEST(unclaimed_remote_qp_is_released),
		TEST(invalid_stored_entry_is_ignored),
		cmocka_unit_test(dpdk_hash_keeps_the_newest_value),
		cmocka_unit_test(dpdk_hash_holds_its_capacity),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
