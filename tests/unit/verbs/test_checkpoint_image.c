/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streams of saved processes: those that are kept in the folder of the argument, in a folder for
 * each version, can be read; truncated and damaged ones cannot.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/image/checkpoint_error.h"
#include "checkpoint/image/image.h"
#include "engine/crc.h"

#define STREAM_MAX 65536

static const char *folder;
static uint8_t stream[STREAM_MAX];

static size_t read_stream(const char *name)
{
	char path[4096];
	size_t length;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	length = fread(stream, 1, sizeof(stream), file);
	fclose(file);
	return length;
}

/* The objects of verbs_checkpoint.c when the streams were saved. */
static void check_stream(const char *name, uint32_t channels)
{
	struct image image;
	uint32_t pages = 0;

	assert_int_equal(image_read(&image, stream, read_stream(name)), 0);
	assert_int_equal(image.n[CHECKPOINT_CONTEXT], 1);
	assert_int_equal(image.n[CHECKPOINT_CHANNEL], channels);
	assert_int_equal(image.n[CHECKPOINT_PD], 1);
	assert_int_equal(image.n[CHECKPOINT_MR], 5);
	assert_int_equal(image.n[CHECKPOINT_MW], 1);
	assert_int_equal(image.n[CHECKPOINT_AH], 1);
	assert_int_equal(image.n[CHECKPOINT_CQ], 3);
	assert_int_equal(image.n[CHECKPOINT_SRQ], 1);
	assert_int_equal(image.n[CHECKPOINT_QP], 5);
	/* Each queue pair has two rings, but those with the shared receive queue. */
	assert_int_equal(image.n[CHECKPOINT_RING], 3 + 1 + 2 * 5 - 2);
	assert_int_equal(image.process.n_blocks, 1);
	for (uint32_t i = 0; i < image.n[CHECKPOINT_QP]; i++)
		assert_int_equal(image.qps[i].qpn - image.process.blocks[0], i);
	for (uint32_t i = 0; i < image.n[CHECKPOINT_RING]; i++)
		for (uint32_t j = 0; j < image.rings[i].n_pages; j++, pages++)
			assert_int_equal(image_page(&image.rings[i], j).index, 0);
	assert_int_not_equal(pages, 0);
	/* Version 1 does not tell. */
	for (uint32_t i = 0; i < image.n[CHECKPOINT_MR]; i++)
		assert_true(image.mrs[i].whole);
	image_free(&image);
}

static void reads_version_1(void **state)
{
	(void)state;
	check_stream("v1/polling", 1);
	check_stream("v1/events", 2);
}

/* The objects of cm_checkpoint.c: a connection, a listener, the member of a group, and a request.
 */
static void reads_version_2(void **state)
{
	struct image image;

	(void)state;
	assert_int_equal(image_read(&image, stream, read_stream("v2/connections")), 0);
	assert_int_equal(image.n[CHECKPOINT_CONTEXT], 1);
	assert_int_equal(image.n[CHECKPOINT_QP], 1);
	assert_int_equal(image.n[CHECKPOINT_RDMACM], 1);
	/* The program has not fetched the request, so this library knows nothing of its ID. */
	assert_int_equal(image.n[CHECKPOINT_RDMACM_ID], 3);
	/* The device, four IDs, the group, and the events of group and request. */
	assert_int_equal(image.n[CHECKPOINT_RDMACM_STATE], 1 + 4 + 1 + 2);
	assert_int_equal(image.rdmacms[0].n_states, image.n[CHECKPOINT_RDMACM_STATE]);
	for (uint32_t i = 0; i < image.n[CHECKPOINT_RDMACM_ID]; i++)
		assert_int_equal(image.rdmacm_ids[i].events, 0);
	for (uint32_t i = 0; i < image.n[CHECKPOINT_MR]; i++)
		assert_true(image.mrs[i].whole);
	for (uint32_t i = 0; i < image.n[CHECKPOINT_RDMACM_STATE]; i++)
		assert_memory_equal(image.rdmacm_states[i].bytes.at, "urxecmid", 8);
	image_free(&image);
}

