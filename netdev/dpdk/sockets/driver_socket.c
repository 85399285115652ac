/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/sockets/driver_socket.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

static bool is_of_domain(int fd, int domain)
{
	int found;
	socklen_t length = sizeof(found);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &found, &length) && found == domain;
}

void driver_socket_list(struct driver_sockets *sockets, int domain)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	*sockets = (struct driver_sockets){.domain = domain};
	while (dir && sockets->n < DRIVER_SOCKETS_MAX && (entry = readdir(dir)))
		if (is_of_domain(atoi(entry->d_name), domain))
			sockets->fds[sockets->n++] = atoi(entry->d_name);
	if (dir)
		closedir(dir);
}

static bool is_listed(const struct driver_sockets *sockets, int fd)
{
	for (uint32_t i = 0; i < sockets->n; i++)
		if (sockets->fds[i] == fd)
			return true;
	return false;
}

int driver_socket_find(const struct driver_sockets *before)
{
	struct driver_sockets now;

	driver_socket_list(&now, before->domain);
	for (uint32_t i = 0; i < now.n; i++)
		if (!is_listed(before, now.fds[i]))
			return now.fds[i];
	return -1;
}
