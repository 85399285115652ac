/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "credentials.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vnic/server.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/*
 * Returns a pidfd of the process at the other end of the socket; -1: none. On kernels without
 * SO_PEERPIDFD the pidfd may be another process's: one that got the PID between the connection and
 * this call.
 */
static int open_pidfd(int socket, pid_t pid)
{
	socklen_t len = sizeof(int);
	int fd;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;
	return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

void vnic_credentials_read(struct vnic_credentials *peer, int socket)
{
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		cred.pid = 0;
	*peer = (struct vnic_credentials){
		.pid = cred.pid, .uid = cred.uid, .pidfd = open_pidfd(socket, cred.pid)};
}

void vnic_credentials_close(struct vnic_credentials *peer)
{
	if (peer->pidfd >= 0)
		close(peer->pidfd);
}

bool vnic_credentials_alive(const struct vnic_credentials *peer)
{
	struct pollfd fd = {.fd = peer->pidfd, .events = POLLIN};

	return peer->pidfd >= 0 && poll(&fd, 1, 0) == 0;
}

/* Identifies the user namespace of a process, in *st. False: this process may not see it. The
 * kernel answers from its own data, so no process can delay the answer. */
static bool read_user_namespace(pid_t pid, struct stat *st)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return pid > 0 && stat(path, st) == 0;
}

bool vnic_server_share_user_namespace(pid_t a, pid_t b)
{
	struct stat of_a, of_b;

	return read_user_namespace(a, &of_a) && read_user_namespace(b, &of_b) &&
	       of_a.st_ino == of_b.st_ino && of_a.st_dev == of_b.st_dev;
}
