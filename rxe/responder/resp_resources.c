/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "responder/resp_resources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The slot that is i places younger than `slot`. */
static uint32_t slot_behind(const struct urxe_qp *qp, uint32_t slot, uint32_t i)
{
	return (slot + i) & (qp->resp.n_resources - 1u);
}

/* Age rank of a slot; 0 is the oldest. */
static uint32_t age_of(const struct urxe_qp *qp, uint32_t slot)
{
	return (slot - qp->resp.res_oldest) & (qp->resp.n_resources - 1u);
}

/* The resource with age rank i. */
static struct resp_resource *resource_at(const struct urxe_qp *qp, uint32_t i)
{
	return &qp->resp.resources[slot_behind(qp, qp->resp.res_oldest, i)];
}

struct resp_resource *resource_new(struct urxe_qp *qp)
{
	struct resp_resource *res;

	if (!qp->resp.n_resources)
		return NULL;
	res = resource_at(qp, 0);
	/* The response to a duplicate may be dropped: the peer sends new requests, so it has the
	 * first one. */
	if (res->pending && res->repeated)
		resource_clear_pending(qp, res);
	return res->pending ? NULL : res;
}

void resource_set_pending(struct urxe_qp *qp, struct resp_resource *res)
{
	struct responder *resp = &qp->resp;
	const uint32_t slot = (uint32_t)(res - resp->resources);

	if (!resp->res_pending || age_of(qp, slot) < age_of(qp, resp->res_next))
		resp->res_next = slot;
	if (!res->pending)
		resp->res_pending++;
	res->pending = true;
	qp_schedule(qp);
}

void resource_clear_pending(struct urxe_qp *qp, struct resp_resource *res)
{
	res->pending = false;
	qp->resp.res_pending--;
}

void resource_answer_read(struct urxe_qp *qp, struct resp_resource *res, uint32_t psn,
			  uint32_t length)
{
	uint32_t offset = (uint32_t)urxe_psn_diff(psn, res->first_psn) * qp->mtu;

	res->start_psn = res->next_psn = psn;
	res->end_psn = urxe_psn_add(psn, qp_packets(qp, length) - 1);
	res->end = offset + length;
	resource_set_pending(qp, res);
}

static uint32_t end_of_part(const struct urxe_qp *qp, const struct resp_repeat *part)
{
	return urxe_psn_add(part->psn, qp_packets(qp, part->length) - 1);
}

/* Whether the packets from psn to end_psn include the part. */
static bool range_includes_part(const struct urxe_qp *qp, uint32_t psn, uint32_t end_psn,
				const struct resp_repeat *part)
{
	return urxe_psn_diff(part->psn, psn) >= 0 &&
	       urxe_psn_diff(end_of_part(qp, part), end_psn) <= 0;
}

/* Whether one of the parts that wait includes the whole of `part`. */
static bool is_part_queued(const struct urxe_qp *qp, const struct resp_resource *res,
			   const struct resp_repeat *part)
{
	for (uint32_t i = 0; i < res->n_repeats; i++)
		if (range_includes_part(qp, res->repeats[i].psn, end_of_part(qp, &res->repeats[i]),
					part))
			return true;
	return false;
}

/* Drops the waiting parts that the response in progress includes. */
static void drop_included(const struct urxe_qp *qp, struct resp_resource *res)
{
	uint8_t n = 0;

	for (uint32_t i = 0; i < res->n_repeats; i++)
		if (!range_includes_part(qp, res->start_psn, res->end_psn, &res->repeats[i]))
			res->repeats[n++] = res->repeats[i];
	res->n_repeats = n;
}

bool resource_repeat_read(struct urxe_qp *qp, struct resp_resource *res, uint32_t psn,
			  uint32_t length)
{
	const struct resp_repeat part = {psn, length};
	/* The response in progress will still send this part: the response is slow, and the peer
	 * has repeated its request as a probe. */
	const bool is_unsent =
		res->pending && range_includes_part(qp, res->next_psn, res->end_psn, &part);

	if (!res->pending || end_of_part(qp, &part) == res->end_psn) {
		/*
		 * If no response is in progress, this one is a repetition. Or the part ends where
		 * the response in progress ends: that response starts again at psn. If it is the
		 * original response, it stays so (`repeated` is false): the peer does not have its
		 * last packet yet, so fail_read() answers a fault with a NAK.
		 */
		res->repeated |= !res->pending;
		resource_answer_read(qp, res, psn, length);
		drop_included(qp, res);
		return true;
	}
	if (is_unsent || is_part_queued(qp, res, &part))
		return true;
	if (res->n_repeats == RESP_REPEATS)
		return false;
	res->repeats[res->n_repeats++] = part;
	return true;
}

