/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The UNIX sockets at which a hypervisor connects to the functions of the device, and the one at
 * which a process connects that replaces this process. */
#ifndef URXE_VM_DEVICE_LISTEN_SOCKET_H
#define URXE_VM_DEVICE_LISTEN_SOCKET_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

struct listen_socket {
	int fd; /* non-blocking; -1 = closed */
	struct sockaddr_un address;
	struct stat file; /* the socket's file, so that no other file is removed */
};

/*
 * Listens at `path`, type: SOCK_STREAM or SOCK_SEQPACKET; replaces the socket of a process that has
 * ended. Only processes of this user can connect. -EADDRINUSE: another process listens there;
 * -EEXIST: the file is no socket; -ENAMETOOLONG: the path does not fit a socket's address; or an
 * error of the kernel.
 */
int listen_socket_open(struct listen_socket *s, const char *path, int type);
/* The reason for an error of listen_socket_open, and what the user can do. */
const char *listen_socket_error(int rc);
/* Whether a process listens at `path`. */
bool listen_socket_is_served(const char *path);
/*
 * Takes `fd` over, which another process has made by listen_socket_open at this path. -ENOTSOCK: it
 * is no listening UNIX socket of `type`; -ENAMETOOLONG. After an error `fd` stays the caller's. The
 * file stays the other process's, and listen_socket_close leaves it, until listen_socket_own_file.
 */
int listen_socket_adopt(struct listen_socket *s, int fd, const char *path, int type);
/* From now on listen_socket_close removes the file of a socket that was taken over. */
void listen_socket_own_file(struct listen_socket *s);
/* Closes the socket, and removes its file if the file is this process's and still this socket. */
void listen_socket_close(struct listen_socket *s);

#endif
