/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "xdp_socket.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

static bool is_xdp(int fd)
{
	int domain;
	socklen_t length = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) && domain == AF_XDP;
}

void xdp_sockets_list(struct xdp_sockets *sockets)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	sockets->n = 0;
	while (dir && sockets->n < XDP_SOCKETS && (entry = readdir(dir)))
		if (is_xdp(atoi(entry->d_name)))
			sockets->fds[sockets->n++] = atoi(entry->d_name);
	if (dir)
		closedir(dir);
}

static bool has(const struct xdp_sockets *sockets, int fd)
{
	for (uint32_t i = 0; i < sockets->n; i++)
		if (sockets->fds[i] == fd)
			return true;
	return false;
}

int xdp_sockets_since(const struct xdp_sockets *before)
{
	struct xdp_sockets now;

	xdp_sockets_list(&now);
	for (uint32_t i = 0; i < now.n; i++)
		if (!has(before, now.fds[i]))
			return now.fds[i];
	return -1;
}
