/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues of the HCA. */
#ifndef URXE_VERBS_HCA_OBJECTS_HCA_SRQ_H
#define URXE_VERBS_HCA_OBJECTS_HCA_SRQ_H

#include <stdbool.h>
#include <stdint.h>

#include "destruction.h"
#include "work_id.h"

struct hca;
struct hca_pd;
struct hca_qp;
struct ibv_srq;
struct urxe_recv_wr;
struct urxe_rq;
struct urxe_rq_attr;

struct hca_srq {
	struct hca *hca;
	struct hca_pd *pd;
	struct urxe_rq *srq; /* NULL: the engine has destroyed it */
	struct ibv_srq *ibv;
	struct work_slots slots;
	uint32_t id;      /* of the queue, in wr_id values (work_id.h) */
	uint32_t users;   /* its queue pairs at the HCA, also those being created; calls that modify
			     it */
	uint32_t resizes; /* number of threads that resize it; if not 0, the HCA gets no requests of
			     it (hca_srq_resize) */
	struct hca_destruction destruction;
};

/* The operations on SRQs of struct urxe_offload_ops; ctx is a struct hca. */
int hca_srq_create(void *ctx, const struct urxe_rq_attr *attr, struct urxe_rq *engine_srq,
		   void **srq);
void hca_srq_destroy(void *srq);
int hca_srq_set_limit(void *srq, uint32_t limit);
int hca_srq_resize(void *srq, uint32_t max_wr);
uint32_t hca_srq_post(void *srq, const struct urxe_recv_wr *wrs, uint32_t n, int *rc);

/* Count one more, or one less, of srq->users. hca_srq_put() ends the queue at the HCA if that was
 * the last user and the engine has destroyed the queue. */
void hca_srq_get(struct hca_srq *srq);
void hca_srq_put(struct hca_srq *srq);

/*
 * Queue pairs in hca.qps with the same SRQ and receive CQ share one reservation of room in the CQ,
 * for all requests of the SRQ; one queue pair holds it. hca_srq_reserve(): for a queue pair that
 * was added to the list; makes the reservation unless another one holds it; may wait (wait.h); 0 or
 * a negative errno value. hca_srq_pass_room(): after a queue pair has left the list; gives its
 * reservation, if it holds one, to another queue pair with the same SRQ and CQ, if there is one.
 */
int hca_srq_reserve(struct hca_qp *qp);
void hca_srq_pass_room(struct hca_qp *qp);
/* The request of that slot (work_id.h) has completed: frees the slot, and sets *wr_id to the
 * program's. False: there is no such request. */
bool hca_srq_received(struct hca_srq *srq, uint32_t slot, uint64_t *wr_id);

#endif
