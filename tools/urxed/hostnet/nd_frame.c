/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/nd_frame.h"

#define ICMP_LEN   24 /* type, code, icmpv6_checksum, flags, target */
#define OPTION_LEN 8  /* type, length in units of 8, MAC */
#define HOP_LIMIT  255

#define ROUTER_SOLICITATION  133
#define ROUTER_ADVERTISEMENT 134
#define SOLICITATION         135
#define ADVERTISEMENT        136
#define REDIRECT             137

#define OPTION_SOURCE  1
#define OPTION_TARGET  2
#define FLAG_SOLICITED 0x40
#define FLAG_OVERRIDE  0x20

/* A type of ND message: the number of bytes before its options, and the option with the claimed
 * MAC. */
struct message_type {
	uint8_t len;
	uint8_t option;
};

static const struct message_type types[] = {
	[ROUTER_SOLICITATION - ROUTER_SOLICITATION] = {8, OPTION_SOURCE},
	[ROUTER_ADVERTISEMENT - ROUTER_SOLICITATION] = {16, OPTION_SOURCE},
	[SOLICITATION - ROUTER_SOLICITATION] = {ICMP_LEN, OPTION_SOURCE},
	[ADVERTISEMENT - ROUTER_SOLICITATION] = {ICMP_LEN, OPTION_TARGET},
	[REDIRECT - ROUTER_SOLICITATION] = {40, OPTION_TARGET},
};

static const uint8_t unspecified[16];
static const uint8_t solicited_node[13] = {0xff, 0x02, [11] = 1, [12] = 0xff};
static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};

static uint32_t sum16(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (; len > 1; p += 2, len -= 2)
		sum += ether_get16(p);
	return len ? sum + ((uint32_t)*p << 8) : sum;
}

/* Returns the checksum of the pseudo-header and the message, with its checksum field (RFC 8200,
 * 8.1); 0 = that field is right. */
