/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "req.h"

#include "build.h"
#include "cq.h"
#include "dev.h"
#include "mw.h"
#include "qp.h"

/* An acknowledgement is asked for at least this often, in packets; a power of two. */
#define ACK_EVERY 32
/* Packets that one READ request asks for, at most. */
#define READ_CHUNK 64
/*
 * The local ACK timeout counts in 4.096 us, and lies between once and four times
 * what the attribute says (IBA 9.7.6.1.3). A responder in software may have to wait
 * for its turn on a busy core, so it gets three; the rest is for our own lateness.
 */
#define ACK_TIMEOUT_UNIT_NS (3 * UINT64_C(4096))
/* A Q_Key in a request with this bit set stands for the QP's own (IBA 10.2.5). */
#define QKEY_USE_OWN 0x80000000u

static uint32_t outstanding(const struct requester *req)
{
	return (uint32_t)urxe_psn_diff(req->psn, req->una);
}

uint32_t req_read_chunk(const struct urxe_qp *qp)
{
	uint32_t window = qp->dev->attr.max_packets;

	return window < READ_CHUNK ? window : READ_CHUNK;
}

/* --- Completion of requests. */

void req_complete(struct urxe_qp *qp, enum urxe_wc_status status)
{
	struct sq *sq = &qp->sq;
	const struct send_wqe *wqe = sq_wqe(sq, sq->tail);
	struct urxe_wc wc = {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = wr_wc_opcode(wqe->opcode),
		.byte_len = wqe->length,
		.qpn = qp->qpn,
		.solicited = status != URXE_WC_SUCCESS,
	};

	if (sq->cur == sq->tail)
		sq->cur++;
	sq->tail++;
	if (status == URXE_WC_SUCCESS && !qp->sq_sig_all && !(wqe->flags & URXE_SEND_SIGNALED))
		return;
	if (!cq_complete(qp->send_cq, &wc))
		qp_error_event(qp, URXE_ASYNC_QP_FATAL);
}

void req_complete_executed(struct urxe_qp *qp)
{
	while (qp->sq.tail != qp->sq.head && sq_wqe(&qp->sq, qp->sq.tail)->executed)
		req_complete(qp, URXE_WC_SUCCESS);
}

void req_fail(struct urxe_qp *qp, enum urxe_wc_status status)
{
	req_complete(qp, status);
	qp_error(qp);
}

void req_flush(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	while (qp->sq.tail != qp->sq.head)
		req_complete(qp, URXE_WC_WR_FLUSH_ERR);
	req->psn = req->una = req->sent = req->next_psn;
}

/* IBA 9.9.2.4: a connected or datagram send error leaves the receive side alone. */
static void unreliable_error(struct urxe_qp *qp, enum urxe_wc_status status)
{
	qp->attr.state = URXE_QPS_SQE;
	req_complete(qp, status);
	req_flush(qp);
}

/* Request `cur` cannot be sent. It ends in its error when all before it are completed. */
static void local_error(struct urxe_qp *qp, enum urxe_wc_status status)
{
	dev_count(qp->dev, URXE_EVENT_LOCAL_ERROR);
	if (qp->type != URXE_QPT_RC) {
		unreliable_error(qp, status);
	} else if (qp->sq.cur == qp->sq.tail) {
		req_fail(qp, status);
	} else {
		qp->req.error = status;
	}
}

/* --- Timer and recovery. */

void req_restart_timer(struct urxe_qp *qp)
{
	struct urxe_dev *dev = qp->dev;

	if (qp->req.rnr_wait)
		return;
	if (qp->req.una == qp->req.sent || !qp->attr.timeout)
		timer_clear(&qp->timer);
	else
		timer_set(&dev->timers, &qp->timer,
			  dev->now + (ACK_TIMEOUT_UNIT_NS << qp->attr.timeout));
}

void req_rewind(struct urxe_qp *qp)
{
	qp->sq.cur = qp->sq.tail;
	qp->req.psn = qp->req.una;
	qp->req.rd_atomic = 0;
	qp->req.error = 0;
	qp_schedule(qp);
}

static void ack_timeout(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	dev_count(qp->dev, URXE_EVENT_TIMEOUT);
	if (!req->retries) {
		req_fail(qp, URXE_WC_RETRY_EXC_ERR);
		return;
	}
	req->retries--;
	req->implied_nak = false;
	req_rewind(qp);
	req_restart_timer(qp);
}

void req_timer(struct urxe_qp *qp)
{
	if (qp->req.rnr_wait) {
		qp->req.rnr_wait = false;
		qp_schedule(qp);
	} else if (qp->req.held) {
		req_restart_timer(qp); /* what asks for the acknowledgement has yet to be sent */
	} else if (qp->req.una != qp->req.sent) {
		ack_timeout(qp);
	}
}

/* --- Send queue drain (IBA 10.3.1.4). */

