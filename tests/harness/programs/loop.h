/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connects RC queue pairs of one host with fixed attributes. Each function exits on failure and may
 * run in any thread. */
#ifndef URXE_TEST_LOOP_H
#define URXE_TEST_LOOP_H

#include <stdint.h>

#include <infiniband/verbs.h>

#define LOOP_ACCESS                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* Opens the first device. */
struct ibv_context *loop_open(void);
/* Brings a QP from RESET to RTS, with a QP of this host as the peer, in any state. The QP retries
 * RNR NAKs for ever. */
void loop_connect(struct ibv_qp *qp, uint32_t dest_qpn);

/* As in struct ibv_qp_attr. */
struct loop_retries {
	uint8_t min_rnr_timer, timeout, retry_cnt, rnr_retry;
};

/* As loop_connect, with other retries. */
void loop_connect_retrying(struct ibv_qp *qp, uint32_t dest_qpn,
			   const struct loop_retries *retries);

/* The GID that loop_connect uses at both ends. Reads a file, which is a cancellation point. */
void loop_query_gid(struct ibv_context *context, union ibv_gid *gid);
/* As loop_connect_retrying, with the GID of loop_query_gid, and without a cancellation point. */
void loop_connect_to(struct ibv_qp *qp, uint32_t dest_qpn, const union ibv_gid *gid,
		     const struct loop_retries *retries);

#endif
