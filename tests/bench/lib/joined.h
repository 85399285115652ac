/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes, each pinned to a processor, with reliable connections between them on the first
 * RDMA device.
 */
#ifndef URXE_BENCH_JOINED_H
#define URXE_BENCH_JOINED_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "two.h"

#define JOINED_MAX    65536 /* connections */
#define JOINED_WINDOW 128   /* outstanding requests of all connections together */

struct joined_side;

/* One of the two processes. Every error ends the program with a message. */
struct joined {
	/* Set by the caller before joined_run: */
	uint32_t count; /* connections */
	uint32_t burst; /* requests posted on one connection before the next one's turn; at least 1
			 */

	bool index;
	bool leads; /* this process sends, the other one answers */
	int peer;   /* socket */
	struct joined_side *sides;
	uint32_t depth; /* outstanding requests of a connection, at most */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of recv_cq */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *mr;
	struct ibv_qp **qps;
	uint8_t *buffer;
	uint16_t *busy; /* outstanding requests of each connection */
	uint32_t next;  /* the connection whose turn it is */
	uint32_t turn;  /* requests left in its turn */
	struct ibv_wc wcs[16];
};

/*
 * Runs `body` in both processes, with their devices open. The caller's process leads, and its
 * figure is returned.
 */
double joined_run(const struct bench_cpus *cpus, struct joined *joined,
		  double (*body)(struct joined *joined));

/* Makes the connections. */
void joined_connect(struct joined *joined);
/* joined_connect, and posts as many receives on each connection as it may need. */
void joined_prepare(struct joined *joined);

/* Waits until the other process has called joined_meet as often. */
void joined_meet(const struct joined *joined);

/* Posts a request of 8 bytes on the connection whose turn it is. */
void joined_post(struct joined *joined, enum ibv_wr_opcode opcode);
/* Posts a receive for the connection of a completion's wr_id. */
void joined_post_receive(const struct joined *joined, uint64_t wr_id);
/* Polls for completions; returns their number. */
uint32_t joined_poll(struct joined *joined, struct ibv_cq *cq);
/*
 * Transfers that many messages, in turn on each connection, from the leading process. At the return
 * the leading process has their completions, and the other one the messages.
 */
void joined_transfer(struct joined *joined, enum ibv_wr_opcode opcode, uint32_t messages);
/*
 * Transfers enough messages to use each place of each queue once, so that its memory is populated.
 */
void joined_warm_up(struct joined *joined, enum ibv_wr_opcode opcode);

#endif
