/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "hca_qp.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca_device.h"
#include "hca/hca_event.h"
#include "hca_cq.h"
#include "hca_qp_attr.h"
#include "hca_srq.h"
#include "wait.h"

#define QPN_MIN 2u        /* 0 and 1 are the SMI's and the GSI's */
#define QPN_MAX 0xfffffeu /* 0xffffff is the destination QPN of multicast packets */

static struct ibv_qp *try_create(const struct hca_qp *qp, const struct urxe_qp_init *init,
				 uint32_t max_inline)
{
	uint32_t max_sge = (uint32_t)qp->hca->attr.max_sge;
	struct ibv_qp_init_attr attr = {
		.qp_context = (void *)(uintptr_t)qp,
		.send_cq = qp->send_cq->ibv,
		.recv_cq = qp->recv_cq->ibv,
		.srq = qp->srq ? qp->srq->ibv : NULL,
		.cap = {.max_send_wr = init->cap.max_send_wr ? init->cap.max_send_wr : 1,
			.max_recv_wr = qp->srq ? 0 : init->cap.max_recv_wr,
			.max_send_sge = init->cap.max_send_sge,
			.max_recv_sge = qp->srq ? 0 : init->cap.max_recv_sge,
			.max_inline_data = max_inline},
		.qp_type = (enum ibv_qp_type)init->type,
		/* The engine needs a completion of each request. */
		.sq_sig_all = 1,
	};

	/* The engine may ask for more segments than the HCA has: the engine's owner rounds the
	 * program's number up to as many as fit in a slot of the ring. A machine's driver may also
	 * have read the limit before the host had the HCA. */
	if (attr.cap.max_send_sge > max_sge)
		attr.cap.max_send_sge = max_sge;
	if (attr.cap.max_recv_sge > max_sge)
		attr.cap.max_recv_sge = max_sge;
	return qp->hca->verbs->create_qp(qp->pd->pd, &attr);
}

/* Registers memory for inline data, because the HCA has refused a queue pair with inline data. 0 or
 * a negative errno value; the caller calls free_inline() also after an error. */
static int make_inline(struct hca_qp *qp, uint32_t max_inline)
{
	size_t size = (size_t)(qp->ring_mask + 1) * max_inline;

	qp->inline_data = malloc(size);
	if (!qp->inline_data)
		return -ENOMEM;
	qp->max_inline = max_inline;
	qp->inline_mr = qp->hca->verbs->reg_mr(qp->pd->pd, qp->inline_data, size,
					       (uintptr_t)qp->inline_data, 0);
	return qp->inline_mr ? 0 : hca_verbs_null_error();
}

static void free_inline(struct hca_qp *qp)
{
	if (qp->inline_mr)
		qp->hca->verbs->dereg_mr(qp->inline_mr);
	free(qp->inline_data);
}

static void unmake_ibv_qp(struct hca_qp *qp)
{
	qp->hca->verbs->destroy_qp(qp->ibv);
	free_inline(qp);
}

static int make_ibv_qp(struct hca_qp *qp, const struct urxe_qp_init *init)
{
	int rc = 0;

	qp->ibv = try_create(qp, init, init->cap.max_inline);
	if (!qp->ibv && init->cap.max_inline) {
		qp->ibv = try_create(qp, init, 0);
		if (qp->ibv)
			rc = make_inline(qp, init->cap.max_inline);
	}
	if (!qp->ibv)
		return hca_verbs_null_error();
	if (!rc && (qp->ibv->qp_num < QPN_MIN || qp->ibv->qp_num > QPN_MAX))
		rc = -EOPNOTSUPP;
	if (rc)
		unmake_ibv_qp(qp);
	return rc;
}

/* Makes the queue pair at the HCA. 0, or a negative errno value: then the HCA has no such queue
 * pair. -EOPNOTSUPP: one of its CQs has overrun, or the HCA has given it a reserved QPN. */
