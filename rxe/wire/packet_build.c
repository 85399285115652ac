/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/packet_build.h"

#include <isa-l/crc.h>

#include "objects/device.h"
#include "objects/qp_counters.h"
#include "wire/gid.h"
#include "wire/gso_run.h"
#include "wire/header_fields.h"
#include "wire/icrc.h"

#define DEFAULT_HOP_LIMIT 64
/* The bits that are set in all dynamic ports (RFC 6335), 49152 to 65535. The other bits of the UDP
 * source port hold the entropy for ECMP, which A17.3.2 leaves to the sender. */
#define UDP_DYNAMIC_BITS   0xc000
#define IPV4_DONT_FRAGMENT 0x40

static uint8_t hop_limit_of(const struct urxe_path *path)
{
	return path->hop_limit ? path->hop_limit : DEFAULT_HOP_LIMIT;
}

/*
 * The UDP source port, made of the flow label as in Linux (rdma_get_udp_sport). Without a label it
 * is made of the product of both QPNs, so both directions of a connection have the same port.
 * Unlike Linux this function hashes the product: the first QPNs of processes are multiples of 4,096
 * (verbs/session/qpn_lease.c), so the product's low bits, by which bonds choose a path, would all
 * be 0.
 */
static uint16_t udp_sport(const struct urxe_path *path, uint32_t qpn, uint32_t remote_qpn)
{
	uint64_t product = (uint64_t)qpn * remote_qpn;
	uint32_t label = path->flow_label & 0xfffff;
	uint32_t entropy = label ? label ^ label >> 14 : product * 0x9e3779b97f4a7c15u >> 50;

	return (uint16_t)(UDP_DYNAMIC_BITS | (entropy & ~UDP_DYNAMIC_BITS));
}

/* Writes the Ethernet header, and returns its end. The priority of a VLAN tag is the service level
 * (802.1Q). */
static uint8_t *put_ethernet(struct header_template *h, const struct urxe_dev *dev,
			     const struct urxe_path *path, uint16_t ethertype)
{
	uint16_t vlan = dev->gids[path->sgid_index].vlan;
	uint8_t *at = h->bytes;

	memcpy(at, path->dmac, 6);
	memcpy(at + 6, dev->attr.mac, 6);
	at += 12;
	if (vlan) {
		put16(at, ETHERTYPE_VLAN);
		put16(at + 2, (uint16_t)(path->sl << VLAN_PCP_SHIFT | vlan));
		at += VLAN_LEN;
	}
	put16(at, ethertype);
	at += 2;
	h->l3 = (uint8_t)(at - h->bytes);
	return at;
}

static uint8_t *put_ipv4(uint8_t *at, const struct urxe_path *path, const struct urxe_gid *sgid,
			 uint8_t traffic_class)
{
	memset(at, 0, IPV4_LEN);
	at[0] = 0x45;
	at[1] = traffic_class;
	at[6] = IPV4_DONT_FRAGMENT;
	at[8] = hop_limit_of(path);
	at[9] = IPPROTO_NUM_UDP;
	memcpy(at + 12, sgid->raw + 12, 4);
	memcpy(at + 16, path->dgid.raw + 12, 4);
	return at + IPV4_LEN;
}

static uint8_t *put_ipv6(uint8_t *at, const struct urxe_path *path, const struct urxe_gid *sgid,
			 uint8_t traffic_class, uint8_t next_header)
{
	put32(at, 6u << 28 | (uint32_t)traffic_class << 20 | (path->flow_label & 0xfffff));
	put16(at + 4, 0);
	at[6] = next_header;
	at[7] = hop_limit_of(path);
	memcpy(at + 8, sgid->raw, 16);
	memcpy(at + 24, path->dgid.raw, 16);
	return at + IPV6_LEN;
}

uint32_t ipv4_sum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_LEN; i += 2)
		sum += get16(ip + i);
	return sum;
}

static uint8_t *put_udp(uint8_t *at, uint16_t sport)
{
	memset(at, 0, UDP_LEN);
	put16(at, sport);
	put16(at + 2, URXE_UDP_PORT);
	return at + UDP_LEN;
}

