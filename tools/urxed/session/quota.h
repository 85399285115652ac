/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quotas of unprivileged users on the daemon's tables. Each user may take half of what other users
 * leave, so the next user always finds room. The last sixteenth of a table is for users who hold
 * less than a 1024th of it, so that several greedy users together leave room, too. Root and the
 * daemon's own user have no quota.
 */
#ifndef URXE_URXED_SESSION_QUOTA_H
#define URXE_URXED_SESSION_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether the user has a quota: all but root and the daemon's own user have one. */
bool quota_applies(uid_t user);
/*
 * Whether a user who holds `own` of `limit` entries, of which `total` are taken, may take another.
 * Always true for a user without a quota, even if all entries are taken.
 */
bool quota_allows(uid_t user, uint32_t own, uint32_t total, uint32_t limit);
/* Returns the number of connections that this process's descriptor limit allows, at most `most`. */
uint32_t quota_connections(uint32_t most);

#endif
