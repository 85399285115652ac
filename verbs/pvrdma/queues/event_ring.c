/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/event_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/page_dir.h"
#include "pvrdma_device.h"

/*
 * The driver's ring has slots for all its pages but one. In Linux' driver their number is no power
 * of two, but the driver wraps an index by the mask 2 * slots - 1, and takes the slot by the mask
 * slots - 1 (pvrdma_ring.h). So it uses only a power of two of slots: the number's lowest set bit.
 */
static uint32_t usable_slots(uint32_t slots)
{
	return slots & -slots;
}

void pv_event_ring_lay_out(struct pvrdma *dev, struct pv_event_ring *events, uint32_t element)
{
	pv_ring_init(&events->ring, dev->attr.memory, &pv_pages_header(&events->pages)->rx,
		     events->pages.page + 1,
		     usable_slots((events->pages.n - 1) * (PV_PAGE / element)), element);
}

int pv_event_ring_open(struct pvrdma *dev, struct pv_event_ring *events,
		       const struct pv_ring_page_info *info, uint32_t element)
{
	struct pv_pages pages;
	int rc;

	if (info->num_pages < 2 || info->num_pages > PV_EVENT_RING_PAGES)
		return -EINVAL;
	rc = pv_pages_open(&pages, dev->attr.memory, info->pdir_dma, info->num_pages,
			   info->num_pages);
	if (rc)
		return rc;
	*events = (struct pv_event_ring){.pages = pages};
	pv_event_ring_lay_out(dev, events, element);
	return 0;
}

void pv_event_ring_close(struct pv_event_ring *events)
{
	free(events->pages.page);
	*events = (struct pv_event_ring){0};
}

static bool add_element(struct pvrdma *dev, struct pv_event_ring *events, const void *element)
{
	struct pv_ring *ring = &events->ring;
	uint32_t unread;

	if (!ring->indices || dev->no_master)
		return false;
	if (!pv_ring_unread(ring, &unread)) {
		pv_count(dev, PVRDMA_RING_BAD);
		return false;
	}
	if (unread == ring->slots)
		return false;
	memcpy(pv_ring_slot(ring, ring->index), element, ring->slot_size);
	pv_ring_produce(ring);
	events->due = true;
	return true;
}

static bool add_event(struct pvrdma *dev, uint32_t type, uint32_t info)
{
	const struct pv_eqe eqe = {.type = type, .info = info};
	const bool added = add_element(dev, &dev->async, &eqe);

	if (added)
		pv_count(dev, PVRDMA_EVENTS);
	return added;
}

void pv_event_report_port(struct pvrdma *dev, uint32_t type)
{
	if (!add_event(dev, type, PV_PORT))
		pv_count(dev, PVRDMA_EVENTS_LOST);
}

void pv_event_report(struct pv_object *object, uint32_t type)
{
	struct pvrdma *dev = object->dev;

	if (!object->due_events)
		TAILQ_INSERT_TAIL(&dev->event_objects, object, event_link);
	object->due_events |= 1u << type;
	if (!dev->paused)
		pv_event_report_due(dev);
}

/* Adds the object's due events to the ring. False: some stay due, as the ring takes none now. */
static bool report_due_events(struct pv_object *object)
{
	struct pvrdma *dev = object->dev;
	const bool usable = dev->async.ring.indices;

	while (object->due_events) {
		const uint32_t type = (uint32_t)__builtin_ctz(object->due_events);

		if (!add_event(dev, type, object->handle)) {
			if (usable)
				return false;
			pv_count(dev, PVRDMA_EVENTS_LOST);
		}
		object->due_events &= ~(1u << type);
	}
	return true;
}

void pv_event_report_due(struct pvrdma *dev)
{
	struct pv_object *object;

	while ((object = TAILQ_FIRST(&dev->event_objects)) && report_due_events(object))
		TAILQ_REMOVE(&dev->event_objects, object, event_link);
}

bool pv_event_notify(struct pvrdma *dev, uint32_t handle)
{
	const struct pv_cqne cqne = {.info = handle};
	bool added = add_element(dev, &dev->cq_notify, &cqne);

	if (added)
		pv_count(dev, PVRDMA_NOTIFICATIONS);
	return added;
}
