/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets on UNIX sockets, with descriptors along. None raises SIGPIPE. */
#ifndef URXE_COMMON_UNIX_PACKET_H
#define URXE_COMMON_UNIX_PACKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#define UNIX_PACKET_FDS 2

/* -ENAMETOOLONG where the path does not fit. */
int unix_packet_address(struct sockaddr_un *address, const char *dir, const char *name);

/*
 * A listening socket at this place, whatever was there before; only its owner can connect. A
 * descriptor, non-blocking, or a negative errno value.
 */
int unix_packet_listen(const char *dir, const char *name, int backlog);

/* Whether root or this process's own user is at the other end. */
bool unix_packet_peer_is_trusted(int fd);

/* Sends a packet and the first `n` of fds. 0 or a negative errno value. */
int unix_packet_send(int fd, const void *message, uint32_t len, const int fds[UNIX_PACKET_FDS],
		     uint32_t n);

struct unix_packet_extras {
	int fds[UNIX_PACKET_FDS]; /* what came along, the caller's; -1 = none */
	pid_t pid;                /* who sent it, where the socket has SO_PASSCRED; else 0 */
};

/*
 * Receives a packet of at most `len` bytes. Returns its length, 0 at the end of the
 * connection, -EPROTO for one that is longer, or another negative errno value; extras are
 * set in any case.
 */
int unix_packet_recv(int fd, void *message, uint32_t len, struct unix_packet_extras *extras);
/* Closes what came along. */
void unix_packet_close_fds(const struct unix_packet_extras *extras);

#endif
