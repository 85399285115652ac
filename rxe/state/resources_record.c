/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Responder resources: READs, atomics, FLUSHes and ATOMIC WRITEs, kept until their response is
 * sent, and to answer duplicates. Each keeps its slot. */
#include <stdlib.h>

#include "objects/qp.h"
#include "responder/resp_resources.h"
#include "state/state_records.h"

/* Least bytes of a slot in the stream. */
#define SLOT_MIN 1

/* Offset of a PSN's first byte in the data of a READ. */
static uint64_t offset_of(const struct urxe_qp *qp, const struct resp_resource *res, uint32_t psn)
{
	return (uint64_t)((psn - res->first_psn) & URXE_PSN_MASK) * qp->mtu;
}

static bool is_in_request(const struct resp_resource *res, uint32_t psn)
{
	return ((psn - res->first_psn) & URXE_PSN_MASK) <=
	       ((res->last_psn - res->first_psn) & URXE_PSN_MASK);
}

/* Whether the response that is due is within the request, and its last packet fits the MTU. */
static bool has_valid_response(const struct urxe_qp *qp, const struct resp_resource *res)
{
	const uint64_t last = offset_of(qp, res, res->end_psn);

	return is_in_request(res, res->start_psn) && is_in_request(res, res->next_psn) &&
	       is_in_request(res, res->end_psn) &&
	       offset_of(qp, res, res->start_psn) <= offset_of(qp, res, res->next_psn) &&
	       offset_of(qp, res, res->next_psn) <= last && res->end <= res->length &&
	       last <= res->end && res->end - last <= qp->mtu;
}

static bool has_valid_repeats(const struct urxe_qp *qp, const struct resp_resource *res)
{
	for (uint32_t i = 0; i < res->n_repeats; i++) {
		const struct resp_repeat *repeat = &res->repeats[i];

		if (!is_in_request(res, repeat->psn) ||
		    offset_of(qp, res, repeat->psn) + repeat->length > res->length)
			return false;
	}
	return true;
}

static bool is_valid_resource(const struct urxe_qp *qp, const struct resp_resource *res)
{
	const uint32_t n = res->kind == RES_READ ? qp_packets(qp, res->length) : 1;

	if (((res->last_psn - res->first_psn) & URXE_PSN_MASK) + 1 != n)
		return false;
	if (res->kind != RES_READ)
		return !res->n_repeats;
	return has_valid_repeats(qp, res) && (!res->pending || has_valid_response(qp, res));
}

static void read_fields(struct state_stream *s, struct resp_resource *res)
{
	state_u32(s, &res->rkey);
	state_u32_max(s, &res->length, URXE_MAX_MSG);
	state_u64(s, &res->va);
	state_u24s(s, &res->start_psn, &res->next_psn, &res->end_psn);
	state_u32_max(s, &res->end, URXE_MAX_MSG);
	state_u8_max(s, &res->n_repeats, RESP_REPEATS);
	for (uint32_t i = 0; i < res->n_repeats; i++) {
		state_u24(s, &res->repeats[i].psn);
		state_u32_max(s, &res->repeats[i].length, URXE_MAX_MSG);
	}
}

static void resource_fields(struct state_stream *s, struct urxe_qp *qp, struct resp_resource *res)
{
	state_bool(s, &res->kept);
	if (!res->kept)
		return;
	state_u8_max(s, &res->kind, RES_ATOMIC_WRITE);
	state_bools(s, &res->pending, &res->repeated);
	state_u24s(s, &res->first_psn, &res->last_psn, &res->msn);
	if (res->kind == RES_READ)
		read_fields(s, res);
	else
		state_u64(s, &res->original);
	state_require(s, is_valid_resource(qp, res));
}

/* Restoring: counts the responses that are due, and finds the oldest. */
static void find_pending(struct urxe_qp *qp)
{
	struct responder *resp = &qp->resp;

	resp->res_next = resp->res_oldest;
	resp->res_pending = 0;
	for (uint32_t i = 0; i < resp->n_resources; i++) {
		const uint32_t slot = (resp->res_oldest + i) & (resp->n_resources - 1u);

		if (resp->resources[slot].pending && !resp->res_pending++)
			resp->res_next = slot;
	}
}

static void allocate_resources(struct state_stream *s, struct urxe_qp *qp)
{
	const uint8_t n = resource_slots(qp->attr.max_dest_rd_atomic);

	qp->resp.n_resources = n;
	qp->resp.resources = calloc(n ? n : 1, sizeof(*qp->resp.resources));
	if (!qp->resp.resources)
		state_fail(s, -ENOMEM);
}

/* The slot of item i of n. Streams of earlier versions have max_dest_rd_atomic items, even if that
 * is not a power of two. Then the items go to the youngest slots, in their order. */
static uint32_t slot_of_item(const struct responder *resp, uint32_t n, uint32_t i)
{
	const uint32_t oldest = resp->res_oldest, age = i < oldest ? i + n - oldest : i - oldest;

	return n == resp->n_resources ? i : resp->n_resources - n + age;
}

void resources_record(struct state_stream *s, struct urxe_qp *qp)
{
	struct responder *resp = &qp->resp;
	uint32_t n;

	state_begin(s, STATE_RECORD_QP_RESOURCES);
	n = state_count(s, resp->n_resources, SLOT_MIN);
	state_u32(s, &resp->res_oldest);
	if (s->restoring && state_ok(s))
		allocate_resources(s, qp);
	state_require(s, n == resp->n_resources || n == qp->attr.max_dest_rd_atomic);
	state_require(s, resp->res_oldest < (n ? n : 1));
	for (uint32_t i = 0; i < n && state_ok(s); i++)
		resource_fields(s, qp, &resp->resources[slot_of_item(resp, n, i)]);
	if (n < resp->n_resources)
		resp->res_oldest = 0;
	if (s->restoring && state_ok(s))
		find_pending(qp);
	state_require(s, !resp->res_pending || (qp->header.len && qp->type == URXE_QPT_RC));
	state_end(s);
}
