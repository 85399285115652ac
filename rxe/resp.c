/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "resp.h"

#include "aeth.h"
#include "build.h"
#include "cq.h"
#include "dev.h"
#include "mr.h"
#include "qp.h"
#include "sge.h"

/* --- Receive requests. */

static void complete_recv(struct urxe_qp *qp, struct urxe_wc *wc)
{
	wc->wr_id = qp->resp.wqe->wr_id;
	wc->qpn = qp->qpn;
	wc->solicited |= wc->status != URXE_WC_SUCCESS;
	qp->resp.has_wqe = false;
	rq_retire(qp->rq);
	if (!cq_complete(qp->recv_cq, wc))
		qp_error_event(qp, URXE_ASYNC_QP_FATAL);
}

static void fail_recv(struct urxe_qp *qp, enum urxe_wc_status status)
{
	struct urxe_wc wc = {.status = status};

	complete_recv(qp, &wc);
}

static bool want_recv(struct urxe_qp *qp)
{
	if (!qp->resp.has_wqe)
		qp->resp.has_wqe = rq_take(qp->rq, qp->resp.wqe);
	return qp->resp.has_wqe;
}

void resp_flush(struct urxe_qp *qp)
{
	if (qp->resp.has_wqe)
		fail_recv(qp, URXE_WC_WR_FLUSH_ERR);
	while (qp->rq->qp && want_recv(qp))
		fail_recv(qp, URXE_WC_WR_FLUSH_ERR);
}

static bool scatter(struct urxe_qp *qp, uint32_t offset, const uint8_t *src, uint32_t len)
{
	struct sge_list list = {
		.segs = qp->resp.wqe->segs,
		.n = qp->resp.wqe->n_segs,
		.pd = qp->rq->attr.pd,
	};

	return sge_scatter(qp->dev, &list, offset, src, len);
}

/* --- Execution. Each returns 0, or the AETH syndrome that a reliable service answers with. */

/* A request opens a message, or goes on with the one in progress (IBA 9.7.4.1.3). */
static uint8_t check_sequence(const struct urxe_qp *qp, uint32_t flags)
{
	uint8_t message = qp->resp.message;

	if (flags & URXE_OPF_START)
		return message == RESP_NONE ? 0 : AETH_NAK_INVALID_REQUEST;
	if (message == (flags & URXE_OPF_SEND ? RESP_SEND : RESP_WRITE))
		return 0;
	return AETH_NAK_INVALID_REQUEST;
}

/* First and middle packets are full, last ones are not empty (IBA 9.7.4.1.6). */
static uint8_t check_length(const struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	bool ok;

	if (!(flags & URXE_OPF_END))
		ok = p->payload_len == qp->mtu;
	else if (flags & URXE_OPF_START)
		ok = p->payload_len <= qp->mtu;
	else
		ok = p->payload_len && p->payload_len <= qp->mtu;
	return ok ? 0 : AETH_NAK_INVALID_REQUEST;
}

static uint8_t rnr(const struct urxe_qp *qp)
{
	return AETH_RNR_NAK | qp->attr.min_rnr_timer;
}

/* The packet is executed; another is expected. */
static void next_packet(struct urxe_qp *qp, uint32_t flags, enum resp_message message)
{
	bool end = flags & URXE_OPF_END;

	qp->resp.psn = urxe_psn_add(qp->resp.psn, 1);
	qp->resp.message = end ? RESP_NONE : message;
	if (end)
		qp->resp.msn = urxe_psn_add(qp->resp.msn, 1);
}

static void complete_message(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	bool imm = flags & URXE_OPF_IMM;
	struct urxe_wc wc = {
		.status = URXE_WC_SUCCESS,
		.opcode = flags & URXE_OPF_SEND ? URXE_WC_RECV : URXE_WC_RECV_RDMA_WITH_IMM,
		.byte_len = qp->resp.offset,
		.imm = p->imm,
		.src_qpn = qp->attr.dest_qpn,
		.flags = imm ? URXE_WC_WITH_IMM : 0,
		.solicited = p->solicited,
	};

	complete_recv(qp, &wc);
}

