/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of registered regions that other processes have mapped, too: a memfd in places of fixed
 * size, one for a region at most. It is sparse, and nobody can make it shorter.
 *
 * What a process finds in another's is as good as its owner. Who has one could as well read and
 * write all of its owner's memory, by ptrace(2).
 *
 * With the port's lock.
 */
#ifndef URXE_VERBS_ARENA_H
#define URXE_VERBS_ARENA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Places are far apart, so that a mapping of one that the program lets grow when the region is no
 * more shows holes. The first one has the token alone.
 */
#define ARENA_PLACES 65u
#define ARENA_PLACE  (64u << 20)
#define ARENA_SIZE   ((uint64_t)ARENA_PLACES * ARENA_PLACE)

/* Makes ours, at the first call; false where the kernel, a limit or a filter refuses. */
bool arena_open(uint64_t token);
/* Ours, as others find it in /proc; -1: there is none. */
int arena_descriptor(void);
/* Ours as it is mapped apart from all regions; of an open one. */
uint8_t *arena_at(uint64_t offset);
/*
 * Whether the descriptor is still ours: programs close what is not theirs. Without it nothing can
 * be mapped.
 */
bool arena_kept(void);
/* Whether a mapping of /proc/self/maps is of ours. */
bool arena_is(unsigned int major, unsigned int minor, uint64_t inode);
void arena_close(void);
/* In a forked child: it is the parent's. */
void arena_in_child(void);

/* Another process's, by its descriptor there; NULL where it cannot be had, or is not the one with
 * the token. */
uint8_t *arena_reach(pid_t pid, int fd, uint64_t token);
/* NULL is allowed. */
void arena_leave(uint8_t *reached);

#endif
