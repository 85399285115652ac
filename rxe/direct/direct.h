/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester's end of the direct transport (rxe/direct.h): it executes WRITEs and READs by the
 * rights that peers publish. objects/direct_table.h publishes the rights of this device.
 */
#ifndef URXE_DIRECT_H
#define URXE_DIRECT_H

#include <stdbool.h>

#include <rxe/direct.h>

#include "objects/device.h"
#include "objects/qp.h"

/*
 * Whether connection and peer were shown to be in step: the peer has acknowledged a packet
 * since the connection, its path and the device's tables of addresses are what they are.
 */
static inline bool direct_proven(const struct urxe_qp *qp)
{
	return qp->req.direct.proof && qp->req.direct.proof == qp->dev->direct_era;
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

/* A request is being posted. `all_seen`: its program knows that all before it is done. */
static inline void direct_posted(struct urxe_qp *qp, bool all_seen)
{
	struct direct_proof *proof = &qp->req.direct;

	if (all_seen)
		proof->unseen = 0;
	else if (proof->unseen < UINT8_MAX)
		proof->unseen++;
}

/*
 * Bytes that are hardly slower in a packet where the peer's engine gets a core only now and then:
 * of longer requests the requester copies more in the meantime.
 */
#define DIRECT_SHORT 2048

/* Whether a peer that is awake has it done sooner by a packet than the kernel copies it. */
static inline bool direct_fits_packet(const struct send_wqe *wqe)
{
	return wqe->n_packets == 1 && wqe->length <= DIRECT_SHORT;
}

/* Whether it goes in packets as long as the peer is awake. */
static inline bool direct_in_packets(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return qp->req.direct.in_packets && direct_fits_packet(wqe);
}

/* Whether the request may wait for the acknowledgement of what is before it. */
static inline bool direct_may_wait(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct direct_proof *proof = &qp->req.direct;

	return wqe->kind == WR_WRITE && direct_proven(qp) && proof->chance != DIRECT_FAILS &&
	       !direct_in_packets(qp, wqe);
}

#endif
