/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parses and builds neighbour solicitations and advertisements (RFC 4861, 4.3, 4.4, 7.2), and reads
 * the claims of all messages of neighbour discovery. arp_nd.c handles and sends them.
 */
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
	bool solicited; /* of an advertisement: it answers a solicitation */
	bool override;  /* of an advertisement: it may replace a known MAC */
	uint8_t sip[16];
	uint8_t target[16];
};

/*
 * Parses a neighbour solicitation or advertisement. False: it is neither, or fails a check of
 * RFC 4861, 7.1, or has link-layer address options with two different MACs; then *m is not valid.
 */
bool nd_parse(struct nd *m, const uint8_t *frame, uint32_t len);
/*
 * The address and the MAC that a receiver of a message may cache. Router solicitation, router
 * advertisement and neighbour solicitation: those of the IPv6 source. Neighbour advertisement and
 * redirect: those of the target.
 */
struct nd_claim {
	uint8_t ip[16]; /* of a redirect without a MAC: the IPv6 source */
	bool has_mac;   /* false: the message has no link-layer address option */
	uint8_t mac[ETHER_MAC_LEN];
};

/* Is this ICMPv6 type one of neighbour discovery (RFC 4861, 4.1 to 4.5)? */
bool nd_is_type(uint8_t type);
/*
 * Reads the claim of a message in an IPv6 packet without extension headers; `len` counts the bytes
 * from the IPv6 header on. Omits the checks of the destination, which a receiver may omit. False:
 * the packet has no such message, or the message fails another check of RFC 4861. A message with
 * two different MACs in its link-layer address options also fails.
 */
bool nd_read_claim(struct nd_claim *claim, const uint8_t *ip, uint32_t len);
/* The link-local address with the MAC's modified EUI-64 (RFC 4291, 2.5.6 and appendix A). */
void nd_link_local(const uint8_t mac[ETHER_MAC_LEN], uint8_t ip[16]);
/* The MAC of the solicited-node group of an IPv6 address (RFC 4291, 2.7.1; RFC 2464, 7). */
void nd_group_mac(const uint8_t ip[16], uint8_t mac[ETHER_MAC_LEN]);
/* Writes a solicitation of ND_FRAME_LEN bytes for m->target; m->sip is an address of this host. */
void nd_build_solicitation(uint8_t *frame, const struct nd *m);
/*
 * Writes a solicitation of ND_FRAME_LEN bytes for m->target. It goes to the target's own address
 * and `mac` instead of to the solicited-node group (RFC 4861, 7.3.3).
 */
void nd_build_probe(uint8_t *frame, const struct nd *m, const uint8_t mac[ETHER_MAC_LEN]);
/*
 * Writes an advertisement of ND_FRAME_LEN bytes that answers solicitation `to` with `mac`. If the
 * solicitation's sender has no address yet, the advertisement goes to all nodes.
 */
void nd_build_advertisement(uint8_t *frame, const struct nd *to, const uint8_t mac[ETHER_MAC_LEN]);

#endif
