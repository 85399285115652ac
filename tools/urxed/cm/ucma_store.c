/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "urxed/cm/ucma.h"

#define FORMAT "urxed rdma_cm 2"
#define NOBODY UINT32_MAX /* no number */

enum saved_type { SAVED_FILE = 1, SAVED_ID, SAVED_GROUP, SAVED_EVENT };

/* Of one another they know by their numbers, of files by the token. */
struct saved {
	uint32_t type;
	uint32_t number; /* GROUP: its own; EVENT: of its group */
	uint64_t token;  /* FILE: its own; ID: of its file */
	union {
		struct {
			uint64_t start;
			int32_t pid;
			uint32_t user;
			uint8_t low_ports;
			char name[PROCESS_NAME];
		} file;
		struct {
			struct cma_saved id;
			uint64_t uid;
			uint32_t events_reported;
			uint32_t backlog;
		} id;
		struct {
			uint64_t uid;
			uint32_t id;
			uint32_t events_reported;
		} group;
		struct {
			uint64_t order;
			uint32_t id;
			uint32_t child;
			struct rdma_ucm_event_resp resp;
		} event;
	};
};
static_assert(sizeof(struct saved) <= SLOT_FILE_BYTES, "it has a place");

/* --- To the record */

static void put(struct ucma *u, uint32_t *slot, const struct saved *saved)
{
	*slot = slot_file_put(&u->store, *slot, saved, sizeof(*saved));
}

void ucma_store_file(struct ucma_file *file)
{
	struct saved saved = {.type = SAVED_FILE,
			      .token = file->token,
			      .file = {.start = file->start,
				       .pid = file->pid,
				       .user = file->user,
				       .low_ports = file->low_ports}};

	memcpy(saved.file.name, file->name, sizeof(saved.file.name));
	put(file->ucma, &file->slot, &saved);
}

static void record_ctx(struct ucma_ctx *ctx)
{
	struct saved saved = {.type = SAVED_ID,
			      .token = ctx->file->token,
			      .id = {.uid = ctx->uid,
				     .events_reported = ctx->events_reported,
				     .backlog = ctx->backlog}};

	cma_save(ctx->id, &saved.id.id);
	put(ctx->file->ucma, &ctx->slot, &saved);
}

void ucma_store_group(struct ucma_group *group)
{
	const struct saved saved = {.type = SAVED_GROUP,
				    .number = group->number,
				    .group = {.uid = group->uid,
					      .id = group->ctx->id->number,
					      .events_reported = group->events_reported}};

	put(group->ctx->file->ucma, &group->slot, &saved);
}

void ucma_store_event(struct ucma_event *event)
{
	const struct saved saved = {
		.type = SAVED_EVENT,
		.number = event->group ? event->group->number : NOBODY,
		.event = {.order = event->order,
			  .id = event->ctx->id->number,
			  .child = event->child ? event->child->id->number : NOBODY,
			  .resp = event->resp}};

	put(event->ctx->file->ucma, &event->slot, &saved);
}

void ucma_store_mark_dirty(struct ucma_ctx *ctx)
{
	if (ctx->dirty)
		return;
	ctx->dirty = true;
	LIST_INSERT_HEAD(&ctx->file->ucma->dirty, ctx, dirty_link);
}

void ucma_store_write_dirty(struct ucma *u)
{
	struct ucma_ctx *ctx;

	while ((ctx = LIST_FIRST(&u->dirty))) {
		LIST_REMOVE(ctx, dirty_link);
		ctx->dirty = false;
		record_ctx(ctx);
	}
}

/* --- From the record */

/* 0, or a negative errno value: it is of no use. */
typedef int recall_fn(struct ucma *u, uint32_t slot, const struct saved *saved);

static int recall_file(struct ucma *u, uint32_t slot, const struct saved *saved)
{
	struct ucma_file *file = ucma_file_new(u);

	if (!file)
		return -ENOMEM;
	file->slot = slot;
	file->token = saved->token;
	file->start = saved->file.start;
	file->pid = saved->file.pid;
	file->user = saved->file.user;
	file->low_ports = saved->file.low_ports;
	memcpy(file->name, saved->file.name, sizeof(file->name) - 1);
	return 0;
}

static struct ucma_file *file_of(const struct ucma *u, uint64_t token)
{
	struct ucma_file *file;

