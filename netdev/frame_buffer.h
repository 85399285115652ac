/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A copy of a frame. Its memory is kept and grows, so ports allocate none after the first frames.
 */
#ifndef URXE_NETDEV_FRAME_BUFFER_H
#define URXE_NETDEV_FRAME_BUFFER_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <netdev/netdev.h>

#include "netdev_ops.h"

struct frame_buffer {
	uint8_t *data;
	uint32_t size;
	uint32_t len;
	uint32_t wire_len;
	uint64_t time;
};

/* Replaces the buffer's frame by a copy of `frame`, with this time. False: no memory; the buffer is
 * unchanged. */
static inline bool frame_buffer_fill(struct frame_buffer *buf, const struct netdev_frame *frame,
				     uint64_t time)
{
	if (frame->len > buf->size) {
		uint8_t *data = realloc(buf->data, frame->len);

		if (!data)
			return false;
		buf->data = data;
		buf->size = frame->len;
	}
	if (frame->len)
		memcpy(buf->data, frame->data, frame->len);
	buf->len = frame->len;
	buf->wire_len = frame_wire_len(frame);
	buf->time = time;
	return true;
}

static inline struct netdev_frame frame_buffer_view(const struct frame_buffer *buf)
{
	return (struct netdev_frame){buf->data, buf->len, buf->wire_len, buf->time};
}

#endif
