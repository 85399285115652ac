/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/gso_run.h"

#include <string.h>

#include <rxe/packet.h>

#define BTH_LEN      12
#define BTH_DEST_QPN 5 /* 24 bits */
#define ICRC_LEN     4
#define WORD         4 /* packets are padded to it */

/* Whether two BTHs have the same destination QPN. The PSNs may differ by any number: the engine
 * puts READ responses and requests of a queue pair into one GSO packet. */
static bool have_same_qp(const uint8_t *bth, const uint8_t *next)
{
	return !memcmp(bth + BTH_DEST_QPN, next + BTH_DEST_QPN, 3);
}

static bool first_icrc_is_right(struct gso_packet *packet)
{
	struct packet_port_frame first;
	struct urxe_packet p;

	gso_packet_next(packet, &first);
	packet->next = 0;
	urxe_packet_parse(&p, first.data, first.len);
	return p.icrc && urxe_packet_icrc_ok(&p);
}

/* Cuts the packet into segments of vnet->gso_size bytes. False: the first segment then has a wrong
 * ICRC, or the frame cannot be cut. */
static bool cut_at(struct gso_packet *packet, const struct virtio_net_hdr *vnet,
		   const uint8_t *frame, uint32_t len)
{
	const uint8_t *from = frame + gso_headers(frame, len);
	struct iovec parts[GSO_SEGMENTS];
	uint32_t n;

	if (!gso_packet_start(packet, vnet, frame, len, len))
		return false;
	n = gso_packet_parts(packet, parts);
	gso_packet_finish(packet);
	memcpy(parts[0].iov_base, from, parts[0].iov_len);
	if (!first_icrc_is_right(packet))
		return false;
	for (uint32_t i = 1; i < n; i++) {
		from += parts[i - 1].iov_len;
		memcpy(parts[i].iov_base, from, parts[i].iov_len);
	}
	return true;
}

bool gso_run_cut(struct gso_packet *packet, const uint8_t *frame, uint32_t len)
{
	struct virtio_net_hdr vnet = {.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4};
	const uint32_t headers = gso_headers(frame, len);
	const uint8_t *bth = frame + headers;

	if (!headers)
		return false;
	for (uint32_t size = BTH_LEN + ICRC_LEN; headers + size + BTH_LEN <= len; size += WORD) {
		vnet.gso_size = (uint16_t)size;
		if (have_same_qp(bth, bth + size) && cut_at(packet, &vnet, frame, len))
			return true;
	}
	return false;
}
