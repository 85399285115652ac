/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/verbs_qp.h"

#include <errno.h>
#include <stdlib.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "objects/uverbs_file.h"
#include "objects/verbs_ah.h"
#include "objects/verbs_pd.h"
#include "process/log.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_srq.h"

enum urxe_qp_state qp_state(const struct qp *qp)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_qp_query(qp->qp, &attr, &init);
	return attr.state;
}

/* Posts, in place of a malformed request, one that completes with the error `status`, as the Linux
 * driver does. 0 or a negative errno value. */
static int post_malformed(struct qp *qp, uint64_t wr_id, enum urxe_wc_status status)
{
	log_debug("qp %u: malformed send request", qp->qpn);
	return urxe_post_malformed(qp->qp, wr_id, status);
}

static int post_next_send(struct qp *qp)
{
	const void *element = queue_element(&qp->sq.ring, qp->sq.cursor);
	struct send_request request;
	int rc = wqe_read_send(&request, element, &qp->limits);

	if (!rc && request.ah) {
		const struct ah *ah =
			(struct ah *)handle_find(&qp->object.file->handles, OBJECT_AH, request.ah);

		if (ah && ah->pd == qp->pd)
			request.wr.path = &ah->path;
		else
			rc = -EINVAL;
	}
	request.wr.cqes_unpolled = cq_count(qp->send_cq) != 0;
	if (!rc)
		rc = urxe_post_send(qp->qp, &request.wr);
	if (rc == -EINVAL)
		rc = post_malformed(qp, request.wr.wr_id, URXE_WC_LOC_QP_OP_ERR);
	else if (rc == -EMSGSIZE)
		rc = post_malformed(qp, request.wr.wr_id, URXE_WC_LOC_LEN_ERR);
	return rc;
}

bool qp_read_posted(const struct qp *qp, uint32_t *at, struct send_request *request)
{
	/* The cursor is past *at if another thread's doorbell has posted these requests meanwhile.
	 */
	if ((int32_t)(*at - qp->sq.cursor) < 0)
		*at = qp->sq.cursor;
	if (*at - qp->sq.cursor >= work_queue_posted(&qp->sq))
		return false;
	wqe_read_send(request, queue_element(&qp->sq.ring, (*at)++), &qp->limits);
	return true;
}

int qp_doorbell(struct qp *qp)
{
	uint32_t n = work_queue_posted(&qp->sq);
	int rc = 0;

	qp->sends_posted = true;
	while (n--) {
		rc = post_next_send(qp);
		if (rc)
			break;
		qp->sq.cursor++;
	}
	/*
	 * -ENOMEM: the engine's queue is full, because the program has written a wrong index to the
	 * ring. The next doorbell posts the remaining requests.
	 */
	if (rc == -ENOMEM)
		return 0;
	if (rc)
		work_queue_drop(&qp->sq, urxe_sq_retired(qp->qp));
	return rc;
}

static void mark_dirty(struct qp *qp)
{
	if (qp->dirty)
		return;
	qp->dirty = true;
	TAILQ_INSERT_TAIL(&adapter.dirty_qps, qp, dirty_link);
}

void qp_failed(struct qp *qp)
{
	qp->failed = qp->received = true;
	mark_dirty(qp);
}

/*
 * Has qp_publish release the ring slots of requests that ended without a completion. A program
 * whose ring is full of unsignaled requests rings no doorbell (ibv_wr_complete() fails with
 * ENOSPC), so the slots must be released without one. qp_publish runs once for each burst of
 * received frames, whatever the number of requests.
 */
void qp_send_retired(void *qp_ctx)
{
	mark_dirty(qp_ctx);
}

static bool wc_is_receive(const struct urxe_wc *wc)
{
	return wc->opcode == URXE_WC_RECV || wc->opcode == URXE_WC_RECV_RDMA_WITH_IMM;
}

void qp_completed(const struct urxe_wc *wc)
{
	struct qp *qp = wc->qp_ctx;

	if (wc->status == URXE_WC_SUCCESS) {
		qp->received |= wc_is_receive(wc);
		mark_dirty(qp);
		return;
	}
	qp_failed(qp);
	if (wc->status != URXE_WC_WR_FLUSH_ERR)
		log_info("qp %#x: a request ended in status %u", wc->qpn, wc->status);
}

/* Releases the slots of retired requests of the SRQ's ring. A message retires its receive request
 * even if the request never completes. */
static void publish_srq(const struct qp *qp)
{
	struct recv_queue *recv = &qp->srq->recv;

	work_queue_release(&recv->wq, urxe_rq_retired(recv->rq));
}

static void publish_receives(struct qp *qp)
{
	qp->received = false;
	if (qp->srq)
		publish_srq(qp);
	else
		work_queue_release(&qp->recv.wq, urxe_rq_retired(qp->recv.rq));
}

void qp_publish(struct qp *qp)
{
	qp->dirty = false;
	TAILQ_REMOVE(&adapter.dirty_qps, qp, dirty_link);
	if (qp->sends_posted) {
		work_queue_release(&qp->sq, urxe_sq_retired(qp->qp));
		qp->sends_posted = qp->sq.released != qp->sq.cursor;
	}
	if (qp->received)
		publish_receives(qp);
	if (!qp->failed)
		return;
	qp->failed = false;
	if (!qp->flushing && qp_state(qp) == URXE_QPS_ERR) {
		qp->flushing = true;
		LIST_INSERT_HEAD(&adapter.flushing_qps, qp, flushing_link);
	}
}

void qp_flush(struct qp *qp)
{
	if (!qp->srq)
		recv_queue_refill(&qp->recv);
}

void qp_modified(struct qp *qp)
{
	enum urxe_qp_state state = qp_state(qp);

	if (qp->flushing && state != URXE_QPS_ERR) {
		qp->flushing = false;
		LIST_REMOVE(qp, flushing_link);
	}
	if (state == URXE_QPS_RESET) {
		work_queue_drop(&qp->sq, urxe_sq_retired(qp->qp));
		if (qp->srq)
			publish_srq(qp);
		else
			work_queue_drop(&qp->recv.wq, urxe_rq_retired(qp->recv.rq));
	}
	if (state == URXE_QPS_ERR) {
		qp_failed(qp);
		qp_flush(qp);
	}
}

void qp_abort(struct qp *qp)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};

	if (!urxe_qp_modify(qp->qp, clock_now(), &attr, URXE_QP_STATE))
		qp_modified(qp);
}

void qp_destroy(struct object *object)
{
	struct qp *qp = (struct qp *)object;

	if (qp->dirty)
		TAILQ_REMOVE(&adapter.dirty_qps, qp, dirty_link);
	if (qp->flushing)
		LIST_REMOVE(qp, flushing_link);
	leases_assign(&adapter.leases, qp->qpn, NULL);
	/* The record that is released last is told first: the daemon keeps the QPN until it has
	 * removed the remote QP. */
	told_qp_release(qp->added);
	told_qp_release(qp->remote);
	urxe_qp_destroy(qp->qp);
	adapter_update_multicast();
	queue_destroy(&qp->sq.ring, &object->file->queues);
	queue_destroy(&qp->recv.wq.ring, &object->file->queues);
	qp->pd->object.users--;
	qp->send_cq->object.users--;
	qp->recv_cq->object.users--;
	if (qp->srq) {
		publish_srq(qp);
		qp->srq->object.users--;
	}
	handle_remove(&object->file->handles, object);
	free(qp);
}
