/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requester/copy_request.h"

#include <stdatomic.h>

#include <rxe/rxe.h>

#include "memory/mr.h"
#include "objects/completion.h"
#include "objects/copy_table.h"
#include "objects/qp_counters.h"

/* A request of so many bytes takes longer in packets than a round trip to a busy peer. */
#define COPY_WAIT_BYTES 16384
/*
 * A program streams if it has posted so many consecutive requests without waiting for the earlier
 * ones. The short requests of such a program may go in packets. Those of other programs are copied,
 * because packets would wait for a peer's thread that sleeps or has just lost its core.
 */
#define STREAM_REQUESTS 16
/* Requests of up to this total, bytes, are copied in one call. For short requests the system call
 * takes most of the time; from this total on, its time does not matter. */
#define COPY_BATCH_BYTES (256 * 1024)
/* After so many requests in packets the requester calls urxe_copy_ops.polls_or_wake again. */
#define RECHECK_REQUESTS 16

/* The copy table of the peer's device; NULL: the device is not reachable now. The MAC comes from
 * the header template, which is in the cache, unlike the path. */
static const struct urxe_copy_table *peer_table(const struct urxe_qp *qp)
{
	const struct urxe_dev *dev = qp->dev;

	return dev->attr.copy_ops->table(dev->attr.copy_ctx, qp->header.bytes, qp->attr.dest_qpn);
}

/* The right (enum urxe_access) that the request needs at the peer. 0: it goes in packets. */
static uint32_t wanted_access(const struct send_wqe *wqe)
{
	switch (wqe->opcode) {
	case URXE_WR_RDMA_WRITE: return URXE_ACCESS_REMOTE_WRITE;
	case URXE_WR_RDMA_READ: return URXE_ACCESS_REMOTE_READ;
	default: return 0;
	}
}

/* Whether the copy transport may execute the request: a WRITE or READ of 1 to URXE_COPY_MAX bytes.
 * A request without bytes names no memory, so it goes in packets. */
static bool is_candidate(const struct send_wqe *wqe)
{
	return wanted_access(wqe) && wqe->length && wqe->length <= URXE_COPY_MAX;
}

/* Appends the request's extents in this process to those of the copy. False: a segment's key does
 * not permit the access, memory is unmapped, or the extents are too many. */
static bool find_local(const struct urxe_qp *qp, const struct send_wqe *wqe, struct copy_batch *all)
{
	const struct urxe_seg *segs = (const struct urxe_seg *)wqe->data;

	if (wqe->flags & URXE_SEND_INLINE) {
		if (all->n_local == URXE_COPY_EXTENTS)
			return false;
		all->local[all->n_local++] = (struct urxe_extent){(void *)wqe->data, wqe->length};
		return true;
	}
	for (uint32_t i = 0; i < wqe->n_segs; i++) {
		const struct mr_range range = {
			.pd = qp->pd,
			.key = segs[i].lkey,
			.addr = segs[i].addr,
			.length = segs[i].length,
			.access = wqe_is_rd_atomic(wqe) ? URXE_ACCESS_LOCAL_WRITE : 0,
		};

		if (range.length &&
		    !mr_list_extents(qp->dev, &range, all->local, URXE_COPY_EXTENTS, &all->n_local))
			return false;
	}
	return true;
}

/* Makes the checks of the peer's engine (IBA 10.6.3, 9.7.4.1.5). True: the grant permits the
 * request, whose first byte is at *offset in the region. */
static bool grant_allows(const struct urxe_copy_grant *grant, const struct urxe_copy_qp *peer,
			 const struct send_wqe *wqe, uint64_t *offset)
{
	if (grant->key != wqe->rkey || grant->pd != peer->pd ||
	    (grant->qpn && grant->qpn != peer->qpn) || wanted_access(wqe) & ~grant->access)
		return false;
	return mr_within(grant->start, grant->length, wqe->remote_addr, wqe->length, offset);
}

