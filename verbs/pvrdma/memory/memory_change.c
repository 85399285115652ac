/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The hypervisor adds memory to the guest, or removes memory from it. */
#include "device.h"
#include "memory/mr.h"
#include "memory/page_list.h"
#include "object.h"
#include "queues/cq.h"
#include "queues/qp.h"
#include "queues/srq.h"

static void forget_event_ring(struct pvrdma *dev, struct pv_event_ring *events,
			      const struct urxe_extent *bytes)
{
	if (!events->ring.indices || !pv_page_list_uses(events->pages, events->n_pages, bytes))
		return;
	events->ring.indices = NULL;
	pv_count(dev, PVRDMA_MEMORY_LOST);
}

/* The event rings first: nothing may be reported to a ring in removed memory. */
static void forget_bytes(struct pvrdma *dev, const struct urxe_extent *bytes)
{
	struct pv_object *object;
	uint32_t at;

	forget_event_ring(dev, &dev->async, bytes);
	forget_event_ring(dev, &dev->cq_notify, bytes);
	for (at = 0; (object = pv_object_next(dev, PV_CQ, &at));)
		pv_cq_memory_removed((struct pv_cq *)object, bytes);
	for (at = 0; (object = pv_object_next(dev, PV_MR, &at));)
		pv_mr_memory_removed((struct pv_mr *)object, bytes);
	for (at = 0; (object = pv_object_next(dev, PV_SRQ, &at));)
		pv_srq_memory_removed((struct pv_srq *)object, bytes);
}

/* Failing a QP completes its requests; so all queues and regions have forgotten the bytes before.
 */
static void fail_qps(struct pvrdma *dev, const struct urxe_extent *bytes)
{
	struct pv_object *object;
	uint32_t at = 0;

	while ((object = pv_object_next(dev, PV_QP, &at)))
		pv_qp_memory_removed((struct pv_qp *)object, bytes);
}

void pvrdma_memory_removed(struct pvrdma *dev, uint64_t addr, uint64_t size)
{
	/* All memory has one byte more than the size tells. */
	const uint64_t last = size == UINT64_MAX ? UINT64_MAX : addr + (size - 1);
	struct urxe_extent removed[VNIC_GUEST_REGIONS];
	const struct vnic_guest_region *regions;
	uint32_t count, n = 0;

	regions = vnic_guest_memory_regions(dev->attr.memory, &count);
	for (uint32_t i = 0; size && i < count; i++) {
		const struct vnic_guest_region *region = &regions[i];
		const uint64_t region_last = region->addr + (region->size - 1);
		const uint64_t from = addr > region->addr ? addr : region->addr;
		const uint64_t to = last < region_last ? last : region_last;

		if (from <= to)
			removed[n++] = (struct urxe_extent){
				(uint8_t *)region->memory + (from - region->addr), to - from + 1};
	}
	for (uint32_t i = 0; i < n; i++)
		forget_bytes(dev, &removed[i]);
	for (uint32_t i = 0; i < n; i++)
		fail_qps(dev, &removed[i]);
}

void pvrdma_memory_added(struct pvrdma *dev, uint64_t addr, uint64_t size)
{
	struct pv_object *object;
	uint32_t at = 0;

	(void)addr;
	(void)size;
	while ((object = pv_object_next(dev, PV_MR, &at)))
		pv_mr_memory_added((struct pv_mr *)object);
}
