/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * urxe_post_send: from the send request of verbs to an entry of the send queue. verbs/ calls it
 * for each request that it has copied from the program's ring.
 */
#include <errno.h>
#include <string.h>

#include "memory/sg_list.h"
#include "objects/completion.h"
#include "objects/device.h"
#include "objects/pkey.h"
#include "objects/qp.h"
#include "objects/sq.h"
#include "requester/copy_request.h"

static const struct wr_info *find_wr_info(uint32_t opcode)
{
	static const struct wr_info invalid = {.kind = WR_INVALID};

	return opcode < SQ_WR_OPCODES ? &sq_wr_infos[opcode] : &invalid;
}

static uint64_t wr_length(const struct urxe_send_wr *wr)
{
	if (wr->flags & URXE_SEND_INLINE)
		return wr->inline_len;
	return sge_length(wr->segs, wr->n_segs);
}

static bool is_valid_for_gsi(const struct urxe_qp *qp, const struct urxe_send_wr *wr)
{
	return qp->qpn != URXE_QPN_GSI ||
	       (wr->pkey_index < URXE_MAX_PKEYS && pkey_valid(qp->dev->pkeys[wr->pkey_index]));
}

static bool is_valid_flush(const struct urxe_flush *flush)
{
	const uint8_t all = URXE_FLUSH_GLOBAL | URXE_FLUSH_PERSISTENT;

	return flush->placement && !(flush->placement & ~all) &&
	       flush->selectivity <= URXE_FLUSH_KEY && flush->length <= URXE_MAX_MSG;
}

/* Whether the number of segments, or the length of inline data, is within the QP's limits. Some
 * requests cannot have inline data. */
static bool is_valid_data(const struct urxe_qp *qp, const struct urxe_send_wr *wr,
			  enum wr_kind kind)
{
	if (wr->flags & URXE_SEND_INLINE) {
		if (kind != WR_SEND && kind != WR_WRITE && kind != WR_ATOMIC_WRITE)
			return false;
		return !wr->n_segs && wr->inline_len <= qp->cap.max_inline;
	}
	return wr->n_segs <= qp->sq.max_sge;
}

static int check_length(const struct urxe_qp *qp, uint64_t length, enum wr_kind kind)
{
	switch (kind) {
	/* The atomic's original value goes to the first 8 bytes of the segments, as in Linux. */
	case WR_ATOMIC: return length >= sizeof(uint64_t) ? 0 : -EINVAL;
	case WR_ATOMIC_WRITE: return length == sizeof(uint64_t) ? 0 : -EINVAL;
	case WR_LOCAL:
	case WR_FLUSH: return length ? -EINVAL : 0;
	default:
		return length <= (qp->type == URXE_QPT_UD ? qp->mtu : URXE_MAX_MSG) ? 0 : -EMSGSIZE;
	}
}

static int check_wr(const struct urxe_qp *qp, const struct urxe_send_wr *wr)
{
	const struct wr_info *info = find_wr_info(wr->opcode);

	if (!(info->types & 1 << qp->type) || !is_valid_data(qp, wr, info->kind))
		return -EINVAL;
	if (wr_is_rd_atomic(info->kind) && !qp->attr.max_rd_atomic)
		return -EINVAL;
	if (wr->opcode == URXE_WR_REG_MR && !qp->dev->attr.ops->page_list)
		return -EINVAL;
	if (info->kind == WR_FLUSH && !is_valid_flush(&wr->flush))
		return -EINVAL;
	if (qp->type == URXE_QPT_UD && !(wr->path && is_valid_for_gsi(qp, wr)))
		return -EINVAL;
	return check_length(qp, wr_length(wr), info->kind);
}

static bool is_posting_state(const struct urxe_qp *qp)
{
	return qp->attr.state >= URXE_QPS_RTS;
}

/* Sets the members of UD, atomic, FLUSH, BIND_MW and REG_MR requests. Other requests do not use
 * them, and they keep old values. */
static void fill_variant(struct send_wqe *wqe, const struct urxe_qp *qp,
			 const struct urxe_send_wr *wr)
{
	if (qp->type == URXE_QPT_UD) {
		wqe->path = *wr->path;
		wqe->remote_qpn = wr->remote_qpn & URXE_QPN_MASK;
		wqe->remote_qkey = wr->remote_qkey;
		wqe->pkey_index = wr->pkey_index;
	} else if (wqe->kind == WR_ATOMIC) {
		wqe->compare_add = wr->compare_add;
		wqe->swap = wr->swap;
	} else if (wqe->kind == WR_FLUSH) {
		wqe->flush = wr->flush;
	} else if (wr->opcode == URXE_WR_BIND_MW) {
		wqe->bind = wr->bind;
	} else if (wr->opcode == URXE_WR_REG_MR) {
		wqe->fast_reg = wr->fast_reg;
	}
}

