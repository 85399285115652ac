/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Restores a saved process. For checkpoint.c. */
#ifndef URXE_VERBS_CHECKPOINT_CHECKPOINT_RESTORE_H
#define URXE_VERBS_CHECKPOINT_CHECKPOINT_RESTORE_H

/* Does the work of urxe_checkpoint_restore (checkpoint.h): same argument and return value. */
int restore_process(int fd);

#endif
