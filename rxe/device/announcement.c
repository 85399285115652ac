/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "device/announcement.h"

#include <string.h>

#include "objects/device.h"
#include "objects/qp.h"
#include "requester/retransmit.h"
#include "wire/header_fields.h"

#define ETHERTYPE_RARP 0x8035

static bool sends_to(const struct urxe_qp *qp, const uint8_t mac[6])
{
	return qp->type == URXE_QPT_RC && qp->attr.state == URXE_QPS_RTS && !qp->offloaded &&
	       !memcmp(qp->attr.path.dmac, mac, sizeof(qp->attr.path.dmac));
}

bool announcement_input(struct urxe_dev *dev, const struct urxe_frame *frame)
{
	const uint8_t *mac = frame->data + 6;
	struct urxe_qp *qp;

	if (frame->len < ETH_LEN || get16(frame->data + 12) != ETHERTYPE_RARP)
		return false;
	for (uint32_t at = 0; (qp = idmap_next(&dev->qps, &at));)
		if (sends_to(qp, mac))
			retransmit_peer_announced(qp);
	return true;
}
