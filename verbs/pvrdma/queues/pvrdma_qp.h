/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs: creation, and work requests from the guest's rings to the engine. */
#ifndef URXE_PVRDMA_PVRDMA_QP_H
#define URXE_PVRDMA_PVRDMA_QP_H

#include "memory/memory_change.h"
#include "pvrdma_device.h"

/* The objects that a QP uses. */
struct pv_qp_objects {
	struct pv_pd *pd;
	struct pv_cq *send_cq;
	struct pv_cq *recv_cq;
	struct pv_srq *srq; /* NULL: none */
};

/* Creates a QP for the command CREATE_QP. Errors are those of the command. */
int pv_qp_open(struct pvrdma *dev, const struct pv_qp_objects *objects,
	       const struct pv_cmd_create_qp *request, struct pv_qp **qp);
void pv_qp_close(struct pv_qp *qp);
/*
 * Modifies the QP by urxe_qp_modify, whose errors it returns. Before, tells the owner the peer of a
 * connection, and has the HCA prepared for the connection: -EINPROGRESS until the HCA is prepared,
 * or an error of pvrdma_hca.prepare. Before a change to RESET or to the error state, the QP
 * acknowledges the requests that have arrived (pv_frames_stage_up_to_ack). If the new state is
 * RESET, empties the rings; if the new state allows requests, posts those in the rings.
 */
int pv_qp_modify(struct pv_qp *qp, const struct urxe_qp_attr *attr, uint32_t mask);
/* If the QP's rings use these bytes of guest memory, the QP fails, and never accesses the rings
 * again. Its requests complete then, so it fails only at pv_qp_fail_due while the device is paused
 * or the driver permits no access to memory. */
void pv_qp_memory_removed(struct pv_qp *qp, const struct pv_removed *removed);
/* Call it for each QP of a restored device. If the saved device lost the memory of the QP's rings
 * and did not fail it yet, the QP has no rings, and fails at pv_qp_fail_due. */
void pv_qp_restored(struct pv_qp *qp);
/* Fails the QPs that have lost their rings and did not fail yet, unless the device is still paused
 * or the driver permits no access to memory. Call it at the end of a pause, and when
 * the driver permits access again. */
void pv_qp_fail_due(struct pvrdma *dev);
/* False: the QP is in the error state or in RESET. */
bool pv_qp_may_fail(const struct pv_qp *qp);
/* Moves the QP to the error state, and reports URXE_ASYNC_QP_FATAL. */
void pv_qp_fail(struct pv_qp *qp);

/*
 * Post the requests that the guest has added to the ring, as far as the engine has room and the HCA
 * is prepared. True: posted some, or failed the QP. In the state RESET requests stay in the ring,
 * to which the device does not write then: if Linux' driver gave up CREATE_QP before the response,
 * it has freed the ring, and the QP stays in RESET.
 */
bool pv_qp_post_sends(struct pv_qp *qp);
bool pv_qp_post_recvs(struct pv_qp *qp);
/* Posts the send requests of QPs in pvrdma.waiting_qps. True: posted some, or failed a QP. */
bool pv_qp_post_waiting(struct pvrdma *dev);
/* Call it when the HCA may be prepared for further paths (pvrdma_hca.prepare), or is gone: the next
 * pv_qp_post_waiting also posts the requests of QPs that waited for that. */
void pv_qp_requeue_unprepared(struct pvrdma *dev);
/* Posts new requests in the rings of up to 64 QPs, in turn, also without a doorbell; of all QPs if
 * pvrdma.polls_all is set, which it clears. True: posted some, or failed a QP. */
bool pv_qp_poll(struct pvrdma *dev);

#endif
