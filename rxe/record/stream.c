/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "record/stream.h"

#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>

#include <rxe/state.h>

/* Header: magic, version (4 bytes), CRC-32 of all other bytes (4), length of the stream (8). */
#define MAGIC_LEN  8
#define VERSION_AT 8
#define CRC_AT     12
#define LENGTH_AT  16
#define HEADER_LEN 24
/* Header of a record: its kind (4 bytes), and the number of bytes that follow (4). */
#define RECORD_LEN 8

static const uint8_t magic[MAGIC_LEN] = {'u', 'r', 'x', 'e', 's', 't', 'a', 't'};

static void put_le(uint8_t *to, uint64_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_le(const uint8_t *from, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)from[i] << 8 * i;
	return value;
}

void state_fail(struct state_stream *s, int error)
{
	if (!s->error)
		s->error = error;
}

/* --- The stream as a whole. */

static uint32_t checksum(const uint8_t *stream, size_t length)
{
	uint32_t crc = crc32_gzip_refl(0, stream, CRC_AT);

	return crc32_gzip_refl(crc, stream + LENGTH_AT, length - LENGTH_AT);
}

/* Saving: room for n more bytes; NULL: an error has occurred. */
static uint8_t *make_stream_room(struct state_stream *s, size_t n)
{
	size_t room = s->room ? s->room : 4096;
	uint8_t *out;

	if (s->error)
		return NULL;
	while (room - s->at < n)
		room *= 2;
	if (room > s->room) {
		out = realloc(s->out, room);
		if (!out) {
			state_fail(s, -ENOMEM);
			return NULL;
		}
		s->out = out;
		s->room = room;
	}
	s->at += n;
	return s->out + s->at - n;
}

/* Restoring: the next n bytes; NULL: an error has occurred. */
static const uint8_t *take_bytes(struct state_stream *s, size_t n)
{
	state_require(s, n <= s->end - s->at);
	if (s->error)
		return NULL;
	s->at += n;
	return s->in + s->at - n;
}

void stream_begin_save(struct state_stream *s, uint64_t now)
{
	uint8_t *header;

	*s = (struct state_stream){.version = URXE_STATE_VERSION, .now = now};
	header = make_stream_room(s, HEADER_LEN);
	if (!header)
		return;
	memset(header, 0, HEADER_LEN);
	memcpy(header, magic, MAGIC_LEN);
	put_le(header + VERSION_AT, s->version, 4);
}

void stream_finish_save(struct state_stream *s)
{
	if (s->error)
		return;
	put_le(s->out + LENGTH_AT, s->at, 8);
	put_le(s->out + CRC_AT, checksum(s->out, s->at), 4);
}

void stream_begin_restore(struct state_stream *s, const uint8_t *stream, size_t length,
			  uint64_t now)
{
	*s = (struct state_stream){
		.restoring = true,
		.now = now,
		.in = stream,
		.at = HEADER_LEN,
		.end = length,
	};
	if (length < HEADER_LEN || memcmp(stream, magic, MAGIC_LEN)) {
		state_fail(s, -EBADMSG);
		return;
	}
	s->version = (uint32_t)get_le(stream + VERSION_AT, 4);
	if (s->version > URXE_STATE_VERSION)
		state_fail(s, -EPROTONOSUPPORT);
	state_require(s, s->version && get_le(stream + LENGTH_AT, 8) == length);
	if (!s->error)
		state_require(s, get_le(stream + CRC_AT, 4) == checksum(stream, length));
}

/* --- Records. */

void state_begin(struct state_stream *s, enum state_record kind)
{
	uint32_t number = kind, length = 0;

	state_u32(s, &number);
	state_u32(s, &length);
	state_require(s, number == kind);
	if (s->restoring)
		state_require(s, length <= s->end - s->at);
	if (s->error)
		return;
	s->outer[s->depth++] = s->restoring ? s->end : s->at;
	if (s->restoring)
		s->end = s->at + length;
}

void state_end(struct state_stream *s)
{
	if (s->restoring)
		state_require(s, s->at == s->end);
	if (s->error)
		return;
	s->depth--;
	if (s->restoring)
		s->end = s->outer[s->depth];
	else if (s->at - s->outer[s->depth] > UINT32_MAX)
		state_fail(s, -EFBIG);
	else
		put_le(s->out + s->outer[s->depth] - 4, s->at - s->outer[s->depth], 4);
}

uint32_t state_next_record(const struct state_stream *s)
{
	return s->error || s->end - s->at < RECORD_LEN ? 0 : (uint32_t)get_le(s->in + s->at, 4);
}

void state_spend(struct state_stream *s, uint64_t n, uint64_t bytes)
{
	if (!s->restoring || !n)
		return;
	if (bytes > s->budget / n)
		state_fail(s, -EFBIG);
	else
		s->budget -= n * bytes;
}

/* --- Fields. */

