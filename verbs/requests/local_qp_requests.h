/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tells the daemon the QPNs of queue pairs while an HCA backs the device (adapter/local_qp.h). */
#ifndef URXE_VERBS_REQUESTS_LOCAL_QP_REQUESTS_H
#define URXE_VERBS_REQUESTS_LOCAL_QP_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct local_qp;

/*
 * Tells the daemon that this process has a queue pair of that QPN. `reachable`: peers of this host
 * may reach it without the HCA. *local becomes its record in adapter.local_qps. Blocks;
 * adapter.lock must not be held. 0, or a negative errno value. -EEXIST: another process has added
 * or leased the QPN, so only the HCA can execute the queue pair.
 */
int local_qp_add(uint32_t qpn, bool reachable, struct local_qp **local);
/* Tells the daemon that the queue pairs of adapter.released_local_qps are gone, and frees their
 * records. Blocks; adapter.lock must not be held. */
void local_qp_flush(void);

#endif
