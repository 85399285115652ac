/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creation, end and state of the device. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic.h"
#include "shared.h"

#define LINK_MBPS 10000

/* Makes buffers for the maximum number of queues: untouched memory costs nothing. False: no memory.
 */
static bool make_buffers(struct vnic_device *dev)
{
	size_t queues = VMXNET3_MAX_TX_QUEUES * vnic_device_buffers_size(dev);

	dev->buffers = malloc(queues + VNIC_FRAME_MAX(dev->attr.mtu));
	if (!dev->buffers)
		return false;
	dev->whole = dev->buffers + queues;
	return true;
}

static struct vnic_dirty_log no_log; /* never on */

int vnic_device_create(const struct vnic_device_attr *attr, struct vnic_device **dev)
{
	struct vnic_device *d;

	int rc;

	if (!attr->bars || !attr->interrupt || attr->mtu < VMXNET3_MIN_MTU ||
	    attr->mtu > VMXNET3_MAX_MTU)
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->attr = *attr;
	d->attr.regions = NULL;
	if (!attr->log)
		d->attr.log = &no_log;
	rc = vnic_device_set_regions(d, attr->regions, attr->region_count);
	if (!rc && !make_buffers(d))
		rc = -ENOMEM;
	if (rc) {
		vnic_device_destroy(d);
		return rc;
	}
	d->link = LINK_MBPS;
	vnic_device_power_on(d);
	*dev = d;
	return 0;
}

void vnic_device_destroy(struct vnic_device *dev)
{
	if (!dev)
		return;
	free(dev->regions);
	free(dev->buffers);
	free(dev);
}

enum vnic_device_state vnic_device_state(const struct vnic_device *dev)
{
	return dev->state;
}

uint32_t vnic_device_mtu(const struct vnic_device *dev)
{
	return dev->state == VNIC_DEVICE_ACTIVE ? dev->mtu : 0;
}

const uint8_t *vnic_device_mac(const struct vnic_device *dev)
{
	return dev->mac;
}

const uint64_t *vnic_device_counters(const struct vnic_device *dev)
{
	return dev->counters;
}

void vnic_device_stop(struct vnic_device *dev)
{
	vnic_device_mark_rings(dev);
	dev->state = VNIC_DEVICE_DOWN;
	dev->tx_queues = 0;
	dev->rx_queues = 0;
	dev->due_error.status = NULL;
}

void vnic_device_reset(struct vnic_device *dev)
{
	vnic_device_stop(dev);
	vnic_device_mask_all(dev);
	dev->shared_low = dev->shared_high = 0;
	dev->mac_low = 0;
	memcpy(dev->mac, dev->attr.mac, sizeof(dev->mac));
	dev->rss_fields = VMXNET3_RSS_FIELDS_TCPIP4 | VMXNET3_RSS_FIELDS_TCPIP6;
	dev->coalesce = (struct vmxnet3_coalesce_scheme){.mode = VMXNET3_COALESCE_DISABLED};
}

static void clear_registers(const struct vnic_device *dev, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		vnic_store(vnic_reg(dev->attr.bars, first + i * VMXNET3_REG_STRIDE), 0);
}

void vnic_device_power_on(struct vnic_device *dev)
{
	dev->revision = VNIC_UNSELECTED_REVISION;
	dev->capabilities = 0;
	dev->result = 0;
	clear_registers(dev, VMXNET3_REG_TXPROD, VMXNET3_MAX_TX_QUEUES);
	clear_registers(dev, VMXNET3_REG_RXPROD, VMXNET3_MAX_RX_QUEUES);
	clear_registers(dev, VMXNET3_REG_RXPROD2, VMXNET3_MAX_RX_QUEUES);
	vnic_device_reset(dev);
}

void vnic_device_break(struct vnic_device *dev, uint32_t event, struct vmxnet3_queue_status *status,
		       uint32_t error)
{
	const bool due = dev->paused && !dev->no_master;

	if (dev->no_master || dev->paused) {
		vnic_device_stop(dev);
		if (due)
			dev->due_error = (struct vnic_device_error){status, event, error};
		return;
	}
	vnic_device_write_stats(dev);
	vnic_device_stop(dev);
	dev->state = VNIC_DEVICE_BROKEN;
	vnic_store(&status->error, error);
	vnic_store(&status->stopped, 1);
	vnic_dirty_mark(dev->attr.log, status, sizeof(*status));
	/* Not left to vnic_device_flush, which the caller does not call for an inactive device. */
	vnic_device_raise_event(dev, event);
}

void vnic_device_tell_link(struct vnic_device *dev)
{
	if (dev->state != VNIC_DEVICE_ACTIVE || dev->link == dev->driver_link)
		return;
	dev->driver_link = dev->link;
	vnic_device_raise_event(dev, VMXNET3_ECR_LINK);
}

void vnic_device_set_link(struct vnic_device *dev, uint16_t mbps)
{
	dev->link = mbps;
	if (!dev->no_master && !dev->paused)
		vnic_device_tell_link(dev);
}

void vnic_device_set_bus_master(struct vnic_device *dev, bool on)
{
	if (dev->no_master == !on)
		return;
	/*
	 * Completes the frames that vnic_device_tx has returned, while the device may still write
	 * completions: a saved device has no such frames.
	 */
	for (uint32_t i = 0; !on && i < dev->tx_queues; i++)
		vnic_device_tx_discard(dev, i);
	dev->no_master = !on;
	if (on && !dev->paused)
		vnic_device_resume(dev);
}
