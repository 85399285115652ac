/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requester/request_packet.h"

#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "objects/references.h"
#include "requester/copy_request.h"
#include "requester/e2e_credits.h"
#include "requester/window.h"
#include "wire/packet_build.h"

/* Of so many consecutive packets at least one asks for an acknowledgement; a power of two. */
#define ACK_EVERY 32
/* A Q_Key with this bit set selects the QP's own (IBA 10.2.5). */
#define QKEY_USE_OWN 0x80000000u

/* SEND ONLY or SEND LAST with invalidate: the values of these opcodes do not follow the order of
 * the other ones. */
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

static uint8_t request_operation(const struct send_wqe *wqe, bool first, bool last)
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

static uint8_t service_of(const struct urxe_qp *qp)
{
	switch (qp->type) {
	case URXE_QPT_RC: return URXE_SERVICE_RC;
	case URXE_QPT_UC: return URXE_SERVICE_UC;
	default: return URXE_SERVICE_UD;
	}
}

/* Whether perhaps no later packet follows soon and asks for an acknowledgement. */
static bool may_be_last_packet(const struct urxe_qp *qp)
{
	uint32_t next = qp->sq.cur + 1;
	const struct send_wqe *wqe;

	if (next == qp->sq.head || !qp->attr.timeout || qp->attr.state == URXE_QPS_SQD)
		return true;
	wqe = sq_wqe(&qp->sq, next);
	return wqe->kind == WR_READ || wqe->kind == WR_LOCAL || wqe->kind == WR_MALFORMED ||
	       copy_may_wait(qp, wqe);
}

/* Number of PSNs of the frame: more than 1 with a payload reference. */
static uint32_t frame_span(const struct request_packet *rp)
{
	return rp->pieces ? rp->span : 1;
}

/*
 * Whether the packet asks for an acknowledgement: the application waits for one, or the window or
 * the credits stop the requester after this packet. Every ACK_EVERY-th packet and the last packet
 * of a retransmission ask, too.
 */
static bool wants_ack(const struct urxe_qp *qp, const struct request_packet *rp, bool last)
{
	const struct requester *req = &qp->req;

	if (qp->type != URXE_QPT_RC || wqe_is_rd_atomic(rp->wqe))
		return false;
	if (last && (rp->wqe->flags & URXE_SEND_SIGNALED || qp->sq_sig_all || rp->again ||
		     may_be_last_packet(qp)))
		return true;
	if ((rp->psn + rp->span) / ACK_EVERY != rp->psn / ACK_EVERY ||
	    (!rp->again && credit_stops(qp, last)))
		return true;
	return rp->again ? urxe_psn_diff(urxe_psn_add(rp->psn, rp->span), req->resend.end) >= 0
			 : requester_outstanding(req) + rp->span >=
				   window_in_frames(qp, window_now(qp), frame_span(rp));
}

/* Payload bytes of the packets from the offset on. The MTU of a datagram may have shrunk since it
 * was posted. */
static uint32_t payload_of(const struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t offset,
			   uint32_t packets)
{
	uint64_t most = (uint64_t)packets * qp->mtu;
	uint32_t rest = wqe->length - offset;

	return rest < most || qp->type == URXE_QPT_UD ? rest : (uint32_t)most;
}

/* Number of packets that one reference may stand for: a new reference stays within the window, a
 * repeated one within the packets that were sent before. */
static uint32_t packets_of_reference(const struct urxe_qp *qp, const struct request_packet *rp,
				     uint32_t pos)
{
	uint32_t packets = URXE_REFERENCE_MAX / qp->mtu, rest = rp->wqe->n_packets - pos;
	uint32_t outstanding = requester_outstanding(&qp->req);
	uint32_t window = window_in_frames(qp, window_now(qp), packets < rest ? packets : rest);
	uint32_t room = rp->again              ? (uint32_t)urxe_psn_diff(qp->req.psn, rp->psn)
			: window > outstanding ? window - outstanding
					       : 1;

	if (packets > rest)
		packets = rest;
	return packets < room ? packets : room;
}

/*
 * Whether the packet may reference its payload. A peer that cannot read a referenced payload drops
 * the packet, so a QP without retries must not use references. After a loss, the next `plain`
 * packets carry their payload. An RNR NAK is no loss.
 */
static bool may_reference(struct urxe_qp *qp, const struct request_packet *rp)
{
	const struct urxe_ops *ops = qp->dev->attr.ops;

	if (!ops->may_reference || qp->type != URXE_QPT_RC || rp->wqe->kind != WR_SEND ||
	    (rp->again && !qp->req.after_rnr) || qp->paced || rp->wqe->flags & URXE_SEND_INLINE ||
	    !qp->attr.retry_cnt || !qp->attr.timeout)
		return false;
	if (!qp->req.plain)
		return ops->may_reference(qp->dev->attr.ctx, &qp->attr.path, qp->attr.dest_qpn);
	qp->req.plain--;
	return false;
}

/* Memory for the list of pieces: an array of the copy transport, which prepares no copy while a
 * packet is built. */
static struct urxe_extent *reference_pieces(const struct urxe_qp *qp)
{
	return qp->dev->copy->batch.local;
}

/* Number of pieces that the frame's buffer has room for. */
static uint32_t room_for_pieces(const struct urxe_frame *frame)
{
	uint32_t n = frame->room < URXE_REFERENCE_ROOM
			     ? 0
			     : (frame->room - URXE_REFERENCE_ROOM) /
				       (uint32_t)sizeof(struct urxe_reference_piece);

	return n < URXE_REFERENCE_PIECES ? n : URXE_REFERENCE_PIECES;
}

