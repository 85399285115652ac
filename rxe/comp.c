/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "comp.h"

#include <rxe/opcode.h>

#include "aeth.h"
#include "dev.h"
#include "qp.h"
#include "req.h"

#define RNR_RETRY_WITHOUT_END 7

/* --- Progress of the oldest unacknowledged PSN. */

/* Acknowledged packets need not be sent again: after a rewind, the sender jumps ahead. */
static void catch_up(struct urxe_qp *qp)
{
	struct requester *req = &qp->req;

	if (urxe_psn_diff(req->psn, req->una) >= 0)
		return;
	req->psn = req->una;
	req->rd_atomic = 0;
	qp->sq.cur = qp->sq.tail;
}

/* Request `tail` waits for the error that its turn brings. */
static void check_error(struct urxe_qp *qp)
{
	if (!qp->req.error || qp->sq.cur != qp->sq.tail)
		return;
	req_fail(qp, qp->req.error);
}

static void advance(struct urxe_qp *qp, uint32_t una)
{
	struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.tail);

	req->una = una;
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->implied_nak = false;
	if (una == urxe_psn_add(wqe->first_psn, wqe->n_packets))
		req_complete(qp, URXE_WC_SUCCESS);
	req_complete_executed(qp);
}

/*
 * Everything before `upto` is acknowledged (IBA 9.7.5.1.2: coalesced). False where
 * a READ or atomic in between still lacks its response.
 */
static bool acknowledge(struct urxe_qp *qp, uint32_t upto)
{
	while (qp->attr.state != URXE_QPS_ERR && urxe_psn_diff(upto, qp->req.una) > 0) {
		const struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.tail);
		uint32_t end = urxe_psn_add(wqe->first_psn, wqe->n_packets);

		if (wr_is_rd_atomic(wqe->opcode))
			return false;
		advance(qp, urxe_psn_diff(upto, end) < 0 ? upto : end);
	}
	return true;
}

/* After any response that moved something. */
static void progress(struct urxe_qp *qp)
{
	catch_up(qp);
	check_error(qp);
	req_restart_timer(qp);
	req_check_drained(qp);
	qp_schedule(qp);
}

/* --- Failure and recovery. */

static void retry(struct urxe_qp *qp)
{
	if (!qp->req.retries) {
		req_fail(qp, URXE_WC_RETRY_EXC_ERR);
		return;
	}
	qp->req.retries--;
	req_rewind(qp);
	req_restart_timer(qp);
}

/* A later response shows that one was lost (IBA 9.7.6.1.2); asked for once, then time decides. */
static void implied_nak(struct urxe_qp *qp)
{
	catch_up(qp);
	if (qp->req.implied_nak)
		return;
	dev_count(qp->dev, URXE_EVENT_IMPLIED_NAK);
	retry(qp);
	qp->req.implied_nak = true;
}

