/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets of a QP that may leave as one UDP GSO packet (urxe_frame.continues), and how a peer tells
 * that it can receive such packets. packet_build.c, the requester and the responder use this
 * header.
 *
 * When the kernel cuts a UDP GSO packet into segments, it increments the IPv4 identification for
 * each segment, and the ICRC covers that field. So the packets of a run have consecutive
 * identifications, and equal lengths; only the last may be shorter.
 *
 * A peer that cannot receive UDP GSO packets would lose whole runs. So a device that can receive
 * them (urxe_dev_set_gso) marks its ACKs and READ requests: it sets the IPv4 identification to
 * GSO_MARK_IPV4, or the IPv6 flow label to GSO_MARK_IPV6 if the path sets no flow label. Devices
 * without UDP GSO ignore both fields. A QP builds runs only if its peer's newest ACK or READ
 * request has the mark. Retransmitted packets, packets with a VLAN tag and packets without ICRC
 * never belong to a run; nor do RoCEv1 packets, because they have no UDP header.
 *
 * The receiver's kernel may join packets of one flow (GRO) and pass them to one program, that of
 * the first packet's QPN. In IPv4 the kernel joins only identifications that count up, or that are
 * all equal; packets outside of runs have UDP checksum 0, and the kernel joins no such packets
 * (docs/decisions.md). IPv6 has no identification. So the packets of a connected QP whose path sets
 * no flow label get a label made of the destination QPN: runs to two programs are two flows unless
 * both label and source port are equal. All packets but the marked ones have that label, so that a
 * network which spreads flows by label keeps their order. An owner that sets flow labels in paths
 * must use different ones for different programs.
 */
#ifndef URXE_WIRE_GSO_RUN_H
#define URXE_WIRE_GSO_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>

#include "wire/header_fields.h"

#define GSO_MARK_IPV4 0x7578
#define GSO_MARK_IPV6 0x57578u

/* Limits of the kernel for one UDP GSO packet: number of segments, and bytes with the headers. */
#define GSO_RUN_PACKETS 64
#define GSO_RUN_BYTES   65000u

struct header_template;
struct urxe_frame;

/* The run that the newest frame belongs to. */
struct gso_run {
	const struct urxe_frame *last; /* NULL: none */
	const struct header_template *header;
	uint32_t len; /* of each packet but the last, from the BTH to the ICRC */
	uint32_t packets;
	bool ended; /* its last packet was shorter */
};

/*
 * Adds a frame of `len` bytes from the BTH to the ICRC to the run, or begins another run. Returns
 * the frame's place in its run, which is its IPv4 identification.
 */
static inline uint32_t gso_run_add(struct gso_run *run, const struct urxe_frame *frame,
				   const struct header_template *header, uint32_t len)
{
	if (run->last && run->last + 1 == frame && run->header == header && !run->ended &&
	    len <= run->len && run->packets < GSO_RUN_PACKETS &&
	    run->packets * run->len + len <= GSO_RUN_BYTES)
		run->packets++;
	else
		*run = (struct gso_run){.header = header, .len = len, .packets = 1};
	run->last = frame;
	run->ended = len < run->len;
	return run->packets - 1;
}

/* Sets the flow label in an IPv6 header. */
static inline void gso_label_ipv6(uint8_t *ip, uint32_t label)
{
	put32(ip, (get32(ip) & ~0xfffffu) | label);
}

/* The flow label of a connected QP's packets if the path sets none. It is never the mark. */
static inline uint32_t gso_flow_label(uint32_t dest_qpn)
{
	uint32_t label = (dest_qpn ^ dest_qpn >> 20) & 0xfffff;

	return label == GSO_MARK_IPV6 ? label ^ 1 : label;
}

static inline bool gso_is_marked(const struct urxe_packet *p)
{
	if (p->net == URXE_NET_IPV4)
		return get16(p->l3 + 4) == GSO_MARK_IPV4;
	return p->net == URXE_NET_IPV6 && p->flow_label == GSO_MARK_IPV6;
}

#endif
