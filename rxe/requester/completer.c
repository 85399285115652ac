/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requester/completer.h"

#include <rxe/opcode.h>

#include "objects/completion.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "requester/copy_request.h"
#include "requester/e2e_credits.h"
#include "requester/requester.h"
#include "requester/retransmit.h"
#include "wire/aeth.h"

#define RNR_RETRY_WITHOUT_END 7

/* --- Progress of the oldest unacknowledged PSN. */

/* If a local error waits for request `tail`, fails this request. Drops the error of a request that
 * was acknowledged meanwhile: the packet that could not be sent again was not needed. */
static void check_local_error(struct urxe_qp *qp)
{
	int32_t behind;

	if (!qp->req.error)
		return;
	behind = (int32_t)(qp->sq.tail - qp->req.error_wqe);
	if (behind > 0) {
		qp->req.error = 0;
	} else if (!behind) {
		qp_count(qp, URXE_EVENT_LOCAL_ERROR);
		fail_send(qp, qp->req.error);
	}
}

static void advance_una_to(struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t una)
{
	struct requester *req = &qp->req;

	if (req->rtt.timing && urxe_psn_diff(una, req->rtt.psn) > 0)
		rtt_stop(&req->rtt, qp->dev->now);
	req->una = una;
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->nak_seen = false;
	req->missing = false;
	if (una == urxe_psn_add(wqe->first_psn, wqe->n_packets)) {
		req->credit.acked_seq = wqe->recv_seq;
		complete_send(qp, URXE_WC_SUCCESS);
	}
	complete_executed_sends(qp);
}

/* Moves una by one PSN of a READ or atomic request, whose response has arrived. */
static void advance_una_by_response(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	struct requester *req = &qp->req;
	uint32_t next = urxe_psn_add(req->una, 1);
	/* At most 2^23, which urxe_psn_diff cannot return. */
	uint32_t pos = (next - wqe->first_psn) & URXE_PSN_MASK;

	set_answered(req, req->una, false);
	if (pos == wqe->n_packets || pos % req_read_chunk(qp) == 0)
		req->rd_atomic--;
	advance_una_to(qp, wqe, next);
}

/* Moves una as far as acknowledgements and responses allow (IBA 9.7.5.1.2: coalesced). True: una
 * has moved. */
static bool advance_una(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;
	bool moved = false;

	while (req->una != req->psn) { /* an error in the loop ends it: the flush sets una to psn */
		const struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.tail);
		uint32_t end = urxe_psn_add(wqe->first_psn, wqe->n_packets);

		if (wqe_is_rd_atomic(wqe)) {
			if (!answered(req, req->una))
				break;
			advance_una_by_response(qp, wqe);
		} else {
			if (urxe_psn_diff(req->acked, req->una) <= 0)
				break;
			advance_una_to(qp, wqe,
				       urxe_psn_diff(req->acked, end) < 0 ? req->acked : end);
		}
		moved = true;
	}
	return moved;
}

/*
 * The peer has acknowledged all PSNs before `upto`, except data of READs and atomics. False: such
 * data is missing (IBA 9.7.6.1.2: an implied NAK), or the QP is in error.
 */
static bool acknowledge_before(struct urxe_qp *qp, uint32_t upto)
{
	struct requester *req = &qp->req;

	if (urxe_psn_diff(upto, req->acked) > 0)
		req->acked = upto;
	if (advance_una(qp)) {
		copy_prove(qp);
		check_local_error(qp);
		retransmit_progress(qp);
		req_check_drained(qp);
		qp_schedule(qp);
	}
	if (qp->attr.state == URXE_QPS_ERR)
		return false;
	if (urxe_psn_diff(req->acked, req->una) <= 0)
		return true;
	if (!retransmit_implied_nak(qp))
		fail_send(qp, URXE_WC_RETRY_EXC_ERR);
	return false;
}

static void handle_ack(struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (acknowledge_before(qp, urxe_psn_add(p->psn, 1)))
		retransmit_ack_arrived(qp);
}

/* --- NAKs. */

