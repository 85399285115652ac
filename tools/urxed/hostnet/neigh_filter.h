/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Filters for frames of stations: does a frame tell its receivers, by ARP or neighbour discovery
 * (ND), that an address belongs to a MAC? The switch calls these before it forwards a frame.
 *
 * Receivers may accept frames that neigh.c ignores: ARP or ND behind several VLAN tags or a SNAP
 * header, and ND behind extension headers of IPv6. A frame is unreadable if it has ARP or ND that
 * the filter cannot parse, or more than four VLAN tags. For an unreadable frame the filters answer
 * as for a forbidden claim. The frame may have any content, but the caller makes sure that the
 * content does not change during the call.
 */
#ifndef URXE_URXED_HOSTNET_NEIGH_FILTER_H
#define URXE_URXED_HOSTNET_NEIGH_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/hostnet/neigh.h"

/* Returns false if the frame claims a pinned address for another MAC, or is unreadable. Always true
 * if no address is pinned. */
bool neigh_claim_allowed(const struct neigh *n, const uint8_t *frame, uint32_t len);
/* Returns true if the frame claims an address of the host, in any VLAN, or is unreadable. */
bool neigh_claims_host(const struct neigh *n, const uint8_t *frame, uint32_t len);

#endif
