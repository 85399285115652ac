/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A double of an HCA: records the calls of the engine, holds requests, and completes them when the
 * test says so. It sends nothing.
 */
#ifndef URXE_TEST_HCA_DOUBLE_H
#define URXE_TEST_HCA_DOUBLE_H

#include <errno.h>
#include <string.h>

#include <rxe/offload.h>

#include "../engine.h"

#define HCA_QPN   0x7f0001u /* of the first QP; then consecutive */
#define HCA_KEY   0xc0ffee00u
#define HCA_DEPTH 64
#define HCA_QPS   8

struct hca_qp {
	struct hca *hca;
	uint32_t qpn;
	uint8_t state;
	uint32_t modified; /* mask of the newest modification */
	bool has_srq;
	struct urxe_send_wr sends[HCA_DEPTH];
	struct urxe_seg seg[HCA_DEPTH]; /* first segment of each */
	uint32_t n_sends;
	uint64_t recv_ids[HCA_DEPTH];
	uint32_t n_recvs;
	uint32_t recvs_at_rtr; /* n_recvs when the QP went to RTR */
	uint32_t groups;
	bool destroyed;
};

struct hca {
	struct urxe_dev *dev;
	struct hca_qp qps[HCA_QPS];
	uint32_t n_qps;
	uint32_t regions, cqs, srqs; /* number of existing ones */
	struct urxe_rq *srq;         /* of the engine: the newest one */
	uint64_t srq_ids[HCA_DEPTH];
	uint32_t n_srq_recvs;
	uint32_t srq_limit;
	uint32_t arms, solicited_arms;
	/* What the HCA does: */
	bool takes;
	uint32_t room;     /* requests of a queue that it takes */
	uint32_t next_qpn; /* QPN of the next QP, 0 = HCA_QPN + its index */
	uint32_t next_key; /* of the next region, 0 = HCA_KEY + number of regions */
	int refuse_send;   /* error of post_send instead of -ENOMEM */
	uint32_t bad_recv; /* it refuses the SRQ's receive that is offered as this one; 0 = none */
	uint32_t offered;  /* receives of SRQs so far */
	int refuse_mr;     /* error of mr_reg */
	int refuse_qp;     /* error of qp_create */
	int refuse_modify; /* error of qp_modify to the state refuse_state */
	uint8_t refuse_state;
	uint8_t state; /* answer of qp_query */
};

static int hca_mr_reg(void *ctx, const struct urxe_mr_attr *attr, void **mr, uint32_t *key)
{
	struct hca *hca = ctx;

	(void)attr;
	if (hca->refuse_mr)
		return hca->refuse_mr;
	*key = hca->next_key ? hca->next_key : HCA_KEY + hca->regions;
	hca->regions++;
	*mr = hca;
	return 0;
}

static void hca_mr_dereg(void *mr)
{
	((struct hca *)mr)->regions--;
}

static int hca_cq_create(void *ctx, struct urxe_cq *cq, void **hca_cq)
{
	(void)cq;
	((struct hca *)ctx)->cqs++;
	*hca_cq = ctx;
	return 0;
}

static void hca_cq_destroy(void *cq)
{
	((struct hca *)cq)->cqs--;
}

static void hca_cq_arm(void *cq, bool solicited_only)
{
	struct hca *hca = cq;

	hca->arms += !solicited_only;
	hca->solicited_arms += solicited_only;
}

static int hca_srq_create(void *ctx, const struct urxe_rq_attr *attr, struct urxe_rq *srq,
			  void **hca_srq)
{
	(void)attr;
	((struct hca *)ctx)->srq = srq;
	((struct hca *)ctx)->srqs++;
	*hca_srq = ctx;
	return 0;
}

static void hca_srq_destroy(void *srq)
{
	((struct hca *)srq)->srqs--;
}

static int hca_srq_set_limit(void *srq, uint32_t limit)
{
	((struct hca *)srq)->srq_limit = limit;
	return 0;
}

static int hca_srq_resize(void *srq, uint32_t max_wr)
{
	(void)srq;
	return max_wr > HCA_DEPTH ? -EINVAL : 0;
}

static int hca_qp_create(void *ctx, const struct urxe_qp_init *init,
			 const struct urxe_offload_queues *queues, void **hca_qp, uint32_t *qpn)
{
	struct hca *hca = ctx;
	struct hca_qp *own = hca->qps;

	if (hca->refuse_qp)
		return hca->refuse_qp;
	while (own->qpn && !own->destroyed)
		own++;
	assert_true(own < hca->qps + HCA_QPS);
	assert_ptr_equal(queues->send_cq, hca);
	assert_ptr_equal(queues->recv_cq, hca);
	assert_int_equal(!!queues->srq, !!init->srq);
	if (own == hca->qps + hca->n_qps)
		hca->n_qps++;
	*own = (struct hca_qp){.hca = hca, .has_srq = queues->srq};
	own->qpn = hca->next_qpn ? hca->next_qpn : HCA_QPN + (uint32_t)(own - hca->qps);
	*hca_qp = own;
	*qpn = own->qpn;
	return 0;
}

static void hca_qp_destroy(void *qp)
{
	((struct hca_qp *)qp)->destroyed = true;
}

static bool hca_takes(void *qp, const struct urxe_qp_attr *attr)
{
	(void)attr;
	return ((struct hca_qp *)qp)->hca->takes;
}

static int hca_qp_modify(void *hca_qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	struct hca_qp *qp = hca_qp;

	assert_false(qp->destroyed);
	if (qp->hca->refuse_modify && attr->state == qp->hca->refuse_state)
		return qp->hca->refuse_modify;
	if (attr->state == URXE_QPS_RTR)
		qp->recvs_at_rtr = qp->n_recvs;
	if (attr->state == URXE_QPS_RESET)
		qp->n_sends = qp->n_recvs = 0;
	qp->state = attr->state;
	qp->modified = mask;
	return 0;
}