bool build_template(struct header_template *h, const struct urxe_dev *dev,
		    const struct urxe_path *path, uint32_t qpn, uint32_t remote_qpn)
{
	const uint16_t sport = udp_sport(path, qpn, remote_qpn);
	const struct gid_entry *src;
	uint8_t *at, traffic_class = path->traffic_class;

	if (path->sgid_index >= URXE_MAX_GIDS || !dev->gids[path->sgid_index].valid)
		return false;
	src = &dev->gids[path->sgid_index];
	/* The ECN field tells whether the sender reacts to marks (RFC 3168, 5); RoCEv1 has none. */
	if (!src->v1)
		traffic_class = (uint8_t)((traffic_class & ~ECN_MASK) |
					  (dev->dcqcn.enabled ? ECN_ECT0 : ECN_NOT_ECT));
	if (src->v1) {
		h->net = URXE_NET_ROCEV1;
		at = put_ethernet(h, dev, path, URXE_ETHERTYPE_ROCEV1);
		at = put_ipv6(at, path, &src->gid, traffic_class, GRH_NEXT_HDR);
	} else if (gid_is_v4(&path->dgid)) {
		h->net = URXE_NET_IPV4;
		at = put_ethernet(h, dev, path, ETHERTYPE_IPV4);
		at = put_udp(put_ipv4(at, path, &src->gid, traffic_class), sport);
		h->ipv4_sum = ipv4_sum(h->bytes + h->l3);
	} else {
		h->net = URXE_NET_IPV6;
		at = put_ethernet(h, dev, path, ETHERTYPE_IPV6);
		at = put_udp(put_ipv6(at, path, &src->gid, traffic_class, IPPROTO_NUM_UDP), sport);
	}
	h->len = (uint8_t)(at - h->bytes);
	h->omit_icrc = dev->attr.omit_local_icrc && !memcmp(path->dmac, dev->attr.mac, 6);
	return true;
}

void build_label_flow(struct urxe_qp *qp)
{
	struct header_template *h = &qp->header;

	if (h->net == URXE_NET_IPV6 && !qp->attr.path.flow_label)
		gso_label_ipv6(h->bytes + h->l3, gso_flow_label(qp->attr.dest_qpn));
}

void build_start(struct build *b, struct urxe_frame *frame, const struct header_template *header,
		 const struct build_bth *bth)
{
	uint8_t *start = header->omit_icrc ? frame->data : b->first, *at = start + header->len;

	memcpy(start, header->bytes, header->len);
	frame->dest_qpn = bth->dest_qpn;
	frame->acknowledges = frame->continues = false;
	frame->reference.length = 0;
	b->frame = frame;
	b->header = header;
	b->start = start;
	b->bth = at;
	b->ext = at + BTH_LEN;
	b->headers = header->len + urxe_opcodes[bth->opcode].hdr_len;
	b->payload = frame->data + b->headers;
	b->run = NULL;
	b->gso_mark = false;
	at[0] = bth->opcode;
	at[1] = (uint8_t)(bth->solicited << 7 | 1 << 6); /* MigReq, as hardware sends it */
	put16(at + 2, bth->pkey);
	at[4] = 0;
	put24(at + 5, bth->dest_qpn);
	at[8] = (uint8_t)(bth->ack_req << 7);
	put24(at + 9, bth->psn);
}

/* Sets the length, the identification and the checksum (RFC 1071) of an IPv4 header, whose other
 * fields sum up to `sum`. */
static void put_ipv4_length(uint8_t *ip, uint32_t sum, uint16_t len, uint16_t identification)
{
	sum += len + identification;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 2, len);
	put16(ip + 4, identification);
	put16(ip + 10, (uint16_t)~sum);
}

/* Fills in the lengths of the network headers for `len` bytes behind the L3 header. */
static void put_lengths(uint8_t *l3, const struct header_template *h, uint16_t len,
			uint16_t identification)
{
	switch (h->net) {
	case URXE_NET_IPV4:
		put_ipv4_length(l3, h->ipv4_sum, IPV4_LEN + UDP_LEN + len, identification);
		put16(l3 + IPV4_LEN + 4, UDP_LEN + len);
		break;
	case URXE_NET_IPV6:
		put16(l3 + 4, UDP_LEN + len);
		put16(l3 + IPV6_LEN + 4, UDP_LEN + len);
		break;
	case URXE_NET_ROCEV1: put16(l3 + 4, len); break;
	}
}

static uint32_t pad_len(uint32_t payload_len)
{
	return -payload_len & 3;
}

void build_allow_gso(struct build *b, const struct urxe_qp *qp)
{
	const struct header_template *h = &qp->header;

	if (qp->peer_gso && qp->dev->gso && h->net != URXE_NET_ROCEV1 && h->l3 == ETH_LEN &&
	    !h->omit_icrc)
		b->run = &qp->dev->gso_run;
}

static void mark_ipv6(struct build *b, const struct urxe_qp *qp)
{
	if (b->header->net == URXE_NET_IPV6 && !qp->attr.path.flow_label)
		gso_label_ipv6(b->start + b->header->l3, GSO_MARK_IPV6);
}

