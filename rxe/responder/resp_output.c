/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/resp_output.h"

#include "congestion/pacing.h"
#include "memory/mr.h"
#include "objects/device.h"
#include "objects/qp_counters.h"
#include "objects/rq.h"
#include "responder/acknowledge.h"
#include "responder/resp_resources.h"
#include "wire/aeth.h"
#include "wire/packet_build.h"

static void start_response(struct build *b, struct urxe_qp *qp, struct urxe_frame *frame,
			   uint8_t operation, uint32_t psn)
{
	struct build_bth bth = {
		.opcode = URXE_SERVICE_RC | operation,
		.dest_qpn = qp->attr.dest_qpn,
		.psn = psn,
		.pkey = qp->dev->pkeys[qp->attr.pkey_index],
	};

	build_start(b, frame, &qp->header, &bth);
}

/*
 * The syndrome of an ACK. A SRQ gives no credits (IBA 9.7.7.2.5). Nor does a responder that does
 * not know its MSN after a take-over from an HCA, because credits count from the MSN. The receive
 * request of a message in progress counts as free until the MSN covers the message.
 */
static uint8_t ack_syndrome(const struct urxe_qp *qp)
{
	if (!qp->rq->qp || qp->resp.resumed)
		return AETH_ACK | AETH_CREDITS_INVALID;
	return AETH_ACK | aeth_credit_code(rq_available(qp->rq) + qp->resp.has_wqe);
}

static void output_acknowledge(struct urxe_qp *qp, struct urxe_frame *frame, uint8_t syndrome,
			       uint32_t psn, uint32_t msn)
{
	struct build b;

	start_response(&b, qp, frame, URXE_OP_ACKNOWLEDGE, psn);
	b.gso_mark = qp->dev->gso;
	build_aeth(&b, syndrome, msn);
	build_finish(&b, qp, 0);
}

static uint8_t read_operation(const struct resp_resource *res)
{
	bool first = res->next_psn == res->start_psn, last = res->next_psn == res->end_psn;

	if (first)
		return last ? URXE_OP_READ_RESPONSE_ONLY : URXE_OP_READ_RESPONSE_FIRST;
	return last ? URXE_OP_READ_RESPONSE_LAST : URXE_OP_READ_RESPONSE_MIDDLE;
}

/* The region was deregistered during the READ: a NAK replaces the response. If the READ is a
 * duplicate, drops it instead: its requester got the data before the key was withdrawn. */
static void fail_read(struct urxe_qp *qp, struct resp_resource *res)
{
	uint32_t psn = res->next_psn;

	if (res->repeated) {
		qp_drop(qp, URXE_DROP_DUPLICATE);
		resource_answered(qp, res);
		return;
	}
	qp_clear_responses(qp);
	resp_refuse(qp, AETH_NAK_REMOTE_ACCESS);
	qp->resp.nak_psn = psn;
}

static bool output_read(struct urxe_qp *qp, struct resp_resource *res, struct urxe_frame *frame)
{
	uint32_t offset = (uint32_t)urxe_psn_diff(res->next_psn, res->first_psn) * qp->mtu;
	uint32_t rest = res->end - offset;
	struct mr_range range = {
		.qpn = qp->qpn,
		.pd = qp->pd,
		.key = res->rkey,
		.addr = res->va + offset,
		.length = rest < qp->mtu ? rest : qp->mtu,
		.access = URXE_ACCESS_REMOTE_READ,
	};
	uint8_t operation = read_operation(res);
	struct build b;

	start_response(&b, qp, frame, operation, res->next_psn);
	if (!res->repeated)
		build_allow_gso(&b, qp);
	if (urxe_opcodes[operation].flags & URXE_OPF_AETH)
		build_aeth(&b, ack_syndrome(qp), res->msn);
	if (range.length && !mr_read(qp->dev, &range, b.payload)) {
		fail_read(qp, res);
		return false;
	}
	build_finish(&b, qp, (uint32_t)range.length);
	pace_sent(qp, frame->len);
	if (res->next_psn == res->end_psn)
		resource_answered(qp, res);
	else
		res->next_psn = urxe_psn_add(res->next_psn, 1);
	return true;
}

