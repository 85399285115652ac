/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ACTIVATE_DEV: copies the driver's shared area once, checks the copy, and uses the copy. */
#include <string.h>

#include "nic.h"
#include "shared.h"

static void *aligned_memory(const struct vnic_device *dev, uint64_t addr, uint64_t size,
			    uint64_t align)
{
	/* In vmxnet3 address 0 means "none". */
	if (!addr || addr % align)
		return NULL;
	return vnic_region_memory(dev, addr, size);
}

static void *ring_memory(const struct vnic_device *dev, uint64_t addr, uint32_t size, uint32_t max)
{
	if (!size || size > max || size % VMXNET3_RING_SIZE_ALIGN)
		return NULL;
	return aligned_memory(dev, addr, size * UINT64_C(16), VMXNET3_RING_BA_ALIGN);
}

static bool configure_tx(struct vnic_device *dev, uint32_t number,
			 struct vmxnet3_tx_queue_desc *shared)
{
	uint8_t *buffers = dev->buffers + number * vnic_device_buffers_size(dev);
	struct vnic_device_txq *tx = &dev->tx[number];
	struct vmxnet3_tx_queue_desc conf;

	memcpy(&conf, shared, sizeof(conf));
	*tx = (struct vnic_device_txq){
		.shared = shared,
		.ring = ring_memory(dev, conf.ring_addr, conf.ring_size, VMXNET3_RING_MAX_SIZE),
		.comp = ring_memory(dev, conf.comp_ring_addr, conf.comp_ring_size,
				    VMXNET3_RING_MAX_SIZE),
		.next = vnic_cursor_start(conf.ring_size),
		.comp_next = vnic_cursor_start(conf.comp_ring_size),
		.slots = buffers,
		.packet = buffers + vnic_device_slots_size(dev),
		.vector = conf.vector,
	};
	/* The completion ring must hold every posted descriptor. */
	return tx->ring && tx->comp && conf.comp_ring_size >= conf.ring_size &&
	       tx->vector < dev->vectors;
}

/*
 * Sets up the data ring of a receive queue, if the driver has one (revision 3 and later). Small
 * frames go to it, and leave their descriptor's buffer to the driver. False: the driver's
 * configuration is invalid.
 */
static bool configure_data_ring(const struct vnic_device *dev,
				const struct vmxnet3_rx_queue_desc *conf,
				struct vnic_device_rxq *rx)
{
	if (dev->revision < VMXNET3_REV_3 || !conf->data_desc_size)
		return true;
	rx->data_size = conf->data_desc_size;
	rx->data_ring = vnic_region_memory(dev, conf->data_ring_addr,
					   (uint64_t)conf->ring_size[0] * rx->data_size);
	return rx->data_ring && rx->data_size <= VMXNET3_RXDATA_DESC_MAX_SIZE &&
	       rx->data_size % VMXNET3_RXDATA_DESC_SIZE_ALIGN == 0;
}

static bool configure_rx(struct vnic_device *dev, uint32_t number,
			 struct vmxnet3_rx_queue_desc *shared)
{
	struct vnic_device_rxq *rx = &dev->rx[number];
	struct vmxnet3_rx_queue_desc conf;

	memcpy(&conf, shared, sizeof(conf));
	*rx = (struct vnic_device_rxq){
		.number = number,
		.shared = shared,
		.comp = ring_memory(dev, conf.comp_ring_addr, conf.comp_ring_size,
				    VMXNET3_RC_RING_MAX),
		.comp_next = vnic_cursor_start(conf.comp_ring_size),
		.vector = conf.vector,
	};
	for (uint32_t i = 0; i < 2; i++) {
		rx->next[i] = vnic_cursor_start(conf.ring_size[i]);
		if (i == 1 && conf.ring_size[1] == 0)
			break;
		rx->ring[i] = ring_memory(dev, conf.ring_addr[i], conf.ring_size[i],
					  VMXNET3_RING_MAX_SIZE);
		if (!rx->ring[i])
			return false;
	}
	return rx->comp && rx->vector < dev->vectors && configure_data_ring(dev, &conf, rx) &&
	       conf.comp_ring_size >= (uint64_t)conf.ring_size[0] + conf.ring_size[1];
}

/* Sets up all queues by the driver's queue descriptors: first those of transmit queues, then those
 * of receive queues. False: the driver's configuration is invalid. */