static int make_usable_qp(struct hca_qp *qp, const struct urxe_qp_init *init)
{
	struct hca_wait wait = hca_begin_wait(qp->hca);
	int rc = make_ibv_qp(qp, init);

	hca_end_wait(qp->hca, &wait);
	if (rc || (!qp->send_cq->overrun && !qp->recv_cq->overrun))
		return rc;
	wait = hca_begin_wait(qp->hca);
	unmake_ibv_qp(qp);
	hca_end_wait(qp->hca, &wait);
	return -EOPNOTSUPP;
}

/* Reserves room in both CQs for the completions of all requests. Begins with the receives: a shared
 * receive queue that grows while the second reservation waits adds its growth only to reservations
 * that exist (hca_srq.c). 0 or a negative errno value. */
static int reserve_completions(struct hca_qp *qp, const struct urxe_qp_init *init)
{
	int rc = qp->srq ? hca_srq_reserve(qp)
			 : hca_cq_reserve(qp->recv_cq, init->cap.max_recv_wr,
					  &qp->reserved_receives);

	return rc ? rc : hca_cq_reserve(qp->send_cq, init->cap.max_send_wr, &qp->max_sends);
}

static void release_completions(struct hca_qp *qp)
{
	hca_cq_release(qp->send_cq, qp->max_sends);
	hca_cq_release(qp->recv_cq, qp->reserved_receives);
}

static void remove_from_list(struct hca_qp *qp)
{
	LIST_REMOVE(qp, link);
	if (qp->srq)
		hca_srq_pass_room(qp);
}

/* Allocates memory for the queue pair's requests: the ring of address handles, and the slots of its
 * receive requests. 0 or -ENOMEM; the caller calls free_qp() also after an error. */
static int make_requests(struct hca_qp *qp, const struct urxe_qp_init *init)
{
	while (qp->ring_mask + 1 < init->cap.max_send_wr)
		qp->ring_mask = 2 * qp->ring_mask + 1;
	if (init->type == URXE_QPT_UD) {
		qp->ahs = calloc(qp->ring_mask + 1, sizeof(struct hca_ah *));
		if (!qp->ahs)
			return -ENOMEM;
	}
	return work_slots_init(&qp->receives, qp->srq ? 0 : init->cap.max_recv_wr);
}

static int make_objects(struct hca_qp *qp, const struct urxe_qp_init *init)
{
	int rc = hca_pd_get(qp->hca, init->pd, &qp->pd);

	if (rc)
		return rc;
	rc = work_ids_add(&qp->hca->work_ids, qp, false, &qp->id);
	if (rc)
		goto no_id;
	/* From now on a growth of the SRQ also makes room in the queue pair's receive CQ. */
	LIST_INSERT_HEAD(&qp->hca->qps, qp, link);
	rc = reserve_completions(qp, init);
	if (!rc)
		rc = make_usable_qp(qp, init);
	if (!rc)
		return 0;
	remove_from_list(qp);
	release_completions(qp);
	work_ids_remove(&qp->hca->work_ids, qp->id);
no_id:
	hca_pd_put(qp->pd);
	return rc;
}

/* Calls `of_cq` and `of_srq` for the queues that the queue pair uses. */
static void use_queues(struct hca_qp *qp, void (*of_cq)(struct hca_cq *),
		       void (*of_srq)(struct hca_srq *))
{
	of_cq(qp->send_cq);
	of_cq(qp->recv_cq);
	if (qp->srq)
		of_srq(qp->srq);
}

static void free_qp(struct hca_qp *qp)
{
	work_slots_free(&qp->receives);
	free(qp->ahs);
	free(qp);
}

