/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The connection over which the two sides of a test agree. */
#ifndef URXE_TEST_EXCHANGE_H
#define URXE_TEST_EXCHANGE_H

#include <stddef.h>
#include <sys/types.h>

/* As server (host NULL) waits for one connection; as client makes it. Exits on failure. */
int exchange_open(const char *host, const char *port);
/* As fork(2); *fd is the connection of each with the other. Exits on failure. */
pid_t exchange_fork(int *fd);
/* Until the other side has ended, well. Exits otherwise. */
void exchange_join(pid_t child);
/* Whole messages; they exit when the other side has gone. */
void exchange_send(int fd, const void *data, size_t size);
void exchange_recv(int fd, void *data, size_t size);

#endif
