/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a requester sends again, and when: on NAKs, missing responses, probes and
 * timeouts (IBA volume 1, 9.7.5 and 9.7.6; docs/recovery.md).
 */
#ifndef URXE_RETRY_H
#define URXE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* Least silence before a probe, where the owner says nothing. */
#define RETRY_PROBE_NS 20000

struct send_wqe;

/* Nothing is outstanding, and nothing known of the peer's way with losses in this window. */
void retry_init(struct urxe_qp *qp);

/* The request that has a packet to be sent again, at req.resend.psn; NULL: none has. */
const struct send_wqe *retry_next(struct urxe_qp *qp);
/* It was, and took that many PSNs. */
void retry_packet_resent(struct urxe_qp *qp, uint32_t span);
/* Any request packet was sent. */
void retry_packet_sent(struct urxe_qp *qp);

/*
 * Functions that return bool after a loss return false when no retry is left: the caller then ends
 * the oldest request with URXE_WC_RETRY_EXC_ERR.
 */

/* Whether a NAK of req.una is a copy: it was not sent again since the last, or just now. */
bool retry_is_copy(const struct urxe_qp *qp);
/* A sequence NAK: the peer lacks req.una. */
bool retry_sequence_nak(struct urxe_qp *qp);
/* An RNR NAK: from req.una on, after the time it names. */
void retry_rnr_nak(struct urxe_qp *qp, uint64_t wait_ns);
/* A later response shows that those of READs or atomics are missing. */
bool retry_missing(struct urxe_qp *qp);
/* An ACK came, after retry_progress. */
void retry_acked(struct urxe_qp *qp);
/* A response moved req.una. */
void retry_progress(struct urxe_qp *qp);

/* The QP's timer has fallen due. */
bool retry_timer(struct urxe_qp *qp);
/* Restarts or stops the QP's timer, as something is outstanding or not. */
void retry_restart_timer(struct urxe_qp *qp);

#endif
