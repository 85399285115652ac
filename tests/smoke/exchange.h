/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The TCP connection over which the two sides of verbs_check agree. */
#ifndef URXE_TEST_EXCHANGE_H
#define URXE_TEST_EXCHANGE_H

#include <stddef.h>

/* As server (host NULL) waits for one connection; as client makes it. Exits on failure. */
int exchange_open(const char *host, const char *port);
/* Whole messages; they exit when the other side has gone. */
void exchange_send(int fd, const void *data, size_t size);
void exchange_recv(int fd, void *data, size_t size);

#endif
