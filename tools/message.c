/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union ancillary {
	struct cmsghdr header;
	uint8_t room[CMSG_SPACE(sizeof(int))];
};

int message_address(struct sockaddr_un *address, const char *dir, const char *name)
{
	int n;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", dir, name);
	return n < (int)sizeof(address->sun_path) ? 0 : -ENAMETOOLONG;
}

bool message_from_friend(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	       (cred.uid == 0 || cred.uid == geteuid());
}

int message_send(int fd, const void *message, uint32_t len, int passed)
{
	struct iovec iov = {.iov_base = (void *)message, .iov_len = len};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	union ancillary ancillary = {0};
	ssize_t n;

	if (passed >= 0) {
		ancillary.header.cmsg_level = SOL_SOCKET;
		ancillary.header.cmsg_type = SCM_RIGHTS;
		ancillary.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&ancillary.header), &passed, sizeof(int));
		header.msg_control = &ancillary;
		header.msg_controllen = sizeof(ancillary);
	}
	do
		n = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int message_recv(int fd, void *message, uint32_t len, int *passed)
{
	struct iovec iov = {.iov_base = message, .iov_len = len};
	union ancillary ancillary;
	struct msghdr header = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = &ancillary,
				.msg_controllen = CMSG_LEN(sizeof(int))};
	struct cmsghdr *cmsg;
	ssize_t n;

	*passed = -1;
	do
		n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	cmsg = CMSG_FIRSTHDR(&header);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(passed, CMSG_DATA(cmsg), sizeof(int));
	return header.msg_flags & MSG_TRUNC ? -EPROTO : (int)n;
}
