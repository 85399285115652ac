/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Adds a descriptor to the daemon's epoll set. */
#ifndef URXE_URXED_EPOLL_WATCH_H
#define URXE_URXED_EPOLL_WATCH_H

#define EPOLL_WATCH_ERROR 128

/*
 * Watches fd for EPOLLIN, with `what` as the event's data. Returns 0, -EEXIST if fd is watched
 * already, or another negative errno value; on error, `error` has one sentence.
 */
int epoll_watch_add(int epoll_fd, int fd, void *what, char error[EPOLL_WATCH_ERROR]);

#endif
