/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "state_patch.h"

#include <string.h>

#define CRC_AT    12u
#define HEADER    24u
#define LENGTH_AT 16u

static uint32_t crc_of(uint32_t crc, const uint8_t *bytes, size_t n)
{
	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void complete(uint8_t *stream, size_t length)
{
	const uint32_t crc =
		crc_of(crc_of(0, stream, CRC_AT), stream + LENGTH_AT, length - LENGTH_AT);

	memcpy(stream + CRC_AT, &crc, sizeof(crc));
}

/* Streams with this name inside of the stream. */
static void complete_inner(uint8_t *stream, size_t length, const char *name)
{
	uint8_t *inner = stream + 1;
	uint64_t own, left;

	while ((inner = memmem(inner, length - (size_t)(inner - stream), name, 8))) {
		left = length - (size_t)(inner - stream);
		if (left < HEADER)
			return;
		memcpy(&own, inner + LENGTH_AT, sizeof(own));
		if (own >= HEADER && own <= left)
			complete(inner, own);
		inner++;
	}
}

void state_patch(struct script *in, uint8_t *stream, size_t length)
{
	static const uint64_t values[] = {0,      1,         2,          7,          8,
					  15,     16,        255,        4096,       65535,
					  0x1000, 0x7ffffff, 0x80000000, UINT32_MAX, UINT64_MAX};
	uint32_t n = script_get8(in) % 4;

	while (n--) {
		const size_t at = script_get16(in) % length;
		const uint8_t choice = script_get8(in);
		const size_t width = (size_t)1 << (choice >> 6);
		uint64_t value = values[choice % 15];

		if (choice & 0x20)
			value = script_get8(in);
		memcpy(stream + at, &value, width < length - at ? width : length - at);
	}
	/* The innermost one first. */
	complete_inner(stream, length, "urxestat");
	complete_inner(stream, length, "urxevfio");
	complete_inner(stream, length, "urxeserv");
	complete(stream, length);
}
