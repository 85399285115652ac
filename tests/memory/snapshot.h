/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whether a child sees its parent's memory as it was at the fork, whatever the parent writes then.
 */
#ifndef URXE_TEST_MEMORY_SNAPSHOT_H
#define URXE_TEST_MEMORY_SNAPSHOT_H

#include <sys/types.h>

#include "region.h"

#define SNAPSHOT_BEFORE 0x11
#define SNAPSHOT_AFTER  0x66

/* Forks by `make_child`, which is fork(2) by another name, several times, and says what both saw.
 */
void snapshot_check(struct region *region, pid_t (*make_child)(void));
/* As fork(2). */
pid_t snapshot_fork(void);

#endif
