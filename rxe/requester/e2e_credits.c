/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requester/e2e_credits.h"

#include "objects/qp.h"
#include "wire/aeth.h"

void credit_take(struct urxe_qp *qp, uint8_t code)
{
	struct credit *credit = &qp->req.credit;

	if (code == AETH_CREDITS_INVALID) {
		credit->limited = false;
	} else if (!credit->limited) {
		credit->limited = true;
		credit->limit = credit->acked_seq + aeth_credits(code);
	} else {
		credit_take_more(qp, code, false);
	}
	qp_schedule(qp);
}

/* The limit never falls: an older acknowledgement does not take credits back. */
bool credit_take_more(struct urxe_qp *qp, uint8_t code, bool refused)
{
	struct credit *credit = &qp->req.credit;
	uint32_t limit = credit->acked_seq + aeth_credits(code);

	if (code == AETH_CREDITS_INVALID || !(credit->limited || refused) ||
	    (int32_t)(limit - (credit->limited ? credit->limit : credit->acked_seq)) <= 0)
		return false;
	credit->limited = true;
	credit->limit = limit;
	qp_schedule(qp);
	return true;
}

static bool has_credit(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct credit *credit = &qp->req.credit;

	return !credit->limited || (int32_t)(wqe->recv_seq - credit->limit) <= 0 ||
	       !wr_takes_receive(wqe->opcode);
}

/* Whether the peer has acknowledged the request's first packet. Then it has a receive request for a
 * SEND, but perhaps none for a WRITE with immediate, which uses one up at its last packet. */
static bool is_accepted(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	return urxe_psn_diff(qp->req.una, wqe->first_psn) > 0;
}

bool credit_allows(const struct urxe_qp *qp, const struct send_wqe *wqe)
{
	const struct requester *req = &qp->req;

	return has_credit(qp, wqe) || req->una == req->psn || !req->asks_ack ||
	       is_accepted(qp, wqe);
}

bool credit_stops(const struct urxe_qp *qp, bool last)
{
	const struct send_wqe *wqe = sq_wqe(&qp->sq, qp->sq.cur);

	if (!has_credit(qp, wqe) && !is_accepted(qp, wqe))
		return true;
	return last && qp->sq.cur + 1 != qp->sq.head &&
	       !has_credit(qp, sq_wqe(&qp->sq, qp->sq.cur + 1));
}
