/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Offsets of the headers in a frame, for offloads, and checksums. */
#ifndef URXE_VNIC_DEVICE_HEADERS_H
#define URXE_VNIC_DEVICE_HEADERS_H

#include <stdbool.h>
#include <stdint.h>

#define ETHERTYPE_IP4 0x0800
#define ETHERTYPE_IP6 0x86dd

#define MACS       12 /* bytes of both MACs */
#define TAG        4  /* bytes of an 802.1Q tag */
#define IP6_HEADER 40
#define UDP_HEADER 8
/* Offsets in a TCP or UDP header. */
#define TCP_SUM_AT 16
#define UDP_LEN_AT 4
#define UDP_SUM_AT 6

/* Offsets from the frame's start. */
struct vnic_headers {
	uint32_t l3;
	uint32_t l4;
	uint32_t end; /* end of the IP packet by its own length field, unchecked */
	uint8_t protocol;
	bool v4, v6;
	bool fragment;
};

/* Finds the headers of a frame. False: not an IP packet, or its headers do not lie in the frame. If
 * true, l3 and l4 lie in the frame. */
bool vnic_headers_find(struct vnic_headers *h, const uint8_t *frame, uint32_t len);

/* As vnic_headers_find, for an IP header at the offset `at`, at most `len`, of a packet with the
 * EtherType `type`. */
bool vnic_headers_find_ip(struct vnic_headers *h, const uint8_t *frame, uint32_t len, uint32_t at,
			  uint32_t type);

/* Finds the headers of a VXLAN or Geneve packet and of the packet in it; all offsets are those of
 * the whole frame. False: not such a packet. */
bool vnic_headers_find_inner(struct vnic_headers *outer, struct vnic_headers *inner,
			     const uint8_t *frame, uint32_t len);

static inline uint32_t vnic_get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Continues a ones' complement sum, and returns it; only the last piece may have an odd length. */
uint64_t vnic_sum(const uint8_t *data, uint32_t len, uint64_t sum);
/* The checksum of a sum of vnic_sum, in the byte order of the packet. */
uint16_t vnic_sum_fold(uint64_t sum);
/*
 * The sum of the pseudo-header of a TCP or UDP datagram; `len` counts its TCP or UDP header, too.
 */
uint64_t vnic_sum_pseudo(const struct vnic_headers *h, const uint8_t *frame, uint32_t len);

#endif