static void output_atomic(struct urxe_qp *qp, struct resp_resource *res, struct urxe_frame *frame)
{
	struct build b;

	start_response(&b, qp, frame, URXE_OP_ATOMIC_ACKNOWLEDGE, res->first_psn);
	build_aeth(&b, ack_syndrome(qp), res->msn);
	build_atomic_ack(&b, res->original);
	build_finish(&b, qp, 0);
	resource_clear_pending(qp, res);
}

/* The answer to a FLUSH or ATOMIC WRITE (Annex A19): a READ response without payload. */
static void output_empty_response(struct urxe_qp *qp, struct resp_resource *res,
				  struct urxe_frame *frame)
{
	struct build b;

	start_response(&b, qp, frame, URXE_OP_READ_RESPONSE_ONLY, res->first_psn);
	build_aeth(&b, ack_syndrome(qp), res->msn);
	build_finish(&b, qp, 0);
	resource_clear_pending(qp, res);
}

static bool output_response(struct urxe_qp *qp, struct resp_resource *res, struct urxe_frame *frame)
{
	switch (res->kind) {
	case RES_READ: return output_read(qp, res, frame);
	case RES_ATOMIC: output_atomic(qp, res, frame); return true;
	default: output_empty_response(qp, res, frame); return true;
	}
}

/* The packet being sent acknowledges all executed requests. */
static void clear_ack_due(struct urxe_qp *qp)
{
	qp->resp.ack_due = false;
	qp->resp.silent = false;
}

/* An ACK up to `psn` is being sent. */
static void note_answered(struct urxe_qp *qp, uint32_t psn)
{
	struct responder *resp = &qp->resp;

	if (resp_is_in_message(qp) && urxe_psn_add(psn, 1) == resp->psn)
		resp->since_newest |= RESP_ANSWERED;
}

static void output_nak(struct urxe_qp *qp, struct urxe_frame *frame)
{
	/* A receive request was posted since the refusal. */
	const bool outdated = AETH_TYPE(qp->resp.nak) == AETH_RNR_NAK && !qp->resp.starved;

	output_acknowledge(qp, frame, qp->resp.nak, qp->resp.nak_psn, qp->resp.msn);
	note_answered(qp, urxe_psn_add(qp->resp.nak_psn, URXE_PSN_MASK));
	qp->resp.nak = 0;
	clear_ack_due(qp);
	if (outdated)
		resp_ack_again(qp);
}

/* The ACK's PSN is never that of a READ or an atomic, which only their responses answer. If such a
 * response was lost, Linux' rxe would take the ACK for it, and complete the READ without data. */
static void output_ack(struct urxe_qp *qp, struct urxe_frame *frame)
{
	uint8_t syndrome;

	clear_ack_due(qp);
	syndrome = ack_syndrome(qp);
	qp->resp.starved = syndrome == (AETH_ACK | aeth_credit_code(0));
	output_acknowledge(qp, frame, syndrome, qp->resp.ack_psn, qp->resp.ack_msn);
	note_answered(qp, qp->resp.ack_psn);
	frame->acknowledges = true;
}

/* Whether to send a NAK now. A NAK of resp_repeat_and_nak (`nak` without `nak_sent`) waits for its
 * ACK; any other goes first, and the due ACK is dropped. */
static bool nak_is_next(const struct urxe_qp *qp)
{
	const bool of_repeat = qp->resp.nak == AETH_NAK_PSN_SEQUENCE && !qp->resp.nak_sent;

	return qp->resp.nak && !(of_repeat && qp->resp.ack_due);
}

/* Sends responses in the order of the requests: ACKs after READ responses (IBA 9.7.5.1.1). */
bool resp_output(struct urxe_qp *qp, struct urxe_frame *frame)
{
	struct resp_resource *res;

	while ((res = resource_next_pending(qp))) {
		if (res->kind == RES_READ && !pace_ready(qp))
			return false;
		if (output_response(qp, res, frame))
			return true;
	}
	if (nak_is_next(qp)) {
		output_nak(qp, frame);
	} else if (qp->resp.ack_due) {
		output_ack(qp, frame);
	} else {
		return false;
	}
	return true;
}
