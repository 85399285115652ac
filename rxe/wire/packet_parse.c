/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <rxe/opcode.h>
#include <rxe/packet.h>

#include "wire/gid.h"
#include "wire/header_fields.h"

/* The part of a frame that is not parsed yet. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
};

static uint32_t bytes_left(const struct cursor *c)
{
	return (uint32_t)(c->end - c->at);
}

static enum urxe_drop parse_tag(struct urxe_packet *p, struct cursor *c, uint16_t *ethertype)
{
	if (bytes_left(c) < VLAN_LEN)
		return URXE_DROP_NOT_ROCE;
	p->has_vlan = true;
	p->vlan_tci = get16(c->at);
	*ethertype = get16(c->at + 2);
	c->at += VLAN_LEN;
	return URXE_DROP_NONE;
}

static enum urxe_drop parse_ethernet(struct urxe_packet *p, struct cursor *c, uint16_t *ethertype)
{
	if (bytes_left(c) < ETH_LEN)
		return URXE_DROP_NOT_ROCE;
	memcpy(p->dmac, c->at, 6);
	memcpy(p->smac, c->at + 6, 6);
	*ethertype = get16(c->at + 12);
	c->at += ETH_LEN;
	return *ethertype == ETHERTYPE_VLAN ? parse_tag(p, c, ethertype) : URXE_DROP_NONE;
}

/* Removes the Ethernet padding: cuts the frame at the length of the network header. */
static enum urxe_drop cut_frame(struct cursor *c, uint32_t l3_len)
{
	if (bytes_left(c) < l3_len)
		return URXE_DROP_TRUNCATED;
	c->end = c->at + l3_len;
	return URXE_DROP_NONE;
}

/* Reads the UDP header (RFC 768), and moves the cursor behind it. The checksum is ignored, because
 * the ICRC covers the packet (A17.3.1). */
static enum urxe_drop parse_udp(struct urxe_packet *p, struct cursor *c)
{
	if (bytes_left(c) < UDP_LEN)
		return URXE_DROP_BAD_UDP;
	p->udp_sport = get16(c->at);
	if (get16(c->at + 4) != bytes_left(c))
		return URXE_DROP_BAD_UDP;
	c->at += UDP_LEN;
	return URXE_DROP_NONE;
}

/* Whether the bytes at the L4 offset are a UDP header for RoCEv2. */
static bool is_roce_udp(const struct cursor *c, uint32_t l4)
{
	return bytes_left(c) >= l4 + UDP_LEN && get16(c->at + l4 + 2) == URXE_UDP_PORT;
}

/* Reads the IPv4 and UDP headers (RFC 791), and moves the cursor behind them. */
static enum urxe_drop parse_ipv4(struct urxe_packet *p, struct cursor *c)
{
	uint32_t ihl, total, frag;
	enum urxe_drop drop;

	if (bytes_left(c) < IPV4_LEN || c->at[9] != IPPROTO_NUM_UDP)
		return URXE_DROP_NOT_ROCE;
	ihl = (c->at[0] & 0x0fu) * 4;
	frag = get16(c->at + 6) & 0x3fff;
	if (frag & 0x1fff || !is_roce_udp(c, ihl))
		return URXE_DROP_NOT_ROCE;
	total = get16(c->at + 2);
	if (c->at[0] >> 4 != 4 || ihl != IPV4_LEN || frag || total < ihl)
		return URXE_DROP_BAD_IP;
	p->net = URXE_NET_IPV4;
	p->l3 = c->at;
	p->traffic_class = c->at[1];
	p->hop_limit = c->at[8];
	gid_set_v4(&p->sgid, c->at + 12);
	gid_set_v4(&p->dgid, c->at + 16);
	drop = cut_frame(c, total);
	if (drop)
		return drop;
	c->at += IPV4_LEN;
	return parse_udp(p, c);
}

/* Reads the fields that an IPv6 header (RFC 8200) and a GRH (IBA 8.3) share. */
static enum urxe_drop parse_ipv6_fields(struct urxe_packet *p, struct cursor *c)
{
	uint32_t word = get32(c->at);
	enum urxe_drop drop;

	if (word >> 28 != 6)
		return URXE_DROP_BAD_IP;
	p->l3 = c->at;
	p->traffic_class = (uint8_t)(word >> 20);
	p->flow_label = word & 0xfffff;
	p->hop_limit = c->at[7];
	memcpy(p->sgid.raw, c->at + 8, 16);
	memcpy(p->dgid.raw, c->at + 24, 16);
	drop = cut_frame(c, IPV6_LEN + get16(c->at + 4));
	c->at += IPV6_LEN;
	return drop;
}

static enum urxe_drop parse_ipv6(struct urxe_packet *p, struct cursor *c)
{
	enum urxe_drop drop;

	if (bytes_left(c) < IPV6_LEN || c->at[6] != IPPROTO_NUM_UDP || !is_roce_udp(c, IPV6_LEN))
		return URXE_DROP_NOT_ROCE;
	p->net = URXE_NET_IPV6;
	drop = parse_ipv6_fields(p, c);
	return drop ? drop : parse_udp(p, c);
}

static enum urxe_drop parse_grh(struct urxe_packet *p, struct cursor *c)
{
	if (bytes_left(c) < IPV6_LEN)
		return URXE_DROP_TRUNCATED;
	if (c->at[6] != GRH_NEXT_HDR)
		return URXE_DROP_BAD_IP;
	p->net = URXE_NET_ROCEV1;
	return parse_ipv6_fields(p, c);
}

