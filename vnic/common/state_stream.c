/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <vnic/state_stream.h>

#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>

#define VERSION_AT 8u
#define CRC_AT     12u
#define LENGTH_AT  16u
#define FIRST_ROOM 4096u
/* Header of a record: its kind, and the number of bytes that follow. */
#define RECORD_HEADER 12u

static uint32_t stream_crc(const uint8_t *stream, size_t length)
{
	const uint32_t crc = crc32_gzip_refl(0, stream, CRC_AT);

	return crc32_gzip_refl(crc, stream + LENGTH_AT, length - LENGTH_AT);
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

static void grow_stream(struct vnic_state_stream *s, size_t n)
{
	size_t room = s->room ? s->room : FIRST_ROOM;
	uint8_t *out;

	while (room - s->at < n)
		room *= 2;
	if (room == s->room)
		return;
	out = realloc(s->out, room);
	if (!out) {
		vnic_state_fail(s, -ENOMEM);
		return;
	}
	s->out = out;
	s->room = room;
}

/* Saving: where the next n bytes go; NULL: the stream only counts, or has an error. */
static uint8_t *take_room(struct vnic_state_stream *s, size_t n)
{
	if (s->error)
		return NULL;
	if (!s->fixed)
		grow_stream(s, n);
	else if (s->out && n > s->room - s->at)
		vnic_state_fail(s, -EBUSY);
	if (s->error)
		return NULL;
	s->at += n;
	return s->out ? s->out + (s->at - n) : NULL;
}

const uint8_t *vnic_state_take(struct vnic_state_stream *s, size_t n)
{
	vnic_state_require(s, n <= s->end - s->at);
	if (s->error)
		return NULL;
	s->at += n;
	return s->in + (s->at - n);
}

void vnic_state_bytes(struct vnic_state_stream *s, void *bytes, size_t n)
{
	const uint8_t *from = s->restoring ? vnic_state_take(s, n) : bytes;
	uint8_t *to = s->restoring ? bytes : take_room(s, n);

	if (!n || !to)
		return;
	if (from)
		memcpy(to, from, n);
	else
		memset(to, 0, n);
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
	if (s->restoring)
		vnic_state_require(s, n <= (s->end - s->at) / bytes);
	return s->error ? 0 : n;
}

/* --- Records */

uint32_t vnic_state_record_next(const struct vnic_state_stream *s)
{
	return s->error || s->end - s->at < RECORD_HEADER ? 0 : (uint32_t)get(s->in + s->at, 4);
}

void vnic_state_record_begin(struct vnic_state_stream *s, uint32_t kind)
{
	uint32_t number = kind;
	uint64_t length = 0;

	vnic_state_u32(s, &number);
	vnic_state_u64(s, &length);
	s->record = s->at;
	if (!s->restoring)
		return;
	vnic_state_require(s, number == kind && length <= s->end - s->at);
	if (!s->error)
		s->end = s->at + (size_t)length;
}

void vnic_state_record_end(struct vnic_state_stream *s)
{
	if (s->restoring)
		vnic_state_require(s, s->at == s->end);
	if (s->error)
		return;
	if (s->restoring)
		s->end = s->room;
	else if (s->out)
		put(s->out + s->record - 8, s->at - s->record, 8);
}

void vnic_state_record_skip(struct vnic_state_stream *s)
{
	if (!s->error)
		s->at = s->end;
}

/* --- The header */

static void write_header(struct vnic_state_stream *s)
{
	uint8_t header[VNIC_STATE_HEADER] = {0};

	memcpy(header, s->format->name, VNIC_STATE_NAME);
	put(header + VERSION_AT, s->format->version, 4);
	vnic_state_bytes(s, header, sizeof(header));
}

void vnic_state_begin_save(struct vnic_state_stream *s, const struct vnic_state_format *format)
{
	*s = (struct vnic_state_stream){.format = format, .version = format->version};
	write_header(s);
}

void vnic_state_begin_save_to(struct vnic_state_stream *s, const struct vnic_state_format *format,
			      uint8_t *out, size_t room)
{
	*s = (struct vnic_state_stream){.format = format,
					.fixed = true,
					.version = format->version,
					.out = out,
					.room = room};
	write_header(s);
}

int vnic_state_finish_save_to(struct vnic_state_stream *s)
{
	if (!s->error && s->out) {
		put(s->out + LENGTH_AT, s->at, 8);
		put(s->out + CRC_AT, stream_crc(s->out, s->at), 4);
	}
	return s->error;
}

int vnic_state_finish_save(struct vnic_state_stream *s, uint8_t **stream, size_t *length)
{
	if (vnic_state_finish_save_to(s)) {
		free(s->out);
		return s->error;
	}
	*stream = s->out;
	*length = s->at;
	return 0;
}

int vnic_state_begin_restore(struct vnic_state_stream *s, const struct vnic_state_format *format,
			     const uint8_t *stream, size_t length)
{
	*s = (struct vnic_state_stream){.format = format,
					.restoring = true,
					.in = stream,
					.at = VNIC_STATE_HEADER,
					.room = length,
					.end = length};
	if (length < VNIC_STATE_HEADER || memcmp(stream, format->name, VNIC_STATE_NAME)) {
		s->at = length;
		s->error = -EBADMSG;
		return s->error;
	}
	s->version = (uint32_t)get(stream + VERSION_AT, 4);
	if (s->version > format->version)
		s->error = -EPROTONOSUPPORT;
	vnic_state_require(s, s->version && get(stream + LENGTH_AT, 8) == length);
	if (!s->error)
		vnic_state_require(s, get(stream + CRC_AT, 4) == stream_crc(stream, length));
	return s->error;
}

int vnic_state_finish_restore(struct vnic_state_stream *s)
{
	vnic_state_require(s, s->at == s->room);
	return s->error;
}
