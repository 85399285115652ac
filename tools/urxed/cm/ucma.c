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

#include <vnic/peer_socket.h>

#include "common/clock.h"
#include "common/rundir.h"
#include "common/unix_packet.h"
#include "urxed/privilege/fd_guard.h"
#include "urxed/session/process_info.h"
#include "urxed/session/quota.h"

#define BACKLOG        128
#define EVENTS         32
#define CLAIM_CHECK_NS 50000000u

/* --- Opening the socket */

static int watch_ucma_fd(const struct ucma *u, int fd, void *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(u->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int open_listener(struct ucma *u, const char *run_dir)
{
	int rc;

	u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (u->epoll_fd < 0)
		return -errno;
	rc = u->listen_fd = unix_packet_listen(run_dir, CM_ATTACH_SOCKET_NAME, BACKLOG);
	u->pause = (struct accept_pause){.epoll_fd = u->epoll_fd,
					 .fd = u->listen_fd,
					 .watch = {.events = EPOLLIN, .data.ptr = u}};
	return rc < 0 ? rc : watch_ucma_fd(u, u->listen_fd, u);
}

int ucma_open(struct ucma *u, const char *run_dir, uint64_t now, const struct host *host,
	      struct neigh *neigh, const struct ucma_ops *ops, void *ctx)
{
	int rc = cma_open(&u->cma, host, neigh, &ops->cma, ctx);

	if (rc)
		return rc;
	u->cma.now = now;
	u->ops = ops;
	u->ctx = ctx;
	u->limit = quota_connections(CMA_IDS);
	u->listen_fd = u->epoll_fd = -1;
	u->claim_deadline = UINT64_MAX; /* until ucma_begin_claims */
	/* Greater than all sequence numbers of an earlier daemon, which gave less than one number
	 * per ns. */
	u->next_sequence = now + 1;
	rc = ucma_store_open(u, run_dir);
	if (!rc)
		rc = open_listener(u, run_dir);
	if (rc)
		ucma_close(u, run_dir);
	return rc;
}

void ucma_begin_claims(struct ucma *u, uint64_t now)
{
	u->claim_deadline = now + UCMA_CLAIM_TIME_NS;
}

static void disconnect_file(struct ucma_file *file)
{
	struct ucma *u = file->ucma;

	ucma_events_close(file);
	file->answer_len = 0;
	file->claimed_file = NULL;
	if (file->fd < 0)
		return;
	/* fd_guard's helper process may hold a copy of the socket for some time, during which epoll
	 * would report the socket again and again. */
	epoll_ctl(u->epoll_fd, EPOLL_CTL_DEL, file->fd, NULL);
	fd_guard_close(file->fd);
	file->fd = -1;
	u->n--;
}

/* Destroys at most `most` events and IDs. True: all are destroyed, and the file is freed. */
static bool destroy_some(struct ucma_file *file, uint32_t most)
{
	struct ucma *u = file->ucma;
	struct ucma_event *event;
	struct ucma_ctx *ctx;
	uint32_t n = 0;

	while (n < most && (event = TAILQ_FIRST(&file->events))) {
		ucma_drop_event(file, event);
		n++;
	}
	while (n < most && (ctx = LIST_FIRST(&file->ctxs))) {
		ucma_ctx_destroy(ctx);
		n++;
	}
	if (!LIST_EMPTY(&file->ctxs))
		return false;
	slot_file_drop(&u->store, file->slot);
	LIST_REMOVE(file, link);
	/* Removes the file from ucma_flush's list: peers' messages may have caused new events
	 * during the calls above. */
	ucma_events_close(file);
	free(file);
	u->n_ended--;
	return true;
}

/* Destroys at most UCMA_END_STEP events and IDs of an ended file; frees the file if none is left.
 * Stops when QP1's queue has no room, because destroying an ID may send a message. */
static void destroy_step(struct ucma_file *file)
{
	const struct ucma *u = file->ucma;

	for (uint32_t n = 0; n < UCMA_END_STEP && u->ops->cma.has_room(u->ctx); n += CM_TICK_MAX)
		if (destroy_some(file, CM_TICK_MAX))
			return;
}

static void cancel_departure(struct ucma_file *file)
{
	file->ucma->n_departed -= file->forget_at != 0;
	file->forget_at = 0;
}

static void end_file(struct ucma_file *file)
{
	disconnect_file(file);
	cancel_departure(file);
	file->ended = true;
	file->ucma->n_ended++;
}

/*
 * Keeps a file whose program may claim it again, or be restored here or elsewhere: its IDs keep
 * their ports. A frozen file's peers get no answer; without the file they would be refused. The IDs
 * of a file whose claim was lost are not frozen, and their events wait for the program.
 */
static void depart(struct ucma_file *file, uint64_t time_limit)
{
	disconnect_file(file);
	file->forget_at = file->ucma->cma.now + time_limit;
	file->ucma->n_departed++;
}

/*
 * Returns true if a checkpoint has saved the file, so that its program may be restored after its
 * end. A file without IDs has nothing to restore. If an earlier daemon has recorded the file (fd <
 * 0), this daemon does not know whether it was saved, and so keeps it.
 */
static bool can_be_restored(const struct ucma_file *file)
{
	bool is_saved = file->fd < 0 || file->save_cursor.kind == UCMA_SAVE_COMPLETE;

	return file->frozen && !file->restoring && file->n_ctxs && is_saved;
}

static bool is_process_alive(const struct ucma_file *file)
{
	return process_lives(file->pid, file->start);
}

/*
 * Returns true if the program lives, but may not have received the welcome, for instance because it
 * had no free descriptor. The program then claims the file again, or closes this connection and
 * claims by another one.
 */
static bool is_claim_lost(const struct ucma_file *file)
{
	return file->unconfirmed && is_process_alive(file);
}

/*
 * Closes the file's connection. The file departs if its program may be restored or may claim it
 * again. Otherwise the file ends: this function destroys some of its IDs and events, and ucma_tick
 * the rest.
 */
static void ucma_file_close(struct ucma_file *file)
{
	if (can_be_restored(file)) {
		depart(file, UCMA_DEPARTED_NS);
		return;
	}
	if (is_claim_lost(file)) {
		depart(file, UCMA_CLAIM_TIME_NS);
		return;
	}
	end_file(file);
	destroy_step(file);
}

void ucma_file_forget(struct ucma_file *file)
{
	end_file(file);
	while (!destroy_some(file, UCMA_END_STEP))
		;
}

bool ucma_has_frozen_file(const struct ucma *u, pid_t pid)
{
	const struct ucma_file *file;

	LIST_FOREACH(file, &u->files, link)
	if (file->fd < 0 && file->frozen && !file->restoring && !file->ended && file->pid == pid)
		return true;
	return false;
}

/*
 * Ends departed files whose time (forget_at) is over. Returns the time of the next call in ns,
 * UINT64_MAX = never.
 */
static uint64_t tick_departed(struct ucma *u)
{
	struct ucma_file *file;
	uint64_t due = UINT64_MAX;

	if (!u->n_departed)
		return UINT64_MAX;
	LIST_FOREACH(file, &u->files, link)
	{
		if (!file->forget_at)
			continue;
		if (file->forget_at <= u->cma.now)
			end_file(file);
		else
			due = earlier(due, file->forget_at);
	}
	return due;
}

/* Runs one destroy_step. Returns when to call this again; UINT64_MAX: no file has ended, or QP1's
 * queue has no room. In the second case ucma_tick is called when there is room. */
static uint64_t tick_ended(struct ucma *u)
{
	struct ucma_file *file;

	if (!u->n_ended || !u->ops->cma.has_room(u->ctx))
		return UINT64_MAX;
	LIST_FOREACH(file, &u->files, link)
	if (file->ended)
		break;
	destroy_step(file);
	return u->n_ended ? u->cma.now : UINT64_MAX;
}

void ucma_close(struct ucma *u, const char *run_dir)
{
	struct ucma_file *file;

	if (!u->cma.cm)
		return;
	/*
	 * Before the loop below, which would remove the files from the record for the next daemon.
	 */
	ucma_store_close(u, run_dir);
	while ((file = LIST_FIRST(&u->files)))
		if (file->ended)
			(void)destroy_some(file, UCMA_END_STEP);
		else
			end_file(file);
	if (u->listen_fd >= 0) {
		rundir_remove(run_dir, CM_ATTACH_SOCKET_NAME);
		fd_guard_close_listener(u->listen_fd);
	}
	if (u->epoll_fd >= 0)
		close(u->epoll_fd);
	u->epoll_fd = -1;
	user_counts_free(&u->groups);
	cma_close(&u->cma);
}

/*
 * Whether the process may bind ports below CMA_PORT_UNPRIVILEGED. /proc shows the process's present
 * capabilities. But since it connected, the process may have executed a program with more
 * privileges (set-user-ID, file capabilities), while its child uses the socket. So /proc counts
 * only for a process that connected as root or as the daemon's own user.
 */
static bool has_low_ports(const struct ucma_file *file)
{
	return unix_packet_peer_is_trusted(file->fd) &&
	       process_capable(file->pid, CAP_NET_BIND_SERVICE);
}

/* Whether the peer has a departed file, which the new connection may claim. The quota counts that
 * file already, so the connection is not one more. */
static bool has_departed_file(const struct ucma *u, const struct ucred *peer)
{
	const struct ucma_file *file;

	LIST_FOREACH(file, &u->files, link)
	if (file->forget_at && file->pid == peer->pid && file->user == peer->uid)
		return true;
	return false;
}

static bool can_open_device(struct ucma *u, const struct ucred *peer)
{
	bool may_claim = has_departed_file(u, peer);
	const struct ucma_file *file;
	uint32_t own = 0;

	LIST_FOREACH(file, &u->files, link)
	own += (file->fd >= 0 || file->forget_at) && file->user == peer->uid;
	own -= may_claim && own;
	if (quota_allows(peer->uid, own, u->n + u->n_departed - may_claim, u->limit))
		return true;
	log_ratelimited(&u->log, u->cma.now,
			"process %d cannot open rdma_cm: processes of user %u have opened it %u "
			"times already, counting saved processes that have ended",
			peer->pid, peer->uid, own);
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

struct ucma_file *ucma_ended_file(struct ucma *u, uid_t user)
{
	struct ucma_file *file;

	LIST_FOREACH(file, &u->files, link)
	if (file->ended && file->user == user)
		return file;
	file = ucma_file_new(u);
	if (!file)
		return NULL;
	file->user = user;
	end_file(file);
	return file;
}

static void open_file(struct ucma *u, int fd)
{
	struct ucred peer;
	struct ucma_file *file;

	file = unix_packet_peer(fd, &peer) || !can_open_device(u, &peer) ? NULL : ucma_file_new(u);
	if (!file) {
		fd_guard_close(fd);
		return;
	}
	file->fd = fd;
	u->n++;
	file->pid = peer.pid;
	file->start = peer.pid > 0 ? process_identity(peer.pid) : 0;
	file->user = peer.uid;
	process_name(file->pid, file->name);
	file->low_ports = has_low_ports(file);
	if (watch_ucma_fd(u, fd, file))
		ucma_file_close(file);
}

static void accept_connections(struct ucma *u)
{
	int fd, n = 0;

	while (n < UCMA_ACCEPTS &&
	       (fd = accept4(u->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		open_file(u, fd);
		n++;
	}
	if (n < UCMA_ACCEPTS)
		accept_pause_begin(&u->pause, u->cma.now, errno);
}

/* Accepts connections again after a pause (accept_pause.h). Returns as accept_pause_tick. */
static uint64_t tick_listener(struct ucma *u)
{
	return accept_pause_tick(&u->pause, u->cma.now);
}

static int refuse_hello(const struct ucma_file *file, int status)
{
	const struct cm_attach_welcome w = {.status = status};

	(void)unix_packet_send(file->fd, &w, sizeof(w), NULL, 0);
	return status;
}

/* Sends the welcome with both ends of the event socket to the program. Returns 0 or a negative
 * errno value. */
static int send_welcome(struct ucma_file *file, uint64_t token)
{
	const struct cm_attach_welcome w = {.token = token};
	int ends[UNIX_PACKET_FDS], rc;

	rc = ucma_events_open(file, ends);
	if (rc)
		return rc;
	rc = unix_packet_send(file->fd, &w, sizeof(w), ends, UNIX_PACKET_FDS);
	close(ends[CM_ATTACH_EVENTS]);
	return rc;
}

static bool is_claimed(const struct ucma_file *file)
{
	const struct ucma_file *by;

	LIST_FOREACH(by, &file->ucma->files, link)
	if (by->claimed_file == file)
		return true;
	return false;
}

/*
 * Returns the file without connection that has the token and belongs to the claimant's process.
 * NULL: there is none, or an earlier claimant has claimed it, even if that claim is not complete
 * yet.
 */
static struct ucma_file *find_unclaimed_file(const struct ucma_file *claimant, uint64_t token)
{
	struct ucma_file *file;

	LIST_FOREACH(file, &claimant->ucma->files, link)
	if (file->fd < 0 && !file->ended && file->token == token && file->pid == claimant->pid &&
	    !is_claimed(file))
		break;
	return file;
}

/* Gives the sockets of the claimant `by` to the file, and frees `by`. */
static void transfer_connection(struct ucma_file *file, struct ucma_file *by)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = file};
	struct ucma_ctx *ctx;

	(void)epoll_ctl(file->ucma->epoll_fd, EPOLL_CTL_MOD, by->fd, &ev);
	file->fd = by->fd;
	file->event_fd = by->event_fd;
	file->unconfirmed = true;
	ucma_drop_fetched_events(file, by->fetched);
	LIST_REMOVE(by, link);
	free(by);
	/* liburxe.so claims no file while its program is frozen. So if the file is still frozen,
	 * the program no longer is. */
	ucma_file_thaw(file);
	LIST_FOREACH(ctx, &file->ctxs, link)
	cma_restart_resolve(ctx->id);
	ucma_events_queue_send(file);
}

/*
 * Answers a claimant if the program has claimed its QPN leases; before that, the process may not
 * name its QPNs (ucma_ops.may_name_qpn). Returns 0, also if the claimant has to wait; or a negative
 * errno value, after which the caller closes the connection.
 */
static int complete_claim(struct ucma_file *by)
{
	const struct ucma *u = by->ucma;
	int rc;

	if (u->ops->has_claimable_leases(u->ctx, by->pid))
		return 0;
	rc = send_welcome(by, by->claimed_file->token);
	if (!rc)
		transfer_connection(by->claimed_file, by);
	return rc;
}

/*
 * Starts the claim of a departed file, whose program was frozen while other programs made their
 * claims, or has lost its first claim. If this claim has to wait, tick_claims completes it; if the
 * claimant ends before, the file departs again.
 */
static void claim_departed_file(struct ucma_file *file)
{
	struct ucma *u = file->ucma;

	cancel_departure(file);
	if (u->claim_deadline == UINT64_MAX)
		u->claim_deadline = u->next_claim_check = u->cma.now;
}

/* Gives a newly opened file its token, and welcomes the program. Returns as handle_hello. */
static int register_file(struct ucma_file *file)
{
	if (getrandom(&file->token, sizeof(file->token), GRND_NONBLOCK) != sizeof(file->token))
		return -EAGAIN;
	ucma_store_file(file);
	return send_welcome(file, file->token);
}

/* Returns 0, or a negative errno value after which the caller closes the file. */
static int handle_hello(struct ucma_file *file, const void *message, int len)
{
	struct cm_attach_hello hello;

	if (len != sizeof(hello))
		return -EPROTO;
	memcpy(&hello, message, sizeof(hello));
	if (hello.version != CM_ATTACH_VERSION)
		return refuse_hello(file, -EPROTO);
	if (!hello.token)
		return register_file(file);
	file->fetched = hello.fetched;
	file->claimed_file = find_unclaimed_file(file, hello.token);
	if (file->claimed_file && file->claimed_file->forget_at)
		claim_departed_file(file->claimed_file);
	if (file->claimed_file)
		return complete_claim(file);
	return refuse_hello(file, -EPERM);
}

static int handle_command(struct ucma_file *file, const uint8_t *message, uint32_t len)
{
	const struct cm_attach_command *request = (const void *)message;
	struct ucma_answer *answer = &file->answer;
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
				  .again = request->again,
				  .out = answer->out,
				  .out_size = request->out < CM_ATTACH_BYTES ? request->out
									     : CM_ATTACH_BYTES};
	file->unconfirmed = false;
	/* Keeps fetched events of a frozen file until the thaw, because the file's records include
	 * them. */
	if (!file->frozen)
		ucma_drop_fetched_events(file, request->fetched);
	file->stale = file->n_cancelled = 0;
	status = c.number >= CM_ATTACH_FREEZE ? ucma_run_checkpoint(&c)
		 : file->frozen               ? -EBUSY
					      : ucma_run_command(&c);
	/* Flushes before the reply, so that the program finds withdrawn events in its socket again
	 * when it has the reply. */
	(void)ucma_flush(file->ucma);
	answer->reply = (struct cm_attach_reply){.status = status,
						 .out = c.out_len,
						 .withdrawn = c.withdrawn_from->stale,
						 .n_cancelled = file->n_cancelled};
	memcpy(answer->reply.cancelled, file->cancelled, sizeof(answer->reply.cancelled));
	file->answer_len = sizeof(answer->reply) + c.out_len;
	return ucma_send_answer(file);
}

static void handle_file_event(struct ucma_file *file)
{
	uint8_t message[sizeof(struct cm_attach_command) + CM_ATTACH_BYTES + CM_ATTACH_OPTION]
		__attribute__((aligned(8)));
	int rc, n;

	/* While the kernel had no memory for a reply, the program may have sent CM_ATTACH_THAW.
	 * Sends the reply first. */
	if (file->answer_len && !ucma_send_answer(file) && file->answer_len)
		return;
	n = vnic_peer_recv(file->fd, message, sizeof(message));
	if (n == -EAGAIN)
		return;
	if (n <= 0 || file->claimed_file)
		rc = -EPROTO;
	else if (file->event_fd < 0)
		rc = handle_hello(file, message, n);
	else
		rc = handle_command(file, message, (uint32_t)n);
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
			accept_connections(u);
		else if (!ucma_events_epoll(u, events[i].data.ptr))
			handle_file_event(events[i].data.ptr);
	}
	(void)ucma_flush(u);
}

/* --- Claims and timers */

static void complete_claims(struct ucma *u)
{
	struct ucma_file *file, *next;

	for (file = LIST_FIRST(&u->files); file; file = next) {
		next = LIST_NEXT(file, link);
		if (file->claimed_file && complete_claim(file))
			ucma_file_close(file);
	}
}

bool ucma_file_awaits_restoration(const struct ucma_file *file)
{
	if (file->forget_at)
		return file->frozen;
	return can_be_restored(file) && file->fd < 0 && !is_claimed(file) &&
	       !is_process_alive(file);
}

/* Closes restored files if the deadline is over or their processes have ended. Returns whether some
 * are still unclaimed. */
static bool close_unclaimed_files(struct ucma *u)
{
	struct ucma_file *file, *next;
	bool any = false;

	for (file = LIST_FIRST(&u->files); file; file = next) {
		next = LIST_NEXT(file, link);
		if (file->fd >= 0 || file->ended || file->forget_at)
			continue;
		if (is_claimed(file) || (u->cma.now < u->claim_deadline && is_process_alive(file)))
			any = true;
		else
			ucma_file_close(file);
	}
	return any;
}

static uint64_t tick_claims(struct ucma *u)
{
	if (u->claim_deadline == UINT64_MAX)
		return UINT64_MAX;
	complete_claims(u);
	if (u->cma.now < u->next_claim_check)
		return u->next_claim_check;
	u->next_claim_check = u->cma.now + CLAIM_CHECK_NS;
	if (!close_unclaimed_files(u))
		u->claim_deadline = u->next_claim_check = UINT64_MAX;
	return u->next_claim_check;
}

uint64_t ucma_tick(struct ucma *u, uint64_t now)
{
	uint64_t (*const ticks[])(struct ucma *) = {tick_claims, tick_departed, tick_ended,
						    tick_listener};
	uint64_t next = UINT64_MAX;

	u->cma.now = now;
	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++)
		next = earlier(next, ticks[i](u));
	/* Runs last, because the calls above may start timers of connections. */
	next = earlier(next, cma_tick(&u->cma, now));
	return earlier(next, ucma_flush(u));
}
