/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quotas of unprivileged users on the daemon's tables: each may take half of what other users
 * leave, so the next user always finds room. The last sixteenth of a table serves users who hold
 * less than a 1024th of it, so some greedy users together leave room, too. Root and the daemon's
 * own user have no quota.
 */
#ifndef URXE_URXED_SESSION_QUOTA_H
#define URXE_URXED_SESSION_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Has the user a quota? Root and the daemon's own user have none. */
bool quota_applies(uid_t user);
/* May a user who holds `own` of `limit` entries, of which `total` are taken, take another one? */
bool quota_allows(uid_t user, uint32_t own, uint32_t total, uint32_t limit);
/* Number of connections that this process's descriptor limit allows, at most `most`. */
uint32_t quota_connections(uint32_t most);

#endif