static enum urxe_drop parse_network(struct urxe_packet *p, struct cursor *c, uint16_t ethertype)
{
	switch (ethertype) {
	case ETHERTYPE_IPV4: return parse_ipv4(p, c);
	case ETHERTYPE_IPV6: return parse_ipv6(p, c);
	case URXE_ETHERTYPE_ROCEV1: return parse_grh(p, c);
	default: return URXE_DROP_NOT_ROCE;
	}
}

static bool is_tag(uint16_t ethertype)
{
	return ethertype == ETHERTYPE_VLAN || ethertype == ETHERTYPE_SVLAN;
}

/* Frames with two tags or a provider's tag: returns URXE_DROP_DOUBLE_VLAN if they are RoCE, else
 * URXE_DROP_NOT_ROCE. */
static enum urxe_drop parse_double_tagged(struct urxe_packet *p, struct cursor *c,
					  uint16_t ethertype)
{
	enum urxe_drop drop = URXE_DROP_NONE;

	while (!drop && is_tag(ethertype))
		drop = parse_tag(p, c, &ethertype);
	if (!drop)
		drop = parse_network(p, c, ethertype);
	return drop == URXE_DROP_NOT_ROCE ? drop : URXE_DROP_DOUBLE_VLAN;
}

/* Sets the fields of the base transport header (IBA 9.2). */
static void parse_bth(struct urxe_packet *p, const uint8_t *bth)
{
	uint8_t flags = bth[1];

	p->bth = bth;
	p->opcode = bth[0];
	p->solicited = flags & 0x80;
	p->mig_req = flags & 0x40;
	p->pad = flags >> 4 & 3;
	p->pkey = get16(bth + 2);
	p->fecn = bth[4] & 0x80;
	p->becn = bth[4] & 0x40;
	p->dest_qpn = get24(bth + 5);
	p->ack_req = bth[8] & 0x80;
	p->psn = get24(bth + 9);
}

/* Reads the extended headers (IBA 9.3), and returns their end. The caller has checked that the
 * packet has all headers of the opcode. */
static const uint8_t *parse_extended(struct urxe_packet *p, const uint8_t *at, uint32_t flags)
{
	if (flags & URXE_OPF_DETH) {
		p->deth.qkey = get32(at);
		p->deth.src_qpn = get24(at + 5);
		at += 8;
	}
	if (flags & URXE_OPF_FETH) {
		p->feth.placement = at[3] & 0x0f;
		p->feth.selectivity = at[3] >> 4 & 3;
		at += 4;
	}
	if (flags & URXE_OPF_RETH) {
		p->reth.va = get64(at);
		p->reth.rkey = get32(at + 8);
		p->reth.length = get32(at + 12);
		at += 16;
	}
	if (flags & URXE_OPF_ATOMIC_ETH) {
		p->atomic.va = get64(at);
		p->atomic.rkey = get32(at + 8);
		p->atomic.swap_add = get64(at + 12);
		p->atomic.compare = get64(at + 20);
		at += 28;
	}
	if (flags & URXE_OPF_AETH) {
		p->aeth.syndrome = at[0];
		p->aeth.msn = get24(at + 1);
		at += 4;
	}
	if (flags & URXE_OPF_ATOMIC_ACK_ETH) {
		p->atomic_ack = get64(at);
		at += 8;
	}
	if (flags & URXE_OPF_IMM) {
		memcpy(&p->imm, at, 4);
		at += 4;
	}
	if (flags & URXE_OPF_IETH) {
		p->ieth_rkey = get32(at);
		at += 4;
	}
	return at;
}

/* Parses the BTH, the extended headers and the payload, up to `end` by the IP or GRH length. */
static enum urxe_drop parse_transport(struct urxe_packet *p, const uint8_t *bth, const uint8_t *end)
{
	const struct urxe_opcode_info *info;
	uint32_t len = (uint32_t)(end - bth), fixed;

	if (len < BTH_LEN + URXE_ICRC_LEN)
		return URXE_DROP_BAD_LENGTH;
	parse_bth(p, bth);
	p->icrc = end - URXE_ICRC_LEN;
	if (bth[1] & 0x0f)
		return URXE_DROP_BAD_TVER;
	info = &urxe_opcodes[p->opcode];
	if (!info->known)
		return info->name ? URXE_DROP_XRC : URXE_DROP_BAD_OPCODE;
	fixed = info->hdr_len + p->pad + URXE_ICRC_LEN;
	if (len < fixed || (len - info->hdr_len) % 4)
		return URXE_DROP_BAD_LENGTH;
	p->payload_len = len - fixed;
	if (!(info->flags & URXE_OPF_PAYLOAD) && (p->payload_len || p->pad))
		return URXE_DROP_BAD_LENGTH;
	if (URXE_OPCODE_SERVICE(p->opcode) == URXE_SERVICE_CNP && p->payload_len != CNP_LEN)
		return URXE_DROP_BAD_LENGTH;
	p->payload = parse_extended(p, bth + BTH_LEN, info->flags);
	return URXE_DROP_NONE;
}

enum urxe_drop urxe_packet_parse(struct urxe_packet *p, const uint8_t *frame, uint32_t len)
{
	struct cursor c = {.at = frame, .end = frame + len};
	enum urxe_drop drop;
	uint16_t ethertype;

	memset(p, 0, sizeof(*p));
	drop = parse_ethernet(p, &c, &ethertype);
	if (!drop && is_tag(ethertype))
		return parse_double_tagged(p, &c, ethertype);
	if (!drop)
		drop = parse_network(p, &c, ethertype);
	return drop ? drop : parse_transport(p, c.at, c.end);
}
