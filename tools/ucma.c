/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "ucma.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "message.h"
#include "process.h"
#include "rundir.h"
#include "share.h"

#define BACKLOG 128
#define EVENTS  32

/* --- IDs and their events */

struct ucma_ctx *ucma_ctx_new(struct ucma_file *file, uint64_t uid)
{
	struct ucma_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->file = file;
	ctx->uid = uid;
	LIST_INSERT_HEAD(&file->ctxs, ctx, link);
	file->n_ctxs++;
	return ctx;
}

bool ucma_may_have_id(const struct ucma_file *asker)
{
	const struct ucma_file *file;
	uint32_t own = 0, total = 0;

	LIST_FOREACH(file, &asker->ucma->files, link)
	{
		total += file->n_ctxs;
		if (file->user == asker->user)
			own += file->n_ctxs;
	}
	return share_allows(asker->user, own, total, CMA_IDS);
}

static bool ring(const struct ucma_file *file)
{
	const uint8_t one = 1;

	return send(file->bell, &one, sizeof(one), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void enqueue(struct ucma_file *file, struct ucma_event *event)
{
	TAILQ_INSERT_TAIL(&file->events, event, link);
	event->ctx->events++;
	if (file->owed || !ring(file))
		file->owed++;
}

static void take_off(struct ucma_file *file, struct ucma_event *event)
{
	TAILQ_REMOVE(&file->events, event, link);
	event->ctx->events--;
}

/* Takes off an event that is not fetched: 1 where its packet is out. */
static uint32_t withdraw(struct ucma_file *file, struct ucma_event *event)
{
	take_off(file, event);
	if (!file->owed)
		return 1;
	file->owed--;
	return 0;
}

struct ucma_event *ucma_event_next(struct ucma_file *file)
{
	struct ucma_event *event = TAILQ_FIRST(&file->events);

	/* The caller has taken a packet, so there is room for one. */
	while (file->owed && ring(file))
		file->owed--;
	if (event)
		take_off(file, event);
	return event;
}

/* The first event that counts as an ID's. */
static struct ucma_event *event_of(const struct ucma_ctx *ctx)
{
	struct ucma_event *event;

	if (!ctx->events)
		return NULL;
	TAILQ_FOREACH(event, &ctx->file->events, link)
	if (event->ctx == ctx)
		break;
	return event;
}

/* With a request that nobody fetched goes its ID. */
static uint32_t drop_event(struct ucma_file *file, struct ucma_event *event)
{
	struct ucma_ctx *child = event->child;
	uint32_t n = withdraw(file, event), of_child;

	free(event);
	if (!child)
		return n;
	child->request = NULL;
	file = child->file == file ? file : NULL;
	of_child = ucma_ctx_destroy(child);
	return file ? n + of_child : n;
}

static void forget_group(struct ucma_group *group)
{
	LIST_REMOVE(group, link);
	free(group);
}

uint32_t ucma_ctx_destroy(struct ucma_ctx *ctx)
{
	struct ucma_event *event;
	struct ucma_group *group;
	uint32_t n = 0;

	/* A program may name an ID that it was not told of yet. */
	if (ctx->request)
		ctx->request->child = NULL;
	while ((event = event_of(ctx)))
		n += drop_event(ctx->file, event);
	while ((group = LIST_FIRST(&ctx->groups)))
		forget_group(group);
	if (ctx->id)
		cma_destroy_id(ctx->id);
	LIST_REMOVE(ctx, link);
	ctx->file->n_ctxs--;
	free(ctx);
	return n;
}

uint32_t ucma_ctx_move(struct ucma_ctx *ctx, struct ucma_file *to)
{
	struct ucma_file *from = ctx->file;
	struct ucma_event *event, *next;
	uint32_t n = 0;

	LIST_REMOVE(ctx, link);
	from->n_ctxs--;
	LIST_INSERT_HEAD(&to->ctxs, ctx, link);
	to->n_ctxs++;
	ctx->file = to;
	for (event = from == to ? NULL : TAILQ_FIRST(&from->events); event; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->ctx != ctx)
			continue;
		n += withdraw(from, event);
		enqueue(to, event);
	}
	return n;
}

/* --- Groups */

struct ucma_group *ucma_group_join(struct ucma_ctx *ctx, uint64_t uid, const uint8_t mgid[16])
{
	struct ucma_event *event = calloc(1, sizeof(*event));
	struct ucma_group *group = event ? calloc(1, sizeof(*group)) : NULL;
	struct ucma *u = ctx->file->ucma;

	if (!group) {
		free(event);
		return NULL;
	}
	*group = (struct ucma_group){.ctx = ctx, .number = u->last_group++, .uid = uid};
	LIST_INSERT_HEAD(&ctx->groups, group, link);
	event->ctx = ctx;
	event->group = group;
	ucma_fill_join(&event->resp, ctx->id, mgid);
	event->resp.uid = uid;
	event->resp.id = group->number;
	enqueue(ctx->file, event);
	return group;
}

struct ucma_group *ucma_group_find(const struct ucma_file *file, uint32_t number)
{
	struct ucma_group *group;
	struct ucma_ctx *ctx;

	LIST_FOREACH(ctx, &file->ctxs, link)
	LIST_FOREACH(group, &ctx->groups, link)
	if (group->number == number)
		return group;
	return NULL;
}

uint32_t ucma_group_leave(struct ucma_group *group)
{
	struct ucma_file *file = group->ctx->file;
	struct ucma_event *event, *next;
	uint32_t n = 0;

	for (event = TAILQ_FIRST(&file->events); event; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->group == group)
			n += drop_event(file, event);
	}
	forget_group(group);
	return n;
}

