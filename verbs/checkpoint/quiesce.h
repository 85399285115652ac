/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Stops the engine of this process while a checkpointer saves the process. For checkpoint.c. */
#ifndef URXE_VERBS_CHECKPOINT_QUIESCE_H
#define URXE_VERBS_CHECKPOINT_QUIESCE_H

#include <stdint.h>

/*
 * Do the work of urxe_checkpoint_quiesce, urxe_checkpoint_save and urxe_checkpoint_resume
 * (checkpoint.h). Between quiesce_begin and quiesce_end the thread holds adapter_open_lock,
 * adapter.lock and the locks of all rdma_cm devices.
 */
int quiesce_begin(uint32_t timeout_ms);
int quiesce_save(int fd);
int quiesce_end(void);

#endif
