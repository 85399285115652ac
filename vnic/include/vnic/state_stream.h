/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The byte stream of a saved device or process, in both directions: the same functions write a
 * field when the device is saved, and read it when the device is restored. Each use has a format of
 * its own.
 *
 * All numbers are little endian. A header comes first: 8 bytes that name the format, the version
 * (4 bytes), a CRC-32 (IEEE 802.3) of all other bytes (4 bytes), and the length of the stream (8
 * bytes). Fields follow, and records: a kind (4 bytes), the length of the contents (8 bytes), and
 * the contents. After the first error fields are read as 0, and nothing is written.
 */
#ifndef URXE_VNIC_STATE_STREAM_H
#define URXE_VNIC_STATE_STREAM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VNIC_STATE_NAME   8u /* bytes */
#define VNIC_STATE_HEADER 24u

struct vnic_state_format {
	char name[VNIC_STATE_NAME + 1];
	uint32_t version; /* from 1; streams of earlier versions can be restored */
};

struct vnic_state_stream {
	const struct vnic_state_format *format;
	bool restoring;
	bool fixed;       /* saving: `out` is the caller's, and does not grow */
	int error;        /* the first one, a negative errno value; 0 = none */
	uint32_t version; /* of the stream */
	uint8_t *out;     /* saving: `room` bytes, of which `at` are written; NULL: only counts */
	const uint8_t *in;
	size_t at;
	size_t room;   /* restoring: bytes of the stream */
	size_t end;    /* restoring: end of the record, or outside a record of the stream */
	size_t record; /* saving: where the contents of the record begin */
};

void vnic_state_begin_save(struct vnic_state_stream *s, const struct vnic_state_format *format);
/* Completes the header. The caller frees *stream with free(3). After an error, which it returns,
 * there is no stream. */
int vnic_state_finish_save(struct vnic_state_stream *s, uint8_t **stream, size_t *length);
/*
 * Saves to `room` bytes at `out`, and allocates nothing. Without room for a field the error is
 * -EBUSY. If `out` is NULL, s->at counts the bytes that the stream would have.
 */
void vnic_state_begin_save_to(struct vnic_state_stream *s, const struct vnic_state_format *format,
			      uint8_t *out, size_t room);
/* Completes the header of a stream of vnic_state_begin_save_to, which has s->at bytes. Returns 0 or
 * the first error. */
int vnic_state_finish_save_to(struct vnic_state_stream *s);
/*
 * Checks the header. -EBADMSG: no stream with format->name, truncated or damaged;
 * -EPROTONOSUPPORT: of a later version than format->version. s->error has the same value.
 */
int vnic_state_begin_restore(struct vnic_state_stream *s, const struct vnic_state_format *format,
			     const uint8_t *stream, size_t length);
/* Ends the restoration. Returns the first error; -EBADMSG if bytes are left; else 0. */
int vnic_state_finish_restore(struct vnic_state_stream *s);

/* Sets the error, if there is none yet. */
static inline void vnic_state_fail(struct vnic_state_stream *s, int error)
{
	if (!s->error)
		s->error = error;
}

/* Sets the error -EBADMSG if `ok` is false: values of the stream contradict each other. */
static inline void vnic_state_require(struct vnic_state_stream *s, bool ok)
{
	if (!ok)
		vnic_state_fail(s, -EBADMSG);
}

/* A record begins, and ends. Records are not nested. */
void vnic_state_record_begin(struct vnic_state_stream *s, uint32_t kind);
void vnic_state_record_end(struct vnic_state_stream *s);
/* Restoring: the kind of the next record; 0 = none. */
uint32_t vnic_state_record_next(const struct vnic_state_stream *s);
/* Restoring: skips the rest of the record. */
void vnic_state_record_skip(struct vnic_state_stream *s);
/* Restoring: bytes left in the record. */
static inline size_t vnic_state_record_left(const struct vnic_state_stream *s)
{
	return s->error ? 0 : s->end - s->at;
}

void vnic_state_bytes(struct vnic_state_stream *s, void *bytes, size_t n);
void vnic_state_bool(struct vnic_state_stream *s, bool *value);
void vnic_state_u8(struct vnic_state_stream *s, uint8_t *value);
void vnic_state_u16(struct vnic_state_stream *s, uint16_t *value);
void vnic_state_u32(struct vnic_state_stream *s, uint32_t *value);
void vnic_state_u64(struct vnic_state_stream *s, uint64_t *value);
/* A value above `max` is an error, and read as 0. */
void vnic_state_u32_max(struct vnic_state_stream *s, uint32_t *value, uint32_t max);
/* Writes or reads the number of items that follow; each has at least `bytes` bytes, so a number too
 * large for the stream is an error. Returns n, or the number read; 0 after an error. */
uint32_t vnic_state_count(struct vnic_state_stream *s, uint32_t n, size_t bytes);
/* Restoring: the next n bytes, which stay in the stream; NULL: the record or stream has fewer. */
const uint8_t *vnic_state_take(struct vnic_state_stream *s, size_t n);

#endif
