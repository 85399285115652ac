/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "object.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/pvrdma_mr.h"
#include "queues/pvrdma_cq.h"
#include "queues/pvrdma_qp.h"
#include "queues/pvrdma_srq.h"

/* The lowest handle of a kind, and the highest plus 1. Context handle 0 means the kernel. */
static const struct {
	uint32_t first, limit;
} handles[PV_KINDS] = {
	[PV_UC] = {1, PVRDMA_UAR_PAGES}, [PV_PD] = {0, PV_MAX_PD}, [PV_MR] = {0, PV_MAX_MR},
	[PV_CQ] = {0, PV_MAX_CQ},        [PV_QP] = {0, PV_MAX_QP}, [PV_SRQ] = {0, PV_MAX_SRQ},
};

void pv_objects_init(struct pvrdma *dev)
{
	for (unsigned kind = 0; kind < PV_KINDS; kind++)
		pv_handles_init(&dev->objects[kind], handles[kind].first, handles[kind].limit);
}

int pv_object_add(struct pvrdma *dev, struct pv_object *object, enum pv_kind kind,
		  uint32_t uar_page, uint64_t bytes)
{
	int rc;

	if (bytes > PV_MEMORY_MAX - dev->bytes)
		return -ENOMEM;
	*object =
		(struct pv_object){.dev = dev, .kind = kind, .uar_page = uar_page, .bytes = bytes};
	rc = pv_handles_add(&dev->objects[kind], object, &object->handle);
	if (!rc)
		dev->bytes += bytes;
	return rc;
}

void pv_object_remove(struct pv_object *object)
{
	if (object->due_events)
		TAILQ_REMOVE(&object->dev->event_objects, object, event_link);
	pv_handles_remove(&object->dev->objects[object->kind], object->handle);
	object->dev->bytes -= object->bytes;
}

void *pv_object_find(const struct pvrdma *dev, enum pv_kind kind, uint32_t handle)
{
	return pv_handles_find(&dev->objects[kind], handle);
}

void *pv_object_next(const struct pvrdma *dev, enum pv_kind kind, uint32_t *at)
{
	return pv_handles_next(&dev->objects[kind], at);
}

static void close_pd(struct pv_pd *pd)
{
	if (pd->uc)
		pd->uc->users--;
	pv_object_remove(&pd->object);
	free(pd);
}

static void close_object(struct pv_object *object)
{
	switch (object->kind) {
	case PV_QP: pv_qp_close((struct pv_qp *)object); break;
	case PV_SRQ: pv_srq_close((struct pv_srq *)object); break;
	case PV_CQ: pv_cq_close((struct pv_cq *)object); break;
	case PV_MR: pv_mr_close((struct pv_mr *)object); break;
	case PV_PD: close_pd((struct pv_pd *)object); break;
	default: pv_object_remove(object); free(object);
	}
}

/* Users before the objects that they use. */
static const enum pv_kind closing_order[PV_KINDS] = {PV_QP, PV_SRQ, PV_CQ, PV_MR, PV_PD, PV_UC};

static bool uses(const struct pv_object *user, const void *object)
{
	const struct pv_qp *qp = (const struct pv_qp *)user;

	switch (user->kind) {
	case PV_QP:
		return qp->pd == object || qp->send_cq == object || qp->recv_cq == object ||
		       qp->srq == object;
	case PV_SRQ: return ((const struct pv_srq *)user)->pd == object;
	case PV_MR: return ((const struct pv_mr *)user)->pd == object;
	case PV_CQ: return ((const struct pv_cq *)user)->uc == object;
	case PV_PD: return ((const struct pv_pd *)user)->uc == object;
	default: return false;
	}
}

/* Closes the objects that use this one, then the object. The users of an object are of other kinds,
 * so at most four calls are nested: for example for a context, its PD, an SRQ of the PD, and a QP
 * that uses the SRQ. */
static void close_with_users(struct pv_object *object)
{
	for (unsigned i = 0; i < PV_KINDS && object->users; i++) {
		struct pv_object *user;
		uint32_t at = 0;

		while (object->users && (user = pv_object_next(object->dev, closing_order[i], &at)))
			if (uses(user, object))
				close_with_users(user);
	}
	close_object(object);
}

int pv_object_destroy(struct pvrdma *dev, enum pv_kind kind, uint32_t handle)
{
	struct pv_object *object = pv_object_find(dev, kind, handle);

	if (!object)
		return -ENOENT;
	close_with_users(object);
	return 0;
}

void pv_objects_close(struct pvrdma *dev)
{
	for (unsigned i = 0; i < PV_KINDS; i++) {
		struct pv_object *object;
		uint32_t at = 0;

		while ((object = pv_object_next(dev, closing_order[i], &at)))
			close_object(object);
		pv_handles_free(&dev->objects[closing_order[i]]);
	}
}
