/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Streams that are truncated, damaged, hostile or do not fit: an error, and nothing is left. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "move.h"
#include "require.h"
#include "scene.h"

#define VERSION_AT 8
#define CRC_AT     12
#define LENGTH_AT  16
#define HEADER_LEN 24
#define RECORD_LEN 8

static const struct urxe_ops *node_ops;

static int on_memory(void *arg, struct urxe_state_region *region)
{
	static struct urxe_extent hole;

	(void)arg;
	hole.length = region->length;
	region->extents = &hole;
	region->n_extents = 1;
	return 0;
}

/* Restores without an owner; returns the error, after destroying a device. */
static int try_restore(const uint8_t *stream, size_t length, const struct urxe_state_restore *how,
		       void (*change)(struct urxe_dev_attr *attr))
{
	static const struct urxe_state_restore standard = {.memory = on_memory};
	struct urxe_state_attr saved;
	struct urxe_dev *dev = NULL;
	int rc = urxe_state_read_attr(stream, length, &saved);

	if (rc)
		return rc;
	saved.attr.ops = node_ops;
	if (change)
		change(&saved.attr);
	rc = urxe_state_restore(&saved.attr, 1000000, how ? how : &standard, stream, length, &dev);
	if (!rc)
		urxe_dev_destroy(dev);
	return rc;
}

static void put_le(uint8_t *to, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

/* Sets length and checksum. */
static void seal(uint8_t *stream, size_t length)
{
	uint8_t *rest = malloc(length - 4);

	require(rest);
	put_le(stream + LENGTH_AT, length, 8);
	memcpy(rest, stream, CRC_AT);
	memcpy(rest + CRC_AT, stream + LENGTH_AT, length - LENGTH_AT);
	put_le(stream + CRC_AT, craft_crc32(rest, length - 4), 4);
	free(rest);
}

/* The stream of a scene's node, in memory that can be changed. */
static uint8_t *open_stream(unsigned i, size_t *length)
{
	struct scene *s = scene_open(i);
	uint8_t *saved, *stream;

	if (!s)
		return NULL;
	node_ops = s->pair->node[s->side]->ops;
	scene_save(s, s->side, &saved, length);
	stream = malloc(*length + RECORD_LEN);
	require(stream);
	memcpy(stream, saved, *length);
	urxe_state_free(saved);
	scene_close(s);
	return stream;
}

static void test_truncated(void **state)
{
	uint8_t *stream;
	size_t length;

	(void)state;
	for (unsigned i = 0; (stream = open_stream(i, &length)); i++) {
		assert_int_equal(try_restore(stream, length, NULL, NULL), 0);
		for (size_t n = 0; n < length; n += n < 64 ? 1 : 37)
			assert_int_equal(try_restore(stream, n, NULL, NULL), -EBADMSG);
		free(stream);
	}
}

/* The same with a right checksum: the records themselves do not fit. */
static void test_truncated_records(void **state)
{
	uint8_t *stream, *copy;
	size_t length;

	(void)state;
	for (unsigned i = 0; (stream = open_stream(i, &length)); i++) {
		copy = malloc(length);
		require(copy);
		for (size_t n = HEADER_LEN; n < length; n += 13) {
			memcpy(copy, stream, n);
			seal(copy, n);
			assert_int_equal(try_restore(copy, n, NULL, NULL), -EBADMSG);
		}
		free(copy);
		free(stream);
	}
}

static void test_damaged(void **state)
{
	uint8_t *stream;
	size_t length;

	(void)state;
	for (unsigned i = 0; (stream = open_stream(i, &length)); i++) {
		for (size_t at = 0; at < length; at += at < HEADER_LEN ? 1 : 29) {
			const int expected =
				at >= VERSION_AT && at < CRC_AT ? -EPROTONOSUPPORT : -EBADMSG;

			stream[at] ^= 0x40;
			assert_int_equal(try_restore(stream, length, NULL, NULL), expected);
			stream[at] ^= 0x40;
		}
		free(stream);
	}
}

/* Whatever a sealed stream says: a clear error, or a device that can be destroyed. */
static void test_hostile(void **state)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0xff};
	uint8_t *stream, before;
	uint32_t refused = 0, accepted = 0;
	size_t length;

	(void)state;
	for (unsigned i = 0; (stream = open_stream(i, &length)); i++) {
		for (size_t at = HEADER_LEN; at < length; at += 3) {
			const struct urxe_state_restore how = {.memory = on_memory,
							       .max_bytes = 1 << 24};
			int rc;

			before = stream[at];
			stream[at] = values[at / 3 % 4] ^ (before == values[at / 3 % 4]);
			seal(stream, length);
			rc = try_restore(stream, length, &how, NULL);
			assert_true(rc == 0 || rc == -EBADMSG || rc == -EINVAL || rc == -EFBIG);
			refused += rc != 0;
			accepted += rc == 0;
			stream[at] = before;
		}
		free(stream);
	}
	assert_true(refused > 1000 && accepted > 1000);
}

