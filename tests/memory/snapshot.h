/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks that a child sees its parent's memory as of the fork, and not the parent's later writes.
 */
#ifndef URXE_TEST_MEMORY_SNAPSHOT_H
#define URXE_TEST_MEMORY_SNAPSHOT_H

#include <sys/types.h>

#include "region.h"

#define SNAPSHOT_BEFORE 0x11
#define SNAPSHOT_AFTER  0x66

/* Forks several times by `make_child`, and prints what parent and child see. */
void snapshot_check(struct region *region, pid_t (*make_child)(void));
/* The same, with `forks` children one after another. */
void snapshot_check_forks(struct region *region, pid_t (*make_child)(void), int forks);
/* As fork(2). */
pid_t snapshot_fork(void);

#endif
