/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/hostnet/neigh_filter.h"

#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/nd_frame.h"

#define ETHERTYPE_MIN  0x600  /* a smaller value is the length of an IEEE 802.3 frame */
#define ETHERTYPE_STAG 0x88a8 /* IEEE 802.1ad */

#define SNAP_LEN 8 /* DSAP, SSAP, control, OUI, EtherType */
#define SNAP_OUI 3 /* offset of the OUI; receivers accept several ones */

/* Protocol numbers of IPv6 extension headers that ICMPv6 may follow (RFC 8200, 4; RFC 4302). */
#define IPV6_HOP_BY_HOP  0
#define IPV6_ROUTING     43
#define IPV6_FRAGMENT    44
#define IPV6_AUTH        51
#define IPV6_DESTINATION 60

#define EXTENSION_MIN   8      /* bytes of the shortest one */
#define FRAGMENT_OFFSET 0xfff8 /* mask; 0 = the first fragment */

/* --- Ethernet headers */

/* Limit of the tags that are parsed. Linux removes any number of tags with VLAN ID 0, but no
 * network needs more than this. */
#define MAX_TAGS 4

/* The part of a frame behind its VLAN tags and SNAP headers. */
struct payload {
	const uint8_t *at;
	uint32_t left;
	uint16_t type;            /* EtherType */
	uint16_t vlans[MAX_TAGS]; /* VLAN IDs of the tags, except 0 */
	uint32_t n_vlans;
};

static bool is_tag(uint16_t type)
{
	return type == ETHERTYPE_ID_VLAN || type == ETHERTYPE_STAG;
}

static bool is_snap(const struct payload *p)
{
	static const uint8_t llc[SNAP_OUI] = {0xaa, 0xaa, 3};

	return p->type < ETHERTYPE_MIN && p->left >= SNAP_LEN && !memcmp(p->at, llc, sizeof(llc));
}

/* Skips a header whose last two bytes are the EtherType of the next one. */
static void skip_header(struct payload *p, uint32_t header)
{
	p->at += header;
	p->left -= header;
	p->type = ether_get16(p->at - 2);
}

/* Returns false if the frame has more than MAX_TAGS tags. */
static bool find_payload(struct payload *p, const uint8_t *frame, uint32_t len)
{
	*p = (struct payload){.at = frame, .left = len};
	skip_header(p, ETHER_HDR_LEN);
	for (uint32_t tags = 0;;) {
		if (is_snap(p)) {
			skip_header(p, SNAP_LEN);
			continue;
		}
		if (!is_tag(p->type) || p->left < ETHER_VLAN_LEN)
			return true;
		if (tags++ == MAX_TAGS)
			return false;
		p->vlans[p->n_vlans] = ether_get16(p->at) & ETHER_VLAN_ID;
		p->n_vlans += p->vlans[p->n_vlans] != 0;
		skip_header(p, ETHER_VLAN_LEN);
	}
}

/* --- Claims */

/* A station's claim that the address `ip` belongs to `mac`. */
struct claim {
	uint8_t ip[16];
	uint8_t mac[ETHER_MAC_LEN];
};

enum reading {
	NO_CLAIM, /* neither ARP nor ND */
	CLAIM,    /* *claim is valid */
	/* ARP or ND in a form that no sender needs, or too many VLAN tags. */
	NOT_UNDERSTOOD,
};

static bool is_extension(uint8_t protocol)
{
	return protocol == IPV6_HOP_BY_HOP || protocol == IPV6_ROUTING ||
	       protocol == IPV6_FRAGMENT || protocol == IPV6_AUTH || protocol == IPV6_DESTINATION;
}

static uint32_t extension_len(uint8_t protocol, const uint8_t *header)
{
	switch (protocol) {
	case IPV6_FRAGMENT: return EXTENSION_MIN;
	case IPV6_AUTH: return (header[1] + 2u) * 4;
	default: return (header[1] + 1u) * 8;
	}
}

/* Returns the offset of the packet's ND message, 0 = none. Ignores fragments after the first one:
 * they do not begin with headers, and receivers ignore ND in fragments (RFC 6980, 5). */
static uint32_t find_nd(const uint8_t *ip, uint32_t len)
{
	uint32_t at = IPV6_HDR_LEN;
	uint8_t protocol;

	if (len <= IPV6_HDR_LEN)
		return 0;
	protocol = ip[6];
	while (is_extension(protocol) && len - at > EXTENSION_MIN) {
		const uint8_t *header = ip + at;
		uint32_t skip = extension_len(protocol, header);

		if (skip >= len - at ||
		    (protocol == IPV6_FRAGMENT && ether_get16(header + 2) & FRAGMENT_OFFSET))
			return 0;
		protocol = header[0];
		at += skip;
	}
	return protocol == PROTO_ICMPV6 && nd_is_type(ip[at]) ? at : 0;
}

static enum reading read_nd(struct claim *claim, const struct payload *p, const uint8_t *smac)
{
	uint32_t at = find_nd(p->at, p->left);
	struct nd_claim nd;

	if (!at)
		return NO_CLAIM;
	if (at != IPV6_HDR_LEN || !nd_read_claim(&nd, p->at, p->left))
		return NOT_UNDERSTOOD;
	memcpy(claim->ip, nd.ip, sizeof(claim->ip));
	memcpy(claim->mac, nd.has_mac ? nd.mac : smac, ETHER_MAC_LEN);
	return CLAIM;
}

static enum reading read_claim(struct claim *claim, struct payload *p, const uint8_t *frame,
			       uint32_t len)
{
	if (len < ETHER_HDR_LEN)
		return NO_CLAIM;
	if (!find_payload(p, frame, len))
		return NOT_UNDERSTOOD;
	if (p->type == ETHERTYPE_ID_ARP)
		return arp_read_sender(p->at, p->left, claim->ip, claim->mac) ? CLAIM
									      : NOT_UNDERSTOOD;
	return p->type == ETHERTYPE_ID_IPV6 ? read_nd(claim, p, frame + ETHER_MAC_LEN) : NO_CLAIM;
}

/* Whether the pins allow the claim in the VLAN of each tag. A switch on the way may remove outer
 * tags, so the receiver may see any of the tags first. */
static bool is_allowed_in_vlans(const struct address_pins *pins, const struct claim *claim,
				const struct payload *p)
{
	for (uint32_t i = 0; i < p->n_vlans; i++)
		if (!address_pins_allow(pins, claim->ip, p->vlans[i], claim->mac))
			return false;
	return p->n_vlans || address_pins_allow(pins, claim->ip, 0, claim->mac);
}

bool neigh_claim_allowed(const struct neigh *n, const uint8_t *frame, uint32_t len)
{
	struct payload payload;
	struct claim claim;

	if (!n->pins.n)
		return true;
	switch (read_claim(&claim, &payload, frame, len)) {
	case CLAIM: return is_allowed_in_vlans(&n->pins, &claim, &payload);
	case NOT_UNDERSTOOD: return false;
	default: return true;
	}
}

bool neigh_claims_host(const struct neigh *n, const uint8_t *frame, uint32_t len)
{
	struct payload payload;
	struct claim claim;

	switch (read_claim(&claim, &payload, frame, len)) {
	case CLAIM: return host_find_address(n->host, claim.ip);
	case NOT_UNDERSTOOD: return true;
	default: return false;
	}
}
