/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/execute.h"

#include <rxe/opcode.h>

#include "memory/fast_mr.h"
#include "memory/mr.h"
#include "objects/completion.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "objects/rq.h"
#include "responder/acknowledge.h"
#include "responder/flush_atomic_write.h"
#include "responder/held_recv.h"
#include "responder/resp_resources.h"
#include "wire/aeth.h"

/* Functions that return uint8_t return what resp_execute returns: 0 for success, a NAK's syndrome,
 * enum resp_refusal, RESP_DROPPED or RESP_POSTPONED. */

/* Returns a NAK unless the request starts a message, or continues the one in progress (IBA
 * 9.7.4.1.3). */
static uint8_t check_sequence(const struct urxe_qp *qp, uint32_t flags)
{
	uint8_t message = qp->resp.message;

	if (flags & URXE_OPF_START)
		return message == RESP_NONE ? 0 : AETH_NAK_INVALID_REQUEST;
	if (message == (flags & URXE_OPF_SEND ? RESP_SEND : RESP_WRITE))
		return 0;
	return AETH_NAK_INVALID_REQUEST;
}

/* Number of PSNs of the packet. */
static uint32_t packets_of(const struct urxe_packet *p)
{
	return p->reference ? p->reference->packets : 1;
}

/* Returns 0, or a NAK for a wrong length. First and middle packets are full, last packets are not
 * empty (IBA 9.7.4.1.6). The same rules hold for the packets that one reference stands for. */
static uint8_t check_length(const struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	uint64_t n = packets_of(p), most = n * qp->mtu;
	bool may_be_empty = flags & URXE_OPF_START && n == 1;
	bool ok;

	if (!(flags & URXE_OPF_END))
		ok = p->payload_len == most;
	else
		ok = p->payload_len <= most && (p->payload_len > most - qp->mtu || may_be_empty);
	return n && ok ? 0 : AETH_NAK_INVALID_REQUEST;
}

/* The right (enum urxe_access) that the QP needs for the request. */
static uint32_t wanted_access(const struct urxe_packet *p, uint32_t flags)
{
	if (flags & (URXE_OPF_WRITE | URXE_OPF_ATOMIC_WRITE))
		return URXE_ACCESS_REMOTE_WRITE;
	if (flags & URXE_OPF_READ)
		return URXE_ACCESS_REMOTE_READ;
	if (flags & URXE_OPF_ATOMIC)
		return URXE_ACCESS_REMOTE_ATOMIC;
	return flags & URXE_OPF_FLUSH ? place_flush_access(p) : 0;
}

/* Refuses an operation that the QP does not allow as an unsupported one (IBA table 59). */
static uint8_t check_allowed(const struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	return wanted_access(p, flags) & ~qp->attr.access ? AETH_NAK_INVALID_REQUEST : 0;
}

static uint8_t rnr_syndrome(const struct urxe_qp *qp)
{
	return AETH_RNR_NAK | qp->attr.min_rnr_timer;
}

/* Moves the expected PSN over n executed packets. */
static void advance_psn(struct urxe_qp *qp, uint32_t n, uint32_t flags, enum resp_message message)
{
	struct responder *resp = &qp->resp;
	bool end = flags & URXE_OPF_END;

	resp->ack_psn = urxe_psn_add(resp->psn, n - 1);
	resp->psn = urxe_psn_add(resp->psn, n);
	resp->message = end ? RESP_NONE : message;
	resp->since_newest = 0;
	if (end)
		resp->msn = urxe_psn_add(resp->msn, 1);
	resp->ack_msn = resp->msn;
}

/* Completes the receive request of a message. False: the completion is lost, and the QP is in
 * error. */
static bool complete_message(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	bool imm = flags & URXE_OPF_IMM, inv = flags & URXE_OPF_IETH;
	struct urxe_wc wc = {
		.status = URXE_WC_SUCCESS,
		.opcode = flags & URXE_OPF_SEND ? URXE_WC_RECV : URXE_WC_RECV_RDMA_WITH_IMM,
		.byte_len = qp->resp.offset,
		.imm = p->imm,
		.invalidated_key = p->ieth_rkey,
		.src_qpn = qp->attr.dest_qpn,
		.flags = (imm ? URXE_WC_WITH_IMM : 0) | (inv ? URXE_WC_WITH_INV : 0),
		.solicited = p->solicited,
	};

	complete_recv(qp, &wc);
	return qp->attr.state != URXE_QPS_ERR;
}

