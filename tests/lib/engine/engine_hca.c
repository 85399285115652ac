/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "engine_hca.h"

#include <errno.h>
#include <stdlib.h>

#include "require.h"

struct hca_qp {
	struct node_queue queue; /* first: the context of the node's QP */
	struct engine_hca *hca;
	struct urxe_qp *qp;
	uint32_t type;
};

struct hca_srq {
	struct node_queue queue; /* first: the context of the node's SRQ */
	struct urxe_rq *rq;
	struct urxe_rq *owner;
};

/* --- Regions. */

static int mr_reg(void *ctx, const struct urxe_mr_attr *attr, void **out, uint32_t *key)
{
	const struct engine_hca *hca = ctx;
	struct urxe_mr *mr;
	int rc = urxe_mr_reg(hca->node->dev, attr, &mr);

	if (rc)
		return rc;
	*key = urxe_mr_key(mr);
	*out = mr;
	return 0;
}

static void mr_dereg(void *mr)
{
	require(urxe_mr_dereg(mr) == 0);
}

/* --- Completion queues. */

static int cq_create(void *ctx, struct urxe_cq *owner, void **out)
{
	struct engine_hca *hca = ctx;

	for (unsigned i = 0; i < ENGINE_HCA_CQS; i++) {
		struct engine_hca_cq *cq = &hca->cqs[i];
		int rc;

		if (cq->owner)
			continue;
		*cq = (struct engine_hca_cq){.hca = hca, .cq.depth = NODE_CQ_DEPTH};
		rc = urxe_cq_create(hca->node->dev, &cq->cq, &cq->cq.cq);
		if (rc)
			return rc;
		cq->owner = owner;
		*out = cq;
		return 0;
	}
	return -ENOSPC;
}

static void cq_destroy(void *hca_cq)
{
	struct engine_hca_cq *cq = hca_cq;

	require(urxe_cq_destroy(cq->cq.cq) == 0);
	cq->owner = NULL;
}

static void cq_arm(void *hca_cq, bool solicited_only)
{
	urxe_cq_arm(((struct engine_hca_cq *)hca_cq)->cq.cq, solicited_only);
}

/* --- Shared receive queues. */

static int srq_create(void *ctx, const struct urxe_rq_attr *attr, struct urxe_rq *owner, void **out)
{
	const struct engine_hca *hca = ctx;
	struct hca_srq *srq = calloc(1, sizeof(*srq));
	struct urxe_rq_attr own = *attr;
	int rc;

	require(srq);
	own.ctx = &srq->queue;
	srq->queue.node = hca->node;
	srq->owner = owner;
	rc = urxe_srq_create(hca->node->dev, &own, &srq->rq);
	if (rc)
		free(srq);
	*out = srq;
	return rc;
}

static void srq_destroy(void *hca_srq)
{
	struct hca_srq *srq = hca_srq;

	require(urxe_srq_destroy(srq->rq) == 0);
	free(srq);
}

static int srq_set_limit(void *hca_srq, uint32_t limit)
{
	return urxe_srq_set_limit(((struct hca_srq *)hca_srq)->rq, limit);
}

static int srq_resize(void *hca_srq, uint32_t max_wr)
{
	return urxe_srq_resize(((struct hca_srq *)hca_srq)->rq, max_wr);
}

/* --- Queue pairs. */