static int hca_qp_fail(void *hca_qp)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};

	return hca_qp_modify(hca_qp, &attr, URXE_QP_STATE);
}

static void hca_qp_query(void *hca_qp, struct urxe_qp_attr *attr)
{
	attr->state = ((struct hca_qp *)hca_qp)->hca->state;
	attr->rq_psn = 0xaaaaaa;
	attr->sq_psn = 0x555555;
	attr->sq_draining = true;
}

static int hca_mcast_attach(void *hca_qp, const struct urxe_gid *gid)
{
	(void)gid;
	((struct hca_qp *)hca_qp)->groups++;
	return 0;
}

static void hca_mcast_detach(void *hca_qp, const struct urxe_gid *gid)
{
	(void)gid;
	((struct hca_qp *)hca_qp)->groups--;
}

static uint32_t hca_post_send(void *hca_qp, const struct urxe_send_wr *wrs, uint32_t n, int *rc)
{
	struct hca_qp *qp = hca_qp;
	uint32_t i = 0;

	assert_false(qp->destroyed);
	for (; i < n && qp->n_sends < qp->hca->room && !qp->hca->refuse_send; i++) {
		if (wrs[i].n_segs)
			qp->seg[qp->n_sends] = wrs[i].segs[0];
		qp->sends[qp->n_sends++] = wrs[i];
	}
	*rc = i == n ? 0 : qp->hca->refuse_send ? qp->hca->refuse_send : -ENOMEM;
	return i;
}

static uint32_t hca_post_recv(void *hca_qp, const struct urxe_recv_wr *wrs, uint32_t n, int *rc)
{
	struct hca_qp *qp = hca_qp;
	uint32_t i = 0;

	assert_false(qp->destroyed);
	for (; i < n && qp->n_recvs < qp->hca->room; i++)
		qp->recv_ids[qp->n_recvs++] = wrs[i].wr_id;
	*rc = i == n ? 0 : -ENOMEM;
	return i;
}

static uint32_t hca_post_srq_recv(void *srq, const struct urxe_recv_wr *wrs, uint32_t n, int *rc)
{
	struct hca *hca = srq;
	uint32_t i = 0;

	for (; i < n && hca->n_srq_recvs < hca->room; i++) {
		*rc = -EINVAL;
		if (++hca->offered == hca->bad_recv)
			return i;
		hca->srq_ids[hca->n_srq_recvs++] = wrs[i].wr_id;
	}
	*rc = i == n ? 0 : -ENOMEM;
	return i;
}

static const struct urxe_offload_ops hca_ops = {
	.mr_reg = hca_mr_reg,
	.mr_dereg = hca_mr_dereg,
	.cq_create = hca_cq_create,
	.cq_destroy = hca_cq_destroy,
	.cq_arm = hca_cq_arm,
	.srq_create = hca_srq_create,
	.srq_destroy = hca_srq_destroy,
	.srq_set_limit = hca_srq_set_limit,
	.srq_resize = hca_srq_resize,
	.qp_create = hca_qp_create,
	.qp_destroy = hca_qp_destroy,
	.takes = hca_takes,
	.qp_modify = hca_qp_modify,
	.qp_fail = hca_qp_fail,
	.qp_query = hca_qp_query,
	.mcast_attach = hca_mcast_attach,
	.mcast_detach = hca_mcast_detach,
	.post_send = hca_post_send,
	.post_recv = hca_post_recv,
	.post_srq_recv = hca_post_srq_recv,
};

/* Gives the node an HCA. The node's region is registered anew, with the HCA; if `alone`, the region
 * stays the engine's. */
static inline void hca_open(struct hca *hca, struct node *node, bool alone)
{
	*hca = (struct hca){
		.dev = node->dev,
		.takes = true,
		.room = HCA_DEPTH,
		.state = URXE_QPS_ERR,
	};
	if (!alone)
		assert_int_equal(urxe_mr_dereg(node->mr), 0);
	urxe_offload_set(node->dev, &hca_ops, hca);
	if (alone)
		return;
	node->mr = node_reg(node, NODE_PD, NODE_ACCESS, 0, node->mem_size);
	node->key = urxe_mr_key(node->mr);
}

/* The HCA completes the oldest request of a QP's send queue. */
static inline void hca_complete_send(struct hca_qp *qp, uint32_t status)
{
	const struct urxe_wc wc = {.qpn = qp->qpn, .wr_id = qp->sends[0].wr_id, .status = status};

	assert_true(qp->n_sends);
	qp->n_sends--;
	memmove(qp->sends, qp->sends + 1, qp->n_sends * sizeof(qp->sends[0]));
	urxe_offload_complete(qp->hca->dev, &wc, false);
}

/* The HCA completes the oldest receive request of the QP or its SRQ. */
static inline void hca_complete_recv(struct hca_qp *qp, uint32_t status)
{
	uint64_t *ids = qp->has_srq ? qp->hca->srq_ids : qp->recv_ids;
	uint32_t *n = qp->has_srq ? &qp->hca->n_srq_recvs : &qp->n_recvs;
	const struct urxe_wc wc = {
		.qpn = qp->qpn,
		.wr_id = ids[0],
		.status = status,
		.opcode = URXE_WC_RECV,
		.byte_len = 100,
	};

	assert_true(*n);
	(*n)--;
	memmove(ids, ids + 1, *n * sizeof(ids[0]));
	if (qp->has_srq)
		urxe_offload_srq_complete(qp->hca->srq, &wc);
	else
		urxe_offload_complete(qp->hca->dev, &wc, true);
}

#endif
