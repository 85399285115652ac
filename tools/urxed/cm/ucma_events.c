/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The queue of rdma_cm events of a program, and the packets to the program (ucma.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "urxed/cm/ucma.h"

/* If fewer than this many places are left in a listener's backlog, the program confirms each
 * request that it fetches, so that the daemon can free the request's place. */
#define BACKLOG_LOW 16
/* Each time it has fetched this many packets, the program confirms that. */
#define CONFIRM_INTERVAL 64
/* Time to the next call of ucma_flush if the kernel had no memory for a packet, or if the user has
 * no epoll watch left. */
#define RETRY_NS 100000000u

void ucma_events_queue_send(struct ucma_file *file)
{
	if (file->send_queued)
		return;
	file->send_queued = true;
	LIST_INSERT_HEAD(&file->ucma->to_send, file, send_link);
}

/* Adds an event to the counts of its file and ID (change = 1), or removes it from them (-1). */
static void count_event(struct ucma_file *file, const struct ucma_event *event, int change)
{
	file->n_events += (uint32_t)change;
	event->ctx->n_events += (uint32_t)change;
}

void ucma_event_add(struct ucma_file *file, struct ucma_event *event)
{
	TAILQ_INSERT_TAIL(&file->events, event, link);
	TAILQ_INSERT_TAIL(&event->ctx->events, event, ctx_link);
	count_event(file, event, 1);
	event->sequence = file->ucma->next_sequence++;
	event->slot = SLOT_FILE_NONE;
	event->sent = false;
	ucma_store_event(event);
	if (!file->unsent)
		file->unsent = event;
	ucma_events_queue_send(file);
}

/* Inserts the event by its sequence number, as the slot file has the events in no order. */
void ucma_event_restore(struct ucma_file *file, struct ucma_event *event)
{
	struct ucma_event *before = TAILQ_LAST(&file->events, ucma_event_list);

	while (before && before->sequence > event->sequence)
		before = TAILQ_PREV(before, ucma_event_list, link);
	if (before)
		TAILQ_INSERT_AFTER(&file->events, before, event, link);
	else
		TAILQ_INSERT_HEAD(&file->events, event, link);
	before = TAILQ_LAST(&event->ctx->events, ucma_event_list);
	while (before && before->sequence > event->sequence)
		before = TAILQ_PREV(before, ucma_event_list, ctx_link);
	if (before)
		TAILQ_INSERT_AFTER(&event->ctx->events, before, event, ctx_link);
	else
		TAILQ_INSERT_HEAD(&event->ctx->events, event, ctx_link);
	count_event(file, event, 1);
	file->unsent = TAILQ_FIRST(&file->events);
}

/* Takes the event out of its ID's list, the counts and the slot file. */
static void unlink_from_ctx(struct ucma_file *file, struct ucma_event *event)
{
	TAILQ_REMOVE(&event->ctx->events, event, ctx_link);
	count_event(file, event, -1);
	slot_file_drop(&file->ucma->store, event->slot);
}

static void unlink_from_file(struct ucma_file *file, struct ucma_event *event)
{
	if (file->unsent == event)
		file->unsent = TAILQ_NEXT(event, link);
	file->sent -= event->sent;
	TAILQ_REMOVE(&file->events, event, link);
}

static void unlink_event(struct ucma_file *file, struct ucma_event *event)
{
	unlink_from_file(file, event);
	unlink_from_ctx(file, event);
}

static void free_cancelled_event(struct ucma_file *file, struct ucma_event *event)
{
	unlink_from_file(file, event);
	file->to_skip--;
	free(event);
}

/* Marks all sent events as unsent, because their packets have become invalid, and frees cancelled
 * ones. In the list, sent events precede all others. */
static void unsend_events(struct ucma_file *file)
{
	struct ucma_event *event, *next;

	for (event = TAILQ_FIRST(&file->events); event && event->sent; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->cancelled)
			free_cancelled_event(file, event);
		else
			event->sent = false;
	}
	file->sent = 0;
	file->n_cancelled = 0;
	file->unsent = TAILQ_FIRST(&file->events);
}

