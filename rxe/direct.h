/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Both ends of the direct transport: what this device publishes, and the requester that
 * goes by what another one has published.
 */
#ifndef URXE_DIRECT_H
#define URXE_DIRECT_H

#include <stdbool.h>

#include <rxe/direct.h>

#include "dev.h"
#include "mr.h"
#include "mw.h"
#include "qp.h"

/* --- Publishing; nothing where the device has no table. */

void direct_grant_mr(const struct urxe_mr *mr);
void direct_grant_mw(const struct urxe_mw *mw);
/* All keys that lead to the region. */
void direct_grant_all(const struct urxe_mr *mr);
/* The key grants nothing any more. Returns once nobody acts by it. */
void direct_withdraw(struct urxe_dev *dev, uint32_t key);
/* The same for all keys that lead to the region. */
void direct_withdraw_all(const struct urxe_mr *mr);
/* The QP has changed, or goes away. */
void direct_qp_changed(const struct urxe_qp *qp);
void direct_qp_gone(const struct urxe_qp *qp);

/* --- Requester. */

/*
 * Whether connection and peer were shown to be in step: the peer has acknowledged a packet
 * since the connection, its path and the device's tables of addresses are what they are.
 */
static inline bool direct_proven(const struct urxe_qp *qp)
{
	return qp->req.direct.proof && qp->req.direct.proof == qp->dev->direct_era;
}

/* A table has changed by which packets are let in: they are to show once more that they are. */
static inline void direct_doubt(struct urxe_dev *dev)
{
	if (dev->direct_era && !++dev->direct_era)
		dev->direct_era = 1;
}

/* An acknowledgement came. */
static inline void direct_prove(struct urxe_qp *qp)
{
	if (!direct_proven(qp))
		qp->req.direct = (struct direct_proof){.proof = qp->dev->direct_era};
}

/* What becomes of the request at `cur`. */
enum direct_turn {
	DIRECT_PACKETS, /* it goes in packets */
	DIRECT_WAIT,    /* its turn comes when what is outstanding is acknowledged */
	DIRECT_DONE,    /* it is executed and completed */
};
enum direct_turn direct_proven_request(struct urxe_qp *qp, const struct send_wqe *wqe);

static inline enum direct_turn direct_request(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return direct_proven(qp) ? direct_proven_request(qp, wqe) : DIRECT_PACKETS;
}

/* Whether a request of that kind may wait for the acknowledgement of what is before it. */
static inline bool direct_may_wait(const struct urxe_qp *qp, enum wr_kind kind)
{
	return kind == WR_WRITE && direct_proven(qp) && qp->req.direct.chance != DIRECT_FAILS;
}

#endif