static void handle_rnr_nak(struct urxe_qp *qp, uint8_t timer_code)
{
	qp_count(qp, URXE_EVENT_NAK_RNR_RCVD);
	if (!qp->req.rnr_retries) {
		fail_send(qp, URXE_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (qp->req.rnr_retries != RNR_RETRY_WITHOUT_END)
		qp->req.rnr_retries--;
	retransmit_rnr_nak(qp, aeth_rnr_ns(timer_code));
}

static void handle_fatal_nak(struct urxe_qp *qp, uint8_t syndrome)
{
	switch (syndrome) {
	case AETH_NAK_INVALID_REQUEST:
		qp_count(qp, URXE_EVENT_NAK_INVALID_RCVD);
		fail_send(qp, URXE_WC_REM_INV_REQ_ERR);
		break;
	case AETH_NAK_REMOTE_ACCESS:
		qp_count(qp, URXE_EVENT_NAK_ACCESS_RCVD);
		fail_send(qp, URXE_WC_REM_ACCESS_ERR);
		break;
	case AETH_NAK_REMOTE_OP:
		qp_count(qp, URXE_EVENT_NAK_OP_RCVD);
		fail_send(qp, URXE_WC_REM_OP_ERR);
		break;
	default: fail_send(qp, URXE_WC_BAD_RESP_ERR); break;
	}
}

static bool is_retry_nak(const struct urxe_packet *p)
{
	return AETH_TYPE(p->aeth.syndrome) == AETH_RNR_NAK ||
	       p->aeth.syndrome == AETH_NAK_PSN_SEQUENCE;
}

static void handle_nak(struct urxe_qp *qp, const struct urxe_packet *p)
{
	/*
	 * If the responses to later requests have come, this NAK answers a repeated READ or atomic.
	 * The NAK has put the responder into the error state, so the requester must not repeat the
	 * request once more.
	 */
	if (!is_retry_nak(p) && p->psn == qp->req.una) {
		handle_fatal_nak(qp, p->aeth.syndrome);
		return;
	}
	if (!acknowledge_before(qp, p->psn)) {
		if (is_retry_nak(p) && p->psn == qp->req.acked && qp->attr.state != URXE_QPS_ERR)
			retransmit_later_nak(qp);
		return;
	}
	if (is_retry_nak(p) && retransmit_is_repeated_nak(qp)) {
		qp_drop(qp, URXE_DROP_STALE_ACK);
	} else if (AETH_TYPE(p->aeth.syndrome) == AETH_RNR_NAK) {
		handle_rnr_nak(qp, AETH_VALUE(p->aeth.syndrome));
	} else if (p->aeth.syndrome == AETH_NAK_PSN_SEQUENCE) {
		qp_count(qp, URXE_EVENT_NAK_SEQ_RCVD);
		if (!retransmit_sequence_nak(qp))
			fail_send(qp, URXE_WC_RETRY_EXC_ERR);
	} else {
		handle_fatal_nak(qp, p->aeth.syndrome);
	}
}

/* --- Data. */

static bool place_data(const struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t offset,
		       const void *data, uint32_t len)
{
	struct sge_list list = wqe_sge_list(wqe, qp->pd);

	return sge_scatter(qp->dev, &list, offset, data, len);
}

/*
 * Whether the response fits its PSN, which determines the length of a READ response and whether it
 * is the last one (IBA 9.7.5.2). If a part of the READ was requested again, any response may be the
 * last one.
 */
static bool is_read_response_valid(const struct urxe_qp *qp, const struct send_wqe *wqe,
				   const struct urxe_packet *p, uint32_t pos)
{
	uint32_t rest = wqe->length - pos * qp->mtu;
	bool end = pos + 1 == wqe->n_packets || (pos + 1) % req_read_chunk(qp) == 0;
	bool says_end = urxe_opcodes[p->opcode].flags & URXE_OPF_END;

	return p->payload_len == (rest < qp->mtu ? rest : qp->mtu) &&
	       (end == says_end || (says_end && wqe->again));
}

/* Copies the data of a response to the segments of its request. Returns the request's status:
 * BAD_RESP_ERR if the response does not fit the request, LOC_PROT_ERR if a segment cannot be
 * written. */
static enum urxe_wc_status place_response(const struct urxe_qp *qp, const struct send_wqe *wqe,
					  const struct urxe_packet *p)
{
	uint32_t pos = (uint32_t)urxe_psn_diff(p->psn, wqe->first_psn);
	enum wr_kind kind = wqe->kind;
	bool placed;

	if (kind == WR_ATOMIC)
		placed = place_data(qp, wqe, 0, &p->atomic_ack, sizeof(p->atomic_ack));
	else if (kind != WR_READ)
		placed = true;
	else if (is_read_response_valid(qp, wqe, p, pos))
		placed = place_data(qp, wqe, pos * qp->mtu, p->payload, p->payload_len);
	else
		return URXE_WC_BAD_RESP_ERR;
	return placed ? URXE_WC_SUCCESS : URXE_WC_LOC_PROT_ERR;
}

/* The outstanding request that psn belongs to; *index: its index in the send queue. */
static const struct send_wqe *find_request(const struct urxe_qp *qp, uint32_t psn, uint32_t *index)
{
	const struct send_wqe *wqe;

	*index = qp->sq.tail;
	while (wqe = sq_wqe(&qp->sq, *index),
	       urxe_psn_diff(psn, urxe_psn_add(wqe->first_psn, wqe->n_packets)) >= 0)
		++*index;
	return wqe;
}

/* Counts the error, and fails the request if it is the oldest, because only the oldest can fail.
 * The response of a later request counts as missing: the peer sends it again, and the request fails
 * when it has become the oldest. */
static void fail_response(struct urxe_qp *qp, uint32_t index, enum urxe_wc_status status)
{
	if (status == URXE_WC_BAD_RESP_ERR)
		qp_drop(qp, URXE_DROP_BAD_RESPONSE);
	else
		qp_count(qp, URXE_EVENT_LOCAL_ERROR);
	if (index == qp->sq.tail)
		fail_send(qp, status);
}

/* Whether the packet answers this kind of request; an empty READ response answers FLUSH and ATOMIC
 * WRITE (Annex A19). */
static bool is_answer(const struct urxe_packet *p, enum wr_kind kind)
{
	switch (kind) {
	case WR_READ: return urxe_opcodes[p->opcode].flags & URXE_OPF_READ;
	case WR_ATOMIC: return urxe_opcodes[p->opcode].flags & URXE_OPF_ATOMIC;
	case WR_FLUSH:
	case WR_ATOMIC_WRITE:
		return URXE_OPCODE_OPERATION(p->opcode) == URXE_OP_READ_RESPONSE_ONLY &&
		       !p->payload_len;
	default: return false;
	}
}

/* Places the data of a READ or atomic response. The response also acknowledges all requests before
 * the one that it answers (IBA 9.7.5.1.2). */
static void handle_data_response(struct urxe_qp *qp, const struct urxe_packet *p)
{
	const struct send_wqe *wqe;
	enum urxe_wc_status status;
	uint32_t index;

	wqe = find_request(qp, p->psn, &index);
	if (!is_answer(p, wqe->kind)) {
		qp_drop(qp, URXE_DROP_BAD_RESPONSE);
		return;
	}
	if (answered(&qp->req, p->psn)) {
		qp_drop(qp, URXE_DROP_STALE_ACK);
		return;
	}
	status = place_response(qp, wqe, p);
	if (status == URXE_WC_SUCCESS)
		set_answered(&qp->req, p->psn, true);
	acknowledge_before(qp, p->psn);
	if (status != URXE_WC_SUCCESS && qp->attr.state != URXE_QPS_ERR)
		fail_response(qp, index, status);
}

/* Handles a packet that answers no outstanding PSN. True: the packet repeats the newest ACK with
 * more credits: the peer has receive requests again, so a wait for the RNR timer ends. False: the
 * caller drops the packet. */
static bool take_repeated_ack(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	if (!(flags & URXE_OPF_ACK) || AETH_TYPE(p->aeth.syndrome) != AETH_ACK ||
	    urxe_psn_add(p->psn, 1) != qp->req.una ||
	    !credit_take_more(qp, AETH_VALUE(p->aeth.syndrome), qp->req.rnr_wait))
		return false;
	retransmit_end_rnr_wait(qp);
	return true;
}

static void handle_response(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	if (!(flags & URXE_OPF_ACK))
		handle_data_response(qp, p);
	else if (AETH_TYPE(p->aeth.syndrome) == AETH_ACK)
		handle_ack(qp, p);
	else
		handle_nak(qp, p);
	if (flags & URXE_OPF_AETH && AETH_TYPE(p->aeth.syndrome) == AETH_ACK)
		credit_take(qp, AETH_VALUE(p->aeth.syndrome));
}

void comp_packet(struct urxe_qp *qp, const struct urxe_packet *p)
{
	uint32_t flags = urxe_opcodes[p->opcode].flags;
	const struct requester *req = &qp->req;

	if (urxe_psn_diff(p->psn, req->una) >= 0 && urxe_psn_diff(p->psn, req->psn) < 0)
		handle_response(qp, p, flags);
	else if (!take_repeated_ack(qp, p, flags))
		qp_drop(qp, URXE_DROP_STALE_ACK);
}

void comp_retransmit_timer(struct urxe_qp *qp)
{
	if (!retransmit_timer(qp))
		fail_send(qp, URXE_WC_RETRY_EXC_ERR);
}
