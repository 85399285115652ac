/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/acknowledge.h"

#include "objects/completion.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "responder/resp_resources.h"
#include "wire/aeth.h"

/*
 * Time from the last repeated request to one more acknowledgement, ns: much longer than the
 * interval of packets of a busy sender, and shorter than common ACK timeouts.
 */
#define AGAIN_QUIET_NS 20000000
static void send_nak(struct urxe_qp *qp, uint8_t syndrome)
{
	qp->resp.nak = syndrome;
	qp->resp.nak_psn = qp->resp.psn;
	qp->resp.nak_sent = true;
	qp_schedule(qp);
}

void resp_ack(struct urxe_qp *qp)
{
	qp->resp.ack_due = true;
	qp_schedule(qp);
}

bool resp_is_in_message(const struct urxe_qp *qp)
{
	return qp->resp.message == RESP_SEND || qp->resp.message == RESP_WRITE;
}

void resp_ack_again(struct urxe_qp *qp)
{
	struct responder *resp = &qp->resp;

	if (resp_is_in_message(qp)) /* after ack_all_but_newest ack_psn may be an earlier PSN */
		resp->ack_psn = urxe_psn_add(resp->psn, URXE_PSN_MASK);
	if (resp->ack_msn != RESP_ACK_PAST)
		resp_ack(qp);
}

/* IBA 9.7.7.2.5 permits an ACK that only tells of more credits. Without such an ACK the requester
 * tries one message at a time, and waits for the RNR timer after each refused one. */
void resp_recv_posted(struct urxe_qp *qp)
{
	if (!qp->resp.starved || qp->attr.state == URXE_QPS_ERR || qp->dev->attr.go_back_n)
		return;
	qp->resp.starved = false;
	resp_ack_again(qp);
}

static enum urxe_event nak_event(uint8_t syndrome)
{
	switch (syndrome) {
	case AETH_NAK_PSN_SEQUENCE: return URXE_EVENT_NAK_SEQ_SENT;
	case AETH_NAK_INVALID_REQUEST: return URXE_EVENT_NAK_INVALID_SENT;
	case AETH_NAK_REMOTE_ACCESS: return URXE_EVENT_NAK_ACCESS_SENT;
	case AETH_NAK_REMOTE_OP: return URXE_EVENT_NAK_OP_SENT;
	default: return URXE_EVENT_NAK_RNR_SENT;
	}
}

static uint8_t syndrome_of(uint8_t refusal)
{
	switch (refusal) {
	case RESP_ACCESS_VIOLATION:
	case RESP_RECV_TOO_SHORT: return AETH_NAK_INVALID_REQUEST;
	case RESP_RECV_FAILED: return AETH_NAK_REMOTE_OP;
	default: return refusal;
	}
}

static void fail_refusing(struct urxe_qp *qp, uint8_t refusal)
{
	switch (refusal) {
	case RESP_RECV_TOO_SHORT:
	case RESP_RECV_FAILED: qp_error(qp); break;
	case RESP_ACCESS_VIOLATION:
	case AETH_NAK_REMOTE_ACCESS: qp_error_event(qp, URXE_ASYNC_QP_ACCESS_ERR); break;
	default: qp_error_event(qp, URXE_ASYNC_QP_REQ_ERR);
	}
}

void resp_refuse(struct urxe_qp *qp, uint8_t refusal)
{
	const uint8_t syndrome = syndrome_of(refusal);

	send_nak(qp, syndrome);
	qp_count(qp, nak_event(syndrome));
	qp->resp.starved |= AETH_TYPE(syndrome) == AETH_RNR_NAK;
	if (syndrome != AETH_NAK_PSN_SEQUENCE && AETH_TYPE(syndrome) != AETH_RNR_NAK)
		fail_refusing(qp, refusal);
}

/* Makes an ACK due of all packets of a message but the newest: the responder could have sent this
 * ACK one packet earlier. */
static void ack_all_but_newest(struct urxe_qp *qp)
{
	const uint32_t psn = urxe_psn_add(qp->resp.psn, URXE_PSN_MASK - 1);

	/* The PSN may be that of a READ, which no ACK may name. The HCA may have executed that
	 * READ, so that no resource is kept of it. */
	if (resource_find(qp, psn) ||
	    (qp->resp.resumed && urxe_psn_diff(psn, qp->resp.resume.psn) < 0))
		return;
	qp->resp.ack_psn = psn;
	resp_ack(qp);
}

/*
 * Whether to request the newest packet of a begun message. Linux' rxe that has stopped behind this
 * packet goes on only if the responder requests a packet that rxe has sent. So the newest packet
 * counts as lost, unless the peer may know that it has arrived.
 */
static bool is_newest_requested(const struct urxe_qp *qp)
{
	return resp_is_in_message(qp) && !(qp->resp.since_newest & RESP_ANSWERED);
}

void resp_repeat_and_nak(struct urxe_qp *qp)
{
	const bool again = is_newest_requested(qp);

	/* If the peer lacks the newest response, neither the NAK nor the ACK tells it so. */
	resource_repeat_newest(qp);
	if (again)
		ack_all_but_newest(qp);
	else
		resp_ack_again(qp);
	resp_refuse(qp, AETH_NAK_PSN_SEQUENCE);
	if (again)
		qp->resp.nak_psn = urxe_psn_add(qp->resp.psn, URXE_PSN_MASK);
	/* A peer with nothing outstanding ignores this NAK, so a later gap must get its own. */
	qp->resp.nak_sent = false;
}

void resp_fail_without_nak(struct urxe_qp *qp)
{
	qp->resp.nak = 0;
	qp_error_event(qp, URXE_ASYNC_QP_ACCESS_ERR);
}

/*
 * A requester repeats several requests in a row, and one ACK covers them all (IBA 9.7.5.1.2). So
 * the ACK waits for a repeated request that asks for it, or for the timer. Linux' rxe makes the
 * timer necessary: if it gets an ACK in the middle of its repetition, it waits for another ACK
 * without asking for it (docs/recovery.md).
 */
void resp_start_ack_timer(struct urxe_qp *qp)
{
	struct urxe_dev *dev = qp->dev;

	if (!dev->attr.go_back_n)
		timer_set(&dev->timers, &qp->ack_timer, dev->now + AGAIN_QUIET_NS);
}

/*
 * Linux' rxe may stop in the middle of a message until its timeout, and then goes on only if a
 * packet that it has sent is not acknowledged. If it has stopped while it repeated requests, the
 * responder does not know which packet it has sent last.
 */
void resp_ack_at_last(struct urxe_qp *qp)
{
	const struct responder *resp = &qp->resp;

	if (resp->message == RESP_NONE)
		resp_ack_again(qp);
	else if (resp_is_in_message(qp) && !(resp->since_newest & RESP_CAME_AGAIN))
		ack_all_but_newest(qp);
}
