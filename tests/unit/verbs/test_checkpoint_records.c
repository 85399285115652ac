/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fields of each record of a saved process: their order, and the bytes of each. One function
 * writes and reads a record, so a stream that it reads again does not show a wrong order. This test
 * has the order a second time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint/image/checkpoint_records.h"
#include "engine/crc.h"

static uint8_t written[4096], expected[4096];
static size_t n_expected;

/* Appends fields to the expected bytes, little endian. The list has two numbers for each field: its
 * bytes and its value. */
static void expect(const uint64_t *list, size_t n)
{
	for (size_t i = 0; i < n; i += 2)
		for (uint64_t byte = 0; byte < list[i]; byte++)
			expected[n_expected++] = (uint8_t)(list[i + 1] >> 8 * byte);
}

#define U8(value)  1, value
#define U16(value) 2, value
#define U32(value) 4, value
#define U48(value) 6, value
#define U64(value) 8, value

#define EXPECT(...)                                           \
	do {                                                  \
		const uint64_t list[] = {__VA_ARGS__};        \
                                                              \
		expect(list, sizeof(list) / sizeof(list[0])); \
	} while (0)

/* The record's fields, as the function name##_fields writes them, have the expected bytes. */
#define CHECK(name, record)                                                             \
	do {                                                                            \
		const size_t n = n_expected;                                            \
		struct state_stream s;                                                  \
                                                                                        \
		n_expected = 0;                                                         \
		stream_begin_save_to(&s, &checkpoint_format, written, sizeof(written)); \
		name##_fields(&s, record);                                              \
		assert_int_equal(stream_finish_save_to(&s), 0);                         \
		assert_int_equal(s.at, STATE_HEADER + n);                               \
		assert_memory_equal(written + STATE_HEADER, expected, n);               \
	} while (0)

#define CHECK_FIELDS(name, record, ...) \
	do {                            \
		EXPECT(__VA_ARGS__);    \
		CHECK(name, record);    \
	} while (0)

/* --- Members of several records. */

static const struct object_record some_object = {.context = 1, .handle = 2, .user_handle = 3};
#define OBJECT_FIELDS U32(1), U32(2), U64(3)

#define GID_BYTES  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
#define GID_FIELDS U64(0x0807060504030201), U64(0x100f0e0d0c0b0a09)

#define MAC_BYTES 1, 2, 3, 4, 5, 6
#define MAC_FIELD U48(0x060504030201)

/* The values of a ring and of a work queue follow n. */
static struct ring_record ring_after(uint32_t n)
{
	return (struct ring_record){
		.address = n + 1, .offset = n + 2, .mask = n + 3, .shift = n + 4};
}
#define RING_FIELDS(n) U64((n) + 1), U64((n) + 2), U32((n) + 3), U32((n) + 4)

static struct work_queue_record work_queue_after(uint32_t n)
{
	return (struct work_queue_record){
		.ring = ring_after(n), .cursor = n + 5, .base = n + 6, .released = n + 7};
}
#define WORK_QUEUE_FIELDS(n) RING_FIELDS(n), U32((n) + 5), U32((n) + 6), U32((n) + 7)

/* --- The records. */

static void expect_gids(void)
{
	EXPECT(GID_FIELDS, U8(1), U8(0), U16(5));
	for (uint32_t i = 1; i < VNIC_ATTACH_GIDS; i++)
		EXPECT(U64(i), U64(0), U8(0), U8(1), U16(100 + i));
}

static void writes_process(void **state)
{
	struct process_record r = {
		.mac = {MAC_BYTES},
		.mtu = 2,
		.page_size = 3,
		.last_pd = 4,
		.n_blocks = 2,
		.blocks = {6, 7},
		.gids = {{.raw = {GID_BYTES}, .valid = 1, .v1 = 0, .vlan = 5}},
		.link_mtu = 8,
		.up = true,
	};

	(void)state;
	for (uint32_t i = 1; i < VNIC_ATTACH_GIDS; i++)
		r.gids[i] = (struct vnic_attach_gid){
			.raw = {(uint8_t)i}, .v1 = 1, .vlan = (uint16_t)(100 + i)};
	EXPECT(MAC_FIELD, U16(2), U32(3), U32(4), U32(2), U32(6), U32(7));
	expect_gids();
	EXPECT(U16(8), U8(1));
	CHECK(process, &r);
}

static void writes_channel(void **state)
{
	struct channel_record r = {.event_size = 1};

	(void)state;
	CHECK_FIELDS(channel, &r, U32(1));
}

static void writes_context(void **state)
{
	struct context_record r = {
		.memfd_size = 1,
		.ring_offset = 2,
		.mapped_offset = 3,
		.mapped_address = 4,
		.async_channel = 5,
		.poll_ends = 6,
		.hooks = {.poll_cq = 7,
			  .post_recv = 8,
			  .post_srq_recv = 9,
			  .start_poll = 10,
			  .next_poll = 11,
			  .end_poll = 12},
	};

	(void)state;
	CHECK_FIELDS(context, &r, U64(1), U64(2), U64(3), U64(4), U32(5), U32(6), U64(7), U64(8),
		     U64(9), U64(10), U64(11), U64(12));
}