/* Sets the members that the request uses, one by one: the compiler would clear a structure that is
 * assigned as a whole. */
static void fill_wqe(struct send_wqe *wqe, const struct urxe_qp *qp, const struct urxe_send_wr *wr)
{
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->flags;
	wqe->kind = sq_wr_infos[wr->opcode].kind;
	wqe->again = wqe->executed = false;
	wqe->n_segs = wr->n_segs;
	wqe->length = wqe->kind == WR_ATOMIC ? sizeof(uint64_t) : (uint32_t)wr_length(wr);
	wqe->n_packets = wqe->kind == WR_LOCAL ? 0 : qp_packets(qp, wqe->length);
	wqe->first_psn = 0;
	wqe->recv_seq = qp->req.recv_seq + wr_takes_receive(wr->opcode);
	wqe->imm = wr->imm;
	wqe->invalidate_key = wr->invalidate_key;
	wqe->rkey = wr->rkey;
	wqe->remote_addr = wr->remote_addr;
	fill_variant(wqe, qp, wr);
	if (wr->flags & URXE_SEND_INLINE) {
		/* A request without data may have no address. */
		if (wr->inline_len)
			memcpy(wqe->data, wr->inline_data, wr->inline_len);
	} else if (wr->n_segs) {
		memcpy(wqe->data, wr->segs, wr->n_segs * sizeof(*wr->segs));
	}
}

/* Whether the program has seen the completions of all earlier requests. */
static bool has_seen_all(const struct urxe_qp *qp, const struct urxe_send_wr *next)
{
	const struct sq *sq = &qp->sq;

	return !next->cqes_unpolled && sq->tail == sq->head &&
	       (qp->sq_sig_all || sq_wqe(sq, sq->head - 1)->flags & URXE_SEND_SIGNALED);
}

static bool is_full(const struct sq *sq)
{
	return sq->head - sq->tail >= sq->max_wr;
}

/* Appends the entry at sq->head, which the caller has filled in, to the queue. */
static void enqueue_wqe(struct urxe_qp *qp, struct send_wqe *wqe)
{
	struct sq *sq = &qp->sq;

	if (sq->cur == sq->head)
		wqe->first_psn = qp->req.psn;
	sq->head++;
	if (qp->attr.state == URXE_QPS_ERR || qp->attr.state == URXE_QPS_SQE)
		flush_sends(qp);
	else
		qp_schedule(qp);
}

int urxe_post_send(struct urxe_qp *qp, const struct urxe_send_wr *wr)
{
	struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.head);
	int rc = is_posting_state(qp) ? check_wr(qp, wr) : -EINVAL;

	RECORD_ENTRY(qp->dev, POST_SEND, .qpn = qp->qpn, .send = *wr);
	if (rc)
		return rc;
	if (is_full(&qp->sq))
		return -ENOMEM;
	copy_note_post(qp, has_seen_all(qp, wr));
	fill_wqe(wqe, qp, wr);
	qp->req.recv_seq = wqe->recv_seq;
	enqueue_wqe(qp, wqe);
	return 0;
}

int urxe_post_malformed(struct urxe_qp *qp, uint64_t wr_id, enum urxe_wc_status status)
{
	struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.head);

	RECORD_ENTRY(qp->dev, POST_MALFORMED, .qpn = qp->qpn, .context = wr_id, .value = status);
	if (!is_posting_state(qp))
		return -EINVAL;
	if (is_full(&qp->sq))
		return -ENOMEM;
	*wqe = (struct send_wqe){
		.wr_id = wr_id,
		.opcode = URXE_WR_SEND,
		.flags = URXE_SEND_SIGNALED,
		.kind = WR_MALFORMED,
		.recv_seq = qp->req.recv_seq,
		.error = (uint8_t)status,
	};
	enqueue_wqe(qp, wqe);
	return 0;
}

uint32_t urxe_sq_retired(struct urxe_qp *qp)
{
	qp->sq.send_retired_called = false;
	return qp->sq.tail;
}
