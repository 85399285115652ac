/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a frame belongs and whom it claims to come from: as much of it as the
 * switch needs, and no more.
 *
 * The engine checks packets; this only looks at the places where a packet without
 * IP options and with at most one VLAN tag has its fields.
 */
#ifndef URXE_URXED_SWITCH_CLASSIFY_H
#define URXE_URXED_SWITCH_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ether.h"

/* The longest headers that are looked at: Ethernet, 802.1Q, IPv6, UDP, BTH, DETH. */
#define CLASSIFY_HEAD \
	(ETHER_HDR_LEN + ETHER_VLAN_LEN + IPV6_HDR_LEN + UDP_HDR_LEN + BTH_LEN + DETH_LEN)

enum frame_kind {
	FRAME_RUNT,  /* no whole Ethernet header: nothing else is set */
	FRAME_OTHER, /* only the MACs and the VLAN are set */
	FRAME_ROCE,  /* all is set */
	FRAME_ARP,
	FRAME_ND, /* neighbour solicitation or advertisement (RFC 4861) */
};

/* By the transport bits of the opcode (IBA 9.2.1). */
enum frame_service {
	FRAME_CONNECTED, /* RC, UC */
	FRAME_DATAGRAM,  /* UD */
	FRAME_CNP,       /* Annex A17.9.3 */
	FRAME_NO_SERVICE /* one that nobody here speaks */
};

struct frame_class {
	uint8_t dmac[ETHER_MAC_LEN];
	uint8_t smac[ETHER_MAC_LEN];
	enum frame_kind kind;
	uint16_t vlan; /* ID; 0 = none */
	/*
	 * Whether each host that takes the packet finds what is found here: its lengths
	 * agree with each other and hold all headers, and it is no fragment.
	 */
	bool whole;
	uint8_t sip[16]; /* IPv4 as ::ffff:a.b.c.d; a GRH's GID */
	uint8_t dip[16];
	enum frame_service service;
	uint32_t dest_qpn;
	uint32_t src_qpn; /* of a datagram that is whole */
	/* The frame's first bytes, as they were when they were looked at. */
	uint32_t head_len;
	uint8_t head[CLASSIFY_HEAD];
};

/* frame may lie in memory that another process writes to: each byte is read once. */
void classify_frame(struct frame_class *s, const uint8_t *frame, uint32_t len);

#endif