/*
 * The index of the last piece that begins at the offset or before. The peer may change the list
 * meanwhile, so this function reads each entry once. A wrong piece harms only the peer: it is
 * memory of the peer's process.
 */
static uint32_t find_piece(const struct urxe_copy_piece *pieces, uint32_t n, uint64_t offset)
{
	uint32_t from = 0;

	while (n > 1) {
		uint32_t half = n / 2;

		if (__atomic_load_n(&pieces[from + half].offset, __ATOMIC_RELAXED) <= offset)
			from += half;
		n -= half;
	}
	return from;
}

static struct urxe_copy_piece read_piece(const struct urxe_copy_piece *piece)
{
	return (struct urxe_copy_piece){
		.offset = __atomic_load_n(&piece->offset, __ATOMIC_RELAXED),
		.addr = __atomic_load_n(&piece->addr, __ATOMIC_RELAXED),
	};
}

/* Appends the extents of `length` bytes, from `offset` in the region on, to all->remote. False: too
 * many pieces, a piece that is not mapped, or a wrong list. */
static bool list_pieces(const struct urxe_copy_table *table, const struct urxe_copy_grant *grant,
			uint64_t offset, uint64_t length, struct copy_batch *all)
{
	const struct urxe_copy_piece *pieces = &table->pieces[grant->pieces];
	uint32_t at = find_piece(pieces, grant->n_pieces, offset);
	struct urxe_copy_piece piece = read_piece(&pieces[at]), next;

	for (; length; piece = next) {
		uint64_t n;

		next = ++at < grant->n_pieces ? read_piece(&pieces[at])
					      : (struct urxe_copy_piece){.offset = grant->length};
		if (!piece.addr || offset < piece.offset || offset >= next.offset ||
		    all->n_remote == URXE_COPY_EXTENTS)
			return false;
		n = next.offset - offset < length ? next.offset - offset : length;
		all->remote[all->n_remote++] =
			(struct urxe_remote_extent){piece.addr + (offset - piece.offset), n};
		offset += n;
		length -= n;
	}
	/* Orders these reads of pieces before urxe_copy_ops.copy reads the epoch again. */
	atomic_thread_fence(memory_order_acquire);
	return true;
}

/* Appends the request's extents in the peer's process to those of the copy. False: no room, a piece
 * that is not mapped, or a list of pieces that is not valid. */
static bool list_remote(const struct urxe_copy_table *table, const struct urxe_copy_grant *grant,
			uint64_t offset, uint64_t length, struct copy_batch *all)
{
	if (grant->n_pieces != 1)
		return grant->n_pieces && grant->n_pieces <= URXE_COPY_GRANT_PIECES &&
		       grant->pieces <= URXE_COPY_PIECES - grant->n_pieces &&
		       list_pieces(table, grant, offset, length, all);
	if (all->n_remote == URXE_COPY_EXTENTS)
		return false;
	all->remote[all->n_remote++] = (struct urxe_remote_extent){grant->addr + offset, length};
	return true;
}

/* Reads the peer's QP from its table; false: the QP is not there, or not connected to this one. */
static bool read_peer(const struct urxe_qp *qp, const struct urxe_copy_table *table,
		      struct urxe_copy_qp *peer)
{
	const struct urxe_copy_qp *place =
		copy_table_qp((struct urxe_copy_table *)table, qp->attr.dest_qpn);

	return place && copy_table_read_entry(place, peer, sizeof(*peer)) &&
	       peer->qpn == qp->attr.dest_qpn && peer->dest_qpn == qp->qpn;
}

void copy_prove_connection(struct urxe_qp *qp)
{
	const struct urxe_copy_table *table = peer_table(qp);
	struct urxe_copy_qp peer;

	qp->req.copy = (struct copy_proof){.proof = qp->dev->copy_generation};
	if (table && read_peer(qp, table, &peer))
		qp->req.copy.version = peer.version;
}

/* Whether the peer's QP is still the QP that has acknowledged packets. If not, or if the peer's
 * table was not readable then, the next acknowledgement is a new proof. */
