/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The PSN gap of a responder, and the requests that the responder keeps behind it. */

#include <rxe/opcode.h>

#include "objects/out_of_order.h"
#include "objects/qp.h"
#include "state/state_records.h"

/* Least bytes of a kept packet in the stream. */
#define PACKET_MIN 19

static void header_fields(struct state_stream *s, struct urxe_packet *p)
{
	const uint32_t flags = urxe_opcodes[p->opcode].flags;

	if (flags & URXE_OPF_RETH) {
		state_u64(s, &p->reth.va);
		state_u32s(s, &p->reth.rkey, &p->reth.length);
	}
	if (flags & URXE_OPF_FETH) {
		state_u8s(s, &p->feth.placement, &p->feth.selectivity);
	}
	if (flags & URXE_OPF_ATOMIC_ETH) {
		state_u64(s, &p->atomic.va);
		state_u32(s, &p->atomic.rkey);
		state_u64s(s, &p->atomic.swap_add, &p->atomic.compare);
	}
	if (flags & URXE_OPF_IMM)
		state_u32(s, &p->imm);
	if (flags & URXE_OPF_IETH)
		state_u32(s, &p->ieth_rkey);
}

/* Whether urxe_packet_parse accepts such a packet as a request of RC. */
static bool is_request(const struct urxe_packet *p)
{
	const struct urxe_opcode_info *info = &urxe_opcodes[p->opcode];

	return info->known && URXE_OPCODE_SERVICE(p->opcode) == URXE_SERVICE_RC &&
	       info->flags & URXE_OPF_REQUEST &&
	       (info->flags & URXE_OPF_PAYLOAD || !p->payload_len);
}

/* Saves or restores all fields of a request that its execution reads. */
static void packet_fields(struct state_stream *s, struct urxe_packet *p)
{
	state_u8(s, &p->opcode);
	state_bools(s, &p->solicited, &p->ack_req);
	state_u24(s, &p->psn);
	header_fields(s, p);
	state_u32(s, &p->payload_len);
	state_require(s, is_request(p));
}

static void save_packet(struct state_stream *s, struct out_of_order_packet *kept)
{
	state_time(s, &kept->arrival);
	packet_fields(s, &kept->packet);
	state_bytes(s, kept->payload, kept->packet.payload_len);
}

/* Restoring: appends the packet to the kept ones. */
static void keep_packet(struct state_stream *s, struct urxe_qp *qp, const struct urxe_packet *p,
			uint64_t arrival)
{
	struct out_of_order_list *list = &qp->resp.gap.kept;
	const struct out_of_order_packet *last = TAILQ_LAST(list, out_of_order_list);
	const int32_t ahead = urxe_psn_diff(p->psn, qp->resp.psn);

	state_require(s, ahead >= 0 && ahead < OUT_OF_ORDER_WINDOW &&
				 p->payload_len <= qp->dev->attr.mtu &&
				 (!last || urxe_psn_diff(p->psn, last->packet.psn) > 0));
	if (!state_ok(s))
		return;
	if (out_of_order_keep(qp->dev, list, p, (uint32_t)ahead))
		TAILQ_LAST(list, out_of_order_list)->arrival = arrival;
	else
		state_fail(s, -ENOMEM);
}

static void restore_packet(struct state_stream *s, struct urxe_qp *qp)
{
	struct urxe_packet p = {0};
	uint64_t arrival;

	state_time(s, &arrival);
	packet_fields(s, &p);
	p.payload = state_take(s, p.payload_len);
	keep_packet(s, qp, &p, arrival);
}

static void kept_fields(struct state_stream *s, struct urxe_qp *qp)
{
	struct out_of_order_packet *kept;
	uint32_t n = 0;

	TAILQ_FOREACH(kept, &qp->resp.gap.kept, link)
	{
		n++;
	}
	n = state_count(s, n, PACKET_MIN);
	state_require(s, !n || (qp->resp.in_gap && qp->type == URXE_QPT_RC));
	if (!s->restoring)
		TAILQ_FOREACH(kept, &qp->resp.gap.kept, link)
		{
			save_packet(s, kept);
		}
	for (; s->restoring && n && state_ok(s); n--)
		restore_packet(s, qp);
}

void gap_record(struct state_stream *s, struct urxe_qp *qp)
{
	struct psn_gap *gap = &qp->resp.gap;
	uint8_t naks_begun = gap->naks_begun;

	state_begin(s, STATE_RECORD_QP_GAP);
	state_bool(s, &qp->resp.in_gap);
	state_u8_flag(s, &naks_begun, 1, &gap->dropped);
	gap->naks_begun = naks_begun;
	state_u8_flag(s, &gap->repeats, PSN_GAP_REPEATS, &gap->first_nak_sent);
	state_time(s, &gap->nak_at);
	state_duration(s, &gap->repair_ns);
	timer_field(s, qp, &qp->gap_timer);
	/* When the gap timer falls due, the responder sends a NAK, which needs headers. */
	state_require(s, qp->header.len || !(qp->resp.in_gap || timer_armed(&qp->gap_timer)));
	kept_fields(s, qp);
	state_end(s);
}
