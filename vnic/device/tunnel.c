/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the headers inside a VXLAN (RFC 7348) or Geneve (RFC 8926) packet: those of an Ethernet
 * frame or, in Geneve, of an IP packet.
 */
#include <netinet/in.h>

#include "headers.h"

/* The destination ports that vmxnet3 drivers offload. */
#define PORT_VXLAN     4789
#define PORT_VXLAN_OLD 8472 /* Linux' port from before the assignment */
#define PORT_GENEVE    6081

#define VXLAN_HEADER    8
#define GENEVE_HEADER   8 /* without options */
#define GENEVE_OPTIONS  0x3fu
#define ETHERTYPE_ETHER 0x6558 /* the type of an Ethernet frame inside another packet */

/* The offset of the inner packet, and its EtherType; 0: not a tunnel. */
static uint32_t inner_offset(const struct vnic_headers *outer, const uint8_t *frame, uint32_t len,
			     uint32_t *type)
{
	const uint32_t tunnel = outer->l4 + UDP_HEADER;
	const uint8_t *header = frame + tunnel;

	if (outer->protocol != IPPROTO_UDP || outer->fragment || len < tunnel + GENEVE_HEADER)
		return 0;
	*type = ETHERTYPE_ETHER;
	switch (vnic_get16(frame + outer->l4 + 2)) {
	case PORT_VXLAN:
	case PORT_VXLAN_OLD: return tunnel + VXLAN_HEADER;
	case PORT_GENEVE:
		*type = vnic_get16(header + 2);
		return tunnel + GENEVE_HEADER + (header[0] & GENEVE_OPTIONS) * 4;
	default: return 0;
	}
}

bool vnic_headers_find_inner(struct vnic_headers *outer, struct vnic_headers *inner,
			     const uint8_t *frame, uint32_t len)
{
	uint32_t offset, type;

	if (!vnic_headers_find(outer, frame, len))
		return false;
	offset = inner_offset(outer, frame, len, &type);
	if (!offset || offset > len)
		return false;
	if (type != ETHERTYPE_ETHER)
		return vnic_headers_find_ip(inner, frame, len, offset, type);
	if (!vnic_headers_find(inner, frame + offset, len - offset))
		return false;
	inner->l3 += offset;
	inner->l4 += offset;
	inner->end += offset;
	return true;
}