struct ucma_file *ucma_file_by_token(const struct ucma *u, uint64_t token)
{
	struct ucma_file *file;

	LIST_FOREACH(file, &u->files, link)
	if (file->bell >= 0 && file->token == token)
		return file;
	return NULL;
}

/* --- What the connection manager tells */

static void on_event(struct cma_id *id, const struct cma_event *cma_event)
{
	struct ucma_ctx *ctx = id->ctx;
	struct ucma_event *event;

	/* A program that has not accepted yet has no name for it. */
	if (!ctx->uid)
		return;
	event = calloc(1, sizeof(*event));
	if (!event)
		return;
	event->ctx = ctx;
	ucma_fill_event(&event->resp, id, cma_event);
	event->resp.uid = ctx->uid;
	event->resp.id = id->number;
	enqueue(ctx->file, event);
}

static bool on_request(struct cma_id *listener, struct cma_id *id, const struct cma_event *request)
{
	struct ucma_ctx *ctx = listener->ctx, *child;
	struct ucma_event *event;

	if (!ctx->backlog || !ucma_may_have_id(ctx->file))
		return false;
	event = calloc(1, sizeof(*event));
	child = event ? ucma_ctx_new(ctx->file, 0) : NULL;
	if (!child) {
		free(event);
		return false;
	}
	ctx->backlog--;
	child->id = id;
	id->ctx = child;
	event->ctx = ctx;
	event->child = child;
	child->request = event;
	ucma_fill_event(&event->resp, id, request);
	event->resp.uid = ctx->uid;
	event->resp.id = id->number;
	enqueue(ctx->file, event);
	return true;
}

static void on_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN])
{
	const struct ucma *u = ctx;

	u->ops->send(u->ctx, path, mad);
}

static const struct cma_ops cma_ops = {on_send, on_event, on_request};

/* --- Open devices */

