/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads the header fields of a frame that the switch needs: kind, MACs, VLAN, IP addresses and
 * QPNs.
 *
 * This parser knows packets without IP options and with at most one VLAN tag; every other frame is
 * FRAME_OTHER. It leaves full checks of packets to the engine.
 */
#ifndef URXE_URXED_SWITCH_CLASSIFY_H
#define URXE_URXED_SWITCH_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ether.h"

/* The longest headers that the parser reads: Ethernet, 802.1Q, IPv6, UDP, BTH, DETH. */
#define CLASSIFY_HEAD \
	(ETHER_HDR_LEN + ETHER_VLAN_LEN + IPV6_HDR_LEN + UDP_HDR_LEN + BTH_LEN + DETH_LEN)

enum frame_kind {
	FRAME_RUNT,  /* no complete Ethernet header; other members are not set */
	FRAME_OTHER, /* only the MACs and the VLAN are set */
	FRAME_ROCE,  /* all members are set */
	FRAME_ARP,
	FRAME_ND, /* neighbour solicitation or advertisement (RFC 4861) */
};

/* The transport service, by the transport bits of the opcode (IBA 9.2.1). */
enum frame_service {
	FRAME_RC,
	FRAME_UC,
	FRAME_DATAGRAM,  /* UD */
	FRAME_CNP,       /* Annex A17.9.3 */
	FRAME_NO_SERVICE /* a service that urxe does not implement */
};

struct frame_class {
	uint8_t dmac[ETHER_MAC_LEN];
	uint8_t smac[ETHER_MAC_LEN];
	enum frame_kind kind;
	uint16_t vlan; /* VLAN ID; 0 = none */
	/* The lengths of all headers agree, and the packet is no fragment. So every receiver reads
	 * the same fields from the packet as this parser. */
	bool whole;
	uint8_t sip[16]; /* IPv4 as ::ffff:a.b.c.d; RoCEv1: the GRH's GID */
	uint8_t dip[16];
	enum frame_service service;
	bool response; /* RC: an acknowledgement, or the data of a READ or atomic */
	uint32_t dest_qpn;
	uint32_t src_qpn; /* valid for a datagram that is `whole` */
	/* A copy of the frame's first head_len bytes, from which the fields above were read. */
	uint32_t head_len;
	uint8_t head[CLASSIFY_HEAD];
};

/* Sets *s from the headers of the frame. Reads each byte of `frame` only once, because a process
 * may write to that memory meanwhile. */
void classify_frame(struct frame_class *s, const uint8_t *frame, uint32_t len);

#endif
