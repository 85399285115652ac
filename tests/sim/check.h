/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The invariants, one a file. Each ends in world_fail where it does not hold. */
#ifndef URXE_SIM_CHECK_H
#define URXE_SIM_CHECK_H

#include <rxe/types.h>

struct world;

/* Every request completes exactly once, in order, with success and the right result. */
void check_completion(struct world *world, unsigned side, const struct urxe_wc *wc);
/* Each message arrives exactly once, in order and whole (UC, UD: at most once, or not at all). */
void check_delivery(struct world *world, unsigned side, const struct urxe_wc *wc);
/* At the end: memory is what the requests in their order make of it; atomics add up. */
void check_memory(struct world *world);
/* At the end: nothing is left over, and an error flushes exactly what was outstanding. */
void check_quiet(struct world *world);

#endif
