/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much of what all users of a daemon share one user may have: half of what the
 * others leave. So whoever comes next finds some, whatever the one before does. Root,
 * and whose daemon it is, may have all.
 */
#ifndef URXE_URXED_SESSION_QUOTA_H
#define URXE_URXED_SESSION_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether a user who has `own` of `limit`, of which `total` are taken, may have one more. */
bool quota_allows(uid_t user, uint32_t own, uint32_t total, uint32_t limit);
/* As many connections as this process has descriptors for, and at most `most`. */
uint32_t quota_connections(uint32_t most);

#endif
