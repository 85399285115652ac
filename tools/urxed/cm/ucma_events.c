/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "urxed/cm/ucma.h"

/* Of a listener's backlog: with fewer places left it matters that one is free again. */
#define FEW_PLACES 16
/* Packets after which a program that gives no command is asked what it has fetched. */
#define MANY 64

void ucma_bell_want(struct ucma_file *file)
{
	if (file->to_ring)
		return;
	file->to_ring = true;
	LIST_INSERT_HEAD(&file->ucma->ringing, file, ring_link);
}

void ucma_event_add(struct ucma_file *file, struct ucma_event *event)
{
	TAILQ_INSERT_TAIL(&file->events, event, link);
	event->ctx->events++;
	event->order = file->ucma->last_event++;
	event->place = SLOTS_NONE;
	event->rung = false;
	ucma_record_event(event);
	if (!file->owed)
		file->owed = event;
	ucma_bell_want(file);
}

static void take_off(struct ucma_file *file, struct ucma_event *event)
{
	if (file->owed == event)
		file->owed = TAILQ_NEXT(event, link);
	file->rung -= event->rung;
	TAILQ_REMOVE(&file->events, event, link);
	event->ctx->events--;
	slots_drop(&file->ucma->slots, event->place);
}

/* A packet cannot be had from between others: all come again. */
static void take_back(struct ucma_file *file)
{
	struct ucma_event *event;

	TAILQ_FOREACH(event, &file->events, link)
	event->rung = false;
	file->stale += file->rung;
	file->rung = 0;
	file->owed = TAILQ_FIRST(&file->events);
	ucma_bell_want(file);
}

void ucma_event_changed(struct ucma_file *file, const struct ucma_event *event)
{
	if (event->rung)
		take_back(file);
}

void ucma_ctx_changes(struct ucma_ctx *ctx)
{
	struct ucma_event *event;

	if (ctx->request)
		ucma_event_changed(ctx->request->ctx->file, ctx->request);
	if (!ctx->events)
		return;
	TAILQ_FOREACH(event, &ctx->file->events, link)
	if (ucma_foretells_of(event) == ctx)
		ucma_event_changed(ctx->file, event);
}

void ucma_event_withdraw(struct ucma_file *file, struct ucma_event *event)
{
	ucma_event_changed(file, event);
	take_off(file, event);
}

static void count(struct ucma_event *event)
{
	event->ctx->events_reported++;
	ucma_touch(event->ctx);
	if (event->group) {
		event->group->events_reported++;
		ucma_record_group(event->group);
	}
	if (event->resp.event == CMA_CONNECT_REQUEST)
		event->ctx->backlog++;
	if (event->child)
		event->child->request = NULL;
}

void ucma_fetched(struct ucma_file *file, uint64_t order)
{
	struct ucma_event *event;

	while ((event = TAILQ_FIRST(&file->events)) && event->order <= order) {
		take_off(file, event);
		count(event);
		free(event);
	}
}

/* --- Packets */

static bool send_event(const struct ucma_file *file, const struct ucma_event *event)
{
	struct {
		struct cm_attach_event head;
		uint8_t bytes[sizeof(event->resp) + CM_ATTACH_FORETOLD];
	} packet;
	struct cm_attach_event *head = &packet.head;
	bool few = event->resp.event == CMA_CONNECT_REQUEST && event->ctx->backlog < FEW_PLACES;

	*head = (struct cm_attach_event){
		.order = event->order,
		.out = sizeof(event->resp),
		.foretold = ucma_foretell(event, packet.bytes + sizeof(event->resp)),
		.tell = few || file->rung % MANY == MANY - 1};
	memcpy(packet.bytes, &event->resp, sizeof(event->resp));
	return send(file->bell, &packet, sizeof(*head) + head->out + head->foretold,
		    MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* Not the pointer that its commands come with, which is even. */
static void *mark_of(struct ucma_file *file)
{
	return (uint8_t *)file + 1;
}

static void await_room(struct ucma_file *file)
{
	struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = mark_of(file)};

	if (errno == EAGAIN && !file->crowded)
		file->crowded = !epoll_ctl(file->ucma->epoll_fd, EPOLL_CTL_ADD, file->bell, &ev);
}

/* The program has its end, too, so to close this one would not end it. */
static void unwatch(struct ucma_file *file)
{
	if (file->crowded)
		(void)epoll_ctl(file->ucma->epoll_fd, EPOLL_CTL_DEL, file->bell, NULL);
	file->crowded = false;
}

static void ring(struct ucma_file *file)
{
	while (file->bell >= 0 && file->owed) {
		if (!send_event(file, file->owed)) {
			await_room(file);
			return;
		}
		file->owed->rung = true;
		file->rung++;
		file->owed = TAILQ_NEXT(file->owed, link);
	}
}

static void want_no_more(struct ucma_file *file)
{
	if (file->to_ring)
		LIST_REMOVE(file, ring_link);
	file->to_ring = false;
}

void ucma_settle(struct ucma *u)
{
	struct ucma_file *file;

	ucma_record_touched(u);
	while ((file = LIST_FIRST(&u->ringing))) {
		want_no_more(file);
		ring(file);
	}
}

bool ucma_bell_event(struct ucma *u, void *what)
{
	struct ucma_file *file;

	if ((uintptr_t)what % 2 == 0)
		return false;
	/* It may have been closed a moment ago. */
	LIST_FOREACH(file, &u->files, link)
	if (mark_of(file) == what) {
		unwatch(file);
		ucma_bell_want(file);
		break;
	}
	return true;
}

void ucma_bell_close(struct ucma_file *file)
{
	want_no_more(file);
	if (file->bell < 0)
		return;
	unwatch(file);
	close(file->bell);
	file->bell = -1;
}
