/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/resume.h"

#include <rxe/opcode.h>

#include "objects/completion.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "objects/rq.h"
#include "responder/acknowledge.h"
#include "responder/execute.h"
#include "responder/held_recv.h"
#include "responder/resp_resources.h"

/* Sets the message in progress: a SEND that has arrived up to `psn`, or none if the next message
 * begins there. False: the SEND's receive request is not known, or is too short. */
static bool continue_counted(struct urxe_qp *qp, uint32_t psn)
{
	struct responder *resp = &qp->resp;
	const uint32_t packets = (psn - resp->psn) & URXE_PSN_MASK;

	/* The message may have taken another request of a SRQ than the oldest. */
	if (packets && !qp->rq->qp && !resp->has_wqe)
		return false;
	if (packets && !hold_recv(qp))
		return false;
	if (packets && (uint64_t)packets * qp->mtu > resp->wqe->length)
		return false;
	resp->message = packets ? RESP_SEND : RESP_NONE;
	resp->offset = packets * qp->mtu;
	return true;
}

void resume_start(struct urxe_qp *qp, uint32_t psn, bool counted)
{
	struct responder *resp = &qp->resp;

	resp->message = RESP_NONE;
	resp->resumed = qp->type == URXE_QPT_RC && !(counted && continue_counted(qp, psn));
	if (resp->resumed)
		resp->message = RESP_UNKNOWN;
	resp->psn = psn;
	resp->resume = (struct resume){.psn = psn};
	/* psn - 1 may be that of a READ, which no ACK may name. */
	resp->ack_psn = urxe_psn_add(psn, URXE_PSN_MASK);
	resp->ack_msn = resp->resumed ? RESP_ACK_PAST : resp->msn;
}

/* A repeated request ends at `last`, before the expected PSN: the HCA has executed this request and
 * all earlier ones. Answers the request by a READ response or an ACK, or drops it. */
static void handle_complete(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags,
			    uint32_t last)
{
	struct responder *resp = &qp->resp;

	resp->resume.placing = false;
	if (urxe_psn_add(last, 1) == resp->psn)
		resp->message = RESP_NONE;
	if (flags & URXE_OPF_READ && resume_read(qp, p)) {
		qp_count(qp, URXE_EVENT_DUP_REQUEST);
	} else if (flags & URXE_OPF_RESOURCE) {
		qp_drop(qp, URXE_DROP_DUPLICATE);
	} else {
		resp->ack_psn = last;
		resp->ack_msn = resp->msn;
		resp_ack(qp);
		qp_count(qp, URXE_EVENT_DUP_REQUEST);
	}
}

/* --- SENDs. */

/* Places the payload of a repeated SEND packet. If it does not fit the receive request, that
 * request belongs to a later message. */
static void place_send_again(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct responder *resp = &qp->resp;
	struct resume *resume = &resp->resume;

	resume->placing = !p->reference && hold_recv(qp) &&
			  p->payload_len <= resp->wqe->length - resp->offset &&
			  resp_scatter(qp, resp->offset, p->payload, p->payload_len);
	resp->offset += resume->placing ? p->payload_len : 0;
	resume->next = urxe_psn_add(p->psn, 1);
}

static bool continues_send(const struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	const struct resume *resume = &qp->resp.resume;

	return resume->placing && flags & URXE_OPF_SEND && !(flags & URXE_OPF_START) &&
	       p->psn == resume->next;
}

/* --- Requests before the expected PSN. */

static uint32_t last_psn(const struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	uint32_t n = p->reference ? p->reference->packets : 1;

	if (flags & URXE_OPF_RETH && flags & (URXE_OPF_WRITE | URXE_OPF_READ) &&
	    p->reth.length <= URXE_MAX_MSG)
		n = qp_packets(qp, p->reth.length);
	return urxe_psn_add(p->psn, n - 1);
}

/* A repeated first packet, before the expected PSN. True: its message is the one in progress, and
 * starts anew. False: this function has answered the packet, or counted it as dropped. If it begins
 * a longer SEND, its payload is placed again. */
static bool start_again(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	struct responder *resp = &qp->resp;
	const uint32_t last = last_psn(qp, p, flags);

	resp->resume.placing = false;
	if (flags & URXE_OPF_WRITE && urxe_psn_diff(last, resp->psn) >= 0) {
		resp->psn = p->psn;
		resp->message = RESP_NONE;
		return true;
	}
	if (flags & URXE_OPF_END) {
		handle_complete(qp, p, flags, last);
		return false;
	}
	qp_drop(qp, URXE_DROP_DUPLICATE);
	if (flags & URXE_OPF_SEND) {
		resp->offset = 0;
		place_send_again(qp, p);
	}
	return false;
}

static void continue_again(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	if (flags & URXE_OPF_END) {
		handle_complete(qp, p, flags, last_psn(qp, p, flags));
		return;
	}
	if (continues_send(qp, p, flags))
		place_send_again(qp, p);
	qp_drop(qp, URXE_DROP_DUPLICATE);
}

bool resume_request(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	struct responder *resp = &qp->resp;
	const int32_t ahead = urxe_psn_diff(p->psn, resp->psn);

	if (ahead < 0 && flags & URXE_OPF_START)
		return start_again(qp, p, flags);
	if (ahead < 0) {
		continue_again(qp, p, flags);
		return false;
	}
	if (!ahead && flags & URXE_OPF_START) {
		resp->message = RESP_NONE;
		return true;
	}
	if (!ahead && continues_send(qp, p, flags)) {
		resp->message = RESP_SEND;
		return true;
	}
	qp_drop(qp, URXE_DROP_OUT_OF_SEQUENCE);
	return false;
}

/* --- READs. A repeated READ may be a part of the original. */

bool resume_read(struct urxe_qp *qp, const struct urxe_packet *p)
{
	const struct responder *resp = &qp->resp;
	const uint32_t last = last_psn(qp, p, URXE_OPF_READ | URXE_OPF_RETH);
	struct resp_resource *res;

	if (!resp->resumed || urxe_psn_diff(last, resp->resume.psn) >= 0 || !resp_may_read(qp, p))
		return false;
	res = resource_new(qp);
	if (!res)
		return false;
	*res = (struct resp_resource){
		.rkey = p->reth.rkey,
		.va = p->reth.va,
		.length = p->reth.length,
		.msn = resp->msn,
		.first_psn = p->psn,
		.last_psn = last,
	};
	resource_keep_slot(qp, res);
	resource_answer_read(qp, res, res->first_psn, res->length);
	return true;
}
