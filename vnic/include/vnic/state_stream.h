/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The byte stream of a saved device of a virtual machine, in both directions: the same functions
 * write a field when a device is saved, and read it when the device is restored. vnic/device,
 * vnic/vfio and verbs/pvrdma have a stream each.
 *
 * All numbers are little endian. A header comes first: 8 bytes that name the device, the version
 * (4 bytes), a CRC-32 (IEEE 802.3) of all other bytes (4 bytes), and the length of the stream (8
 * bytes). After the first error fields are read as 0, and nothing is written.
 */
#ifndef URXE_VNIC_STATE_STREAM_H
#define URXE_VNIC_STATE_STREAM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VNIC_STATE_NAME   8u /* bytes */
#define VNIC_STATE_HEADER 24u

struct vnic_state_stream {
	bool restoring;
	int error;        /* the first one, a negative errno value; 0 = none */
	uint32_t version; /* of the stream */
	uint8_t *out;     /* saving: `room` bytes, of which `at` are written */
	const uint8_t *in;
	size_t at;
	size_t room; /* restoring: bytes of the stream */
};

void vnic_state_begin_save(struct vnic_state_stream *s, const char name[VNIC_STATE_NAME],
			   uint32_t version);
/* Completes the header. The caller frees *stream with free(3). After an error, which it returns,
 * there is no stream. */
int vnic_state_finish_save(struct vnic_state_stream *s, uint8_t **stream, size_t *length);
/*
 * Checks the header: -EBADMSG: not a stream with this name, truncated or damaged;
 * -EPROTONOSUPPORT: of a later version than `version`. s->error has the same value.
 */
int vnic_state_begin_restore(struct vnic_state_stream *s, const char name[VNIC_STATE_NAME],
			     uint32_t version, const uint8_t *stream, size_t length);
/* -EBADMSG if bytes are left; or the first error. */
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

void vnic_state_bytes(struct vnic_state_stream *s, void *bytes, size_t n);
void vnic_state_bool(struct vnic_state_stream *s, bool *value);
void vnic_state_u8(struct vnic_state_stream *s, uint8_t *value);
void vnic_state_u16(struct vnic_state_stream *s, uint16_t *value);
void vnic_state_u32(struct vnic_state_stream *s, uint32_t *value);
void vnic_state_u64(struct vnic_state_stream *s, uint64_t *value);
/* A value above `max` is an error, and read as 0. */
void vnic_state_u32_max(struct vnic_state_stream *s, uint32_t *value, uint32_t max);
/* The number of items that follow, of at least `bytes` bytes each. Returns n, or the number read;
 * 0 after an error. */
uint32_t vnic_state_count(struct vnic_state_stream *s, uint32_t n, size_t bytes);
/* Restoring: the next n bytes, in the stream; NULL: it has fewer. */
const uint8_t *vnic_state_take(struct vnic_state_stream *s, size_t n);

#endif
