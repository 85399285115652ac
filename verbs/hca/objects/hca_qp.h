/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs of the HCA, and the requests that they have. */
#ifndef URXE_VERBS_HCA_OBJECTS_HCA_QP_H
#define URXE_VERBS_HCA_OBJECTS_HCA_QP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "destruction.h"
#include "work_id.h"

struct hca;
struct hca_ah;
struct hca_cq;
struct hca_pd;
struct hca_srq;
struct ibv_qp;
struct urxe_gid;
struct urxe_offload_queues;
struct urxe_qp_attr;
struct urxe_qp_init;
struct urxe_recv_wr;
struct urxe_send_wr;

struct hca_qp {
	struct hca *hca;
	struct ibv_qp *ibv;
	void *ctx; /* urxe_qp_init.ctx of the engine's queue pair */
	struct hca_pd *pd;
	struct hca_cq *send_cq, *recv_cq;
	struct hca_srq *srq; /* NULL: own receive queue */
	uint32_t id;         /* of the queue pair, in wr_id values (work_id.h) */
	uint32_t sends;      /* send requests that the HCA has got and that have not completed */
	uint32_t posted;     /* send requests that the HCA has got so far, modulo 2^32 */
	uint32_t max_sends;  /* maximum of `sends`, for which send_cq has room */
	/* Number of completions for which this queue pair has reserved room in recv_cq. With an
	 * SRQ: the number of all requests of the SRQ, or 0 if another queue pair has reserved the
	 * room for them (hca_srq_reserve). */
	uint32_t reserved_receives;
	uint32_t ring_mask; /* number of entries of ahs and of inline_data, minus 1 */
	struct work_slots receives;
	/* UD only: a ring of the address handles of outstanding send requests. A request's entry is
	 * its number, counted as in `posted`, & ring_mask. */
	struct hca_ah **ahs;
	/* A ring of slots of max_inline bytes for inline data, if the HCA has refused a queue pair
	 * with as much inline data as the program may post; else NULL. A request's slot is as in
	 * `ahs`. */
	uint8_t *inline_data;
	struct ibv_mr *inline_mr;
	uint32_t max_inline;
	bool limited; /* the HCA limits the rate of this queue pair */
	/* The HCA has refused the transition to the error state, or has dropped completions: the
	 * engine flushes the requests, so the HCA's queue pair must be destroyed before. */
	bool ends_at_once;
	LIST_ENTRY(hca_qp) link;
	struct hca_destruction destruction;
};

/* The operations on queue pairs of struct urxe_offload_ops; ctx is a struct hca. */
int hca_qp_create(void *ctx, const struct urxe_qp_init *init,
		  const struct urxe_offload_queues *queues, void **qp, uint32_t *qpn);
void hca_qp_destroy(void *qp);
bool hca_qp_takes(void *qp, const struct urxe_qp_attr *attr);
int hca_qp_modify(void *qp, const struct urxe_qp_attr *attr, uint32_t mask);
int hca_qp_fail(void *qp);
void hca_qp_query(void *qp, struct urxe_qp_attr *attr);
int hca_qp_mcast_attach(void *qp, const struct urxe_gid *gid);
void hca_qp_mcast_detach(void *qp, const struct urxe_gid *gid);
uint32_t hca_qp_post_send(void *qp, const struct urxe_send_wr *wrs, uint32_t n, int *rc);
uint32_t hca_qp_post_recv(void *qp, const struct urxe_recv_wr *wrs, uint32_t n, int *rc);

/* The QPN that the HCA has chosen. */
uint32_t hca_qp_number(const struct hca_qp *qp);
/* The oldest send request has completed: forgets it. False: the HCA has no send request. */
bool hca_qp_sent(struct hca_qp *qp);
/* The receive request of that slot (work_id.h) has completed: forgets it, and sets *wr_id to the
 * program's. False: there is no such request. */
bool hca_qp_received(struct hca_qp *qp, uint32_t slot, uint64_t *wr_id);
/* Forgets all requests: the HCA's queue pair is in RESET, or gone. */
void hca_qp_forget_requests(struct hca_qp *qp);

#endif
