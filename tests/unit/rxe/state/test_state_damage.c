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

static void test_truncated_streams_are_refused(void **state)
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
static void test_truncated_streams_with_valid_checksum_are_refused(void **state)
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

static void test_flipped_bits_are_refused(void **state)
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
static void test_sealed_hostile_streams_restore_or_are_refused(void **state)
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

static void test_unknown_stream_versions_are_refused(void **state)
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
static void test_trailing_and_unknown_records_are_refused(void **state)
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

/* All connections of this scene are in the error state. */
#define FAILED_SCENE 7

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

static void other_congestion(struct urxe_dev_attr *attr)
{
	attr->congestion = !attr->congestion;
}

static void test_restore_needs_attributes_of_the_saved_device(void **state)
{
	uint8_t *stream;
	size_t length;

	(void)state;
	for (unsigned i = 0; (stream = open_stream(i, &length)); i++) {
		assert_int_equal(try_restore(stream, length, NULL, other_mac), -EINVAL);
		assert_int_equal(try_restore(stream, length, NULL, other_window), -EINVAL);
		assert_int_equal(try_restore(stream, length, NULL, short_mtu),
				 i == FAILED_SCENE ? 0 : -EINVAL);
		assert_int_equal(try_restore(stream, length, NULL, other_congestion), -EINVAL);
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

static void test_errors_of_callbacks_end_the_restore(void **state)
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

/* Kinds of records, and offsets of fields in them. */
#define REQUESTER_RECORD  35
#define RESEND_PSN_AT     52
#define RESPONDER_RECORD  36
#define MESSAGE_AT        8
#define RESP_MESSAGE_SEND 1
#define STARVED_AT        46
#define ACK_TIMER_AT      57
#define GAP_RECORD        38
#define GAP_TIMER_AT      19

static uint32_t get_le32(const uint8_t *at)
{
	return at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The fields of the first record of this kind, which a record of the next kind follows. */
static uint8_t *find_fields(uint8_t *stream, size_t length, uint32_t kind)
{
	for (uint8_t *at = stream; at + 2 * RECORD_LEN <= stream + length; at++) {
		const uint32_t n = get_le32(at + 4);

		if (get_le32(at) == kind && n < 200 && at + 2 * RECORD_LEN + n <= stream + length &&
		    get_le32(at + RECORD_LEN + n) == kind + 1)
			return at + RECORD_LEN;
	}
	assert_true(false);
	return NULL;
}

/* The stream of a device with one QP in this state. */
static uint8_t *save_one_qp(const struct conn_attr *conn, uint8_t qp_state, size_t *length)
{
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 1, .mem_size = 65536});
	struct urxe_qp_attr attr = conn_qp_attr(conn, 0, pair->node[1], 0x2000);
	struct endpoint end;
	uint8_t *stream;

	conn_create(pair, conn, 0, &end);
	for (attr.state = URXE_QPS_INIT; attr.state <= qp_state; attr.state++)
		assert_int_equal(
			urxe_qp_modify(end.qp, pair->now, &attr, conn_mask(conn->type, attr.state)),
			0);
	node_ops = pair->node[0]->ops;
	move_save(pair->node[0], pair->now, &stream, length);
	pair_destroy(pair);
	return stream;
}

/* A retransmission that ends before its beginning. */
static void test_a_retransmission_ends_after_its_beginning(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	size_t length;
	uint8_t *stream = save_one_qp(&conn, URXE_QPS_RTS, &length), *resend;

	(void)state;
	assert_int_equal(try_restore(stream, length, NULL, NULL), 0);
	resend = find_fields(stream, length, REQUESTER_RECORD) + RESEND_PSN_AT;
	assert_int_equal(get_le32(resend), conn.psn[0]);
	assert_int_equal(get_le32(resend + 4), conn.psn[0]);
	put_le(resend, conn.psn[0] + 100, 4);
	put_le(resend + 4, conn.psn[0] + 99, 4);
	seal(stream, length);
	assert_int_equal(try_restore(stream, length, NULL, NULL), -EBADMSG);
	/* Half the PSN space apart, each PSN is before the other. */
	put_le(resend, conn.psn[0], 4);
	put_le(resend + 4, (conn.psn[0] + 0x800000) & 0xffffff, 4);
	seal(stream, length);
	assert_int_equal(try_restore(stream, length, NULL, NULL), -EBADMSG);
	urxe_state_free(stream);
}

/* A QP that cannot receive yet has no message in progress, whose offset RTR would use. */
static void test_no_message_before_rtr(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	size_t length;
	uint8_t *stream = save_one_qp(&conn, URXE_QPS_INIT, &length);
	uint8_t *message = find_fields(stream, length, RESPONDER_RECORD) + MESSAGE_AT;

	(void)state;
	assert_int_equal(try_restore(stream, length, NULL, NULL), 0);
	*message = RESP_MESSAGE_SEND;
	put_le(message + 1, 0x7fffffff, 4);
	seal(stream, length);
	assert_int_equal(try_restore(stream, length, NULL, NULL), -EBADMSG);
	urxe_state_free(stream);
}

/* A QP without a path answers nothing. If it became ready to answer, it could not be saved again.
 */
static void test_no_answer_before_rtr(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	size_t length;
	uint8_t *stream = save_one_qp(&conn, URXE_QPS_INIT, &length), saved[8];
	uint8_t *fields = find_fields(stream, length, RESPONDER_RECORD);

	(void)state;
	memcpy(saved, fields + ACK_TIMER_AT, sizeof(saved));
	memset(fields + ACK_TIMER_AT, 0, sizeof(saved));
	seal(stream, length);
	assert_int_equal(try_restore(stream, length, NULL, NULL), -EBADMSG);
	memcpy(fields + ACK_TIMER_AT, saved, sizeof(saved));
	seal(stream, length);
	assert_int_equal(try_restore(stream, length, NULL, NULL), 0);
	fields[STARVED_AT] = 1;
	seal(stream, length);
	assert_int_equal(try_restore(stream, length, NULL, NULL), -EBADMSG);
	fields[STARVED_AT] = 0;
	memset(find_fields(stream, length, GAP_RECORD) + GAP_TIMER_AT, 0, sizeof(saved));
	seal(stream, length);
	assert_int_equal(try_restore(stream, length, NULL, NULL), -EBADMSG);
	urxe_state_free(stream);
}

/* Every flag that urxe_qp_modify accepts. */
static void test_all_qp_access_flags_survive_a_restore(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint8_t *stream;
	size_t length;

	(void)state;
	conn.access = NODE_ACCESS | URXE_ACCESS_MW_BIND | URXE_ACCESS_ZERO_BASED |
		      URXE_ACCESS_ON_DEMAND | URXE_ACCESS_FLUSH_GLOBAL |
		      URXE_ACCESS_FLUSH_PERSISTENT;
	stream = save_one_qp(&conn, URXE_QPS_RTS, &length);
	assert_int_equal(try_restore(stream, length, NULL, NULL), 0);
	urxe_state_free(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncated_streams_are_refused),
		cmocka_unit_test(test_truncated_streams_with_valid_checksum_are_refused),
		cmocka_unit_test(test_flipped_bits_are_refused),
		cmocka_unit_test(test_sealed_hostile_streams_restore_or_are_refused),
		cmocka_unit_test(test_unknown_stream_versions_are_refused),
		cmocka_unit_test(test_trailing_and_unknown_records_are_refused),
		cmocka_unit_test(test_restore_needs_attributes_of_the_saved_device),
		cmocka_unit_test(test_errors_of_callbacks_end_the_restore),
		cmocka_unit_test(test_a_retransmission_ends_after_its_beginning),
		cmocka_unit_test(test_no_answer_before_rtr),
		cmocka_unit_test(test_no_message_before_rtr),
		cmocka_unit_test(test_all_qp_access_flags_survive_a_restore),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
