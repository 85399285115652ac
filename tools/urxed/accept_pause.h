/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pauses a listening socket for 100 ms after a failed accept(2). If the daemon has no free
 * descriptor, the connection stays in the backlog, and epoll would report the socket again at once.
 * The files that own the daemon's listening sockets call these functions, and set epoll_fd, fd and
 * watch.
 */
#ifndef URXE_URXED_ACCEPT_PAUSE_H
#define URXE_URXED_ACCEPT_PAUSE_H

#include <stdint.h>
#include <sys/epoll.h>

#include "common/log.h"

struct accept_pause {
	int epoll_fd; /* the epoll set that watches fd, by the event `watch` */
	int fd;
	struct epoll_event watch;
	uint64_t until; /* end of the pause, ns; 0 = the socket is watched */
	struct log_ratelimit log;
};

/*
 * Call it after accept(2) has failed with the errno value `error`. Logs the error and pauses the
 * socket; does neither for EAGAIN, EINTR and ECONNABORTED.
 */
void accept_pause_begin(struct accept_pause *p, uint64_t now, int error);
/* Pauses the socket until `until` (ns), because its owner has no place for a connection. */
void accept_pause_until(struct accept_pause *p, uint64_t until);
/* Watches the socket again now. Does nothing without a pause. */
void accept_pause_end(struct accept_pause *p);
/*
 * Watches the socket again when the pause is over. Returns the time of the next call in ns;
 * UINT64_MAX = none needed.
 */
uint64_t accept_pause_tick(struct accept_pause *p, uint64_t now);

#endif
