/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requester/request_packet.h"

#include "direct/direct.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "wire/packet_build.h"

/* An acknowledgement is asked for at least this often, in packets; a power of two. */
#define ACK_EVERY 32
/* A Q_Key in a request with this bit set stands for the QP's own (IBA 10.2.5). */
#define QKEY_USE_OWN 0x80000000u

/* SEND_ONLY and SEND_LAST with invalidate have numbers apart from the others'. */
static uint8_t invalidate_operation(bool first)
{
	return first ? URXE_OP_SEND_ONLY_INV : URXE_OP_SEND_LAST_INV;
}

/* FIRST, MIDDLE, LAST or ONLY of SEND or WRITE, by the packet's place in its message. */
static uint8_t send_write_operation(const struct send_wqe *wqe, bool first, bool last)
{
	uint8_t op = wqe->kind == WR_SEND ? URXE_OP_SEND_FIRST : URXE_OP_WRITE_FIRST;
	uint8_t imm = last && wr_has_imm(wqe->opcode);

	if (last && wqe->opcode == URXE_WR_SEND_INV)
		return invalidate_operation(first);
	if (first)
		return last ? op + (URXE_OP_SEND_ONLY - URXE_OP_SEND_FIRST) + imm : op;
	return last ? op + (URXE_OP_SEND_LAST - URXE_OP_SEND_FIRST) + imm
		    : op + (URXE_OP_SEND_MIDDLE - URXE_OP_SEND_FIRST);
}

static uint8_t operation(const struct send_wqe *wqe, bool first, bool last)
{
	switch (wqe->opcode) {
	case URXE_WR_RDMA_READ: return URXE_OP_READ_REQUEST;
	case URXE_WR_COMPARE_SWAP: return URXE_OP_COMPARE_SWAP;
	case URXE_WR_FETCH_ADD: return URXE_OP_FETCH_ADD;
	case URXE_WR_FLUSH: return URXE_OP_FLUSH;
	case URXE_WR_ATOMIC_WRITE: return URXE_OP_ATOMIC_WRITE;
	default: return send_write_operation(wqe, first, last);
	}
}

static uint8_t service(const struct urxe_qp *qp)
{
	switch (qp->type) {
	case URXE_QPT_RC: return URXE_SERVICE_RC;
	case URXE_QPT_UC: return URXE_SERVICE_UC;
	default: return URXE_SERVICE_UD;
	}
}

/* Whether nothing behind the request's last packet is sure to be sent and ask in its stead. */
static bool may_be_last(const struct urxe_qp *qp)
{
	uint32_t next = qp->sq.cur + 1;
	const struct send_wqe *wqe;

	if (next == qp->sq.head || !qp->attr.timeout)
		return true;
	wqe = sq_wqe(&qp->sq, next);
	return wqe->kind == WR_READ || wqe->kind == WR_LOCAL || direct_may_wait(qp, wqe);
}

/*
 * An acknowledgement is wanted where the application waits for one, where the
 * sender is about to stop for want of one, and now and then; and of what was sent
 * again, since the peer's answer to it decides about the rest.
 */
static bool wants_ack(const struct urxe_qp *qp, const struct request_packet *rp, bool last)
{
	const struct requester *req = &qp->req;

	if (qp->type != URXE_QPT_RC || wqe_is_rd_atomic(rp->wqe))
		return false;
	if (last &&
	    (rp->wqe->flags & URXE_SEND_SIGNALED || qp->sq_sig_all || rp->again || may_be_last(qp)))
		return true;
	if ((rp->psn + rp->span) / ACK_EVERY != rp->psn / ACK_EVERY ||
	    (!rp->again && credit_stops(qp, last)))
		return true;
	return rp->again ? urxe_psn_add(rp->psn, 1) == req->resend.end
			 : requester_outstanding(req) + rp->span >= req->window;
}

