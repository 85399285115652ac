/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UDP GSO packets of RoCEv2 (udp(7), UDP_SEGMENT): the headers of the first of several frames, then
 * the UDP payloads of all. The kernel's network stack handles them as one packet. The packet port
 * and tools/capture/gso_run.c use them.
 */
#ifndef URXE_NETDEV_GSO_PACKET_H
#define URXE_NETDEV_GSO_PACKET_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <netdev/packet_port.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4 /* in headers of Linux 6.2 and later */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/* Most segments, and most bytes with headers, of one packet: below the kernel's limits. */
#define GSO_SEGMENTS 64
#define GSO_BYTES    65000u

/* Ethernet, IPv6 and UDP headers. */
#define GSO_HEADERS 62

/*
 * Length of the headers from Ethernet to UDP. 0: the frame is shorter than GSO_HEADERS, is not UDP,
 * or has a VLAN tag, IPv4 options or IPv6 extension headers.
 */
uint32_t gso_headers(const uint8_t *frame, uint32_t len);

/* --- Sending */

/* The number of frames, from the first, that one packet can carry; 1: only the first. */
uint32_t gso_count(const struct packet_port_frame *frames, uint32_t n);
/*
 * Writes the headers of a UDP GSO packet of n frames, at least 2, to `headers`, and the segment
 * size and checksum offsets to *vnet. Returns the headers' length. The caller sends these headers,
 * then the bytes of each frame after its own headers.
 */
uint32_t gso_write_headers(const struct packet_port_frame *frames, uint32_t n,
			   uint8_t headers[GSO_HEADERS], struct virtio_net_hdr *vnet);

/* --- Receiving */

/* A received packet, cut into frames. */
struct gso_packet {
	uint8_t *memory; /* of all frames; NULL: not allocated */
	uint8_t headers[GSO_HEADERS];
	uint32_t headers_len;
	uint32_t size;   /* bytes of a segment; the last may be shorter */
	uint32_t length; /* bytes of all segments */
	uint32_t stride; /* between two frames in `memory` */
	uint32_t count;  /* frames */
	uint32_t next;   /* frame to give to the caller */
};

/* Allocates the memory of the frames. False: no memory. */
bool gso_packet_create(struct gso_packet *packet);
void gso_packet_destroy(struct gso_packet *packet);
/*
 * Parses the headers of a received packet of `len` bytes; its first `known` bytes are at `start`,
 * the rest has not been read from the socket yet. False: the packet is no UDP GSO packet, is too
 * long, or has more than GSO_SEGMENTS segments, or `packet` has no memory.
 */
bool gso_packet_start(struct gso_packet *packet, const struct virtio_net_hdr *vnet,
		      const uint8_t *start, uint32_t known, uint32_t len);
/* Sets parts to the places of the segments' payloads in `memory`; returns the number of parts. */
uint32_t gso_packet_parts(const struct gso_packet *packet, struct iovec parts[GSO_SEGMENTS]);
/* Writes the headers of all frames. The caller may fill the parts before or afterwards. Before this
 * call gso_packet_next returns no frame. */
void gso_packet_finish(struct gso_packet *packet);
/* The next frame; its data has room for a VLAN tag in front. False: there is no further one. */
bool gso_packet_next(struct gso_packet *packet, struct packet_port_frame *frame);

#endif
