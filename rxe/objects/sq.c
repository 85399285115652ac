/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/sq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/psn.h>

#include "direct/direct.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "requester/requester.h"
#include "util/ring.h"

struct wr_info {
	uint8_t kind; /* enum wr_kind */
	uint8_t wc;   /* enum urxe_wc_opcode */
	bool imm;
	uint8_t types; /* bit 1 << enum urxe_qp_type for each that may */
};

#define RC_ONLY (1 << URXE_QPT_RC)
#define RC_UC   (RC_ONLY | 1 << URXE_QPT_UC)
#define ALL     (RC_UC | 1 << URXE_QPT_UD)

static const struct wr_info wr_infos[] = {
	[URXE_WR_RDMA_WRITE] = {WR_WRITE, URXE_WC_RDMA_WRITE, false, RC_UC},
	[URXE_WR_RDMA_WRITE_IMM] = {WR_WRITE, URXE_WC_RDMA_WRITE, true, RC_UC},
	[URXE_WR_SEND] = {WR_SEND, URXE_WC_SEND, false, ALL},
	[URXE_WR_SEND_IMM] = {WR_SEND, URXE_WC_SEND, true, ALL},
	[URXE_WR_RDMA_READ] = {WR_READ, URXE_WC_RDMA_READ, false, RC_ONLY},
	[URXE_WR_COMPARE_SWAP] = {WR_ATOMIC, URXE_WC_COMPARE_SWAP, false, RC_ONLY},
	[URXE_WR_FETCH_ADD] = {WR_ATOMIC, URXE_WC_FETCH_ADD, false, RC_ONLY},
	[URXE_WR_LOCAL_INV] = {WR_LOCAL, URXE_WC_LOCAL_INV, false, RC_UC},
	[URXE_WR_BIND_MW] = {WR_LOCAL, URXE_WC_BIND_MW, false, RC_UC},
	[URXE_WR_SEND_INV] = {WR_SEND, URXE_WC_SEND, false, RC_ONLY},
	[URXE_WR_FLUSH] = {WR_FLUSH, URXE_WC_FLUSH, false, RC_ONLY},
	[URXE_WR_ATOMIC_WRITE] = {WR_ATOMIC_WRITE, URXE_WC_ATOMIC_WRITE, false, RC_ONLY},
};

static const struct wr_info *wr_info(uint32_t opcode)
{
	static const struct wr_info invalid = {.kind = WR_INVALID};

	return opcode < sizeof(wr_infos) / sizeof(wr_infos[0]) ? &wr_infos[opcode] : &invalid;
}

enum wr_kind wr_kind(uint32_t opcode)
{
	return wr_info(opcode)->kind;
}

bool wr_has_imm(uint32_t opcode)
{
	return wr_info(opcode)->imm;
}

enum urxe_wc_opcode wr_wc_opcode(uint32_t opcode)
{
	return wr_info(opcode)->wc;
}

static bool wr_is_rd_atomic(uint32_t opcode)
{
	enum wr_kind kind = wr_kind(opcode);

	return kind == WR_READ || kind == WR_ATOMIC || kind == WR_FLUSH || kind == WR_ATOMIC_WRITE;
}

bool wr_takes_receive(uint32_t opcode)
{
	return wr_kind(opcode) == WR_SEND || (wr_kind(opcode) == WR_WRITE && wr_has_imm(opcode));
}

int sq_init(struct sq *sq, const struct urxe_qp_cap *cap)
{
	uint32_t segs = cap->max_send_sge * (uint32_t)sizeof(struct urxe_seg);
	uint32_t room = segs > cap->max_inline ? segs : cap->max_inline;

	sq->max_wr = cap->max_send_wr;
	sq->max_sge = (uint16_t)cap->max_send_sge;
	sq->mask = ring_slots(cap->max_send_wr) - 1;
	sq->stride = (uint16_t)(sizeof(struct send_wqe) + ((room + 7u) & ~7u));
	sq->wqes = calloc(sq->mask + 1u, sq->stride);
	return sq->wqes ? 0 : -ENOMEM;
}

void sq_free(struct sq *sq)
{
	free(sq->wqes);
}

static uint64_t wr_length(const struct urxe_send_wr *wr)
{
	if (wr->flags & URXE_SEND_INLINE)
		return wr->inline_len;
	return sge_length(wr->segs, wr->n_segs);
}

static bool gsi_fits(const struct urxe_qp *qp, const struct urxe_send_wr *wr)
{
	return qp->qpn != URXE_QPN_GSI ||
	       (wr->pkey_index < URXE_MAX_PKEYS && pkey_valid(qp->dev->pkeys[wr->pkey_index]));
}

static bool flush_fits(const struct urxe_flush *flush)
{
	const uint8_t all = URXE_FLUSH_GLOBAL | URXE_FLUSH_PERSISTENT;

	return flush->placement && !(flush->placement & ~all) &&
	       flush->selectivity <= URXE_FLUSH_KEY && flush->length <= URXE_MAX_MSG;
}

