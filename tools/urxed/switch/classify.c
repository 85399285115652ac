/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/classify.h"

#include <rxe/packet.h>

/* RFC 4861, 4.3 and 4.4 */
#define ICMPV6_SOLICITATION  135
#define ICMPV6_ADVERTISEMENT 136

#define IPV4_FRAGMENT 0x3fff /* more fragments, or an offset (RFC 791, 3.1) */

#define OPCODE_SERVICE_SHIFT 5
#define OPCODE_CNP           0x81
/* RC opcodes of responses: from RDMA READ response First to ATOMIC Acknowledge (IBA table 38). */
#define OPCODE_RESPONSE_FIRST 0x0d
#define OPCODE_RESPONSE_LAST  0x12

/* The part of the frame behind the headers read so far: `left` bytes, the first `seen` of which are
 * in the copy s->head. */
struct rest {
	const uint8_t *at;
	uint32_t seen;
	uint32_t left;
};

static struct rest skip_header(const struct rest *r, uint32_t header)
{
	return (struct rest){r->at + header, r->seen - header, r->left - header};
}

static enum frame_service service_of_opcode(uint8_t opcode)
{
	switch (opcode >> OPCODE_SERVICE_SHIFT) {
	case 0: return FRAME_RC;
	case 1: return FRAME_UC;
	case 3: return FRAME_DATAGRAM;
	default: return opcode == OPCODE_CNP ? FRAME_CNP : FRAME_NO_SERVICE;
	}
}

static uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

/*
 * Reads the BTH, and of a whole datagram the DETH. Clears s->whole unless the headers and the ICRC
 * fit in `len`, and `len` bytes are there. len: bytes from the BTH on, with the ICRC, as the header
 * before the BTH says.
 */
static enum frame_kind peek_bth(struct frame_class *s, const struct rest *r, uint32_t len)
{
	uint32_t headers = BTH_LEN;

	if (r->seen < BTH_LEN)
		return FRAME_OTHER;
	s->service = service_of_opcode(r->at[0]);
	s->response = r->at[0] >= OPCODE_RESPONSE_FIRST && r->at[0] <= OPCODE_RESPONSE_LAST;
	s->dest_qpn = get24(r->at + 5);
	if (s->service == FRAME_DATAGRAM)
		headers += DETH_LEN;
	s->whole =
		s->whole && r->seen >= headers && len >= headers + URXE_ICRC_LEN && len <= r->left;
	if (s->whole && s->service == FRAME_DATAGRAM)
		s->src_qpn = get24(r->at + BTH_LEN + 5);
	return FRAME_ROCE;
}

static enum frame_kind peek_udp(struct frame_class *s, const struct rest *r, uint32_t len)
{
	const struct rest bth = skip_header(r, UDP_HDR_LEN);

	if (r->seen < UDP_HDR_LEN || ether_get16(r->at + 2) != URXE_UDP_PORT)
		return FRAME_OTHER;
	s->whole = s->whole && len >= UDP_HDR_LEN && ether_get16(r->at + 4) == len;
	return peek_bth(s, &bth, len - UDP_HDR_LEN);
}

static enum frame_kind peek_ipv4(struct frame_class *s, const struct rest *r)
{
	const struct rest udp = skip_header(r, IPV4_HDR_LEN);
	uint32_t len;

	if (r->seen < IPV4_HDR_LEN || r->at[0] != 0x45 || r->at[9] != PROTO_UDP)
		return FRAME_OTHER;
	len = ether_get16(r->at + 2);
	s->whole = len >= IPV4_HDR_LEN && !(ether_get16(r->at + 6) & IPV4_FRAGMENT);
	ip_from_v4(s->sip, r->at + 12);
	ip_from_v4(s->dip, r->at + 16);
	return peek_udp(s, &udp, len - IPV4_HDR_LEN);
}

static void get_addresses(struct frame_class *s, const uint8_t *ip)
{
	memcpy(s->sip, ip + 8, 16);
	memcpy(s->dip, ip + 24, 16);
}

static enum frame_kind peek_ipv6(struct frame_class *s, const struct rest *r)
{
	const struct rest next = skip_header(r, IPV6_HDR_LEN);

	if (r->seen <= IPV6_HDR_LEN)
		return FRAME_OTHER;
	s->whole = r->at[0] >> 4 == 6;
	get_addresses(s, r->at);
	if (r->at[6] == PROTO_UDP)
		return peek_udp(s, &next, ether_get16(r->at + 4));
	if (r->at[6] == PROTO_ICMPV6 &&
	    (next.at[0] == ICMPV6_SOLICITATION || next.at[0] == ICMPV6_ADVERTISEMENT))
		return FRAME_ND;
	return FRAME_OTHER;
}

static enum frame_kind peek_grh(struct frame_class *s, const struct rest *r)
{
	const struct rest bth = skip_header(r, IPV6_HDR_LEN);

	if (r->seen < IPV6_HDR_LEN || r->at[6] != PROTO_BTH)
		return FRAME_OTHER;
	s->whole = r->at[0] >> 4 == 6;
	get_addresses(s, r->at);
	return peek_bth(s, &bth, ether_get16(r->at + 4));
}

static enum frame_kind peek_network(struct frame_class *s, const struct rest *frame)
{
	uint16_t ethertype = ether_get16(frame->at + 12);
	struct rest l3 = skip_header(frame, ETHER_HDR_LEN);

	if (ethertype == ETHERTYPE_ID_VLAN) {
		if (l3.seen < ETHER_VLAN_LEN)
			return FRAME_OTHER;
		s->vlan = ether_get16(l3.at) & ETHER_VLAN_ID;
		ethertype = ether_get16(l3.at + 2);
		l3 = skip_header(&l3, ETHER_VLAN_LEN);
	}
	switch (ethertype) {
	case ETHERTYPE_ID_IPV4: return peek_ipv4(s, &l3);
	case ETHERTYPE_ID_IPV6: return peek_ipv6(s, &l3);
	case ETHERTYPE_ID_ARP: return FRAME_ARP;
	case URXE_ETHERTYPE_ROCEV1: return peek_grh(s, &l3);
	default: return FRAME_OTHER;
	}
}

void classify_frame(struct frame_class *s, const uint8_t *frame, uint32_t len)
{
	struct rest all;

	s->kind = FRAME_RUNT;
	s->head_len = 0;
	if (len < ETHER_HDR_LEN)
		return;
	s->head_len = len < CLASSIFY_HEAD ? len : CLASSIFY_HEAD;
	memcpy(s->head, frame, s->head_len);
	all = (struct rest){s->head, s->head_len, len};
	memcpy(s->dmac, s->head, ETHER_MAC_LEN);
	memcpy(s->smac, s->head + ETHER_MAC_LEN, ETHER_MAC_LEN);
	s->vlan = 0;
	s->whole = false;
	s->src_qpn = 0;
	s->kind = peek_network(s, &all);
}
