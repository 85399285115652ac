/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How many objects of one kind each user holds, for quotas (quota.h): for kinds of which there are
 * too many to count anew at each request. Waiters of neigh.c, ports of cma_port.c, and multicast
 * groups of ucma.h are counted so.
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
	struct user_count *at; /* users who hold some, in any order */
	uint32_t len, room;
	uint32_t total;
};

uint32_t user_counts_get(const struct user_counts *counts, uid_t user);
/*
 * Counts one more object of a user. Returns 0; -ENOSPC: of `limit` objects for all users, the quota
 * allows this user no more (quota_allows); -ENOMEM.
 */
int user_counts_take(struct user_counts *counts, uid_t user, uint32_t limit);
/* Counts one more without a limit, for what an earlier daemon has allowed. Returns 0 or -ENOMEM. */
int user_counts_add(struct user_counts *counts, uid_t user);
/* Counts one object of a user less, which was counted before. */
void user_counts_drop(struct user_counts *counts, uid_t user);
/* Frees the memory; all counts are 0. */
void user_counts_free(struct user_counts *counts);

#endif
