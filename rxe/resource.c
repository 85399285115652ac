/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "resource.h"

static struct resp_resource *resource_at(const struct urxe_qp *qp, uint32_t index)
{
	return &qp->resp.resources[index % qp->attr.max_dest_rd_atomic];
}

/* The slot of the oldest one; NULL where that still waits to be answered: the peer asks too much.
 */
struct resp_resource *resource_new(struct urxe_qp *qp)
{
	struct resp_resource *res;

	if (!qp->attr.max_dest_rd_atomic)
		return NULL;
	res = resource_at(qp, qp->resp.res_head);
	return res->pending ? NULL : res;
}

uint32_t resource_read_packets(const struct urxe_qp *qp, uint32_t length)
{
	return length ? (length - 1) / qp->mtu + 1 : 1;
}

void resource_set_pending(struct urxe_qp *qp, struct resp_resource *res)
{
	if (!res->pending)
		qp->resp.res_pending++;
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
	res->end_psn = urxe_psn_add(psn, resource_read_packets(qp, length) - 1);
	res->end = offset + length;
	resource_set_pending(qp, res);
}

void resource_clear_all(struct urxe_qp *qp)
{
	for (uint32_t i = 0; i < qp->attr.max_dest_rd_atomic; i++)
		qp->resp.resources[i].pending = false;
	qp->resp.res_pending = 0;
}

void resource_keep(struct urxe_qp *qp, struct resp_resource *res, uint32_t n_packets)
{
	struct responder *resp = &qp->resp;

	res->first_psn = resp->psn;
	res->last_psn = urxe_psn_add(resp->psn, n_packets - 1);
	resp->msn = urxe_psn_add(resp->msn, 1);
	res->msn = resp->msn;
	resp->psn = urxe_psn_add(resp->psn, n_packets);
	resp->res_head++;
}

struct resp_resource *resource_find(const struct urxe_qp *qp, uint32_t psn)
{
	for (uint32_t i = 1; i <= qp->attr.max_dest_rd_atomic && i <= qp->resp.res_head; i++) {
		struct resp_resource *res = resource_at(qp, qp->resp.res_head - i);

		if (urxe_psn_diff(psn, res->first_psn) >= 0 &&
		    urxe_psn_diff(psn, res->last_psn) <= 0)
			return res;
	}
	return NULL;
}

struct resp_resource *resource_next_pending(const struct urxe_qp *qp)
{
	uint32_t n = qp->attr.max_dest_rd_atomic;
	uint32_t oldest = qp->resp.res_head > n ? qp->resp.res_head - n : 0;

	if (!qp->resp.res_pending)
		return NULL;
	for (uint32_t i = oldest; i != qp->resp.res_head; i++) {
		if (resource_at(qp, i)->pending)
			return resource_at(qp, i);
	}
	return NULL;
}
