/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two processes, one a processor, that reliable connections on the first RDMA device join. */
#ifndef URXE_BENCH_JOINED_H
#define URXE_BENCH_JOINED_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "two.h"

#define JOINED_MAX    65536 /* connections */
#define JOINED_WINDOW 128   /* requests on their way, of all connections together */

struct joined_side;

/* One of the two processes, as both see themselves. All ends a program with a sentence where it
 * fails. */
struct joined {
	/* The caller's, before joined_run: */
	uint32_t count; /* connections */
	uint32_t burst; /* requests that one posts before it is the next one's turn; at least 1 */

	bool index;
	bool leads; /* sends; the other one answers */
	int peer;   /* socket */
	struct joined_side *sides;
	uint32_t depth; /* requests of a connection on their way */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of recv_cq */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *mr;
	struct ibv_qp **qps;
	uint8_t *buffer;
	uint16_t *busy; /* requests of each on their way */
	uint32_t next;  /* the one whose turn it is */
	uint32_t turn;  /* what is left of it, requests */
	struct ibv_wc wcs[16];
};

/*
 * Has `body` run in both processes, with their devices open. The one that leads is the caller,
 * whose figure is returned.
 */
double joined_run(const struct bench_cpus *cpus, struct joined *joined,
		  double (*body)(struct joined *joined));

/* Makes the connections. */
void joined_connect(struct joined *joined);
/* That, and gives each as many receives as it may need. */
void joined_prepare(struct joined *joined);

/* Both have come as far. */
void joined_meet(const struct joined *joined);
/* That, and this one polls meanwhile, so that its engine runs. */
void joined_attend(struct joined *joined);

/* Posts a request of 8 bytes on the connection whose turn it is. */
void joined_post(struct joined *joined, enum ibv_wr_opcode opcode);
/* A receive for the connection of a completion's wr_id. */
void joined_post_receive(const struct joined *joined, uint64_t wr_id);
/* Completions, into `wcs`; how many. */
uint32_t joined_poll(struct joined *joined, struct ibv_cq *cq);
/*
 * So many messages, in turn on each connection, from the process that leads: it has their
 * completions then, and the other one the messages.
 */
void joined_transfer(struct joined *joined, enum ibv_wr_opcode opcode, uint32_t messages);
/* As many messages as use each place of each queue at least once, so that it is in memory. */
void joined_warm_up(struct joined *joined, enum ibv_wr_opcode opcode);

#endif
