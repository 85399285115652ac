/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Paths of UNIX sockets. */
#ifndef URXE_NETDEV_UNIX_PATH_H
#define URXE_NETDEV_UNIX_PATH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

/*
 * `path` need not end in a zero byte, and becomes absolute, since a daemon leaves the directory
 * that it was started in. -EINVAL: there is none, -ENAMETOOLONG: it does not fit.
 */
int unix_path_set(struct sockaddr_un *address, const char *path, size_t length);
/*
 * Removes what a killed daemon has left at the path, and nothing else: another's file or served
 * socket is an error, and `why` gets the end of a sentence.
 */
int unix_path_clear(const struct sockaddr_un *address, int type, char *why, uint32_t why_size);

#endif
