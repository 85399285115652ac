/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Responder resources: requests that have responses of their own, kept so that they can be
 * answered in order and answered again (IBA volume 1, 9.7.5.1.5).
 */
#ifndef URXE_RESOURCE_H
#define URXE_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "objects/qp.h"

/* The oldest slot, to be overwritten; NULL where its first answer is still due: the peer asks too
 * much. */
struct resp_resource *resource_new(struct urxe_qp *qp);
/* The request in the slot is accepted: it takes n_packets PSNs and counts as a message. */
void resource_keep(struct urxe_qp *qp, struct resp_resource *res, uint32_t n_packets);
/* A response is due: from psn on, `length` bytes of what the original request asked for. */
void resource_answer_read(struct urxe_qp *qp, struct resp_resource *res, uint32_t psn,
			  uint32_t length);
/* The same for a part that is asked for again, behind what is due already; false where too many
 * are. */
bool resource_repeat_read(struct urxe_qp *qp, struct resp_resource *res, uint32_t psn,
			  uint32_t length);
/* The last packet of a response is out. */
void resource_answered(struct urxe_qp *qp, struct resp_resource *res);
void resource_set_pending(struct urxe_qp *qp, struct resp_resource *res);
void resource_clear_pending(struct urxe_qp *qp, struct resp_resource *res);
/* The kept request whose PSNs include psn. */
struct resp_resource *resource_find(const struct urxe_qp *qp, uint32_t psn);
/* Makes room for n, keeping the newest; -EBUSY while a response is due, -ENOMEM. */
int resource_resize(struct urxe_qp *qp, uint8_t n);
/* The oldest request whose response is due. */
struct resp_resource *resource_next_pending(struct urxe_qp *qp);

#endif