/* Bytes that a SEND may have: the receive request's, at most 2^31 (IBA 9.7.7.1). */
static uint32_t receive_room(const struct responder *resp)
{
	return resp->wqe->length < URXE_MAX_MSG ? resp->wqe->length : URXE_MAX_MSG;
}

static bool call_pull(struct urxe_dev *dev, const struct urxe_reference *reference,
		      const struct urxe_extent *to, uint32_t n)
{
	bool pulled = dev->attr.ops->pull && dev->attr.ops->pull(dev->attr.ctx, reference, to, n);

	return HAS_RECORDING(dev) ? record_answer(dev, QUESTION_PULL, pulled) : pulled;
}

/*
 * Copies a referenced payload to the receive buffer; RESP_DROPPED: a part could not be copied. The
 * receive buffer belongs to the engine until its completion, so a partial copy does no harm. The
 * sender then repeats the message without a reference; errors of the receive request show up in
 * that execution.
 */
static uint8_t pull_send(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct urxe_extent to[URXE_REFERENCE_PIECES];
	uint32_t n = resp_extents(qp, qp->resp.offset, p->payload_len, to);

	if (n && call_pull(qp->dev, p->reference, to, n)) {
		qp_count_bytes(qp, URXE_EVENT_PULLED_BYTES, p->payload_len);
		return 0;
	}
	qp_drop(qp, URXE_DROP_UNREADABLE);
	return RESP_DROPPED;
}

static uint8_t place_send(struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (p->reference)
		return pull_send(qp, p);
	if (resp_scatter(qp, qp->resp.offset, p->payload, p->payload_len))
		return 0;
	qp_count(qp, URXE_EVENT_LOCAL_ERROR);
	fail_recv(qp, URXE_WC_LOC_PROT_ERR);
	return RESP_RECV_FAILED;
}

static uint8_t execute_send(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	struct responder *resp = &qp->resp;
	uint8_t syndrome;

	if (!hold_recv(qp))
		return rnr_syndrome(qp);
	if (flags & URXE_OPF_START)
		resp->offset = 0;
	if (p->payload_len > receive_room(resp) - resp->offset) {
		/* UC without a SRQ keeps the receive request for its next message. */
		if (qp->type == URXE_QPT_RC || !qp->rq->qp)
			fail_recv(qp, URXE_WC_LOC_LEN_ERR);
		return RESP_RECV_TOO_SHORT;
	}
	if (flags & URXE_OPF_IETH && !key_release(qp->dev, p->ieth_rkey))
		return RESP_POSTPONED;
	syndrome = place_send(qp, p);
	if (syndrome)
		return syndrome;
	if (flags & URXE_OPF_IETH && !key_invalidate(qp, p->ieth_rkey)) {
		qp_drop(qp, URXE_DROP_BAD_INVALIDATE);
		fail_recv(qp, URXE_WC_LOC_ACCESS_ERR);
		resp_fail_without_nak(qp);
		return RESP_DROPPED;
	}
	resp->offset += p->payload_len;
	if (flags & URXE_OPF_END && !complete_message(qp, p, flags))
		return AETH_NAK_REMOTE_OP;
	advance_psn(qp, packets_of(p), flags, RESP_SEND);
	return 0;
}

/* Whether the RETH's key permits the access. A zero-length message needs no valid key (IBA
 * 9.7.4.1.5, C9-88). */
static bool is_granted(const struct urxe_qp *qp, const struct urxe_packet *p, uint32_t access)
{
	struct mr_range range = {
		.qpn = qp->qpn,
		.pd = qp->pd,
		.key = p->reth.rkey,
		.addr = p->reth.va,
		.length = p->reth.length,
		.access = access,
	};

	return !range.length || mr_check(qp->dev, &range);
}

static uint8_t start_write(struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (p->reth.length > URXE_MAX_MSG)
		return RESP_ACCESS_VIOLATION;
	if (!is_granted(qp, p, URXE_ACCESS_REMOTE_WRITE))
		return AETH_NAK_REMOTE_ACCESS;
	qp->resp.offset = 0;
	qp->resp.write.va = p->reth.va;
	qp->resp.write.rkey = p->reth.rkey;
	qp->resp.write.length = p->reth.length;
	return 0;
}

