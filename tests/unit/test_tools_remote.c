/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who speaks to which remote queue pair, and the hash table of DPDK's behind it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <netdev/netdev.h>

#include "dpdk_hash.h"
#include "remote.h"

static struct remote_table table;
static struct remote_owner a, b;

static int setup(void **state)
{
	(void)state;
	a = b = (struct remote_owner){0};
	return remote_open(&table);
}

static int teardown(void **state)
{
	(void)state;
	remote_close(&table);
	return 0;
}

static struct remote_key key(uint8_t host, uint32_t qpn)
{
	return (struct remote_key){.gid = {0xfe, 0x80, [15] = host}, .qpn = qpn};
}

static int take(struct remote_owner *owner, uint8_t host, uint32_t qpn)
{
	const struct remote_key k = key(host, qpn);

	return remote_take(&table, owner, &k);
}

static int put(struct remote_owner *owner, uint8_t host, uint32_t qpn)
{
	const struct remote_key k = key(host, qpn);

	return remote_put(&table, owner, &k);
}

static struct remote_owner *find(uint8_t host, uint32_t qpn)
{
	const struct remote_key k = key(host, qpn);

	return remote_find(&table, &k);
}

static void the_first_owns_it(void **state)
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

static void it_is_counted(void **state)
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

static void who_goes_leaves_nothing(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(take(&a, 1, i), 0);
	assert_int_equal(take(&b, 2, 0), 0);
	remote_put_all(&table, &a);
	for (i = 0; i < 100; i++)
		assert_null(find(1, i));
	assert_int_equal(a.n, 0);
	assert_ptr_equal(find(2, 0), &b);
}

/* One owner has its share and no more; together they fill the table to the last entry. */
static void nobody_fills_it_for_others(void **state)
{
	static struct remote_owner owners[REMOTE_MAX / REMOTE_PER_OWNER];
	uint32_t i, n = sizeof(owners) / sizeof(owners[0]);

	(void)state;
	for (i = 0; i < REMOTE_MAX; i++)
		assert_int_equal(take(&owners[i % n], 1, i), 0);
	assert_int_equal(take(&owners[0], 2, 0), -ENOSPC);
	assert_int_equal(take(&a, 2, 0), -ENOSPC);
	for (i = 0; i < REMOTE_MAX; i++)
		assert_ptr_equal(find(1, i), &owners[i % n]);
	assert_int_equal(put(&owners[3], 1, 3), 0);
	assert_int_equal(take(&a, 2, 0), 0);
	for (i = 0; i < n; i++)
		remote_put_all(&table, &owners[i]);
	assert_null(find(1, 4));
}

static void a_hash_keeps_the_newest_number(void **state)
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

static void a_hash_has_room_for_all_and_no_more(void **state)
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

static int start_dpdk(void **state)
{
	char why[256];

	(void)state;
	return netdev_dpdk_start(why, sizeof(why));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_owns_it),
		TEST(it_is_counted),
		TEST(who_goes_leaves_nothing),
		TEST(nobody_fills_it_for_others),
		cmocka_unit_test(a_hash_keeps_the_newest_number),
		cmocka_unit_test(a_hash_has_room_for_all_and_no_more),
	};

	return cmocka_run_group_tests(tests, start_dpdk, NULL);
}
