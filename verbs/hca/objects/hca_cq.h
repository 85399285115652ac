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

#include "destruction.h"

struct hca;
struct ibv_cq;
struct urxe_cq;

struct hca_cq {
	struct hca *hca;
	struct urxe_cq *cq; /* NULL: the engine has destroyed it */
	struct ibv_cq *ibv;
	uint32_t users;    /* queue pairs at the HCA, also those being created; running resizes */
	uint32_t capacity; /* completions that fit; atomic; hca.resizing is held to change it */
	uint32_t needed;   /* sum of the sizes of all queues whose requests complete here */
	uint32_t resizes;  /* number of threads that resize the CQ; if not 0, no thread polls it */
	bool has_event;    /* a completion event came while a thread resized the CQ */
	/* Requests that the HCA has and that complete here, except those of shared receive queues;
	 * and 1 for each queue pair that receives from a shared receive queue and completes here.
	 * The CQ is polled while this is not 0. */
	uint32_t outstanding;
	/* The HCA has dropped completions. No new queue pair of the HCA may use the CQ; the engine
	 * executes those that are created with it. */
	bool overrun;
	bool busy; /* the CQ is in hca.busy_cqs */
	LIST_ENTRY(hca_cq) busy_link;
	struct hca_destruction destruction;
};

/* cq_create, cq_destroy and cq_arm of struct urxe_offload_ops; ctx is a struct hca. */
int hca_cq_create(void *ctx, struct urxe_cq *engine_cq, void **cq);
void hca_cq_destroy(void *cq);
void hca_cq_arm(void *cq, bool solicited_only);

/* A queue pair or a resize begins, or ends, to use the CQ: counts it in cq->users. The last
 * hca_cq_put() destroys the HCA's CQ if the engine has destroyed its own. */
void hca_cq_get(struct hca_cq *cq);
void hca_cq_put(struct hca_cq *cq);

/*
 * A queue of n requests begins, or ends, to complete its requests in the CQ. The caller initialises
 * *reserved to 0. hca_cq_reserve() sets it to the number that the caller passes to hca_cq_release()
 * later, also after an error. It resizes the CQ if necessary, and may wait (wait.h). 0 or a
 * negative errno value.
 */
int hca_cq_reserve(struct hca_cq *cq, uint32_t n, uint32_t *reserved);
void hca_cq_release(struct hca_cq *cq, uint32_t n);
/*
 * The steps of hca_cq_reserve(). hca_cq_count() adds n to cq->needed, and never waits; 0, or
 * -ENOMEM: no CQ of the HCA can be so large. hca_cq_is_full(): cq->needed exceeds the capacity.
 * hca_cq_grow() then resizes the CQ, and may wait; 0 or a negative errno value.
 */
int hca_cq_count(struct hca_cq *cq, uint32_t n);
bool hca_cq_is_full(const struct hca_cq *cq);
int hca_cq_grow(struct hca_cq *cq);
/* Waits until no other thread resizes the CQ, if the owner permits waits (hca_allow_unlock). 0;
 * -EIO: this is a child that a signal handler has forked during the wait. */
int hca_cq_await_resize(const struct hca_cq *cq);
/* Polls the CQs, and passes their events, if a thread has left out a poll or an event because of a
 * resize (hca.skipped). True: more completions may wait. */
bool hca_cqs_catch_up(struct hca *hca);
/* The HCA has got n more requests that complete in the CQ: hca_poll() polls the CQ until they have
 * completed. */
void hca_cq_expect(struct hca_cq *cq, uint32_t n);
/* The HCA has reported a completion event of the CQ, and hca_poll() was called: passes the event to
 * the engine, at once or after a resize. No effect if the engine has destroyed its CQ. */
void hca_cq_event(struct hca_cq *cq);

#endif
