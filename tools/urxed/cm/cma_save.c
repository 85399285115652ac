/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copies an rdma_cm ID into a record for the next daemon or another host, restores an ID from a
 * record, and freezes and thaws IDs (cma.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "urxed/cm/cma.h"

void cma_save(const struct cma_id *id, struct cma_saved *saved)
{
	memset(saved, 0, sizeof(*saved));
	saved->id = *id;
	saved->id.cma = NULL;
	saved->id.ctx = NULL;
	saved->id.conn = NULL;
	memset(&saved->id.src.link, 0, sizeof(saved->id.src.link));
	memset(&saved->id.waiter, 0, sizeof(saved->id.waiter));
	memset(&saved->id.wait_link, 0, sizeof(saved->id.wait_link));
	saved->id.waiting = false;
	saved->connected = id->conn;
	if (id->conn)
		cm_save(id->conn, &saved->conn);
}

static bool is_valid(const struct cma_id *id)
{
	return id->number < CMA_IDS && id->state <= CMA_LISTEN && id->service <= CMA_UD &&
	       id->sgid_index < VNIC_ATTACH_GIDS;
}

void cma_freeze(struct cma_id *id)
{
	cma_cancel_resolve(id);
	if (id->conn)
		cm_freeze(id->conn);
	id->frozen = true;
}

void cma_thaw(struct cma_id *id)
{
	id->frozen = false;
	id->src.restorer = 0;
	if (id->conn)
		cm_thaw(id->conn, id->cma->now);
	cma_restart_resolve(id);
}

/* Returns NULL if memory is lacking. */
static struct cma_id *copy_id(struct cma *cma, const struct cma_saved *saved, void *ctx)
{
	struct cma_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	*id = saved->id;
	id->cma = cma;
	id->ctx = ctx;
	return id;
}

/* Enters an ID, which already has its port, into the table, and restores its connection. On error
 * it frees the ID and releases the port. */
static int add_id(struct cma_id *id, const struct cma_saved *saved, bool frozen)
{
	struct cma *cma = id->cma;
	int rc = 0;

	if (saved->connected)
		rc = cm_restore(cma->cm, cma->now, &saved->conn, frozen, id, &id->conn);
	if (rc) {
		cma_port_release(&cma->ports, &id->src);
		free(id);
		return rc;
	}
	cma->ids[id->number] = id;
	if (frozen)
		cma_freeze(id);
	return 0;
}

/*
 * Binds the ID of a saved program to its port, and makes it a listener if it was one. Checks for
 * conflicts as for a new bind, unlike cma_port_restore, because another process may have bound the
 * port since. If cma_port_bind fails, the ID stays unbound.
 */
static int bind_again(struct cma_id *id)
{
	struct cma_binding *src = &id->src;
	uint16_t ps = src->ps;
	bool listening = src->listening;
	int rc;

	src->ps = 0;
	src->own_index = id->sgid_index;
	src->listening = false;
	if (!ps)
		return 0;
	rc = cma_port_bind(&id->cma->ports, src, ps, id->user);
	if (!rc && listening)
		rc = cma_port_listen(&id->cma->ports, src);
	if (rc)
		cma_port_release(&id->cma->ports, src);
	return rc;
}

int cma_restore(struct cma *cma, const struct cma_saved *saved, bool again, void *ctx,
		struct cma_id **out)
{
	struct cma_id *id;
	int rc;

	if (!is_valid(&saved->id))
		return -EINVAL;
	if (cma->ids[saved->id.number])
		return -EEXIST;
	id = copy_id(cma, saved, ctx);
	if (!id)
		return -ENOMEM;
	rc = again ? bind_again(id) : cma_port_restore(&cma->ports, &id->src);
	if (rc)
		free(id);
	else
		rc = add_id(id, saved, again || saved->id.frozen);
	if (!rc)
		*out = id;
	return rc;
}