/* The same with two connections, one of either side. */
static void reads_version_3(void **state)
{
	struct image image;
	uint32_t events = 0;

	(void)state;
	assert_int_equal(image_read(&image, stream, read_stream("v3/connections")), 0);
	assert_int_equal(image.n[CHECKPOINT_QP], 2);
	assert_int_equal(image.n[CHECKPOINT_MR], 2);
	for (uint32_t i = 0; i < image.n[CHECKPOINT_MR]; i++)
		assert_true(image.mrs[i].whole);
	assert_int_equal(image.n[CHECKPOINT_RDMACM_ID], 4);
	for (uint32_t i = 0; i < image.n[CHECKPOINT_RDMACM_ID]; i++)
		events += image.rdmacm_ids[i].events;
	/* Of the requester 3, of the listener and its connection 1 each. */
	assert_int_equal(events, 3 + 1 + 1);
	image_free(&image);
}

static const char *const damaged_streams[] = {"v2/connections", "v3/connections"};

static void refuses_each_truncation(void **state)
{
	struct image image;

	(void)state;
	for (int i = 0; i < 2; i++) {
		size_t length = read_stream(damaged_streams[i]);

		for (size_t n = 0; n < length; n += 61)
			assert_int_equal(image_read(&image, stream, n), -EBADMSG);
	}
}

static void check_damage(const char *name)
{
	struct image image;
	size_t length = read_stream(name);

	for (size_t at = 0; at < length; at += 211) {
		int rc;

		stream[at] ^= 1;
		rc = image_read(&image, stream, length);
		assert_true(rc == -EBADMSG || (at == 8 && rc == -EPROTONOSUPPORT));
		stream[at] ^= 1;
	}
	stream[8] = URXE_CHECKPOINT_VERSION + 1;
	assert_int_equal(image_read(&image, stream, length), -EPROTONOSUPPORT);
	stream[8] = 0;
	assert_int_equal(image_read(&image, stream, length), -EBADMSG);
}

static void refuses_damage(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		check_damage(damaged_streams[i]);
}

/* --- Writing. */

static struct cq_record example = {
	.object = {.context = 0, .handle = 7, .user_handle = 0x123456789abcdef0},
	.channel = NO_CHANNEL,
	.producer = 3,
	.comp_events = 4,
	.armed = true,
	.ring = {.address = 0x5000, .offset = 0x1000, .mask = 63, .shift = 6},
};

static int write_example(uint8_t *out, size_t room, size_t *length)
{
	struct state_stream s;

	stream_begin_save_to(&s, &checkpoint_format, out, room);
	state_begin(&s, CHECKPOINT_CQ);
	cq_fields(&s, &example);
	state_end(&s);
	*length = s.at;
	return stream_finish_save_to(&s);
}

static void reads_what_it_has_written(void **state)
{
	struct cq_record read = {0};
	struct state_stream s;
	size_t length, counted;

	(void)state;
	assert_int_equal(write_example(NULL, 0, &counted), 0);
	assert_int_equal(write_example(stream, counted, &length), 0);
	assert_int_equal(length, counted);
	stream_begin_restore(&s, &checkpoint_format, stream, length);
	state_begin(&s, CHECKPOINT_CQ);
	cq_fields(&s, &read);
	state_end(&s);
	assert_int_equal(s.error, 0);
	assert_int_equal(state_next_record(&s), 0);
	assert_memory_equal(&read, &example, sizeof(read));
}

/* --- Numbers of objects. */

/* Two objects of each kind that image.c tells apart by a number. */
struct numbers {
	uint32_t pd[2], qpn[2], descriptor[2], id[2];
};

static const struct qp_record some_qp = {
	.object = {.handle = 3},
	.qp_type = URXE_QPT_RC,
	.send = {.ring = {.address = 0x5000, .mask = 0, .shift = 12}},
	.receive = {.ring = {.address = 0x7000, .mask = 0, .shift = 12}},
};

#define WRITE(s, kind, name, ...)                           \
	do {                                                \
		struct name##_record written = __VA_ARGS__; \
                                                            \
		state_begin(s, kind);                       \
		name##_fields(s, &written);                 \
		state_end(s);                               \
	} while (0)

static void write_empty(struct state_stream *s, enum checkpoint_record kind)
{
	state_begin(s, kind);
	state_end(s);
}