static void writes_pd_mr_and_mw(void **state)
{
	struct pd_record pd = {.object = some_object, .number = 4};
	struct mr_record mr = {
		.object = some_object, .pd = 4, .key = 5, .start = 6, .length = 7, .whole = true};
	struct mw_record mw = {.object = some_object, .pd = 4, .key = 5};

	(void)state;
	CHECK_FIELDS(pd, &pd, OBJECT_FIELDS, U32(4));
	CHECK_FIELDS(mr, &mr, OBJECT_FIELDS, U32(4), U32(5), U64(6), U64(7), U8(1));
	CHECK_FIELDS(mw, &mw, OBJECT_FIELDS, U32(4), U32(5));
}

static void writes_ah(void **state)
{
	struct ah_record r = {
		.object = some_object,
		.pd = 4,
		.path = {.dgid = {{GID_BYTES}},
			 .dmac = {MAC_BYTES},
			 .sgid_index = 7,
			 .traffic_class = 8,
			 .hop_limit = 9,
			 .sl = 10,
			 .flow_label = 11},
	};

	(void)state;
	CHECK_FIELDS(ah, &r, OBJECT_FIELDS, U32(4), GID_FIELDS, MAC_FIELD, U8(7), U8(8), U8(9),
		     U8(10), U32(11));
}

static void writes_cq(void **state)
{
	struct cq_record r = {
		.object = some_object,
		.channel = 4,
		.producer = 5,
		.comp_events = 6,
		.async_events = 7,
		.armed = true,
		.ex_known = false,
		.ring = ring_after(7),
	};

	(void)state;
	CHECK_FIELDS(cq, &r, OBJECT_FIELDS, U32(4), U32(5), U32(6), U32(7), U8(1), U8(0),
		     RING_FIELDS(7));
}

static void writes_srq(void **state)
{
	struct srq_record r = {.object = some_object,
			       .pd = 4,
			       .max_sge = 5,
			       .async_events = 6,
			       .queue = work_queue_after(6)};

	(void)state;
	CHECK_FIELDS(srq, &r, OBJECT_FIELDS, U32(4), U32(5), U32(6), WORK_QUEUE_FIELDS(6));
}

static void writes_qp(void **state)
{
	struct qp_record r = {
		.object = some_object,
		.qpn = 4,
		.pd = 5,
		.send_cq = 6,
		.recv_cq = 7,
		.srq = 8,
		.async_events = 9,
		.qp_type = 10,
		.send_sge = 11,
		.inline_bytes = 12,
		.recv_sge = 13,
		.send = work_queue_after(13),
		.receive = work_queue_after(20),
		.connected = true,
		.dgid = {GID_BYTES},
		.remote_qpn = 28,
	};

	(void)state;
	CHECK_FIELDS(qp, &r, OBJECT_FIELDS, U32(4), U32(5), U32(6), U32(7), U32(8), U32(9), U8(10),
		     U32(11), U32(12), U32(13), WORK_QUEUE_FIELDS(13), WORK_QUEUE_FIELDS(20), U8(1),
		     GID_FIELDS, U32(28));
}

static void writes_descriptor_and_mapping(void **state)
{
	struct descriptor_record descriptor = {
		.number = 1, .kind = 2, .index = 3, .cloexec = true, .nonblock = false};
	struct mapping_record mapping = {
		.context = 1, .start = 2, .length = 3, .offset = 4, .writable = true};

	(void)state;
	CHECK_FIELDS(descriptor, &descriptor, U32(1), U8(2), U32(3), U8(1), U8(0));
	CHECK_FIELDS(mapping, &mapping, U32(1), U64(2), U64(3), U64(4), U8(1));
}

/* Records of events and rings have further fields, which other files write. */
static void writes_event_and_ring(void **state)
{
	struct event_record event = {.element = 1, .type = 2};
	struct ring_bytes_record ring = {.context = 1, .offset = 2, .size = 3};

	(void)state;
	CHECK_FIELDS(unread_event, &event, U64(1), U32(2));
	CHECK_FIELDS(ring_bytes, &ring, U32(1), U64(2), U64(3));
}

static void writes_rdmacm(void **state)
{
	struct rdmacm_record device = {.n_ids = 1, .n_states = 2};
	struct rdmacm_id_record id = {.device = 1,
				      .number = 2,
				      .uid = 3,
				      .ps = 4,
				      .qp_type = 5,
				      .owner = true,
				      .events = 6};

	(void)state;
	CHECK_FIELDS(rdmacm, &device, U32(1), U32(2));
	CHECK_FIELDS(rdmacm_id, &id, U32(1), U32(2), U64(3), U16(4), U8(5), U8(1), U32(6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_process),
		cmocka_unit_test(writes_channel),
		cmocka_unit_test(writes_context),
		cmocka_unit_test(writes_pd_mr_and_mw),
		cmocka_unit_test(writes_ah),
		cmocka_unit_test(writes_cq),
		cmocka_unit_test(writes_srq),
		cmocka_unit_test(writes_qp),
		cmocka_unit_test(writes_descriptor_and_mapping),
		cmocka_unit_test(writes_event_and_ring),
		cmocka_unit_test(writes_rdmacm),
	};

	if (crc_load())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
