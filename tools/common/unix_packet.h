/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets on UNIX sockets, with descriptors along. None raises SIGPIPE. */
#ifndef URXE_COMMON_UNIX_PACKET_H
#define URXE_COMMON_UNIX_PACKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#define MESSAGE_FDS 2

/* -ENAMETOOLONG where the path does not fit. */
int message_address(struct sockaddr_un *address, const char *dir, const char *name);

/*
 * A listening socket at this place, whatever was there before; only its owner can connect. A
 * descriptor, non-blocking, or a negative errno value.
 */
int message_listen(const char *dir, const char *name, int backlog);

/* Whether root or this process's own user is at the other end. */
bool message_from_friend(int fd);

/* Sends a packet and the first `n` of fds. 0 or a negative errno value. */
int message_send(int fd, const void *message, uint32_t len, const int fds[MESSAGE_FDS], uint32_t n);

struct message_extras {
	int fds[MESSAGE_FDS]; /* what came along, the caller's; -1 = none */
	pid_t pid;            /* who sent it, where the socket has SO_PASSCRED; else 0 */
};

/*
 * Receives a packet of at most `len` bytes. Returns its length, 0 at the end of the
 * connection, -EPROTO for one that is longer, or another negative errno value; extras are
 * set in any case.
 */
int message_recv(int fd, void *message, uint32_t len, struct message_extras *extras);
/* Closes what came along. */
void message_drop(const struct message_extras *extras);

#endif
