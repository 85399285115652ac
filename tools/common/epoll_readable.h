/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_COMMON_EPOLL_READABLE_H
#define URXE_COMMON_EPOLL_READABLE_H

#include <errno.h>
#include <sys/epoll.h>

/* Watches fd for EPOLLIN, with fd as the event's data. Returns 0 or a negative errno value. */
static inline int epoll_add_readable(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Removes fd from the set; no effect if it is -1. */
static inline void epoll_remove(int epoll_fd, int fd)
{
	if (fd >= 0)
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

#endif
