/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/sockets/epoll_pair.h"

#include <stdbool.h>
#include <sys/epoll.h>
#include <unistd.h>

static bool add_descriptor(int set, int fd)
{
	struct epoll_event readable = {.events = EPOLLIN};

	return fd < 0 || !epoll_ctl(set, EPOLL_CTL_ADD, fd, &readable);
}

int epoll_pair_open(int a, int b)
{
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set >= 0 && add_descriptor(set, a) && add_descriptor(set, b))
		return set;
	if (set >= 0)
		close(set);
	return -1;
}