static void test_versions(void **state)
{
	size_t length;
	uint8_t *stream = open_stream(0, &length);

	(void)state;
	put_le(stream + VERSION_AT, URXE_STATE_VERSION + 1, 4);
	seal(stream, length);
	assert_int_equal(try_restore(stream, length, NULL, NULL), -EPROTONOSUPPORT);
	put_le(stream + VERSION_AT, 0, 4);
	seal(stream, length);
	assert_int_equal(try_restore(stream, length, NULL, NULL), -EBADMSG);
	free(stream);
}

/* Records behind the end, and a record of an unknown kind. */
static void test_records(void **state)
{
	size_t length;
	uint8_t *stream = open_stream(0, &length);

	(void)state;
	memset(stream + length, 0, RECORD_LEN);
	seal(stream, length + RECORD_LEN);
	assert_int_equal(try_restore(stream, length + RECORD_LEN, NULL, NULL), -EBADMSG);
	put_le(stream + length - RECORD_LEN, 99, 4);
	memcpy(stream + length, (const uint8_t[]){11, 0, 0, 0, 0, 0, 0, 0}, RECORD_LEN);
	seal(stream, length + RECORD_LEN);
	assert_int_equal(try_restore(stream, length + RECORD_LEN, NULL, NULL), -EBADMSG);
	free(stream);
}

static void other_mac(struct urxe_dev_attr *attr)
{
	attr->mac[5] ^= 1;
}

static void other_window(struct urxe_dev_attr *attr)
{
	attr->max_packets = 16;
}

static void short_mtu(struct urxe_dev_attr *attr)
{
	attr->mtu = 600;
}

static void slow_link(struct urxe_dev_attr *attr)
{
	attr->link_bps = 1000000000;
	attr->qpn_first = 0x9000;
	attr->qpn_count = 7;
	attr->reorder_ns = 1;
}

static void test_attributes(void **state)
{
	uint8_t *stream;
	size_t length;

	(void)state;
	for (unsigned i = 0; (stream = open_stream(i, &length)); i++) {
		assert_int_equal(try_restore(stream, length, NULL, other_mac), -EINVAL);
		assert_int_equal(try_restore(stream, length, NULL, other_window), -EINVAL);
		assert_int_equal(try_restore(stream, length, NULL, short_mtu), -EINVAL);
		assert_int_equal(try_restore(stream, length, NULL, slow_link), 0);
		free(stream);
	}
}

static int no_memory(void *arg, struct urxe_state_region *region)
{
	(void)arg, (void)region;
	return -ENXIO;
}

static int short_memory(void *arg, struct urxe_state_region *region)
{
	static struct urxe_extent hole;

	(void)arg;
	hole.length = region->length - 1;
	region->extents = &hole;
	region->n_extents = 1;
	return 0;
}

static int no_completion(void *arg, void *cq_ctx, const struct urxe_wc *wc)
{
	(void)arg, (void)cq_ctx, (void)wc;
	return -ENOSPC;
}

static void test_callbacks(void **state)
{
	size_t length;
	uint8_t *stream = open_stream(7, &length);
	struct urxe_state_restore how = {.memory = no_memory};

	(void)state;
	assert_int_equal(try_restore(stream, length, &how, NULL), -ENXIO);
	how.memory = short_memory;
	assert_int_equal(try_restore(stream, length, &how, NULL), -EINVAL);
	how.memory = NULL;
	assert_int_equal(try_restore(stream, length, &how, NULL), -EINVAL);
	how.memory = on_memory;
	how.completion = no_completion;
	assert_int_equal(try_restore(stream, length, &how, NULL), -ENOSPC);
	how.completion = NULL;
	how.max_bytes = 10000;
	assert_int_equal(try_restore(stream, length, &how, NULL), -EFBIG);
	free(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncated),  cmocka_unit_test(test_truncated_records),
		cmocka_unit_test(test_damaged),    cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_versions),   cmocka_unit_test(test_records),
		cmocka_unit_test(test_attributes), cmocka_unit_test(test_callbacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
