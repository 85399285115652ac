/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/responder.h"

#include <rxe/opcode.h>

#include "objects/completion.h"
#include "objects/device.h"
#include "objects/pkey.h"
#include "objects/qp.h"
#include "objects/qp_counters.h"
#include "objects/rq.h"
#include "responder/acknowledge.h"
#include "responder/duplicate.h"
#include "responder/execute.h"
#include "responder/held_recv.h"
#include "responder/psn_gap.h"
#include "responder/resume.h"
#include "wire/aeth.h"
#include "wire/header_fields.h"

/* Reports COMM_EST, once, while the QP is in RTR. Called only after the QP has executed a packet: a
 * packet that is not executed may belong to an earlier connection. */
static void report_established(struct urxe_qp *qp)
{
	if (qp->attr.state != URXE_QPS_RTR || qp->resp.comm_est)
		return;
	qp->resp.comm_est = true;
	qp_event(qp, URXE_ASYNC_COMM_EST);
}

/* --- Reliable connection. */

/* Executes the request with the expected PSN, or makes its NAK due. Returns what resp_execute
 * returns. */
static uint8_t execute_expected(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	uint8_t syndrome = resp_execute(qp, p, flags);

	if (syndrome == RESP_DROPPED)
		return syndrome;
	qp->resp.nak = 0;
	qp->resp.nak_sent = false;
	if (qp->resp.in_gap)
		psn_gap_filled(qp);
	if (syndrome) {
		if (syndrome != RESP_POSTPONED)
			resp_refuse(qp, syndrome);
		return syndrome;
	}
	report_established(qp);
	if (p->ack_req && !(flags & URXE_OPF_RESOURCE))
		resp_ack(qp); /* a response also acknowledges its request (IBA 9.7.5.1.2) */
	return 0;
}

/* Executes kept packets that follow without a gap. */
static void deliver_kept(struct urxe_qp *qp)
{
	struct out_of_order_packet *kept;
	uint8_t syndrome = 0;

	while (!syndrome && (kept = psn_gap_next_kept(qp))) {
		syndrome = execute_expected(qp, &kept->packet,
					    urxe_opcodes[kept->packet.opcode].flags);
		if (syndrome == RESP_POSTPONED)
			psn_gap_put_back(qp, kept);
		else
			out_of_order_give_back(qp->dev, kept);
	}
}

static void rc_expected(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	uint8_t syndrome = execute_expected(qp, p, flags);

	if (syndrome == RESP_POSTPONED && !psn_gap_keep_expected(qp, p))
		qp_drop(qp, URXE_DROP_KEY_IN_USE);
	if (!syndrome && qp->resp.in_gap)
		deliver_kept(qp);
}

void resp_gap_time_out(struct urxe_qp *qp)
{
	if (psn_gap_has_expected(qp))
		deliver_kept(qp);
	else
		psn_gap_time_out(qp);
}

static void rc_request(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	int32_t ahead;

	if (qp->resp.message == RESP_UNKNOWN && !resume_request(qp, p, flags))
		return;
	ahead = urxe_psn_diff(p->psn, qp->resp.psn);
	if (ahead > 0)
		psn_gap_early_packet(qp, p, (uint32_t)ahead);
	else if (ahead < 0)
		resp_duplicate(qp, p, flags);
	else
		rc_expected(qp, p, flags);
}

/* --- Unreliable connection and datagram. */

/* Ends the UC message in progress. With an SRQ the message's receive request completes in error
 * (IBA 9.9.3, class E), because other QPs need it. Without an SRQ, the next message uses the
 * receive request. */
static void give_up_message(struct urxe_qp *qp)
{
	qp->resp.message = RESP_NONE;
	if (!qp->rq->qp && qp->resp.has_wqe)
		fail_recv(qp, URXE_WC_REM_INV_REQ_ERR);
}

/* Executes a UC request (IBA 9.8.2.2). A lost packet drops its message; the next message starts
 * anew. */
