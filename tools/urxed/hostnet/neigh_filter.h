/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Filters for frames of stations: does a frame tell its receivers, by ARP or neighbour discovery
 * (ND), that an address belongs to a MAC? The switch asks before it forwards a frame.
 *
 * Receivers may accept frames that neigh.c does not: behind several VLAN tags or a SNAP header, and
 * ND behind extension headers of IPv6. A filter that does not understand ARP or ND refuses the
 * frame. Each frame may have any content; nobody writes to it meanwhile.
 */
#ifndef URXE_URXED_HOSTNET_NEIGH_FILTER_H
#define URXE_URXED_HOSTNET_NEIGH_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/hostnet/neigh.h"

/*
 * False: the frame claims a pinned address for another MAC, or is ARP or ND that the filter does
 * not understand. Without pinned addresses each frame is allowed.
 */
bool neigh_claim_allowed(const struct neigh *n, const uint8_t *frame, uint32_t len);
/*
 * True: the frame claims an address of the host, in whatever VLAN, or is ARP or ND that the filter
 * does not understand.
 */
bool neigh_claims_host(const struct neigh *n, const uint8_t *frame, uint32_t len);

#endif
