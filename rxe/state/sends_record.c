/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send requests that are posted and not completed. The stream lacks members that follow from
 * others: kind, length (unless the data is inline), number of packets, and recv_seq of all requests
 * but the newest.
 */

#include "objects/device.h"
#include "objects/qp.h"
#include "state/state_records.h"

/* Least bytes of a send request in the stream. */
#define REQUEST_MIN  40
#define DATAGRAM_MAX 4096 /* bytes: the longest path MTU */
#define FLAGS_ALL    (URXE_SEND_FENCE | URXE_SEND_SIGNALED | URXE_SEND_SOLICITED | URXE_SEND_INLINE)

static void atomic_fields(struct state_stream *s, struct send_wqe *wqe)
{
	state_u64s(s, &wqe->compare_add, &wqe->swap);
}

static void datagram_fields(struct state_stream *s, struct send_wqe *wqe)
{
	path_fields(s, &wqe->path);
	state_u24(s, &wqe->remote_qpn);
	state_u32(s, &wqe->remote_qkey);
	state_u16(s, &wqe->pkey_index);
}

static void flush_fields(struct state_stream *s, struct urxe_flush *flush)
{
	state_u8_max(s, &flush->placement, URXE_FLUSH_GLOBAL | URXE_FLUSH_PERSISTENT);
	state_u8_max(s, &flush->selectivity, URXE_FLUSH_KEY);
	state_u32_max(s, &flush->length, URXE_MAX_MSG);
}

/* The member of send_wqe's union that the request uses (post_send.c). */
static void variant_fields(struct state_stream *s, const struct urxe_qp *qp, struct send_wqe *wqe)
{
	if (wqe->kind == WR_MALFORMED)
		state_u8_max(s, &wqe->error, URXE_WC_RNR_RETRY_EXC_ERR);
	else if (qp->type == URXE_QPT_UD)
		datagram_fields(s, wqe);
	else if (wqe->kind == WR_ATOMIC)
		atomic_fields(s, wqe);
	else if (wqe->kind == WR_FLUSH)
		flush_fields(s, &wqe->flush);
	else if (wqe->opcode == URXE_WR_BIND_MW)
		bind_fields(s, &wqe->bind);
	else if (wqe->opcode == URXE_WR_REG_MR)
		fast_reg_fields(s, &wqe->fast_reg);
	if (qp->type == URXE_QPT_UD && wqe->kind != WR_MALFORMED)
		state_require(s, qp->qpn != URXE_QPN_GSI || wqe->pkey_index < URXE_MAX_PKEYS);
}

static void send_segments_fields(struct state_stream *s, const struct urxe_qp *qp,
				 struct send_wqe *wqe)
{
	struct urxe_seg *segs = (struct urxe_seg *)wqe->data;

	state_u32_max(s, &wqe->n_segs, qp->sq.max_sge);
	for (uint32_t i = 0; i < wqe->n_segs; i++)
		segment_fields(s, &segs[i]);
	if (s->restoring) {
		const uint64_t length = sge_length(segs, wqe->n_segs);

		/* An atomic uses only the first 8 bytes of its segments. */
		if (wqe->kind == WR_ATOMIC) {
			state_require(s, length >= sizeof(uint64_t));
			wqe->length = sizeof(uint64_t);
			return;
		}
		state_require(s, length <= URXE_MAX_MSG);
		wqe->length = state_ok(s) ? (uint32_t)length : 0;
	}
}

static void data_fields(struct state_stream *s, const struct urxe_qp *qp, struct send_wqe *wqe)
{
	if (!(wqe->flags & URXE_SEND_INLINE)) {
		send_segments_fields(s, qp, wqe);
		return;
	}
	state_require(s, wqe->kind == WR_SEND || wqe->kind == WR_WRITE ||
				 wqe->kind == WR_ATOMIC_WRITE);
	state_u32_max(s, &wqe->length, qp->cap.max_inline);
	state_bytes(s, wqe->data, wqe->length);
	wqe->n_segs = 0;
}

