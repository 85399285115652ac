/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The UNIX sockets at which a hypervisor finds the functions of the device. */
#ifndef URXE_VM_LISTEN_SOCKET_H
#define URXE_VM_LISTEN_SOCKET_H

#include <sys/stat.h>
#include <sys/un.h>

struct listen_socket {
	int fd; /* non-blocking; -1 = closed */
	struct sockaddr_un address;
	struct stat file; /* of the socket, to recognize it */
};

/*
 * Listens at `path`; replaces the socket of a process that has ended. Only processes of this user
 * can connect. -EADDRINUSE: another process listens there; -EEXIST: the file is no socket;
 * -ENAMETOOLONG: the path does not fit a socket's address.
 */
int listen_socket_open(struct listen_socket *s, const char *path);
/* Removes the file if it is still that socket. */
void listen_socket_close(struct listen_socket *s);

#endif
