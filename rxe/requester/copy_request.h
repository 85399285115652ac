/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The requester's side of the copy transport (rxe/copy_transport.h): executes WRITEs and READs by
 * the rights that peers publish. objects/copy_table.h publishes the rights of this device. */
#ifndef URXE_REQUESTER_COPY_REQUEST_H
#define URXE_REQUESTER_COPY_REQUEST_H

#include <stdbool.h>

#include <rxe/copy_transport.h>

#include "objects/device.h"
#include "objects/qp.h"

#define COPY_UNITS (URXE_COPY_PIECES / URXE_COPY_UNIT)

/* Requests that are copied together, the oldest first. */
struct copy_batch {
	struct urxe_copy_part parts[URXE_COPY_PARTS];
	struct urxe_extent local[URXE_COPY_EXTENTS];
	struct urxe_remote_extent remote[URXE_COPY_EXTENTS];
	uint32_t n_parts, n_local, n_remote;
	uint64_t length;
};

/* The device's record of a chunk of its table (URXE_COPY_CHUNK). */
struct copy_chunk {
	uint32_t qpn_first; /* first QPN of the block that has the chunk, or had it last */
	uint32_t n_qps;     /* queue pairs that are published in the chunk */
};

/* What a device with a copy table (urxe_dev_attr.copy_table) has for the copy transport. */
struct copy_state {
	struct copy_batch batch;   /* the copy being prepared: too large for a program's stack */
	uint8_t taken[COPY_UNITS]; /* 1: a grant has this unit of the table's list of pieces */
	struct copy_chunk chunks[URXE_COPY_CHUNKS];
};

/*
 * Whether the peer has acknowledged a packet since the last change of the connection, its path, or
 * the device's addresses and partitions. Only then may requests bypass packets, because a copy
 * checks none of these.
 */
static inline bool copy_is_proven(const struct urxe_qp *qp)
{
	return qp->req.copy.proof && qp->req.copy.proof == qp->dev->copy_generation;
}

/* Makes copy_is_proven true until the next such change. For copy_prove. */
void copy_prove_connection(struct urxe_qp *qp);

/* The peer has acknowledged a packet: proves the connection, if the device uses the copy transport.
 */
static inline void copy_prove(struct urxe_qp *qp)
{
	if (qp->dev->copy_generation && !copy_is_proven(qp))
		copy_prove_connection(qp);
}

/* Results of copy_try for the request at `cur`. */
enum copy_result {
	COPY_USE_PACKETS, /* nothing is done: the request goes in packets */
	COPY_WAIT,        /* nothing is sent until all outstanding packets are acknowledged */
	COPY_DONE,        /* the request, and perhaps following ones, are executed and completed */
};
enum copy_result copy_try_proven(struct urxe_qp *qp, const struct send_wqe *wqe);

static inline enum copy_result copy_try(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return copy_is_proven(qp) ? copy_try_proven(qp, wqe) : COPY_USE_PACKETS;
}

/* Counts the requests posted since the program last had seen all completions; `all_seen`: it has
 * seen those of all requests before the one being posted. */
static inline void copy_note_post(struct urxe_qp *qp, bool all_seen)
{
	struct copy_proof *proof = &qp->req.copy;

	if (all_seen)
		proof->streamed = 0;
	else if (proof->streamed < UINT8_MAX)
		proof->streamed++;
}

/* Longest request, bytes, for which a packet is hardly slower than a copy, even if the peer's
 * engine rarely gets a core. The requester copies longer ones faster. */
#define COPY_SHORT 2048

/* Whether a packet to a polling peer is faster than a copy by the kernel. */
static inline bool copy_loses_to_packet(const struct send_wqe *wqe)
{
	return wqe->n_packets == 1 && wqe->length <= COPY_SHORT;
}

/* Whether the request goes in packets, as the outstanding ones before it, because the peer polls
 * and packets are faster. Only for a request that is not the only outstanding one. */
static inline bool copy_is_postponed(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return qp->req.copy.in_packets && copy_loses_to_packet(wqe);
}

/* Whether the requester may stop before the request (COPY_WAIT): then the packet before the request
 * has to ask for an acknowledgement. */
static inline bool copy_may_wait(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct copy_proof *proof = &qp->req.copy;

	return wqe->kind == WR_WRITE && copy_is_proven(qp) && proof->chance != COPY_FAILS &&
	       !copy_is_postponed(qp, wqe);
}

#endif
