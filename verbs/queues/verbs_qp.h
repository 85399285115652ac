/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs: work requests from librxe's rings to the engine. */
#ifndef URXE_VERBS_QUEUES_VERBS_QP_H
#define URXE_VERBS_QUEUES_VERBS_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#include "objects/handle.h"
#include "queues/librxe_ring.h"
#include "queues/verbs_recv.h"
#include "queues/wqe.h"

struct cq;
struct told_qp;
struct pd;
struct srq;

/* The first cache line has the members that all operations use, the second those of send requests,
 * the third those of receives. */
struct qp {
	struct object object __attribute__((aligned(URXE_CACHE_LINE)));
	struct urxe_qp *qp;
	TAILQ_ENTRY(qp) dirty_link;
	uint32_t qpn;
	bool dirty;        /* the QP is in adapter.dirty_qps */
	bool sends_posted; /* some ring slots of posted sends may not be released yet */
	bool received;     /* receives have completed since the last qp_publish */
	bool failed;       /* the QP may have gone to the error state since the last qp_publish */

	struct work_queue sq;
	struct cq *send_cq;
	struct wqe_limits limits;

	struct recv_queue recv;
	struct srq *srq;

	struct pd *pd;
	struct cq *recv_cq;
	struct told_qp *remote; /* the registration with the daemon; NULL: UD, or none yet */
	/* The record of the QPN in adapter.added_qps. NULL: the process has not told the daemon the
	 * QPN, the daemon has refused it, or memory was short. */
	struct told_qp *added;
	uint32_t async_events; /* asynchronous events about the QP so far */
	bool by_hca; /* the HCA shall execute the connection; set before the transition to RTR */
	/* The HCA has chosen the QPN, and the daemon has not accepted it: only the HCA can execute
	 * the QP. */
	bool number_unknown;
	uint8_t way_reason; /* enum way_reason of hca/way.h */
	/* 1 + the number of the direct uplink's socket (one for each interface) that received the
	 * queue pair's last packet; 0: none has received one. Packets by other paths do not
	 * count. */
	uint8_t receives_by;
	bool flushing; /* the QP is in adapter.flushing_qps */
	/* A command modifies, queries, attaches or detaches the queue pair; adapter.lock may be
	 * free meanwhile. Further such commands wait. */
	bool in_command;
	LIST_ENTRY(qp) flushing_link;
};
_Static_assert(offsetof(struct qp, sq) == URXE_CACHE_LINE &&
		       offsetof(struct qp, recv) == 2 * URXE_CACHE_LINE &&
		       offsetof(struct qp, pd) == 3 * URXE_CACHE_LINE,
	       "a line for each");

/* Posts the new requests of the send queue's ring to the engine. 0, also if a wrong index in the
 * ring leaves requests for the next doorbell. -EINVAL: nothing may be posted in the QP's state (IBA
 * 10.3.1), and the requests are dropped. With adapter.lock, as all functions below. */
int qp_doorbell(struct qp *qp);
/* Reads into *request the request at index *at of the ring, which qp_doorbell has not posted yet.
 * If another thread has posted it meanwhile, reads the first unposted one. Sets *at to the next
 * index. False: no unposted request is left. */
bool qp_read_posted(const struct qp *qp, uint32_t *at, struct send_request *request);
/* Notes a completion of the queue pair wc->qp_ctx, for qp_publish. */
void qp_completed(const struct urxe_wc *wc);
/* urxe_ops.send_retired: notes that send requests of the queue pair have ended without a
 * completion, so qp_publish releases their slots. */
void qp_send_retired(void *qp_ctx);
/* Notes that the QP may have gone to the error state, for qp_publish. */
void qp_failed(struct qp *qp);
/* Releases the ring slots of retired requests to the application, and adds a QP in the error state
 * to adapter.flushing_qps. The QP must be in adapter.dirty_qps, and leaves that list. */
void qp_publish(struct qp *qp);
/* Posts receives that the application has queued since the QP went to the error state: the engine
 * completes them with flush errors. */
void qp_flush(struct qp *qp);
/* Call it after a command has changed the QP's state: in RESET drops the entries of the rings, in
 * the error state flushes receives. */
void qp_modified(struct qp *qp);
/* Moves the QP to the error state when the device dies, so that its requests complete with flush
 * errors. */
void qp_abort(struct qp *qp);
enum urxe_qp_state qp_state(const struct qp *qp);
void qp_destroy(struct object *object);

#endif
