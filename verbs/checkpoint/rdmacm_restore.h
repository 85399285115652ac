/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Gives the rdma_cm IDs of a saved process to the new host's urxed. For checkpoint_restore.c. */
#ifndef URXE_VERBS_CHECKPOINT_RDMACM_RESTORE_H
#define URXE_VERBS_CHECKPOINT_RDMACM_RESTORE_H

#include <stdint.h>

struct rebuilt;

/* The deadline (clock_monotonic()) for an answer of urxed to a question asked now. */
uint64_t restore_deadline(void);

/*
 * Takes the locks of the process's rdma_cm devices, which are open, and gives urxed the IDs. The
 * process has its leased QPNs already. Until rdmacm_restored, urxed does not go on with the IDs,
 * and commands of other threads wait for the locks: no thread can keep this one from the end of
 * that. After an error the locks are free, and the caller closes the devices, which destroys the
 * IDs. Errors as urxe_checkpoint_restore; -ETIMEDOUT: urxed does not answer.
 */
int rdmacm_restore(const struct rebuilt *r);
/* Call it when the engine runs: has urxed go on with the IDs, and releases the locks. */
void rdmacm_restored(const struct rebuilt *r);
/* Call it instead of rdmacm_restored if the engine cannot run: releases the locks. The caller
 * closes the devices then, which destroys the IDs. */
void rdmacm_restore_abort(const struct rebuilt *r);

#endif
