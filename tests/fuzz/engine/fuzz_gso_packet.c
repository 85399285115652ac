/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any virtio-net header, any first bytes and any length as a received GSO packet: its frames lie in
 * the memory of the receiver, do not overlap, and have all bytes of the packet.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <netdev/gso_packet.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint32_t len;
	struct virtio_net_hdr vnet;
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void fill(const struct iovec *parts, uint32_t n, uint32_t total)
{
	const uint8_t *end = NULL;

	for (uint32_t i = 0; i < n; i++) {
		check(parts[i].iov_len && (const uint8_t *)parts[i].iov_base >= end);
		memset(parts[i].iov_base, (int)i, parts[i].iov_len);
		end = (const uint8_t *)parts[i].iov_base + parts[i].iov_len;
		total -= (uint32_t)parts[i].iov_len;
	}
	check(!total);
}

static void check_frames(struct gso_packet *packet, uint32_t n)
{
	struct packet_port_frame frame;
	uint32_t count = 0;

	for (; gso_packet_next(packet, &frame); count++) {
		check(gso_headers(frame.data, frame.len) || frame.len < GSO_HEADERS);
		check(frame.data[frame.len - 1] == (uint8_t)count);
		/* A VLAN tag may be inserted. */
		frame.data[-4] = frame.data[-1] = 0;
	}
	check(count == n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct iovec parts[GSO_SEGMENTS];
	struct gso_packet packet;
	struct input input;
	uint32_t n;

	if (size < sizeof(input) || !gso_packet_create(&packet))
		return 0;
	memcpy(&input, data, sizeof(input));
	data += sizeof(input);
	size -= sizeof(input);
	if (gso_packet_start(&packet, &input.vnet, data, (uint32_t)size, input.len)) {
		n = gso_packet_parts(&packet, parts);
		check(n && n <= GSO_SEGMENTS);
		fill(parts, n, packet.length);
		gso_packet_finish(&packet);
		check_frames(&packet, n);
	}
	gso_packet_destroy(&packet);
	return 0;
}
