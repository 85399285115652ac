/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Where the headers of a frame are, as far as offloads have to know, and checksums. */
#ifndef URXE_VNIC_DEVICE_HEADERS_H
#define URXE_VNIC_DEVICE_HEADERS_H

#include <stdbool.h>
#include <stdint.h>

/* Offsets from the frame's start. */
struct vnic_headers {
	uint32_t l3;
	uint32_t l4;
	uint32_t end; /* of the IP packet, as it says itself: not checked */
	uint8_t protocol;
	bool v4, v6;
	bool fragment;
};

/* False: no IP packet, or its headers do not lie in the frame. l3 and l4 are in it, then. */
bool vnic_headers_find(struct vnic_headers *h, const uint8_t *frame, uint32_t len);

/* Goes on with a ones' complement sum; only the last piece may have an odd length. */
uint64_t vnic_sum(const uint8_t *data, uint32_t len, uint64_t sum);
/* The checksum, to be stored as it is. */
uint16_t vnic_sum_fold(uint64_t sum);
/* The sum of the pseudo-header of a datagram of `len` bytes, from its own header on. */
uint64_t vnic_sum_pseudo(const struct vnic_headers *h, const uint8_t *frame, uint32_t len);

#endif