/* Adds the packet to the UDP GSO run. Returns the packet's place in the run: its IPv4
 * identification. */
static uint16_t join_run(struct build *b, uint32_t len)
{
	uint32_t place = gso_run_add(b->run, b->frame, b->header, len);

	b->frame->continues = place > 0;
	return (uint16_t)place;
}

static uint16_t identification_of(struct build *b, uint32_t len)
{
	if (b->gso_mark)
		return GSO_MARK_IPV4;
	return b->run ? join_run(b, len) : 0;
}

/* Fills in the lengths, and copies the headers to the frame unless they were built there. */
static void complete_headers(struct build *b, uint32_t payload_len)
{
	uint32_t pad = pad_len(payload_len);
	uint32_t len = b->headers - b->header->len + payload_len + pad + URXE_ICRC_LEN;

	b->bth[1] |= (uint8_t)(pad << 4);
	put_lengths(b->start + b->header->l3, b->header, (uint16_t)len, identification_of(b, len));
	if (!b->header->omit_icrc)
		memcpy(b->frame->data, b->first, b->headers);
}

/*
 * The ICRC of a packet whose payload and pad are in the frame. It covers the frame's bytes, not the
 * program's: the program may change its memory after the copy.
 */
static uint32_t icrc_of_frame(struct build *b, uint32_t payload_len)
{
	uint32_t l3 = b->header->l3, before = b->headers - l3;
	uint32_t len = before + payload_len + pad_len(payload_len);
	uint32_t first = len < ICRC_FIRST ? len : ICRC_FIRST, crc;

	complete_headers(b, payload_len);
	memcpy(b->first + b->headers, b->payload, first - before);
	crc = urxe_icrc_start(b->header->net, b->first + l3, b->header->len - l3, first);
	return len == first ? crc : crc32_gzip_refl(crc, b->frame->data + l3 + first, len - first);
}

void build_finish(struct build *b, struct urxe_qp *qp, uint32_t payload_len)
{
	uint32_t pad = pad_len(payload_len);
	uint8_t *end = b->payload + payload_len + pad;

	memset(end - pad, 0, pad);
	if (b->gso_mark)
		mark_ipv6(b, qp);
	if (b->header->omit_icrc)
		complete_headers(b, payload_len);
	else
		urxe_icrc_put(end, icrc_of_frame(b, payload_len));
	b->frame->len = (uint32_t)(end - b->frame->data) + URXE_ICRC_LEN;
	qp_count(qp, URXE_EVENT_TX_PACKETS);
	qp_count_bytes(qp, URXE_EVENT_TX_BYTES, b->frame->len + b->frame->reference.length);
}

void build_feth(struct build *b, const struct urxe_flush *flush)
{
	put32(b->ext, (uint32_t)(flush->selectivity << 4 | flush->placement));
	b->ext += 4;
}

void build_reth(struct build *b, uint64_t va, uint32_t rkey, uint32_t length)
{
	put64(b->ext, va);
	put32(b->ext + 8, rkey);
	put32(b->ext + 12, length);
	b->ext += 16;
}

/* Compare-and-swap sends swap and compare, fetch-and-add the summand first (IBA 9.4.5). */
void build_atomic_eth(struct build *b, const struct send_wqe *wqe)
{
	bool swap = wqe->opcode == URXE_WR_COMPARE_SWAP;

	put64(b->ext, wqe->remote_addr);
	put32(b->ext + 8, wqe->rkey);
	put64(b->ext + 12, swap ? wqe->swap : wqe->compare_add);
	put64(b->ext + 20, swap ? wqe->compare_add : 0);
	b->ext += 28;
}

void build_aeth(struct build *b, uint8_t syndrome, uint32_t msn)
{
	b->ext[0] = syndrome;
	put24(b->ext + 1, msn);
	b->ext += 4;
}

void build_atomic_ack(struct build *b, uint64_t original)
{
	put64(b->ext, original);
	b->ext += 8;
}

void build_deth(struct build *b, uint32_t qkey, uint32_t src_qpn)
{
	put32(b->ext, qkey);
	b->ext[4] = 0;
	put24(b->ext + 5, src_qpn);
	b->ext += 8;
}

void build_imm(struct build *b, uint32_t imm)
{
	memcpy(b->ext, &imm, 4);
	b->ext += 4;
}

void build_ieth(struct build *b, uint32_t rkey)
{
	put32(b->ext, rkey);
	b->ext += 4;
}
