/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/kernel/netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* Bytes; libmnl's manual recommends this size, which no datagram of the kernel exceeds. */
#define RECEIVE_ROOM 32768

struct message_callback {
	netlink_fn each;
	void *ctx;
};

static int on_message(const struct nlmsghdr *message, void *arg)
{
	const struct message_callback *callback = arg;

	if (callback->each)
		callback->each(callback->ctx, message);
	return MNL_CB_OK;
}

static struct mnl_socket *open_socket(int flags, uint32_t groups)
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | flags);
	int err;

	if (!s || !mnl_socket_bind(s, groups, MNL_SOCKET_AUTOPID))
		return s;
	err = errno;
	mnl_socket_close(s);
	errno = err;
	return NULL;
}

static struct mnl_socket *open_request_socket(void)
{
	/* A safeguard only, because the kernel answers within sendto(). */
	const struct timeval timeout = {.tv_sec = 1};
	struct mnl_socket *s = open_socket(0, 0);

	/* Cannot fail, because the timeout is valid. */
	if (s)
		(void)setsockopt(mnl_socket_get_fd(s), SOL_SOCKET, SO_RCVTIMEO, &timeout,
				 sizeof(timeout));
	return s;
}

int netlink_open(struct netlink *n, uint32_t groups)
{
	int err;

	*n = (struct netlink){.requests = open_request_socket()};
	if (n->requests)
		n->events = open_socket(SOCK_NONBLOCK, groups);
	if (n->events)
		return 0;
	err = errno;
	netlink_close(n);
	return -err;
}

void netlink_close(struct netlink *n)
{
	if (n->requests)
		mnl_socket_close(n->requests);
	if (n->events)
		mnl_socket_close(n->events);
	*n = (struct netlink){0};
}

int netlink_fd(const struct netlink *n)
{
	return mnl_socket_get_fd(n->events);
}

bool netlink_events(struct netlink *n, netlink_fn each, void *ctx)
{
	struct message_callback callback = {each, ctx};
	char buf[RECEIVE_ROOM];
	ssize_t len;
	bool whole = true;

	/* ENOBUFS says once that messages were lost; later messages are still in the queue. */
	while ((len = mnl_socket_recvfrom(n->events, buf, sizeof(buf))) > 0 || errno == ENOBUFS ||
	       errno == EINTR) {
		if (len > 0)
			mnl_cb_run(buf, (size_t)len, 0, 0, on_message, &callback);
		else if (errno == ENOBUFS)
			whole = false;
	}
	return whole;
}

static int request_once(struct netlink *n, struct nlmsghdr *request,
			struct message_callback *callback)
{
	char buf[RECEIVE_ROOM];
	ssize_t len;
	int rc;

	request->nlmsg_seq = ++n->seq;
	if (mnl_socket_sendto(n->requests, request, request->nlmsg_len) < 0)
		return -errno;
	do {
		len = mnl_socket_recvfrom(n->requests, buf, sizeof(buf));
		if (len < 0)
			return -errno;
		rc = mnl_cb_run(buf, (size_t)len, n->seq, mnl_socket_get_portid(n->requests),
				on_message, callback);
		/*
		 * ESRCH or EPROTO: this is the late answer to an earlier request, which timed out.
		 */
		if (rc < 0 && (errno == ESRCH || errno == EPROTO))
			rc = MNL_CB_OK;
	} while (rc > MNL_CB_STOP);
	return rc < 0 ? -errno : 0;
}

/* Call it after an interrupted dump: until that dump has ended, the kernel refuses other requests
 * on the old socket (EBUSY). */
static void replace_request_socket(struct netlink *n)
{
	struct mnl_socket *s = open_request_socket();

	if (!s)
		return;
	mnl_socket_close(n->requests);
	n->requests = s;
}

int netlink_request(struct netlink *n, struct nlmsghdr *request, netlink_fn each, void *ctx)
{
	struct message_callback callback = {each, ctx};
	int rc;

	/*
	 * NLM_F_ACK makes a message mark the end of each answer, even of one with a single message.
	 */
	request->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	rc = request_once(n, request, &callback);
	if (rc == -EINTR)
		replace_request_socket(n);
	return rc;
}

struct attributes {
	const struct nlattr **at;
	uint16_t max;
};

static int store_attribute(const struct nlattr *attr, void *arg)
{
	const struct attributes *a = arg;
	uint16_t type = mnl_attr_get_type(attr);

	if (type <= a->max)
		a->at[type] = attr;
	return MNL_CB_OK;
}

/* Stores nothing if the length of the message is no multiple of four. The kernel pads messages to
 * four bytes, and libmnl relies on that: it would read up to three bytes behind the message. */
void netlink_attributes(const struct nlmsghdr *msg, uint32_t header, const struct nlattr **at,
			uint16_t max)
{
	if (msg->nlmsg_len % NLMSG_ALIGNTO == 0)
		mnl_attr_parse(msg, header, store_attribute, &(struct attributes){at, max});
}

void netlink_nested(const struct nlattr *nest, const struct nlattr **at, uint16_t max)
{
	if (nest->nla_len % NLA_ALIGNTO == 0)
		mnl_attr_parse_nested(nest, store_attribute, &(struct attributes){at, max});
}

const void *netlink_value(const struct nlattr *attr, uint32_t size)
{
	return attr && mnl_attr_get_payload_len(attr) >= size ? mnl_attr_get_payload(attr) : NULL;
}

uint32_t netlink_number(const struct nlattr *attr)
{
	const void *p = netlink_value(attr, sizeof(uint32_t));
	uint32_t n = 0;

	if (p)
		memcpy(&n, p, sizeof(n));
	return n;
}