static uint8_t execute_send(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	struct responder *resp = &qp->resp;

	if (!want_recv(qp))
		return rnr(qp);
	if (flags & URXE_OPF_START)
		resp->offset = 0;
	if (p->payload_len > resp->wqe->length - resp->offset) {
		fail_recv(qp, URXE_WC_LOC_LEN_ERR);
		return AETH_NAK_INVALID_REQUEST;
	}
	if (!scatter(qp, resp->offset, p->payload, p->payload_len)) {
		dev_count(qp->dev, URXE_EVENT_LOCAL_ERROR);
		fail_recv(qp, URXE_WC_LOC_PROT_ERR);
		return AETH_NAK_REMOTE_OP;
	}
	resp->offset += p->payload_len;
	next_packet(qp, flags, RESP_SEND);
	if (flags & URXE_OPF_END)
		complete_message(qp, p, flags);
	return 0;
}

/* A zero-length message needs no valid key (IBA 9.7.4.1.5, C9-88). */
static bool remote_access_ok(const struct urxe_qp *qp, const struct urxe_packet *p, uint32_t access)
{
	struct mr_range range = {
		.pd = qp->pd,
		.key = p->reth.rkey,
		.addr = p->reth.va,
		.length = p->reth.length,
		.access = access,
	};

	return qp->attr.access & access && (!range.length || mr_check(qp->dev, &range));
}

static uint8_t start_write(struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (p->reth.length > URXE_MAX_MSG)
		return AETH_NAK_INVALID_REQUEST;
	if (!remote_access_ok(qp, p, URXE_ACCESS_REMOTE_WRITE))
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
		.pd = qp->pd,
		.key = resp->write.rkey,
		.addr = resp->write.va + resp->offset,
		.length = p->payload_len,
		.access = URXE_ACCESS_REMOTE_WRITE,
	};

	/* IBA 9.7.4.1.6: the packets' payloads add up to the RETH's length. */
	if (flags & URXE_OPF_END ? p->payload_len != rest : p->payload_len >= rest)
		return AETH_NAK_INVALID_REQUEST;
	if (p->payload_len && !mr_write(qp->dev, &range, p->payload))
		return AETH_NAK_REMOTE_ACCESS;
	resp->offset += p->payload_len;
	return 0;
}

static uint8_t execute_write(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	uint8_t syndrome = flags & URXE_OPF_START ? start_write(qp, p) : 0;

	if (!syndrome && flags & URXE_OPF_IMM && !want_recv(qp))
		syndrome = rnr(qp);
	if (!syndrome)
		syndrome = place_write(qp, p, flags);
	if (syndrome)
		return syndrome;
	next_packet(qp, flags, RESP_WRITE);
	if (flags & URXE_OPF_IMM)
		complete_message(qp, p, flags);
	return 0;
}

/* --- READ and atomic requests, and what is kept of them. */

static struct resp_resource *resource(const struct urxe_qp *qp, uint32_t index)
{
	return &qp->resp.resources[index % qp->attr.max_dest_rd_atomic];
}

/* The slot of the oldest one; NULL where that still waits to be answered: the peer asks too much.
 */
static struct resp_resource *new_resource(struct urxe_qp *qp)
{
	struct resp_resource *res;

	if (!qp->attr.max_dest_rd_atomic)
		return NULL;
	res = resource(qp, qp->resp.res_head);
	return res->pending ? NULL : res;
}

static uint32_t count_packets(const struct urxe_qp *qp, uint32_t length)
{
	return length ? (length - 1) / qp->mtu + 1 : 1;
}

static void set_pending(struct urxe_qp *qp, struct resp_resource *res)
{
	if (!res->pending)
		qp->resp.res_pending++;
	res->pending = true;
	qp_schedule(qp);
}

static void clear_pending(struct urxe_qp *qp, struct resp_resource *res)
{
	res->pending = false;
	qp->resp.res_pending--;
}

