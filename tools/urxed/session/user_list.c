/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/session/user_list.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/unix_packet.h"

static int refuse_name(const char *option, const char *name, int rc, const char *reason,
		       char error[USER_LIST_ERROR])
{
	snprintf(error, USER_LIST_ERROR, "%s %s: %s", option, name, reason);
	return rc;
}

static int add_group(struct user_list *list, const char *option, const char *name,
		     char error[USER_LIST_ERROR])
{
	const struct group *group = getgrnam(name + 1);

	if (!group)
		return refuse_name(option, name, -EINVAL, "no such group", error);
	if (list->n_groups == USER_LIST_NAMES)
		return refuse_name(option, name, -ENOSPC, "too many groups", error);
	list->groups[list->n_groups++] = group->gr_gid;
	return 0;
}

static int add_user(struct user_list *list, const char *option, const char *name,
		    char error[USER_LIST_ERROR])
{
	const struct passwd *user = getpwnam(name);

	if (!user)
		return refuse_name(option, name, -EINVAL, "no such user (@NAME is a group)", error);
	if (list->n_users == USER_LIST_NAMES)
		return refuse_name(option, name, -ENOSPC, "too many users", error);
	list->users[list->n_users++] = user->pw_uid;
	return 0;
}

int user_list_add(struct user_list *list, const char *option, const char *name,
		  char error[USER_LIST_ERROR])
{
	return *name == '@' ? add_group(list, option, name, error)
			    : add_user(list, option, name, error);
}

static bool has_group(const struct user_list *list, gid_t group)
{
	for (uint32_t i = 0; i < list->n_groups; i++)
		if (list->groups[i] == group)
			return true;
	return false;
}

static bool has_user(const struct user_list *list, uid_t user)
{
	for (uint32_t i = 0; i < list->n_users; i++)
		if (list->users[i] == user)
			return true;
	return false;
}

/* Whether the list has a supplementary group of the socket's peer, as the kernel recorded them when
 * the peer connected (SO_PEERGROUPS, unix(7)). False also if memory is lacking. */
static bool has_group_of(const struct user_list *list, int socket)
{
	socklen_t size = 0;
	bool found = false;
	gid_t *groups;

	/* The kernel answers this first call with ERANGE and the size of the list. */
	if (!getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) || errno != ERANGE)
		return false;
	groups = malloc(size);
	if (groups && !getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
		for (uint32_t i = 0; i < size / sizeof(*groups) && !found; i++)
			found = has_group(list, groups[i]);
	free(groups);
	return found;
}

bool user_list_has_peer(const struct user_list *list, int socket)
{
	struct ucred peer;

	if (unix_packet_peer(socket, &peer))
		return false;
	return has_user(list, peer.uid) || has_group(list, peer.gid) ||
	       (list->n_groups && has_group_of(list, socket));
}
