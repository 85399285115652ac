/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A receive queue with its buffers: a QP's own, or shared by many. */
#ifndef URXE_SIM_RECV_QUEUE_H
#define URXE_SIM_RECV_QUEUE_H

#include "sim/content.h"
#include "sim/simhost.h"

#define INBOX_DEPTH 16

struct inbox {
	struct simhost *host;
	struct urxe_rq *rq;
	uint32_t depth; /* 0: nothing comes that takes a receive request */
	bool shared;
	bool lazy;     /* posts from the engine's refill callback too */
	uint64_t base; /* offset of depth slots in the host's memory */
	uint64_t posted;
	uint64_t consumed;
	bool out[INBOX_DEPTH]; /* the slot's buffer is with the engine */
	uint64_t wr_id[INBOX_DEPTH];
	struct layout layout[INBOX_DEPTH];
};

/* Plans an inbox of the host: takes the memory that its buffers will lie in. */
struct inbox *inbox_plan(struct simhost *host, bool shared, uint32_t depth);
/* Creates the SRQ of a shared one. */
void inbox_open(struct inbox *inbox);
void inbox_free(struct inbox *inbox);
/* Posts up to n receive requests. */
void inbox_post(struct inbox *inbox, uint32_t n);
/* Takes the buffer of a completion back; NULL, and the world fails, where it is none. */
const struct layout *inbox_take(struct inbox *inbox, uint64_t wr_id);

#endif
