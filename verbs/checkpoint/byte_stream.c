/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/byte_stream.h"

#include <errno.h>
#include <string.h>

#include <isa-l/crc.h>

#include "checkpoint/checkpoint.h"

/* Header: magic, version (4 bytes), CRC-32 of all other bytes (4), length of the stream (8). */
#define VERSION_AT 8
#define CRC_AT     12
#define LENGTH_AT  16
#define HEADER_LEN 24
/* Header of a record: its kind (4 bytes), and the number of bytes that follow (8). */
#define RECORD_LEN 12

static const uint8_t magic[] = {'u', 'r', 'x', 'e', 'p', 'r', 'o', 'c'};

static void put_number(uint8_t *to, uint64_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_number(const uint8_t *from, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)from[i] << 8 * i;
	return value;
}

void byte_stream_fail(struct byte_stream *s, int error)
{
	if (!s->error)
		s->error = error;
}

void byte_stream_require(struct byte_stream *s, bool ok)
{
	if (!ok)
		byte_stream_fail(s, -EBADMSG);
}

static uint32_t stream_crc(const uint8_t *bytes, size_t length)
{
	uint32_t crc = crc32_gzip_refl(0, bytes, CRC_AT);

	return crc32_gzip_refl(crc, bytes + LENGTH_AT, length - LENGTH_AT);
}

/* Where the next n bytes go; NULL: nowhere, because the stream only counts, or has an error. */
static uint8_t *take_room(struct byte_stream *s, size_t n)
{
	if (s->out && n > s->room - s->at)
		byte_stream_fail(s, -EBUSY);
	if (s->error)
		return NULL;
	s->at += n;
	return s->out ? s->out + s->at - n : NULL;
}

const uint8_t *field_take(struct byte_stream *s, size_t n)
{
	byte_stream_require(s, n <= s->end - s->at);
	if (s->error)
		return NULL;
	s->at += n;
	return s->in + s->at - n;
}

void byte_stream_write(struct byte_stream *s, uint8_t *out, size_t room)
{
	uint8_t *header;

	*s = (struct byte_stream){.out = out, .room = room};
	header = take_room(s, HEADER_LEN);
	if (!header)
		return;
	memset(header, 0, HEADER_LEN);
	memcpy(header, magic, sizeof(magic));
	put_number(header + VERSION_AT, URXE_CHECKPOINT_VERSION, 4);
}

int byte_stream_finish(struct byte_stream *s)
{
	if (!s->error && s->out) {
		put_number(s->out + LENGTH_AT, s->at, 8);
		put_number(s->out + CRC_AT, stream_crc(s->out, s->at), 4);
	}
	return s->error;
}

void byte_stream_read(struct byte_stream *s, const uint8_t *in, size_t length)
{
	uint64_t version;

	*s = (struct byte_stream){
		.reading = true, .in = in, .at = HEADER_LEN, .end = length, .length = length};
	if (length < HEADER_LEN || memcmp(in, magic, sizeof(magic))) {
		s->at = length;
		byte_stream_fail(s, -EBADMSG);
		return;
	}
	version = get_number(in + VERSION_AT, 4);
	if (version > URXE_CHECKPOINT_VERSION)
		byte_stream_fail(s, -EPROTONOSUPPORT);
	byte_stream_require(s, version && get_number(in + LENGTH_AT, 8) == length);
	if (!s->error)
		byte_stream_require(s, get_number(in + CRC_AT, 4) == stream_crc(in, length));
}

/* --- Records. */

uint32_t byte_stream_next(const struct byte_stream *s)
{
	return s->error || s->end - s->at < RECORD_LEN ? 0 : (uint32_t)get_number(s->in + s->at, 4);
}

void record_begin(struct byte_stream *s, enum checkpoint_record kind)
{
	uint32_t number = kind;
	uint64_t length = 0;

	field_u32(s, &number);
	field_u64(s, &length);
	s->record = s->at;
	if (!s->reading)
		return;
	byte_stream_require(s, number == kind && length <= s->end - s->at);
	if (!s->error)
		s->end = s->at + (size_t)length;
}

void record_end(struct byte_stream *s)
{
	if (s->reading)
		byte_stream_require(s, s->at == s->end);
	if (s->error)
		return;
	if (s->reading)
		s->end = s->length;
	else if (s->out)
		put_number(s->out + s->record - 8, s->at - s->record, 8);
}

void record_skip(struct byte_stream *s)
{
	if (!s->error)
		s->at = s->end;
}

/* --- Fields. */

void field_bytes(struct byte_stream *s, void *bytes, size_t n)
{
	const uint8_t *from = s->reading ? field_take(s, n) : bytes;
	uint8_t *to = s->reading ? bytes : take_room(s, n);

	if (!n || !to)
		return;
	if (from)
		memcpy(to, from, n);
	else
		memset(to, 0, n);
}

static uint64_t field_number(struct byte_stream *s, uint64_t value, size_t n)
{
	const uint8_t *from;
	uint8_t *to;

	if (s->reading) {
		from = field_take(s, n);
		return from ? get_number(from, n) : 0;
	}
	to = take_room(s, n);
	if (to)
		put_number(to, value, n);
	return value;
}

void field_bool(struct byte_stream *s, bool *value)
{
	const uint64_t number = field_number(s, *value, 1);

	byte_stream_require(s, number <= 1);
	*value = number == 1;
}

void field_u8(struct byte_stream *s, uint8_t *value)
{
	*value = (uint8_t)field_number(s, *value, sizeof(*value));
}

void field_u16(struct byte_stream *s, uint16_t *value)
{
	*value = (uint16_t)field_number(s, *value, sizeof(*value));
}

void field_u32(struct byte_stream *s, uint32_t *value)
{
	*value = (uint32_t)field_number(s, *value, sizeof(*value));
}

void field_u64(struct byte_stream *s, uint64_t *value)
{
	*value = field_number(s, *value, sizeof(*value));
}