static void rnr_nak(struct urxe_qp *qp, uint8_t timer_code)
{
	struct urxe_dev *dev = qp->dev;

	dev_count(dev, URXE_EVENT_NAK_RNR_RCVD);
	if (!qp->req.rnr_retries) {
		req_fail(qp, URXE_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (qp->req.rnr_retries != RNR_RETRY_WITHOUT_END)
		qp->req.rnr_retries--;
	req_rewind(qp);
	qp->req.rnr_wait = true;
	timer_set(&dev->timers, &qp->timer, dev->now + aeth_rnr_ns(timer_code));
}

static void fatal_nak(struct urxe_qp *qp, uint8_t syndrome)
{
	dev_count(qp->dev, URXE_EVENT_NAK_ERR_RCVD);
	switch (syndrome) {
	case AETH_NAK_INVALID_REQUEST: req_fail(qp, URXE_WC_REM_INV_REQ_ERR); break;
	case AETH_NAK_REMOTE_ACCESS: req_fail(qp, URXE_WC_REM_ACCESS_ERR); break;
	case AETH_NAK_REMOTE_OP: req_fail(qp, URXE_WC_REM_OP_ERR); break;
	default: req_fail(qp, URXE_WC_BAD_RESP_ERR); break;
	}
}

/* --- Responses. */

static void ack(struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (acknowledge(qp, urxe_psn_add(p->psn, 1)))
		progress(qp);
	else
		implied_nak(qp);
}

static bool is_retry_nak(const struct urxe_packet *p)
{
	return AETH_TYPE(p->aeth.syndrome) == AETH_RNR_NAK ||
	       p->aeth.syndrome == AETH_NAK_PSN_SEQUENCE;
}

static void nak(struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (!acknowledge(qp, p->psn)) {
		implied_nak(qp);
		return;
	}
	progress(qp);
	if (qp->attr.state == URXE_QPS_ERR)
		return;
	if (is_retry_nak(p) && urxe_psn_diff(p->psn, qp->req.psn) >= 0) {
		dev_drop(qp->dev, URXE_DROP_STALE_ACK); /* a copy: not sent again since the first */
	} else if (AETH_TYPE(p->aeth.syndrome) == AETH_RNR_NAK) {
		rnr_nak(qp, AETH_VALUE(p->aeth.syndrome));
	} else if (p->aeth.syndrome == AETH_NAK_PSN_SEQUENCE) {
		dev_count(qp->dev, URXE_EVENT_NAK_SEQ_RCVD);
		retry(qp);
	} else {
		fatal_nak(qp, p->aeth.syndrome);
	}
}

static bool place(const struct urxe_qp *qp, const struct send_wqe *wqe, uint32_t offset,
		  const void *data, uint32_t len)
{
	struct sge_list list = wqe_sge_list(wqe, qp->pd);

	return sge_scatter(qp->dev, &list, offset, data, len);
}

/* The response of the request at una is in place; was it the last that its request asked for? */
static void response_placed(struct urxe_qp *qp, const struct send_wqe *wqe)
{
	struct requester *req = &qp->req;
	uint32_t next = urxe_psn_add(req->una, 1);
	uint32_t pos = (uint32_t)urxe_psn_diff(next, wqe->first_psn);

	if ((pos == wqe->n_packets || pos % req_read_chunk(qp) == 0) && req->rd_atomic &&
	    urxe_psn_diff(next, req->psn) <= 0)
		req->rd_atomic--;
	advance(qp, next);
	progress(qp);
}

/* Its length, and whether it is the last of its request, follow from the PSN (IBA 9.7.5.2). */
static bool read_response_fits(const struct urxe_qp *qp, const struct send_wqe *wqe,
			       const struct urxe_packet *p, uint32_t pos)
{
	uint32_t rest = wqe->length - pos * qp->mtu;
	bool end = pos + 1 == wqe->n_packets || (pos + 1) % req_read_chunk(qp) == 0;

	return p->payload_len == (rest < qp->mtu ? rest : qp->mtu) &&
	       end == !!(urxe_opcodes[p->opcode].flags & URXE_OPF_END);
}

static void read_response(struct urxe_qp *qp, const struct send_wqe *wqe,
			  const struct urxe_packet *p)
{
	uint32_t pos = (uint32_t)urxe_psn_diff(p->psn, wqe->first_psn);

	if (!read_response_fits(qp, wqe, p, pos)) {
		dev_drop(qp->dev, URXE_DROP_BAD_RESPONSE);
		req_fail(qp, URXE_WC_BAD_RESP_ERR);
	} else if (!place(qp, wqe, pos * qp->mtu, p->payload, p->payload_len)) {
		dev_count(qp->dev, URXE_EVENT_LOCAL_ERROR);
		req_fail(qp, URXE_WC_LOC_PROT_ERR);
	} else {
		response_placed(qp, wqe);
	}
}

static void atomic_response(struct urxe_qp *qp, const struct send_wqe *wqe,
			    const struct urxe_packet *p)
{
	if (place(qp, wqe, 0, &p->atomic_ack, sizeof(p->atomic_ack))) {
		response_placed(qp, wqe);
	} else {
		dev_count(qp->dev, URXE_EVENT_LOCAL_ERROR);
		req_fail(qp, URXE_WC_LOC_PROT_ERR);
	}
}

/* READ and atomic responses acknowledge all requests before theirs (IBA 9.7.5.1.2). */
static void data_response(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	const struct send_wqe *wqe;

	if (!acknowledge(qp, p->psn)) {
		implied_nak(qp);
		return;
	}
	if (qp->attr.state == URXE_QPS_ERR) /* by a full CQ: nothing is outstanding any more */
		return;
	wqe = sq_wqe(&qp->sq, qp->sq.tail);
	if (flags & URXE_OPF_READ && wr_kind(wqe->opcode) == WR_READ) {
		read_response(qp, wqe, p);
	} else if (flags & URXE_OPF_ATOMIC && wr_kind(wqe->opcode) == WR_ATOMIC) {
		atomic_response(qp, wqe, p);
	} else {
		dev_drop(qp->dev, URXE_DROP_BAD_RESPONSE);
		progress(qp);
	}
}

void comp_packet(struct urxe_qp *qp, const struct urxe_packet *p)
{
	uint32_t flags = urxe_opcodes[p->opcode].flags;
	const struct requester *req = &qp->req;

	if (urxe_psn_diff(p->psn, req->una) < 0 || urxe_psn_diff(p->psn, req->sent) >= 0)
		dev_drop(qp->dev, URXE_DROP_STALE_ACK);
	else if (!(flags & URXE_OPF_ACK))
		data_response(qp, p, flags);
	else if (AETH_TYPE(p->aeth.syndrome) == AETH_ACK)
		ack(qp, p);
	else
		nak(qp, p);
}
