/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bench/raw_frame.h"

#include <string.h>

#include <netdev/netdev.h>

#define SOURCE 6
#define TYPE   12
#define KIND   22
#define NUMBER 24

static const uint8_t mark[KIND - TYPE] = {0x89, 0x15, 'u', 'r', 'x', 'e', 'b', 'a', 'r', 'e'};

void raw_frame_write(uint8_t bytes[RAW_FRAME_LEN], const uint8_t to[6], const uint8_t from[6],
		     enum raw_frame_type type, uint32_t number)
{
	memset(bytes, 0, RAW_FRAME_LEN);
	memcpy(bytes, to, 6);
	memcpy(bytes + SOURCE, from, 6);
	memcpy(bytes + TYPE, mark, sizeof(mark));
	bytes[KIND] = (uint8_t)type;
	memcpy(bytes + NUMBER, &number, sizeof(number));
}

bool raw_frame_is(const struct netdev_frame *frame, enum raw_frame_type type, const uint8_t *to)
{
	return frame->len >= RAW_FRAME_LEN && !memcmp(frame->data + TYPE, mark, sizeof(mark)) &&
	       frame->data[KIND] == type && (!to || !memcmp(frame->data, to, 6));
}

uint32_t raw_frame_number(const struct netdev_frame *frame)
{
	uint32_t number;

	memcpy(&number, frame->data + NUMBER, sizeof(number));
	return number;
}

const uint8_t *raw_frame_source(const struct netdev_frame *frame)
{
	return frame->data + SOURCE;
}
