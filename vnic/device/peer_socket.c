/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <vnic/peer_socket.h>

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

/* Whether the kernel knows SO_PASSRIGHTS, and so refuses descriptors on all sockets of this file.
 */
static bool kernel_refuses;

void vnic_peer_refuse_fds(int listen_fd)
{
	const int off = 0;

	kernel_refuses = !setsockopt(listen_fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

int vnic_peer_listen(const struct sockaddr_un *address, int backlog)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	vnic_peer_refuse_fds(fd);
	unlink(address->sun_path);
	/* bind(2) gives the file the socket's mode, so other users can never connect. */
	if (!fchmod(fd, 0600) && !bind(fd, (const struct sockaddr *)address, sizeof(*address)) &&
	    !listen(fd, backlog))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* An empty buffer, to read no byte of a message. Without one qemu-user makes no system call. */
static struct iovec empty_iov;

static ssize_t receive_message(int fd, struct msghdr *header, int flags)
{
	ssize_t len;

	do
		len = recvmsg(fd, header, MSG_DONTWAIT | flags);
	while (len < 0 && errno == EINTR);
	return len < 0 ? -errno : len;
}

static void drop_message(int fd)
{
	struct msghdr header = {.msg_iov = &empty_iov, .msg_iovlen = 1};

	(void)receive_message(fd, &header, 0);
}

/*
 * Looks at the message (MSG_PEEK) before receiving it; results of vnic_peer_recv. The kernel makes
 * copies of descriptors for the look and, without room for them, closes the copies at once. That
 * cannot block, because the message still holds the descriptors.
 */
static int receive_after_look(int fd, struct msghdr *header)
{
	int len = (int)receive_message(fd, header, MSG_PEEK);

	if (len < 0)
		return len;
	if (header->msg_flags & MSG_CTRUNC)
		return -EPERM;
	drop_message(fd);
	return len;
}

int vnic_peer_recv(int fd, void *message, uint32_t len)
{
	struct iovec iov = {.iov_base = message, .iov_len = len};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	int got = kernel_refuses ? (int)receive_message(fd, &header, 0)
				 : receive_after_look(fd, &header);

	return got > 0 && header.msg_flags & MSG_TRUNC ? -EPROTO : got;
}

/*
 * True: the queue has a message; *fds: the message carries descriptors. With SO_PASSCRED each
 * message comes with credentials, which tell an empty message from the end of the queue. `control`
 * has room for credentials only, so descriptors set MSG_CTRUNC.
 */
static bool look_at_queue(int fd, bool *fds)
{
	union {
		struct cmsghdr header;
		uint8_t room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct msghdr header = {.msg_iov = &empty_iov,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};

	if (receive_message(fd, &header, MSG_PEEK) < 0)
		return false;
	*fds = header.msg_flags & MSG_CTRUNC;
	return header.msg_controllen;
}

bool vnic_peer_shut(int fd)
{
	const int on = 1;
	bool fds = false;

	/* No message can come after this, so a queue that is empty stays empty. */
	shutdown(fd, SHUT_RDWR);
	if (kernel_refuses)
		return true;
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return false;
	while (!fds && look_at_queue(fd, &fds))
		if (!fds)
			drop_message(fd);
	return !fds;
}
