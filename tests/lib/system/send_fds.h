/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sends descriptors over a Unix socket. */
#ifndef URXE_TEST_SEND_FDS_H
#define URXE_TEST_SEND_FDS_H

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#define SEND_FDS_MAX 64

/* Sends one message with n_fds descriptors, at most SEND_FDS_MAX. Returns the result of
 * sendmsg(2). */
static inline ssize_t send_fds(int socket, const void *bytes, size_t n, const int *fds,
			       uint32_t n_fds)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(SEND_FDS_MAX * sizeof(int))];
	} control = {.header = {CMSG_LEN(n_fds * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec part = {(void *)(uintptr_t)bytes, n};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (n_fds) {
		memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL);
}

#endif
