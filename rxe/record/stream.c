/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <rxe/state_stream.h>

#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>

#include <rxe/rxe.h>

#define VERSION_AT 8u
#define CRC_AT     12u
#define LENGTH_AT  16u
#define FIRST_ROOM 4096u
/* Bytes of a record's kind. */
#define KIND_LEN 4u

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

/* --- Bytes. */

static void grow_stream(struct state_stream *s, size_t n)
{
	size_t room = s->room ? s->room : FIRST_ROOM;
	uint8_t *out;

	while (room - s->at < n)
		room *= 2;
	if (room == s->room)
		return;
	out = realloc(s->out, room);
	if (!out) {
		state_fail(s, -ENOMEM);
		return;
	}
	s->out = out;
	s->room = room;
}

/* Saving: where the next n bytes go; NULL: the stream only counts, or has an error. */
static uint8_t *make_stream_room(struct state_stream *s, size_t n)
{
	if (s->error)
		return NULL;
	if (!s->fixed)
		grow_stream(s, n);
	else if (s->out && n > s->room - s->at)
		state_fail(s, -EBUSY);
	if (s->error)
		return NULL;
	s->at += n;
	return s->out ? s->out + (s->at - n) : NULL;
}

const uint8_t *state_take(struct state_stream *s, size_t n)
{
	state_require(s, n <= s->end - s->at);
	if (s->error)
		return NULL;
	s->at += n;
	return s->in + (s->at - n);
}

void state_bytes(struct state_stream *s, void *bytes, size_t n)
{
	const uint8_t *from = s->restoring ? state_take(s, n) : bytes;
	uint8_t *to = s->restoring ? bytes : make_stream_room(s, n);

	if (!n || !to)
		return;
	if (from)
		memcpy(to, from, n);
	else
		memset(to, 0, n);
}

/* --- The stream as a whole. */

static uint32_t checksum(const uint8_t *stream, size_t length)
{
	const uint32_t crc = crc32_gzip_refl(0, stream, CRC_AT);

	return crc32_gzip_refl(crc, stream + LENGTH_AT, length - LENGTH_AT);
}

static void begin_save(struct state_stream *s, const struct state_format *format)
{
	uint8_t header[STATE_HEADER] = {0};

	s->long_records = format->long_records;
	s->version = format->version;
	memcpy(header, format->name, STATE_NAME);
	put_le(header + VERSION_AT, s->version, 4);
	state_bytes(s, header, sizeof(header));
}

void stream_begin_save(struct state_stream *s, const struct state_format *format)
{
	*s = (struct state_stream){.fixed = false};
	begin_save(s, format);
}

void stream_begin_save_to(struct state_stream *s, const struct state_format *format, uint8_t *out,
			  size_t room)
{
	*s = (struct state_stream){.fixed = true, .out = out, .room = room};
	begin_save(s, format);
}

int stream_finish_save_to(struct state_stream *s)
{
	if (!s->error && s->out) {
		put_le(s->out + LENGTH_AT, s->at, 8);
		put_le(s->out + CRC_AT, checksum(s->out, s->at), 4);
	}
	return s->error;
}

int stream_finish_save(struct state_stream *s, uint8_t **stream, size_t *length)
{
	if (stream_finish_save_to(s)) {
		free(s->out);
		return s->error;
	}
	*stream = s->out;
	*length = s->at;
	return 0;
}

int stream_begin_restore(struct state_stream *s, const struct state_format *format,
			 const uint8_t *stream, size_t length)
{
	*s = (struct state_stream){
		.restoring = true,
		.long_records = format->long_records,
		.budget = UINT64_MAX,
		.in = stream,
		.at = STATE_HEADER,
		.end = length,
	};
	if (length < STATE_HEADER || memcmp(stream, format->name, STATE_NAME)) {
		s->error = -EBADMSG;
		return s->error;
	}
	s->version = (uint32_t)get_le(stream + VERSION_AT, 4);
	if (s->version > format->version)
		s->error = -EPROTONOSUPPORT;
	state_require(s, s->version && get_le(stream + LENGTH_AT, 8) == length);
	if (!s->error)
		state_require(s, get_le(stream + CRC_AT, 4) == checksum(stream, length));
	return s->error;
}

int stream_finish_restore(struct state_stream *s)
{
	state_require(s, s->at == s->end);
	return s->error;
}

/* --- Records. */

/* Bytes of a record's length. */
static size_t length_bytes(const struct state_stream *s)
{
	return s->long_records ? 8 : 4;
}

void state_begin(struct state_stream *s, uint32_t kind)
{
	uint8_t header[KIND_LEN + 8] = {0};
	uint64_t length;

	put_le(header, kind, KIND_LEN);
	state_bytes(s, header, KIND_LEN + length_bytes(s));
	length = get_le(header + KIND_LEN, length_bytes(s));
	if (s->restoring)
		state_require(s, get_le(header, KIND_LEN) == kind && length <= s->end - s->at);
	if (s->error)
		return;
	s->outer[s->depth++] = s->restoring ? s->end : s->at;
	if (s->restoring)
		s->end = s->at + (size_t)length;
}

void state_end(struct state_stream *s)
{
	size_t begin, bytes = length_bytes(s);

	if (s->restoring)
		state_require(s, s->at == s->end);
	if (s->error)
		return;
	begin = s->outer[--s->depth];
	if (s->restoring)
		s->end = begin;
	else if (bytes == 4 && s->at - begin > UINT32_MAX)
		state_fail(s, -EFBIG);
	else if (s->out)
		put_le(s->out + begin - bytes, s->at - begin, bytes);
}

uint32_t state_next_record(const struct state_stream *s)
{
	const size_t header = KIND_LEN + length_bytes(s), left = state_left(s);

	if (left < header || get_le(s->in + s->at + KIND_LEN, length_bytes(s)) > left - header)
		return 0;
	return (uint32_t)get_le(s->in + s->at, KIND_LEN);
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

/* A number of n bytes. One above `max` is an error, and is read as 0. */
static uint64_t state_number(struct state_stream *s, uint64_t value, size_t n, uint64_t max)
{
	uint8_t bytes[8];

	put_le(bytes, value, n);
	state_bytes(s, bytes, n);
	value = get_le(bytes, n);
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
	const uint64_t number = state_number(s, s->restoring ? 0 : *value, 1, 1);

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
	const uint64_t number = state_number(s, s->restoring ? 0 : *value, 8, UINT64_MAX);

	STORE(s, value, number);
}

void state_u8_max(struct state_stream *s, uint8_t *value, uint8_t max)
{
	const uint64_t number = state_number(s, s->restoring ? 0 : *value, 1, max);

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
	const uint64_t number = state_number(s, s->restoring ? 0 : *value, 2, max);

	STORE(s, value, (uint16_t)number);
}

void state_u32_max(struct state_stream *s, uint32_t *value, uint32_t max)
{
	const uint64_t number = state_number(s, s->restoring ? 0 : *value, 4, max);

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