static bool configure_queues(struct vnic_device *dev, const struct vmxnet3_misc_conf *misc)
{
	struct vmxnet3_tx_queue_desc *tx;
	struct vmxnet3_rx_queue_desc *rx;
	uint64_t size = misc->tx_queues * sizeof(*tx) + misc->rx_queues * sizeof(*rx);

	tx = aligned_memory(dev, misc->queue_desc_addr, size, VMXNET3_QUEUE_DESC_ALIGN);
	if (!tx)
		return false;
	rx = (struct vmxnet3_rx_queue_desc *)(tx + misc->tx_queues);
	for (uint32_t i = 0; i < misc->tx_queues; i++)
		if (!configure_tx(dev, i, &tx[i]))
			return false;
	for (uint32_t i = 0; i < misc->rx_queues; i++)
		if (!configure_rx(dev, i, &rx[i]))
			return false;
	return true;
}

static bool interrupts_valid(const struct vmxnet3_intr_conf *intr)
{
	return intr->vectors <= VMXNET3_MAX_INTRS && intr->event_vector < intr->vectors;
}

static bool misc_valid(const struct vnic_device *dev, const struct vmxnet3_misc_conf *misc)
{
	return misc->tx_queues >= 1 && misc->tx_queues <= VMXNET3_MAX_TX_QUEUES &&
	       misc->rx_queues >= 1 && misc->rx_queues <= VMXNET3_MAX_RX_QUEUES &&
	       misc->mtu >= VMXNET3_MIN_MTU && misc->mtu <= dev->attr.mtu;
}

/* Reads the driver's hash key and table. False: they are invalid, or do not lie in the driver's
 * memory. */
static bool configure_rss(struct vnic_device *dev)
{
	const struct vmxnet3_variable_conf *info = &dev->shared->rss;
	struct upt1_rss_conf conf;
	const void *memory;

	if (vnic_load(&info->len) < sizeof(conf))
		return false;
	memory = vnic_region_memory(dev, vnic_load(&info->addr), sizeof(conf));
	if (!memory)
		return false;
	memcpy(&conf, memory, sizeof(conf));
	return vnic_rss_set(&dev->rss, &conf, dev->rx_queues);
}

bool vnic_device_update_features(struct vnic_device *dev)
{
	uint32_t features = (uint32_t)vnic_load(&dev->shared->misc.upt_features);

	if (features & UPT1_F_RSS && !configure_rss(dev))
		return false;
	dev->features = features;
	return true;
}

/* Resets the status and txThreshold in the driver's queue descriptors: a queue that stopped before
 * may have left its values there. */
static void start_queues(struct vnic_device *dev)
{
	static const struct vmxnet3_queue_status running;

	for (uint32_t i = 0; i < dev->tx_queues; i++) {
		dev->tx[i].shared->status = running;
		vnic_store(&dev->tx[i].shared->threshold, VNIC_TX_THRESHOLD);
	}
	for (uint32_t i = 0; i < dev->rx_queues; i++)
		dev->rx[i].shared->status = running;
}

/*
 * The longest frame is the MTU with two VLAN tags, as Linux' driver sends it. With the largest MTU
 * it has one tag only: the queues' slots, and the buffers of the device's owner, have no room for
 * more.
 */
void vnic_device_set_mtu(struct vnic_device *dev, uint32_t mtu)
{
	const uint32_t two_tags = VNIC_FRAME_MAX(mtu) + TAG, most = VNIC_FRAME_MAX(dev->attr.mtu);

	dev->mtu = mtu;
	dev->frame_max = two_tags < most ? two_tags : most;
}

bool vnic_device_activate(struct vnic_device *dev)
{
	uint64_t addr = (uint64_t)dev->shared_high << 32 | dev->shared_low;
	struct vmxnet3_driver_shared *area = aligned_memory(dev, addr, sizeof(*area), 8);
	struct vmxnet3_driver_shared shared;

	if (!area)
		return false;
	memcpy(&shared, area, sizeof(shared));
	if (shared.magic != VMXNET3_REV1_MAGIC || !misc_valid(dev, &shared.misc) ||
	    !interrupts_valid(&shared.intr))
		return false;
	dev->shared = area;
	dev->vectors = shared.intr.vectors;
	dev->event_vector = shared.intr.event_vector;
	dev->auto_mask = shared.intr.auto_mask;
	vnic_device_set_mtu(dev, shared.misc.mtu);
	dev->driver_link = dev->link;
	dev->interrupts = dev->missed = 0;
	if (!configure_queues(dev, &shared.misc))
		return false;
	dev->tx_queues = shared.misc.tx_queues;
	dev->rx_queues = shared.misc.rx_queues;
	dev->state = VNIC_DEVICE_ACTIVE;
	start_queues(dev);
	vnic_device_update_mode(dev);
	vnic_device_update_vlans(dev);
	if (vnic_device_update_features(dev) && vnic_device_update_groups(dev))
		return true;
	vnic_device_stop(dev);
	return false;
}
