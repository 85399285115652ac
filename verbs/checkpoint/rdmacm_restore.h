/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Gives the rdma_cm IDs of a saved process to the new host's urxed. For checkpoint_restore.c. */
#ifndef URXE_VERBS_CHECKPOINT_RDMACM_RESTORE_H
#define URXE_VERBS_CHECKPOINT_RDMACM_RESTORE_H

#include <stdint.h>

struct rebuilt;

/* Until when a restoration that asks urxed now waits for the answer, as clock_monotonic(). */
uint64_t restore_deadline(void);

/*
 * The process has its queue pair numbers already, and its devices are open. The IDs stand still.
 * The caller closes the devices after an error, and nothing is left of them. Errors as
 * urxe_checkpoint_restore; -ETIMEDOUT: urxed does not answer.
 */
int rdmacm_restore(const struct rebuilt *r);
/* The engine runs: the IDs go on. */
void rdmacm_restored(const struct rebuilt *r);

#endif
