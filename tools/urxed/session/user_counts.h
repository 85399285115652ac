/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counts how many objects of one kind each user holds, for quotas (quota.h). It is for kinds with
 * too many objects to count them at each request: waiters of neigh.c, ports of cma_port.c, and
 * multicast groups of ucma.h.
 */
#ifndef URXE_URXED_SESSION_USER_COUNTS_H
#define URXE_URXED_SESSION_USER_COUNTS_H

#include <stdint.h>
#include <sys/types.h>

struct user_count {
	uid_t user;
	uint32_t n;
};

struct user_counts {
	struct user_count *at; /* the users who hold objects, in any order */
	uint32_t len, room;
	uint32_t total;
};

uint32_t user_counts_get(const struct user_counts *counts, uid_t user);
/* Counts one more object of a user. Returns 0; -ENOSPC: the user's quota of `limit` objects for all
 * users is used up (quota_allows); -ENOMEM. */
int user_counts_take(struct user_counts *counts, uid_t user, uint32_t limit);
/* Counts one more object without a limit, because an earlier daemon has allowed it. Returns 0 or
 * -ENOMEM. */
int user_counts_add(struct user_counts *counts, uid_t user);
/* Counts one object less for a user. */
void user_counts_drop(struct user_counts *counts, uid_t user);
/* Frees the memory, after which all counts are 0. */
void user_counts_free(struct user_counts *counts);

#endif
