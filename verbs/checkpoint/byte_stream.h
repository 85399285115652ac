/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The byte stream of a saved process, in both directions: the same function writes a field and
 * reads it. All numbers are little endian. docs/checkpoint.md describes the format.
 *
 * After the first error fields are read as 0, and nothing is written. Writing allocates nothing: a
 * stream without room only counts the bytes that it would have.
 */
#ifndef URXE_VERBS_CHECKPOINT_BYTE_STREAM_H
#define URXE_VERBS_CHECKPOINT_BYTE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of records, in the order in which a stream has them. */
enum checkpoint_record {
	RECORD_PROCESS = 1,
	RECORD_CHANNEL,
	RECORD_CONTEXT,
	RECORD_PD,
	RECORD_MR,
	RECORD_MW,
	RECORD_AH,
	RECORD_CQ,
	RECORD_SRQ,
	RECORD_QP,
	RECORD_ENGINE,
	RECORD_DESCRIPTOR,
	RECORD_MAPPING,
	RECORD_EVENTS,
	RECORD_RING,
	RECORD_END,
};
#define RECORD_KINDS (RECORD_END + 1)

struct byte_stream {
	bool reading;
	int error;    /* the first one, a negative errno value; 0 = none */
	uint8_t *out; /* writing: `room` bytes; NULL: only counts */
	size_t room;
	const uint8_t *in;
	size_t at;     /* bytes that were written or read */
	size_t end;    /* reading: of the record, or of the stream */
	size_t length; /* reading: of the stream */
	size_t record; /* writing: where the length of the record is */
};

/* Writes to `room` bytes at `out`, or counts if `out` is NULL. */
void byte_stream_write(struct byte_stream *s, uint8_t *out, size_t room);
/* Completes the header. Returns the error. */
int byte_stream_finish(struct byte_stream *s);
/* Checks the header and the checksum; the error is in s->error. */
void byte_stream_read(struct byte_stream *s, const uint8_t *in, size_t length);

/* Reading: the kind of the next record; 0 = none. */
uint32_t byte_stream_next(const struct byte_stream *s);
/* A record of the kind begins, and ends. */
void record_begin(struct byte_stream *s, enum checkpoint_record kind);
void record_end(struct byte_stream *s);
/* Reading: skips the rest of the record. */
void record_skip(struct byte_stream *s);
/* Reading: bytes left in the record. */
static inline size_t record_left(const struct byte_stream *s)
{
	return s->error ? 0 : s->end - s->at;
}

/* Sets the error, if there is none yet. */
void byte_stream_fail(struct byte_stream *s, int error);
/* Sets the error -EBADMSG if `ok` is false: values of the stream contradict each other. */
void byte_stream_require(struct byte_stream *s, bool ok);

void field_bytes(struct byte_stream *s, void *bytes, size_t n);
/* Reading: n bytes that stay where they are; NULL after an error. */
const uint8_t *field_take(struct byte_stream *s, size_t n);
void field_bool(struct byte_stream *s, bool *value);
void field_u8(struct byte_stream *s, uint8_t *value);
void field_u16(struct byte_stream *s, uint16_t *value);
void field_u32(struct byte_stream *s, uint32_t *value);
void field_u64(struct byte_stream *s, uint64_t *value);

#endif
