/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <vnic/state_stream.h>

#include <stdlib.h>
#include <string.h>

#define VERSION_AT 8u
#define CRC_AT     12u
#define LENGTH_AT  16u
#define FIRST_ROOM 4096u

/* A stream is short, and saved or restored once for each migration: no table is worth it. */
static uint32_t crc_of(uint32_t crc, const uint8_t *bytes, size_t n)
{
	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
	}
	return ~crc;
}

static uint32_t stream_crc(const uint8_t *stream, size_t length)
{
	return crc_of(crc_of(0, stream, CRC_AT), stream + LENGTH_AT, length - LENGTH_AT);
}

static void put(uint8_t *to, uint64_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *from, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)from[i] << 8 * i;
	return value;
}

static bool make_room(struct vnic_state_stream *s, size_t n)
{
	size_t room = s->room ? s->room : FIRST_ROOM;
	uint8_t *out;

	while (room - s->at < n)
		room *= 2;
	if (room == s->room)
		return true;
	out = realloc(s->out, room);
	if (!out) {
		vnic_state_fail(s, -ENOMEM);
		return false;
	}
	s->out = out;
	s->room = room;
	return true;
}

const uint8_t *vnic_state_take(struct vnic_state_stream *s, size_t n)
{
	if (!s->error && n > s->room - s->at)
		s->error = -EBADMSG;
	if (s->error)
		return NULL;
	s->at += n;
	return s->in + (s->at - n);
}

void vnic_state_bytes(struct vnic_state_stream *s, void *bytes, size_t n)
{
	const uint8_t *from;

	if (s->restoring) {
		from = vnic_state_take(s, n);
		if (from)
			memcpy(bytes, from, n);
		else
			memset(bytes, 0, n);
	} else if (!s->error && make_room(s, n)) {
		memcpy(s->out + s->at, bytes, n);
		s->at += n;
	}
}

static uint64_t pass_number(struct vnic_state_stream *s, uint64_t value, size_t n)
{
	uint8_t bytes[8];

	put(bytes, value, n);
	vnic_state_bytes(s, bytes, n);
	return get(bytes, n);
}

void vnic_state_u8(struct vnic_state_stream *s, uint8_t *value)
{
	*value = (uint8_t)pass_number(s, *value, 1);
}

void vnic_state_u16(struct vnic_state_stream *s, uint16_t *value)
{
	*value = (uint16_t)pass_number(s, *value, 2);
}

void vnic_state_u32(struct vnic_state_stream *s, uint32_t *value)
{
	*value = (uint32_t)pass_number(s, *value, 4);
}

void vnic_state_u64(struct vnic_state_stream *s, uint64_t *value)
{
	*value = pass_number(s, *value, 8);
}

void vnic_state_bool(struct vnic_state_stream *s, bool *value)
{
	uint8_t byte = *value;

	vnic_state_u8(s, &byte);
	vnic_state_require(s, byte <= 1);
	*value = byte == 1;
}

void vnic_state_u32_max(struct vnic_state_stream *s, uint32_t *value, uint32_t max)
{
	vnic_state_u32(s, value);
	if (*value <= max)
		return;
	vnic_state_fail(s, -EBADMSG);
	*value = 0;
}

uint32_t vnic_state_count(struct vnic_state_stream *s, uint32_t n, size_t bytes)
{
	vnic_state_u32(s, &n);
	if (s->restoring && !s->error && n > (s->room - s->at) / bytes)
		s->error = -EBADMSG;
	return s->error ? 0 : n;
}

/* --- The header */

void vnic_state_begin_save(struct vnic_state_stream *s, const char name[VNIC_STATE_NAME],
			   uint32_t version)
{
	uint8_t header[VNIC_STATE_HEADER] = {0};

	*s = (struct vnic_state_stream){.version = version};
	memcpy(header, name, VNIC_STATE_NAME);
	put(header + VERSION_AT, version, 4);
	vnic_state_bytes(s, header, sizeof(header));
}

int vnic_state_finish_save(struct vnic_state_stream *s, uint8_t **stream, size_t *length)
{
	if (s->error) {
		free(s->out);
		return s->error;
	}
	put(s->out + LENGTH_AT, s->at, 8);
	put(s->out + CRC_AT, stream_crc(s->out, s->at), 4);
	*stream = s->out;
	*length = s->at;
	return 0;
}

int vnic_state_begin_restore(struct vnic_state_stream *s, const char name[VNIC_STATE_NAME],
			     uint32_t version, const uint8_t *stream, size_t length)
{
	*s = (struct vnic_state_stream){
		.restoring = true, .in = stream, .at = VNIC_STATE_HEADER, .room = length};
	if (length < VNIC_STATE_HEADER || memcmp(stream, name, VNIC_STATE_NAME) ||
	    get(stream + LENGTH_AT, 8) != length ||
	    get(stream + CRC_AT, 4) != stream_crc(stream, length))
		s->error = -EBADMSG;
	else
		s->version = (uint32_t)get(stream + VERSION_AT, 4);
	if (!s->error && (!s->version || s->version > version))
		s->error = -EPROTONOSUPPORT;
	return s->error;
}

int vnic_state_finish_restore(struct vnic_state_stream *s)
{
	vnic_state_require(s, s->at == s->room);
	return s->error;
}
