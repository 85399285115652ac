/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pacing: packets that carry a QP's requests and READ responses leave no faster
 * than its congestion control and its rate limit allow. Acknowledgements are not
 * held back, unless order keeps them behind READ responses.
 */
#ifndef URXE_PACE_H
#define URXE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* For a QP in RESET. */
void pace_init(struct urxe_qp *qp);
/* The owner's limit, kb/s; 0 = none. */
void pace_set_limit(struct urxe_qp *qp, uint32_t kbps);
/* A CNP came for the QP. */
void pace_notified(struct urxe_qp *qp);
/* Whether a packet may leave now; if not, the QP is scheduled again when it may. */
bool pace_ready(struct urxe_qp *qp);
/* The QP, which has to wait for something other than its rate, is scheduled again after ns. */
void pace_again(struct urxe_qp *qp, uint64_t ns);
/* A packet of len bytes leaves. */
void pace_sent(struct urxe_qp *qp, uint32_t len);

#endif
