/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets on UNIX sockets, with at most one descriptor along. None raises SIGPIPE. */
#ifndef URXE_TOOLS_MESSAGE_H
#define URXE_TOOLS_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

/* -ENAMETOOLONG where the path does not fit. */
int message_address(struct sockaddr_un *address, const char *dir, const char *name);

/* Whether root or this process's own user is at the other end. */
bool message_from_friend(int fd);

/* Sends a packet; passed -1 = no descriptor. 0 or a negative errno value. */
int message_send(int fd, const void *message, uint32_t len, int passed);
/*
 * Receives a packet of at most `len` bytes; *passed is -1 where no descriptor came, else
 * the caller's. Returns its length, 0 at the end of the connection, -EPROTO for one
 * that is longer, or another negative errno value.
 */
int message_recv(int fd, void *message, uint32_t len, int *passed);

#endif
