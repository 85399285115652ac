/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The daemon's epoll set: a descriptor that can be read, and what it is of as the event's data. */
#ifndef URXE_URXED_EPOLL_WATCH_H
#define URXE_URXED_EPOLL_WATCH_H

#define EPOLL_WATCH_ERROR 128

/* 0, -EEXIST where it is watched already, or another negative errno value; `error` has a sentence.
 */
int epoll_watch_add(int epoll_fd, int fd, void *what, char error[EPOLL_WATCH_ERROR]);

#endif
