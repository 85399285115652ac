/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_srq.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "hca/hca_device.h"
#include "hca_cq.h"
#include "hca_qp.h"
#include "wait.h"
#include "wr.h"

static int make_ibv_srq(struct hca_srq *srq, const struct urxe_rq_attr *attr)
{
	struct ibv_srq_init_attr init = {
		.srq_context = srq,
		.attr = {.max_wr = attr->max_wr, .max_sge = attr->max_sge},
	};

	struct hca_wait wait = hca_begin_wait(srq->hca);
	int rc = 0;

	srq->ibv = srq->hca->verbs->create_srq(srq->pd->pd, &init);
	if (!srq->ibv)
		rc = hca_verbs_null_error();
	hca_end_wait(srq->hca, &wait);
	return rc;
}

static int make_srq(struct hca_srq *srq, const struct urxe_rq_attr *attr)
{
	struct hca *hca = srq->hca;
	int rc = work_slots_init(&srq->slots, attr->max_wr);

	if (rc)
		return rc;
	rc = hca_pd_get(hca, attr->pd, &srq->pd);
	if (rc)
		return rc;
	rc = work_ids_add(&hca->work_ids, srq, true, &srq->id);
	if (!rc) {
		rc = make_ibv_srq(srq, attr);
		if (rc)
			work_ids_remove(&hca->work_ids, srq->id);
	}
	if (rc)
		hca_pd_put(srq->pd);
	return rc;
}

int hca_srq_create(void *ctx, const struct urxe_rq_attr *attr, struct urxe_rq *engine_srq,
		   void **out)
{
	struct hca *hca = ctx;
	struct hca_srq *srq;
	int rc;

	if (hca->engine_keeps_new)
		return -EOPNOTSUPP;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->hca = hca;
	srq->srq = engine_srq;
	rc = make_srq(srq, attr);
	if (rc) {
		work_slots_free(&srq->slots);
		free(srq);
		return rc;
	}
	*out = srq;
	return 0;
}

static void destroy_ibv_srq(struct hca_destruction *destruction)
{
	const struct hca_srq *srq = HCA_OBJECT_OF(destruction, struct hca_srq);

	srq->hca->verbs->destroy_srq(srq->ibv);
}

static void free_srq(struct hca_destruction *destruction)
{
	struct hca_srq *srq = HCA_OBJECT_OF(destruction, struct hca_srq);

	hca_pd_put(srq->pd);
	work_slots_free(&srq->slots);
	free(srq);
}

static void end_srq(struct hca_srq *srq)
{
	srq->destruction = (struct hca_destruction){.call = destroy_ibv_srq, .finish = free_srq};
	hca_destroy_object(srq->hca, &srq->destruction);
}

void hca_srq_get(struct hca_srq *srq)
{
	srq->users++;
}

void hca_srq_put(struct hca_srq *srq)
{
	if (!--srq->users && !srq->srq)
		end_srq(srq);
}

/* The engine has destroyed its SRQ: destroys the HCA's SRQ, now or, if queue pairs or calls use it,
 * after the last of them (hca_srq_put). */
void hca_srq_destroy(void *hca_srq)
{
	struct hca_srq *srq = hca_srq;

	work_ids_remove(&srq->hca->work_ids, srq->id);
	srq->srq = NULL;
	if (!srq->users)
		end_srq(srq);
}

/* Modifies the queue at the HCA; may wait (wait.h). 0 or a negative errno value. Counts a user,
 * because the engine may destroy the queue during the wait. */
static int modify_srq(struct hca_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct hca *hca = srq->hca;
	struct hca_wait wait;
	int rc;

	hca_srq_get(srq);
	wait = hca_begin_wait(hca);
	rc = hca_verbs_error(hca->verbs->modify_srq(srq->ibv, attr, mask));
	hca_end_wait(hca, &wait);
	hca_srq_put(srq);
	return rc;
}

int hca_srq_set_limit(void *hca_srq, uint32_t limit)
{
	struct ibv_srq_attr attr = {.srq_limit = limit};

	return modify_srq(hca_srq, &attr, IBV_SRQ_LIMIT);
}

/* Whether each CQ that has room for the queue's completions can get room for n more: 0, or -ENOMEM,
 * if one of them would be larger than the HCA permits. Changes nothing. */
static int check_growth(const struct hca_srq *srq, uint32_t n)
{
	struct hca_qp *qp;

	LIST_FOREACH(qp, &srq->hca->qps, link)
	{
		if (qp->srq != srq || !qp->reserved_receives)
			continue;
		if (hca_cq_count(qp->recv_cq, n))
			return -ENOMEM;
		hca_cq_release(qp->recv_cq, n);
	}
	return 0;
}

