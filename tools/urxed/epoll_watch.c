/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/epoll_watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

int epoll_watch_add(int epoll_fd, int fd, void *what, char error[EPOLL_WATCH_ERROR])
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};
	int err;

	if (!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return 0;
	err = errno;
	snprintf(error, EPOLL_WATCH_ERROR, "cannot watch a descriptor with epoll: %s",
		 strerror(err));
	return -err;
}
