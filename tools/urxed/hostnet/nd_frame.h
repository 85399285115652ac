/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parses and builds neighbour solicitations and advertisements (RFC 4861, 4.3, 4.4, 7.2), and reads
 * the claims in all messages of neighbour discovery (ND). It neither handles nor sends frames
 * (arp_nd.h does). */
#ifndef URXE_URXED_HOSTNET_ND_FRAME_H
#define URXE_URXED_HOSTNET_ND_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ether.h"

#define ND_FRAME_LEN (ETHER_HDR_LEN + IPV6_HDR_LEN + 32)

struct nd {
	bool solicitation;           /* false = advertisement */
	uint8_t smac[ETHER_MAC_LEN]; /* from the link-layer address option */
	bool has_mac;
	bool solicited; /* advertisement: it answers a solicitation */
	bool override;  /* advertisement: it may replace a known MAC */
	uint8_t sip[16];
	uint8_t target[16];
};

/*
 * Parses a neighbour solicitation or advertisement. Returns false if the frame is neither, if it
 * fails a check of RFC 4861, 7.1, or if its link-layer address options have two different MACs; *m
 * is then not valid.
 */
bool nd_parse(struct nd *m, const uint8_t *frame, uint32_t len);
/*
 * A claim: the address and the MAC that a receiver of an ND message may cache. Router
 * solicitations, router advertisements and neighbour solicitations claim those of the IPv6 source;
 * neighbour advertisements and redirects claim those of the target.
 */
struct nd_claim {
	uint8_t ip[16]; /* of a redirect without a MAC: the IPv6 source */
	bool has_mac;   /* false: no link-layer address option names a MAC */
	uint8_t mac[ETHER_MAC_LEN];
};

/* Returns whether this ICMPv6 type is one of ND (RFC 4861, 4.1 to 4.5). */
bool nd_is_type(uint8_t type);
/*
 * Reads the claim of an ND message in an IPv6 packet without extension headers; `len`: bytes from
 * the IPv6 header on. Returns false if the packet has no such message, if the message fails a check
 * of RFC 4861, or if its link-layer address options have two different MACs. Omits the checks of
 * the destination, which a receiver may omit, too.
 */
bool nd_read_claim(struct nd_claim *claim, const uint8_t *ip, uint32_t len);
/* Makes the link-local address with the MAC's modified EUI-64 (RFC 4291, 2.5.6 and appendix A). */
void nd_link_local(const uint8_t mac[ETHER_MAC_LEN], uint8_t ip[16]);
/* Makes the MAC of the solicited-node group of an IPv6 address (RFC 4291, 2.7.1; RFC 2464, 7). */
void nd_group_mac(const uint8_t ip[16], uint8_t mac[ETHER_MAC_LEN]);
/* Writes a solicitation of ND_FRAME_LEN bytes for m->target, from m->sip. */
void nd_build_solicitation(uint8_t *frame, const struct nd *m);
/* Writes a solicitation of ND_FRAME_LEN bytes for m->target. It goes to the target's own address,
 * and to the MAC `mac`, instead of to the solicited-node group (RFC 4861, 7.3.3). */
void nd_build_probe(uint8_t *frame, const struct nd *m, const uint8_t mac[ETHER_MAC_LEN]);
/* Writes an advertisement of ND_FRAME_LEN bytes that answers the solicitation `to` and names `mac`
 * as the target's MAC. If the solicitation's sender has no address yet, the advertisement goes to
 * all nodes. */
void nd_build_advertisement(uint8_t *frame, const struct nd *to, const uint8_t mac[ETHER_MAC_LEN]);

#endif
