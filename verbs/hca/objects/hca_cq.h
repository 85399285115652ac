/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues of the HCA: one for each of the engine's, with room for all requests of the
 * queues that use it.
 */
#ifndef URXE_VERBS_HCA_OBJECTS_HCA_CQ_H
#define URXE_VERBS_HCA_OBJECTS_HCA_CQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "end.h"

struct hca;
struct ibv_cq;
struct urxe_cq;

struct hca_cq {
	struct hca *hca;
	struct urxe_cq *cq; /* NULL: the engine has destroyed it */
	struct ibv_cq *ibv;
	uint32_t users;    /* queue pairs that exist at the HCA, or are being created; resizes */
	uint32_t capacity; /* atomic; changed with hca.resizing */
	uint32_t needed;   /* requests that its queues may have */
	uint32_t resizes;  /* threads that resize it: meanwhile it is not polled */
	bool has_event;    /* that came meanwhile */
	/* Requests that the HCA has and that complete here, and 1 for each queue pair with a shared
	 * receive queue. The CQ is polled while this is not 0. */
	uint32_t outstanding;
	bool busy; /* in hca.busy_cqs */
	LIST_ENTRY(hca_cq) busy_link;
	struct hca_end end;
};

/* As in struct urxe_offload_ops; ctx is a struct hca. */
int hca_cq_create(void *ctx, struct urxe_cq *engine_cq, void **cq);
void hca_cq_destroy(void *cq);
void hca_cq_arm(void *cq, bool solicited_only);

/* A queue pair begins or ends to use the CQ at the HCA. */
void hca_cq_get(struct hca_cq *cq);
void hca_cq_put(struct hca_cq *cq);

/* A queue with n requests begins to use the CQ. 0 or a negative errno value. */
int hca_cq_reserve(struct hca_cq *cq, uint32_t n);
void hca_cq_release(struct hca_cq *cq, uint32_t n);
/* The two steps of hca_cq_reserve(): counts the requests, and resizes the CQ if it is full. Only
 * the second one waits. */
int hca_cq_count(struct hca_cq *cq, uint32_t n);
bool hca_cq_is_full(const struct hca_cq *cq);
int hca_cq_grow(struct hca_cq *cq);
/* Passes the completions and events of CQs that were being resized. */
void hca_cqs_catch_up(struct hca *hca);
/* The HCA has n more requests that complete in the CQ. */
void hca_cq_expect(struct hca_cq *cq, uint32_t n);
/* The HCA has had a completion event of the CQ, whose completions have been passed. */
void hca_cq_event(struct hca_cq *cq);

#endif