/* What the request carries: segments, or inline data. */
static bool data_fits(const struct urxe_qp *qp, const struct urxe_send_wr *wr, enum wr_kind kind)
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
	case WR_ATOMIC:
	case WR_ATOMIC_WRITE: return length == sizeof(uint64_t) ? 0 : -EINVAL;
	case WR_LOCAL:
	case WR_FLUSH: return length ? -EINVAL : 0;
	default:
		return length <= (qp->type == URXE_QPT_UD ? qp->mtu : URXE_MAX_MSG) ? 0 : -EMSGSIZE;
	}
}

static int check_wr(const struct urxe_qp *qp, const struct urxe_send_wr *wr)
{
	const struct wr_info *info = wr_info(wr->opcode);

	if (!(info->types & 1 << qp->type) || !data_fits(qp, wr, info->kind))
		return -EINVAL;
	if (wr_is_rd_atomic(wr->opcode) && !qp->attr.max_rd_atomic)
		return -EINVAL;
	if (info->kind == WR_FLUSH && !flush_fits(&wr->flush))
		return -EINVAL;
	if (qp->type == URXE_QPT_UD && !(wr->path && gsi_fits(qp, wr)))
		return -EINVAL;
	return check_length(qp, wr_length(wr), info->kind);
}

static bool may_post(const struct urxe_qp *qp)
{
	return qp->attr.state >= URXE_QPS_RTS;
}

/* What only some requests have. */
static void fill_rest(struct send_wqe *wqe, const struct urxe_qp *qp, const struct urxe_send_wr *wr)
{
	if (qp->type == URXE_QPT_UD) {
		wqe->path = *wr->path;
		wqe->remote_qpn = wr->remote_qpn;
		wqe->remote_qkey = wr->remote_qkey;
		wqe->pkey_index = wr->pkey_index;
	} else if (wqe->kind == WR_ATOMIC) {
		wqe->compare_add = wr->compare_add;
		wqe->swap = wr->swap;
	} else if (wqe->kind == WR_FLUSH) {
		wqe->flush = wr->flush;
	} else if (wqe->kind == WR_LOCAL) {
		wqe->bind = wr->bind;
	}
}

/* Member by member: a structure that is assigned as a whole is cleared before, with its unions. */
static void fill(struct send_wqe *wqe, const struct urxe_qp *qp, const struct urxe_send_wr *wr)
{
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->flags;
	wqe->kind = wr_kind(wr->opcode);
	wqe->again = wqe->executed = false;
	wqe->n_segs = wr->n_segs;
	wqe->length = (uint32_t)wr_length(wr);
	wqe->n_packets = wqe->kind == WR_LOCAL ? 0 : qp_packets(qp, wqe->length);
	wqe->first_psn = 0;
	wqe->recv_seq = qp->req.recv_seq + wr_takes_receive(wr->opcode);
	wqe->imm = wr->imm;
	wqe->invalidate_key = wr->invalidate_key;
	wqe->rkey = wr->rkey;
	wqe->remote_addr = wr->remote_addr;
	fill_rest(wqe, qp, wr);
	if (wr->flags & URXE_SEND_INLINE)
		memcpy(wqe->data, wr->inline_data, wr->inline_len);
	else if (wr->n_segs)
		memcpy(wqe->data, wr->segs, wr->n_segs * sizeof(*wr->segs));
}

/* Whether the program knows that all before the next request is done. */
static bool all_seen(const struct urxe_qp *qp, const struct urxe_send_wr *next)
{
	const struct sq *sq = &qp->sq;

	return !next->unseen && sq->tail == sq->head &&
	       (qp->sq_sig_all || sq_wqe(sq, sq->head - 1)->flags & URXE_SEND_SIGNALED);
}

int urxe_post_send(struct urxe_qp *qp, const struct urxe_send_wr *wr)
{
	struct sq *sq = &qp->sq;
	struct send_wqe *wqe;
	int rc = may_post(qp) ? check_wr(qp, wr) : -EINVAL;

	if (rc)
		return rc;
	if (sq->head - sq->tail >= sq->max_wr)
		return -ENOMEM;
	direct_posted(qp, all_seen(qp, wr));
	wqe = sq_wqe(sq, sq->head);
	fill(wqe, qp, wr);
	qp->req.recv_seq = wqe->recv_seq;
	if (sq->cur == sq->head)
		wqe->first_psn = qp->req.psn;
	sq->head++;
	if (qp->attr.state == URXE_QPS_ERR || qp->attr.state == URXE_QPS_SQE)
		req_flush(qp);
	else
		qp_schedule(qp);
	return 0;
}

uint32_t urxe_sq_retired(const struct urxe_qp *qp)
{
	return qp->sq.tail;
}
