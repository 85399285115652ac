/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Paths of UNIX sockets, for the ports qemu: and vhost:. */
#ifndef URXE_NETDEV_UNIX_PATH_H
#define URXE_NETDEV_UNIX_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

/*
 * Writes `length` bytes of `path` to the address, as an absolute path, since the daemon changes its
 * directory after its start. -EINVAL: length 0; -ENAMETOOLONG: longer than sun_path.
 */
int unix_path_set(struct sockaddr_un *address, const char *path, size_t length);
/* True: connect(2) shows that no process has a socket at the path. False also if connect cannot
 * tell. */
bool unix_path_is_abandoned(const struct sockaddr_un *address, int type);
/*
 * Removes the socket that a killed daemon left at the path. 0: the path is free now. A file of
 * another type (-EEXIST) or a socket in use (-EADDRINUSE) stays; or another negative errno value.
 * `error` gets the end of a sentence.
 */
int unix_path_clear(const struct sockaddr_un *address, int type, char *error, uint32_t error_size);

#endif
