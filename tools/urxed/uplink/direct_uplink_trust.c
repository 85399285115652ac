/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/direct_uplink_trust.h"

#include <errno.h>
#include <grp.h>
#include <linux/sockios.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse_name(const char *name, int rc, const char *reason,
		       char error[DIRECT_UPLINK_ERROR])
{
	snprintf(error, DIRECT_UPLINK_ERROR, "direct-uplink %s: %s", name, reason);
	return rc;
}

static int add_group(struct direct_uplink_trust *trust, const char *name,
		     char error[DIRECT_UPLINK_ERROR])
{
	const struct group *group = getgrnam(name + 1);

	if (!group)
		return refuse_name(name, -EINVAL, "no such group", error);
	if (trust->n_groups == DIRECT_UPLINK_NAMES)
		return refuse_name(name, -ENOSPC, "one group too many", error);
	trust->groups[trust->n_groups++] = group->gr_gid;
	return 0;
}

static int add_user(struct direct_uplink_trust *trust, const char *name,
		    char error[DIRECT_UPLINK_ERROR])
{
	const struct passwd *user = getpwnam(name);

	if (!user)
		return refuse_name(name, -EINVAL, "no such user (@NAME is a group)", error);
	if (trust->n_users == DIRECT_UPLINK_NAMES)
		return refuse_name(name, -ENOSPC, "one user too many", error);
	trust->users[trust->n_users++] = user->pw_uid;
	return 0;
}

int direct_uplink_trust_add(struct direct_uplink_trust *trust, const char *name,
			    char error[DIRECT_UPLINK_ERROR])
{
	const bool others = trust->n_users || trust->n_groups;
	const bool none = !strcmp(name, "none");

	if (none ? others : trust->none)
		return refuse_name(name, -EINVAL, "\"none\" excludes all other values", error);
	trust->none |= none;
	if (none)
		return 0;
	return *name == '@' ? add_group(trust, name, error) : add_user(trust, name, error);
}

static bool trusts_group(const struct direct_uplink_trust *trust, gid_t group)
{
	for (uint32_t i = 0; i < trust->n_groups; i++)
		if (trust->groups[i] == group)
			return true;
	return false;
}

/*
 * Whether the process at the other end connected from the daemon's network namespace. The kernel
 * makes the accepted socket in that of the peer. Only root or CAP_NET_ADMIN may ask.
 */
static bool shares_network(int socket)
{
	int fd = ioctl(socket, SIOCGSKNS);
	struct stat its, own;
	bool same = fd >= 0 && !fstat(fd, &its) && !stat("/proc/self/ns/net", &own) &&
		    its.st_dev == own.st_dev && its.st_ino == own.st_ino;

	if (fd >= 0)
		close(fd);
	return same;
}

/* Root of a container that shares the user namespace, but not the network, must be named. */
static bool trusts_unnamed(uid_t user, int socket)
{
	return (user == 0 || user == geteuid()) && shares_network(socket);
}

static bool trusts_user(const struct direct_uplink_trust *trust, uid_t user)
{
	for (uint32_t i = 0; i < trust->n_users; i++)
		if (trust->users[i] == user)
			return true;
	return false;
}

/* The groups that the process had when it connected, as the kernel recorded them (unix(7)). */
static bool is_in_trusted_group(const struct direct_uplink_trust *trust, int socket)
{
	socklen_t size = 0;
	bool found = false;
	gid_t *groups;

	/* The kernel answers ERANGE, and the size that it needs. */
	if (!getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) || errno != ERANGE)
		return false;
	groups = malloc(size);
	if (groups && !getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
		for (uint32_t i = 0; i < size / sizeof(*groups) && !found; i++)
			found = trusts_group(trust, groups[i]);
	free(groups);
	return found;
}

bool direct_uplink_trusts(const struct direct_uplink_trust *trust, int socket)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (trust->none || getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return false;
	return trusts_user(trust, peer.uid) || trusts_unnamed(peer.uid, socket) ||
	       trusts_group(trust, peer.gid) ||
	       (trust->n_groups && is_in_trusted_group(trust, socket));
}
