/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The address of the attach socket, and how long its client waits. */
#ifndef URXE_VNIC_ATTACH_SOCKET_H
#define URXE_VNIC_ATTACH_SOCKET_H

#include <sys/un.h>

/* Sets the address of the daemon's socket in run_dir. 0; -ENAMETOOLONG: run_dir is too long for it.
 */
int vnic_socket_address(const char *run_dir, struct sockaddr_un *address);
/*
 * How long a client waits for each answer, unless vnic_driver_limit_wait() changes it. The daemon
 * itself waits up to 4 s for ARP and ND.
 */
#define VNIC_ANSWER_SECONDS 5

/* From now on each send and receive on the socket waits for at most so many seconds. 0 or a
 * negative errno value. */
int vnic_socket_limit_wait(int fd, unsigned int seconds);

#endif
