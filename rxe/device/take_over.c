/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine takes over the queue pairs that the HCA executes. First the engine waits until the HCA
 * has completed the send requests; until then the owner may abandon the take-over without any
 * effect. Then the engine moves the HCA's queue pairs to the error state, in which they send and
 * receive nothing, and queries their PSNs. From then on the HCA cannot execute these queue pairs
 * any more. Each queue pair goes on in the engine when the HCA has given back its receive requests,
 * even if the owner has abandoned the take-over.
 *
 * The HCA does not give back the requests of a shared receive queue. The engine waits until no
 * queue pair of the HCA takes requests any more and the owner has passed all completions on, then
 * takes the requests that have not completed. So the queue pairs of a shared receive queue go on
 * together.
 */
#include <errno.h>

#include "objects/completion.h"
#include "objects/device.h"
#include "objects/rq.h"
#include "offload/hooks.h"
#include "requester/requester.h"
#include "requester/retransmit.h"
#include "responder/resume.h"

#define NO_PSN UINT32_MAX

/* Longest wait for the HCA's URXE_ASYNC_QP_LAST_WQE_REACHED, which tells that a queue pair takes no
 * more requests of its shared receive queue. Some drivers never report this event. */
#define LAST_WQE_NS UINT64_C(100000000)

/* --- PSNs of the HCA's queue pairs. */

/* Whether the HCA counts PSNs for the receive side, or the send side, of the queue pair. */
static bool has_rq_psn(const struct urxe_qp *qp)
{
	return qp->type != URXE_QPT_UD && qp->attr.state >= URXE_QPS_RTR &&
	       qp->attr.state <= URXE_QPS_SQE;
}

static bool has_sq_psn(const struct urxe_qp *qp)
{
	return has_rq_psn(qp) && qp->attr.state >= URXE_QPS_RTS && qp->attr.state <= URXE_QPS_SQD;
}

static void query_psns(const struct urxe_qp *qp, struct urxe_qp_attr *attr)
{
	*attr = (struct urxe_qp_attr){.sq_psn = NO_PSN, .rq_psn = NO_PSN};
	qp->dev->offload->qp_query(qp->hca, attr);
}

/*
 * Whether the PSNs that the HCA returned can be current: drivers may return those of the last
 * modification. The engine has counted the packets that the HCA has sent, and the packets of
 * received messages that used up a receive request.
 */
static bool has_true_psns(const struct urxe_qp *qp, const struct urxe_qp_attr *told)
{
	const bool received = qp->resp.psn != qp->attr.rq_psn;

	if (has_sq_psn(qp) && told->sq_psn != qp->req.psn)
		return false;
	if (!has_rq_psn(qp))
		return true;
	if (told->rq_psn > URXE_PSN_MASK)
		return false;
	if (qp->uncounted || qp->type != URXE_QPT_RC)
		return told->rq_psn != qp->attr.rq_psn || !received;
	return urxe_psn_diff(told->rq_psn, qp->resp.psn) >= 0;
}

/* Whether a PSN differs from that of the modification: then the driver returns current PSNs. */
static bool has_moved(const struct urxe_qp *qp, const struct urxe_qp_attr *told)
{
	return (has_sq_psn(qp) && told->sq_psn != qp->attr.sq_psn) ||
	       (has_rq_psn(qp) && told->rq_psn != qp->attr.rq_psn);
}

/* --- Preconditions. */

static int wait_for(struct urxe_offload_refusal *refusal, enum urxe_offload_reason reason)
{
	refusal->reason = reason;
	return -EAGAIN;
}

static int refuse(struct urxe_dev *dev, struct urxe_offload_refusal *refusal, uint32_t qpn,
		  enum urxe_offload_reason reason)
{
	*refusal = (struct urxe_offload_refusal){.reason = reason, .qpn = qpn};
	urxe_offload_keep(dev);
	return -EOPNOTSUPP;
}

static struct urxe_qp *next_offloaded(const struct urxe_dev *dev, uint32_t *at)
{
	struct urxe_qp *qp;

	while ((qp = idmap_next(&dev->qps, at)))
		if (qp->offloaded)
			return qp;
	return NULL;
}

/* A connected queue pair whose path has no next hop for the engine; NULL: none. */
static const struct urxe_qp *find_without_hop(const struct urxe_dev *dev)
{
	const struct urxe_qp *qp;
	uint32_t at = 0;

	while ((qp = next_offloaded(dev, &at)))
		if (has_rq_psn(qp) && !urxe_path_has_next_hop(&qp->attr.path))
			return qp;
	return NULL;
}

/* Whether the HCA has send requests, or an operation waits for the HCA: one of an offloaded queue
 * pair, or of a queue pair with a shared receive queue, which the HCA may execute afterwards. */
static bool has_outstanding(const struct urxe_dev *dev)
{
	const struct urxe_qp *qp;
	uint32_t at = 0;

	while ((qp = idmap_next(&dev->qps, &at)))
		if (offload_has_sends(qp) || (qp->calling && (qp->offloaded || !qp->rq->qp)))
			return true;
	return false;
}