static int qp_create(void *ctx, const struct urxe_qp_init *init,
		     const struct urxe_offload_queues *queues, void **out, uint32_t *qpn)
{
	struct engine_hca *hca = ctx;
	struct engine_hca_cq *send_cq = queues->send_cq, *recv_cq = queues->recv_cq;
	struct hca_qp *qp = calloc(1, sizeof(*qp));
	struct urxe_qp_init own = *init;
	int rc;

	require(qp);
	qp->queue.node = hca->node;
	qp->hca = hca;
	qp->type = init->type;
	own.ctx = &qp->queue;
	own.send_cq = send_cq->cq.cq;
	own.recv_cq = recv_cq->cq.cq;
	own.srq = queues->srq ? ((struct hca_srq *)queues->srq)->rq : NULL;
	if (hca->room && own.cap.max_send_wr > hca->room)
		own.cap.max_send_wr = hca->room;
	recv_cq->receives = true;
	rc = urxe_qp_create(hca->node->dev, &own, &qp->qp);
	if (rc) {
		free(qp);
		return rc;
	}
	*qpn = urxe_qp_qpn(qp->qp);
	hca->qps[hca->n_qps++ % ENGINE_HCA_QPS] = (struct engine_hca_qp){*qpn, init->srq};
	*out = qp;
	return 0;
}

static void forget_completions(const struct engine_hca *hca, uint32_t qpn)
{
	if (hca->keeps_completions)
		return;
	for (unsigned i = 0; i < ENGINE_HCA_CQS; i++) {
		struct node_cq *cq = &((struct engine_hca *)hca)->cqs[i].cq;
		uint32_t kept = cq->head;

		for (uint32_t at = cq->head; at != cq->tail; at++)
			if (cq->ring[at % NODE_CQ_DEPTH].qpn != qpn)
				cq->ring[kept++ % NODE_CQ_DEPTH] = cq->ring[at % NODE_CQ_DEPTH];
		cq->tail = kept;
	}
}

static void forget_events(const struct engine_hca *hca, const struct hca_qp *qp)
{
	for (uint32_t at = hca->n_events; at != hca->node->n_events; at++)
		if (hca->node->newest[at % NODE_EVENTS].obj == qp)
			hca->node->newest[at % NODE_EVENTS].obj = NULL;
}

static void qp_destroy(void *hca_qp)
{
	struct hca_qp *qp = hca_qp;

	forget_events(qp->hca, qp);
	forget_completions(qp->hca, urxe_qp_qpn(qp->qp));
	urxe_qp_destroy(qp->qp);
	free(qp);
}

static bool takes(void *hca_qp, const struct urxe_qp_attr *attr)
{
	(void)hca_qp;
	(void)attr;
	return true;
}

static int qp_modify(void *hca_qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	struct hca_qp *qp = hca_qp;
	int rc = urxe_qp_modify(qp->qp, qp->hca->wire->now, attr, mask);

	if (!rc && attr->state == URXE_QPS_RESET)
		forget_completions(qp->hca, urxe_qp_qpn(qp->qp));
	if (qp->hca->prompt)
		engine_hca_deliver(qp->hca);
	return rc;
}

static int qp_fail(void *hca_qp)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};

	return qp_modify(hca_qp, &attr, URXE_QP_STATE);
}

static void qp_query(void *hca_qp, struct urxe_qp_attr *attr)
{
	struct urxe_qp_init init;

	urxe_qp_query(((struct hca_qp *)hca_qp)->qp, attr, &init);
}

static int mcast_attach(void *hca_qp, const struct urxe_gid *gid)
{
	return urxe_mcast_attach(((struct hca_qp *)hca_qp)->qp, gid);
}

static void mcast_detach(void *hca_qp, const struct urxe_gid *gid)
{
	require(urxe_mcast_detach(((struct hca_qp *)hca_qp)->qp, gid) == 0);
}

/* --- Requests. */

static uint32_t post_send(void *hca_qp, const struct urxe_send_wr *wrs, uint32_t n, int *rc)
{
	struct hca_qp *qp = hca_qp;
	uint32_t i = 0;

	for (; i < n; i++) {
		struct urxe_send_wr wr = wrs[i];

		wr.flags |= URXE_SEND_SIGNALED;
		*rc = urxe_post_send(qp->qp, &wr);
		if (*rc)
			break;
	}
	return i;
}

