/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The byte stream of a saved device or process. The same functions write a field when the device is
 * saved, and read it when the device is restored, so the two directions cannot diverge. Each use
 * has a format of its own: the engine (docs/state.md), a process (docs/checkpoint.md), the devices
 * of a virtual machine.
 *
 * All numbers are little endian. A header comes first: 8 bytes that name the format, the version
 * (4 bytes), a CRC-32 (IEEE 802.3) of all other bytes (4 bytes), and the length of the stream (8
 * bytes). Fields follow, and records: a kind (4 bytes), the length of the contents (4 or 8 bytes),
 * and the contents. After the first error fields are read as 0, and nothing is written; callers
 * check the error when it matters.
 */
#ifndef URXE_RXE_STATE_STREAM_H
#define URXE_RXE_STATE_STREAM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATE_NAME   8u  /* bytes */
#define STATE_HEADER 24u /* bytes */
/* Records may be nested this deep: a record, and one within it. */
#define STATE_DEPTH 2

struct state_format {
	char name[STATE_NAME + 1];
	uint32_t version;  /* from 1; streams of earlier versions can be restored */
	bool long_records; /* lengths of records have 8 bytes */
};

struct state_stream {
	bool restoring;
	bool fixed;        /* saving: `out` is the caller's, and does not grow */
	bool long_records; /* as of the format */
	int error;         /* the first one, a negative errno value; 0 = none */
	uint32_t version;  /* of the stream */
	uint64_t now;      /* the device's time, ns, for state_time; the caller may set it */
	uint64_t budget;   /* restoring: bytes that state_spend may still take */
	uint8_t *out;      /* saving: `room` bytes, of which `at` are written; NULL: only counts */
	const uint8_t *in;
	size_t at;
	size_t room;
	size_t end; /* restoring: end of the innermost record, or of the stream */
	/* For each open record. Saving: offset behind its length field. Restoring: `end` before
	 * it. */
	size_t outer[STATE_DEPTH];
	uint32_t depth;
};

void stream_begin_save(struct state_stream *s, const struct state_format *format);
/* Completes the header. The caller frees *stream with free(3). After an error, which it returns,
 * there is no stream. */
int stream_finish_save(struct state_stream *s, uint8_t **stream, size_t *length);
/*
 * Saves to `room` bytes at `out`, and allocates nothing. Without room for a field the error is
 * -EBUSY. If `out` is NULL, s->at counts the bytes that the stream would have.
 */
void stream_begin_save_to(struct state_stream *s, const struct state_format *format, uint8_t *out,
			  size_t room);
/* Completes the header of a stream of stream_begin_save_to, which has s->at bytes. Returns 0 or the
 * first error. */
int stream_finish_save_to(struct state_stream *s);
/*
 * Checks the header. -EBADMSG: no stream with format->name, truncated or damaged;
 * -EPROTONOSUPPORT: of a later version than format->version. s->error has the same value.
 */
int stream_begin_restore(struct state_stream *s, const struct state_format *format,
			 const uint8_t *stream, size_t length);
/* Ends the restoration. Returns the first error; -EBADMSG if bytes are left; else 0. */
int stream_finish_restore(struct state_stream *s);

/* Called before and after the fields of a record of this kind. Restoring: state_begin sets the
 * error -EBADMSG if the next record is of another kind. */
void state_begin(struct state_stream *s, uint32_t kind);
void state_end(struct state_stream *s);
/* Restoring: the kind of the next record; 0 = none, or the record or stream around it ends first.
 */
uint32_t state_next_record(const struct state_stream *s);
/* Restoring: bytes left in the record, or outside a record in the stream; 0 after an error. */
static inline size_t state_left(const struct state_stream *s)
{
	return s->error ? 0 : s->end - s->at;
}

/* Sets the error, if there is none yet. */
static inline void state_fail(struct state_stream *s, int error)
{
	if (!s->error)
		s->error = error;
}

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
/* Restoring: the next n bytes, which stay in the stream; NULL: the record or stream has fewer. */
const uint8_t *state_take(struct state_stream *s, size_t n);
void state_bool(struct state_stream *s, bool *value);
void state_u8(struct state_stream *s, uint8_t *value);
void state_u16(struct state_stream *s, uint16_t *value);
void state_u32(struct state_stream *s, uint32_t *value);
void state_u64(struct state_stream *s, uint64_t *value);
/* In these functions a value above `max` sets the error -EBADMSG, and is read as 0. */
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
/* Several fields of one type, in the order of the arguments, which are pointers. */
#define state_u8s(s, ...)       STATE_FIELDS(s, uint8_t, state_u8, __VA_ARGS__)
#define state_u16s(s, ...)      STATE_FIELDS(s, uint16_t, state_u16, __VA_ARGS__)
#define state_u24s(s, ...)      STATE_FIELDS(s, uint32_t, state_u24, __VA_ARGS__)
#define state_u32s(s, ...)      STATE_FIELDS(s, uint32_t, state_u32, __VA_ARGS__)
#define state_u64s(s, ...)      STATE_FIELDS(s, uint64_t, state_u64, __VA_ARGS__)
#define state_bools(s, ...)     STATE_FIELDS(s, bool, state_bool, __VA_ARGS__)
#define state_times(s, ...)     STATE_FIELDS(s, uint64_t, state_time, __VA_ARGS__)
#define state_durations(s, ...) STATE_FIELDS(s, uint64_t, state_duration, __VA_ARGS__)
#define STATE_FIELDS(s, type, field, ...)                                      \
	for (type **field_ = (type *[]){__VA_ARGS__, NULL}; *field_; field_++) \
	field(s, *field_)
/* The number of items that follow, of at least `bytes` bytes each. Returns n or, when restoring,
 * the number that was read; 0 with the error -EBADMSG if the record is too short for so many. */
uint32_t state_count(struct state_stream *s, uint32_t n, size_t bytes);

#endif
