/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Records the state of rdma_cm in a slot file, and restores it in the next daemon (ucma.h). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "urxed/cm/ucma.h"

#define FORMAT    "urxed rdma_cm 9"
#define NO_NUMBER UINT32_MAX

/* Values of saved.file.frozen; 0 = not frozen. */
enum { SAVED_FROZEN = 1, SAVED_RESTORING };

enum saved_type { SAVED_FILE = 1, SAVED_ID, SAVED_GROUP, SAVED_EVENT };

/* The content of a slot. Records refer to IDs and groups by number, and to files by token. */
struct saved {
	uint32_t type;
	uint32_t number; /* GROUP: its number; EVENT: its group's, or NO_NUMBER */
	uint64_t token;  /* FILE: its token; ID: its file's */
	union {
		struct {
			uint64_t start;
			int32_t pid;
			uint32_t user;
			uint8_t low_ports;
			uint8_t frozen;
			char name[PROCESS_NAME];
		} file;
		struct {
			struct cma_saved id;
			uint64_t uid;
			uint32_t events_reported;
			uint32_t backlog;
			uint32_t reserve;
		} id;
		struct {
			uint64_t uid;
			uint32_t id;
			uint32_t events_reported;
		} group;
		struct {
			uint64_t sequence;
			uint32_t id;
			uint32_t child;
			struct rdma_ucm_event_resp resp;
		} event;
	};
};
static_assert(sizeof(struct saved) <= SLOT_FILE_BYTES, "a record fits into a slot");

/* --- Writing */

static void write_record(struct ucma *u, uint32_t *slot, const struct saved *saved)
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
				       .low_ports = file->low_ports,
				       .frozen = file->frozen ? SAVED_FROZEN : 0}};

	if (file->restoring)
		saved.file.frozen = SAVED_RESTORING;
	memcpy(saved.file.name, file->name, sizeof(saved.file.name));
	write_record(file->ucma, &file->slot, &saved);
}

static void store_ctx(struct ucma_ctx *ctx)
{
	struct saved saved = {.type = SAVED_ID,
			      .token = ctx->file->token,
			      .id = {.uid = ctx->uid,
				     .events_reported = ctx->events_reported,
				     .backlog = ctx->backlog,
				     .reserve = ctx->reserve}};

	cma_save(ctx->id, &saved.id.id);
	write_record(ctx->file->ucma, &ctx->slot, &saved);
}

void ucma_store_group(struct ucma_group *group)
{
	const struct saved saved = {.type = SAVED_GROUP,
				    .number = group->number,
				    .group = {.uid = group->uid,
					      .id = group->ctx->id->number,
					      .events_reported = group->events_reported}};

	write_record(group->ctx->file->ucma, &group->slot, &saved);
}

void ucma_store_event(struct ucma_event *event)
{
	const struct saved saved = {
		.type = SAVED_EVENT,
		.number = event->group ? event->group->number : NO_NUMBER,
		.event = {.sequence = event->sequence,
			  .id = event->ctx->id->number,
			  .child = event->child ? event->child->id->number : NO_NUMBER,
			  .resp = event->resp}};

	write_record(event->ctx->file->ucma, &event->slot, &saved);
}

void ucma_store_mark_dirty(struct ucma_ctx *ctx)
{
	if (ctx->dirty)
		return;
	ctx->dirty = true;
	LIST_INSERT_HEAD(&ctx->file->ucma->dirty, ctx, dirty_link);
}

uint64_t ucma_store_write_dirty(struct ucma *u)
{
	struct ucma_ctx *ctx;

	while ((ctx = LIST_FIRST(&u->dirty))) {
		LIST_REMOVE(ctx, dirty_link);
		ctx->dirty = false;
		store_ctx(ctx);
	}
	return slot_file_tick(&u->store, u->cma.now);
}

/* --- Restoring */

/* Returns 0, or a negative errno value after which the caller drops the record. */
typedef int restore_fn(struct ucma *u, uint32_t slot, const struct saved *saved);

