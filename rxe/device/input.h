/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The way in: from a frame to the QP that it is for. */
#ifndef URXE_RECV_H
#define URXE_RECV_H

#include <rxe/rxe.h>

#include "wire/header_fields.h"

/* ID of the VLAN that a packet came in; 0 = none. A tag without an ID has only a priority (802.1Q).
 */
static inline uint16_t packet_vlan(const struct urxe_packet *p)
{
	return p->has_vlan ? p->vlan_tci & VLAN_ID_MASK : 0;
}

/* Whether a QP may take a packet that is for it: its type, state and partition. */
enum urxe_drop recv_check_qp(const struct urxe_qp *qp, const struct urxe_packet *p);
void recv_frame(struct urxe_dev *dev, const struct urxe_frame *frame);

#endif
