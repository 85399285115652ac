/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues of the HCA. */
#ifndef URXE_VERBS_HCA_OBJECTS_HCA_SRQ_H
#define URXE_VERBS_HCA_OBJECTS_HCA_SRQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "end.h"
#include "work_id.h"

struct hca;
struct hca_cq;
struct hca_pd;
struct ibv_srq;
struct urxe_recv_wr;
struct urxe_rq;
struct urxe_rq_attr;

struct hca_srq {
	struct hca *hca;
	struct hca_pd *pd;
	struct urxe_rq *srq; /* NULL: the engine has destroyed it */
	struct ibv_srq *ibv;
	/* A CQ that has room for the completions of all requests of the queue; NULL: none is known.
	 * Other receive CQs of the queue's QPs have room, too, but the next QP of such a CQ
	 * reserves it again. */
	struct hca_cq *counted;
	struct work_slots slots;
	uint32_t id;      /* of work_id.h */
	uint32_t users;   /* queue pairs that exist at the HCA, or are being created; changes */
	uint32_t resizes; /* threads that resize it: meanwhile it gets no requests */
	LIST_ENTRY(hca_srq) link;
	struct hca_end end;
};

/* As in struct urxe_offload_ops; ctx is a struct hca. */
int hca_srq_create(void *ctx, const struct urxe_rq_attr *attr, struct urxe_rq *engine_srq,
		   void **srq);
void hca_srq_destroy(void *srq);
int hca_srq_set_limit(void *srq, uint32_t limit);
int hca_srq_resize(void *srq, uint32_t max_wr);
uint32_t hca_srq_post(void *srq, const struct urxe_recv_wr *wrs, uint32_t n, int *rc);

/* A queue pair begins or ends to use the queue at the HCA. */
void hca_srq_get(struct hca_srq *srq);
void hca_srq_put(struct hca_srq *srq);

/* A queue pair with that receive CQ begins to use the queue. 0 or a negative errno value. */
int hca_srq_use(struct hca_srq *srq, struct hca_cq *cq);
/* The CQ is about to be destroyed. */
void hca_srqs_forget_cq(struct hca *hca, const struct hca_cq *cq);
/* A request has completed. False: there is no such request. */
bool hca_srq_received(struct hca_srq *srq, uint32_t slot, uint64_t *wr_id);

#endif
