/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's end of the attach protocol. Requests come from untrusted clients: the daemon checks
 * size and order of a request before it acts, and accepts no descriptors.
 */
#include <vnic/server.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/inbox.h>
#include <vnic/peer_socket.h>
#include <vnic/regs.h>

#include "attach_socket.h"
#include "credentials.h"
#include "message.h"
#include "shared.h"

#define BACKLOG 128
/*
 * A client with more than INTRODUCTION_ROOM bytes of unread notices gets no further introduction,
 * and with more than QUESTION_ROOM no further question for its state. The kernel limits how many
 * descriptors a user may have in unread messages (RLIMIT_NOFILE), and all messages of the daemon
 * count for the daemon's user: a client that reads nothing must not use them up. Three
 * introductions or four questions fit, or one question after an unread state of the port.
 */
#define INTRODUCTION_ROOM 2048
#define QUESTION_ROOM     2560

struct vnic_server_client {
	int socket;
	int doorbell;
	/* The daemon only writes to these two sockets: the client's ends cannot send, so no
	 * descriptors ever wait in them. */
	int interrupt;     /* -1 before HELLO */
	int notice;        /* -1 before HELLO */
	void *bars;        /* not NULL: the daemon has answered HELLO */
	uint8_t mac[6];    /* of the NIC */
	uint8_t qp_mac[6]; /* of the client's queue pairs; 0 before HELLO: that of the NIC */
	uint16_t mtu;
	uint32_t process; /* VNIC_BLOCK of its lease */
	bool greeting;    /* HELLO is not answered yet */
	bool confirmed;   /* the client has sent a message since it got its device */
	bool resolving;
	struct vnic_credentials peer;
	void *memory;
	uint64_t memory_size;
	struct vnic_device *device;
	bool inbox_given; /* INBOX has been answered */
	struct vnic_inbox_broker *inbox;
};

int vnic_server_listen(const char *run_dir)
{
	struct sockaddr_un address;
	int ret = vnic_socket_address(run_dir, &address);

	return ret ? ret : vnic_peer_listen(&address, BACKLOG);
}

int vnic_server_open(int socket, struct vnic_server_client **client)
{
	struct vnic_server_client *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->socket = socket;
	c->interrupt = c->notice = -1;
	vnic_credentials_read(&c->peer, socket);
	c->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (c->doorbell < 0) {
		err = errno;
		(void)vnic_server_close(c);
		return -err;
	}
	*client = c;
	return 0;
}

int vnic_server_close(struct vnic_server_client *client)
{
	int socket = client->socket;

	vnic_device_destroy(client->device);
	vnic_inbox_broker_close(client->inbox);
	vnic_credentials_close(&client->peer);
	if (client->memory)
		munmap(client->memory, client->memory_size);
	if (client->bars)
		munmap(client->bars, VNIC_BAR_SIZE);
	vnic_close_fds((const int[]){client->doorbell, client->interrupt, client->notice}, 3);
	free(client);
	return socket;
}

int vnic_server_fd(const struct vnic_server_client *client)
{
	return client->socket;
}

int vnic_server_doorbell_fd(const struct vnic_server_client *client)
{
	return client->doorbell;
}

int vnic_server_notice_fd(const struct vnic_server_client *client)
{
	return client->notice;
}

pid_t vnic_server_pid(const struct vnic_server_client *client)
{
	return client->peer.pid;
}

uid_t vnic_server_uid(const struct vnic_server_client *client)
{
	return client->peer.uid;
}

struct vnic_device *vnic_server_device(struct vnic_server_client *client)
{
	return client->device;
}

/*
 * Answers a client's request. -EPROTO: the socket is full; or another error of vnic_message_send. A
 * client with only one outstanding request, as the protocol demands, always leaves room for the
 * answer.
 */
static int send_answer(struct vnic_server_client *client, const void *message, uint32_t len,
		       const int *fds, uint32_t fd_count)
{
	int ret = vnic_message_send(client->socket, message, len, fds, fd_count);

	return ret == -EAGAIN ? -EPROTO : ret;
}

struct request {
	union vnic_message *message;
	const struct vnic_server_ops *ops;
	void *ctx;
};

/*
 * Creates zeroed memory for client and daemon, and maps it here. Helper processes that the daemon
 * forks do not inherit the mapping: it would outlive the client. Returns the descriptor, for the
 * client.
 */
