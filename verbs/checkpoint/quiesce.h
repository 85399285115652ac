/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine of this process stands still, while a checkpointer saves it. For checkpoint.c. */
#ifndef URXE_VERBS_CHECKPOINT_QUIESCE_H
#define URXE_VERBS_CHECKPOINT_QUIESCE_H

#include <stdint.h>

/* urxe_checkpoint_quiesce, urxe_checkpoint_save and urxe_checkpoint_resume call these. */
int quiesce_begin(uint32_t timeout_ms);
int quiesce_save(int fd);
int quiesce_end(void);

#endif
