/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs: work requests from librxe's rings to the engine. */
#ifndef URXE_VERBS_QUEUES_VERBS_QP_H
#define URXE_VERBS_QUEUES_VERBS_QP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/fetch.h>
#include <rxe/rxe.h>

#include "objects/handle.h"
#include "queues/librxe_ring.h"
#include "queues/verbs_recv.h"
#include "queues/wqe.h"

struct cq;
struct local_qp;
struct pd;
struct remote_qp;
struct srq;

/* One cache line for all operations, one for send requests, one for receives. */
struct qp {
	struct object object __attribute__((aligned(URXE_CACHE_LINE)));
	struct urxe_qp *qp;
	TAILQ_ENTRY(qp) dirty_link;
	uint32_t qpn;
	bool dirty;        /* in adapter.dirty_qps */
	bool sends_posted; /* posted sends whose ring slots were not released yet */
	bool received;     /* receives have completed since the last qp_publish */
	bool failed;       /* may have gone to the error state */

	struct work_queue sq;
	struct cq *send_cq;
	struct wqe_limits limits;

	struct recv_queue recv;
	struct srq *srq;

	struct pd *pd;
	struct cq *recv_cq;
	struct remote_qp *remote; /* the connection that the daemon knows; RC and UC */
	struct local_qp
		*local; /* the daemon's record of the QPN; NULL: no HCA when the QP was made */
	uint32_t async_events;
	bool by_hca;        /* a connection goes by the HCA; set before the transition to RTR */
	bool number_taken;  /* the HCA's QPN is that of another process: only the HCA can execute it
			     */
	uint8_t way_reason; /* enum way_reason of hca/way.h */
	uint8_t receives_by; /* 1 + member of the bond by which the last packet came; 0: unknown */
	bool flushing;       /* in adapter.flushing_qps */
	/* One command at a time modifies, queries, attaches or detaches the queue pair: the HCA may
	 * take long for it. Rank 2 of docs/locking.md. */
	pthread_mutex_t command;
	LIST_ENTRY(qp) flushing_link;
};
_Static_assert(offsetof(struct qp, sq) == URXE_CACHE_LINE &&
		       offsetof(struct qp, recv) == 2 * URXE_CACHE_LINE &&
		       offsetof(struct qp, pd) == 3 * URXE_CACHE_LINE,
	       "a line for each");

/*
 * Posts the new requests of the send queue to the engine. -EINVAL in a state in which nothing may
 * be posted (IBA 10.3.1): the requests are dropped.
 */
int qp_doorbell(struct qp *qp);
/*
 * Reads the request at *at, or the first one that qp_doorbell would post if that comes later, and
 * increments *at. False: no request is left.
 */
bool qp_read_posted(const struct qp *qp, uint32_t *at, struct send_request *request);
/* Records a completion. */
void qp_completed(const struct urxe_wc *wc);
/* Records that the QP may have gone to the error state. */
void qp_failed(struct qp *qp);
/* Releases the ring slots of retired requests to the application. */
void qp_publish(struct qp *qp);
/* Flushes receives that were queued since the QP went to the error state. */
void qp_flush(struct qp *qp);
/* The application has changed the state. */
void qp_modified(struct qp *qp);
/* Moves the QP to the error state: the device is dead. */
void qp_abort(struct qp *qp);
enum urxe_qp_state qp_state(const struct qp *qp);
void qp_destroy(struct object *object);

#endif