static int make_memory(const char *name, uint64_t size, void **memory)
{
	int fd = size && size <= VNIC_MEMORY_MAX ? vnic_memory_create(name, size) : -EINVAL;
	int ret;

	if (fd < 0)
		return fd;
	ret = vnic_memory_map(fd, size, memory);
	if (!ret) {
		(void)madvise(*memory, size, MADV_DONTFORK);
		return fd;
	}
	close(fd);
	return ret;
}

/* A socket that the daemon writes and the client reads; returns the client's end. */
static int make_socket(int type, int *own)
{
	int ends[2];

	if (socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
		return -errno;
	/* The client cannot send, so the daemon may close its end: the queue stays empty. */
	shutdown(ends[0], SHUT_RD);
	*own = ends[0];
	return ends[1];
}

/* Makes the descriptors for HELLO's answer, except the doorbell. The caller closes them. */
static int make_welcome_fds(struct vnic_server_client *client, int fds[VNIC_FDS])
{
	memset(fds, -1, VNIC_FDS * sizeof(fds[0]));
	fds[VNIC_FD_BARS] = make_memory("urxe-bars", VNIC_BAR_SIZE, &client->bars);
	if (fds[VNIC_FD_BARS] < 0)
		return fds[VNIC_FD_BARS];
	fds[VNIC_FD_NOTICE] = make_socket(SOCK_SEQPACKET, &client->notice);
	if (fds[VNIC_FD_NOTICE] < 0)
		return fds[VNIC_FD_NOTICE];
	fds[VNIC_FD_INTERRUPT] = make_socket(SOCK_STREAM, &client->interrupt);
	return fds[VNIC_FD_INTERRUPT] < 0 ? fds[VNIC_FD_INTERRUPT] : 0;
}

static const uint8_t no_mac[6];

static int send_welcome(struct vnic_server_client *client,
			const struct vnic_attach_welcome *welcome)
{
	int fds[VNIC_FDS];
	int ret = make_welcome_fds(client, fds);

	if (!ret) {
		memcpy(client->mac, welcome->mac, sizeof(client->mac));
		if (!memcmp(client->qp_mac, no_mac, sizeof(no_mac)))
			memcpy(client->qp_mac, welcome->mac, sizeof(client->qp_mac));
		client->mtu = welcome->mtu;
		client->process = VNIC_BLOCK(welcome->qpn_first);
		vnic_server_allow_bypass(client, true);
		fds[VNIC_FD_DOORBELL] = client->doorbell;
		ret = send_answer(client, welcome, sizeof(*welcome), fds, VNIC_FDS);
	}
	fds[VNIC_FD_DOORBELL] = -1;
	vnic_close_fds(fds, VNIC_FDS);
	return ret;
}

int vnic_server_welcome(struct vnic_server_client *client, int status,
			const struct vnic_attach_welcome *with)
{
	struct vnic_attach_welcome reply = {.status = status};

	if (!client->greeting)
		return -EINVAL;
	client->greeting = false;
	if (!status)
		reply = *with;
	reply.type = VNIC_ATTACH_HELLO;
	return status ? send_answer(client, &reply, sizeof(reply), NULL, 0)
		      : send_welcome(client, &reply);
}

static int on_hello(struct vnic_server_client *client, struct request *request)
{
	const struct vnic_attach_hello *hello = &request->message->hello;
	struct vnic_attach_welcome welcome = {0};
	int status = -EPROTO;

	if (client->bars || client->greeting)
		return -EPROTO;
	client->greeting = true;
	if (hello->version == VNIC_ATTACH_VERSION && hello->qpn_first == VNIC_LEASE_NONE)
		status = -EPERM;
	else if (hello->version == VNIC_ATTACH_VERSION) {
		memcpy(client->qp_mac, hello->mac, sizeof(client->qp_mac));
		status = request->ops->welcome(request->ctx, client, hello, &welcome);
	}
	return status == -EINPROGRESS ? 0 : vnic_server_welcome(client, status, &welcome);
}

/* Wakes the client's engine thread. A full socket (EAGAIN) is readable already. */
static void interrupt_client(void *ctx, uint32_t vector)
{
	const struct vnic_server_client *client = ctx;
	const uint64_t one = 1;

	(void)vector; /* all vectors of a process wake the same thread */
	(void)send(client->interrupt, &one, sizeof(one), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Creates the driver's memory and the device; returns the memory's descriptor, for the client, or a
 * negative errno value. */
static int make_device(struct vnic_server_client *client, uint64_t size)
{
	struct vnic_region region = {.size = size};
	struct vnic_device_attr attr = {
		.regions = &region,
		.region_count = 1,
		.shared_mac = true,
		.bars = client->bars,
		.mtu = client->mtu,
		.interrupt = interrupt_client,
		.ctx = client,
	};
	int fd = make_memory("urxe-vnic", size, &client->memory);
	int ret;

	if (fd < 0)
		return fd;
	client->memory_size = size;
	region.memory = client->memory;
	memcpy(attr.mac, client->mac, sizeof(attr.mac));
	ret = vnic_device_create(&attr, &client->device);
	if (!ret)
		return fd;
	munmap(client->memory, size);
	client->memory = NULL;
	close(fd);
	return ret;
}

static int on_memory(struct vnic_server_client *client, struct request *request)
{
	struct vnic_attach_memory *memory = &request->message->memory;
	int fd, ret;

	if (!client->bars || client->device)
		return -EPROTO;
	fd = make_device(client, memory->size);
	memory->status = fd < 0 ? fd : 0;
	ret = send_answer(client, memory, sizeof(*memory), &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	return ret;
}

static int on_reg(struct vnic_server_client *client, struct request *request)
{
	struct vnic_attach_reg *reg = &request->message->reg;

	if (!client->device)
		return -EPROTO;
	if (reg->write)
		reg->status =
			vnic_device_reg_write(client->device, reg->bar, reg->offset, reg->value);
	else
		reg->status =
			vnic_device_reg_read(client->device, reg->bar, reg->offset, &reg->value);
	return send_answer(client, reg, sizeof(*reg), NULL, 0);
}

static int on_resolve(struct vnic_server_client *client, struct request *request)
{
	if (!client->bars || client->resolving)
		return -EPROTO;
	client->resolving = true;
	request->ops->resolve(request->ctx, client, &request->message->resolve);
	return 0;
}

int vnic_server_resolved(struct vnic_server_client *client, int status,
			 const struct vnic_next_hop *hop)
{
	struct vnic_attach_resolve reply = {.type = VNIC_ATTACH_RESOLVE, .status = status};

	if (!client->resolving)
		return -EINVAL;
	client->resolving = false;
	if (!status)
		reply.hop = *hop;
	return send_answer(client, &reply, sizeof(reply), NULL, 0);
}

static int on_remote(struct vnic_server_client *client, struct request *request)
{
	struct vnic_attach_remote *remote = &request->message->remote;

	if (!client->bars)
		return -EPROTO;
	remote->status = request->ops->remote(request->ctx, client, remote);
	return send_answer(client, remote, sizeof(*remote), NULL, 0);
}

static int on_qpn(struct vnic_server_client *client, struct request *request)
{
	struct vnic_attach_qpn *qpn = &request->message->qpn;

	if (!client->bars)
		return -EPROTO;
	qpn->status =
		request->ops->qpn ? request->ops->qpn(request->ctx, client, qpn) : -EOPNOTSUPP;
	return send_answer(client, qpn, sizeof(*qpn), NULL, 0);
}

static int on_set_qpn(struct vnic_server_client *client, struct request *request)
{
	uint32_t *handled;

	if (!client->bars)
		return -EPROTO;
	if (request->ops->qpn)
		(void)request->ops->qpn(request->ctx, client, &request->message->qpn);
	handled = vnic_reg(client->bars, VNIC_REG_QPNS_HANDLED);
	vnic_publish(handled, vnic_load(handled) + 1);
	return 0;
}

static int on_lease(struct vnic_server_client *client, struct request *request)
{
	struct vnic_attach_lease *lease = &request->message->lease;

	if (!client->bars)
		return -EPROTO;
	lease->status = request->ops->lease(request->ctx, client, &lease->qpn_first);
	return send_answer(client, lease, sizeof(*lease), NULL, 0);
}

/*
 * Whether the peer has more than `most` unread bytes, with the kernel's overhead of each message.
 */
static bool has_unread(int socket, int most)
{
	int unread;

	return ioctl(socket, SIOCOUTQ, &unread) || unread > most;
}

static int on_uplink(struct vnic_server_client *client, struct request *request)
{
	struct vnic_attach_uplink *uplink = &request->message->uplink;
	int fds[VNIC_UPLINK_SOCKETS], n, ret;

	/* Unread bytes: the client sent a request before it read its last answer. */
	if (!client->device || has_unread(client->socket, 0))
		return -EPROTO;
	n = request->ops->uplink ? request->ops->uplink(request->ctx, client, uplink, fds)
				 : -ENODEV;
	uplink->status = n < 0 ? n : 0;
	uplink->sockets = n < 0 ? 0 : (uint32_t)n;
	ret = send_answer(client, uplink, sizeof(*uplink), fds, uplink->sockets);
	vnic_close_fds(fds, uplink->sockets);
	return ret;
}

int vnic_server_notice(struct vnic_server_client *client, const struct vnic_attach_port *port)
{
	const struct vnic_attach_notice notice = {.type = VNIC_NOTICE_PORT, .port = *port};
	int ret;

	if (client->notice < 0)
		return 0;
	ret = vnic_message_send(client->notice, &notice, sizeof(notice), NULL, 0);
	/* A client that has closed the socket wants no notices. */
	return ret == -EPIPE || ret == -ECONNRESET ? 0 : ret;
}

/* Makes an inbox, and sends its descriptors to the client; the broker keeps its own copies. */
static int give_inbox(struct vnic_server_client *client, struct vnic_attach_inbox *inbox)
{
	int fds[VNIC_INBOX_FDS];

	inbox->status = vnic_inbox_broker_create(client->mtu, &client->inbox);
	if (!inbox->status)
		vnic_inbox_broker_fds(client->inbox, fds);
	return send_answer(client, inbox, sizeof(*inbox), fds, inbox->status ? 0 : VNIC_INBOX_FDS);
}

/* Sends the client a socket to the process that checks the descriptors of its inbox. */
static int check_inbox(struct vnic_server_client *client, struct request *request)
{
	struct vnic_attach_inbox *inbox = &request->message->inbox;
	int fd = request->ops->check_inbox ? request->ops->check_inbox(request->ctx, client)
					   : -EOPNOTSUPP;
	int ret;

	inbox->status = fd < 0 ? fd : 0;
	ret = send_answer(client, inbox, sizeof(*inbox), &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	return ret;
}

static int on_inbox(struct vnic_server_client *client, struct request *request)
{
	struct vnic_attach_inbox *inbox = &request->message->inbox;

	if (!client->device || client->inbox_given)
		return -EPROTO;
	client->inbox_given = true;
	return inbox->exists ? check_inbox(client, request) : give_inbox(client, inbox);
}

int vnic_server_take_inbox(struct vnic_server_client *client, const int fds[VNIC_INBOX_FDS])
{
	if (client->inbox || !client->inbox_given) {
		vnic_close_fds(fds, VNIC_INBOX_FDS);
		return -EINVAL;
	}
	return vnic_inbox_broker_open(fds, client->mtu, &client->inbox);
}

static int compare_namespaces(pid_t a, pid_t b, const struct vnic_server_ops *ops, void *ctx)
{
	if (ops->share_user_namespace)
		return ops->share_user_namespace(ctx, a, b);
	return vnic_server_share_user_namespace(a, b) ? 0 : -EPERM;
}

/* 0: both are living processes of one user; -EPERM: they are not; another error: the daemon cannot
 * tell for the moment. */
static int compare_users(const struct vnic_credentials *a, const struct vnic_credentials *b,
			 const struct vnic_server_ops *ops, void *ctx)
{
	int ret;

	if (a->uid != b->uid || a->pid <= 0 || b->pid <= 0)
		return -EPERM;
	ret = compare_namespaces(a->pid, b->pid, ops, ctx);
	if (ret)
		return ret;
	/* Both processes still live, so their PIDs in /proc were not those of later processes. */
	return vnic_credentials_alive(a) && vnic_credentials_alive(b) ? 0 : -EPERM;
}

int vnic_server_compare_users(const struct vnic_server_client *a,
			      const struct vnic_server_client *b, const struct vnic_server_ops *ops,
			      void *ctx)
{
	return a == b ? 0 : compare_users(&a->peer, &b->peer, ops, ctx);
}

/* Whether the client has an inbox, and its queue pairs have the MAC. */
static bool has_inbox(const struct vnic_server_client *client, const uint8_t mac[6])
{
	return client->inbox && memcmp(client->qp_mac, mac, sizeof(client->qp_mac)) == 0;
}

/*
 * Gives `client` the descriptors of the inbox of `owner`, whose queue pairs must have the MAC.
 * -ENOENT: they have another MAC, or there is no inbox; else as compare_users(). The device process
 * of a virtual machine names the machine's MAC itself (HELLO). A false MAC deceives only processes
 * of the same user, which could trace each other anyway.
 */
static int introduce_client(const struct vnic_server_client *client,
			    const struct vnic_server_client *owner, const uint8_t mac[6],
			    const struct vnic_server_ops *ops, void *ctx, int fds[VNIC_INBOX_FDS])
{
	int ret;

	if (!owner || !has_inbox(owner, mac) || !vnic_inbox_broker_published(owner->inbox))
		return -ENOENT;
	ret = compare_users(&client->peer, &owner->peer, ops, ctx);
	if (!ret)
		vnic_inbox_broker_fds(owner->inbox, fds);
	return ret;
}

static int on_introduce(struct vnic_server_client *client, struct request *request)
{
	struct vnic_attach_introduce *message = &request->message->introduce;
	int fds[VNIC_INBOX_FDS];

	/* Unread bytes: the client sent a request before it read its last answer. */
	if (!client->bars || has_unread(client->socket, 0))
		return -EPROTO;
	message->status = introduce_client(client, request->ops->owner(request->ctx, message->qpn),
					   message->mac, request->ops, request->ctx, fds);
	return send_answer(client, message, sizeof(*message), fds,
			   message->status ? 0 : VNIC_INBOX_FDS);
}

int vnic_server_introduce(struct vnic_server_client *client, const struct vnic_server_client *owner,
			  uint32_t qpn, const struct vnic_server_ops *ops, void *ctx)
{
	const struct vnic_attach_introduction introduction = {.type = VNIC_NOTICE_INBOX,
							      .qpn = qpn};
	int fds[VNIC_INBOX_FDS];
	int ret;

	if (client->notice < 0)
		return -ENOTCONN;
	/*
	 * The cheapest checks come first: the switch calls this function for each frame until the
	 * owner has an inbox and the client has read its notices. The switch introduces processes
	 * only after a frame to the host's MAC, the NIC's.
	 */
	if (!has_inbox(owner, client->mac))
		return -ENOENT;
	if (has_unread(client->notice, INTRODUCTION_ROOM))
		return -EAGAIN;
	ret = introduce_client(client, owner, client->mac, ops, ctx, fds);
	return ret ? ret
		   : vnic_message_send(client->notice, &introduction, sizeof(introduction), fds,
				       VNIC_INBOX_FDS);
}

bool vnic_server_confirmed(const struct vnic_server_client *client)
{
	return client->confirmed;
}

const uint8_t *vnic_server_qp_mac(const struct vnic_server_client *client)
{
	return client->qp_mac;
}

uint32_t vnic_server_process(const struct vnic_server_client *client)
{
	return client->process;
}

void vnic_server_allow_bypass(struct vnic_server_client *client, bool on)
{
	if (client->bars)
		vnic_store(vnic_reg(client->bars, VNIC_REG_BYPASS), on);
}

uint32_t vnic_server_inbox_holder(const struct vnic_server_client *client)
{
	return client->inbox ? vnic_inbox_broker_holder(client->inbox) : 0;
}

void vnic_server_inbox_unlock(struct vnic_server_client *client, uint32_t process)
{
	if (client->inbox)
		vnic_inbox_broker_unlock(client->inbox, process);
}

void vnic_server_inbox_revoke(struct vnic_server_client *client)
{
	if (client->inbox)
		vnic_inbox_broker_revoke(client->inbox);
}

int vnic_server_query_state(struct vnic_server_client *client, int socket)
{
	const struct vnic_attach_state_query question = {.type = VNIC_NOTICE_STATE_QUERY};

	if (client->notice < 0)
		return -ENOTCONN;
	/* A process that reads its notices answers questions, too. */
	if (has_unread(client->notice, QUESTION_ROOM))
		return -EAGAIN;
	return vnic_message_send(client->notice, &question, sizeof(question), &socket, 1);
}

int vnic_server_record(struct vnic_server_client *client, int ring)
{
	const struct vnic_attach_record record = {.type = VNIC_NOTICE_RECORD, .on = ring >= 0};

	if (client->notice < 0)
		return -ENOTCONN;
	return vnic_message_send(client->notice, &record, sizeof(record), &ring, ring >= 0);
}

static const struct {
	uint32_t size;
	int (*handle)(struct vnic_server_client *client, struct request *request);
} requests[] = {
	[VNIC_ATTACH_HELLO] = {sizeof(struct vnic_attach_hello), on_hello},
	[VNIC_ATTACH_MEMORY] = {sizeof(struct vnic_attach_memory), on_memory},
	[VNIC_ATTACH_REG] = {sizeof(struct vnic_attach_reg), on_reg},
	[VNIC_ATTACH_RESOLVE] = {sizeof(struct vnic_attach_resolve), on_resolve},
	[VNIC_ATTACH_INBOX] = {sizeof(struct vnic_attach_inbox), on_inbox},
	[VNIC_ATTACH_INTRODUCE] = {sizeof(struct vnic_attach_introduce), on_introduce},
	[VNIC_ATTACH_REGISTER] = {sizeof(struct vnic_attach_remote), on_remote},
	[VNIC_ATTACH_UNREGISTER] = {sizeof(struct vnic_attach_remote), on_remote},
	[VNIC_ATTACH_LEASE] = {sizeof(struct vnic_attach_lease), on_lease},
	[VNIC_ATTACH_UPLINK] = {sizeof(struct vnic_attach_uplink), on_uplink},
	[VNIC_ATTACH_QPN_ADD] = {sizeof(struct vnic_attach_qpn), on_qpn},
	[VNIC_ATTACH_QPN_SET] = {sizeof(struct vnic_attach_qpn), on_set_qpn},
	[VNIC_ATTACH_QPN_REMOVE] = {sizeof(struct vnic_attach_qpn), on_qpn},
	[VNIC_ATTACH_QPN_QUERY] = {sizeof(struct vnic_attach_qpn), on_qpn},
};

/* Whether the message is a HELLO that may be of another version, and so of another length: on_hello
 * then reads only its type and version. */
static bool is_other_version(const union vnic_message *message, uint32_t len)
{
	return message->type == VNIC_ATTACH_HELLO &&
	       len >= offsetof(struct vnic_attach_hello, token) &&
	       message->hello.version != VNIC_ATTACH_VERSION;
}

static int handle_request(struct vnic_server_client *client, struct request *request, uint32_t len)
{
	uint32_t type = request->message->type;

	/* Unknown types have size 0. */
	if (len < sizeof(type) || type >= sizeof(requests) / sizeof(requests[0]) ||
	    (len != requests[type].size && !is_other_version(request->message, len)))
		return -EPROTO;
	return requests[type].handle(client, request);
}

static bool has_hung_up(const struct vnic_server_client *client)
{
	struct pollfd pfd = {.fd = client->socket};

	return poll(&pfd, 1, 0) == 1;
}

static bool stops_device(const struct vnic_attach_reg *reg)
{
	return reg->type == VNIC_ATTACH_REG && reg->write && reg->bar == 1 &&
	       reg->offset == VMXNET3_REG_CMD && reg->value == (uint32_t)VMXNET3_CMD_QUIESCE_DEV;
}

bool vnic_server_ends(const struct vnic_server_client *client)
{
	struct vnic_attach_reg next;

	return has_hung_up(client) || (recv(client->socket, &next, sizeof(next),
					    MSG_PEEK | MSG_DONTWAIT) == sizeof(next) &&
				       stops_device(&next));
}

int vnic_server_event(struct vnic_server_client *client, const struct vnic_server_ops *ops,
		      void *ctx)
{
	union vnic_message message;
	struct request request = {.message = &message, .ops = ops, .ctx = ctx};
	int ret = vnic_peer_recv(client->socket, &message, sizeof(message));

	if (ret == -EAGAIN)
		return 0;
	if (ret <= 0)
		return ret ? ret : -ECONNRESET;
	client->confirmed = client->device;
	return handle_request(client, &request, (uint32_t)ret);
}
