/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "queues/event_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/page_dir.h"
#include "pvrdma_device.h"

/*
 * The driver's ring has slots for all its pages but one, which is no power of two. The driver
 * counts modulo twice that number by masking bits, so it skips bits of the number that are 0: it
 * uses the slots below the number's lowest set bit only.
 */
static uint32_t usable_slots(uint32_t slots)
{
	return slots & -slots;
}

void pv_event_ring_lay_out(struct pvrdma *dev, struct pv_event_ring *events, uint32_t element)
{
	pv_ring_init(&events->ring, dev->attr.memory,
		     &((struct pv_ring_state *)events->pages[0])->rx, events->pages + 1,
		     usable_slots((events->n_pages - 1) * (PV_PAGE / element)), element);
}

int pv_event_ring_open(struct pvrdma *dev, struct pv_event_ring *events,
		       const struct pv_ring_page_info *info, uint32_t element)
{
	const struct pv_page_dir dir = {
		.memory = dev->attr.memory,
		.addr = info->pdir_dma,
		.n_pages = info->num_pages,
		.write = true,
	};
	uint8_t **pages;
	int rc;

	if (info->num_pages < 2 || info->num_pages > PV_EVENT_RING_PAGES)
		return -EINVAL;
	rc = pv_page_dir_pages(&dir, &pages);
	if (rc)
		return rc;
	*events = (struct pv_event_ring){.pages = pages, .n_pages = dir.n_pages};
	pv_event_ring_lay_out(dev, events, element);
	return 0;
}

void pv_event_ring_close(struct pv_event_ring *events)
{
	free(events->pages);
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

void pv_event_report(struct pvrdma *dev, uint32_t type, uint32_t info)
{
	const struct pv_eqe eqe = {.type = type, .info = info};

	pv_count(dev, add_element(dev, &dev->async, &eqe) ? PVRDMA_EVENTS : PVRDMA_EVENTS_LOST);
}

bool pv_event_notify(struct pvrdma *dev, uint32_t handle)
{
	const struct pv_cqne cqne = {.info = handle};
	bool added = add_element(dev, &dev->cq_notify, &cqne);

	if (added)
		pv_count(dev, PVRDMA_NOTIFICATIONS);
	return added;
}
