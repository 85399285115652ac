/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Users whose processes may have a direct uplink (direct_uplink.h), with which they can send and
 * receive any frame on the uplink's interface: the values of --direct-uplink. */
#ifndef URXE_URXED_UPLINK_DIRECT_UPLINK_TRUST_H
#define URXE_URXED_UPLINK_DIRECT_UPLINK_TRUST_H

#include <stdbool.h>

#include "urxed/session/user_list.h"

#define DIRECT_UPLINK_ERROR USER_LIST_ERROR

/* Users whose processes may have a packet socket. Processes of root and of the daemon's own user
 * need not be named if they are in the daemon's network namespace. */
struct direct_uplink_trust {
	bool none; /* "none": no process gets a socket, not even root's */
	struct user_list named;
};

/* Adds a user, "@GROUP", or "none". Returns 0; -EINVAL: there is no such user or group, or "none"
 * is combined with another value; -ENOSPC: too many. On error `error` has a sentence. */
int direct_uplink_trust_add(struct direct_uplink_trust *trust, const char *name,
			    char error[DIRECT_UPLINK_ERROR]);
/* Whether the process at the other end of a UNIX socket may have packet sockets on the uplink. */
bool direct_uplink_trusts(const struct direct_uplink_trust *trust, int socket);

#endif
