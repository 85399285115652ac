/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tells the daemon the QPNs that the HCA has chosen (adapter/local_qp.h). */
#ifndef URXE_VERBS_REQUESTS_LOCAL_QP_REQUESTS_H
#define URXE_VERBS_REQUESTS_LOCAL_QP_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct local_qp;

/*
 * Tells the daemon. Blocks; adapter.lock must not be held. -EEXIST: another process has added or
 * leased the QPN, so only the HCA can execute the queue pair.
 */
int local_qp_add(uint32_t qpn, bool reachable, struct local_qp **local);
/* Tells the daemon about the released ones. Blocks; adapter.lock must not be held. */
void local_qp_flush(void);

#endif
