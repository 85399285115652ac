/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A receive queue with its buffers: a QP's own, or shared by many. */
#ifndef URXE_SIM_INBOX_H
#define URXE_SIM_INBOX_H

#include "content.h"
#include "pair.h"

#define INBOX_DEPTH 16

struct world;

struct inbox {
	struct node_queue queue; /* context of a SRQ */
	struct world *world;
	struct node *node;
	struct urxe_rq *rq;
	bool shared;
	bool lazy;     /* posts from the engine's refill callback too */
	uint32_t base; /* offset of INBOX_DEPTH slots in the node's memory */
	uint64_t posted;
	uint64_t consumed;
	bool out[INBOX_DEPTH]; /* the slot's buffer is with the engine */
	uint64_t wr_id[INBOX_DEPTH];
	struct layout layout[INBOX_DEPTH];
};

/* With a NULL rq it creates a SRQ. */
void inbox_init(struct inbox *inbox, struct world *world, unsigned side, struct urxe_rq *rq);
/* Posts up to n receive requests. */
void inbox_post(struct inbox *inbox, uint32_t n);
/* Takes the buffer of a completion back; NULL, and the world fails, where it is none. */
const struct layout *inbox_take(struct inbox *inbox, uint64_t wr_id);

#endif
