/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tells the daemon the remote queue pairs of connections (adapter/remote_qp.h). For
 * uverbs/cmd_modify_qp.c, cmd_qp.c and ucontext.c. */
#ifndef URXE_VERBS_REQUESTS_REMOTE_QP_REQUESTS_H
#define URXE_VERBS_REQUESTS_REMOTE_QP_REQUESTS_H

#include <stdint.h>

struct remote_qp;

/*
 * Registers the remote QP of a QP of this process with the daemon. *remote becomes its record in
 * adapter.remote_qps. Blocks; adapter.lock must not be held. 0, or a negative errno value; -ENOSPC:
 * the user has too many remote QPs.
 */
int remote_qp_register(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn,
		       struct remote_qp **remote);
/* Tells the daemon that the connections of adapter.released_remote_qps have ended, and frees their
 * records. Blocks; adapter.lock must not be held. */
void remote_qp_flush(void);

#endif