/* Answers from psn on, with `length` bytes of what the original request asked for. */
static void answer_read(struct urxe_qp *qp, struct resp_resource *res, uint32_t psn,
			uint32_t length)
{
	uint32_t offset = (uint32_t)urxe_psn_diff(psn, res->first_psn) * qp->mtu;

	res->start_psn = res->next_psn = psn;
	res->end_psn = urxe_psn_add(psn, count_packets(qp, length) - 1);
	res->end = offset + length;
	set_pending(qp, res);
}

/* Takes the slot for a request that is accepted. */
static void keep(struct urxe_qp *qp, struct resp_resource *res, uint32_t n_packets)
{
	struct responder *resp = &qp->resp;

	res->first_psn = resp->psn;
	res->last_psn = urxe_psn_add(resp->psn, n_packets - 1);
	resp->msn = urxe_psn_add(resp->msn, 1);
	res->msn = resp->msn;
	resp->psn = urxe_psn_add(resp->psn, n_packets);
	resp->res_head++;
}

static uint8_t execute_read(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct resp_resource *res;

	if (p->reth.length > URXE_MAX_MSG)
		return AETH_NAK_INVALID_REQUEST;
	res = new_resource(qp);
	if (!res)
		return AETH_NAK_INVALID_REQUEST;
	if (!remote_access_ok(qp, p, URXE_ACCESS_REMOTE_READ))
		return AETH_NAK_REMOTE_ACCESS;
	*res = (struct resp_resource){
		.rkey = p->reth.rkey,
		.va = p->reth.va,
		.length = p->reth.length,
	};
	keep(qp, res, count_packets(qp, res->length));
	answer_read(qp, res, res->first_psn, res->length);
	return 0;
}

