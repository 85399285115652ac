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
/* Brings a QP from RESET to RTS, with a QP of this host as the peer, in any state. */
void loop_connect(struct ibv_qp *qp, uint32_t dest_qpn);

#endif