static int watch(const struct ucma *u, int fd, uint32_t events, void *what)
{
	struct epoll_event ev = {.events = events, .data.ptr = what};

	return epoll_ctl(u->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int ucma_open(struct ucma *u, const char *run_dir, const struct host *host, struct neigh *neigh,
	      const struct ucma_ops *ops, void *ctx)
{
	int rc = cma_open(&u->cma, host, neigh, &cma_ops, u);

	if (rc)
		return rc;
	u->ops = ops;
	u->ctx = ctx;
	u->limit = share_connections(CMA_IDS);
	u->listen_fd = -1;
	u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rc = u->epoll_fd < 0 ? -errno : 0;
	if (!rc)
		rc = u->listen_fd = message_listen(run_dir, CM_ATTACH_SOCKET_NAME, BACKLOG);
	if (rc >= 0)
		/* Where a connection cannot be taken, the next one tells, not this without end. */
		rc = watch(u, u->listen_fd, EPOLLIN | EPOLLET, u);
	if (rc < 0)
		ucma_close(u, run_dir);
	return rc < 0 ? rc : 0;
}

/* The events first: each ID would look for its own among all of them. */
static void close_file(struct ucma_file *file)
{
	struct ucma_event *event;
	struct ucma_ctx *ctx;

	while ((event = TAILQ_FIRST(&file->events)))
		drop_event(file, event);
	while ((ctx = LIST_FIRST(&file->ctxs)))
		ucma_ctx_destroy(ctx);
	LIST_REMOVE(file, link);
	file->ucma->n--;
	if (file->bell >= 0)
		close(file->bell);
	close(file->fd);
	free(file);
}

void ucma_close(struct ucma *u, const char *run_dir)
{
	struct ucma_file *file;

	if (!u->cma.cm)
		return;
	while ((file = LIST_FIRST(&u->files)))
		close_file(file);
	if (u->listen_fd >= 0) {
		rundir_remove(run_dir, CM_ATTACH_SOCKET_NAME);
		close(u->listen_fd);
	}
	if (u->epoll_fd >= 0)
		close(u->epoll_fd);
	u->epoll_fd = -1;
	cma_close(&u->cma);
}

/*
 * What /proc says of capabilities is of now, and since it connected the process may have become a
 * program that has more than it (set-user-ID, or with capabilities of its own), while a child
 * has the socket. Only of who was root then, or the daemon's own user, that is nothing won.
 */
static bool has_low_ports(const struct ucma_file *file)
{
	return message_from_friend(file->fd) && process_capable(file->pid, CAP_NET_BIND_SERVICE);
}

static bool may_come(struct ucma *u, const struct ucred *peer)
{
	const struct ucma_file *file;
	uint32_t own = 0;

	LIST_FOREACH(file, &u->files, link)
	own += file->user == peer->uid;
	if (share_allows(peer->uid, own, u->n, u->limit))
		return true;
	log_rated(&u->log, u->cma.now, "process %d is refused: user %u has rdma_cm open %u times",
		  peer->pid, peer->uid, own);
	return false;
}

static void add_file(struct ucma *u, int fd)
{
	struct ucma_file *file = calloc(1, sizeof(*file));
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (!file || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || !may_come(u, &peer) ||
	    watch(u, fd, EPOLLIN, file)) {
		free(file);
		close(fd);
		return;
	}
	file->ucma = u;
	file->fd = fd;
	file->bell = -1;
	file->pid = peer.pid;
	file->user = peer.uid;
	process_name(file->pid, file->name);
	file->low_ports = has_low_ports(file);
	TAILQ_INIT(&file->events);
	LIST_INSERT_HEAD(&u->files, file, link);
	u->n++;
}

static void accept_all(struct ucma *u)
{
	int fd;

	while ((fd = accept4(u->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		add_file(u, fd);
}

/* 0, or a negative errno value: the file is to be closed. */
static int welcome(struct ucma_file *file, const void *message, uint32_t len)
{
	struct cm_attach_welcome w = {0};
	struct cm_attach_hello hello;
	int ends[2] = {-1, -1}, rc;

	if (len != sizeof(hello))
		return -EPROTO;
	memcpy(&hello, message, sizeof(hello));
	if (hello.version != CM_ATTACH_VERSION)
		w.status = -EPROTO;
	else if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		w.status = -errno;
	else if (getrandom(&file->token, sizeof(file->token), 0) != sizeof(file->token))
		w.status = -EAGAIN;
	w.token = w.status ? 0 : file->token;
	rc = message_send(file->fd, &w, sizeof(w), ends, w.status ? 0 : 1);
	if (ends[0] >= 0)
		close(ends[0]);
	file->bell = ends[1];
	return rc;
}

struct answer {
	struct cm_attach_reply reply;
	uint8_t out[CM_ATTACH_BYTES];
};

static int serve(struct ucma_file *file, const uint8_t *message, uint32_t len)
{
	const struct cm_attach_command *request = (const void *)message;
	struct answer answer = {.reply = {0}};
	struct ucma_command c;

	if (len < sizeof(*request) || request->in != len - sizeof(*request))
		return -EPROTO;
	c = (struct ucma_command){.file = file,
				  .number = request->command,
				  .in = message + sizeof(*request),
				  .in_size = request->in,
				  .token = request->token,
				  .out = answer.out,
				  .out_size = request->out < CM_ATTACH_BYTES ? request->out
									     : CM_ATTACH_BYTES};
	answer.reply.status = ucma_run(&c);
	answer.reply.out = c.out_len;
	answer.reply.withdrawn = c.withdrawn;
	/* It asks once it has its answer, so there is room. */
	return message_send(file->fd, &answer, sizeof(answer.reply) + c.out_len, NULL, 0);
}

static void file_event(struct ucma_file *file)
{
	uint8_t message[sizeof(struct cm_attach_command) + CM_ATTACH_BYTES + CM_ATTACH_OPTION]
		__attribute__((aligned(8)));
	ssize_t n = recv(file->fd, message, sizeof(message), MSG_TRUNC);
	int rc;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || n > (ssize_t)sizeof(message))
		rc = -EPROTO;
	else if (file->bell < 0)
		rc = welcome(file, message, (uint32_t)n);
	else
		rc = serve(file, message, (uint32_t)n);
	if (rc)
		close_file(file);
}

void ucma_input(struct ucma *u, uint64_t now)
{
	struct epoll_event events[EVENTS];
	int i, n = epoll_wait(u->epoll_fd, events, EVENTS, 0);

	u->cma.now = now;
	for (i = 0; i < n; i++) {
		if (events[i].data.ptr == u)
			accept_all(u);
		else
			file_event(events[i].data.ptr);
	}
}