static uint16_t icmpv6_checksum(const uint8_t *ip, uint32_t len)
{
	uint32_t sum = sum16(len + PROTO_ICMPV6, ip + 8, 32);

	sum = sum16(sum, ip + IPV6_HDR_LEN, len);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static bool is_unspecified(const uint8_t ip[16])
{
	return !memcmp(ip, unspecified, sizeof(unspecified));
}

/*
 * Compares only the prefix: the last three bytes of a solicited-node group are those of an address.
 */
static bool is_solicited_node(const uint8_t ip[16])
{
	return !memcmp(ip, solicited_node, sizeof(solicited_node));
}

/*
 * Returns true if the destination conforms to RFC 4861, 7.1. A solicitation from a host that has no
 * address yet must go to a solicited-node group, and an advertisement that answers a solicitation
 * must go to no group.
 */
static bool is_destination_valid(const struct nd *m, const uint8_t dip[16], uint8_t flags)
{
	if (m->solicitation)
		return !is_unspecified(m->sip) || is_solicited_node(dip);
	return dip[0] != 0xff || !(flags & FLAG_SOLICITED);
}

/* Returns false if the option has no MAC, or another MAC than an earlier option. Two different MACs
 * are an error, because receivers differ in which of them they learn. */
static bool take_mac(struct nd_claim *claim, const uint8_t *opt, uint32_t len)
{
	if (len != OPTION_LEN || (claim->has_mac && !ether_same(claim->mac, opt + 2)))
		return false;
	memcpy(claim->mac, opt + 2, ETHER_MAC_LEN);
	claim->has_mac = true;
	return true;
}

/* `no_source`: the packet has no IPv6 source address, so it must not name the source's MAC. Returns
 * false if an option is truncated, has length 0, or is a wrong link-layer address option. */
static bool parse_options(struct nd_claim *claim, uint8_t wanted, bool no_source,
			  const uint8_t *opt, uint32_t left)
{
	while (left) {
		uint32_t len = left < 2 ? 0 : opt[1] * 8u;

		if (!len || len > left)
			return false;
		if (no_source && wanted == OPTION_SOURCE && opt[0] == OPTION_SOURCE)
			return false;
		if (opt[0] == wanted && !take_mac(claim, opt, len))
			return false;
		opt += len;
		left -= len;
	}
	return true;
}

bool nd_is_type(uint8_t type)
{
	return type >= ROUTER_SOLICITATION && type <= REDIRECT;
}

/* Returns the length of the packet's ND message; 0: it has none, or fails one of the checks that
 * all types share. */
static uint32_t message_len(const uint8_t *ip, uint32_t len)
{
	const uint8_t *icmp = ip + IPV6_HDR_LEN;
	uint32_t icmp_len;

	if (len < IPV6_HDR_LEN + 2 || ip[0] >> 4 != 6 || ip[6] != PROTO_ICMPV6 ||
	    ip[7] != HOP_LIMIT || !nd_is_type(icmp[0]) || icmp[1])
		return 0;
	icmp_len = ether_get16(ip + 4);
	if (icmp_len < types[icmp[0] - ROUTER_SOLICITATION].len || icmp_len > len - IPV6_HDR_LEN)
		return 0;
	return icmpv6_checksum(ip, icmp_len) ? 0 : icmp_len;
}

bool nd_read_claim(struct nd_claim *claim, const uint8_t *ip, uint32_t len)
{
	const uint8_t *icmp = ip + IPV6_HDR_LEN;
	uint32_t icmp_len = message_len(ip, len);
	const struct message_type *type;
	bool of_target;

	memset(claim, 0, sizeof(*claim));
	if (!icmp_len)
		return false;
	type = &types[icmp[0] - ROUTER_SOLICITATION];
	if (!parse_options(claim, type->option, is_unspecified(ip + 8), icmp + type->len,
			   icmp_len - type->len))
		return false;
	/* A redirect that names no MAC claims nothing for the target, so its claim is that of the
	 * source. */
	of_target = type->option == OPTION_TARGET && (icmp[0] != REDIRECT || claim->has_mac);
	memcpy(claim->ip, of_target ? icmp + 8 : ip + 8, 16);
	return type->len != ICMP_LEN || icmp[8] != 0xff;
}

bool nd_parse(struct nd *m, const uint8_t *frame, uint32_t len)
{
	const uint8_t *ip = frame + ETHER_HDR_LEN, *icmp = ip + IPV6_HDR_LEN;
	struct nd_claim claim;

	memset(m, 0, sizeof(*m));
	if (len < ETHER_HDR_LEN || ether_get16(frame + 12) != ETHERTYPE_ID_IPV6 ||
	    !nd_read_claim(&claim, ip, len - ETHER_HDR_LEN))
		return false;
	m->solicitation = icmp[0] == SOLICITATION;
	m->solicited = icmp[4] & FLAG_SOLICITED;
	m->override = icmp[4] & FLAG_OVERRIDE;
	m->has_mac = claim.has_mac;
	memcpy(m->smac, claim.mac, ETHER_MAC_LEN);
	memcpy(m->sip, ip + 8, 16);
	memcpy(m->target, icmp + 8, 16);
	return (icmp[0] == SOLICITATION || icmp[0] == ADVERTISEMENT) &&
	       is_destination_valid(m, ip + 24, icmp[4]);
}

static void build_frame(uint8_t *frame, const uint8_t *dmac, const uint8_t *smac,
			const uint8_t *sip, const uint8_t *dip, uint8_t type, uint8_t flags,
			const uint8_t *target)
{
	uint8_t *ip = frame + ETHER_HDR_LEN, *icmp = ip + IPV6_HDR_LEN;

	memset(frame, 0, ND_FRAME_LEN);
	memcpy(frame, dmac, ETHER_MAC_LEN);
	memcpy(frame + 6, smac, ETHER_MAC_LEN);
	ether_put16(frame + 12, ETHERTYPE_ID_IPV6);
	ip[0] = 0x60;
	ether_put16(ip + 4, ICMP_LEN + OPTION_LEN);
	ip[6] = PROTO_ICMPV6;
	ip[7] = HOP_LIMIT;
	memcpy(ip + 8, sip, 16);
	memcpy(ip + 24, dip, 16);
	icmp[0] = type;
	icmp[4] = flags;
	memcpy(icmp + 8, target, 16);
	icmp[ICMP_LEN] = type == SOLICITATION ? OPTION_SOURCE : OPTION_TARGET;
	icmp[ICMP_LEN + 1] = OPTION_LEN / 8;
	memcpy(icmp + ICMP_LEN + 2, smac, ETHER_MAC_LEN);
	ether_put16(icmp + 2, icmpv6_checksum(ip, ICMP_LEN + OPTION_LEN));
}

void nd_link_local(const uint8_t mac[ETHER_MAC_LEN], uint8_t ip[16])
{
	const uint8_t address[16] = {0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2],
				     0xff, 0xfe, mac[3],           mac[4], mac[5]};

	memcpy(ip, address, sizeof(address));
}

void nd_group_mac(const uint8_t ip[16], uint8_t mac[ETHER_MAC_LEN])
{
	static const uint8_t prefix[3] = {0x33, 0x33, 0xff};

	memcpy(mac, prefix, sizeof(prefix));
	memcpy(mac + 3, ip + 13, 3);
}

void nd_build_solicitation(uint8_t *frame, const struct nd *m)
{
	uint8_t dip[16], dmac[ETHER_MAC_LEN];

	memcpy(dip, solicited_node, sizeof(solicited_node));
	memcpy(dip + 13, m->target + 13, 3);
	nd_group_mac(m->target, dmac);
	build_frame(frame, dmac, m->smac, m->sip, dip, SOLICITATION, 0, m->target);
}

void nd_build_probe(uint8_t *frame, const struct nd *m, const uint8_t mac[ETHER_MAC_LEN])
{
	build_frame(frame, mac, m->smac, m->sip, m->target, SOLICITATION, 0, m->target);
}

void nd_build_advertisement(uint8_t *frame, const struct nd *to, const uint8_t mac[ETHER_MAC_LEN])
{
	static const uint8_t all_nodes_mac[ETHER_MAC_LEN] = {0x33, 0x33, 0, 0, 0, 1};

	/* Answers a host that probes for duplicates by an advertisement to all nodes, because the
	 * host has no address yet (RFC 4861, 7.2.4). */
	if (is_unspecified(to->sip))
		build_frame(frame, all_nodes_mac, mac, to->target, all_nodes, ADVERTISEMENT,
			    FLAG_OVERRIDE, to->target);
	else
		build_frame(frame, to->smac, mac, to->target, to->sip, ADVERTISEMENT,
			    FLAG_SOLICITED | FLAG_OVERRIDE, to->target);
}
