/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/driver_socket.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

static bool is_of(int fd, int domain)
{
	int found;
	socklen_t length = sizeof(found);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &found, &length) && found == domain;
}

void own_sockets_list(struct own_sockets *sockets, int domain)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	*sockets = (struct own_sockets){.domain = domain};
	while (dir && sockets->n < OWN_SOCKETS && (entry = readdir(dir)))
		if (is_of(atoi(entry->d_name), domain))
			sockets->fds[sockets->n++] = atoi(entry->d_name);
	if (dir)
		closedir(dir);
}

static bool has(const struct own_sockets *sockets, int fd)
{
	for (uint32_t i = 0; i < sockets->n; i++)
		if (sockets->fds[i] == fd)
			return true;
	return false;
}

int own_sockets_since(const struct own_sockets *before)
{
	struct own_sockets now;

	own_sockets_list(&now, before->domain);
	for (uint32_t i = 0; i < now.n; i++)
		if (!has(before, now.fds[i]))
			return now.fds[i];
	return -1;
}