/* Whether request `cur` has a packet on the wire already. */
static bool begun(const struct urxe_qp *qp)
{
	const struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.cur);

	return qp->sq.cur != qp->sq.head && wqe->first_psn != qp->req.sent;
}

void req_check_drained(struct urxe_qp *qp)
{
	if (!qp->req.drain_event || qp->req.una != qp->req.sent || begun(qp))
		return;
	qp->req.drain_event = false;
	qp_event(qp, URXE_ASYNC_SQ_DRAINED);
}

/* --- Sending. */

static bool sending_state(const struct urxe_qp *qp)
{
	if (qp->attr.state == URXE_QPS_SQD)
		return begun(qp);
	return qp->attr.state == URXE_QPS_RTS;
}

/* How many PSNs the next packet takes. */
static uint32_t packet_span(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	uint32_t pos, chunk, end;

	if (wr_kind(wqe->opcode) != WR_READ)
		return 1;
	pos = (uint32_t)urxe_psn_diff(qp->req.psn, wqe->first_psn);
	chunk = req_read_chunk(qp);
	end = (pos / chunk + 1) * chunk;
	return (end < wqe->n_packets ? end : wqe->n_packets) - pos;
}

/* Whether window, responder resources and fence let the next packet go. */
static bool may_send(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct requester *req = &qp->req;

	if (qp->type != URXE_QPT_RC)
		return true;
	if (outstanding(req) + packet_span(qp, wqe) > qp->dev->attr.max_packets)
		return false;
	if (wr_is_rd_atomic(wqe->opcode) && req->rd_atomic >= qp->attr.max_rd_atomic)
		return false;
	return !(wqe->flags & URXE_SEND_FENCE) || !req->rd_atomic || req->psn != wqe->first_psn;
}

/* SEND_ONLY and SEND_LAST with invalidate have numbers apart from the others'. */
static uint8_t invalidate_operation(bool first)
{
	return first ? URXE_OP_SEND_ONLY_INV : URXE_OP_SEND_LAST_INV;
}

/* FIRST, MIDDLE, LAST or ONLY of SEND or WRITE, by the packet's place in its message. */
static uint8_t send_write_operation(const struct send_wqe *wqe, bool first, bool last)
{
	uint8_t op = wr_kind(wqe->opcode) == WR_SEND ? URXE_OP_SEND_FIRST : URXE_OP_WRITE_FIRST;
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
	enum wr_kind kind;

	if (next == qp->sq.head || !qp->attr.timeout)
		return true;
	kind = wr_kind(sq_wqe(&qp->sq, next)->opcode);
	return kind == WR_READ || kind == WR_LOCAL;
}

/*
 * An acknowledgement is wanted where the application waits for one, where the
 * sender is about to stop for want of one, and now and then.
 */
static bool wants_ack(const struct urxe_qp *qp, const struct send_wqe *wqe, bool last)
{
	const struct requester *req = &qp->req;

	if (qp->type != URXE_QPT_RC || wr_is_rd_atomic(wqe->opcode))
		return false;
	if (last && (wqe->flags & URXE_SEND_SIGNALED || qp->sq_sig_all || may_be_last(qp) ||
		     req->psn != req->sent))
		return true;
	return (req->psn + 1) % ACK_EVERY == 0 || outstanding(req) + 1 >= qp->dev->attr.max_packets;
}

static bool put_payload(const struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t offset,
			uint8_t *dst, uint32_t len)
{
	struct sge_list list = wqe_sge_list(wqe, qp->pd);

	if (wqe->flags & URXE_SEND_INLINE) {
		memcpy(dst, wqe->data + offset, len);
		return true;
	}
	return sge_gather(qp->dev, &list, offset, dst, len);
}