/* Makes the program discard all packets that it has not fetched (ucma_file.stale), and sends the
 * events again. The daemon cannot take a single packet out of the socket's queue. */
static void withdraw_sent_events(struct ucma_file *file)
{
	file->stale += file->sent;
	unsend_events(file);
	ucma_events_queue_send(file);
}

void ucma_event_resend(struct ucma_file *file, const struct ucma_event *event)
{
	if (event->sent)
		withdraw_sent_events(file);
}

void ucma_ctx_resend_events(struct ucma_ctx *ctx)
{
	struct ucma_event *event;

	if (ctx->request)
		ucma_event_resend(ctx->request->ctx->file, ctx->request);
	TAILQ_FOREACH(event, &ctx->events, ctx_link)
	if (ucma_reply_cache_ctx(event) == ctx)
		ucma_event_resend(ctx->file, event);
}

void ucma_event_withdraw(struct ucma_file *file, struct ucma_event *event)
{
	ucma_event_resend(file, event);
	unlink_event(file, event);
}

/* Whether the reply to the current command can tell the program to skip one more event. */
static bool can_skip(const struct ucma_file *file)
{
	return file->n_cancelled < CM_ATTACH_CANCELLED && file->to_skip < CM_ATTACH_TO_SKIP;
}

void ucma_event_cancel(struct ucma_file *file, struct ucma_event *event)
{
	if (event->sent && can_skip(file)) {
		unlink_from_ctx(file, event);
		event->cancelled = true;
		file->cancelled[file->n_cancelled++] = event->sequence;
		file->to_skip++;
		return;
	}
	ucma_event_withdraw(file, event);
	free(event);
}

static void count_fetched_event(struct ucma_event *event)
{
	event->ctx->events_reported++;
	ucma_store_mark_dirty(event->ctx);
	if (event->group) {
		event->group->events_reported++;
		ucma_store_group(event->group);
	}
	/* A restored listener may have all places of its backlog free already, although its program
	 * has not fetched all requests. */
	if (event->resp.event == CMA_CONNECT_REQUEST && event->ctx->backlog < UCMA_BACKLOG_MAX)
		event->ctx->backlog++;
	if (event->child)
		event->child->request = NULL;
}

void ucma_drop_fetched_events(struct ucma_file *file, uint64_t sequence)
{
	struct ucma_event *event;

	while ((event = TAILQ_FIRST(&file->events)) && event->sequence <= sequence) {
		if (event->cancelled) {
			free_cancelled_event(file, event);
			continue;
		}
		unlink_event(file, event);
		count_fetched_event(event);
		free(event);
	}
}

/* --- Packets */

static bool lacks_memory(int rc)
{
	return rc == -ENOBUFS || rc == -ENOMEM;
}

int ucma_send_answer(struct ucma_file *file)
{
	/* A program sends no command before it has the last reply, so the socket has room. */
	int rc = unix_packet_send(file->fd, &file->answer, file->answer_len, NULL, 0);

	if (lacks_memory(rc)) {
		ucma_events_queue_send(file);
		return 0;
	}
	file->answer_len = 0;
	return rc;
}

/* Returns 0, or a negative errno value of send(2). */
static int send_event(const struct ucma_file *file, const struct ucma_event *event)
{
	struct {
		struct cm_attach_event head;
		uint8_t bytes[sizeof(event->resp) + CM_ATTACH_CACHED];
	} packet;
	struct cm_attach_event *head = &packet.head;
	bool few = event->resp.event == CMA_CONNECT_REQUEST && event->ctx->backlog < BACKLOG_LOW;

	*head = (struct cm_attach_event){
		.sequence = event->sequence,
		.out = sizeof(event->resp),
		.cached = ucma_reply_cache_fill(event, packet.bytes + sizeof(event->resp)),
		.confirm = few || file->sent % CONFIRM_INTERVAL == CONFIRM_INTERVAL - 1};
	memcpy(packet.bytes, &event->resp, sizeof(event->resp));
	return send(file->event_fd, &packet, sizeof(*head) + head->out + head->cached,
		    MSG_DONTWAIT | MSG_NOSIGNAL) < 0
		       ? -errno
		       : 0;
}

