/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks the checksums of received frames, for the driver's completion. */
#include <netinet/in.h>

#include "nic.h"

#define TCP_LEAST 20

static bool is_sum_right(uint64_t sum)
{
	return vnic_sum_fold(sum) == 0;
}

/* Whether a UDP checksum is right; over IPv4 also if the packet has none. It covers the bytes that
 * the UDP length field counts, which may be fewer than the packet has. */
static bool is_udp_right(const struct vnic_headers *h, const uint8_t *frame, uint32_t len)
{
	const uint8_t *udp = frame + h->l4;
	uint32_t size;

	if (len < UDP_HEADER)
		return false;
	size = (uint32_t)udp[UDP_LEN_AT] << 8 | udp[UDP_LEN_AT + 1];
	if (size < UDP_HEADER || size > len)
		return false;
	if (!udp[UDP_SUM_AT] && !udp[UDP_SUM_AT + 1])
		return h->v4;
	return is_sum_right(vnic_sum(udp, size, vnic_sum_pseudo(h, frame, size)));
}

static bool is_tcp_right(const struct vnic_headers *h, const uint8_t *frame, uint32_t len)
{
	return len >= TCP_LEAST &&
	       is_sum_right(vnic_sum(frame + h->l4, len, vnic_sum_pseudo(h, frame, len)));
}

/* For a fragment only "fragment" is reported: the checksum covers all fragments. */
static uint32_t transport_bits(const struct vnic_headers *h, const uint8_t *frame)
{
	uint32_t len = h->end - h->l4;

	if (h->fragment)
		return VMXNET3_RCD_FRG;
	switch (h->protocol) {
	case IPPROTO_TCP:
		return VMXNET3_RCD_TCP | (is_tcp_right(h, frame, len) ? VMXNET3_RCD_TUC : 0);
	case IPPROTO_UDP:
		return VMXNET3_RCD_UDP | (is_udp_right(h, frame, len) ? VMXNET3_RCD_TUC : 0);
	default: return 0;
	}
}

bool vnic_rx_csum(const uint8_t *frame, uint32_t len, uint32_t tags, uint32_t *bits)
{
	struct vnic_headers h;

	/* An incomplete packet has no checksum to verify. */
	if (!vnic_headers_find(&h, frame, len) || h.end < h.l4 || h.end > len ||
	    h.l3 > VNIC_ETH_HEADER + tags * TAG)
		return false;
	*bits = transport_bits(&h, frame);
	if (h.v6)
		*bits |= VMXNET3_RCD_V6;
	else
		*bits |= VMXNET3_RCD_V4 |
			 (is_sum_right(vnic_sum(frame + h.l3, h.l4 - h.l3, 0)) ? VMXNET3_RCD_IPC
									       : 0);
	return true;
}