static uint64_t apply_atomic(uint64_t *at, const struct urxe_packet *p)
{
	uint64_t expected = p->atomic.compare;

	if (URXE_OPCODE_OPERATION(p->opcode) == URXE_OP_FETCH_ADD)
		return __atomic_fetch_add(at, p->atomic.swap_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(at, &expected, p->atomic.swap_add, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return expected;
}

static uint8_t execute_atomic(struct urxe_qp *qp, const struct urxe_packet *p)
{
	struct mr_range range = {
		.pd = qp->pd,
		.key = p->atomic.rkey,
		.addr = p->atomic.va,
		.length = sizeof(uint64_t),
		.access = URXE_ACCESS_REMOTE_ATOMIC,
	};
	struct resp_resource *res = new_resource(qp);
	uint64_t *at;

	if (!res || p->atomic.va % sizeof(uint64_t)) /* IBA 9.4.5, C9-78 */
		return AETH_NAK_INVALID_REQUEST;
	at = qp->attr.access & URXE_ACCESS_REMOTE_ATOMIC ? mr_atomic(qp->dev, &range) : NULL;
	if (!at)
		return AETH_NAK_REMOTE_ACCESS;
	*res = (struct resp_resource){.atomic = true, .original = apply_atomic(at, p)};
	keep(qp, res, 1);
	set_pending(qp, res);
	return 0;
}

static uint8_t execute(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	uint8_t syndrome = check_sequence(qp, flags);

	if (!syndrome)
		syndrome = check_length(qp, p, flags);
	if (syndrome)
		return syndrome;
	if (flags & URXE_OPF_SEND)
		return execute_send(qp, p, flags);
	if (flags & URXE_OPF_WRITE)
		return execute_write(qp, p, flags);
	return flags & URXE_OPF_READ ? execute_read(qp, p) : execute_atomic(qp, p);
}

/* --- Reliable connection. */

static void send_nak(struct urxe_qp *qp, uint8_t syndrome)
{
	qp->resp.nak = syndrome;
	qp->resp.nak_psn = qp->resp.psn;
	qp->resp.nak_sent = true;
	qp_schedule(qp);
}

static void ack(struct urxe_qp *qp)
{
	qp->resp.ack_due = true;
	qp_schedule(qp);
}

/* IBA 9.7.4.1.2, ghost PSNs: one NAK until the expected packet comes. */
static void out_of_sequence(struct urxe_qp *qp)
{
	dev_drop(qp->dev, URXE_DROP_OUT_OF_SEQUENCE);
	if (qp->resp.nak_sent)
		return;
	dev_count(qp->dev, URXE_EVENT_NAK_SEQ_SENT);
	send_nak(qp, AETH_NAK_PSN_SEQUENCE);
}

static void refuse(struct urxe_qp *qp, uint8_t syndrome)
{
	send_nak(qp, syndrome);
	if (AETH_TYPE(syndrome) == AETH_RNR_NAK) {
		dev_count(qp->dev, URXE_EVENT_NAK_RNR_SENT);
		return;
	}
	dev_count(qp->dev, URXE_EVENT_NAK_ERR_SENT);
	qp_error_event(qp, syndrome == AETH_NAK_REMOTE_ACCESS ? URXE_ASYNC_QP_ACCESS_ERR
							      : URXE_ASYNC_QP_REQ_ERR);
}

static struct resp_resource *find_resource(const struct urxe_qp *qp, uint32_t psn)
{
	for (uint32_t i = 1; i <= qp->attr.max_dest_rd_atomic && i <= qp->resp.res_head; i++) {
		struct resp_resource *res = resource(qp, qp->resp.res_head - i);

		if (urxe_psn_diff(psn, res->first_psn) >= 0 &&
		    urxe_psn_diff(psn, res->last_psn) <= 0)
			return res;
	}
	return NULL;
}

/* A repeated READ may ask for any end of the original (IBA 9.7.4.1.4). */
static bool repeat_read(struct urxe_qp *qp, struct resp_resource *res, const struct urxe_packet *p)
{
	uint64_t offset = (uint64_t)urxe_psn_diff(p->psn, res->first_psn) * qp->mtu;

	if (res->atomic || p->reth.rkey != res->rkey || p->reth.va != res->va + offset ||
	    offset + p->reth.length > res->length)
		return false;
	answer_read(qp, res, p->psn, p->reth.length);
	return true;
}

static bool repeat_atomic(struct urxe_qp *qp, struct resp_resource *res)
{
	if (!res->atomic)
		return false;
	set_pending(qp, res);
	return true;
}

static void duplicate(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	struct resp_resource *res;
	bool answered = true;

	if (flags & (URXE_OPF_READ | URXE_OPF_ATOMIC)) {
		res = find_resource(qp, p->psn);
		if (!res)
			answered = false;
		else if (flags & URXE_OPF_READ)
			answered = repeat_read(qp, res, p);
		else
			answered = repeat_atomic(qp, res);
	} else {
		ack(qp);
	}
	if (answered)
		dev_count(qp->dev, URXE_EVENT_DUP_REQUEST);
	else
		dev_drop(qp->dev, URXE_DROP_DUPLICATE);
}

static void communication_established(struct urxe_qp *qp)
{
	if (qp->resp.comm_est || qp->attr.state != URXE_QPS_RTR)
		return;
	qp->resp.comm_est = true;
	qp_event(qp, URXE_ASYNC_COMM_EST);
}

static void rc_request(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	int32_t ahead = urxe_psn_diff(p->psn, qp->resp.psn);
	uint8_t syndrome;

	if (ahead > 0) {
		out_of_sequence(qp);
	} else if (ahead < 0) {
		duplicate(qp, p, flags);
	} else {
		qp->resp.nak = 0;
		qp->resp.nak_sent = false;
		syndrome = execute(qp, p, flags);
		if (syndrome)
			refuse(qp, syndrome);
		else if (p->ack_req)
			ack(qp);
	}
}

/* --- Unreliable connection and datagram. */

/* IBA 9.8.2.2: a gap loses the message it falls in; the next one starts anew. */
static void uc_request(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	uint8_t syndrome;

	if (p->psn != qp->resp.psn || flags & URXE_OPF_START)
		qp->resp.message = RESP_NONE;
	qp->resp.psn = p->psn;
	if (!(flags & URXE_OPF_START) && qp->resp.message == RESP_NONE) {
		dev_drop(qp->dev, URXE_DROP_UC_SEQUENCE);
		qp->resp.psn = urxe_psn_add(p->psn, 1);
		return;
	}
	syndrome = execute(qp, p, flags);
	if (!syndrome)
		return;
	qp->resp.message = RESP_NONE;
	qp->resp.psn = urxe_psn_add(p->psn, 1);
	dev_drop(qp->dev,
		 AETH_TYPE(syndrome) == AETH_RNR_NAK ? URXE_DROP_NO_RECV : URXE_DROP_BAD_REQUEST);
}

/* The 40 bytes in front of a datagram: the GRH or IPv6 header, or IPv4's in the last 20
 * (A17.4.5.2). */
static void make_grh(uint8_t grh[URXE_GRH_LEN], const struct urxe_packet *p)
{
	uint32_t len = p->net == URXE_NET_IPV4 ? IPV4_LEN : IPV6_LEN;

	memset(grh, 0, URXE_GRH_LEN);
	memcpy(grh + URXE_GRH_LEN - len, p->l3, len);
}

static bool place_datagram(struct urxe_qp *qp, const struct urxe_packet *p)
{
	uint8_t grh[URXE_GRH_LEN];

	make_grh(grh, p);
	return scatter(qp, 0, grh, URXE_GRH_LEN) &&
	       scatter(qp, URXE_GRH_LEN, p->payload, p->payload_len);
}

/* A datagram that does not fit its buffer is dropped, and the buffer serves the next. */
static void ud_request(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	struct urxe_wc wc = {
		.opcode = URXE_WC_RECV,
		.byte_len = p->payload_len + URXE_GRH_LEN,
		.imm = p->imm,
		.src_qpn = p->deth.src_qpn,
		.flags = URXE_WC_GRH | (flags & URXE_OPF_IMM ? URXE_WC_WITH_IMM : 0),
		.solicited = p->solicited,
	};

	if (p->deth.qkey != qp->attr.qkey) {
		dev_drop(qp->dev, URXE_DROP_BAD_QKEY);
	} else if (!want_recv(qp)) {
		dev_drop(qp->dev, URXE_DROP_NO_RECV);
	} else if (wc.byte_len > qp->resp.wqe->length) {
		dev_drop(qp->dev, URXE_DROP_BAD_REQUEST);
	} else if (place_datagram(qp, p)) {
		complete_recv(qp, &wc);
	} else {
		dev_count(qp->dev, URXE_EVENT_LOCAL_ERROR);
		fail_recv(qp, URXE_WC_LOC_PROT_ERR);
		qp_error_event(qp, URXE_ASYNC_QP_FATAL);
	}
}

void resp_packet(struct urxe_qp *qp, const struct urxe_packet *p)
{
	uint32_t flags = urxe_opcodes[p->opcode].flags;

	communication_established(qp);
	switch (qp->type) {
	case URXE_QPT_RC: rc_request(qp, p, flags); break;
	case URXE_QPT_UC: uc_request(qp, p, flags); break;
	case URXE_QPT_UD: ud_request(qp, p, flags); break;
	}
}

/* --- Responses. */

/* The oldest request whose response is due. */
static struct resp_resource *next_pending(const struct urxe_qp *qp)
{
	uint32_t n = qp->attr.max_dest_rd_atomic;
	uint32_t oldest = qp->resp.res_head > n ? qp->resp.res_head - n : 0;

	if (!qp->resp.res_pending)
		return NULL;
	for (uint32_t i = oldest; i != qp->resp.res_head; i++) {
		if (resource(qp, i)->pending)
			return resource(qp, i);
	}
	return NULL;
}

static void start(struct build *b, struct urxe_qp *qp, struct urxe_frame *frame, uint8_t operation,
		  uint32_t psn)
{
	struct build_bth bth = {
		.opcode = URXE_SERVICE_RC | operation,
		.dest_qpn = qp->attr.dest_qpn,
		.psn = psn,
	};

	build_start(b, frame, &qp->header, &bth);
}

static void output_ack(struct urxe_qp *qp, struct urxe_frame *frame, uint8_t syndrome, uint32_t psn)
{
	struct build b;

	start(&b, qp, frame, URXE_OP_ACKNOWLEDGE, psn);
	build_aeth(&b, syndrome, qp->resp.msn);
	build_finish(&b, qp->dev, 0);
}

static uint8_t read_operation(const struct resp_resource *res)
{
	bool first = res->next_psn == res->start_psn, last = res->next_psn == res->end_psn;

	if (first)
		return last ? URXE_OP_READ_RESPONSE_ONLY : URXE_OP_READ_RESPONSE_FIRST;
	return last ? URXE_OP_READ_RESPONSE_LAST : URXE_OP_READ_RESPONSE_MIDDLE;
}

/* The region went away under the READ: the NAK takes the place of the response. */
static void read_failed(struct urxe_qp *qp, struct resp_resource *res)
{
	uint32_t psn = res->next_psn;

	for (uint32_t i = 0; i < qp->attr.max_dest_rd_atomic; i++)
		qp->resp.resources[i].pending = false;
	qp->resp.res_pending = 0;
	refuse(qp, AETH_NAK_REMOTE_ACCESS);
	qp->resp.nak_psn = psn;
}

static bool output_read(struct urxe_qp *qp, struct resp_resource *res, struct urxe_frame *frame)
{
	uint32_t offset = (uint32_t)urxe_psn_diff(res->next_psn, res->first_psn) * qp->mtu;
	uint32_t rest = res->end - offset;
	struct mr_range range = {
		.pd = qp->pd,
		.key = res->rkey,
		.addr = res->va + offset,
		.length = rest < qp->mtu ? rest : qp->mtu,
		.access = URXE_ACCESS_REMOTE_READ,
	};
	uint8_t operation = read_operation(res);
	struct build b;

	start(&b, qp, frame, operation, res->next_psn);
	if (urxe_opcodes[operation].flags & URXE_OPF_AETH)
		build_aeth(&b, AETH_ACK_UNLIMITED, res->msn);
	if (range.length && !mr_read(qp->dev, &range, b.payload)) {
		read_failed(qp, res);
		return false;
	}
	build_finish(&b, qp->dev, (uint32_t)range.length);
	if (res->next_psn == res->end_psn)
		clear_pending(qp, res);
	res->next_psn = urxe_psn_add(res->next_psn, 1);
	return true;
}

static void output_atomic(struct urxe_qp *qp, struct resp_resource *res, struct urxe_frame *frame)
{
	struct build b;

	start(&b, qp, frame, URXE_OP_ATOMIC_ACKNOWLEDGE, res->first_psn);
	build_aeth(&b, AETH_ACK_UNLIMITED, res->msn);
	build_atomic_ack(&b, res->original);
	build_finish(&b, qp->dev, 0);
	clear_pending(qp, res);
}

static void output_nak(struct urxe_qp *qp, struct urxe_frame *frame)
{
	output_ack(qp, frame, qp->resp.nak, qp->resp.nak_psn);
	qp->resp.nak = 0;
	qp->resp.ack_due = false;
}

/* In the order of the requests: acknowledgements wait behind READ responses (IBA 9.7.5.1.1). */
bool resp_output(struct urxe_qp *qp, struct urxe_frame *frame)
{
	struct resp_resource *res = next_pending(qp);

	if (res && res->atomic) {
		output_atomic(qp, res, frame);
	} else if (!res || !output_read(qp, res, frame)) {
		if (qp->resp.nak) {
			output_nak(qp, frame);
		} else if (qp->resp.ack_due) {
			qp->resp.ack_due = false;
			output_ack(qp, frame, AETH_ACK_UNLIMITED, urxe_psn_add(qp->resp.psn, -1u));
		} else {
			return false;
		}
	}
	return true;
}
