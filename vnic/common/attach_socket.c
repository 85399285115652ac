/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "attach_socket.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "message.h"
#include "place_fd.h"

int vnic_socket_address(const char *run_dir, struct sockaddr_un *address)
{
	int len;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	len = snprintf(address->sun_path, sizeof(address->sun_path), "%s/" VNIC_SOCKET_NAME,
		       run_dir);
	return len < (int)sizeof(address->sun_path) ? 0 : -ENAMETOOLONG;
}

/*
 * Checks which user listens. 0: root, or the user of this process; -EPERM: another user, who could
 * read and change everything that the client sends; or an error of getsockopt(2). Calls geteuid by
 * syscall(2), because libraries such as fakeroot's replace geteuid().
 */
static int check_listener(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	return cred.uid == 0 || cred.uid == syscall(SYS_geteuid) ? 0 : -EPERM;
}

int vnic_socket_limit_wait(int fd, unsigned int seconds)
{
	const struct timeval timeout = {.tv_sec = seconds};

	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ||
			       setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout))
		       ? -errno
		       : 0;
}

static time_t uptime_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/*
 * Connects; while the listener's queue is full, waits. -ETIMEDOUT: the queue stayed full; or
 * another error of connect(2). On a socket with a timeout a signal ends connect(2) with EINTR, also
 * if its handler has SA_RESTART (signal(7)); so the call is repeated. A child that the handler has
 * forked does not repeat it (-ETIMEDOUT): the child shares the socket with its parent.
 */
static int wait_for_connection(int fd, const struct sockaddr_un *address)
{
	const time_t until = uptime_seconds() + VNIC_ANSWER_SECONDS;
	const pid_t caller = getpid();
	int ret;

	do
		ret = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
	while (ret == -EINTR && getpid() == caller && uptime_seconds() < until);
	return ret == -EAGAIN || ret == -EINTR ? -ETIMEDOUT : ret;
}

static int connect_to(int fd, const struct sockaddr_un *address)
{
	int ret = vnic_socket_limit_wait(fd, VNIC_ANSWER_SECONDS);

	if (!ret)
		ret = wait_for_connection(fd, address);
	return ret ? ret : check_listener(fd);
}

int vnic_attach_connect(const char *run_dir)
{
	struct sockaddr_un address;
	int ret = vnic_socket_address(run_dir, &address);
	int fd;

	if (ret)
		return ret;
	fd = vnic_place_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
	ret = connect_to(fd, &address);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int vnic_attach_check_version(int fd)
{
	union vnic_message message = {.hello = {.type = VNIC_ATTACH_HELLO,
						.version = VNIC_ATTACH_VERSION,
						.qpn_first = VNIC_LEASE_NONE}};
	uint32_t fd_count = 0;
	int ret = vnic_message_send(fd, &message, sizeof(message.hello), NULL, 0);

	if (ret)
		return ret;
	ret = vnic_message_recv(fd, &message, NULL, &fd_count);
	ret = vnic_message_check_welcome(&message, ret);
	return ret == -EPERM ? 0 : ret;
}
