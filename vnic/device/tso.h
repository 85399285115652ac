/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* TCP segmentation: splits a packet of up to 64 KiB into frames of one MSS each. */
#ifndef URXE_VNIC_DEVICE_TSO_H
#define URXE_VNIC_DEVICE_TSO_H

#include <stdbool.h>
#include <stdint.h>

#include "headers.h"

/* Whether the packet lies in a VXLAN or Geneve packet, and whether that has a UDP checksum. */
enum vnic_tso_tunnel { VNIC_TSO_PLAIN, VNIC_TSO_TUNNEL, VNIC_TSO_TUNNEL_CSUM };

struct vnic_tso {
	const uint8_t *packet;
	uint32_t len;
	uint32_t header; /* bytes of all headers */
	uint32_t mss;
	uint32_t sent; /* bytes of the payload */
	struct vnic_headers at;
	struct vnic_headers outer; /* the outer headers of a tunnel; `at` then has the inner
				      headers */
	enum vnic_tso_tunnel tunnel;
};

/* Begins to segment a packet, which the caller keeps until the last frame. False: not a TCP packet
 * (in a tunnel, unless `tunnel` is VNIC_TSO_PLAIN) with headers of that size, or without payload,
 * or the MSS is 0. */
bool vnic_tso_start(struct vnic_tso *tso, const uint8_t *packet, uint32_t len, uint32_t header,
		    uint32_t mss, enum vnic_tso_tunnel tunnel);
/* Makes the next frame, header + mss bytes at most; returns its length. */
uint32_t vnic_tso_next(struct vnic_tso *tso, uint8_t *frame);

static inline bool vnic_tso_finished(const struct vnic_tso *tso)
{
	return tso->sent == tso->len - tso->header;
}

#endif
