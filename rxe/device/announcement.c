/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "device/announcement.h"

#include <string.h>

#include <rxe/announcement.h>

#include "objects/device.h"
#include "objects/qp.h"
#include "requester/retransmit.h"
#include "responder/psn_gap.h"
#include "wire/header_fields.h"

#define ETHERTYPE_RARP 0x8035
/* Interval between the NAKs of two connections, ns. All NAKs at once would fill queues on the
 * way. */
#define NAK_SPACING_NS 1000

void urxe_announcement_build(uint8_t frame[URXE_ANNOUNCEMENT_LEN], const uint8_t mac[6])
{
	/* RARP for 6-byte Ethernet and 4-byte IPv4 addresses; operation 3, request reverse. */
	static const uint8_t fixed[] = {
		ETHERTYPE_RARP >> 8, ETHERTYPE_RARP & 0xff, 0, 1, 8, 0, 6, 4, 0, 3};

	memset(frame, 0, URXE_ANNOUNCEMENT_LEN);
	memset(frame, 0xff, 6);
	memcpy(frame + 6, mac, 6);
	memcpy(frame + 12, fixed, sizeof(fixed));
	memcpy(frame + 22, mac, 6); /* source hardware address */
	memcpy(frame + 32, mac, 6); /* target hardware address */
}

static bool is_connection(const struct urxe_qp *qp)
{
	return qp->type == URXE_QPT_RC && !qp->offloaded;
}

/* Whether the requester may repeat packets, as in SQD, in which it sends no new message. */
static bool may_repeat(const struct urxe_qp *qp)
{
	return qp->attr.state == URXE_QPS_RTS || qp->attr.state == URXE_QPS_SQD;
}

static void peer_returned(struct urxe_dev *dev, const uint8_t mac[6])
{
	struct urxe_qp *qp;

	for (uint32_t at = 0; (qp = idmap_next(&dev->qps, &at));)
		if (is_connection(qp) && may_repeat(qp) &&
		    !memcmp(qp->attr.path.dmac, mac, sizeof(qp->attr.path.dmac)))
			retransmit_peer_announced(qp);
}

static bool may_receive(const struct urxe_qp *qp)
{
	switch (qp->attr.state) {
	case URXE_QPS_RTR:
	case URXE_QPS_RTS:
	case URXE_QPS_SQD:
	case URXE_QPS_SQE: return true;
	default: return false;
	}
}

static void device_returned(struct urxe_dev *dev)
{
	struct urxe_qp *qp;
	uint64_t delay = 0;

	/* With go_back_n only the timers make requesters and responders repeat packets. */
	for (uint32_t at = 0; !dev->attr.go_back_n && (qp = idmap_next(&dev->qps, &at));) {
		if (!is_connection(qp) || !may_receive(qp))
			continue;
		if (may_repeat(qp))
			retransmit_after_absence(qp);
		psn_gap_suspect(qp, delay);
		delay += NAK_SPACING_NS;
	}
}

bool announcement_input(struct urxe_dev *dev, const struct urxe_frame *frame)
{
	const uint8_t *mac = frame->data + 6;

	if (frame->len < ETH_LEN || get16(frame->data + 12) != ETHERTYPE_RARP)
		return false;
	if (memcmp(mac, dev->attr.mac, sizeof(dev->attr.mac)) != 0)
		peer_returned(dev, mac);
	else if (frame->from_wire) /* from another host, which must not use this MAC */
		return false;
	else
		device_returned(dev);
	return true;
}