void resource_repeat_newest(struct urxe_qp *qp)
{
	struct resp_resource *res = resource_find(qp, urxe_psn_add(qp->resp.psn, URXE_PSN_MASK));

	if (!res || res->pending)
		return;
	/* start_psn is the original response's, so that the packet has the same opcode as
	 * before. */
	res->start_psn = res->first_psn;
	res->next_psn = res->end_psn = res->last_psn;
	res->end = res->length;
	res->repeated = true;
	resource_set_pending(qp, res);
}

void resource_answered(struct urxe_qp *qp, struct resp_resource *res)
{
	struct resp_repeat next = res->repeats[0];

	resource_clear_pending(qp, res);
	if (!res->n_repeats)
		return;
	res->n_repeats--;
	memmove(res->repeats, res->repeats + 1, res->n_repeats * sizeof(next));
	res->repeated = true;
	resource_answer_read(qp, res, next.psn, next.length);
}

/*
 * ack_psn is more than half the PSN space behind resp.psn: the peer has that ACK, and would take
 * its repetition for an ACK of a future PSN. No READ has enough PSNs to pass over the half in which
 * resource_keep detects this.
 */
static void mark_ack_past(struct responder *resp)
{
	resp->ack_msn = RESP_ACK_PAST;
	resp->ack_due = false;
}

void resource_keep_slot(struct urxe_qp *qp, struct resp_resource *res)
{
	struct responder *resp = &qp->resp;

	res->kept = true;
	/* The slot becomes the youngest one, and is not pending yet. */
	if (resp->res_next == resp->res_oldest)
		resp->res_next = slot_behind(qp, resp->res_next, 1);
	resp->res_oldest = slot_behind(qp, resp->res_oldest, 1);
}

void resource_keep(struct urxe_qp *qp, struct resp_resource *res, uint32_t n_packets)
{
	struct responder *resp = &qp->resp;

	res->first_psn = resp->psn;
	res->last_psn = urxe_psn_add(resp->psn, n_packets - 1);
	resp->msn = urxe_psn_add(resp->msn, 1);
	res->msn = resp->msn;
	resp->psn = urxe_psn_add(resp->psn, n_packets);
	if (urxe_psn_diff(resp->psn, resp->ack_psn) < 0)
		mark_ack_past(resp);
	resource_keep_slot(qp, res);
}

struct resp_resource *resource_find(const struct urxe_qp *qp, uint32_t psn)
{
	for (uint32_t i = qp->resp.n_resources; i--;) {
		struct resp_resource *res = resource_at(qp, i);

		if (res->kept && urxe_psn_diff(psn, res->first_psn) >= 0 &&
		    urxe_psn_diff(psn, res->last_psn) <= 0)
			return res;
	}
	return NULL;
}

struct resp_resource *resource_next_pending(struct urxe_qp *qp)
{
	struct responder *resp = &qp->resp;

	if (!resp->res_pending)
		return NULL;
	while (!resp->resources[resp->res_next].pending)
		resp->res_next = slot_behind(qp, resp->res_next, 1);
	return &resp->resources[resp->res_next];
}

int resource_copy(const struct urxe_qp *qp, uint8_t max_dest_rd_atomic,
		  struct resp_resource **resources)
{
	const uint8_t n = resource_slots(max_dest_rd_atomic), old = qp->resp.n_resources;
	const uint8_t kept = n < old ? n : old;

	if (qp->resp.res_pending)
		return -EBUSY;
	*resources = calloc(n ? n : 1, sizeof(**resources));
	if (!*resources)
		return -ENOMEM;
	for (uint8_t i = 0; i < kept; i++)
		(*resources)[n - kept + i] = *resource_at(qp, old - kept + i);
	return 0;
}

void resource_install(struct urxe_qp *qp, uint8_t max_dest_rd_atomic,
		      struct resp_resource *resources)
{
	free(qp->resp.resources);
	qp->resp.resources = resources;
	qp->resp.n_resources = resource_slots(max_dest_rd_atomic);
	qp->resp.res_oldest = qp->resp.res_next = 0;
	qp->attr.max_dest_rd_atomic = max_dest_rd_atomic;
}
