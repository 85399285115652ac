/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of the driver's memory, and its changes: an active NIC holds pointers to rings, queue
 * descriptors and pending frames, which must lie in the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic.h"

static bool regions_overlap(const struct vnic_region *a, const struct vnic_region *b)
{
	return a->addr - b->addr < b->size || b->addr - a->addr < a->size;
}

static bool regions_valid(const struct vnic_region *regions, uint32_t count)
{
	if (count > VNIC_REGIONS)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct vnic_region *region = &regions[i];

		if (!region->memory || !region->size || region->size > UINT64_MAX - region->addr)
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (regions_overlap(region, &regions[j]))
				return false;
	}
	return true;
}

/* Whether `size` bytes of this process's memory lie in the table. */
static bool is_present(const struct vnic_device *dev, const void *memory, uint64_t size)
{
	for (uint32_t i = 0; i < dev->region_count; i++) {
		const struct vnic_region *region = &dev->regions[i];
		const uint64_t offset = (uintptr_t)memory - (uintptr_t)region->memory;

		if (offset < region->size && size <= region->size - offset)
			return true;
	}
	return false;
}

static bool tx_is_present(const struct vnic_device *dev, const struct vnic_device_txq *tx)
{
	for (uint32_t i = 0; i < tx->count; i++) {
		const struct vnic_tx_pending *frame = &tx->pending[(tx->first + i) % VNIC_TX_AHEAD];

		if (!frame->slot && !is_present(dev, frame->data, frame->len))
			return false;
	}
	return is_present(dev, tx->ring, tx->next.size * sizeof(*tx->ring)) &&
	       is_present(dev, tx->comp, tx->comp_next.size * sizeof(*tx->comp));
}

static bool rx_is_present(const struct vnic_device *dev, const struct vnic_device_rxq *rx)
{
	for (uint32_t i = 0; i < 2; i++)
		if (rx->ring[i] &&
		    !is_present(dev, rx->ring[i], rx->next[i].size * sizeof(*rx->ring[i])))
			return false;
	if (rx->data_ring &&
	    !is_present(dev, rx->data_ring, (uint64_t)rx->next[0].size * rx->data_size))
		return false;
	return is_present(dev, rx->comp, rx->comp_next.size * sizeof(*rx->comp));
}

static bool status_is_present(const struct vnic_device *dev)
{
	for (uint32_t i = 0; i < dev->tx_queues; i++)
		if (!is_present(dev, dev->tx[i].shared, sizeof(*dev->tx[i].shared)))
			return false;
	for (uint32_t i = 0; i < dev->rx_queues; i++)
		if (!is_present(dev, dev->rx[i].shared, sizeof(*dev->rx[i].shared)))
			return false;
	return true;
}

/* Forgets an error that is due at vnic_device_resume, if the memory that would report it is no
 * longer in the table. */
static void check_due_error(struct vnic_device *dev)
{
	const struct vmxnet3_queue_status *status = dev->due_error.status;

	if (status && (!is_present(dev, dev->shared, sizeof(*dev->shared)) ||
		       !is_present(dev, status, sizeof(*status))))
		dev->due_error.status = NULL;
}

/* Stops a NIC that has lost memory. */
static void check_pointers(struct vnic_device *dev)
{
	if (dev->state == VNIC_DEVICE_DOWN) {
		check_due_error(dev);
		return;
	}
	if (!is_present(dev, dev->shared, sizeof(*dev->shared)) || !status_is_present(dev)) {
		vnic_device_stop(dev);
		return;
	}
	for (uint32_t i = 0; i < dev->tx_queues; i++)
		if (!tx_is_present(dev, &dev->tx[i])) {
			vnic_device_break(dev, VMXNET3_ECR_TQERR, &dev->tx[i].shared->status,
					  VMXNET3_ERR_TXD_INVALID);
			return;
		}
	for (uint32_t i = 0; i < dev->rx_queues; i++)
		if (!rx_is_present(dev, &dev->rx[i])) {
			vnic_device_break(dev, VMXNET3_ECR_RQERR, &dev->rx[i].shared->status,
					  VMXNET3_ERR_SMALL_BUF);
			return;
		}
}

/* Makes room for `count` regions; the table only grows. 0 or -ENOMEM. */
static int reserve_table(struct vnic_device *dev, uint32_t count)
{
	struct vnic_region *table;

	if (count <= dev->region_room)
		return 0;
	table = realloc(dev->regions, count * sizeof(*table));
	if (!table)
		return -ENOMEM;
	dev->regions = table;
	dev->region_room = count;
	return 0;
}

int vnic_device_set_regions(struct vnic_device *dev, const struct vnic_region *regions,
			    uint32_t count)
{
	int rc;

	if (!regions_valid(regions, count))
		return -EINVAL;
	rc = reserve_table(dev, count);
	if (rc)
		return rc;
	if (count)
		memmove(dev->regions, regions, count * sizeof(*regions));
	dev->region_count = count;
	check_pointers(dev);
	return 0;
}
