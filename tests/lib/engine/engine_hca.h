/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An HCA that is an engine itself: the queue pairs of a device that has it run on the device of
 * another node, which is on the wire.
 */
#ifndef URXE_TEST_ENGINE_HCA_H
#define URXE_TEST_ENGINE_HCA_H

#include <rxe/offload.h>

#include "pair.h"

#define ENGINE_HCA_CQS 4
#define ENGINE_HCA_QPS 16u

struct engine_hca_cq {
	struct node_cq cq;
	struct engine_hca *hca;
	struct urxe_cq *owner; /* of the device that has this HCA; NULL: not in use */
	bool receives;
	uint32_t events; /* that were passed on */
};

/* A queue pair that the HCA has, or has had. */
struct engine_hca_qp {
	uint32_t qpn;
	struct urxe_rq *srq; /* of the device that has this HCA; NULL: own receive queue */
};

struct engine_hca {
	struct pair *wire; /* the node is one of it */
	struct node *node;
	struct urxe_dev *above; /* the device that has this HCA */
	uint32_t room;          /* send requests that a queue pair takes, at most */
	struct engine_hca_cq cqs[ENGINE_HCA_CQS];
	struct engine_hca_qp qps[ENGINE_HCA_QPS]; /* the newest ones */
	uint32_t n_qps;
	uint32_t n_events;      /* events that were passed on */
	bool keeps_completions; /* the completions of a destroyed queue pair stay in the CQ */
	bool silent;            /* tells of no URXE_ASYNC_QP_LAST_WQE_REACHED */
	bool forgets;           /* flushes no request of a SRQ */
	bool prompt;            /* tells of events before a modification returns */
};

/* Operations of urxe_offload_set; ctx: struct engine_hca. */
extern const struct urxe_offload_ops engine_hca_ops;

/* Passes all completions and events on. True: one was passed. */
bool engine_hca_deliver(struct engine_hca *hca);

#endif
