/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sends frames: one descriptor and one buffer for each frame. */
#include <assert.h>

#include "driver_private.h"
#include "shared.h"

/* The driver requests a completion for each 16th descriptor. A completion frees all earlier frames,
 * too, so few are enough; but the driver must get free descriptors in time. */
#define COMPLETION_EVERY 16

/* Longest frame that vnic_driver_tx_hold delays: acknowledgements, not data. */
#define HELD_LEN 128

void vnic_driver_tx_init(struct vnic_driver *drv)
{
	drv->tx.fill = vnic_cursor_start(TX_RING_SIZE);
	drv->tx.comp = vnic_cursor_start(TX_RING_SIZE);
	drv->tx.free = TX_RING_SIZE - 1;
	vnic_store(vnic_reg(drv->transport->bar0, VMXNET3_REG_TXPROD), 0);
}

bool vnic_driver_tx_waiting(const struct vnic_driver *drv)
{
	const struct vnic_cursor *comp = &drv->tx.comp;
	/*
	 * Acquire: the device has read the frame before it completed it, so the buffer may be
	 * written.
	 */
	uint32_t gen = vnic_acquire(&drv->memory->tx_comp[comp->index].gen);

	return !!(gen & VMXNET3_CD_GEN) == comp->gen && !drv->broken;
}

static void reclaim_buffers(struct vnic_driver *drv)
{
	struct vnic_driver_txq *tx = &drv->tx;

	while (vnic_driver_tx_waiting(drv)) {
		uint32_t index =
			vnic_load(&drv->memory->tx_comp[tx->comp.index].index) & VMXNET3_CD_INDEX;
		uint32_t posted = TX_RING_SIZE - 1 - tx->free;
		uint32_t done = vnic_ring_distance(tx->oldest, index, TX_RING_SIZE) + 1;

		if (index >= TX_RING_SIZE || done > posted) {
			drv->broken = true;
			return;
		}
		tx->free += done;
		tx->oldest = (index + 1) % TX_RING_SIZE;
		vnic_cursor_advance(&tx->comp);
	}
}

uint32_t vnic_driver_tx_reserve(struct vnic_driver *drv, struct vnic_frame *frames, uint32_t n)
{
	struct vnic_driver_txq *tx = &drv->tx;
	uint32_t index = tx->fill.index;

	if (tx->free < n)
		reclaim_buffers(drv);
	tx->short_of = tx->free < n;
	if (tx->short_of && drv->interrupts) {
		vnic_driver_irq_arm(drv, TX_VECTOR);
		reclaim_buffers(drv);
	}
	if (tx->free < n)
		n = tx->free;
	for (uint32_t i = 0; i < n; i++) {
		frames[i] = (struct vnic_frame){
			.data = vnic_driver_tx_buffer(drv, index),
			.room = drv->frame_max,
		};
		index = (index + 1) % TX_RING_SIZE;
	}
	return n;
}

static void post_buffer(struct vnic_driver *drv, uint32_t len, bool completion)
{
	struct vnic_cursor *fill = &drv->tx.fill;
	struct vmxnet3_tx_desc *desc = &drv->memory->tx_ring[fill->index];
	const uint8_t *data = vnic_driver_tx_buffer(drv, fill->index);

	assert(len && len <= drv->frame_max);
	vnic_store(&desc->addr, vnic_driver_addr(drv, data));
	vnic_store(&desc->flags, VMXNET3_TXD_EOP | (completion ? VMXNET3_TXD_CQ : 0));
	/*
	 * Release: the generation bit is written last, after the frame and the rest of the
	 * descriptor.
	 */
	vnic_publish(&desc->len, len | (fill->gen ? VMXNET3_TXD_GEN : 0));
	vnic_cursor_advance(fill);
}

static void ring_doorbell(struct vnic_driver *drv)
{
	drv->tx.due = false;
	drv->tx.doorbells++;
	drv->transport->ops->kick(drv->transport);
}

void vnic_driver_tx_commit(struct vnic_driver *drv, const struct vnic_frame *frames, uint32_t n)
{
	struct vnic_driver_txq *tx = &drv->tx;

	assert(n <= tx->free);
	if (!n)
		return;
	for (uint32_t i = 0; i < n; i++)
		post_buffer(drv, frames[i].len,
			    i + 1 == n ||
				    tx->fill.index % COMPLETION_EVERY == COMPLETION_EVERY - 1);
	tx->free -= n;
	vnic_store(vnic_reg(drv->transport->bar0, VMXNET3_REG_TXPROD), tx->fill.index);
	tx->due = true;
	if (!tx->held || n > 1 || frames[0].len > HELD_LEN)
		ring_doorbell(drv);
}

void vnic_driver_tx_hold(struct vnic_driver *drv, bool held)
{
	drv->tx.held = held;
}

void vnic_driver_tx_wake(struct vnic_driver *drv)
{
	if (drv->tx.due && !drv->tx.held)
		ring_doorbell(drv);
}

uint32_t vnic_driver_tx_doorbells(const struct vnic_driver *drv)
{
	return drv->tx.doorbells;
}

bool vnic_driver_tx_due(const struct vnic_driver *drv)
{
	return drv->tx.due;
}
