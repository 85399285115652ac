/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tells the daemon the QPNs of queue pairs while an HCA backs the device (adapter/added_qp.h), and
 * their end. For uverbs/cmd_create_qp.c, cmd_qp.c and ucontext.c. */
#ifndef URXE_VERBS_REQUESTS_ADDED_QP_REQUESTS_H
#define URXE_VERBS_REQUESTS_ADDED_QP_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct added_qp;

/*
 * Tells the daemon that this process has a queue pair of that QPN. `reachable`: peers of this host
 * may reach it without the HCA. *added becomes its record in adapter.added_qps. Blocks;
 * adapter.lock must not be held. 0, or a negative errno value. -EEXIST: another process has added
 * or leased the QPN, so only the HCA can execute the queue pair.
 */
int added_qp_add(uint32_t qpn, bool reachable, struct added_qp **added);
/* Tells the daemon that the queue pairs of adapter.released_added_qps are destroyed, and frees
 * their records. Blocks; adapter.lock must not be held. */
void added_qp_flush(void);

#endif
