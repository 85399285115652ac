/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Responder resources: READ, atomic, FLUSH and ATOMIC WRITE requests, kept until their response is
 * sent, and to answer duplicates (IBA volume 1, 9.7.5.1.5). */
#ifndef URXE_RESPONDER_RESP_RESOURCES_H
#define URXE_RESPONDER_RESP_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "objects/qp.h"
#include "util/ring.h"

/*
 * Number of slots of a QP with this max_dest_rd_atomic. Linux' requesters (rdma_rxe, mlx4, mlx5)
 * round the depth of a connection up to a power of two, and so do its responders.
 */
static inline uint8_t resource_slots(uint8_t max_dest_rd_atomic)
{
	return max_dest_rd_atomic ? (uint8_t)ring_slots(max_dest_rd_atomic) : 0;
}

/* The oldest slot, which the caller overwrites. If a response to a duplicate is due from the slot,
 * drops that response. NULL: the slot's first response is still due, or the QP has no slots, so the
 * peer has more requests outstanding than allowed. */
struct resp_resource *resource_new(struct urxe_qp *qp);
/* Accepts the expected request, which the caller has put into the slot: moves the expected PSN on
 * by n_packets and the MSN by 1, and makes the slot the youngest. */
void resource_keep(struct urxe_qp *qp, struct resp_resource *res, uint32_t n_packets);
/* Makes the slot the youngest; the caller has set first_psn and last_psn. */
void resource_keep_slot(struct urxe_qp *qp, struct resp_resource *res);
/* Makes a READ response due: `length` bytes of the original request, from psn on. */
void resource_answer_read(struct urxe_qp *qp, struct resp_resource *res, uint32_t psn,
			  uint32_t length);
/*
 * The peer asks for `length` bytes from psn on again: makes this part due. If no response of the
 * request is in progress, or the part ends where that response ends, the response starts anew at
 * psn. Another part is sent after the response in progress, unless it is due already. False:
 * RESP_REPEATS parts wait already.
 */
bool resource_repeat_read(struct urxe_qp *qp, struct resp_resource *res, uint32_t psn,
			  uint32_t length);
/*
 * If the newest executed request is kept here, and no part of its response is due, makes the last
 * packet of the response due again. If the peer lacks earlier packets of the response, this packet
 * is an implied NAK to the peer (IBA 9.7.5.2.8).
 */
void resource_repeat_newest(struct urxe_qp *qp);
/* The last packet of the response was sent: makes the next repeated part due, if there is one. */
void resource_answered(struct urxe_qp *qp, struct resp_resource *res);
void resource_set_pending(struct urxe_qp *qp, struct resp_resource *res);
void resource_clear_pending(struct urxe_qp *qp, struct resp_resource *res);
/* The kept request whose PSNs include psn; NULL: none does. */
struct resp_resource *resource_find(const struct urxe_qp *qp, uint32_t psn);
/* Allocates the slots for a new max_dest_rd_atomic, with copies of the newest requests. -EBUSY
 * while a response is due, -ENOMEM. */
int resource_copy(const struct urxe_qp *qp, uint8_t max_dest_rd_atomic,
		  struct resp_resource **resources);
/* Puts the result of resource_copy in place of the QP's slots; sets attr.max_dest_rd_atomic. */
void resource_install(struct urxe_qp *qp, uint8_t max_dest_rd_atomic,
		      struct resp_resource *resources);
/* The oldest request whose response is due; NULL: there is none. */
struct resp_resource *resource_next_pending(struct urxe_qp *qp);

#endif
