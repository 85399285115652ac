/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "direct/direct.h"

#include <assert.h>

#include <rxe/rxe.h>

#include "objects/completion.h"
#include "objects/direct_table.h"
#include "objects/mr.h"
#include "objects/qp_counters.h"
#include "objects/sg_list.h"

/* Bytes of a request that takes longer in packets than a round trip to a busy peer. */
#define WORTH_WAITING 16384
/*
 * A program that has posted so many requests without having seen the end of all before them
 * streams. One that waits for each, be it by spinning on its memory, must not meet a peer that is
 * asleep, or has just lost its core.
 */
#define STREAM 16
/*
 * Bytes that are copied together: of short requests that were posted together the system call would
 * take most of the time. That of so many is their bytes' own.
 */
#define TOGETHER (256 * 1024)
/* Requests in packets, after which the peer is asked again whether it is awake. */
#define LOOK_EVERY 16

static_assert(URXE_DIRECT_EXTENTS >= URXE_MAX_SGE, "any request fits into a copy");

/* The QP's header template names the peer: of the path only that is in the caches. */
static const struct urxe_direct_table *peer_table(const struct urxe_qp *qp)
{
	const struct urxe_dev *dev = qp->dev;

	return dev->attr.direct->table(dev->attr.ctx, qp->header.bytes, qp->attr.dest_qpn);
}

/* What a request does to the peer's memory: a right there. 0: it goes in packets. */
static uint32_t wanted_access(const struct send_wqe *wqe)
{
	switch (wqe->opcode) {
	case URXE_WR_RDMA_WRITE: return URXE_ACCESS_REMOTE_WRITE;
	case URXE_WR_RDMA_READ: return URXE_ACCESS_REMOTE_READ;
	default: return 0;
	}
}

/* What has no byte names no memory either. */
static bool is_candidate(const struct send_wqe *wqe)
{
	return wanted_access(wqe) && wqe->length && wqe->length <= URXE_DIRECT_MAX;
}

/* False: not all of the memory that the request names is ours, or in one piece. */
static bool find_local(const struct urxe_qp *qp, const struct send_wqe *wqe,
		       struct urxe_extent *extents, uint32_t *n)
{
	const struct urxe_seg *segs = (const struct urxe_seg *)wqe->data;

	*n = 0;
	if (wqe->flags & URXE_SEND_INLINE) {
		extents[(*n)++] = (struct urxe_extent){(void *)wqe->data, wqe->length};
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

		if (!range.length)
			continue;
		extents[*n].length = range.length;
		extents[*n].addr = mr_address(qp->dev, &range);
		if (!extents[(*n)++].addr)
			return false;
	}
	return true;
}

/* As the peer's engine would check it (IBA 10.6.3, 9.7.4.1.5). */
static bool grants(const struct urxe_direct_grant *grant, const struct urxe_direct_qp *peer,
		   const struct send_wqe *wqe, uint64_t *addr)
{
	uint64_t offset;

	if (grant->key != wqe->rkey || grant->pd != peer->pd ||
	    (grant->qpn && grant->qpn != peer->qpn) || wanted_access(wqe) & ~grant->access)
		return false;
	if (!mr_within(grant->start, grant->length, wqe->remote_addr, wqe->length, &offset))
		return false;
	*addr = grant->addr + offset;
	return true;
}

/* Whether the peer's QP is still the one that has acknowledged packets. */
static bool is_same(struct urxe_qp *qp, const struct urxe_direct_qp *peer)
{
	struct direct_proof *proof = &qp->req.direct;

	if (!proof->version)
		proof->version = peer->version;
	if (proof->version == peer->version)
		return true;
	*proof = (struct direct_proof){0};
	return false;
}

/* What the peer tells of its end of the connection; false: nothing that holds. */
static bool find_peer(struct urxe_qp *qp, struct urxe_direct_table *peers,
		      struct urxe_direct_qp *peer)
{
	const struct urxe_direct_qp *place = direct_qp_place(peers, qp->attr.dest_qpn);

	if (!place)
		return false;
	return direct_read_entry(place, peer, sizeof(*peer)) && peer->qpn == qp->attr.dest_qpn &&
	       peer->dest_qpn == qp->qpn && is_same(qp, peer);
}

/* False: the peer would refuse it, or its tables are being changed. */
static bool look_up(struct urxe_qp *qp, const struct urxe_direct_table *table,
		    const struct send_wqe *wqe, uint64_t *addr)
{
	struct urxe_direct_table *peers = (struct urxe_direct_table *)table;
	struct urxe_direct_grant grant;
	struct urxe_direct_qp peer;

	if (!find_peer(qp, peers, &peer))
		return false;
	if (wanted_access(wqe) & ~peer.access || (wqe->kind == WR_READ && !peer.rd_atomic))
		return false;
	return direct_read_entry(direct_grant_place(peers, wqe->rkey), &grant, sizeof(grant)) &&
	       grants(&grant, &peer, wqe, addr);
}

/* Requests from the oldest on, that are executed together. */
struct together {
	struct urxe_direct_part parts[URXE_DIRECT_PARTS];
	struct urxe_extent extents[URXE_DIRECT_EXTENTS];
	uint32_t n_parts, n_extents;
	uint64_t length;
};

/* Whether the request may be one more of them; else it has its own turn. */
static bool has_room(const struct together *all, const struct send_wqe *wqe)
{
	const uint32_t n = wqe->flags & URXE_SEND_INLINE ? 1 : wqe->n_segs;

	return !all->n_parts ||
	       (all->n_parts < URXE_DIRECT_PARTS && n <= URXE_DIRECT_EXTENTS - all->n_extents &&
		all->length + wqe->length <= TOGETHER);
}

