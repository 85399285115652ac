/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copies an rdma_cm ID into a record for the next daemon, and restores it from one (cma.h). */
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
	       id->sgid_index < HOST_ADDRESSES;
}

int cma_restore(struct cma *cma, const struct cma_saved *saved, void *ctx, struct cma_id **out)
{
	struct cma_id *id;
	int rc = 0;

	if (!is_valid(&saved->id))
		return -EINVAL;
	if (cma->ids[saved->id.number])
		return -EBUSY;
	id = calloc(1, sizeof(*id));
	if (!id)
		return -ENOMEM;
	*id = saved->id;
	id->cma = cma;
	id->ctx = ctx;
	rc = cma_port_restore(&cma->ports, &id->src);
	if (!rc && saved->connected)
		rc = cm_restore(cma->cm, cma->now, &saved->conn, id, &id->conn);
	if (rc) {
		cma_port_release(&cma->ports, &id->src);
		free(id);
		return rc;
	}
	cma->ids[id->number] = id;
	*out = id;
	return 0;
}
