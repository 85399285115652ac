/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "connection.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "message.h"

/* Most descriptors that one recvmsg takes: more than a message may have, so that the server sees
 * when there are too many, and closes them. */
#define CONTROL_FDS 32

void connection_init(struct connection *c)
{
	c->socket = c->out_fd = -1;
	c->have = c->n_fds = c->out_len = c->out_sent = 0;
}

void connection_open(struct connection *c, int socket)
{
	connection_init(c);
	c->socket = socket;
}

void connection_next(struct connection *c)
{
	vnic_close_fds(c->fds, c->n_fds);
	c->have = c->n_fds = 0;
}

void connection_close(struct connection *c)
{
	connection_next(c);
	if (c->socket >= 0)
		close(c->socket);
	connection_init(c);
}

/* Appends the descriptors of a control message to c->fds. Returns whether all found room; the
 * others are closed. */
static bool keep_fds(struct connection *c, const struct cmsghdr *cmsg)
{
	const uint32_t n = (uint32_t)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	bool kept = true;
	int fd;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
		if (c->n_fds < VFIO_USER_FDS) {
			c->fds[c->n_fds++] = fd;
		} else {
			close(fd);
			kept = false;
		}
	}
	return kept;
}

static bool take_control(struct connection *c, struct msghdr *msg)
{
	bool valid = !(msg->msg_flags & MSG_CTRUNC);

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg))
		if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
			valid &= keep_fds(c, cmsg);
	return valid;
}

/*
 * Reads up to `size` bytes, never beyond the end of a message: descriptors come with the first byte
 * that was sent with them, and so belong to this message. Returns the bytes; 0: none now; or
 * an error of connection_receive.
 */
static ssize_t read_bytes(struct connection *c, uint32_t size)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(CONTROL_FDS * sizeof(int))];
	} control;
	struct iovec part = {c->in.bytes + c->have, size};
	struct msghdr msg = {.msg_iov = &part,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(c->socket, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
	if (!take_control(c, &msg))
		return -EPROTO;
	return n ? n : -ECONNRESET;
}

static bool header_valid(const struct vfio_user_header *header)
{
	return header->size >= sizeof(*header) && header->size <= VFIO_USER_MESSAGE_MAX &&
	       (header->flags & VFIO_USER_TYPE) == VFIO_USER_IS_COMMAND;
}

int connection_receive(struct connection *c)
{
	for (;;) {
		uint32_t whole = sizeof(c->in.header);
		ssize_t n;

		if (c->have >= whole) {
			if (!header_valid(&c->in.header))
				return -EPROTO;
			whole = c->in.header.size;
			if (c->have == whole)
				return 1;
		}
		n = read_bytes(c, whole - c->have);
		if (n <= 0)
			return (int)n;
		c->have += (uint32_t)n;
	}
}

static ssize_t send_rest(struct connection *c)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(c->out_fd))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(c->out_fd)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec part = {c->out.bytes + c->out_sent, c->out_len - c->out_sent};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};

	if (c->out_fd >= 0 && !c->out_sent) {
		memcpy(CMSG_DATA(&control.header), &c->out_fd, sizeof(c->out_fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.bytes);
	}
	return sendmsg(c->socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int connection_flush(struct connection *c)
{
	while (connection_is_writing(c)) {
		ssize_t n = send_rest(c);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -ECONNRESET;
		c->out_sent += (uint32_t)n;
		c->out_fd = -1;
	}
	return 0;
}

int connection_reply(struct connection *c, uint32_t body, uint32_t error)
{
	const struct vfio_user_header *command = &c->in.header;

	if (error || command->flags & VFIO_USER_NO_REPLY)
		c->out_fd = -1;
	if (command->flags & VFIO_USER_NO_REPLY)
		return 0;
	if (error)
		body = 0;
	c->out.header = (struct vfio_user_header){
		.id = command->id,
		.command = command->command,
		.size = (uint32_t)sizeof(c->out.header) + body,
		.flags = VFIO_USER_IS_REPLY | (error ? VFIO_USER_ERROR : 0),
		.error = error,
	};
	c->out_len = c->out.header.size;
	c->out_sent = 0;
	return connection_flush(c);
}
