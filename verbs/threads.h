/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whether a program has threads, other than those that are ours. */
#ifndef URXE_VERBS_THREADS_H
#define URXE_VERBS_THREADS_H

#include <stdbool.h>

/* One of ours was created; says so itself before it ends. */
void threads_created(void);
void threads_ending(void);
/* In a forked child, which has none of them. */
void threads_in_child(void);

/* Whether the caller is the only thread of its program; false also where that cannot be told. */
bool threads_alone(void);

#endif
