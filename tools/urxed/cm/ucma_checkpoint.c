/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The commands by which liburxe.so saves a program that is to go on here or on another host: they
 * freeze its rdma_cm device, return the device's records, and make a device from records
 * (cm/attach_protocol.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/unix_packet.h"
#include "urxed/cm/ucma.h"
#include "urxed/cm/ucma_record.h"

/* --- Freezing. */

void ucma_file_freeze(struct ucma_file *file)
{
	struct ucma_ctx *ctx;

	file->frozen = true;
	file->save_cursor = (struct ucma_save_cursor){0};
	LIST_FOREACH(ctx, &file->ctxs, link)
	cma_freeze(ctx->id);
	ucma_store_file(file);
}

void ucma_file_thaw(struct ucma_file *file)
{
	struct ucma_ctx *ctx;

	if (!file->frozen)
		return;
	file->frozen = file->restoring = false;
	LIST_FOREACH(ctx, &file->ctxs, link)
	cma_thaw(ctx->id);
	ucma_store_file(file);
	ucma_events_queue_send(file);
}

static int freeze_file(struct ucma_command *c)
{
	if (c->file->frozen)
		return -EALREADY;
	ucma_file_freeze(c->file);
	return 0;
}

static int thaw_file(struct ucma_command *c)
{
	ucma_file_thaw(c->file);
	return 0;
}

/*
 * --- Saving. Meanwhile the lists of a frozen file change only if an ID is destroyed, or moves to
 * an ended file to be destroyed. That happens to the new ID of a request if the process destroys
 * the request's listener, which is in another file.
 */

void ucma_file_break_save(struct ucma_file *file)
{
	if (file->save_cursor.kind && file->save_cursor.kind != UCMA_SAVE_COMPLETE)
		file->save_cursor = (struct ucma_save_cursor){.kind = UCMA_SAVE_BROKEN};
}

static bool next_ctx(const struct ucma_file *file, struct ucma_save_cursor *at)
{
	at->ctx = at->kind == UCMA_RECORD_ID ? LIST_NEXT(at->ctx, link) : LIST_FIRST(&file->ctxs);
	at->kind = UCMA_RECORD_ID;
	return at->ctx;
}

static bool next_group(const struct ucma_file *file, struct ucma_save_cursor *at)
{
	if (at->kind == UCMA_RECORD_GROUP) {
		at->group = LIST_NEXT(at->group, link);
	} else {
		at->ctx = LIST_FIRST(&file->ctxs);
		at->group = at->ctx ? LIST_FIRST(&at->ctx->groups) : NULL;
	}
	at->kind = UCMA_RECORD_GROUP;
	while (!at->group && at->ctx) {
		at->ctx = LIST_NEXT(at->ctx, link);
		at->group = at->ctx ? LIST_FIRST(&at->ctx->groups) : NULL;
	}
	return at->group;
}

/* Moves the cursor to the next event; returns false if none is left. Omits cancelled events, whose
 * IDs are gone. */
static bool next_event(const struct ucma_file *file, struct ucma_save_cursor *at)
{
	at->event = at->kind == UCMA_RECORD_EVENT ? TAILQ_NEXT(at->event, link)
						  : TAILQ_FIRST(&file->events);
	at->kind = UCMA_RECORD_EVENT;
	while (at->event && at->event->cancelled)
		at->event = TAILQ_NEXT(at->event, link);
	return at->event;
}

static bool owns_qpn(const struct ucma_file *file, uint32_t qpn)
{
	const struct ucma *u = file->ucma;

	return !qpn || u->ops->may_name_qpn(u->ctx, file->pid, file->user, qpn);
}

/* Clears a QPN that the process may no longer name, because the HCA had chosen it for a queue pair
 * that the program has destroyed. The restored program does not have the queue pair, either. */
static void forget_foreign_qpn(const struct ucma_file *file, uint32_t *qpn)
{
	if (!owns_qpn(file, *qpn))
		*qpn = 0;
}

static void fill_id(struct ucma_record *r, const struct ucma_ctx *ctx)
{
	const struct cma_id *id = ctx->id;
	const struct host_address *own = cma_own_address(id);

	cma_save(id, &r->id.saved);
	forget_foreign_qpn(ctx->file, &r->id.saved.id.qpn);
	forget_foreign_qpn(ctx->file, &r->id.saved.conn.local_qpn);
	if (own)
		memcpy(r->id.own, own->ip, sizeof(r->id.own));
	r->id.uid = ctx->uid;
	r->id.events_reported = ctx->events_reported;
	r->id.backlog = ctx->backlog;
	r->id.reserve = ctx->reserve;
}

static void fill_group(struct ucma_record *r, const struct ucma_group *group)
{
	r->group.number = group->number;
	r->group.id = group->ctx->id->number;
	r->group.uid = group->uid;
	r->group.events_reported = group->events_reported;
}

/* Fills the record of an event. If the program has accepted the event's request before it fetched
 * the event, the record names no new ID. */
static void fill_event(struct ucma_record *r, const struct ucma_event *event)
{
	const struct ucma_ctx *child = event->child;

	r->event.id = event->ctx->id->number;
	r->event.child = child && !child->uid ? child->id->number : UCMA_NO_NUMBER;
	r->event.group = event->group ? event->group->number : UCMA_NO_NUMBER;
	r->event.resp = event->resp;
}

/* Fills the file's next record. Returns false if all records have been saved. */
static bool fill_next(struct ucma_file *file, struct ucma_record *r)
{
	struct ucma_save_cursor *at = &file->save_cursor;

	if (!at->kind) {
		at->kind = UCMA_RECORD_FILE;
		r->file.token = file->token;
	} else if (at->kind <= UCMA_RECORD_ID && next_ctx(file, at)) {
		fill_id(r, at->ctx);
	} else if (at->kind <= UCMA_RECORD_GROUP && next_group(file, at)) {
		fill_group(r, at->group);
	} else if (at->kind <= UCMA_RECORD_EVENT && next_event(file, at)) {
		fill_event(r, at->event);
	} else {
		at->kind = UCMA_SAVE_COMPLETE;
		return false;
	}
	r->kind = at->kind;
	return true;
}

static int save(struct ucma_command *c)
{
	struct ucma_record record = {0};

	if (!c->file->frozen || c->file->restoring)
		return -EINVAL;
	if (c->out_size < CM_ATTACH_BYTES)
		return -ENOSPC;
	if (c->file->save_cursor.kind == UCMA_SAVE_BROKEN)
		return -EBUSY;
	if (!fill_next(c->file, &record))
		return 0;
	c->out_len = ucma_record_write(&record, c->out);
	if (c->out_len)
		return 0;
	ucma_file_break_save(c->file);
	return -EOVERFLOW;
}

/* --- Restoring. */

static struct ucma_ctx *find_ctx(const struct ucma_file *file, uint32_t number)
{
	struct cma_id *id = cma_find_id(&file->ucma->cma, number);
	struct ucma_ctx *ctx = id ? id->ctx : NULL;

	return ctx && ctx->file == file ? ctx : NULL;
}

/*
 * Freezes the file, and gives it the token of the saved file. If this daemon still keeps the saved
 * file itself, perhaps from before several migrations, destroys that one first, because the new
 * file restores the same IDs. Returns -EBADMSG if the new file is already in use or the record has
 * no token, -EPERM if the program is not trusted, or -EEXIST if the saved program still uses the
 * saved file.
 */
static int restore_file(struct ucma_file *file, const struct ucma_record *r)
{
	struct ucma_file *other;

	if (file->frozen || file->n_ctxs || file->n_events || !r->file.token)
		return -EBADMSG;
	/* An untrusted program must not choose the peers' addresses and the MAD in a connection's
	 * record, because the daemon repeats that MAD. */
	if (!unix_packet_peer_is_trusted(file->fd))
		return -EPERM;
	LIST_FOREACH(other, &file->ucma->files, link)
	if (other != file && !other->ended && other->token == r->file.token)
		break;
	if (other && !ucma_file_awaits_restoration(other))
		return -EEXIST;
	if (other)
		ucma_file_forget(other);
	file->token = r->file.token;
	file->restoring = true;
	ucma_file_freeze(file);
	return 0;
}

static int check_id(const struct ucma_file *file, const struct ucma_record *r)
{
	const struct host *host = file->ucma->cma.host;
	const struct cma_saved *saved = &r->id.saved;
	const struct cm_path *path = &saved->conn.channel.path;

	if (saved->id.has_device && !host_has_gid(host, saved->id.sgid_index, r->id.own))
		return -EADDRNOTAVAIL;
	if (saved->connected && !host_has_gid(host, path->sgid_index, path->sgid))
		return -EADDRNOTAVAIL;
	if (saved->id.src.ps && saved->id.src.addr.port < CMA_PORT_UNPRIVILEGED && !file->low_ports)
		return -EACCES;
	if (!owns_qpn(file, saved->id.qpn) || !owns_qpn(file, saved->conn.local_qpn))
		return -EBADMSG;
	return ucma_can_create_id(file) ? 0 : -ENOSPC;
}

static int restore_id(struct ucma_file *file, const struct ucma_record *r)
{
	struct cma_saved saved = r->id.saved;
	struct ucma_ctx *ctx;
	int rc = check_id(file, r);

	if (rc)
		return rc;
	ctx = ucma_ctx_new(file, r->id.uid);
	if (!ctx)
		return -ENOMEM;
	saved.id.user = file->user;
	saved.id.low_ports = file->low_ports;
	saved.id.src.restorer = file->pid;
	rc = cma_restore(&file->ucma->cma, &saved, true, ctx, &ctx->id);
	if (rc) {
		ucma_ctx_destroy(ctx);
		return rc;
	}
	ctx->events_reported = r->id.events_reported;
	ctx->backlog = r->id.backlog;
	ctx->reserve = r->id.reserve;
	return 0;
}

static int restore_group(struct ucma_file *file, const struct ucma_record *r)
{
	struct ucma_ctx *ctx = find_ctx(file, r->group.id);

	if (!ctx || ucma_find_group(file, r->group.number))
		return -EBADMSG;
	return ucma_group_add(ctx, r->group.number, r->group.uid, r->group.events_reported,
			      SLOT_FILE_NONE);
}

/* Returns the ID with that number, of this file or of another one that the same process restores;
 * NULL: there is none. */
static struct ucma_ctx *find_process_ctx(const struct ucma_file *file, uint32_t number)
{
	struct cma_id *id = cma_find_id(&file->ucma->cma, number);
	struct ucma_ctx *ctx = id ? id->ctx : NULL;

	return ctx && ctx->file->restoring && ctx->file->pid == file->pid ? ctx : NULL;
}

/* Returns true if the ID is that of a request not yet accepted, and no other restored event reports
 * the ID. */
static bool is_child(const struct ucma_ctx *child)
{
	return child && !child->uid && !child->request;
}

static int restore_event(struct ucma_file *file, const struct ucma_record *r)
{
	struct ucma_ctx *ctx = find_ctx(file, r->event.id), *child = NULL;
	struct ucma_group *group = NULL;
	struct ucma_event *event;

	if (r->event.child != UCMA_NO_NUMBER) {
		child = find_process_ctx(file, r->event.child);
		if (!is_child(child) || child == ctx)
			return -EBADMSG;
	}
	if (r->event.group != UCMA_NO_NUMBER)
		group = ucma_find_group(file, r->event.group);
	if (!ctx || (r->event.group != UCMA_NO_NUMBER && (!group || group->ctx != ctx)))
		return -EBADMSG;
	if (!ucma_can_queue_event(file))
		return -ENOSPC;
	event = calloc(1, sizeof(*event));
	if (!event)
		return -ENOMEM;
	event->ctx = ctx;
	event->group = group;
	event->child = child;
	event->resp = r->event.resp;
	if (child)
		child->request = event;
	ucma_event_add(file, event);
	return 0;
}

static int restore(struct ucma_command *c)
{
	struct ucma_record record;
	int rc = ucma_record_read(&record, c->in, c->in_size);

	if (rc)
		return rc;
	if (record.kind == UCMA_RECORD_FILE) {
		rc = restore_file(c->file, &record);
		c->out_len = !rc && c->out_size >= sizeof(uint64_t) ? sizeof(uint64_t) : 0;
		memcpy(c->out, &c->file->token, c->out_len);
		return rc;
	}
	if (!c->file->restoring)
		return -EBADMSG;
	switch (record.kind) {
	case UCMA_RECORD_ID: return restore_id(c->file, &record);
	case UCMA_RECORD_GROUP: return restore_group(c->file, &record);
	default: return restore_event(c->file, &record);
	}
}

int ucma_run_checkpoint(struct ucma_command *c)
{
	switch (c->number) {
	case CM_ATTACH_FREEZE: return freeze_file(c);
	case CM_ATTACH_SAVE: return save(c);
	case CM_ATTACH_RESTORE: return restore(c);
	case CM_ATTACH_THAW: return thaw_file(c);
	default: return -EINVAL;
	}
}
