/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Invariant CRC (IBA volume 1, 7.8.1; A16.5; A17.3.3): CRC-32 over the packet with
 * the fields that routers may change set to ones, and eight bytes of ones in
 * front in place of an LRH.
 */
#include "wire/icrc.h"

#include <endian.h>

#include <isa-l/crc.h>

#include <rxe/rxe.h>

#include "wire/header_fields.h"

/* CRC-32 of eight bytes of ones, which stand for the absent LRH. */
#define ICRC_SEED 0x2144df1cu

static void mask_ipv4(uint8_t *ip)
{
	ip[1] = 0xff;                       /* type of service */
	ip[8] = 0xff;                       /* time to live */
	ip[10] = ip[11] = 0xff;             /* header checksum */
	memset(ip + IPV4_LEN + 6, 0xff, 2); /* UDP checksum */
}

/* Sets what routers may change in an IPv6 header or GRH to ones: traffic class, flow label, hop
 * limit. */
static void mask_ipv6(uint8_t *ip)
{
	ip[0] |= 0x0f;
	ip[1] = ip[2] = ip[3] = 0xff;
	ip[7] = 0xff;
}

static void mask_headers(enum urxe_net net, uint8_t *hdr, uint32_t l3_len)
{
	if (net == URXE_NET_IPV4) {
		mask_ipv4(hdr);
	} else {
		mask_ipv6(hdr);
		if (net == URXE_NET_IPV6)
			memset(hdr + IPV6_LEN + 6, 0xff, 2); /* UDP checksum */
	}
	hdr[l3_len + 4] = 0xff; /* FECN, BECN and reserved bits of the BTH */
}

uint32_t urxe_icrc_start(enum urxe_net net, uint8_t *l3, uint32_t l3_len, uint64_t n)
{
	mask_headers(net, l3, l3_len);
	return crc32_gzip_refl(ICRC_SEED, l3, n);
}

/* CRC of the first n bytes, at most ICRC_FIRST. */
static uint32_t masked_crc(enum urxe_net net, const uint8_t *l3, const uint8_t *bth, uint64_t n)
{
	uint8_t masked[ICRC_FIRST];

	memcpy(masked, l3, n);
	return urxe_icrc_start(net, masked, (uint32_t)(bth - l3), n);
}

/* The ICRC of the packet whose L3 header starts at l3, BTH at bth, and ICRC at end. */
static uint32_t urxe_icrc(enum urxe_net net, const uint8_t *l3, const uint8_t *bth,
			  const uint8_t *end)
{
	uint64_t len = (uint64_t)(end - l3), first = len < ICRC_FIRST ? len : ICRC_FIRST;
	uint32_t crc = masked_crc(net, l3, bth, first);

	return len == first ? crc : crc32_gzip_refl(crc, l3 + first, len - first);
}

void urxe_icrc_put(uint8_t *at, uint32_t icrc)
{
	icrc = htole32(icrc);
	memcpy(at, &icrc, sizeof(icrc));
}

void urxe_frame_add_icrc(uint8_t *data, uint32_t len)
{
	struct urxe_packet p;

	if (!urxe_packet_parse(&p, data, len))
		urxe_icrc_put(data + (p.icrc - data), urxe_icrc(p.net, p.l3, p.bth, p.icrc));
}

bool urxe_packet_icrc_ok(const struct urxe_packet *p)
{
	uint32_t wire;

	memcpy(&wire, p->icrc, sizeof(wire));
	return le32toh(wire) == urxe_icrc(p->net, p->l3, p->bth, p->icrc);
}