/* Counts n more completions in each CQ that has room for those of the queue; after
 * check_growth(). */
static void count_growth(const struct hca_srq *srq, uint32_t n)
{
	struct hca_qp *qp;

	LIST_FOREACH(qp, &srq->hca->qps, link)
	{
		if (qp->srq != srq || !qp->reserved_receives)
			continue;
		(void)hca_cq_count(qp->recv_cq, n);
		qp->reserved_receives += n;
	}
}

static struct hca_cq *find_full_cq(const struct hca_srq *srq)
{
	struct hca_qp *qp;

	LIST_FOREACH(qp, &srq->hca->qps, link)
	if (qp->srq == srq && hca_cq_is_full(qp->recv_cq))
		return qp->recv_cq;
	return NULL;
}

/* Resizes each CQ of the queue that has less capacity than was counted. Searches anew after each
 * CQ: the list of queue pairs may change while a CQ grows. 0 or a negative errno value. */
static int grow_cqs(const struct hca_srq *srq)
{
	struct hca_cq *cq;
	int rc = 0;

	while (!rc && (cq = find_full_cq(srq)))
		rc = hca_cq_grow(cq);
	return rc;
}

/* Makes room for the completions and the slots of max_wr requests; may wait for CQs that grow. 0 or
 * a negative errno value. If the HCA refuses the growth of the queue later, the room stays
 * reserved. */
static int reserve_growth(struct hca_srq *srq, uint32_t max_wr)
{
	const uint32_t before = srq->slots.n;
	int rc = max_wr > before ? check_growth(srq, max_wr - before) : 0;

	if (!rc)
		rc = work_slots_grow(&srq->slots, max_wr);
	if (rc)
		return rc;
	count_growth(srq, srq->slots.n - before);
	return grow_cqs(srq);
}

/* Resizes the queue to max_wr requests. 0 or a negative errno value. The caller counts itself in
 * srq->resizes, which keeps other threads from posting meanwhile: providers hold their lock of a
 * queue while they resize it, so a post would wait. */
static int resize_srq(struct hca_srq *srq, uint32_t max_wr)
{
	struct ibv_srq_attr attr = {.max_wr = max_wr};
	int rc = reserve_growth(srq, max_wr);

	if (!rc)
		rc = modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
	return rc;
}

int hca_srq_resize(void *hca_srq, uint32_t max_wr)
{
	struct hca_srq *srq = hca_srq;
	int rc;

	hca_srq_get(srq);
	srq->resizes++;
	rc = resize_srq(srq, max_wr);
	srq->resizes--;
	hca_srq_put(srq);
	return rc;
}

uint32_t hca_srq_post(void *hca_srq, const struct urxe_recv_wr *wrs, uint32_t n, int *rc)
{
	struct ibv_recv_wr list[HCA_WR_BATCH + 1], *bad = NULL;
	struct hca_srq *srq = hca_srq;
	uint32_t done = 0, described, taken;

	do {
		*rc = -ENOMEM;
		if (srq->resizes)
			break;
		described = hca_wr_receives(list, wrs + done, n - done, &srq->slots, srq->id);
		if (!described)
			break;
		*rc = ibv_post_srq_recv(srq->ibv, list, &bad);
		taken = hca_wr_taken(*rc, bad ? bad - list : -1, described);
		hca_wr_unused(list + taken, described - taken, &srq->slots);
		*rc = hca_wr_error(*rc);
		done += taken;
	} while (taken == described && done < n);
	return done;
}

/* Another queue pair of the list that has the same SRQ and receive CQ; NULL: none. */
static struct hca_qp *find_same_queues(const struct hca_qp *qp)
{
	struct hca_qp *other;

	LIST_FOREACH(other, &qp->hca->qps, link)
	if (other != qp && other->srq == qp->srq && other->recv_cq == qp->recv_cq)
		break;
	return other;
}

int hca_srq_reserve(struct hca_qp *qp)
{
	return find_same_queues(qp)
		       ? hca_cq_grow(qp->recv_cq)
		       : hca_cq_reserve(qp->recv_cq, qp->srq->slots.n, &qp->reserved_receives);
}

void hca_srq_pass_room(struct hca_qp *qp)
{
	struct hca_qp *other = qp->reserved_receives ? find_same_queues(qp) : NULL;

	if (!other)
		return;
	other->reserved_receives = qp->reserved_receives;
	qp->reserved_receives = 0;
}

bool hca_srq_received(struct hca_srq *srq, uint32_t slot, uint64_t *wr_id)
{
	return work_slots_return(&srq->slots, slot, wr_id);
}
