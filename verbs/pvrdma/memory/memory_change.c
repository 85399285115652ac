/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The hypervisor removes memory from the guest: regions lose those bytes, and queues with a ring in
 * them fail. It adds memory: the regions of all the guest's memory (is_dma) get it, too. */
#include "memory/memory_change.h"

#include <stdlib.h>

#include "memory/pvrdma_mr.h"
#include "object.h"
#include "pvrdma_device.h"
#include "queues/pvrdma_cq.h"
#include "queues/pvrdma_qp.h"
#include "queues/pvrdma_srq.h"

/* Whether a page is among the removed ones. */
static bool is_removed(const struct pv_removed *removed, const uint8_t *page)
{
	const struct urxe_extent *from = removed->bytes;
	uint32_t n = removed->n;

	/* Bisects for the last extent that does not begin behind the page. */
	while (n > 1) {
		const uint32_t half = n / 2;

		if ((uintptr_t)from[half].addr <= (uintptr_t)page)
			from += half;
		n -= half;
	}
	return n && (uintptr_t)page - (uintptr_t)from->addr < from->length;
}

bool pv_removed_takes(const struct pv_removed *removed, struct pvrdma *dev, struct pv_ring *ring,
		      const struct pv_pages *pages)
{
	uint32_t i = ring->indices ? 0 : pages->n;

	while (i < pages->n && !removed->all && !is_removed(removed, pages->page[i]))
		i++;
	if (i == pages->n)
		return false;
	ring->indices = NULL;
	pv_count(dev, PVRDMA_MEMORY_LOST);
	return true;
}

/* Withdraws the bytes from all regions, and from all rings but those of QPs (fail_qps). The event
 * rings come first: the device must report nothing to a ring in removed memory. */
static void forget_bytes(struct pvrdma *dev, const struct pv_removed *removed)
{
	struct pv_object *object;
	uint32_t at;

	pv_removed_takes(removed, dev, &dev->async.ring, &dev->async.pages);
	pv_removed_takes(removed, dev, &dev->cq_notify.ring, &dev->cq_notify.pages);
	for (at = 0; (object = pv_object_next(dev, PV_CQ, &at));)
		pv_cq_memory_removed((struct pv_cq *)object, removed);
	for (at = 0; (object = pv_object_next(dev, PV_MR, &at));)
		pv_mr_memory_removed((struct pv_mr *)object, removed);
	for (at = 0; (object = pv_object_next(dev, PV_SRQ, &at));)
		pv_srq_memory_removed((struct pv_srq *)object, removed);
}

/* Fails the QPs whose rings were in the bytes. That completes requests, so all CQs and regions must
 * have forgotten the bytes before. */
static void fail_qps(struct pvrdma *dev, const struct pv_removed *removed)
{
	struct pv_object *object;
	uint32_t at = 0;

	while ((object = pv_object_next(dev, PV_QP, &at)))
		pv_qp_memory_removed((struct pv_qp *)object, removed);
}

static void add_removed(struct pv_removed *removed, const struct vnic_guest_region *region,
			uint64_t addr, uint64_t last)
{
	const uint64_t region_last = region->addr + (region->size - 1);
	const uint64_t from = addr > region->addr ? addr : region->addr;
	const uint64_t to = last < region_last ? last : region_last;

	removed->all &= from == region->addr && to == region_last;
	if (from <= to)
		removed->bytes[removed->n++] = (struct urxe_extent){
			(uint8_t *)region->memory + (from - region->addr), to - from + 1};
}

static int compare_addresses(const void *a, const void *b)
{
	const uintptr_t first = (uintptr_t)((const struct urxe_extent *)a)->addr;
	const uintptr_t second = (uintptr_t)((const struct urxe_extent *)b)->addr;

	return (first > second) - (first < second);
}

/* Passes over all objects once, not once for each region of guest memory in the range. */
void pvrdma_memory_removed(struct pvrdma *dev, uint64_t addr, uint64_t size)
{
	/* UINT64_MAX means all memory: no uint64_t can hold its size, 2^64 bytes. */
	const uint64_t last = size == UINT64_MAX ? UINT64_MAX : addr + (size - 1);
	struct pv_removed removed = {.all = true};
	const struct vnic_guest_region *regions;
	uint32_t count;

	regions = vnic_guest_memory_regions(dev->attr.memory, &count);
	for (uint32_t i = 0; size && i < count; i++)
		add_removed(&removed, &regions[i], addr, last);
	if (!removed.n)
		return;
	qsort(removed.bytes, removed.n, sizeof(removed.bytes[0]), compare_addresses);
	forget_bytes(dev, &removed);
	fail_qps(dev, &removed);
}

void pvrdma_memory_added(struct pvrdma *dev)
{
	struct pv_object *object;
	uint32_t at = 0;

	while ((object = pv_object_next(dev, PV_MR, &at)))
		pv_mr_memory_added((struct pv_mr *)object);
}
