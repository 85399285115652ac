/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parts of urxe_packet_parse that the engine uses alone. */
#ifndef URXE_WIRE_PACKET_PARSE_H
#define URXE_WIRE_PACKET_PARSE_H

#include <rxe/packet.h>

#include "wire/header_fields.h"

/* VLAN ID of a received packet; 0 = none. A tag with ID 0 has only a priority (802.1Q). */
static inline uint16_t packet_vlan(const struct urxe_packet *p)
{
	return p->has_vlan ? p->vlan_tci & VLAN_ID_MASK : 0;
}

/* Parses the BTH, the extended headers and the payload; `end` is the end by the IP or GRH length.
 * Returns URXE_DROP_NONE, or why the engine does not accept the packet. */
enum urxe_drop parse_transport(struct urxe_packet *p, const uint8_t *bth, const uint8_t *end);

#endif
