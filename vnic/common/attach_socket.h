/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The address of the attach socket, and how long its client waits. */
#ifndef URXE_VNIC_ATTACH_SOCKET_H
#define URXE_VNIC_ATTACH_SOCKET_H

#include <sys/un.h>

/* The address of the daemon's socket in run_dir. -ENAMETOOLONG: run_dir is too long for it. */
int vnic_socket_address(const char *run_dir, struct sockaddr_un *address);
/* From now on each send and receive on the socket waits at most 5 s: the time that a daemon may
 * need for an answer. */
int vnic_socket_limit_wait(int fd);

#endif
