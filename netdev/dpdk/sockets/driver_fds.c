/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/sockets/driver_fds.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_of_domain(int fd, int domain)
{
	int found;
	socklen_t length = sizeof(found);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &found, &length) && found == domain;
}

/* Whether the descriptor is a BPF program, a map, or types (BTF). */
static bool is_bpf(int fd)
{
	char path[32], name[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name) - 1) > 0 &&
	       (!strncmp(name, "anon_inode:bpf", 14) || !strcmp(name, "anon_inode:btf"));
}

static bool is_of_kinds(int fd, int domain)
{
	return is_of_domain(fd, domain) || is_bpf(fd);
}

void driver_fds_list(struct driver_fds *list, int domain)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	*list = (struct driver_fds){.domain = domain};
	while (dir && list->n < DRIVER_FDS_MAX && (entry = readdir(dir)))
		if (is_of_kinds(atoi(entry->d_name), domain))
			list->fds[list->n++] = atoi(entry->d_name);
	if (dir)
		closedir(dir);
}

static bool is_listed(const struct driver_fds *list, int fd)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->fds[i] == fd)
			return true;
	return false;
}

void driver_fds_find(struct driver_fds *list)
{
	const struct driver_fds before = *list;
	uint32_t n = 0;

	driver_fds_list(list, before.domain);
	for (uint32_t i = 0; i < list->n; i++)
		if (!is_listed(&before, list->fds[i]))
			list->fds[n++] = list->fds[i];
	list->n = n;
}

int driver_fds_socket(const struct driver_fds *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (is_of_domain(list->fds[i], list->domain))
			return list->fds[i];
	return -1;
}

void driver_fds_close(struct driver_fds *list)
{
	for (uint32_t i = 0; i < list->n && list->domain == AF_XDP; i++)
		if (is_of_kinds(list->fds[i], AF_XDP))
			close(list->fds[i]);
	list->n = 0;
}
