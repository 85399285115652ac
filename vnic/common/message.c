/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "message.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "place_fd.h"

union control {
	struct cmsghdr header;
	uint8_t room[CMSG_SPACE(VNIC_UPLINK_SOCKETS * sizeof(int)) /* no message has more */];
};

/*
 * Whether a signal handler has interrupted the system call, and the caller repeats it. A child that
 * the handler has forked does not: the messages on the socket that it inherited are its parent's.
 */
static bool is_interrupted(ssize_t rc, pid_t caller)
{
	return rc < 0 && errno == EINTR && getpid() == caller;
}

int vnic_message_send(int fd, const void *message, uint32_t len, const int *fds, uint32_t fd_count)
{
	struct iovec iov = {.iov_base = (void *)message, .iov_len = len};
	union control control = {0};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	const pid_t caller = getpid();
	ssize_t sent;

	if (fd_count) {
		struct cmsghdr *cmsg;

		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&header);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, fd_count * sizeof(int));
	}
	do
		sent = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (is_interrupted(sent, caller));
	return sent < 0 ? -errno : 0;
}

int vnic_message_try_send(int fd, const void *message, uint32_t len)
{
	return send(fd, message, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static uint32_t received_fds(struct msghdr *header, int *fds, uint32_t max)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(header);
	uint32_t count;

	if (!max || !cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return 0;
	count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(cmsg), count * sizeof(int));
	for (uint32_t i = 0; i < count; i++)
		fds[i] = vnic_place_fd(fds[i]);
	return count;
}

void vnic_close_fds(const int *fds, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int vnic_message_recv(int fd, union vnic_message *message, int *fds, uint32_t *fd_count)
{
	struct iovec iov = {.iov_base = message, .iov_len = sizeof(*message)};
	union control control;
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	const pid_t caller = getpid();
	const uint32_t wanted = *fd_count;
	ssize_t len;

	/*
	 * The control buffer's size limits the descriptors: the kernel installs no more than fit.
	 */
	if (*fd_count) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_LEN(*fd_count * sizeof(int));
	}
	do
		len = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	while (is_interrupted(len, caller));
	if (len < 0) {
		*fd_count = 0;
		return -errno;
	}
	*fd_count = received_fds(&header, fds, *fd_count);
	if (!(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return (int)len;
	/* The kernel has cut off descriptors: more than `wanted` came or, if fewer arrived here,
	 * the process had no free number for one. */
	return header.msg_flags & MSG_TRUNC || *fd_count == wanted ? -EPROTO : -EMFILE;
}

int vnic_message_check_welcome(const union vnic_message *message, int len)
{
	const struct vnic_attach_welcome *welcome = &message->welcome;

	if (len <= 0)
		return len ? len : -ECONNRESET;
	if (len < (int)offsetof(struct vnic_attach_welcome, mac) ||
	    welcome->type != VNIC_ATTACH_HELLO || welcome->status > 0)
		return -EPROTO;
	return welcome->status;
}