static int restore_file(struct ucma *u, uint32_t slot, const struct saved *saved)
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
	file->frozen = saved->file.frozen;
	file->restoring = saved->file.frozen == SAVED_RESTORING;
	memcpy(file->name, saved->file.name, sizeof(file->name) - 1);
	return 0;
}

static struct ucma_file *find_restored_file(const struct ucma *u, uint64_t token)
{
	struct ucma_file *file;

	LIST_FOREACH(file, &u->files, link)
	if (file->token == token)
		break;
	return file;
}

static int restore_ctx(struct ucma *u, uint32_t slot, const struct saved *saved)
{
	struct ucma_file *file = find_restored_file(u, saved->token);
	struct ucma_ctx *ctx = file ? ucma_ctx_new(file, saved->id.uid) : NULL;
	struct cma_saved id = saved->id.id;
	int rc;

	if (!ctx)
		return -ENOENT;
	/* The file's record tells whether the ID is frozen, because freezing and thawing write only
	 * that record. */
	id.id.frozen = file->frozen;
	rc = cma_restore(&u->cma, &id, false, ctx, &ctx->id);
	if (rc) {
		ucma_ctx_destroy(ctx);
		return rc;
	}
	ctx->slot = slot;
	ctx->events_reported = saved->id.events_reported;
	ctx->backlog = saved->id.backlog;
	ctx->reserve = saved->id.reserve;
	return 0;
}

static struct ucma_ctx *find_restored_ctx(const struct ucma *u, uint32_t number)
{
	const struct cma_id *id = cma_find_id(&u->cma, number);

	return id ? id->ctx : NULL;
}

static int restore_group(struct ucma *u, uint32_t slot, const struct saved *saved)
{
	struct ucma_ctx *ctx = find_restored_ctx(u, saved->group.id);

	return ctx ? ucma_group_add(ctx, saved->number, saved->group.uid,
				    saved->group.events_reported, slot)
		   : -ENOENT;
}

static int restore_event(struct ucma *u, uint32_t slot, const struct saved *saved)
{
	struct ucma_ctx *ctx = find_restored_ctx(u, saved->event.id),
			*child = find_restored_ctx(u, saved->event.child);
	bool whole = ctx && (child || saved->event.child == NO_NUMBER);
	struct ucma_event *event = whole ? calloc(1, sizeof(*event)) : NULL;

	if (!event)
		return -ENOENT;
	*event = (struct ucma_event){.ctx = ctx,
				     .group = ucma_find_group(ctx->file, saved->number),
				     .child = child,
				     .resp = saved->event.resp,
				     .sequence = saved->event.sequence,
				     .slot = slot};
	if (child)
		child->request = event;
	ucma_event_restore(ctx->file, event);
	if (u->next_sequence <= event->sequence)
		u->next_sequence = event->sequence + 1;
	return 0;
}

/* Restores the records of a type, and drops those that it cannot restore. For SAVED_FILE, which is
 * the first type, it also drops the unreadable records of all types. */
static void restore_records(struct ucma *u, uint32_t type, restore_fn *one)
{
	struct saved saved;
	uint32_t slot;
	int rc;

	for (slot = 0; (rc = slot_file_get(&u->store, slot, &saved, sizeof(saved))) != -ENODATA;
	     slot++)
		if (rc ? type == SAVED_FILE : saved.type == type && one(u, slot, &saved))
			slot_file_drop(&u->store, slot);
}

int ucma_store_open(struct ucma *u, const char *run_dir)
{
	int rc = slot_file_open(&u->store, run_dir, UCMA_STORE_NAME, FORMAT);

	if (rc)
		return rc;
	restore_records(u, SAVED_FILE, restore_file);
	restore_records(u, SAVED_ID, restore_ctx);
	restore_records(u, SAVED_GROUP, restore_group);
	restore_records(u, SAVED_EVENT, restore_event);
	return 0;
}

void ucma_store_close(struct ucma *u, const char *run_dir)
{
	(void)ucma_store_write_dirty(u);
	slot_file_close(&u->store, run_dir, UCMA_STORE_NAME, !LIST_EMPTY(&u->files));
}
