/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/sockets/epoll_set.h"

#include <stdbool.h>
#include <sys/epoll.h>
#include <unistd.h>

static bool add_descriptor(int set, int fd)
{
	struct epoll_event readable = {.events = EPOLLIN};

	return fd < 0 || !epoll_ctl(set, EPOLL_CTL_ADD, fd, &readable);
}

int epoll_set_open(const int *fds, uint32_t n)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	uint32_t i = 0;

	if (set < 0)
		return -1;
	while (i < n && add_descriptor(set, fds[i]))
		i++;
	if (i == n)
		return set;
	close(set);
	return -1;
}