static uint8_t place_write(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	struct responder *resp = &qp->resp;
	uint32_t rest = resp->write.length - resp->offset;
	struct mr_range range = {
		.qpn = qp->qpn,
		.pd = qp->pd,
		.key = resp->write.rkey,
		.addr = resp->write.va + resp->offset,
		.length = p->payload_len,
		.access = URXE_ACCESS_REMOTE_WRITE,
	};

	/* IBA 9.7.4.1.6: the payloads add up to the length in the RETH. */
	if (flags & URXE_OPF_END ? p->payload_len != rest : p->payload_len >= rest)
		return RESP_ACCESS_VIOLATION;
	if (p->payload_len && !mr_write(qp->dev, &range, p->payload))
		return AETH_NAK_REMOTE_ACCESS;
	resp->offset += p->payload_len;
	return 0;
}

static uint8_t execute_write(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	uint8_t syndrome = flags & URXE_OPF_START ? start_write(qp, p) : 0;

	if (!syndrome && flags & URXE_OPF_IMM && !hold_recv(qp))
		syndrome = rnr_syndrome(qp);
	if (!syndrome)
		syndrome = place_write(qp, p, flags);
	if (syndrome)
		return syndrome;
	if (flags & URXE_OPF_IMM && !complete_message(qp, p, flags))
		return AETH_NAK_REMOTE_OP;
	advance_psn(qp, 1, flags, RESP_WRITE);
	return 0;
}

bool resp_may_read(const struct urxe_qp *qp, const struct urxe_packet *p)
{
	return qp->attr.access & URXE_ACCESS_REMOTE_READ && p->reth.length <= URXE_MAX_MSG &&
	       is_granted(qp, p, URXE_ACCESS_REMOTE_READ);
}

static uint8_t execute_read(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct resp_resource *res;

	if (p->reth.length > URXE_MAX_MSG)
		return RESP_ACCESS_VIOLATION;
	res = resource_new(qp);
	if (!res)
		return RESP_ACCESS_VIOLATION;
	if (!is_granted(qp, p, URXE_ACCESS_REMOTE_READ))
		return AETH_NAK_REMOTE_ACCESS;
	*res = (struct resp_resource){
		.rkey = p->reth.rkey,
		.va = p->reth.va,
		.length = p->reth.length,
	};
	resource_keep(qp, res, qp_packets(qp, res->length));
	resource_answer_read(qp, res, res->first_psn, res->length);
	return 0;
}

static uint8_t execute_atomic(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct mr_range range = {
		.qpn = qp->qpn,
		.pd = qp->pd,
		.key = p->atomic.rkey,
		.addr = p->atomic.va,
		.length = sizeof(uint64_t),
		.access = URXE_ACCESS_REMOTE_ATOMIC,
	};
	struct resp_resource *res = resource_new(qp);
	struct mr_atomic op = {
		.kind = URXE_OPCODE_OPERATION(p->opcode) == URXE_OP_FETCH_ADD ? MR_FETCH_ADD
									      : MR_COMPARE_SWAP,
		.operand = p->atomic.swap_add,
		.compare = p->atomic.compare,
	};

	if (!res || p->atomic.va % sizeof(uint64_t)) /* IBA 9.4.5, C9-78 */
		return RESP_ACCESS_VIOLATION;
	if (!mr_atomic(qp->dev, &range, &op))
		return AETH_NAK_REMOTE_ACCESS;
	*res = (struct resp_resource){.kind = RES_ATOMIC, .original = op.original};
	resource_keep(qp, res, 1);
	resource_set_pending(qp, res);
	return 0;
}

static uint8_t execute(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	if (flags & URXE_OPF_SEND)
		return execute_send(qp, p, flags);
	if (flags & URXE_OPF_WRITE)
		return execute_write(qp, p, flags);
	if (flags & URXE_OPF_READ)
		return execute_read(qp, p);
	if (flags & URXE_OPF_FLUSH)
		return place_flush(qp, p);
	return flags & URXE_OPF_ATOMIC_WRITE ? place_atomic_write(qp, p) : execute_atomic(qp, p);
}

/* Whether this is the last packet of a request that completes no receive request. */
static bool is_one_sided(uint32_t flags)
{
	return flags & URXE_OPF_END && !(flags & (URXE_OPF_SEND | URXE_OPF_IMM));
}

uint8_t resp_execute(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	uint8_t syndrome = check_sequence(qp, flags);

	if (!syndrome)
		syndrome = check_allowed(qp, p, flags);
	if (!syndrome)
		syndrome = check_length(qp, p, flags);
	if (!syndrome)
		syndrome = execute(qp, p, flags);
	if (!syndrome && is_one_sided(flags))
		qp_count(qp, URXE_EVENT_ONE_SIDED);
	return syndrome;
}
