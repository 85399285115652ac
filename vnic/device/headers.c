/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds the headers that offloads need, and computes the Internet checksum (RFC 1071). */
#include "headers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define ETHERTYPE_AT  12
#define ETHERTYPE_TAG 0x8100 /* 802.1Q */
#define ETHERTYPE_QNQ 0x88a8 /* 802.1ad */

#define IP4_LEAST       20
#define IP4_FRAGMENT    0x3fff /* the flag "more fragments", and the offset */
#define IP6_EXTENSIONS  8      /* more extension headers than any stack sends */
#define IP6_FRAG_HEADER 8

static bool find_ip4(struct vnic_headers *h, const uint8_t *frame, uint32_t len)
{
	const uint8_t *ip = frame + h->l3;
	uint32_t header;

	if (len - h->l3 < IP4_LEAST || ip[0] >> 4 != 4)
		return false;
	header = (ip[0] & 0x0fu) * 4;
	if (header < IP4_LEAST || header > len - h->l3)
		return false;
	h->v4 = true;
	h->l4 = h->l3 + header;
	h->end = h->l3 + vnic_get16(ip + 2);
	h->protocol = ip[9];
	h->fragment = vnic_get16(ip + 6) & IP4_FRAGMENT;
	return true;
}

/*
 * Skips the extension headers; false: they do not end in the frame, or there are IP6_EXTENSIONS or
 * more. A routing header is not skipped: with one, the pseudo-header of the checksum has another
 * destination address than the IPv6 header (RFC 8200, 8.1).
 */
static bool skip_extensions(struct vnic_headers *h, const uint8_t *frame, uint32_t len)
{
	for (uint32_t i = 0; i < IP6_EXTENSIONS; i++) {
		const uint8_t *extension = frame + h->l4;
		uint32_t size;

		switch (h->protocol) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_DSTOPTS:
		case IPPROTO_FRAGMENT: break;
		default: return true;
		}
		if (len - h->l4 < IP6_FRAG_HEADER)
			return false;
		size = h->protocol == IPPROTO_FRAGMENT ? IP6_FRAG_HEADER : extension[1] * 8u + 8;
		if (size > len - h->l4)
			return false;
		h->fragment |= h->protocol == IPPROTO_FRAGMENT;
		h->protocol = extension[0];
		h->l4 += size;
	}
	return false;
}

static bool find_ip6(struct vnic_headers *h, const uint8_t *frame, uint32_t len)
{
	const uint8_t *ip = frame + h->l3;

	if (len - h->l3 < IP6_HEADER || ip[0] >> 4 != 6)
		return false;
	h->v6 = true;
	h->l4 = h->l3 + IP6_HEADER;
	h->end = h->l4 + vnic_get16(ip + 4);
	h->protocol = ip[6];
	return skip_extensions(h, frame, len);
}

bool vnic_headers_find_ip(struct vnic_headers *h, const uint8_t *frame, uint32_t len, uint32_t at,
			  uint32_t type)
{
	*h = (struct vnic_headers){.l3 = at};
	if (type == ETHERTYPE_IP4)
		return find_ip4(h, frame, len);
	return type == ETHERTYPE_IP6 && find_ip6(h, frame, len);
}

bool vnic_headers_find(struct vnic_headers *h, const uint8_t *frame, uint32_t len)
{
	uint32_t at = ETHERTYPE_AT, type;

	/* Skips up to two VLAN tags. */
	for (uint32_t tags = 0;; tags++, at += 4) {
		if (len < at + 2)
			return false;
		type = vnic_get16(frame + at);
		if (tags == 2 || (type != ETHERTYPE_TAG && type != ETHERTYPE_QNQ))
			break;
	}
	return vnic_headers_find_ip(h, frame, len, at + 2, type);
}

/*
 * Adds words in memory order: the byte-swapped sum of byte-swapped words is the same sum, so the
 * stored result is right on every machine.
 */
uint64_t vnic_sum(const uint8_t *data, uint32_t len, uint64_t sum)
{
	uint32_t word;
	uint16_t half;

	for (; len >= sizeof(word); data += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		sum += word;
	}
	if (len >= sizeof(half)) {
		memcpy(&half, data, sizeof(half));
		sum += half;
		data += sizeof(half);
		len -= sizeof(half);
	}
	return len ? sum + *data : sum;
}

uint16_t vnic_sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

uint64_t vnic_sum_pseudo(const struct vnic_headers *h, const uint8_t *frame, uint32_t len)
{
	const uint8_t *addresses = frame + h->l3 + (h->v4 ? 12 : 8);

	return vnic_sum(addresses, h->v4 ? 8 : 32,
			htons(h->protocol) + (uint64_t)htons((uint16_t)len));
}
