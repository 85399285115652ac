/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hooks of the offload: the code of requests and of the device calls these functions, which pass
 * each operation on to the HCA (rxe/offload.h). On a device without an HCA they do nothing. */
#ifndef URXE_OFFLOAD_HOOKS_H
#define URXE_OFFLOAD_HOOKS_H

#include <stdbool.h>

#include <rxe/offload.h>
#include <rxe/rxe.h>

#include "objects/offload_objects.h"
#include "objects/qp.h"
#include "objects/rq.h"

/* --- Queue pairs. */

/* Creates the HCA's QP, which chooses qp->qpn; returns 0 or a negative errno value. After an error
 * the caller calls offload_destroy_qp. Then the QP is the engine's alone, or is not created if the
 * HCA has the requests of its SRQ (offload_keeps_receives). */
int offload_create_qp(struct urxe_qp *qp, const struct urxe_qp_init *init);
/*
 * Applies a call of urxe_qp_modify to the HCA's QP, as far as the HCA needs it. Called after the
 * attributes were checked and before they are applied to the engine's QP; attr->state is the new
 * state. After an error neither QP has changed, and urxe_qp_modify returns the error. The owner may
 * release its lock meanwhile, so the QP may enter the error state.
 */
int offload_modify(struct urxe_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask);

/* --- Requests. */

/* Hands as many send requests to the HCA as the HCA takes. */
void offload_send(struct urxe_qp *qp);
/* Hands as many receive requests to the HCA as the HCA takes, if offload_has_queue. */
void offload_receive(struct urxe_rq *rq);
/* As urxe_offload_complete. Returns the QP if its take-over has begun: the caller then checks
 * whether the HCA has given back all receive requests. Else NULL. */
struct urxe_qp *offload_complete(struct urxe_dev *dev, const struct urxe_wc *wc, bool recv);

#endif