int hca_qp_create(void *ctx, const struct urxe_qp_init *init,
		  const struct urxe_offload_queues *queues, void **out, uint32_t *qpn)
{
	struct hca *hca = ctx;
	struct hca_qp *qp;
	int rc;

	/* libibverbs' create_qp() has no flag for block_self_mcast. */
	if (init->block_self_mcast || (hca->engine_keeps_new && !queues->srq))
		return -EOPNOTSUPP;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->hca = hca;
	qp->ctx = init->ctx;
	qp->send_cq = queues->send_cq;
	qp->recv_cq = queues->recv_cq;
	qp->srq = queues->srq;
	use_queues(qp, hca_cq_get, hca_srq_get);
	rc = make_requests(qp, init);
	if (!rc)
		rc = make_objects(qp, init);
	if (rc) {
		use_queues(qp, hca_cq_put, hca_srq_put);
		free_qp(qp);
		return rc;
	}
	/* The receive CQ is polled as long as the queue pair exists: peers may send at any time to
	 * a shared receive queue. */
	if (qp->srq)
		hca_cq_expect(qp->recv_cq, 1);
	*out = qp;
	*qpn = qp->ibv->qp_num;
	return 0;
}

static void destroy_ibv_qp(struct hca_destruction *destruction)
{
	struct hca_qp *qp = HCA_OBJECT_OF(destruction, struct hca_qp);

	qp->hca->verbs->destroy_qp(qp->ibv);
	free_inline(qp);
}

static void finish_qp(struct hca_destruction *destruction)
{
	struct hca_qp *qp = HCA_OBJECT_OF(destruction, struct hca_qp);

	hca_qp_forget_requests(qp);
	if (qp->srq)
		qp->recv_cq->outstanding--;
	release_completions(qp);
	use_queues(qp, hca_cq_put, hca_srq_put);
	hca_pd_put(qp->pd);
	free_qp(qp);
}

/*
 * Destroys the HCA's queue pair, at once or later (hca_defer_destruction). Always at once if the
 * engine flushes the requests itself: when the HCA is detached, or does not flush the requests of
 * this queue pair (ends_at_once).
 */
void hca_qp_destroy(void *hca_qp)
{
	struct hca_qp *qp = hca_qp;
	struct hca *hca = qp->hca;
	const bool defers = hca->defers;

	work_ids_remove(&hca->work_ids, qp->id);
	remove_from_list(qp);
	qp->destruction = (struct hca_destruction){.call = destroy_ibv_qp, .finish = finish_qp};
	hca->defers &= !hca->detaching && hca->dev && !qp->ends_at_once;
	hca_destroy_object(hca, &qp->destruction);
	hca->defers = defers;
}

uint32_t hca_qp_number(const struct hca_qp *qp)
{
	return qp->ibv->qp_num;
}

bool hca_qp_takes(void *hca_qp, const struct urxe_qp_attr *attr)
{
	const struct hca_qp *qp = hca_qp;
	const struct hca_owner *owner = qp->hca->owner;

	return hca_has_gid(qp->hca, attr->path.sgid_index) &&
	       hca_has_mtu(qp->hca, attr->path_mtu) && owner->takes(owner->ctx, qp->ctx, attr);
}

static int modify_at_hca(struct hca_qp *qp, struct ibv_qp_attr *attr, uint32_t mask)
{
	struct hca_wait wait = hca_begin_wait(qp->hca);
	int rc = hca_verbs_error(qp->hca->verbs->modify_qp(qp->ibv, attr, (int)mask));

	hca_end_wait(qp->hca, &wait);
	return rc;
}

/*
 * Moves the HCA's queue pair to RESET, and forgets its requests. 0, or a negative errno value; then
 * nothing has changed. Gives the queue pair a new id, so that completions of requests before the
 * reset name no queue. Takes the id first, because there may be no memory for it, and a reset
 * cannot be taken back.
 */
static int reset_at_hca(struct hca_qp *qp, struct ibv_qp_attr *attr, uint32_t mask)
{
	struct work_ids *ids = &qp->hca->work_ids;
	uint32_t id;
	int rc = work_ids_add(ids, qp, false, &id);

	if (rc)
		return rc;
	rc = modify_at_hca(qp, attr, mask);
	work_ids_remove(ids, rc ? id : qp->id);
	if (rc)
		return rc;
	qp->id = id;
	hca_qp_forget_requests(qp);
	return 0;
}

/* A receive of a shared receive queue has the id of that queue, so a completion from before a
 * reset, or of a destroyed queue pair with the same QPN, looks like one of this queue pair. Passes
 * these completions before the HCA executes the queue pair. Keeps the lock while it does so,
 * because hca_poll() does not expect other threads. 0, or the error of
 * hca_cq_await_resize(). */
