/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "craft.h"

#include <string.h>

#include "require.h"
#include "table38.h"

void craft_put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = (uint8_t)value;
}

void craft_put32(uint8_t *at, uint32_t value)
{
	craft_put16(at, value >> 16);
	craft_put16(at + 2, (uint16_t)value);
}

static void craft_put64(uint8_t *at, uint64_t value)
{
	craft_put32(at, value >> 32);
	craft_put32(at + 4, (uint32_t)value);
}

uint16_t craft_get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

struct urxe_gid craft_gid(enum urxe_net net, uint8_t id)
{
	static const uint8_t prefix[][16] = {
		[URXE_NET_ROCEV1] = {0xfe, 0x80},
		[URXE_NET_IPV4] = {[10] = 0xff, 0xff, 10},
		[URXE_NET_IPV6] = {0x20, 0x01, 0x0d, 0xb8},
	};
	struct urxe_gid gid;

	memcpy(gid.raw, prefix[net], sizeof(gid.raw));
	gid.raw[15] = id;
	return gid;
}

/* Four bits at a time: polynomial 0x04c11db7, reflected. */
uint32_t craft_crc32(const uint8_t *data, size_t length)
{
	static const uint32_t remainders[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	uint32_t crc = ~0u;

	for (; length; data++, length--) {
		crc ^= *data;
		crc = crc >> 4 ^ remainders[crc & 15];
		crc = crc >> 4 ^ remainders[crc & 15];
	}
	return ~crc;
}

/* Sets the fields that routers may change to ones (IBA A17.3.3 and A16.5.1). */
static uint32_t mask_network(enum urxe_net net, uint8_t *copy)
{
	switch (net) {
	case URXE_NET_IPV4:
		copy[1] = 0xff;             /* type of service */
		copy[8] = 0xff;             /* time to live */
		memset(copy + 10, 0xff, 2); /* header checksum */
		memset(copy + 26, 0xff, 2); /* UDP checksum */
		return 28;
	case URXE_NET_IPV6:
		memset(copy + 46, 0xff, 2); /* UDP checksum */
		break;
	case URXE_NET_ROCEV1: break;
	}
	copy[0] |= 0x0f; /* traffic class and flow label */
	memset(copy + 1, 0xff, 3);
	copy[7] = 0xff; /* hop limit */
	return net == URXE_NET_IPV6 ? 48 : 40;
}

uint32_t craft_icrc(enum urxe_net net, const uint8_t *l3, const uint8_t *icrc)
{
	uint8_t copy[8 + 65536];
	size_t length = (size_t)(icrc - l3);

	require(length <= sizeof(copy) - 8);
	memset(copy, 0xff, 8); /* eight bytes of ones in the place of the LRH */
	memcpy(copy + 8, l3, length);
	copy[8 + mask_network(net, copy + 8) + 4] = 0xff; /* FECN, BECN, resv6 */
	return craft_crc32(copy, 8 + length);
}

static void put_icrc(enum urxe_net net, const uint8_t *l3, uint8_t *at)
{
	uint32_t icrc = craft_icrc(net, l3, at);

	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(icrc >> 8 * i);
}

bool craft_seal(uint8_t *frame, uint32_t len)
{
	uint8_t *l3 = frame + 14;
	uint32_t l3_len, least;
	enum urxe_net net;

	if (len < 14 + 40)
		return false;
	switch (craft_get16(frame + 12)) {
	case 0x0800:
		net = URXE_NET_IPV4;
		l3_len = craft_get16(l3 + 2);
		least = 28 + 12 + 4;
		break;
	case 0x86dd:
		net = URXE_NET_IPV6;
		l3_len = 40 + craft_get16(l3 + 4);
		least = 48 + 12 + 4;
		break;
	case URXE_ETHERTYPE_ROCEV1:
		net = URXE_NET_ROCEV1;
		l3_len = 40 + craft_get16(l3 + 4);
		least = 40 + 12 + 4;
		break;
	default: return false;
	}
	if (l3_len < least || l3_len > len - 14)
		return false;
	put_icrc(net, l3, l3 + l3_len - 4);
	return true;
}

static uint16_t ipv4_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += craft_get16(header + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint8_t *put_ipv4(uint8_t *at, const struct urxe_packet *p, uint32_t inner)
{
	memset(at, 0, 28);
	at[0] = 0x45;
	at[1] = p->traffic_class;
	craft_put16(at + 2, (uint16_t)(28 + inner));
	at[6] = 0x40; /* do not fragment */
	at[8] = p->hop_limit;
	at[9] = 17;
	memcpy(at + 12, p->sgid.raw + 12, 4);
	memcpy(at + 16, p->dgid.raw + 12, 4);
	craft_put16(at + 10, ipv4_checksum(at));
	return at + 20;
}

static uint8_t *put_ipv6(uint8_t *at, const struct urxe_packet *p, uint32_t length, uint8_t next)
{
	craft_put32(at, 6u << 28 | (uint32_t)p->traffic_class << 20 | p->flow_label);
	craft_put16(at + 4, (uint16_t)length);
	at[6] = next;
	at[7] = p->hop_limit;
	memcpy(at + 8, p->sgid.raw, 16);
	memcpy(at + 24, p->dgid.raw, 16);
	return at + 40;
}

static uint8_t *put_udp(uint8_t *at, const struct urxe_packet *p, uint32_t inner)
{
	craft_put16(at, p->udp_sport);
	craft_put16(at + 2, URXE_UDP_PORT);
	craft_put16(at + 4, (uint16_t)(8 + inner));
	craft_put16(at + 6, 0);
	return at + 8;
}

static uint8_t *put_bth(uint8_t *at, const struct urxe_packet *p)
{
	at[0] = p->opcode;
	at[1] = (uint8_t)(p->solicited << 7 | p->mig_req << 6 | p->pad << 4);
	craft_put16(at + 2, p->pkey);
	craft_put32(at + 4, (uint32_t)p->fecn << 31 | (uint32_t)p->becn << 30 | p->dest_qpn);
	craft_put32(at + 8, (uint32_t)p->ack_req << 31 | p->psn);
	return at + 12;
}

static uint8_t *put_extended(uint8_t *at, const struct urxe_packet *p, uint16_t contents)
{
	if (contents & T38_XRCETH) {
		craft_put32(at, 0);
		at += 4;
	}
	if (contents & T38_DETH) {
		craft_put32(at, p->deth.qkey);
		craft_put32(at + 4, p->deth.src_qpn);
		at += 8;
	}
	if (contents & T38_FETH) {
		craft_put32(at, (uint32_t)p->feth.selectivity << 4 | p->feth.placement);
		at += 4;
	}
	if (contents & T38_RETH) {
		craft_put64(at, p->reth.va);
		craft_put32(at + 8, p->reth.rkey);
		craft_put32(at + 12, p->reth.length);
		at += 16;
	}
	if (contents & T38_ATOMICETH) {
		craft_put64(at, p->atomic.va);
		craft_put32(at + 8, p->atomic.rkey);
		craft_put64(at + 12, p->atomic.swap_add);
		craft_put64(at + 20, p->atomic.compare);
		at += 28;
	}
	if (contents & T38_AETH) {
		craft_put32(at, (uint32_t)p->aeth.syndrome << 24 | p->aeth.msn);
		at += 4;
	}
	if (contents & T38_ATOMICACKETH) {
		craft_put64(at, p->atomic_ack);
		at += 8;
	}
	if (contents & T38_IMMDT) {
		memcpy(at, &p->imm, 4);
		at += 4;
	}
	if (contents & T38_IETH) {
		craft_put32(at, p->ieth_rkey);
		at += 4;
	}
	return at;
}

static uint8_t *put_ethernet(uint8_t *at, const struct urxe_packet *p)
{
	static const uint16_t types[] = {
		[URXE_NET_ROCEV1] = URXE_ETHERTYPE_ROCEV1,
		[URXE_NET_IPV4] = 0x0800,
		[URXE_NET_IPV6] = 0x86dd,
	};

	memcpy(at, p->dmac, 6);
	memcpy(at + 6, p->smac, 6);
	at += 12;
	if (p->has_vlan) {
		craft_put16(at, 0x8100);
		craft_put16(at + 2, p->vlan_tci);
		at += 4;
	}
	craft_put16(at, types[p->net]);
	return at + 2;
}

uint32_t craft_frame(uint8_t frame[CRAFT_MAX], const struct urxe_packet *p)
{
	const struct table38_row *row = table38_find(p->opcode);
	uint16_t contents = row ? row->contents : T38_PAYLOAD;
	uint32_t inner = table38_header_len(contents) + p->payload_len + p->pad + URXE_ICRC_LEN;
	uint8_t *l3 = put_ethernet(frame, p);
	uint8_t *at;

	require(inner + 66 <= CRAFT_MAX);
	switch (p->net) {
	case URXE_NET_IPV4: at = put_udp(put_ipv4(l3, p, inner), p, inner); break;
	case URXE_NET_IPV6: at = put_udp(put_ipv6(l3, p, 8 + inner, 17), p, inner); break;
	default: at = put_ipv6(l3, p, inner, 0x1b); break; /* IBA A16.4.3: next header 0x1b */
	}
	at = put_extended(put_bth(at, p), p, contents);
	if (p->payload_len)
		memcpy(at, p->payload, p->payload_len);
	at += p->payload_len;
	memset(at, 0, p->pad);
	at += p->pad;
	put_icrc(p->net, l3, at);
	return (uint32_t)(at + URXE_ICRC_LEN - frame);
}