void state_bytes(struct state_stream *s, void *bytes, size_t n)
{
	const uint8_t *from = s->restoring ? take_bytes(s, n) : bytes;
	uint8_t *to = s->restoring ? bytes : make_stream_room(s, n);

	if (!n || !to)
		return;
	if (from)
		memcpy(to, from, n);
	else
		memset(to, 0, n);
}

static uint64_t state_number(struct state_stream *s, uint64_t value, size_t n)
{
	const uint8_t *from;
	uint8_t *to;

	if (s->restoring) {
		from = take_bytes(s, n);
		return from ? get_le(from, n) : 0;
	}
	to = make_stream_room(s, n);
	if (to)
		put_le(to, value, n);
	return value;
}

/* As state_number; a greater number than max is an error, and is read as 0. */
static uint64_t state_number_max(struct state_stream *s, uint64_t value, size_t n, uint64_t max)
{
	value = state_number(s, value, n);
	state_require(s, value <= max);
	return s->restoring && value > max ? 0 : value;
}

/* While a device is saved, its fields are only read. */
#define STORE(s, to, value)            \
	do {                           \
		if ((s)->restoring)    \
			*(to) = value; \
	} while (0)

void state_bool(struct state_stream *s, bool *value)
{
	const uint64_t number = state_number_max(s, s->restoring ? 0 : *value, 1, 1);

	STORE(s, value, number);
}

void state_u8(struct state_stream *s, uint8_t *value)
{
	state_u8_max(s, value, UINT8_MAX);
}

void state_u16(struct state_stream *s, uint16_t *value)
{
	state_u16_max(s, value, UINT16_MAX);
}

void state_u32(struct state_stream *s, uint32_t *value)
{
	state_u32_max(s, value, UINT32_MAX);
}

void state_u64(struct state_stream *s, uint64_t *value)
{
	const uint64_t number = state_number(s, s->restoring ? 0 : *value, 8);

	STORE(s, value, number);
}

void state_u8_max(struct state_stream *s, uint8_t *value, uint8_t max)
{
	const uint64_t number = state_number_max(s, s->restoring ? 0 : *value, 1, max);

	STORE(s, value, (uint8_t)number);
}

#define FLAG 0x80

void state_u8_flag(struct state_stream *s, uint8_t *value, uint8_t max, bool *flag)
{
	uint8_t both = *value | (*flag ? FLAG : 0);

	state_u8(s, &both);
	state_require(s, (both & ~FLAG) <= max);
	if (!s->restoring)
		return;
	*value = both & (uint8_t)~FLAG;
	*flag = both & FLAG;
}

void state_u16_max(struct state_stream *s, uint16_t *value, uint16_t max)
{
	const uint64_t number = state_number_max(s, s->restoring ? 0 : *value, 2, max);

	STORE(s, value, (uint16_t)number);
}

void state_u32_max(struct state_stream *s, uint32_t *value, uint32_t max)
{
	const uint64_t number = state_number_max(s, s->restoring ? 0 : *value, 4, max);

	STORE(s, value, (uint32_t)number);
}

void state_u24(struct state_stream *s, uint32_t *value)
{
	state_u32_max(s, value, 0xffffff);
}

/* --- Times. */

/* The numbers for the times URXE_NEVER and 0. Numbers for other times are between them. */
#define NEVER INT64_MAX
#define ZERO  INT64_MIN
/* Longest distance of a time from now, in past or future, and longest duration, ns. */
#define FARTHEST (INT64_C(1) << 60)
#define LONGEST  (UINT64_C(1) << 42)

static int64_t limit(int64_t ns)
{
	return ns > FARTHEST ? FARTHEST : ns < -FARTHEST ? -FARTHEST : ns;
}

static int64_t to_duration(uint64_t now, uint64_t time)
{
	if (!time)
		return ZERO;
	if (time == URXE_NEVER)
		return NEVER;
	return limit((int64_t)(time - now));
}

static uint64_t to_time(uint64_t now, int64_t ns)
{
	if (ns == ZERO)
		return 0;
	if (ns == NEVER)
		return URXE_NEVER;
	ns = limit(ns);
	return ns < 0 && (uint64_t)-ns >= now ? 1 : now + (uint64_t)ns;
}

void state_time(struct state_stream *s, uint64_t *time)
{
	uint64_t number = s->restoring ? 0 : (uint64_t)to_duration(s->now, *time);

	state_u64(s, &number);
	STORE(s, time, s->error ? 0 : to_time(s->now, (int64_t)number));
}

void state_duration(struct state_stream *s, uint64_t *ns)
{
	uint64_t number = s->restoring || *ns <= LONGEST ? *ns : LONGEST;

	state_u64(s, &number);
	STORE(s, ns, number <= LONGEST ? number : LONGEST);
}

uint32_t state_count(struct state_stream *s, uint32_t n, size_t bytes)
{
	state_u32(s, &n);
	if (s->restoring)
		state_require(s, n <= (s->end - s->at) / bytes);
	return s->restoring && s->error ? 0 : n;
}
