/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/unix_packet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/peer_socket.h>

union ancillary {
	struct cmsghdr header;
	uint8_t room[CMSG_SPACE(UNIX_PACKET_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

int unix_packet_address(struct sockaddr_un *address, const char *dir, const char *name)
{
	int n;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", dir, name);
	return n < (int)sizeof(address->sun_path) ? 0 : -ENAMETOOLONG;
}

int unix_packet_listen(const char *dir, const char *name, int backlog)
{
	struct sockaddr_un address;
	int rc = unix_packet_address(&address, dir, name);

	return rc ? rc : vnic_peer_listen(&address, backlog);
}

int unix_packet_peer(int fd, struct ucred *peer)
{
	socklen_t len = sizeof(*peer);

	*peer = (struct ucred){.uid = (uid_t)-1};
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len) ? -errno : 0;
}

bool unix_packet_peer_is_trusted(int fd)
{
	struct ucred peer;

	return !unix_packet_peer(fd, &peer) && (peer.uid == 0 || peer.uid == geteuid());
}

int unix_packet_send(int fd, const void *message, uint32_t len, const int *fds, uint32_t n)
{
	struct iovec iov = {.iov_base = (void *)message, .iov_len = len};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	union ancillary ancillary = {0};
	ssize_t sent;

	if (n) {
		ancillary.header.cmsg_level = SOL_SOCKET;
		ancillary.header.cmsg_type = SCM_RIGHTS;
		ancillary.header.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&ancillary.header), fds, n * sizeof(int));
		header.msg_control = &ancillary;
		header.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	do
		sent = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* Keeps the first UNIX_PACKET_FDS descriptors and closes the others. */
static void take_fds(const struct cmsghdr *c, struct unix_packet_extras *extras)
{
	size_t i, n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int fd;

	for (i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		if (i < UNIX_PACKET_FDS)
			extras->fds[i] = fd;
		else
			close(fd);
	}
}

static void take_extras(struct msghdr *header, struct unix_packet_extras *extras)
{
	struct cmsghdr *c;
	struct ucred cred;

	for (c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS)
			take_fds(c, extras);
		if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			extras->pid = cred.pid;
		}
	}
}

int unix_packet_recv(int fd, void *message, uint32_t len, struct unix_packet_extras *extras)
{
	struct iovec iov = {.iov_base = message, .iov_len = len};
	union ancillary ancillary;
	struct msghdr header = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = &ancillary,
				.msg_controllen = sizeof(ancillary)};
	ssize_t n;

	*extras = (struct unix_packet_extras){.fds = {-1, -1}};
	do
		n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	take_extras(&header, extras);
	return header.msg_flags & MSG_TRUNC ? -EPROTO : (int)n;
}

void unix_packet_close_fds(const struct unix_packet_extras *extras)
{
	int i;

	for (i = 0; i < UNIX_PACKET_FDS; i++)
		if (extras->fds[i] >= 0)
			close(extras->fds[i]);
}