static uint32_t post_receives(struct urxe_rq *rq, const struct urxe_recv_wr *wrs, uint32_t n,
			      int *rc)
{
	uint32_t i = 0;

	for (; i < n; i++) {
		*rc = urxe_post_recv(rq, &wrs[i]);
		if (*rc)
			break;
	}
	return i;
}

static uint32_t post_recv(void *hca_qp, const struct urxe_recv_wr *wrs, uint32_t n, int *rc)
{
	return post_receives(urxe_qp_rq(((struct hca_qp *)hca_qp)->qp), wrs, n, rc);
}

static uint32_t post_srq_recv(void *hca_srq, const struct urxe_recv_wr *wrs, uint32_t n, int *rc)
{
	return post_receives(((struct hca_srq *)hca_srq)->rq, wrs, n, rc);
}

const struct urxe_offload_ops engine_hca_ops = {
	.mr_reg = mr_reg,
	.mr_dereg = mr_dereg,
	.cq_create = cq_create,
	.cq_destroy = cq_destroy,
	.cq_arm = cq_arm,
	.srq_create = srq_create,
	.srq_destroy = srq_destroy,
	.srq_set_limit = srq_set_limit,
	.srq_resize = srq_resize,
	.qp_create = qp_create,
	.qp_destroy = qp_destroy,
	.takes = takes,
	.qp_modify = qp_modify,
	.qp_fail = qp_fail,
	.qp_query = qp_query,
	.mcast_attach = mcast_attach,
	.mcast_detach = mcast_detach,
	.post_send = post_send,
	.post_recv = post_recv,
	.post_srq_recv = post_srq_recv,
};

/* --- Completions and events. */

/* NULL: the queue pair has its own receive queue. */
static struct urxe_rq *srq_of(const struct engine_hca *hca, uint32_t qpn)
{
	uint32_t at = hca->n_qps;

	while (hca->qps[--at % ENGINE_HCA_QPS].qpn != qpn)
		;
	return hca->qps[at % ENGINE_HCA_QPS].srq;
}

static bool deliver_cq(struct engine_hca_cq *cq)
{
	struct engine_hca *hca = cq->hca;
	struct urxe_rq *srq;
	struct urxe_wc wc;
	bool any = false;

	while (node_poll(&cq->cq, &wc)) {
		/* An HCA does not tell whether a message was solicited. */
		wc.solicited = false;
		srq = cq->receives ? srq_of(hca, wc.qpn) : NULL;
		if (srq && (wc.status != URXE_WC_WR_FLUSH_ERR || !hca->forgets))
			urxe_offload_srq_complete(srq, &wc);
		else if (!srq)
			urxe_offload_complete(hca->above, &wc, cq->receives);
		any = true;
	}
	if (cq->events == cq->cq.events)
		return any;
	cq->events = cq->cq.events;
	urxe_offload_cq_event(cq->owner);
	return true;
}

static void deliver_event(struct engine_hca *hca, enum urxe_async event, void *object)
{
	if (event == URXE_ASYNC_QP_LAST_WQE_REACHED && hca->silent)
		return;
	if (event == URXE_ASYNC_SRQ_LIMIT_REACHED || event == URXE_ASYNC_SRQ_ERR)
		urxe_offload_srq_event(((struct hca_srq *)object)->owner, event);
	else
		urxe_offload_qp_event(hca->above, urxe_qp_qpn(((struct hca_qp *)object)->qp),
				      event);
}

bool engine_hca_deliver(struct engine_hca *hca)
{
	bool any = false;

	for (unsigned i = 0; i < ENGINE_HCA_CQS; i++)
		if (hca->cqs[i].owner)
			any |= deliver_cq(&hca->cqs[i]);
	for (; hca->n_events != hca->node->n_events; hca->n_events++) {
		const struct node_event *event = &hca->node->newest[hca->n_events % NODE_EVENTS];

		require(hca->node->n_events - hca->n_events <= NODE_EVENTS);
		if (event->obj)
			deliver_event(hca, event->event, event->obj);
		any = true;
	}
	return any;
}
