/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs. */
#ifndef URXE_VERBS_QUEUES_QP_H
#define URXE_VERBS_QUEUES_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/fetch.h>
#include <rxe/rxe.h>

#include "queues/recv.h"
#include "queues/ring.h"
#include "queues/wqe.h"
#include "uverbs/handle.h"

struct cq;
struct pd;
struct remote;
struct srq;

/* One cache line is for all operations, one for send requests and one for receives. */
struct qp {
	struct object object __attribute__((aligned(URXE_CACHE_LINE)));
	struct urxe_qp *qp;
	TAILQ_ENTRY(qp) dirty_link;
	uint32_t qpn;
	bool dirty;    /* in port.dirty_qps */
	bool sends;    /* some were posted whose places were not given back yet */
	bool received; /* receives have completed since the last qp_publish */
	bool failed;   /* may have gone to the error state */

	struct work_queue sq;
	struct cq *send_cq;
	struct wqe_limits limits;

	struct recv_queue recv;
	struct srq *srq;

	struct pd *pd;
	struct cq *recv_cq;
	struct remote *remote; /* what it is connected to, registered; RC and UC */
	uint32_t async_events;
	uint32_t refused; /* the status that the send request refused_id is to end in; 0 = none */
	uint64_t refused_id;
	bool flushing; /* in port.flushing_qps */
	LIST_ENTRY(qp) flushing_link;
};
_Static_assert(offsetof(struct qp, sq) == URXE_CACHE_LINE &&
		       offsetof(struct qp, recv) == 2 * URXE_CACHE_LINE &&
		       offsetof(struct qp, pd) == 3 * URXE_CACHE_LINE,
	       "a line for each");
TAILQ_HEAD(qp_list, qp);
LIST_HEAD(qp_flush_list, qp);

/*
 * Hands the engine what was added to the send queue. -EINVAL in a state in which
 * nothing may be posted (IBA 10.3.1): the requests are dropped.
 */
int qp_doorbell(struct qp *qp);
/* Whether a successful completion is that of a receive. */
bool wc_is_receive(const struct urxe_wc *wc);
/* Notes a completion; returns the status that the application is to see. */
uint32_t qp_completed(const struct urxe_wc *wc);
/* Notes that the QP may have gone to the error state. */
void qp_failed(struct qp *qp);
/* Gives retired slots of the rings back to the application. */
void qp_publish(struct qp *qp);
/* Completes in error what was queued since the QP went to the error state. */
void qp_flush(struct qp *qp);
/* The state was changed by the application. */
void qp_modified(struct qp *qp);
/*
 * Sends what the QP has put off to acknowledge: it is about to be destroyed, reset or failed, and
 * its peer may know of its last message by nothing else. The engine may find it failed meanwhile,
 * with an event.
 */
void qp_settle(struct qp *qp);
/* Makes send requests fail that are still to come: the device has gone. */
void qp_abort(struct qp *qp);
enum urxe_qp_state qp_state(const struct qp *qp);
void qp_destroy(struct object *object);

#endif
