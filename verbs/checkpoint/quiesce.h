/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine of this process stands still, while a checkpointer saves it. For checkpoint.c. */
#ifndef URXE_VERBS_CHECKPOINT_QUIESCE_H
#define URXE_VERBS_CHECKPOINT_QUIESCE_H

#include <stdint.h>

/* As the functions of checkpoint.h. */
int quiesce_begin(uint32_t timeout_ms);
int quiesce_save(int fd);
int quiesce_end(void);

#endif
