/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Gives the rdma_cm IDs of a saved process to the new host's urxed. For checkpoint_restore.c. */
#ifndef URXE_VERBS_CHECKPOINT_RDMACM_RESTORE_H
#define URXE_VERBS_CHECKPOINT_RDMACM_RESTORE_H

#include <stdint.h>

struct rebuilt;

/* The deadline (clock_monotonic()) for an answer of urxed to a question asked now. */
uint64_t restore_deadline(void);

/*
 * Gives urxed the IDs; urxed does not go on with them before rdmacm_restored. The process has its
 * leased QPNs already, and its rdma_cm devices are open. After an error the caller closes these
 * devices, which destroys the IDs. Errors as urxe_checkpoint_restore; -ETIMEDOUT: urxed does not
 * answer.
 */
int rdmacm_restore(const struct rebuilt *r);
/* Call it when the engine runs: has urxed go on with the IDs. */
void rdmacm_restored(const struct rebuilt *r);

#endif
