/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The address of the attach socket, and how long its client waits. */
#ifndef URXE_VNIC_ATTACH_SOCKET_H
#define URXE_VNIC_ATTACH_SOCKET_H

#include <sys/un.h>

/* -ENAMETOOLONG: run_dir does not fit into the address. */
int vnic_socket_address(const char *run_dir, struct sockaddr_un *address);
/* Limits each send and receive to the time that a daemon may need for an answer. */
int vnic_socket_limit_wait(int fd);

#endif
