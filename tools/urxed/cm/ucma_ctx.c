/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program's rdma_cm IDs, the multicast groups that they have joined, and their events (ucma.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "urxed/cm/ucma.h"
#include "urxed/session/quota.h"

/* Adds an ID to the file's counts (change = 1), or removes it from them (-1). */
static void count_ctx(const struct ucma_ctx *ctx, struct ucma_file *file, int change)
{
	file->n_ctxs += (uint32_t)change;
	if (!ctx->uid)
		file->n_requests += (uint32_t)change;
}

struct ucma_ctx *ucma_ctx_new(struct ucma_file *file, uint64_t uid)
{
	struct ucma_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->file = file;
	ctx->uid = uid;
	ctx->slot = SLOT_FILE_NONE;
	TAILQ_INIT(&ctx->events);
	LIST_INSERT_HEAD(&file->ctxs, ctx, link);
	count_ctx(ctx, file, 1);
	ucma_store_mark_dirty(ctx);
	return ctx;
}

void ucma_ctx_accept(struct ucma_ctx *ctx, uint64_t uid)
{
	count_ctx(ctx, ctx->file, -1);
	ctx->uid = uid;
	count_ctx(ctx, ctx->file, 1);
}

bool ucma_can_create_id(const struct ucma_file *creator)
{
	const struct ucma_file *file;
	uint32_t own = 0, total = 0;

	LIST_FOREACH(file, &creator->ucma->files, link)
	{
		total += file->n_ctxs;
		if (file->user == creator->user)
			own += file->n_ctxs;
	}
	return quota_allows(creator->user, own, total, CMA_IDS);
}

bool ucma_can_queue_event(const struct ucma_file *asker)
{
	const struct ucma_file *file;
	uint32_t own = 0, total = 0;

	LIST_FOREACH(file, &asker->ucma->files, link)
	{
		total += file->n_events;
		if (file->user == asker->user)
			own += file->n_events;
	}
	return quota_allows(asker->user, own, total, UCMA_EVENTS);
}

/* Whether the daemon may make one more ID for the listener's user because of another host's
 * request. */
static bool can_take_request(const struct ucma_file *listener)
{
	const struct ucma_file *file;
	uint32_t requests = 0;

	LIST_FOREACH(file, &listener->ucma->files, link)
	if (file->user == listener->user)
		requests += file->n_requests;
	return !listener->ended && requests < UCMA_REQUESTS_MAX && ucma_can_create_id(listener);
}

void ucma_drop_event(struct ucma_file *file, struct ucma_event *event)
{
	struct ucma_ctx *child = event->child;
	struct ucma *u = file->ucma;
	struct ucma_file *later = NULL;

	ucma_event_cancel(file, event);
	if (!child)
		return;
	child->request = NULL;
	if (!file->ended && !u->ops->cma.has_room(u->ctx))
		later = ucma_ended_file(u, file->user);
	if (later)
		ucma_ctx_move(child, later);
	else
		ucma_ctx_destroy(child);
}

static void free_group(struct ucma_group *group)
{
	struct ucma *u = group->ctx->file->ucma;

	slot_file_drop(&u->store, group->slot);
	user_counts_drop(&u->groups, group->user);
	LIST_REMOVE(group, link);
	free(group);
}

void ucma_ctx_destroy(struct ucma_ctx *ctx)
{
	struct ucma_event *event;
	struct ucma_group *group;

	ucma_file_break_save(ctx->file);
	/* The program has not fetched the CONNECT_REQUEST of this ID, but may have guessed the ID's
	 * number and destroyed the ID. The event then names no ID. */
	if (ctx->request) {
		ctx->request->child = NULL;
		ucma_store_event(ctx->request);
		ucma_event_resend(ctx->request->ctx->file, ctx->request);
	}
	while ((event = TAILQ_FIRST(&ctx->events)))
		ucma_drop_event(ctx->file, event);
	while ((group = LIST_FIRST(&ctx->groups)))
		free_group(group);
	if (ctx->id)
		cma_destroy_id(ctx->id);
	if (ctx->dirty)
		LIST_REMOVE(ctx, dirty_link);
	slot_file_drop(&ctx->file->ucma->store, ctx->slot);
	LIST_REMOVE(ctx, link);
	count_ctx(ctx, ctx->file, -1);
	free(ctx);
}

