/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The TCP connection over which the two sides of a test exchange addresses and results. */
#ifndef URXE_TEST_EXCHANGE_H
#define URXE_TEST_EXCHANGE_H

#include <stddef.h>
#include <sys/types.h>

/* With host NULL waits for one connection as the server; otherwise connects to host. Exits on
 * failure. */
int exchange_open(const char *host, const char *port);
/* Forks. *fd is a connection between parent and child. Exits on failure. */
pid_t exchange_fork(int *fd);
/* Waits for the child. Exits if the child failed. */
void exchange_join(pid_t child);
/* Send and receive whole messages. They exit if the other side has closed the connection. */
void exchange_send(int fd, const void *data, size_t size);
void exchange_recv(int fd, void *data, size_t size);

#endif