/* False: it is none that is executed so, or not in the way of those before it. */
static bool take(struct urxe_qp *qp, const struct urxe_direct_table *table,
		 const struct send_wqe *wqe, struct together *all)
{
	struct urxe_direct_part *part = &all->parts[all->n_parts];
	struct urxe_extent *local = &all->extents[all->n_extents];

	if (!look_up(qp, table, wqe, &part->remote) || !find_local(qp, wqe, local, &part->n_local))
		return false;
	part->local = local;
	all->n_parts++;
	all->n_extents += part->n_local;
	all->length += wqe->length;
	return true;
}

/* Those from `cur` on. */
static void gather(struct urxe_qp *qp, const struct urxe_direct_table *table, struct together *all)
{
	const struct sq *sq = &qp->sq;
	const struct send_wqe *first = sq_wqe(sq, sq->cur);

	all->n_parts = all->n_extents = 0;
	all->length = 0;
	for (uint32_t at = sq->cur; at != sq->head; at++) {
		const struct send_wqe *wqe = sq_wqe(sq, at);

		if (wqe->opcode != first->opcode || !is_candidate(wqe) || !has_room(all, wqe) ||
		    !take(qp, table, wqe, all))
			break;
	}
}

static void count(struct urxe_qp *qp)
{
	qp_count(qp, URXE_EVENT_DIRECT_REQUESTS);
	qp_count_bytes(qp, URXE_EVENT_DIRECT_BYTES, sq_wqe(&qp->sq, qp->sq.tail)->length);
}

/* An overflow of their CQ ends them all. */
static void complete(struct urxe_qp *qp, uint32_t n)
{
	for (; n && qp->sq.tail != qp->sq.head; n--) {
		count(qp);
		complete_send(qp, URXE_WC_SUCCESS);
	}
}

static bool is_awake(const struct urxe_qp *qp)
{
	return qp->dev->attr.direct->awake(qp->dev->attr.ctx, qp->dev->now);
}

/* Returns the number of requests, from `cur` on, that were executed. */
static uint32_t copy(struct urxe_qp *qp, const struct urxe_direct_table *table,
		     const struct send_wqe *wqe)
{
	struct direct_proof *proof = &qp->req.direct;
	struct together all;
	struct urxe_direct_copy job = {
		.state = __atomic_load_n(&table->state.word, __ATOMIC_ACQUIRE),
		.parts = all.parts,
		.write = wqe->kind == WR_WRITE,
	};

	gather(qp, table, &all);
	job.n_parts = all.n_parts;
	proof->in_packets = proof->unseen >= STREAM && direct_fits_packet(wqe) && is_awake(qp);
	if (!job.n_parts || proof->in_packets)
		return 0;
	return qp->dev->attr.direct->copy(qp->dev->attr.ctx, &job);
}

/* The request at `cur`, and what may go with it. False: it goes in packets. */
static bool execute(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct urxe_direct_table *table;
	struct direct_proof *proof = &qp->req.direct;
	uint32_t done;

	proof->in_packets = false;
	proof->chance = DIRECT_FAILS;
	table = peer_table(qp);
	if (!table)
		return false;
	done = copy(qp, table, wqe);
	if (!done && !proof->in_packets) {
		qp_count(qp, URXE_EVENT_DIRECT_DECLINED);
		return false;
	}
	proof->chance = DIRECT_WORKS;
	complete(qp, done);
	return done;
}

/* What is before it was sent in packets: a long request is worth the round trip that it costs to
 * wait for them; so is any where nothing needs the peer's program, for then all behind it is. */
static bool worth_waiting(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return wqe->length >= WORTH_WAITING || wqe->recv_seq == qp->req.credit.done;
}

/* Nobody waits at a connection whose peer is out of reach, as on another host. */
static bool may_work(struct urxe_qp *qp)
{
	struct direct_proof *proof = &qp->req.direct;

	if (proof->chance != DIRECT_UNTRIED)
		return proof->chance == DIRECT_WORKS;
	if (peer_table(qp))
		return true;
	proof->chance = DIRECT_FAILS;
	return false;
}

/*
 * The request follows others in packets. Where the peer sleeps by now it is the last that does, and
 * asks for an acknowledgement: the rest waits for that.
 */
static void follow_in_packets(struct urxe_qp *qp)
{
	struct direct_proof *proof = &qp->req.direct;

	if (++proof->looks % LOOK_EVERY)
		return;
	proof->in_packets = peer_table(qp) && is_awake(qp);
}

enum direct_turn direct_proven_request(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct requester *req = &qp->req;

	/* What is paced is so for the wire. */
	if (!is_candidate(wqe) || qp->paced || wqe->first_psn != req->psn)
		return DIRECT_PACKETS;
	if (req->una == req->psn && qp->sq.tail == qp->sq.cur)
		return execute(qp, wqe) ? DIRECT_DONE : DIRECT_PACKETS;
	if (direct_in_packets(qp, wqe)) {
		follow_in_packets(qp);
		return DIRECT_PACKETS;
	}
	return worth_waiting(qp, wqe) && may_work(qp) ? DIRECT_WAIT : DIRECT_PACKETS;
}

bool urxe_qp_direct(const struct urxe_qp *qp)
{
	return direct_proven(qp) && !qp->paced;
}
