/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pacing: the QP sends requests and READ responses no faster than its congestion control and its
 * rate limit allow. Acknowledgements are not paced, but stay behind READ responses. */
#ifndef URXE_CONGESTION_PACING_H
#define URXE_CONGESTION_PACING_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* Initializes the pacing of a QP in RESET: it has no rate limit. */
void pace_init(struct urxe_qp *qp);
/* Sets the rate limit, kb/s; 0 = none. */
void pace_set_limit(struct urxe_qp *qp, uint32_t kbps);
/* A CNP for the QP arrived: the congestion control may lower the QP's rate. */
void pace_notified(struct urxe_qp *qp);
/* Whether a packet may be sent now; if not, a timer schedules the QP when it may. */
bool pace_ready(struct urxe_qp *qp);
/* The QP cannot send now, for a reason that is not its rate: schedules it `ns` from now. */
void pace_again(struct urxe_qp *qp, uint64_t ns);
/* A request or READ response of len bytes is sent: sets when the next one may be sent. */
void pace_sent(struct urxe_qp *qp, uint32_t len);

#endif
