/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fields of a packet that urxe_packet_parse has parsed. */
#ifndef URXE_WIRE_PACKET_PARSE_H
#define URXE_WIRE_PACKET_PARSE_H

#include <rxe/packet.h>

#include "wire/header_fields.h"

/* VLAN ID of a received packet; 0 = none. A tag with ID 0 has only a priority (802.1Q). */
static inline uint16_t packet_vlan(const struct urxe_packet *p)
{
	return p->has_vlan ? p->vlan_tci & VLAN_ID_MASK : 0;
}

#endif
