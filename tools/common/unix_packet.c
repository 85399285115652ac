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
	uint8_t room[CMSG_SPACE(UNIX_PACKET_FDS_MAX * sizeof(int))];
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

/* Copies the first n descriptors of a packet to fds, and closes the others. */
static void take_fds(const struct cmsghdr *c, int *fds, uint32_t n)
{
	size_t i, came = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int fd;

	for (i = 0; i < came; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		if (i < n)
			fds[i] = fd;
		else
			close(fd);
	}
}

int unix_packet_recv_fds(int fd, void *message, uint32_t len, int *fds, uint32_t n)
{
	struct iovec iov = {.iov_base = message, .iov_len = len};
	union ancillary ancillary;
	struct msghdr header = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = &ancillary,
				.msg_controllen = CMSG_SPACE(n * sizeof(int))};
	const struct cmsghdr *c;
	ssize_t got;
	uint32_t i;

	for (i = 0; i < n; i++)
		fds[i] = -1;
	do
		got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&header);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		take_fds(c, fds, n);
	return header.msg_flags & MSG_TRUNC ? -EPROTO : (int)got;
}

int unix_packet_recv(int fd, void *message, uint32_t len, struct unix_packet_extras *extras)
{
	return unix_packet_recv_fds(fd, message, len, extras->fds, UNIX_PACKET_FDS);
}

void unix_packet_close_fds(const struct unix_packet_extras *extras)
{
	int i;

	for (i = 0; i < UNIX_PACKET_FDS; i++)
		if (extras->fds[i] >= 0)
			close(extras->fds[i]);
}
