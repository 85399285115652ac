/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ACTIVATE_DEV: the driver's shared area, copied once, checked, and only then used. */
#include <string.h>

#include "nic.h"

static void *aligned_memory(const struct vnic_device *dev, uint64_t addr, uint64_t size,
			    uint64_t align)
{
	/* Address 0 is vmxnet3's "none". */
	if (!addr || addr % align)
		return NULL;
	return vnic_device_memory(dev, addr, size);
}

static void *ring_memory(const struct vnic_device *dev, uint64_t addr, uint32_t size, uint32_t max)
{
	if (!size || size > max || size % VMXNET3_RING_SIZE_ALIGN)
		return NULL;
	return aligned_memory(dev, addr, size * UINT64_C(16), VMXNET3_RING_BA_ALIGN);
}

static bool configure_tx(const struct vnic_device *dev, const struct vmxnet3_tx_queue_desc *conf,
			 struct vnic_device_txq *tx)
{
	tx->ring = ring_memory(dev, conf->ring_addr, conf->ring_size, VMXNET3_RING_MAX_SIZE);
	tx->comp =
		ring_memory(dev, conf->comp_ring_addr, conf->comp_ring_size, VMXNET3_RING_MAX_SIZE);
	tx->next = vnic_cursor_start(conf->ring_size);
	tx->comp_next = vnic_cursor_start(conf->comp_ring_size);
	tx->vector = conf->vector;
	/* Every posted descriptor may complete before the driver looks. */
	return tx->ring && tx->comp && conf->comp_ring_size >= conf->ring_size;
}

static bool configure_rx(const struct vnic_device *dev, const struct vmxnet3_rx_queue_desc *conf,
			 struct vnic_device_rxq *rx)
{
	uint64_t posted = (uint64_t)conf->ring_size[0] + conf->ring_size[1];

	for (uint32_t i = 0; i < 2; i++) {
		rx->next[i] = vnic_cursor_start(conf->ring_size[i]);
		if (i == 1 && conf->ring_size[1] == 0)
			break;
		rx->ring[i] = ring_memory(dev, conf->ring_addr[i], conf->ring_size[i],
					  VMXNET3_RING_MAX_SIZE);
		if (!rx->ring[i])
			return false;
	}
	rx->comp =
		ring_memory(dev, conf->comp_ring_addr, conf->comp_ring_size, VMXNET3_RC_RING_MAX);
	rx->comp_next = vnic_cursor_start(conf->comp_ring_size);
	rx->vector = conf->vector;
	return rx->comp && conf->comp_ring_size >= posted;
}

static bool interrupts_valid(const struct vmxnet3_intr_conf *intr, uint8_t tx_vector,
			     uint8_t rx_vector)
{
	return intr->vectors <= VMXNET3_MAX_INTRS && intr->event_vector < intr->vectors &&
	       tx_vector < intr->vectors && rx_vector < intr->vectors;
}

static bool misc_valid(const struct vnic_device *dev, const struct vmxnet3_driver_shared *shared)
{
	return shared->magic == VMXNET3_REV1_MAGIC && shared->misc.tx_queues == 1 &&
	       shared->misc.rx_queues == 1 && shared->misc.mtu >= VMXNET3_MIN_MTU &&
	       shared->misc.mtu <= dev->attr.mtu;
}

bool vnic_device_configure(struct vnic_device *dev)
{
	uint64_t addr = (uint64_t)dev->shared_high << 32 | dev->shared_low;
	struct vmxnet3_driver_shared *area = aligned_memory(dev, addr, sizeof(*area), 8);
	struct vmxnet3_queue_pair *queues, conf;
	struct vmxnet3_driver_shared shared;
	struct vnic_device_txq tx = {0};
	struct vnic_device_rxq rx = {0};

	if (!area)
		return false;
	memcpy(&shared, area, sizeof(shared));
	if (!misc_valid(dev, &shared))
		return false;
	queues = aligned_memory(dev, shared.misc.queue_desc_addr, sizeof(conf),
				VMXNET3_QUEUE_DESC_ALIGN);
	if (!queues)
		return false;
	memcpy(&conf, queues, sizeof(conf));
	if (!configure_tx(dev, &conf.tx, &tx) || !configure_rx(dev, &conf.rx, &rx) ||
	    !interrupts_valid(&shared.intr, tx.vector, rx.vector))
		return false;

	dev->shared = area;
	dev->vectors = shared.intr.vectors;
	dev->event_vector = shared.intr.event_vector;
	dev->auto_mask = shared.intr.auto_mask;
	dev->frame_max = VNIC_FRAME_MAX(shared.misc.mtu);
	dev->interrupts = 0;
	tx.shared = &queues->tx;
	rx.shared = &queues->rx;
	dev->tx = tx;
	dev->rx = rx;
	return true;
}