static void uc_request(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	uint8_t syndrome;

	if (p->psn != qp->resp.psn || flags & URXE_OPF_START) {
		give_up_message(qp);
		/* The CQ was full, so give_up_message() has failed the QP. */
		if (qp->attr.state == URXE_QPS_ERR)
			return;
	}
	qp->resp.psn = p->psn;
	if (!(flags & URXE_OPF_START) && qp->resp.message == RESP_NONE) {
		qp_drop(qp, URXE_DROP_UC_SEQUENCE);
		qp->resp.psn = urxe_psn_add(p->psn, 1);
		return;
	}
	syndrome = resp_execute(qp, p, flags);
	if (!syndrome) {
		report_established(qp);
		return;
	}
	give_up_message(qp);
	qp->resp.psn = urxe_psn_add(p->psn, 1);
	if (syndrome == RESP_RECV_FAILED)
		qp_error(qp);
	qp_drop(qp,
		AETH_TYPE(syndrome) == AETH_RNR_NAK ? URXE_DROP_NO_RECV : URXE_DROP_BAD_REQUEST);
}

/* Fills in the 40 bytes in front of a datagram: the GRH or IPv6 header, or the IPv4 header in the
 * last 20 bytes (A17.4.5.2). */
static void fill_grh(uint8_t grh[URXE_GRH_LEN], const struct urxe_packet *p)
{
	uint32_t len = p->net == URXE_NET_IPV4 ? IPV4_LEN : IPV6_LEN;

	memset(grh, 0, URXE_GRH_LEN);
	memcpy(grh + URXE_GRH_LEN - len, p->l3, len);
}

static bool place_datagram(struct urxe_qp *qp, const struct urxe_packet *p)
{
	uint8_t grh[URXE_GRH_LEN];

	fill_grh(grh, p);
	return resp_scatter(qp, 0, grh, URXE_GRH_LEN) &&
	       resp_scatter(qp, URXE_GRH_LEN, p->payload, p->payload_len);
}

/* Drops a datagram that is longer than the path MTU or the receive buffer. The receive request
 * stays posted, in an SRQ for all its QPs. */
static void ud_request(struct urxe_qp *qp, const struct urxe_packet *p, uint32_t flags)
{
	struct urxe_wc wc = {
		.opcode = URXE_WC_RECV,
		.byte_len = p->payload_len + URXE_GRH_LEN,
		.imm = p->imm,
		.src_qpn = p->deth.src_qpn,
		.flags = URXE_WC_GRH | (flags & URXE_OPF_IMM ? URXE_WC_WITH_IMM : 0),
		.net = p->net,
		.sl = p->has_vlan ? (uint8_t)(p->vlan_tci >> VLAN_PCP_SHIFT) : 0,
		.solicited = p->solicited,
	};

	const struct recv_wqe *next = next_recv(qp);

	if (qp->qpn == URXE_QPN_GSI)
		wc.pkey_index = (uint16_t)pkey_find(qp->dev, p->pkey);
	if (!next) {
		qp_drop(qp, URXE_DROP_NO_RECV);
	} else if (p->payload_len > qp->mtu || wc.byte_len > next->length) {
		qp_drop(qp, URXE_DROP_BAD_REQUEST);
	} else if (hold_recv(qp) && place_datagram(qp, p)) {
		complete_recv(qp, &wc);
		report_established(qp);
	} else {
		qp_count(qp, URXE_EVENT_LOCAL_ERROR);
		fail_recv(qp, URXE_WC_LOC_PROT_ERR);
		qp_error(qp);
	}
}

void resp_packet(struct urxe_qp *qp, const struct urxe_packet *p)
{
	uint32_t flags = urxe_opcodes[p->opcode].flags;

	if (qp->type == URXE_QPT_UD && p->deth.qkey != qp->attr.qkey) {
		qp_drop(qp, URXE_DROP_BAD_QKEY);
		return;
	}
	switch (qp->type) {
	case URXE_QPT_RC: rc_request(qp, p, flags); break;
	case URXE_QPT_UC: uc_request(qp, p, flags); break;
	case URXE_QPT_UD: ud_request(qp, p, flags); break;
	}
}