/* Whether urxe_post_send accepts the request's length and, for a FLUSH, its placement. */
static bool is_valid_request(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	switch (wqe->kind) {
	case WR_ATOMIC:
	case WR_ATOMIC_WRITE: return wqe->length == sizeof(uint64_t);
	case WR_FLUSH: return !wqe->length && wqe->flush.placement;
	case WR_MALFORMED:
	case WR_LOCAL: return !wqe->length;
	default: return wqe->length <= (qp->type == URXE_QPT_UD ? DATAGRAM_MAX : URXE_MAX_MSG);
	}
}

/* Restoring: sets the members that follow from the opcode. */
static void set_kind(struct state_stream *s, const struct urxe_qp *qp, struct send_wqe *wqe,
		     bool malformed)
{
	const struct wr_info *info;

	state_require(s, wqe->opcode < SQ_WR_OPCODES);
	info = &sq_wr_infos[state_ok(s) ? wqe->opcode : URXE_WR_SEND];
	state_require(s, info->types & 1 << qp->type);
	wqe->kind = malformed ? WR_MALFORMED : info->kind;
	if (malformed)
		state_require(s, wqe->opcode == URXE_WR_SEND);
	else if (wqe->opcode == URXE_WR_REG_MR && !qp->dev->attr.ops->page_list)
		state_fail(s, -EINVAL);
}

/* Restoring: number of PSNs of the request. A datagram has one, whatever the path MTU is now. */
static uint32_t count_packets(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	if (wqe->kind == WR_LOCAL || wqe->kind == WR_MALFORMED)
		return 0;
	return qp->type == URXE_QPT_UD ? 1 : qp_packets(qp, wqe->length);
}

static void request_fields(struct state_stream *s, const struct urxe_qp *qp, struct send_wqe *wqe)
{
	bool malformed = wqe->kind == WR_MALFORMED;

	state_u64(s, &wqe->wr_id);
	state_u32(s, &wqe->opcode);
	state_u32_max(s, &wqe->flags, FLAGS_ALL);
	state_bool(s, &malformed);
	if (s->restoring)
		set_kind(s, qp, wqe, malformed);
	state_bools(s, &wqe->again, &wqe->executed);
	state_require(s, !wqe->executed || wqe->kind == WR_LOCAL);
	state_u24(s, &wqe->first_psn);
	state_u32s(s, &wqe->imm, &wqe->invalidate_key, &wqe->rkey);
	state_u64(s, &wqe->remote_addr);
	variant_fields(s, qp, wqe);
	data_fields(s, qp, wqe);
	state_require(s, is_valid_request(qp, wqe));
	/* The saved device may have had a larger MTU than this device. */
	if (qp->type == URXE_QPT_UD && wqe->length > urxe_max_path_mtu(qp->dev->attr.mtu))
		state_fail(s, -EINVAL);
	if (s->restoring)
		wqe->n_packets = count_packets(qp, wqe);
}

/* Restoring: sets the recv_seq of all requests, counted back from that of the newest one. */
static void count_receives(struct urxe_qp *qp)
{
	uint32_t recv_seq = qp->req.recv_seq;

	for (uint32_t i = qp->sq.head; i != qp->sq.tail; i--) {
		struct send_wqe *wqe = sq_wqe(&qp->sq, i - 1);

		wqe->recv_seq = recv_seq;
		recv_seq -= wqe->kind != WR_MALFORMED && wr_takes_receive(wqe->opcode);
	}
}

void sends_record(struct state_stream *s, struct urxe_qp *qp)
{
	struct sq *sq = &qp->sq;
	uint32_t n = sq->head - sq->tail, unsent = sq->head - sq->cur;

	state_begin(s, STATE_RECORD_QP_SENDS);
	state_u32(s, &sq->head);
	n = state_count(s, n, REQUEST_MIN);
	state_require(s, n <= sq->max_wr);
	state_u32_max(s, &unsent, n);
	state_u32(s, &qp->req.recv_seq);
	if (s->restoring) {
		sq->tail = sq->head - (state_ok(s) ? n : 0);
		sq->cur = sq->head - (state_ok(s) ? unsent : 0);
	}
	for (uint32_t i = sq->tail; i != sq->head && state_ok(s); i++)
		request_fields(s, qp, sq_wqe(sq, i));
	if (s->restoring && state_ok(s))
		count_receives(qp);
	state_end(s);
}