/* Notes the HCA's expected PSN. Returns whether the peer has sent requests since the last query. */
static bool note_psn(struct urxe_qp *qp, const struct urxe_qp_attr *told)
{
	const uint32_t before = qp->resp.resume.psn;

	qp->resp.resume.psn = told->rq_psn;
	return told->rq_psn != before;
}

/*
 * Queries the PSNs of all connections. 0, or -EOPNOTSUPP with the reason in *refusal if the HCA
 * does not return current PSNs. Sets *busy if a peer has sent requests since the last call of this
 * attempt. In the first call of an attempt always sets *busy: the PSNs of an earlier attempt may
 * have been noted a moment ago, so equal PSNs do not show a pause.
 */
static int check_psns(struct urxe_dev *dev, bool begins, struct urxe_offload_refusal *refusal,
		      bool *busy)
{
	const struct urxe_qp *unknown = NULL;
	struct urxe_qp *qp;
	struct urxe_qp_attr told;
	bool moved = false;
	uint32_t at = 0;

	while ((qp = next_offloaded(dev, &at))) {
		if (qp->stopping || !has_rq_psn(qp))
			continue;
		query_psns(qp, &told);
		if (!has_true_psns(qp, &told))
			return refuse(dev, refusal, qp->qpn, URXE_OFFLOAD_STALE_PSN);
		moved |= has_moved(qp, &told);
		*busy |= note_psn(qp, &told) || begins;
		if (qp->uncounted)
			unknown = qp;
	}
	if (unknown && !moved)
		return refuse(dev, refusal, unknown->qpn, URXE_OFFLOAD_UNPROVEN_PSN);
	return 0;
}

/* --- The end of the HCA's queue pairs. */

/* Fails a queue pair with which neither the HCA nor the engine can go on. */
static void give_up(struct urxe_qp *qp)
{
	offload_destroy_qp(qp);
	qp_error_event(qp, URXE_ASYNC_QP_FATAL);
}

static void stop_hca(struct urxe_qp *qp)
{
	struct urxe_qp_attr told;

	if (qp->hca_ops->qp_fail(qp->hca)) {
		give_up(qp);
		return;
	}
	query_psns(qp, &told);
	if (!has_true_psns(qp, &told)) {
		give_up(qp);
		return;
	}
	qp->stopping = true;
	/* In INIT the HCA's queue pair has not taken any receive request. */
	qp->drained = qp->attr.state == URXE_QPS_INIT;
	/* Not resp.psn: completions of messages before this PSN may still wait in the HCA's CQ. */
	qp->resp.resume.psn = told.rq_psn;
}

static void stop_srqs(struct urxe_dev *dev)
{
	struct urxe_rq *srq;

	LIST_FOREACH(srq, &dev->srqs, link)
	{
		if (!srq->hca || srq->stopping)
			continue;
		srq->stopping = true;
		srq->stopped_at = dev->now;
	}
}

static void stop_all(struct urxe_dev *dev)
{
	struct urxe_qp *qp;
	uint32_t at = 0;

	while ((qp = next_offloaded(dev, &at)))
		if (!qp->stopping && qp->attr.state != URXE_QPS_ERR)
			stop_hca(qp);
	stop_srqs(dev);
}

/* Whether the QP can leave the HCA: no operation of the program waits for the HCA, and the HCA has
 * given back all receive requests, or takes no more of the SRQ. */
static bool is_free_of_hca(const struct urxe_qp *qp)
{
	const struct urxe_rq *rq = qp->rq;

	return !qp->calling && (rq->qp ? rq->tail - rq->retired == qp->returned : qp->drained);
}

static void go_on(struct urxe_qp *qp)
{
	const bool counted = !qp->uncounted;
	struct sq *sq = &qp->sq;

	offload_destroy_qp(qp);
	if (has_rq_psn(qp))
		resume_start(qp, qp->resp.resume.psn, counted);
	qp->req.una = qp->req.psn;
	retransmit_init(qp);
	if (sq->cur != sq->head)
		sq_wqe(sq, sq->cur)->first_psn = qp->req.psn;
	qp_publish_rights(qp);
	qp_schedule(qp);
	req_check_drained(qp);
	if (qp->attr.state == URXE_QPS_ERR)
		tell_last_wqe(qp);
}

/* --- Shared receive queues. */

/* The next queue pair of the SRQ that the HCA has, too; NULL: none is left. */
static struct urxe_qp *next_of_srq(const struct urxe_rq *srq, uint32_t *at)
{
	struct urxe_qp *qp;

	while ((qp = idmap_next(&srq->dev->qps, at)))
		if (qp->rq == srq && (qp->offloaded || qp->hca))
			return qp;
	return NULL;
}

