/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/duplicate.h"

#include <rxe/opcode.h>

#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "responder/acknowledge.h"
#include "responder/resp_resources.h"
#include "responder/resume.h"

/* Longest time that duplicates stay without an ACK, ns. If a requester with a short ACK timeout
 * repeats so often that the timer of acknowledge.c never expires, it would run out of retries. */
#define AGAIN_MAX_NS 4000000

/* Makes the response due again. A repeated READ usually asks for the end of the original from some
 * packet on (IBA 9.7.5.1.4); this function accepts any part. False: the packet asks for no part of
 * the original, or too many repetitions are due. */
static bool repeat_read(struct urxe_qp *qp, struct resp_resource *res, const struct urxe_packet *p)
{
	uint64_t offset = (uint64_t)urxe_psn_diff(p->psn, res->first_psn) * qp->mtu;

	if (res->kind != RES_READ || p->reth.rkey != res->rkey || p->reth.va != res->va + offset ||
	    offset + p->reth.length > res->length)
		return false;
	return resource_repeat_read(qp, res, p->psn, p->reth.length);
}

static uint32_t resource_flag(const struct resp_resource *res)
{
	static const uint32_t flags[] = {
		[RES_READ] = URXE_OPF_READ,
		[RES_ATOMIC] = URXE_OPF_ATOMIC,
		[RES_FLUSH] = URXE_OPF_FLUSH,
		[RES_ATOMIC_WRITE] = URXE_OPF_ATOMIC_WRITE,
	};

	return flags[res->kind];
}

/* Makes the response due again, without a second execution: the first result is the answer (Annex
 * A19). False: the kept request is of another kind. */
static bool repeat_result(struct urxe_qp *qp, struct resp_resource *res, uint32_t flags)
{
	if (!(flags & resource_flag(res)))
		return false;
	res->repeated = true;
	resource_set_pending(qp, res);
	return true;
}

/* Whether the responder has sent no ACK for AGAIN_MAX_NS, counted from the first unanswered
 * duplicate. The network may have lost each repeated packet that asks for an ACK. */
static bool is_silent_too_long(struct responder *resp, uint64_t now)
{
	if (!resp->silent)
		resp->silent_since = now;
	resp->silent = true;
	return now - resp->silent_since >= AGAIN_MAX_NS;
}

static void ack_duplicate(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct urxe_dev *dev = qp->dev;

	if (p->ack_req || dev->attr.go_back_n || is_silent_too_long(&qp->resp, dev->now))
		resp_ack_again(qp);
	resp_start_ack_timer(qp);
}

void resp_duplicate(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	struct resp_resource *res;
	bool answered = true;

	if (resp_is_in_message(qp))
		qp->resp.since_newest |= RESP_CAME_AGAIN;
	if (flags & URXE_OPF_RESOURCE) {
		res = resource_find(qp, p->psn);
		if (!res)
			answered = flags & URXE_OPF_READ && resume_read(qp, p);
		else if (flags & URXE_OPF_READ)
			answered = repeat_read(qp, res, p);
		else
			answered = repeat_result(qp, res, flags);
	} else {
		ack_duplicate(qp, p);
	}
	if (answered)
		qp_count(qp, URXE_EVENT_DUP_REQUEST);
	else
		qp_drop(qp, URXE_DROP_DUPLICATE);
}