/*
 * The program leaves the memory of a request alone until it is acknowledged, which only RC's are.
 * A packet that is sent again was lost, or refused as its memory had left the window meanwhile. A
 * queue pair that repeats nothing loses nothing in one piece, and is not to lose anything so.
 */
static enum urxe_lending lending(struct urxe_qp *qp, const struct request_packet *rp)
{
	const struct urxe_dev *dev = qp->dev;

	if (!dev->attr.ops->lends || !dev->attr.ops->copy_crc || qp->type != URXE_QPT_RC ||
	    rp->wqe->flags & URXE_SEND_INLINE || !qp->attr.retry_cnt || !qp->attr.timeout)
		return URXE_LENDS_NOT;
	if (!qp->req.whole)
		return dev->attr.ops->lends(dev->attr.ctx, &qp->attr.path, qp->attr.dest_qpn);
	qp->req.whole--;
	return URXE_LENDS_NOT;
}

/* Bytes of the request that so many packets from there on have. */
static uint32_t payload_of(const struct urxe_qp *qp, const struct request_packet *rp,
			   uint32_t offset)
{
	uint64_t most = (uint64_t)rp->span * qp->mtu;

	return most < rp->wqe->length - offset ? (uint32_t)most : rp->wqe->length - offset;
}

/* How many packets of a SEND may go together, if their payload is trusted. */
static uint32_t span_together(const struct urxe_qp *qp, const struct request_packet *rp,
			      uint32_t pos)
{
	uint32_t span = URXE_LENT_MAX / qp->mtu, rest = rp->wqe->n_packets - pos;
	uint32_t outstanding = requester_outstanding(&qp->req);
	uint32_t room = qp->req.window > outstanding ? qp->req.window - outstanding : 1;

	if (rp->wqe->kind != WR_SEND || qp->paced)
		return 1;
	if (span > rest)
		span = rest;
	return span < room ? span : room;
}

static bool lend(struct urxe_qp *qp, struct request_packet *rp, uint32_t pos)
{
	struct sge_list list = wqe_sge_list(rp->wqe, qp->pd);
	uint32_t offset = pos * qp->mtu;

	rp->lent = payload_of(qp, rp, offset);
	if (rp->lent < BUILD_LARGE)
		return false;
	rp->payload = sge_lend(qp->dev, &list, offset, rp->lent, NULL, &rp->window);
	return rp->payload;
}

/* In one frame, or the first packet alone; false: not even that. */
static bool lend_trusted(struct urxe_qp *qp, struct request_packet *rp, uint32_t pos)
{
	rp->span = span_together(qp, rp, pos);
	if (!lend(qp, rp, pos)) {
		rp->span = 1;
		if (!lend(qp, rp, pos))
			return false;
	}
	qp->req.lent = true;
	return true;
}

/* Before the headers are made, which tell how many packets it is. */
static void decide_lending(struct urxe_qp *qp, struct request_packet *rp, uint32_t pos)
{
	rp->lending = lending(qp, rp);
	if (rp->lending == URXE_LENDS_TRUSTED && !lend_trusted(qp, rp, pos))
		rp->lending = URXE_LENDS_NOT;
}

static bool put_payload(struct build *b, struct urxe_qp *qp, const struct request_packet *rp,
			uint32_t offset, uint32_t len)
{
	const struct send_wqe *wqe = rp->wqe;
	struct sge_list list = wqe_sge_list(wqe, qp->pd);
	struct urxe_frame *frame = b->frame;
	uint32_t *crc;

	if (wqe->flags & URXE_SEND_INLINE) {
		memcpy(b->payload, wqe->data + offset, len);
		return true;
	}
	crc = build_payload_crc(b, qp, len);
	if (rp->lending == URXE_LENDS_TRUSTED) {
		frame->payload = rp->payload;
		frame->window = rp->window;
		frame->lent = len;
		frame->trusted = true;
		return true;
	}
	if (crc && rp->lending == URXE_LENDS_CHECKED) {
		frame->payload = sge_lend(qp->dev, &list, offset, len, crc, &frame->window);
		frame->lent = frame->payload ? len : 0;
	}
	return frame->lent || sge_gather(qp->dev, &list, offset, b->payload, len, crc);
}

