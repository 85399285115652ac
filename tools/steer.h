/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a frame belongs: as much of it as the switch needs, and no more.
 *
 * The engine checks packets; this only finds the destination QPN at the places
 * where a packet without IP options and with at most one VLAN tag has it.
 */
#ifndef URXE_TOOLS_STEER_H
#define URXE_TOOLS_STEER_H

#include <stdint.h>

#include "ether.h"

enum steer_kind {
	STEER_RUNT,  /* no whole Ethernet header: nothing else is set */
	STEER_OTHER, /* only the MACs are set */
	STEER_ROCE,  /* dest_qpn is set */
	STEER_ARP,
	STEER_ND, /* neighbour solicitation or advertisement (RFC 4861) */
};

struct steer {
	uint8_t dmac[ETHER_MAC_LEN];
	uint8_t smac[ETHER_MAC_LEN];
	enum steer_kind kind;
	uint32_t dest_qpn;
};

/* frame may lie in memory that another process writes to: each byte is read once. */
void steer_peek(struct steer *s, const uint8_t *frame, uint32_t len);

#endif
