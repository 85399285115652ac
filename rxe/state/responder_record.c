/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The responder: expected PSN, message in progress, and answers that are due. */
#include "objects/qp.h"
#include "objects/rq.h"
#include "state/state_records.h"

#define SINCE_NEWEST_BIT 6

/* The next ACK. RESP_ACK_PAST is not an MSN, so the stream has a flag for it. */
static void ack_fields(struct state_stream *s, struct responder *resp)
{
	bool past = resp->ack_msn == RESP_ACK_PAST;
	uint32_t msn = past ? 0 : resp->ack_msn;

	state_u24(s, &resp->ack_psn);
	state_bool(s, &past);
	state_u24(s, &msn);
	state_bool(s, &resp->ack_due);
	if (!s->restoring)
		return;
	resp->ack_msn = past ? RESP_ACK_PAST : msn;
	state_require(s, !(past && resp->ack_due));
}

static void nak_fields(struct state_stream *s, struct responder *resp)
{
	state_bool(s, &resp->nak_sent);
	state_u8(s, &resp->nak);
	state_u24(s, &resp->nak_psn);
	state_bools(s, &resp->starved, &resp->silent);
	state_time(s, &resp->silent_since);
}

/*
 * Whether the message in progress fits its room. Not checked in the error state, which the QP can
 * leave only to RESET. Before RTR there must be no message, because the transition to RTR would
 * keep it.
 */
static bool has_valid_offset(const struct urxe_qp *qp)
{
	const struct responder *resp = &qp->resp;

	if (qp->attr.state == URXE_QPS_ERR)
		return true;
	if (qp->attr.state < URXE_QPS_RTR)
		return resp->message == RESP_NONE;
	if (resp->message == RESP_SEND || (resp->message == RESP_UNKNOWN && resp->resume.placing))
		return resp->has_wqe && resp->offset <= resp->wqe->length;
	return resp->message != RESP_WRITE || resp->offset <= resp->write.length;
}

/* State of a QP that an HCA executed before (responder/resume.h). */
static void resume_fields(struct state_stream *s, struct responder *resp)
{
	state_bool(s, &resp->resumed);
	if (!resp->resumed)
		return;
	state_u24s(s, &resp->resume.psn, &resp->resume.next);
	state_bool(s, &resp->resume.placing);
}

/* The flags since_newest are in the two upper bits of the message's kind, because the stream has no
 * field for them. */
static void message_kind(struct state_stream *s, struct responder *resp)
{
	uint8_t both = resp->message | (uint8_t)(resp->since_newest << SINCE_NEWEST_BIT);

	state_u8(s, &both);
	resp->message = both & ((1 << SINCE_NEWEST_BIT) - 1);
	resp->since_newest = both >> SINCE_NEWEST_BIT;
	state_require(s, resp->message <= (s->version < 2 ? RESP_WRITE : RESP_UNKNOWN));
}

static void message_fields(struct state_stream *s, struct urxe_qp *qp)
{
	struct responder *resp = &qp->resp;

	message_kind(s, resp);
	state_u32_max(s, &resp->offset, URXE_MAX_MSG);
	state_u64(s, &resp->write.va);
	state_u32(s, &resp->write.rkey);
	state_u32_max(s, &resp->write.length, URXE_MAX_MSG);
	if (s->version >= 2)
		resume_fields(s, resp);
	state_require(s, has_valid_offset(qp));
	state_require(s,
		      resp->message != RESP_UNKNOWN || (qp->type == URXE_QPT_RC && qp->header.len));
}

static bool has_answer(const struct urxe_qp *qp)
{
	const struct responder *resp = &qp->resp;

	return resp->nak || resp->ack_due || resp->starved || timer_armed(&qp->ack_timer);
}

void responder_record(struct state_stream *s, struct urxe_qp *qp)
{
	struct responder *resp = &qp->resp;

	state_begin(s, STATE_RECORD_QP_RESPONDER);
	state_u24s(s, &resp->psn, &resp->msn);
	message_fields(s, qp);
	ack_fields(s, resp);
	nak_fields(s, resp);
	state_bool(s, &resp->comm_est);
	timer_field(s, qp, &qp->ack_timer);
	/* Only a QP that has headers, that is a connected one, can answer. */
	state_require(s, qp->header.len || !has_answer(qp));
	state_end(s);
}