static bool is_same_peer_qp(struct urxe_qp *qp, const struct urxe_copy_qp *peer)
{
	struct copy_proof *proof = &qp->req.copy;

	if (proof->version == peer->version)
		return true;
	*proof = (struct copy_proof){0};
	return false;
}

/*
 * Appends the request's extents in the peer's process to those of the copy. False: the peer would
 * refuse the request, or is changing its table.
 */
static bool find_remote(struct urxe_qp *qp, const struct urxe_copy_table *table,
			const struct send_wqe *wqe, struct copy_batch *all)
{
	struct urxe_copy_table *peers = (struct urxe_copy_table *)table;
	struct urxe_copy_grant grant;
	struct urxe_copy_qp peer;
	uint64_t offset;

	if (!read_peer(qp, table, &peer) || !is_same_peer_qp(qp, &peer))
		return false;
	if (wanted_access(wqe) & ~peer.access || (wqe->kind == WR_READ && !peer.rd_atomic))
		return false;
	return copy_table_read_entry(copy_table_grant(peers, wqe->rkey), &grant, sizeof(grant)) &&
	       grant_allows(&grant, &peer, wqe, &offset) &&
	       list_remote(table, &grant, offset, wqe->length, all);
}

/* Whether the request may be copied with the others. */
static bool has_room_for(const struct copy_batch *all, const struct send_wqe *wqe)
{
	return !all->n_parts ||
	       (all->n_parts < URXE_COPY_PARTS && all->length + wqe->length <= COPY_BATCH_BYTES);
}

/* Adds the request to those that are copied together. False: it cannot be copied with them. */
static bool add_part(struct urxe_qp *qp, const struct urxe_copy_table *table,
		     const struct send_wqe *wqe, struct copy_batch *all)
{
	const uint32_t n_remote = all->n_remote, n_local = all->n_local;

	if (!find_remote(qp, table, wqe, all) || !find_local(qp, wqe, all))
		return false;
	all->parts[all->n_parts++] = (struct urxe_copy_part){
		.remote = &all->remote[n_remote],
		.n_remote = all->n_remote - n_remote,
		.local = &all->local[n_local],
		.n_local = all->n_local - n_local,
	};
	all->length += wqe->length;
	return true;
}

/* Collects the requests from `cur` on that are copied together: of one opcode, up to the first that
 * cannot be added. */
static void gather_parts(struct urxe_qp *qp, const struct urxe_copy_table *table,
			 struct copy_batch *all)
{
	const struct sq *sq = &qp->sq;
	const struct send_wqe *first = sq_wqe(sq, sq->cur);

	all->n_parts = all->n_local = all->n_remote = 0;
	all->length = 0;
	for (uint32_t at = sq->cur; at != sq->head; at++) {
		const struct send_wqe *wqe = sq_wqe(sq, at);

		if (wqe->opcode != first->opcode || !is_candidate(wqe) || !has_room_for(all, wqe) ||
		    !add_part(qp, table, wqe, all))
			break;
	}
}

static void count_request(struct urxe_qp *qp)
{
	qp_count(qp, URXE_EVENT_COPY_REQUESTS);
	qp_count_bytes(qp, URXE_EVENT_COPY_BYTES, sq_wqe(&qp->sq, qp->sq.tail)->length);
}

/* Completes the n oldest requests, which were copied. A CQ overrun fails the QP and empties its
 * send queue: then the loop ends early. */
static void complete_requests(struct urxe_qp *qp, uint32_t n)
{
	for (; n && qp->sq.tail != qp->sq.head; n--) {
		count_request(qp);
		complete_send(qp, URXE_WC_SUCCESS);
	}
}

/* Whether the peer's engine thread polls for packets. May wake it. */
static bool polls_or_wake(const struct urxe_qp *qp)
{
	return qp->dev->attr.copy_ops->polls_or_wake(qp->dev->attr.copy_ctx, qp->dev->now);
}