void ucma_ctx_move(struct ucma_ctx *ctx, struct ucma_file *to)
{
	struct ucma_file *from = ctx->file;
	struct ucma_event *event;
	uint32_t n;

	if (from != to)
		ucma_file_break_save(from);
	LIST_REMOVE(ctx, link);
	count_ctx(ctx, from, -1);
	LIST_INSERT_HEAD(&to->ctxs, ctx, link);
	count_ctx(ctx, to, 1);
	ctx->file = to;
	ucma_store_mark_dirty(ctx);
	/* Always moves the first event: ucma_event_add appends it to the end of the same list, the
	 * ID's. */
	for (n = from == to ? 0 : ctx->n_events; n; n--) {
		event = TAILQ_FIRST(&ctx->events);
		ucma_event_withdraw(from, event);
		ucma_event_add(to, event);
	}
	/* The new IDs of queued requests move too, because the program will accept them on the
	 * other file. */
	TAILQ_FOREACH(event, &ctx->events, ctx_link)
	if (from != to && event->child && event->child->file == from)
		ucma_ctx_move(event->child, to);
}

/* --- Groups */

/* Returns whether a file of the process has a group with that number. MIGRATE_ID moves groups
 * between the files of a process, so a number must be unique in the process. */
static bool process_has_group(const struct ucma_file *file, uint32_t number)
{
	const struct ucma_file *other;

	LIST_FOREACH(other, &file->ucma->files, link)
	if (other->pid == file->pid && ucma_find_group(other, number))
		return true;
	return false;
}

/*
 * Returns a number that no group of the process has. Bit 31 marks the kernel's groups
 * (verbs/rdmacm/router.c), so the numbers wrap to 0 before it.
 */
static uint32_t next_group_number(const struct ucma_file *file)
{
	uint32_t number;

	do
		number = file->ucma->next_group++ & INT32_MAX;
	while (process_has_group(file, number));
	return number;
}

int ucma_group_add(struct ucma_ctx *ctx, uint32_t number, uint64_t uid, uint32_t events_reported,
		   uint32_t slot)
{
	struct ucma_group *group = calloc(1, sizeof(*group));
	const uid_t user = ctx->file->user;
	struct ucma *u = ctx->file->ucma;
	int rc = -ENOMEM;

	if (group)
		rc = slot == SLOT_FILE_NONE ? user_counts_take(&u->groups, user, UCMA_GROUPS)
					    : user_counts_add(&u->groups, user);
	if (rc) {
		free(group);
		return rc;
	}
	*group = (struct ucma_group){.ctx = ctx,
				     .user = user,
				     .number = number,
				     .uid = uid,
				     .events_reported = events_reported,
				     .slot = slot};
	LIST_INSERT_HEAD(&ctx->groups, group, link);
	if (u->next_group <= number)
		u->next_group = number + 1;
	if (slot == SLOT_FILE_NONE)
		ucma_store_group(group);
	return 0;
}

int ucma_group_join(struct ucma_ctx *ctx, uint64_t uid, const uint8_t mgid[16], uint32_t *number)
{
	struct ucma_event *event = calloc(1, sizeof(*event));
	int rc = -ENOMEM;

	*number = next_group_number(ctx->file);
	if (event)
		rc = ucma_group_add(ctx, *number, uid, 0, SLOT_FILE_NONE);
	if (rc) {
		free(event);
		return rc;
	}
	event->ctx = ctx;
	event->group = LIST_FIRST(&ctx->groups);
	ucma_fill_join(&event->resp, ctx->id, mgid);
	event->resp.uid = uid;
	event->resp.id = *number;
	ucma_event_add(ctx->file, event);
	return 0;
}

struct ucma_group *ucma_find_group(const struct ucma_file *file, uint32_t number)
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
	struct ucma_event *event, *next;

	for (event = TAILQ_FIRST(&group->ctx->events); event; event = next) {
		next = TAILQ_NEXT(event, ctx_link);
		if (event->group == group)
			ucma_drop_event(group->ctx->file, event);
	}
	free_group(group);
}

struct ucma_file *ucma_find_file(const struct ucma *u, uint64_t token)
{
	struct ucma_file *file;

	LIST_FOREACH(file, &u->files, link)
	if (file->event_fd >= 0 && file->token == token)
		return file;
	return NULL;
}

/* --- Callbacks of cma.h */

void ucma_on_event(struct cma_id *id, const struct cma_event *cma_event)
{
	struct ucma_ctx *ctx = id->ctx;
	struct ucma_event *event;

	ucma_store_mark_dirty(ctx);
	/* An ID gets its user context when the program accepts the request; before that, an event
	 * could not name the ID. */
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

bool ucma_on_request(struct cma_id *listener, struct cma_id *id, const struct cma_event *request)
{
	bool is_known = cm_channel(id->conn)->path.known;
	struct ucma_ctx *ctx = listener->ctx, *child;
	struct ucma_event *event;

	if (ctx->backlog <= (is_known ? 0 : ctx->reserve) || !can_take_request(ctx->file))
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
