/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Turns a packet of the kernel into the frames that a NIC would have sent: completes a checksum
 * that the kernel leaves to the NIC, and cuts a TCP or UDP GSO packet (packet(7),
 * PACKET_VNET_HDR). The kernel itself does so for an interface without these offloads
 * (net/core/gso.c).
 */
#ifndef URXE_NETDEV_SEGMENTER_H
#define URXE_NETDEV_SEGMENTER_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

/* The longest packet that a segmenter accepts, and the longest frame that it writes, in bytes. */
#define SEGMENTER_PACKET_MAX (14 + UINT16_MAX)
#define SEGMENTER_FRAME_MAX  (SEGMENTER_PACKET_MAX + 4)

struct segmenter {
	const uint8_t *packet; /* the caller's; NULL: no frame is left */
	uint32_t len;
	bool tagged;
	uint16_t tci;       /* in host byte order */
	uint32_t checksum;  /* offset of the transport checksum; 0: the packet has its own */
	uint32_t transport; /* offset of the TCP or UDP header */
	uint32_t done;      /* bytes of payload in the frames written so far */
	uint32_t count;     /* number of frames written so far */
	/* The rest is valid for a GSO packet only. */
	uint32_t size;    /* payload of each frame but the last; 0: no GSO packet */
	uint32_t network; /* offset of the IP header */
	bool ipv4;
	uint32_t headers; /* length of all headers */
};

/*
 * Begins with a packet of `len` bytes from the Ethernet header on, without the 802.1Q tag that the
 * kernel took out, which has `tci` (NULL: no tag). `packet` must stay until the last frame. False:
 * the virtio-net header does not fit the packet's outer headers (as for a GSO packet of a tunnel),
 * or asks for another offload, such as the CRC of SCTP; or `len` is out of range.
 */
bool segmenter_start(struct segmenter *s, const struct virtio_net_hdr *vnet, const uint16_t *tci,
		     const uint8_t *packet, uint32_t len);
/*
 * Writes the next frame, with its tag, to `to`. Returns its length; 0: no frame is left, or the
 * next one is longer than `room` bytes.
 */
uint32_t segmenter_next(struct segmenter *s, uint8_t *to, uint32_t room);

#endif