static void write_pair(struct state_stream *s, enum checkpoint_record kind,
		       const uint32_t numbers[2])
{
	for (uint32_t i = 0; i < 2; i++) {
		struct qp_record qp = some_qp;

		qp.qpn = numbers[i];
		if (kind == CHECKPOINT_PD)
			WRITE(s, kind, pd, {.object.handle = 1 + i, .number = numbers[i]});
		else if (kind == CHECKPOINT_QP)
			WRITE(s, kind, qp, qp);
		else if (kind == CHECKPOINT_DESCRIPTOR)
			WRITE(s, kind, descriptor, {.number = numbers[i]});
		else
			WRITE(s, kind, rdmacm_id, {.number = numbers[i]});
	}
}

static int read_with(const struct numbers *numbers)
{
	struct state_stream s;
	struct image image;
	int rc;

	stream_begin_save_to(&s, &checkpoint_format, stream, sizeof(stream));
	WRITE(&s, CHECKPOINT_PROCESS, process,
	      {.page_size = 4096, .last_pd = 9, .n_blocks = 1, .blocks = {0x1000}});
	WRITE(&s, CHECKPOINT_CONTEXT, context, {.memfd_size = 16384, .async_channel = NO_CHANNEL});
	write_pair(&s, CHECKPOINT_PD, numbers->pd);
	write_pair(&s, CHECKPOINT_QP, numbers->qpn);
	write_empty(&s, CHECKPOINT_ENGINE);
	write_pair(&s, CHECKPOINT_DESCRIPTOR, numbers->descriptor);
	WRITE(&s, CHECKPOINT_RDMACM, rdmacm, {.n_ids = 2});
	write_pair(&s, CHECKPOINT_RDMACM_ID, numbers->id);
	write_empty(&s, CHECKPOINT_END);
	assert_int_equal(stream_finish_save_to(&s), 0);
	checkpoint_error_clear();
	rc = image_read(&image, stream, s.at);
	image_free(&image);
	return rc;
}

static void refuses_two_objects_with_one_number(void **state)
{
	static const struct numbers distinct = {{1, 2}, {0x11, 0x12}, {5, 6}, {0, 7}};
	static const char *const errors[] = {
		"the stream has two protection domains with number 0x2",
		"the stream has two queue pairs with number 0x12",
		"the stream has two descriptors with number 0x6",
		"the stream has two rdma_cm IDs with number 0x7"};

	(void)state;
	assert_int_equal(read_with(&distinct), 0);
	for (size_t i = 0; i < 4; i++) {
		struct numbers numbers = distinct;
		uint32_t *pair[] = {numbers.pd, numbers.qpn, numbers.descriptor, numbers.id};

		pair[i][0] = pair[i][1];
		assert_int_equal(read_with(&numbers), -EBADMSG);
		assert_string_equal(checkpoint_error_text(), errors[i]);
	}
}

static bool is_whole_after_reading(bool whole)
{
	struct mr_record written = {.start = 0x7000, .length = 9, .whole = whole}, read = {0};
	struct state_stream s;

	stream_begin_save_to(&s, &checkpoint_format, stream, sizeof(stream));
	state_begin(&s, CHECKPOINT_MR);
	mr_fields(&s, &written);
	state_end(&s);
	assert_int_equal(stream_finish_save_to(&s), 0);
	stream_begin_restore(&s, &checkpoint_format, stream, s.at);
	state_begin(&s, CHECKPOINT_MR);
	mr_fields(&s, &read);
	state_end(&s);
	assert_int_equal(s.error, 0);
	return read.whole;
}

#define WRITE_ALL(s, image, list, kind, name)             \
	for (uint32_t i = 0; i < (image)->n[kind]; i++) { \
		state_begin(s, kind);                     \
		name##_fields(s, &(image)->list[i]);      \
		state_end(s);                             \
	}

static void write_bytes(struct state_stream *s, const struct image_bytes *bytes)
{
	state_bytes(s, (void *)(uintptr_t)bytes->at, bytes->length);
	state_end(s);
}