/* Keeps the first `length` bytes of the pieces; returns how many pieces that are. */
static uint32_t cut_pieces(struct urxe_extent *pieces, uint32_t length)
{
	uint32_t n = 0;

	for (; length; n++) {
		if (pieces[n].length > length)
			pieces[n].length = length;
		length -= (uint32_t)pieces[n].length;
	}
	return n;
}

/*
 * If the packet may reference at least URXE_REFERENCE_MIN bytes, sets rp->pieces and rp->span. Runs
 * before the headers are built, because they depend on rp->span. A payload of more pieces than one
 * frame can list needs several frames.
 */
static void try_reference(struct urxe_qp *qp, struct request_packet *rp, uint32_t pos,
			  const struct urxe_frame *frame)
{
	struct sge_list list = wqe_sge_list(rp->wqe, qp->pd);
	struct sge_bytes bytes = {.offset = pos * qp->mtu};
	uint32_t packets, listed;

	if (rp->wqe->length - bytes.offset < URXE_REFERENCE_MIN || !may_reference(qp, rp))
		return;
	packets = packets_of_reference(qp, rp, pos);
	bytes.length = payload_of(qp, rp->wqe, (uint32_t)bytes.offset, packets);
	listed = sge_extents(qp->dev, &list, &bytes, reference_pieces(qp), room_for_pieces(frame));
	if (listed < bytes.length) {
		packets = listed / qp->mtu;
		listed = packets * qp->mtu;
	}
	if (listed < URXE_REFERENCE_MIN)
		return;
	rp->pieces = cut_pieces(reference_pieces(qp), listed);
	rp->span = packets;
}

static void put_reference(struct urxe_qp *qp, const struct request_packet *rp, uint32_t length,
			  struct urxe_frame *frame)
{
	frame->reference = (struct urxe_reference){
		.address = (uintptr_t)reference_pieces(qp)->addr,
		.length = length,
		.packets = rp->span,
		.generation = qp->dev->attr.copy_table->references,
		.n_pieces = rp->pieces > 1 ? rp->pieces : 0,
		.src_qpn = qp->qpn,
	};
	add_reference(qp);
	qp_count(qp, URXE_EVENT_REFERENCES);
	qp_count_bytes(qp, URXE_EVENT_REFERENCE_BYTES, length);
}

/* Puts the list of pieces behind the headers of the frame, which is complete otherwise. */
static void put_pieces(const struct urxe_qp *qp, const struct urxe_frame *frame)
{
	uint8_t *to = frame->data + frame->len - URXE_ICRC_LEN;

	for (uint32_t i = 0; i < frame->reference.n_pieces; i++) {
		const struct urxe_extent *from = &reference_pieces(qp)[i];
		const struct urxe_reference_piece piece = {(uintptr_t)from->addr, from->length};

		memcpy(to + i * sizeof(piece), &piece, sizeof(piece));
	}
}

static bool put_payload(struct build *b, struct urxe_qp *qp, const struct send_wqe *wqe,
			uint32_t offset, uint32_t len)
{
	struct sge_list list = wqe_sge_list(wqe, qp->pd);

	if (wqe->flags & URXE_SEND_INLINE) {
		memcpy(b->payload, wqe->data + offset, len);
		return true;
	}
	return sge_gather(qp->dev, &list, offset, b->payload, len);
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

static bool build_packet(struct urxe_qp *qp, const struct request_packet *rp, uint32_t pos,
			 const struct header_template *header, struct urxe_frame *frame)
{
	const struct send_wqe *wqe = rp->wqe;
	bool first = pos == 0, last = pos + rp->span == wqe->n_packets;
	uint32_t offset = pos * qp->mtu, len = 0;
	struct build_bth bth = {
		.opcode = service_of(qp) | request_operation(wqe, first, last),
		.solicited = last && wqe->flags & URXE_SEND_SOLICITED &&
			     (wqe->kind == WR_SEND || wr_has_imm(wqe->opcode)),
		.ack_req = wants_ack(qp, rp, last),
		.dest_qpn = qp->type == URXE_QPT_UD ? wqe->remote_qpn : qp->attr.dest_qpn,
		.psn = rp->psn,
		.pkey = qp->dev->pkeys[reqpkt_pkey_index(qp, wqe)],
	};
	uint32_t flags = urxe_opcodes[bth.opcode].flags;
	struct build b;

	build_start(&b, frame, header, &bth);
	b.gso_mark = qp->dev->gso && bth.opcode == (URXE_SERVICE_RC | URXE_OP_READ_REQUEST);
	if (!rp->again)
		build_allow_gso(&b, qp);
	put_extended(&b, qp, wqe, flags, offset, rp->span);
	if (flags & URXE_OPF_PAYLOAD) {
		len = payload_of(qp, wqe, offset, rp->pieces ? rp->span : 1);
		if (rp->pieces)
			put_reference(qp, rp, len, frame);
		else if (!put_payload(&b, qp, wqe, offset, len))
			return false;
	}
	build_finish(&b, qp, rp->pieces ? 0 : len);
	if (rp->pieces)
		put_pieces(qp, frame);
	if (rp->again)
		return true;
	qp->req.frame_span = frame_span(rp) < UINT8_MAX ? (uint8_t)frame_span(rp) : UINT8_MAX;
	qp->req.asks_ack = bth.ack_req || wqe_is_rd_atomic(wqe);
	if (qp->req.asks_ack)
		rtt_start(&qp->req.rtt, rp->psn, qp->dev->now);
	return true;
}

bool reqpkt_build(struct urxe_qp *qp, struct request_packet *rp,
		  const struct header_template *header, struct urxe_frame *frame)
{
	uint32_t pos = (uint32_t)urxe_psn_diff(rp->psn, rp->wqe->first_psn);

	try_reference(qp, rp, pos, frame);
	return build_packet(qp, rp, pos, header, frame);
}