static bool is_srq_free(const struct urxe_rq *srq)
{
	const struct urxe_qp *qp;
	uint32_t at = 0;

	while ((qp = next_of_srq(srq, &at)))
		if (qp->offloaded ? !is_free_of_hca(qp) : qp->calling)
			return false;
	return true;
}

/* The engine goes on with the SRQ's queue pairs, and takes the SRQ's requests back. A queue pair
 * that the HCA has but does not execute becomes the engine's alone. */
static void go_on_srq(struct urxe_rq *srq)
{
	struct urxe_qp *qp;
	uint32_t at = 0;

	while ((qp = next_of_srq(srq, &at)))
		if (qp->offloaded)
			go_on(qp);
		else
			offload_destroy_qp(qp);
	offload_end_srq(srq);
}

/*
 * Destroys the HCA's queue pairs whose URXE_ASYNC_QP_LAST_WQE_REACHED has not come, so that they
 * take no more requests; not those for which an operation of the program waits. The owner passes
 * their last completions on before it calls urxe_offload_take_over() or urxe_offload_keep() again.
 */
static void end_undrained(struct urxe_rq *srq)
{
	struct urxe_qp *qp;
	uint32_t at = 0;

	while ((qp = next_of_srq(srq, &at))) {
		if (!qp->offloaded || qp->drained || qp->calling)
			continue;
		qp->hca_ops->qp_destroy(qp->hca);
		qp->hca = NULL;
		qp->drained = true;
	}
}

/* Goes on with the SRQs from which the HCA takes no more requests. False: the HCA may still take
 * requests of another SRQ. */
static bool go_on_srqs(struct urxe_dev *dev)
{
	struct urxe_rq *srq;
	bool all = true;

	LIST_FOREACH(srq, &dev->srqs, link)
	{
		if (!srq->stopping)
			continue;
		if (is_srq_free(srq)) {
			go_on_srq(srq);
			continue;
		}
		all = false;
		if (dev->now - srq->stopped_at >= LAST_WQE_NS)
			end_undrained(srq);
	}
	return all;
}

/* Goes on with the queue pairs whose receive requests the HCA has given back, and with SRQs
 * (go_on_srqs). False: of another queue pair or SRQ the HCA still has requests or may take some, or
 * an operation of the program waits. */
static bool go_on_all(struct urxe_dev *dev)
{
	struct urxe_qp *qp;
	uint32_t at = 0;
	bool all = true;

	while ((qp = next_offloaded(dev, &at)))
		if (!qp->rq->qp)
			continue;
		else if (is_free_of_hca(qp))
			go_on(qp);
		else
			all = false;
	return go_on_srqs(dev) && all;
}

int urxe_offload_take_over(struct urxe_dev *dev, uint64_t now, bool force,
			   struct urxe_offload_refusal *refusal)
{
	const bool begins = !dev->taking_over;
	const struct urxe_qp *unreachable;
	bool busy = false;
	int rc;

	dev_pass_time(dev, now);
	*refusal = (struct urxe_offload_refusal){0};
	if (!dev->offload)
		return 0;
	dev->taking_over = true;
	unreachable = find_without_hop(dev);
	if (unreachable)
		return refuse(dev, refusal, unreachable->qpn, URXE_OFFLOAD_NO_NEXT_HOP);
	if (has_outstanding(dev))
		return wait_for(refusal, URXE_OFFLOAD_REQUESTS);
	rc = check_psns(dev, begins, refusal, &busy);
	if (rc)
		return rc;
	if (busy && !force)
		return wait_for(refusal, URXE_OFFLOAD_BUSY_PEER);
	stop_all(dev);
	if (!go_on_all(dev))
		return wait_for(refusal, URXE_OFFLOAD_RECEIVES);
	dev->taking_over = false;
	return 0;
}

/* --- The end of an attempt. */

/* A queue pair could not go on when its last receive request came back, if an operation of the
 * program waited for the HCA then. This function lets such queue pairs go on. */
void urxe_offload_keep(struct urxe_dev *dev)
{
	struct urxe_qp *qp;
	uint32_t at = 0;

	dev->taking_over = false;
	while ((qp = next_offloaded(dev, &at)))
		if (!qp->stopping)
			offload_send(qp);
		else if (qp->rq->qp && is_free_of_hca(qp))
			go_on(qp);
	go_on_srqs(dev);
}

bool urxe_offload_stopped(const struct urxe_dev *dev)
{
	const struct urxe_rq *srq;
	const struct urxe_qp *qp;
	uint32_t at = 0;

	LIST_FOREACH(srq, &dev->srqs, link)
	if (srq->stopping)
		return true;
	while ((qp = next_offloaded(dev, &at)))
		if (qp->stopping)
			return true;
	return false;
}

void urxe_offload_complete(struct urxe_dev *dev, const struct urxe_wc *wc, bool recv)
{
	struct urxe_qp *stopping = offload_complete(dev, wc, recv);

	if (stopping && is_free_of_hca(stopping))
		go_on(stopping);
}