/* The records from that of the engine on. */
static void write_later_records(struct state_stream *s, struct image *image)
{
	state_begin(s, CHECKPOINT_ENGINE);
	write_bytes(s, &image->engine);
	WRITE_ALL(s, image, descriptors, CHECKPOINT_DESCRIPTOR, descriptor)
	WRITE_ALL(s, image, mappings, CHECKPOINT_MAPPING, mapping)
	for (uint32_t i = 0; i < image->n[CHECKPOINT_EVENTS]; i++) {
		state_begin(s, CHECKPOINT_EVENTS);
		state_u32s(s, &image->events[i].channel, &image->events[i].n);
		for (uint32_t j = 0; j < image->events[i].n; j++)
			unread_event_fields(s, &image->events[i].events[j]);
		state_end(s);
	}
	for (uint32_t i = 0; i < image->n[CHECKPOINT_RING]; i++) {
		state_begin(s, CHECKPOINT_RING);
		ring_bytes_fields(s, &image->rings[i].record);
		state_u32(s, &image->rings[i].n_pages);
		write_bytes(s, &image->rings[i].pages);
	}
	WRITE_ALL(s, image, rdmacms, CHECKPOINT_RDMACM, rdmacm)
	WRITE_ALL(s, image, rdmacm_ids, CHECKPOINT_RDMACM_ID, rdmacm_id)
	for (uint32_t i = 0; i < image->n[CHECKPOINT_RDMACM_STATE]; i++) {
		state_begin(s, CHECKPOINT_RDMACM_STATE);
		state_u32(s, &image->rdmacm_states[i].device);
		write_bytes(s, &image->rdmacm_states[i].bytes);
	}
	state_begin(s, s->version == 1 ? CHECKPOINT_END_1 : CHECKPOINT_END);
	state_end(s);
}

/* Reads a kept stream, and writes the records of its image again: the bytes are the same, so no
 * byte is lost. test_checkpoint_records.c checks the order of fields. */
static void check_bytes(const char *name, uint32_t version)
{
	struct state_format format = checkpoint_format;
	struct image image;
	struct state_stream s;
	size_t kept = read_stream(name), length;
	uint8_t *again;

	format.version = version;
	assert_int_equal(image_read(&image, stream, kept), 0);
	stream_begin_save(&s, &format);
	state_begin(&s, CHECKPOINT_PROCESS);
	process_fields(&s, &image.process);
	state_end(&s);
	WRITE_ALL(&s, &image, channels, CHECKPOINT_CHANNEL, channel)
	WRITE_ALL(&s, &image, contexts, CHECKPOINT_CONTEXT, context)
	WRITE_ALL(&s, &image, pds, CHECKPOINT_PD, pd)
	WRITE_ALL(&s, &image, mrs, CHECKPOINT_MR, mr)
	WRITE_ALL(&s, &image, mws, CHECKPOINT_MW, mw)
	WRITE_ALL(&s, &image, ahs, CHECKPOINT_AH, ah)
	WRITE_ALL(&s, &image, cqs, CHECKPOINT_CQ, cq)
	WRITE_ALL(&s, &image, srqs, CHECKPOINT_SRQ, srq)
	WRITE_ALL(&s, &image, qps, CHECKPOINT_QP, qp)
	write_later_records(&s, &image);
	assert_int_equal(stream_finish_save(&s, &again, &length), 0);
	assert_int_equal(length, kept);
	assert_memory_equal(again, stream, kept);
	free(again);
	image_free(&image);
}

static void writes_what_it_has_read(void **state)
{
	(void)state;
	check_bytes("v1/polling", 1);
	check_bytes("v1/events", 1);
	check_bytes("v3/connections", 3);
}

static void reads_whether_a_region_was_whole(void **state)
{
	(void)state;
	assert_true(is_whole_after_reading(true));
	assert_false(is_whole_after_reading(false));
}

static void writes_nothing_behind_its_room(void **state)
{
	size_t length, counted;

	(void)state;
	assert_int_equal(write_example(NULL, 0, &counted), 0);
	for (size_t room = 24; room < counted; room++) {
		memset(stream, 0xee, sizeof(stream));
		assert_int_equal(write_example(stream, room, &length), -EBUSY);
		assert_int_equal(stream[room], 0xee);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_version_1),
		cmocka_unit_test(reads_version_2),
		cmocka_unit_test(reads_version_3),
		cmocka_unit_test(refuses_each_truncation),
		cmocka_unit_test(refuses_damage),
		cmocka_unit_test(reads_what_it_has_written),
		cmocka_unit_test(refuses_two_objects_with_one_number),
		cmocka_unit_test(writes_what_it_has_read),
		cmocka_unit_test(reads_whether_a_region_was_whole),
		cmocka_unit_test(writes_nothing_behind_its_room),
	};

	if (argc != 2 || crc_load())
		return 1;
	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
