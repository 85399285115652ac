/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One side of a connection, or of two that exchange datagrams, and the memory that it offers. */
#ifndef URXE_TEST_ENDPOINT_H
#define URXE_TEST_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define ENDPOINT_DEPTH  64 /* work requests outstanding */
#define ENDPOINT_SGES   3
#define ENDPOINT_INLINE 64

#define ENDPOINT_QKEY 0x11111111
#define ENDPOINT_GRH  40 /* bytes before a datagram in the memory of a receive */

struct endpoint_attr {
	const char *device;
	enum ibv_qp_type type; /* RC, UC or UD */
	bool srq;
	uint8_t gid_index;
	enum ibv_mtu mtu;
	bool events;     /* wait on a completion channel rather than poll */
	uint8_t timeout; /* as struct ibv_qp_attr has it; 0 = 14 */
	uint64_t size;
};

struct endpoint {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_srq *srq; /* NULL = the queue pair has a receive queue of its own */
	struct ibv_mr *mr;
	uint8_t *memory; /* of the size asked for, and ENDPOINT_GRH behind it */
	/* The other side's. */
	struct ibv_ah *ah; /* UD */
	uint32_t remote_qpn;
	uint64_t remote_addr;
	uint32_t rkey;
};

/* Connects over the TCP connection fd. Each function exits on failure. */
void endpoint_open(struct endpoint *ep, const struct endpoint_attr *attr, int fd);
void endpoint_close(struct endpoint *ep);
/* A receive of up to `size` bytes into memory + at; of none without a piece of memory. */
void endpoint_post_recv(struct endpoint *ep, uint64_t wr_id, uint32_t at, uint32_t size);
/* A SEND of nothing over a connection. */
void endpoint_post_send(struct endpoint *ep);
/* The event of the CQ, which is armed: waits for it by a read of the channel. */
void endpoint_await_event(struct endpoint *ep);
/* The next completion, whatever its status. */
struct ibv_wc endpoint_completion(struct endpoint *ep);
/* The next completion, which must be a success. */
struct ibv_wc endpoint_success(struct endpoint *ep);

#endif