/* Copies requests from `cur` on together, and returns their number. 0: the request at `cur` goes in
 * packets; in_packets tells whether the reason is that the peer polls. */
static uint32_t copy_parts(struct urxe_qp *qp, const struct urxe_copy_table *table,
			   const struct send_wqe *wqe)
{
	struct copy_proof *proof = &qp->req.copy;
	struct copy_batch *all = &qp->dev->copy->batch;
	struct urxe_copy_job job = {
		.state = __atomic_load_n(&table->state.word, __ATOMIC_ACQUIRE),
		.parts = all->parts,
		.write = wqe->kind == WR_WRITE,
	};

	gather_parts(qp, table, all);
	job.n_parts = all->n_parts;
	proof->in_packets = proof->streamed >= STREAM_REQUESTS && copy_loses_to_packet(wqe) &&
			    polls_or_wake(qp);
	if (!job.n_parts || proof->in_packets)
		return 0;
	return qp->dev->attr.copy_ops->copy(qp->dev->attr.copy_ctx, &job);
}

/* Copies the request at `cur` and following ones. False: the request goes in packets. */
static bool execute_requests(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct urxe_copy_table *table;
	struct copy_proof *proof = &qp->req.copy;
	uint32_t done;

	proof->in_packets = false;
	proof->chance = COPY_FAILS;
	table = peer_table(qp);
	if (!table)
		return false;
	done = copy_parts(qp, table, wqe);
	if (!done && !proof->in_packets) {
		qp_count(qp, URXE_EVENT_COPY_DECLINED);
		return false;
	}
	proof->chance = COPY_WORKS;
	complete_requests(qp, done);
	return done;
}

/*
 * Whether the request should wait until the earlier requests, which went in packets, are
 * acknowledged. The wait, a round trip, pays off for a long request. It also pays off if no
 * outstanding request uses up a receive request of the peer: all following requests are then copied
 * too. The wait does not pay off if the newest packet has not asked for an acknowledgement, because
 * it was built before the connection was proven: only a probe would end the wait.
 */
static bool is_worth_waiting(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return qp->req.asks_ack &&
	       (wqe->length >= COPY_WAIT_BYTES || wqe->recv_seq == qp->req.credit.acked_seq);
}

/* Whether the copy transport may reach the peer. False: it cannot, as on another host. */
static bool may_reach_peer(struct urxe_qp *qp)
{
	struct copy_proof *proof = &qp->req.copy;

	if (proof->chance != COPY_UNTRIED)
		return proof->chance == COPY_WORKS;
	if (peer_table(qp))
		return true;
	proof->chance = COPY_FAILS;
	return false;
}

/* The request goes in a packet, as those before it. If the peer no longer polls, this is the last
 * request in packets: it asks for an acknowledgement, for which the next requests wait. */
static void follow_in_packets(struct urxe_qp *qp)
{
	struct copy_proof *proof = &qp->req.copy;

	if (++proof->packets % RECHECK_REQUESTS)
		return;
	proof->in_packets = peer_table(qp) && polls_or_wake(qp);
}

enum copy_result copy_try_proven(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct requester *req = &qp->req;

	/* A rate limit applies to packets only, so paced QPs use packets. */
	if (!is_candidate(wqe) || qp->paced || wqe->first_psn != req->psn)
		return COPY_USE_PACKETS;
	if (req->una == req->psn && qp->sq.tail == qp->sq.cur)
		return execute_requests(qp, wqe) ? COPY_DONE : COPY_USE_PACKETS;
	if (copy_is_postponed(qp, wqe)) {
		follow_in_packets(qp);
		return COPY_USE_PACKETS;
	}
	return is_worth_waiting(qp, wqe) && may_reach_peer(qp) ? COPY_WAIT : COPY_USE_PACKETS;
}

bool urxe_qp_tries_copy(const struct urxe_qp *qp)
{
	return copy_is_proven(qp) && !qp->paced;
}
