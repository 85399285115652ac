/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any virtio-net header and any bytes as a packet of the kernel: its frames fit the room that they
 * get, and have all payload of the packet.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <netdev/segmenter.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	struct virtio_net_hdr vnet;
	uint16_t tci; /* odd: the kernel took a tag out */
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* In a buffer of exactly the frame's length, so that AddressSanitizer sees each byte behind it. */
static uint32_t take_frame(struct segmenter *s)
{
	uint8_t *frame = malloc(SEGMENTER_FRAME_MAX), *exact;
	struct segmenter again = *s;
	uint32_t len = segmenter_next(&again, frame, SEGMENTER_FRAME_MAX);

	check(len <= SEGMENTER_FRAME_MAX);
	exact = malloc(len ? len : 1);
	check(!len || (!segmenter_next(s, exact, len - 1) && segmenter_next(s, exact, len) == len));
	check(!len || !memcmp(exact, frame, len));
	free(exact);
	free(frame);
	return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t len, bytes = 0, frames = 0;
	struct segmenter s;
	struct input input;
	uint8_t *packet;

	if (size <= sizeof(input))
		return 0;
	memcpy(&input, data, sizeof(input));
	size -= sizeof(input);
	packet = malloc(size);
	memcpy(packet, data + sizeof(input), size);
	if (segmenter_start(&s, &input.vnet, input.tci & 1 ? &input.tci : NULL, packet,
			    (uint32_t)size)) {
		const uint32_t extra = s.headers + (s.tagged ? 4 : 0);

		for (; (len = take_frame(&s)); frames++)
			bytes += len - extra;
		check(frames && bytes == size - s.headers);
	}
	free(packet);
	return 0;
}
