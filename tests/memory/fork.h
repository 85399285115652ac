/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Each way to create a child, for the themes that fork after another system call. */
#ifndef URXE_TEST_MEMORY_FORK_H
#define URXE_TEST_MEMORY_FORK_H

#include <stdbool.h>
#include <sys/types.h>

struct region;

/* A child that copies its parent's memory. */
struct fork_way {
	const char *name;
	/* As fork(2). */
	pid_t (*make_child)(void);
};

/* The last entry has no name. */
extern const struct fork_way fork_ways[];

/* Whether the kernel has the system call of `way`. If it does not, prints the reason. */
bool fork_way_works(const struct fork_way *way);

/*
 * Creates a child in each of fork_ways, by vfork and by posix_spawn, and prints what parent and
 * child see. Exits on failure.
 */
void fork_each_way(struct region *region);

#endif
