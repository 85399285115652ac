/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tso.h"

#include <netinet/in.h>
#include <string.h>

#define TCP_HEADER   20 /* bytes, without options */
#define TCP_SEQ_AT   4
#define TCP_OFFSET   12
#define TCP_FLAGS_AT 13
#define TCP_FIN      0x01
#define TCP_PSH      0x08
#define TCP_CWR      0x80

#define IP4_LEN_AT 2
#define IP4_ID_AT  4
#define IP4_SUM_AT 10
#define IP6_LEN_AT 4

static void put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static void put32(uint8_t *p, uint32_t value)
{
	put16(p, value >> 16);
	put16(p + 2, value);
}

static uint32_t get32(const uint8_t *p)
{
	return vnic_get16(p) << 16 | vnic_get16(p + 2);
}

bool vnic_tso_start(struct vnic_tso *tso, const uint8_t *packet, uint32_t len, uint32_t header,
		    uint32_t mss, enum vnic_tso_tunnel tunnel)
{
	struct vnic_headers at, outer = {0};

	if (!mss || header >= len)
		return false;
	if (tunnel == VNIC_TSO_PLAIN ? !vnic_headers_find(&at, packet, header)
				     : !vnic_headers_find_inner(&outer, &at, packet, header))
		return false;
	if (at.protocol != IPPROTO_TCP || at.fragment || header - at.l4 < TCP_HEADER ||
	    (packet[at.l4 + TCP_OFFSET] >> 4) * 4u != header - at.l4)
		return false;
	*tso = (struct vnic_tso){.packet = packet,
				 .len = len,
				 .header = header,
				 .mss = mss,
				 .at = at,
				 .outer = outer,
				 .tunnel = tunnel};
	return true;
}

/* Sets the length, identification and checksum of a segment's IP header. Each segment is an IP
 * packet with the next identification. */
static void finish_ip(const struct vnic_tso *tso, const struct vnic_headers *at, uint8_t *frame,
		      uint32_t len)
{
	uint8_t *ip = frame + at->l3;
	uint32_t number = tso->sent / tso->mss;
	uint16_t sum = 0;

	if (at->v6) {
		put16(ip + IP6_LEN_AT, len - at->l3 - IP6_HEADER);
		return;
	}
	put16(ip + IP4_LEN_AT, len - at->l3);
	put16(ip + IP4_ID_AT, vnic_get16(ip + IP4_ID_AT) + number);
	memcpy(ip + IP4_SUM_AT, &sum, sizeof(sum));
	sum = vnic_sum_fold(vnic_sum(ip, at->l4 - at->l3, 0));
	memcpy(ip + IP4_SUM_AT, &sum, sizeof(sum));
}

/* FIN and PSH go to the last segment, CWR (RFC 3168) to the first. */
static void finish_tcp(const struct vnic_tso *tso, uint8_t *frame, uint32_t len, bool last)
{
	uint8_t *tcp = frame + tso->at.l4;
	uint32_t size = len - tso->at.l4;
	uint16_t sum = 0;

	put32(tcp + TCP_SEQ_AT, get32(tcp + TCP_SEQ_AT) + tso->sent);
	if (!last)
		tcp[TCP_FLAGS_AT] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	if (tso->sent)
		tcp[TCP_FLAGS_AT] &= (uint8_t)~TCP_CWR;
	memcpy(tcp + TCP_SUM_AT, &sum, sizeof(sum));
	sum = vnic_sum_fold(vnic_sum(tcp, size, vnic_sum_pseudo(&tso->at, frame, size)));
	memcpy(tcp + TCP_SUM_AT, &sum, sizeof(sum));
}

/* Completes the outer headers of a tunnel; the inner ones are complete. */
static void finish_tunnel(const struct vnic_tso *tso, uint8_t *frame, uint32_t len)
{
	uint8_t *udp = frame + tso->outer.l4;
	uint32_t size = len - tso->outer.l4;
	uint16_t sum = 0;

	finish_ip(tso, &tso->outer, frame, len);
	put16(udp + UDP_LEN_AT, size);
	memcpy(udp + UDP_SUM_AT, &sum, sizeof(sum));
	if (tso->tunnel != VNIC_TSO_TUNNEL_CSUM)
		return;
	sum = vnic_sum_fold(vnic_sum(udp, size, vnic_sum_pseudo(&tso->outer, frame, size)));
	if (sum == 0)
		sum = 0xffff;
	memcpy(udp + UDP_SUM_AT, &sum, sizeof(sum));
}

uint32_t vnic_tso_next(struct vnic_tso *tso, uint8_t *frame)
{
	uint32_t left = tso->len - tso->header - tso->sent;
	uint32_t part = left < tso->mss ? left : tso->mss;
	uint32_t len = tso->header + part;

	memcpy(frame, tso->packet, tso->header);
	memcpy(frame + tso->header, tso->packet + tso->header + tso->sent, part);
	finish_ip(tso, &tso->at, frame, len);
	finish_tcp(tso, frame, len, part == left);
	if (tso->tunnel != VNIC_TSO_PLAIN)
		finish_tunnel(tso, frame, len);
	tso->sent += part;
	return len;
}
