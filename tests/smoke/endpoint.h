/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One side of an RC connection and the memory that it offers to the other. */
#ifndef URXE_TEST_ENDPOINT_H
#define URXE_TEST_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define ENDPOINT_DEPTH  64 /* work requests outstanding */
#define ENDPOINT_SGES   3
#define ENDPOINT_INLINE 64

struct endpoint_attr {
	const char *device;
	uint8_t gid_index;
	enum ibv_mtu mtu;
	bool events; /* wait on a completion channel rather than poll */
	uint64_t size;
};

struct endpoint {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	/* The other side's. */
	uint64_t remote_addr;
	uint32_t rkey;
};

/* Connects over the TCP connection fd. Each function exits on failure. */
void endpoint_open(struct endpoint *ep, const struct endpoint_attr *attr, int fd);
void endpoint_close(struct endpoint *ep);
/* The next completion, whatever its status. */
struct ibv_wc endpoint_completion(struct endpoint *ep);
/* The next completion, which must be a success. */
struct ibv_wc endpoint_success(struct endpoint *ep);

#endif
