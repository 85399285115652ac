/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/direct_uplink_trust.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/unix_packet.h"

#define OPTION "direct-uplink"

int direct_uplink_trust_add(struct direct_uplink_trust *trust, const char *name,
			    char error[DIRECT_UPLINK_ERROR])
{
	const bool others = trust->named.n_users || trust->named.n_groups;
	const bool none = !strcmp(name, "none");

	if (none ? others : trust->none) {
		snprintf(error, DIRECT_UPLINK_ERROR,
			 OPTION " %s: \"none\" excludes all other values", name);
		return -EINVAL;
	}
	trust->none |= none;
	return none ? 0 : user_list_add(&trust->named, OPTION, name, error);
}

/*
 * Whether the process at the other end connected from the daemon's network namespace: the kernel
 * makes an accepted socket in the namespace of its peer. Only root or CAP_NET_ADMIN may ask for a
 * socket's namespace; returns false to other daemons.
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

/* Whether --direct-uplink need not name the user. Root of a container that shares the user
 * namespace, but not the network namespace, must be named. */
static bool trusts_unnamed(uid_t user, int socket)
{
	return (user == 0 || user == geteuid()) && shares_network(socket);
}

bool direct_uplink_trusts(const struct direct_uplink_trust *trust, int socket)
{
	struct ucred peer;

	if (trust->none || unix_packet_peer(socket, &peer))
		return false;
	return user_list_has_peer(&trust->named, socket) || trusts_unnamed(peer.uid, socket);
}
