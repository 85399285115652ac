/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tells the daemon the QPNs of queue pairs while an HCA backs the device, the remote queue pairs of
 * connections, and the end of both (adapter/told_qp.h). */
#ifndef URXE_VERBS_REQUESTS_TOLD_QP_REQUESTS_H
#define URXE_VERBS_REQUESTS_TOLD_QP_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct told_qp;

/*
 * Tells the daemon that this process has a queue pair of that QPN. `reachable`: peers of this host
 * may reach it without the HCA. *told becomes its record in adapter.added_qps. Blocks;
 * adapter.lock must not be held. 0, or a negative errno value. -EEXIST: another process has added
 * or leased the QPN, so only the HCA can execute the queue pair.
 */
int told_qp_add(uint32_t qpn, bool reachable, struct told_qp **told);
/*
 * Registers the remote QP of a QP of this process with the daemon. *told becomes its record in
 * adapter.remote_qps. Blocks; adapter.lock must not be held. 0, or a negative errno value; -ENOSPC:
 * the user has too many remote QPs.
 */
int told_qp_connect(uint32_t local_qpn, const uint8_t dgid[16], uint32_t qpn,
		    struct told_qp **told);
/* Tells the daemon the end of the records in adapter.released_qps, and frees them. Blocks;
 * adapter.lock must not be held. */
void told_qp_flush(void);

#endif