	LIST_FOREACH(file, &u->files, link)
	if (file->token == token)
		break;
	return file;
}

static int recall_ctx(struct ucma *u, uint32_t slot, const struct saved *saved)
{
	struct ucma_file *file = file_of(u, saved->token);
	struct ucma_ctx *ctx = file ? ucma_ctx_new(file, saved->id.uid) : NULL;
	int rc;

	if (!ctx)
		return -ENOENT;
	rc = cma_restore(&u->cma, &saved->id.id, ctx, &ctx->id);
	if (rc) {
		ucma_ctx_destroy(ctx);
		return rc;
	}
	ctx->slot = slot;
	ctx->events_reported = saved->id.events_reported;
	ctx->backlog = saved->id.backlog;
	return 0;
}

static struct ucma_ctx *ctx_of(const struct ucma *u, uint32_t number)
{
	const struct cma_id *id = cma_find(&u->cma, number);

	return id ? id->ctx : NULL;
}

static int recall_group(struct ucma *u, uint32_t slot, const struct saved *saved)
{
	struct ucma_ctx *ctx = ctx_of(u, saved->group.id);
	struct ucma_group *group = ctx ? calloc(1, sizeof(*group)) : NULL;

	if (!group)
		return -ENOENT;
	*group = (struct ucma_group){.ctx = ctx,
				     .number = saved->number,
				     .uid = saved->group.uid,
				     .events_reported = saved->group.events_reported,
				     .slot = slot};
	LIST_INSERT_HEAD(&ctx->groups, group, link);
	if (u->last_group <= group->number)
		u->last_group = group->number + 1;
	return 0;
}

/* Behind those that were there before it. */
static void insert(struct ucma_file *file, struct ucma_event *event)
{
	struct ucma_event *before = TAILQ_LAST(&file->events, ucma_event_list);

	while (before && before->order > event->order)
		before = TAILQ_PREV(before, ucma_event_list, link);
	if (before)
		TAILQ_INSERT_AFTER(&file->events, before, event, link);
	else
		TAILQ_INSERT_HEAD(&file->events, event, link);
	file->unsent = TAILQ_FIRST(&file->events);
}

static int recall_event(struct ucma *u, uint32_t slot, const struct saved *saved)
{
	struct ucma_ctx *ctx = ctx_of(u, saved->event.id), *child = ctx_of(u, saved->event.child);
	bool whole = ctx && (child || saved->event.child == NOBODY);
	struct ucma_event *event = whole ? calloc(1, sizeof(*event)) : NULL;

	if (!event)
		return -ENOENT;
	*event = (struct ucma_event){.ctx = ctx,
				     .group = ucma_group_find(ctx->file, saved->number),
				     .child = child,
				     .resp = saved->event.resp,
				     .order = saved->event.order,
				     .slot = slot};
	if (child)
		child->request = event;
	ctx->events++;
	insert(ctx->file, event);
	if (u->last_event <= event->order)
		u->last_event = event->order + 1;
	return 0;
}

static void recall(struct ucma *u, uint32_t type, recall_fn *one)
{
	struct saved saved;
	uint32_t slot;
	int rc;

	for (slot = 0; (rc = slot_file_get(&u->store, slot, &saved, sizeof(saved))) != -ENODATA;
	     slot++)
		if (!rc && saved.type == type && one(u, slot, &saved))
			slot_file_drop(&u->store, slot);
}

static void drop_unused(struct ucma *u)
{
	struct saved saved;
	uint32_t slot;
	int rc;

	for (slot = 0; (rc = slot_file_get(&u->store, slot, &saved, sizeof(saved))) != -ENODATA;
	     slot++)
		if (rc)
			slot_file_drop(&u->store, slot);
}

int ucma_store_open(struct ucma *u, const char *run_dir)
{
	int rc = slot_file_open(&u->store, run_dir, UCMA_STORE_NAME, FORMAT);

	if (rc)
		return rc;
	drop_unused(u);
	recall(u, SAVED_FILE, recall_file);
	recall(u, SAVED_ID, recall_ctx);
	recall(u, SAVED_GROUP, recall_group);
	recall(u, SAVED_EVENT, recall_event);
	return 0;
}

void ucma_store_close(struct ucma *u, const char *run_dir)
{
	ucma_store_write_dirty(u);
	slot_file_close(&u->store, run_dir, UCMA_STORE_NAME, !LIST_EMPTY(&u->files));
}