static void put_extended(struct build *b, const struct urxe_qp *qp, const struct send_wqe *wqe,
			 uint32_t flags, uint32_t offset, uint32_t span)
{
	if (flags & URXE_OPF_DETH) {
		bool own = wqe->remote_qkey & QKEY_USE_OWN;

		build_deth(b, own ? qp->attr.qkey : wqe->remote_qkey, qp->qpn);
	}
	if (flags & URXE_OPF_RETH) {
		uint32_t rest = wqe->length - offset;

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

/* QP 1 speaks for all partitions, and its requests say for which (IBA 10.9). */
static uint16_t pkey_index(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return qp->qpn == URXE_QPN_GSI ? wqe->pkey_index : qp->attr.pkey_index;
}

/* Builds the packet at req->psn; false where the request's memory is not to be had. */
static bool build_request(struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t span,
			  const struct header_template *header, struct urxe_frame *frame)
{
	uint32_t pos = (uint32_t)urxe_psn_diff(qp->req.psn, wqe->first_psn);
	bool first = pos == 0, last = pos + span == wqe->n_packets;
	uint32_t offset = pos * qp->mtu, len = 0;
	struct build_bth bth = {
		.opcode = service(qp) | operation(wqe, first, last),
		.solicited = last && wqe->flags & URXE_SEND_SOLICITED &&
			     (wr_kind(wqe->opcode) == WR_SEND || wr_has_imm(wqe->opcode)),
		.ack_req = wants_ack(qp, wqe, last),
		.dest_qpn = qp->type == URXE_QPT_UD ? wqe->remote_qpn : qp->attr.dest_qpn,
		.psn = qp->req.psn,
		.pkey = qp->dev->pkeys[pkey_index(qp, wqe)],
	};
	uint32_t flags = urxe_opcodes[bth.opcode].flags;
	struct build b;

	build_start(&b, frame, header, &bth);
	put_extended(&b, qp, wqe, flags, offset, span);
	if (flags & URXE_OPF_PAYLOAD) {
		len = last ? wqe->length - offset : qp->mtu;
		if (!put_payload(qp, wqe, offset, b.payload, len))
			return false;
	}
	build_finish(&b, qp->dev, len);
	return true;
}

/* The packet at req->psn is in a frame. */
static void step(struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t span)
{
	struct requester *req = &qp->req;

	req->psn = urxe_psn_add(req->psn, span);
	if (urxe_psn_diff(req->psn, req->sent) > 0)
		req->sent = req->psn;
	else
		dev_count(qp->dev, URXE_EVENT_RETRANSMIT);
	if (wr_is_rd_atomic(wqe->opcode))
		req->rd_atomic++;
	if (req->psn == urxe_psn_add(wqe->first_psn, wqe->n_packets)) {
		if (qp->type == URXE_QPT_RC) {
			qp->sq.cur++;
		} else {
			req->una = req->psn;
			req_complete(qp, URXE_WC_SUCCESS);
		}
	}
	if (qp->type != URXE_QPT_RC)
		req_check_drained(qp);
	else if (qp->timer.due == URXE_NEVER || qp->pace.on)
		req_restart_timer(qp);
}

/* --- Requests that send nothing: they are executed when their turn to be sent comes. */

static bool execute(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	if (wqe->opcode == URXE_WR_BIND_MW)
		return mw_bind(qp, &wqe->bind);
	return mw_invalidate(qp, wqe->invalidate_key);
}

/* False: it has to wait, or has failed. */
static bool pass_local(struct urxe_qp *qp, struct send_wqe *wqe)
{
	if (!wqe->executed) {
		if (wqe->flags & URXE_SEND_FENCE && qp->req.rd_atomic)
			return false;
		if (!execute(qp, wqe)) {
			local_error(qp, wqe->opcode == URXE_WR_BIND_MW ? URXE_WC_MW_BIND_ERR
								       : URXE_WC_LOC_QP_OP_ERR);
			return false;
		}
		wqe->executed = true;
	}
	qp->sq.cur++;
	req_complete_executed(qp);
	return true;
}

/* Whether the next request may be sent, as far as the QP goes. Executes what stands before it. */
static bool ready(struct urxe_qp *qp)
{
	while (sending_state(qp) && !qp->req.rnr_wait && !qp->req.error &&
	       qp->sq.cur != qp->sq.head) {
		struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.cur);

		if (wr_kind(wqe->opcode) != WR_LOCAL)
			return true;
		if (!pass_local(qp, wqe))
			return false;
	}
	return false;
}

/* The request whose next packet may go now; NULL where there is none. */
static const struct send_wqe *ready_request(struct urxe_qp *qp)
{
	const struct send_wqe *wqe;

	qp->req.held = false;
	if (!ready(qp))
		return NULL;
	wqe = sq_wqe(&qp->sq, qp->sq.cur);
	if (!may_send(qp, wqe))
		return NULL;
	qp->req.held = !pace_ready(qp);
	return qp->req.held ? NULL : wqe;
}

bool req_output(struct urxe_qp *qp, struct urxe_frame *frame)
{
	const struct header_template *header = &qp->header;
	const struct send_wqe *wqe = ready_request(qp);
	struct header_template ud_header;
	uint32_t span;
	bool to_group;

	if (!wqe)
		return false;
	if (qp->type == URXE_QPT_UD) {
		header = &ud_header;
		if (!build_template(&ud_header, qp->dev, &wqe->path, qp->qpn ^ wqe->remote_qpn) ||
		    !pkey_valid(qp->dev->pkeys[pkey_index(qp, wqe)])) {
			local_error(qp, URXE_WC_LOC_QP_OP_ERR);
			return false;
		}
	}
	span = packet_span(qp, wqe);
	if (!build_request(qp, wqe, span, header, frame)) {
		local_error(qp, URXE_WC_LOC_PROT_ERR);
		return false;
	}
	pace_sent(qp, frame->len);
	to_group = qp->type == URXE_QPT_UD && wqe->remote_qpn == URXE_QPN_MULTICAST;
	step(qp, wqe, span);
	if (to_group)
		mcast_loopback(qp, frame);
	return true;
}
