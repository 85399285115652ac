/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/cm/ucma.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/rundir.h"
#include "common/unix_packet.h"
#include "urxed/session/process_info.h"
#include "urxed/session/quota.h"

#define BACKLOG 128
#define EVENTS  32
#define LOOK_NS 50000000u

/* --- IDs and their events */

struct ucma_ctx *ucma_ctx_new(struct ucma_file *file, uint64_t uid)
{
	struct ucma_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->file = file;
	ctx->uid = uid;
	ctx->slot = SLOT_FILE_NONE;
	LIST_INSERT_HEAD(&file->ctxs, ctx, link);
	file->n_ctxs++;
	ucma_store_mark_dirty(ctx);
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
	return quota_allows(asker->user, own, total, CMA_IDS);
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
static void drop_event(struct ucma_file *file, struct ucma_event *event)
{
	struct ucma_ctx *child = event->child;

	ucma_event_withdraw(file, event);
	free(event);
	if (!child)
		return;
	child->request = NULL;
	ucma_ctx_destroy(child);
}

static void forget_group(struct ucma_group *group)
{
	slot_file_drop(&group->ctx->file->ucma->store, group->slot);
	LIST_REMOVE(group, link);
	free(group);
}

void ucma_ctx_destroy(struct ucma_ctx *ctx)
{
	struct ucma_event *event;
	struct ucma_group *group;

	/* A program may name an ID that it was not told of yet. */
	if (ctx->request) {
		ctx->request->child = NULL;
		ucma_event_outdated(ctx->request->ctx->file, ctx->request);
	}
	while ((event = event_of(ctx)))
		drop_event(ctx->file, event);
	while ((group = LIST_FIRST(&ctx->groups)))
		forget_group(group);
	if (ctx->id)
		cma_destroy_id(ctx->id);
	if (ctx->dirty)
		LIST_REMOVE(ctx, dirty_link);
	slot_file_drop(&ctx->file->ucma->store, ctx->slot);
	LIST_REMOVE(ctx, link);
	ctx->file->n_ctxs--;
	free(ctx);
}

void ucma_ctx_move(struct ucma_ctx *ctx, struct ucma_file *to)
{
	struct ucma_file *from = ctx->file;
	struct ucma_event *event, *next;

	LIST_REMOVE(ctx, link);
	from->n_ctxs--;
	LIST_INSERT_HEAD(&to->ctxs, ctx, link);
	to->n_ctxs++;
	ctx->file = to;
	ucma_store_mark_dirty(ctx);
	for (event = from == to ? NULL : TAILQ_FIRST(&from->events); event; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->ctx != ctx)
			continue;
		ucma_event_withdraw(from, event);
		ucma_event_add(to, event);
	}
	/* The IDs of requests go along, to be accepted there, and with events of their own. */
	TAILQ_FOREACH(event, &to->events, link)
	if (from != to && event->ctx == ctx && event->child && event->child->file == from)
		ucma_ctx_move(event->child, to);
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
	*group = (struct ucma_group){
		.ctx = ctx, .number = u->last_group++, .uid = uid, .slot = SLOT_FILE_NONE};
	LIST_INSERT_HEAD(&ctx->groups, group, link);
	ucma_store_group(group);
	event->ctx = ctx;
	event->group = group;
	ucma_fill_join(&event->resp, ctx->id, mgid);
	event->resp.uid = uid;
	event->resp.id = group->number;
	ucma_event_add(ctx->file, event);
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

void ucma_group_leave(struct ucma_group *group)
{
	struct ucma_file *file = group->ctx->file;
	struct ucma_event *event, *next;

	for (event = TAILQ_FIRST(&file->events); event; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->group == group)
			drop_event(file, event);
	}
	forget_group(group);
}

struct ucma_file *ucma_file_by_token(const struct ucma *u, uint64_t token)
{
	struct ucma_file *file;

	LIST_FOREACH(file, &u->files, link)
	if (file->event_fd >= 0 && file->token == token)
		return file;
	return NULL;
}

