/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/quota.h"

#include <sys/resource.h>
#include <unistd.h>

/* Approximate number of descriptors that one connection with all features needs, and the daemon
 * itself. */
#define FDS_PER_CONNECTION 10
#define FDS_OF_DAEMON      64

/* For a table of `limit` entries: the entries reserved for users who hold few, and the least quota
 * of each user. */
#define RESERVE(limit) ((limit) / 16)
#define LEAST(limit)   ((limit) > 1024 ? (limit) / 1024 : 1)
bool quota_applies(uid_t user)
{
	return user != 0 && user != geteuid();
}

bool quota_allows(uid_t user, uint32_t own, uint32_t total, uint32_t limit)
{
	uint32_t others = total - own;

	if (!quota_applies(user))
		return true;
	if (total >= limit)
		return false;
	return own < LEAST(limit) || (total < limit - RESERVE(limit) && own < (limit - others) / 2);
}

uint32_t quota_connections(uint32_t most)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur / FDS_PER_CONNECTION >= most)
		return most;
	return lim.rlim_cur > FDS_OF_DAEMON
		       ? (uint32_t)(lim.rlim_cur - FDS_OF_DAEMON) / FDS_PER_CONNECTION
		       : 0;
}
