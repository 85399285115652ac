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

#define DIRECT_UNITS (URXE_DIRECT_PIECES / URXE_DIRECT_UNIT)

/* Requests that are copied together, the oldest first. */
struct direct_copy {
	struct urxe_direct_part parts[URXE_DIRECT_PARTS];
	struct urxe_extent local[URXE_DIRECT_EXTENTS];
	struct urxe_direct_extent remote[URXE_DIRECT_EXTENTS];
	uint32_t n_parts, n_local, n_remote;
	uint64_t length;
};

/* What a device with a table has for the direct transport. */
struct direct {
	struct direct_copy copy;     /* the one being laid out: too large for a program's stack */
	uint8_t taken[DIRECT_UNITS]; /* units of the table's list of pieces, 1: by a grant */
};

/*
 * Whether the peer has acknowledged a packet since the last change of the connection, its path, and
 * the device's addresses and partitions. Only then may requests bypass packets, because the copy
 * checks none of these.
 */
static inline bool direct_proven(const struct urxe_qp *qp)
{
	return qp->req.direct.proof && qp->req.direct.proof == qp->dev->direct_era;
}

/* The peer has acknowledged a packet. */
static inline void direct_prove(struct urxe_qp *qp)
{
	if (!direct_proven(qp))
		qp->req.direct = (struct direct_proof){.proof = qp->dev->direct_era};
}

/* Results of direct_request for the request at `cur`. */
enum direct_turn {
	DIRECT_PACKETS, /* nothing: it goes in packets */
	DIRECT_WAIT,    /* the request waits until all outstanding packets are acknowledged */
	DIRECT_DONE,    /* it is executed and completed */
};
enum direct_turn direct_proven_request(struct urxe_qp *qp, const struct send_wqe *wqe);

static inline enum direct_turn direct_request(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return direct_proven(qp) ? direct_proven_request(qp, wqe) : DIRECT_PACKETS;
}

/* A request is being posted. `all_seen`: the program has seen the completions of all earlier ones.
 */
static inline void direct_posted(struct urxe_qp *qp, bool all_seen)
{
	struct direct_proof *proof = &qp->req.direct;

	if (all_seen)
		proof->unseen = 0;
	else if (proof->unseen < UINT8_MAX)
		proof->unseen++;
}

/*
 * Up to this length a packet is hardly slower than a copy, even if the peer's engine rarely gets a
 * core; bytes. Longer requests are faster copied by the requester.
 */
#define DIRECT_SHORT 2048

/* Whether a packet to a polling peer is faster than a copy by the kernel. */
static inline bool direct_fits_packet(const struct send_wqe *wqe)
{
	return wqe->n_packets == 1 && wqe->length <= DIRECT_SHORT;
}

/* Whether the request goes in packets as long as the peer polls. */
static inline bool direct_in_packets(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return qp->req.direct.in_packets && direct_fits_packet(wqe);
}

/* Whether the request may wait for the acknowledgement of earlier ones. */
static inline bool direct_may_wait(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct direct_proof *proof = &qp->req.direct;

	return wqe->kind == WR_WRITE && direct_proven(qp) && proof->chance != DIRECT_FAILS &&
	       !direct_in_packets(qp, wqe);
}

#endif