static void put_extended(struct build *b, const struct urxe_qp *qp, const struct send_wqe *wqe,
			 uint32_t flags, uint32_t offset, uint32_t span)
{
	if (flags & URXE_OPF_DETH) {
		bool own = wqe->remote_qkey & QKEY_USE_OWN;

		build_deth(b, own ? qp->attr.qkey : wqe->remote_qkey, qp->qpn);
	}
	if (flags & URXE_OPF_FETH)
		build_feth(b, &wqe->flush);
	if (flags & URXE_OPF_RETH) {
		uint32_t rest = flags & URXE_OPF_FLUSH ? wqe->flush.length : wqe->length - offset;

		if (flags & URXE_OPF_READ && (uint64_t)span * qp->mtu < rest)
			rest = span * qp->mtu;
		build_reth(b, wqe->remote_addr + offset, wqe->rkey, rest);
	}
	if (flags & URXE_OPF_ATOMIC_ETH)
		build_atomic_eth(b, wqe);
	if (flags & URXE_OPF_IMM)
		build_imm(b, wqe->imm);
	if (flags & URXE_OPF_IETH)
		build_ieth(b, wqe->invalidate_key);
}

uint16_t reqpkt_pkey_index(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return qp->qpn == URXE_QPN_GSI ? wqe->pkey_index : qp->attr.pkey_index;
}

/* One of a request that is sent for the first time. */
static bool may_have_loan(const struct urxe_qp *qp, const struct request_packet *rp, uint32_t pos)
{
	const struct send_wqe *wqe = rp->wqe;

	return wqe->length - pos * qp->mtu >= BUILD_LARGE && !rp->again &&
	       (wqe->kind == WR_SEND || wqe->kind == WR_WRITE);
}

static bool build(struct urxe_qp *qp, const struct request_packet *rp, uint32_t pos,
		  const struct header_template *header, struct urxe_frame *frame)
{
	const struct send_wqe *wqe = rp->wqe;
	bool first = pos == 0, last = pos + rp->span == wqe->n_packets;
	uint32_t offset = pos * qp->mtu, len = 0;
	struct build_bth bth = {
		.opcode = service(qp) | operation(wqe, first, last),
		.solicited = last && wqe->flags & URXE_SEND_SOLICITED &&
			     (wqe->kind == WR_SEND || wr_has_imm(wqe->opcode)),
		.ack_req = wants_ack(qp, rp, last),
		.dest_qpn = qp->type == URXE_QPT_UD ? wqe->remote_qpn : qp->attr.dest_qpn,
		.psn = rp->psn,
		.pkey = qp->dev->pkeys[reqpkt_pkey_index(qp, wqe)],
		.behind = rp->lending == URXE_LENDS_TRUSTED ? (uint8_t)(rp->span - 1) : 0,
	};
	uint32_t flags = urxe_opcodes[bth.opcode].flags;
	struct build b;

	build_start(&b, frame, header, &bth);
	put_extended(&b, qp, wqe, flags, offset, rp->span);
	if (flags & URXE_OPF_PAYLOAD) {
		len = payload_of(qp, rp, offset);
		if (!put_payload(&b, qp, rp, offset, len))
			return false;
	}
	build_finish(&b, qp, len);
	if (!rp->again && (bth.ack_req || wqe_is_rd_atomic(wqe)))
		rtt_start(&qp->req.rtt, rp->psn, qp->dev->now);
	return true;
}

bool reqpkt_build(struct urxe_qp *qp, struct request_packet *rp,
		  const struct header_template *header, struct urxe_frame *frame)
{
	uint32_t pos = (uint32_t)urxe_psn_diff(rp->psn, rp->wqe->first_psn);

	if (may_have_loan(qp, rp, pos))
		decide_lending(qp, rp, pos);
	return build(qp, rp, pos, header, frame);
}
