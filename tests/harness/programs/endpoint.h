/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One side of a connection, or one of two UD endpoints, and its registered memory. */
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
	uint8_t timeout; /* as struct ibv_qp_attr has it; 0 = 18 */
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
	uint8_t *memory; /* the requested size, and ENDPOINT_GRH bytes behind it */
	/* Of the peer: */
	struct ibv_ah *ah; /* UD */
	uint32_t remote_qpn;
	uint64_t remote_addr;
	uint32_t rkey;
};

/* Creates the endpoint and connects it to the peer at the other end of the TCP connection fd. Each
 * function exits on failure. */
void endpoint_open(struct endpoint *ep, const struct endpoint_attr *attr, int fd);
void endpoint_close(struct endpoint *ep);
/* Posts a receive of up to `size` bytes into memory + at. A size of 0 posts no SGE. */
void endpoint_post_recv(struct endpoint *ep, uint64_t wr_id, uint32_t at, uint32_t size);
/* Posts a SEND without payload. Not for UD. */
void endpoint_post_send(struct endpoint *ep);
/* Waits for the event of the armed CQ by a read of the channel. */
void endpoint_await_event(struct endpoint *ep);
/* Waits for the next completion, with any status. */
struct ibv_wc endpoint_completion(struct endpoint *ep);
/* Waits for the next completion, which must have status success. */
struct ibv_wc endpoint_success(struct endpoint *ep);

#endif
