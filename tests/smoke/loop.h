/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RC queue pairs that are connected within a host, for tests that need no more. Each exits on
 * failure; any thread. */
#ifndef URXE_TEST_LOOP_H
#define URXE_TEST_LOOP_H

#include <stdint.h>

#include <infiniband/verbs.h>

#define LOOP_ACCESS                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* Opens the first device. */
struct ibv_context *loop_open(void);
/* From RESET to RTS, with a queue pair of this host as the peer; it need not be up yet. */
void loop_connect(struct ibv_qp *qp, uint32_t dest_qpn);

#endif