/* --- What the connection manager tells */

static void on_event(struct cma_id *id, const struct cma_event *cma_event)
{
	struct ucma_ctx *ctx = id->ctx;
	struct ucma_event *event;

	ucma_store_mark_dirty(ctx);
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
	ucma_event_add(ctx->file, event);
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
	ucma_store_mark_dirty(ctx);
	child->id = id;
	id->ctx = child;
	event->ctx = ctx;
	event->child = child;
	child->request = event;
	ucma_fill_event(&event->resp, id, request);
	event->resp.uid = ctx->uid;
	event->resp.id = id->number;
	ucma_event_add(ctx->file, event);
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

static int listen_at(struct ucma *u, const char *run_dir)
{
	int rc;

	u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (u->epoll_fd < 0)
		return -errno;
	rc = u->listen_fd = unix_packet_listen(run_dir, CM_ATTACH_SOCKET_NAME, BACKLOG);
	/* Where a connection cannot be taken, the next one tells, not this without end. */
	return rc < 0 ? rc : watch(u, u->listen_fd, EPOLLIN | EPOLLET, u);
}

int ucma_open(struct ucma *u, const char *run_dir, uint64_t now, const struct host *host,
	      struct neigh *neigh, const struct ucma_ops *ops, void *ctx)
{
	int rc = cma_open(&u->cma, host, neigh, &cma_ops, u);

	if (rc)
		return rc;
	u->cma.now = now;
	u->ops = ops;
	u->ctx = ctx;
	u->limit = quota_connections(CMA_IDS);
	u->listen_fd = u->epoll_fd = -1;
	u->claims_until = now + UCMA_CLAIM_NS;
	/* Later than all of an earlier daemon's: it had not one every nanosecond. */
	u->last_event = now + 1;
	rc = ucma_store_open(u, run_dir);
	if (!rc)
		rc = listen_at(u, run_dir);
	if (rc)
		ucma_close(u, run_dir);
	return rc;
}

/* The events first: each ID would look for its own among all of them. */
void ucma_file_close(struct ucma_file *file)
{
	struct ucma *u = file->ucma;
	struct ucma_event *event;
	struct ucma_ctx *ctx;

	while ((event = TAILQ_FIRST(&file->events)))
		drop_event(file, event);
	while ((ctx = LIST_FIRST(&file->ctxs)))
		ucma_ctx_destroy(ctx);
	slot_file_drop(&u->store, file->slot);
	LIST_REMOVE(file, link);
	ucma_events_close(file);
	if (file->fd >= 0) {
		close(file->fd);
		u->n--;
	}
	free(file);
}

void ucma_close(struct ucma *u, const char *run_dir)
{
	struct ucma_file *file;

	if (!u->cma.cm)
		return;
	/* First, so that those that are still here keep what they have for the next daemon. */
	ucma_store_close(u, run_dir);
	while ((file = LIST_FIRST(&u->files)))
		ucma_file_close(file);
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
	return unix_packet_peer_is_trusted(file->fd) &&
	       process_capable(file->pid, CAP_NET_BIND_SERVICE);
}

static bool may_come(struct ucma *u, const struct ucred *peer)
{
	const struct ucma_file *file;
	uint32_t own = 0;

	LIST_FOREACH(file, &u->files, link)
	own += file->fd >= 0 && file->user == peer->uid;
	if (quota_allows(peer->uid, own, u->n, u->limit))
		return true;
	log_ratelimited(&u->log, u->cma.now,
			"process %d is refused: user %u has rdma_cm open %u times", peer->pid,
			peer->uid, own);
	return false;
}

struct ucma_file *ucma_file_new(struct ucma *u)
{
	struct ucma_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->ucma = u;
	file->fd = -1;
	file->event_fd = -1;
	file->slot = SLOT_FILE_NONE;
	TAILQ_INIT(&file->events);
	LIST_INSERT_HEAD(&u->files, file, link);
	return file;
}

static void add_file(struct ucma *u, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct ucma_file *file;

	file = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || !may_come(u, &peer)
		       ? NULL
		       : ucma_file_new(u);
	if (!file) {
		close(fd);
		return;
	}
	file->fd = fd;
	u->n++;
	file->pid = peer.pid;
	file->start = peer.pid > 0 ? process_start(peer.pid) : 0;
	file->user = peer.uid;
	process_name(file->pid, file->name);
	file->low_ports = has_low_ports(file);
	if (watch(u, fd, EPOLLIN, file))
		ucma_file_close(file);
}

static void accept_all(struct ucma *u)
{
	int fd;

	while ((fd = accept4(u->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		add_file(u, fd);
}

/*
 * A process rings its own bell, not anything that it can have somebody else's messages sent to: a
 * UNIX socket that it has made itself.
 */
static bool is_bell(const struct ucma_file *file, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int type = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || peer.pid != file->pid)
		return false;
	len = sizeof(type);
	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_SEQPACKET;
}

static int send_welcome(const struct ucma_file *file, int status, uint64_t token)
{
	const struct cm_attach_welcome w = {.status = status, .token = status ? 0 : token};

	return unix_packet_send(file->fd, &w, sizeof(w), NULL, 0);
}

static bool is_claimed(const struct ucma_file *file)
{
	const struct ucma_file *by;

	LIST_FOREACH(by, &file->ucma->files, link)
	if (by->claims == file)
		return true;
	return false;
}

/* Whoever comes second, while the first one waits yet, is no other than who comes too late. */
static struct ucma_file *find_awaited(const struct ucma_file *claimant, uint64_t token)
{
	struct ucma_file *file;

	LIST_FOREACH(file, &claimant->ucma->files, link)
	if (file->fd < 0 && file->token == token && file->pid == claimant->pid && !is_claimed(file))
		break;
	return file;
}

/* The file has whoever speaks by `by` from now on; that one is gone. */
static void hand_over(struct ucma_file *file, struct ucma_file *by)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = file};
	struct ucma_ctx *ctx;

	(void)epoll_ctl(file->ucma->epoll_fd, EPOLL_CTL_MOD, by->fd, &ev);
	file->fd = by->fd;
	file->event_fd = by->event_fd;
	ucma_events_fetched(file, by->fetched);
	LIST_REMOVE(by, link);
	free(by);
	LIST_FOREACH(ctx, &file->ctxs, link)
	cma_resolve_again(ctx->id);
	ucma_events_queue_send(file);
}

/*
 * A program goes on with what it has, but not before it has its queue pair numbers again: it
 * could not connect them. 0, or a negative errno value: the connection is to be closed.
 */
static int claim(struct ucma_file *by)
{
	const struct ucma *u = by->ucma;
	int rc;

	if (u->ops->awaited(u->ctx, by->pid))
		return 0;
	rc = send_welcome(by, 0, by->claims->token);
	if (!rc)
		hand_over(by->claims, by);
	return rc;
}

/* The same of who opens the device. */
static int begin(struct ucma_file *file)
{
	if (getrandom(&file->token, sizeof(file->token), 0) != sizeof(file->token))
		return -EAGAIN;
	ucma_store_file(file);
	return send_welcome(file, 0, file->token);
}

/* 0, or a negative errno value: the file is to be closed. */
static int welcome(struct ucma_file *file, const void *message, int len,
		   struct unix_packet_extras *came)
{
	struct cm_attach_hello hello;

	if (len != sizeof(hello) || !is_bell(file, came->fds[0]))
		return -EPROTO;
	memcpy(&hello, message, sizeof(hello));
	if (hello.version != CM_ATTACH_VERSION) {
		(void)send_welcome(file, -EPROTO, 0);
		return -EPROTO;
	}
	file->event_fd = came->fds[0];
	came->fds[0] = -1;
	if (!hello.token)
		return begin(file);
	file->fetched = hello.fetched;
	file->claims = find_awaited(file, hello.token);
	if (file->claims)
		return claim(file);
	(void)send_welcome(file, -EPERM, 0);
	return -EPERM;
}

struct answer {
	struct cm_attach_reply reply;
	uint8_t out[CM_ATTACH_BYTES];
};

static int serve(struct ucma_file *file, const uint8_t *message, uint32_t len)
{
	const struct cm_attach_command *request = (const void *)message;
	struct answer answer;
	struct ucma_command c;
	int status;

	if (len < sizeof(*request) || request->in != len - sizeof(*request))
		return -EPROTO;
	c = (struct ucma_command){.file = file,
				  .number = request->command,
				  .in = message + sizeof(*request),
				  .in_size = request->in,
				  .withdrawn_from = file,
				  .token = request->token,
				  .out = answer.out,
				  .out_size = request->out < CM_ATTACH_BYTES ? request->out
									     : CM_ATTACH_BYTES};
	ucma_events_fetched(file, request->fetched);
	file->stale = 0;
	status = ucma_run_command(&c);
	/* First, so that who asks is not without an event that is withdrawn to come again. */
	ucma_flush(file->ucma);
	answer.reply = (struct cm_attach_reply){
		.status = status, .out = c.out_len, .withdrawn = c.withdrawn_from->stale};
	/* It asks once it has its answer, so there is room. */
	return unix_packet_send(file->fd, &answer, sizeof(answer.reply) + c.out_len, NULL, 0);
}

static void file_event(struct ucma_file *file)
{
	uint8_t message[sizeof(struct cm_attach_command) + CM_ATTACH_BYTES + CM_ATTACH_OPTION]
		__attribute__((aligned(8)));
	struct unix_packet_extras came;
	int rc, n = unix_packet_recv(file->fd, message, sizeof(message), &came);

	if (n == -EAGAIN)
		return;
	if (n <= 0 || file->claims)
		rc = -EPROTO;
	else if (file->event_fd < 0)
		rc = welcome(file, message, n, &came);
	else
		rc = serve(file, message, (uint32_t)n);
	unix_packet_close_fds(&came);
	if (rc)
		ucma_file_close(file);
}

void ucma_input(struct ucma *u, uint64_t now)
{
	struct epoll_event events[EVENTS];
	int i, n = epoll_wait(u->epoll_fd, events, EVENTS, 0);

	u->cma.now = now;
	for (i = 0; i < n; i++) {
		if (events[i].data.ptr == u)
			accept_all(u);
		else if (!ucma_events_epoll(u, events[i].data.ptr))
			file_event(events[i].data.ptr);
	}
	ucma_flush(u);
}

/* --- What is due */

static void claim_all(struct ucma *u)
{
	struct ucma_file *file, *next;

	for (file = LIST_FIRST(&u->files); file; file = next) {
		next = LIST_NEXT(file, link);
		if (file->claims && claim(file))
			ucma_file_close(file);
	}
}

static bool lives(const struct ucma_file *file)
{
	return !file->start || process_start(file->pid) == file->start;
}

/* What nobody claims any more goes, as with its process. Returns whether there is more. */
static bool give_up(struct ucma *u)
{
	struct ucma_file *file, *next;
	bool any = false;

	for (file = LIST_FIRST(&u->files); file; file = next) {
		next = LIST_NEXT(file, link);
		if (file->fd >= 0)
			continue;
		if (is_claimed(file) || (u->cma.now < u->claims_until && lives(file)))
			any = true;
		else
			ucma_file_close(file);
	}
	return any;
}

static uint64_t await_claims(struct ucma *u)
{
	if (u->claims_until == UINT64_MAX)
		return UINT64_MAX;
	claim_all(u);
	if (u->cma.now < u->look_at)
		return u->look_at;
	u->look_at = u->cma.now + LOOK_NS;
	if (!give_up(u))
		u->claims_until = u->look_at = UINT64_MAX;
	return u->look_at;
}

uint64_t ucma_tick(struct ucma *u, uint64_t now)
{
	uint64_t next, look;

	u->cma.now = now;
	look = await_claims(u);
	next = cma_tick(&u->cma, now);
	ucma_flush(u);
	return look < next ? look : next;
}
