/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Responder resources: READ, atomic, FLUSH and ATOMIC WRITE requests, kept for their response and
 * for answers to duplicates (IBA volume 1, 9.7.5.1.5).
 */
#ifndef URXE_RESOURCE_H
#define URXE_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "objects/qp.h"

/* The oldest slot, to be overwritten. NULL: its first response is still due, so the peer has more
 * requests outstanding than allowed. */
struct resp_resource *resource_new(struct urxe_qp *qp);
/* Accepts the request in the slot: it takes n_packets PSNs and counts as a message. */
void resource_keep(struct urxe_qp *qp, struct resp_resource *res, uint32_t n_packets);
/* Makes the slot the youngest; the caller has set first_psn and last_psn. */
void resource_keep_slot(struct urxe_qp *qp, struct resp_resource *res);
/* Makes a READ response due: `length` bytes of the original request, from psn on. */
void resource_answer_read(struct urxe_qp *qp, struct resp_resource *res, uint32_t psn,
			  uint32_t length);
/* The same for a repeated part, after the responses that are due; false: too many parts are due. */
bool resource_repeat_read(struct urxe_qp *qp, struct resp_resource *res, uint32_t psn,
			  uint32_t length);
/* The last packet of the response was sent. */
void resource_answered(struct urxe_qp *qp, struct resp_resource *res);
void resource_set_pending(struct urxe_qp *qp, struct resp_resource *res);
void resource_clear_pending(struct urxe_qp *qp, struct resp_resource *res);
/* The kept request whose PSNs include psn; NULL: none does. */
struct resp_resource *resource_find(const struct urxe_qp *qp, uint32_t psn);
/* Makes room for n, keeping the newest; -EBUSY while a response is due, -ENOMEM. */
int resource_resize(struct urxe_qp *qp, uint8_t n);
/* The oldest request whose response is due; NULL: none is. */
struct resp_resource *resource_next_pending(struct urxe_qp *qp);

#endif
