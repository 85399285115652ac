/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ARP and ND frames that neigh.c sends, with a VLAN tag if the own address is in a VLAN. */
#ifndef URXE_URXED_HOSTNET_NEIGH_PROBE_H
#define URXE_URXED_HOSTNET_NEIGH_PROBE_H

#include <stdint.h>

#include "urxed/hostnet/neigh.h"

/* Asks who has the address of an entry: the station with that MAC, or all stations if it is NULL.
 */
void neigh_probe_send(struct neigh *n, const struct neigh_entry *e, const uint8_t *mac);
/* Sends an untagged frame of at most NEIGH_FRAME_ROOM - ETHER_VLAN_LEN bytes from an own address.
 */
void neigh_frame_send(struct neigh *n, const struct host_address *from, const uint8_t *frame,
		      uint32_t len);

#endif