static int pass_earlier_receives(const struct hca_qp *qp, const struct urxe_qp_attr *to,
				 uint32_t mask)
{
	struct hca *hca = qp->hca;
	const bool may_unlock = hca->may_unlock;
	int rc;

	if (!qp->srq || !(mask & URXE_QP_STATE) || to->state != URXE_QPS_INIT)
		return 0;
	rc = hca_cq_await_resize(qp->recv_cq);
	if (rc)
		return rc;
	hca->may_unlock = false;
	hca_pass_completions(hca);
	hca->may_unlock = may_unlock;
	return 0;
}

int hca_qp_modify(void *hca_qp, const struct urxe_qp_attr *from, uint32_t mask)
{
	struct hca_qp *qp = hca_qp;
	struct ibv_qp_attr attr;
	int rc;

	/* Drivers without rate limits refuse the attribute. So the HCA gets a limit of 0 only if
	 * the queue pair has a limit, which 0 ends. */
	if (!from->rate_limit && !qp->limited)
		mask &= ~(uint32_t)URXE_QP_RATE_LIMIT;
	rc = hca_qp_attr(qp->hca, &attr, from, &mask);
	if (rc || !mask)
		return rc;
	rc = pass_earlier_receives(qp, from, mask);
	if (rc)
		return rc;
	if (mask & URXE_QP_STATE && from->state == URXE_QPS_RESET)
		rc = reset_at_hca(qp, &attr, mask);
	else
		rc = modify_at_hca(qp, &attr, mask);
	qp->ends_at_once |= rc && mask & URXE_QP_STATE && from->state == URXE_QPS_ERR;
	if (!rc && mask & URXE_QP_RATE_LIMIT)
		qp->limited = from->rate_limit;
	return rc;
}

int hca_qp_fail(void *hca_qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct hca_qp *qp = hca_qp;
	int rc, cancel;

	/* A thread that has adapter.lock must not end in a write(2) or ioctl(2) of the provider. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rc = hca_verbs_error(qp->hca->verbs->modify_qp(qp->ibv, &attr, IBV_QP_STATE));
	pthread_setcancelstate(cancel, NULL);
	qp->ends_at_once |= rc != 0;
	return rc;
}

void hca_qp_query(void *hca_qp, struct urxe_qp_attr *attr)
{
	const int mask = IBV_QP_STATE | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now = {0};
	struct hca_qp *qp = hca_qp;
	struct hca_wait wait;
	int rc, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	wait = hca_begin_wait(qp->hca);
	rc = qp->hca->verbs->query_qp(qp->ibv, &now, mask, &init);
	hca_end_wait(qp->hca, &wait);
	pthread_setcancelstate(cancel, NULL);
	if (rc)
		return;
	attr->state = (uint8_t)now.qp_state;
	attr->rq_psn = now.rq_psn;
	attr->sq_psn = now.sq_psn;
	attr->sq_draining = now.sq_draining;
}

static union ibv_gid group(const struct urxe_gid *gid)
{
	union ibv_gid to;

	memcpy(to.raw, gid->raw, sizeof(to.raw));
	return to;
}

int hca_qp_mcast_attach(void *hca_qp, const struct urxe_gid *gid)
{
	const union ibv_gid to = group(gid);
	struct hca_qp *qp = hca_qp;
	struct hca_wait wait = hca_begin_wait(qp->hca);
	int rc = hca_verbs_error(qp->hca->verbs->attach_mcast(qp->ibv, &to, 0));

	hca_end_wait(qp->hca, &wait);
	return rc;
}

void hca_qp_mcast_detach(void *hca_qp, const struct urxe_gid *gid)
{
	const union ibv_gid to = group(gid);
	struct hca_qp *qp = hca_qp;
	struct hca_wait wait = hca_begin_wait(qp->hca);

	qp->hca->verbs->detach_mcast(qp->ibv, &to, 0);
	hca_end_wait(qp->hca, &wait);
}