/* Returns the epoll data of the event socket: an odd number, by which it differs from the pointer
 * that is the command socket's data. */
static void *get_event_fd_tag(struct ucma_file *file)
{
	return (uint8_t *)file + 1;
}

/* Watches the event socket for EPOLLOUT. Returns false if the kernel cannot watch one more
 * descriptor. */
static bool watch_for_room(struct ucma_file *file)
{
	struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = get_event_fd_tag(file)};

	if (!file->event_fd_full)
		file->event_fd_full =
			!epoll_ctl(file->ucma->epoll_fd, EPOLL_CTL_ADD, file->event_fd, &ev);
	return file->event_fd_full;
}

/* Removes the socket from the epoll set; close() would not, because the program has the same open
 * socket. */
static void unwatch_event_fd(struct ucma_file *file)
{
	if (file->event_fd_full)
		(void)epoll_ctl(file->ucma->epoll_fd, EPOLL_CTL_DEL, file->event_fd, NULL);
	file->event_fd_full = false;
}

/*
 * Returns true if all events are sent, if epoll will report that the socket has room, or if the
 * program has closed the socket. Returns false if the kernel lacks memory for a packet or a watch;
 * the caller then tries again later.
 */
static bool send_unsent_events(struct ucma_file *file)
{
	while (file->event_fd >= 0 && file->unsent && !file->frozen) {
		int rc = send_event(file, file->unsent);

		if (rc == -EAGAIN)
			return watch_for_room(file);
		if (rc)
			return !lacks_memory(rc);
		file->unsent->sent = true;
		file->sent++;
		file->unsent = TAILQ_NEXT(file->unsent, link);
	}
	return true;
}

/* Returns as send_unsent_events. */
static bool send_unsent(struct ucma_file *file)
{
	/* Ignores an error: it means that the program has closed the socket, which epoll reports,
	 * too. */
	if (file->answer_len)
		(void)ucma_send_answer(file);
	return send_unsent_events(file) && !file->answer_len;
}

static void cancel_queued_send(struct ucma_file *file)
{
	if (file->send_queued)
		LIST_REMOVE(file, send_link);
	file->send_queued = false;
}

uint64_t ucma_flush(struct ucma *u)
{
	uint64_t due = ucma_store_write_dirty(u);
	struct ucma_file *file, *next;

	for (file = LIST_FIRST(&u->to_send); file; file = next) {
		next = LIST_NEXT(file, send_link);
		if (send_unsent(file))
			cancel_queued_send(file);
	}
	if (!LIST_EMPTY(&u->to_send) && u->cma.now + RETRY_NS < due)
		due = u->cma.now + RETRY_NS;
	return due;
}

bool ucma_events_epoll(struct ucma *u, void *what)
{
	struct ucma_file *file;

	if ((uintptr_t)what % 2 == 0)
		return false;
	/* Looks for the file, because an earlier event of the same epoll_wait may have freed it. */
	LIST_FOREACH(file, &u->files, link)
	if (get_event_fd_tag(file) == what) {
		unwatch_event_fd(file);
		ucma_events_queue_send(file);
		break;
	}
	return true;
}

int ucma_events_open(struct ucma_file *file, int ends[UNIX_PACKET_FDS])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	/* After this the program cannot send to the daemon's end. So no descriptors can be in its
	 * queue, and the daemon may close it without fd_guard.h. */
	shutdown(ends[CM_ATTACH_EVENT_WRITER], SHUT_RD);
	file->event_fd = ends[CM_ATTACH_EVENT_WRITER];
	return 0;
}

void ucma_events_close(struct ucma_file *file)
{
	cancel_queued_send(file);
	if (file->event_fd < 0)
		return;
	unwatch_event_fd(file);
	close(file->event_fd);
	file->event_fd = -1;
	unsend_events(file);
}
