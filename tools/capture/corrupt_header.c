/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/corrupt_header.h"

#include <rxe/packet.h>

#include "common/ether.h"

#define FRAME_MAX 65600

static bool has_right_icrc(const uint8_t *frame, uint32_t len)
{
	struct urxe_packet p;

	urxe_packet_parse(&p, frame, len);
	return p.icrc && urxe_packet_icrc_ok(&p);
}

/* Is the ICRC right if the field of `size` bytes at `at` has that value? Restores the frame. */
static bool has_right_icrc_with(uint8_t *frame, uint32_t len, uint32_t at, uint16_t value,
				uint32_t size)
{
	uint8_t was[2], now[2];
	bool right;

	ether_put16(now, value);
	memcpy(was, frame + at, size);
	memcpy(frame + at, now + 2 - size, size);
	right = has_right_icrc(frame, len);
	memcpy(frame + at, was, size);
	return right;
}

bool corrupt_header_hides_roce(const uint8_t *frame, uint32_t len)
{
	uint8_t copy[FRAME_MAX];
	uint32_t l3 = ETHER_HDR_LEN;
	uint16_t ethertype;

	if (len < ETHER_HDR_LEN + ETHER_VLAN_LEN + IPV4_HDR_LEN + UDP_HDR_LEN || len > FRAME_MAX)
		return false;
	memcpy(copy, frame, len);
	ethertype = ether_get16(copy + 12);
	if (ethertype == ETHERTYPE_ID_VLAN) {
		ethertype = ether_get16(copy + 16);
		l3 += ETHER_VLAN_LEN;
	}
	if (ethertype == ETHERTYPE_ID_IPV4)
		return has_right_icrc_with(copy, len, l3, 0x45, 1) ||
		       has_right_icrc_with(copy, len, l3 + 6, 0, 2) ||
		       has_right_icrc_with(copy, len, l3 + 6, 0x4000, 2) ||
		       has_right_icrc_with(copy, len, l3 + 9, PROTO_UDP, 1) ||
		       has_right_icrc_with(copy, len, l3 + IPV4_HDR_LEN + 2, URXE_UDP_PORT, 2);
	if (ethertype == ETHERTYPE_ID_IPV6 && len >= l3 + IPV6_HDR_LEN + UDP_HDR_LEN)
		return has_right_icrc_with(copy, len, l3, 0x60, 1) ||
		       has_right_icrc_with(copy, len, l3 + 6, PROTO_UDP, 1) ||
		       has_right_icrc_with(copy, len, l3 + IPV6_HDR_LEN + 2, URXE_UDP_PORT, 2);
	return false;
}
