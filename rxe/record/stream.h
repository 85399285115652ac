/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The byte stream of a saved device. The same functions write a field when a device is saved, and
 * read it when the device is restored, so the two directions cannot diverge.
 *
 * After the first error fields are read as 0, and nothing is written; callers check the error when
 * it matters. Numbers are little-endian. docs/state.md describes the format.
 */
#ifndef URXE_RECORD_STREAM_H
#define URXE_RECORD_STREAM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of records, in the order in which a stream has them; not enum urxe_state_kind. */
enum state_record {
	STATE_RECORD_DEVICE = 1,
	STATE_RECORD_CQ,
	STATE_RECORD_MR,
	STATE_RECORD_FAST_MR,
	STATE_RECORD_SRQ,
	STATE_RECORD_QP,
	STATE_RECORD_MW,
	STATE_RECORD_GROUP,
	STATE_RECORD_READY, /* QPs that may have something to send */
	STATE_RECORD_COMPLETIONS,
	STATE_RECORD_END,
	/* Parts of STATE_RECORD_QP, in their order. */
	STATE_RECORD_QP_ATTR = 32,
	STATE_RECORD_QP_SENDS,
	STATE_RECORD_QP_RECEIVES,
	STATE_RECORD_QP_REQUESTER,
	STATE_RECORD_QP_RESPONDER,
	STATE_RECORD_QP_RESOURCES,
	STATE_RECORD_QP_GAP, /* the gap, and the packets kept behind it */
	STATE_RECORD_QP_CONGESTION,
};

/* Records may be nested this deep: a record, and one within it. */
#define STATE_DEPTH 2

struct state_stream {
	bool restoring;
	int error;        /* the first one, a negative errno value; 0 = none */
	uint32_t version; /* of the stream */
	uint64_t now;     /* the device's time, ns */
	uint64_t budget;  /* restoring: bytes that queues and lists may still take */
	uint8_t *out;     /* saving: `room` bytes, of which `at` are written */
	const uint8_t *in;
	size_t at;
	size_t room;
	size_t end; /* restoring: end of the innermost record, or of the stream */
	/* For each open record. Saving: offset behind its length field. Restoring: `end` before
	 * it. */
	size_t outer[STATE_DEPTH];
	uint32_t depth;
};

/* Writes the stream's header; stream_finish_save completes it. */
void stream_begin_save(struct state_stream *s, uint64_t now);
void stream_finish_save(struct state_stream *s);
/* Begins to read a stream: checks the header and the checksum, and sets s->error if one is wrong.
 */
void stream_begin_restore(struct state_stream *s, const uint8_t *stream, size_t length,
			  uint64_t now);

/* Called before and after the fields of a record of this kind. Restoring: state_begin sets the
 * error -EBADMSG if the next record is of another kind. */
void state_begin(struct state_stream *s, enum state_record kind);
void state_end(struct state_stream *s);
/* Restoring: the kind of the next record; 0 = none. */
uint32_t state_next_record(const struct state_stream *s);

/* Sets the error, if there is none yet. */
void state_fail(struct state_stream *s, int error);
/* Sets the error -EBADMSG unless `ok`: the values of the stream contradict each other. */
static inline void state_require(struct state_stream *s, bool ok)
{
	if (!ok)
		state_fail(s, -EBADMSG);
}

/* False after an error. Then, when restoring, an object may be NULL or incomplete, and the caller
 * does not use it. */
static inline bool state_ok(const struct state_stream *s)
{
	return !s->error;
}

/* Restoring: takes n times `bytes` from the budget; sets the error -EFBIG if less is left. */
void state_spend(struct state_stream *s, uint64_t n, uint64_t bytes);

void state_bytes(struct state_stream *s, void *bytes, size_t n);
void state_bool(struct state_stream *s, bool *value);
void state_u8(struct state_stream *s, uint8_t *value);
void state_u16(struct state_stream *s, uint16_t *value);
void state_u32(struct state_stream *s, uint32_t *value);
void state_u64(struct state_stream *s, uint64_t *value);
/* In these functions a value above `max` sets the error -EBADMSG. */
void state_u8_max(struct state_stream *s, uint8_t *value, uint8_t max);
void state_u16_max(struct state_stream *s, uint16_t *value, uint16_t max);
void state_u32_max(struct state_stream *s, uint32_t *value, uint32_t max);
/* One byte: a value of at most `max`, which is below 128, in bits 0 to 6, and a flag in bit 7.
 * Earlier streams have 0 as the flag. A larger value is an error. */
void state_u8_flag(struct state_stream *s, uint8_t *value, uint8_t max, bool *flag);
/* A PSN, QPN or MSN. */
void state_u24(struct state_stream *s, uint32_t *value);
/*
 * A time of the device, ns. The stream has an int64: the distance from `now`, negative for the
 * past, at most 2^60 each way. INT64_MAX stands for URXE_NEVER, INT64_MIN for the time 0, which
 * means "not set". A restored time before the clock's beginning becomes 1.
 */
void state_time(struct state_stream *s, uint64_t *time);
/* A duration, ns. A duration above 2^42, more than an hour, is saved and restored as 2^42. */
void state_duration(struct state_stream *s, uint64_t *ns);
/* The number of items that follow, of at least `bytes` bytes each. Returns n or, when restoring,
 * the number that was read; 0 with the error -EBADMSG if the record is too short for so many. */
uint32_t state_count(struct state_stream *s, uint32_t n, size_t bytes);

#endif
