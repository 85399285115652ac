/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A list of users and groups that an option of the daemon names: USER or @GROUP. */
#ifndef URXE_URXED_SESSION_USER_LIST_H
#define URXE_URXED_SESSION_USER_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define USER_LIST_NAMES 16 /* most users, and most groups */
#define USER_LIST_ERROR 128

struct user_list {
	uint32_t n_users, n_groups;
	uid_t users[USER_LIST_NAMES];
	gid_t groups[USER_LIST_NAMES];
};

/* Adds a user or "@GROUP". Returns 0; -EINVAL: there is no such user or group; -ENOSPC: too many.
 * On error `error` has a sentence that begins with the option's name. */
int user_list_add(struct user_list *list, const char *option, const char *name,
		  char error[USER_LIST_ERROR]);
/* Whether the list has the user, or a group, of the process at the other end of a UNIX socket, as
 * the kernel recorded them when that process connected. */
bool user_list_has_peer(const struct user_list *list, int socket);

#endif
