/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receives frames: one buffer for each frame, in ring order. */
#include <assert.h>

#include "driver_private.h"
#include "shared.h"

static void post_buffer(struct vnic_driver *drv)
{
	struct vnic_cursor *fill = &drv->rx.fill;
	struct vmxnet3_rx_desc *desc = &drv->memory->rx_ring[fill->index];
	const uint8_t *data = vnic_driver_rx_buffer(drv, fill->index);

	vnic_store(&desc->addr, vnic_driver_addr(drv, data));
	/* Release: the driver's reads of the buffer end before the device may write it again. */
	vnic_publish(&desc->len, drv->frame_max | (fill->gen ? VMXNET3_RXD_GEN : 0));
	vnic_cursor_advance(fill);
}

void vnic_driver_rx_init(struct vnic_driver *drv)
{
	drv->rx.fill = vnic_cursor_start(RX_RING_SIZE);
	drv->rx.comp = vnic_cursor_start(RX_RING_SIZE + RX_RING2_SIZE);
	for (uint32_t i = 0; i < RX_RING_SIZE - 1; i++)
		post_buffer(drv);
	vnic_store(vnic_reg(drv->transport->bar0, VMXNET3_REG_RXPROD), drv->rx.fill.index);
}

bool vnic_driver_rx_waiting(const struct vnic_driver *drv)
{
	const struct vnic_cursor *comp = &drv->rx.comp;
	/*
	 * Acquire: the device wrote the frame and the rest of the completion before the generation
	 * bit.
	 */
	uint32_t gen = vnic_acquire(&drv->memory->rx_comp[comp->index].gen);

	return !!(gen & VMXNET3_CD_GEN) == comp->gen && !drv->broken;
}

/*
 * Takes the next completion. A device may complete the buffers in order only, each with a whole
 * frame. After any other completion returns false, and the driver trusts no buffer (drv->broken).
 */
static bool take_completion(struct vnic_driver *drv, struct vnic_frame *frame)
{
	const struct vmxnet3_rx_comp *comp = &drv->memory->rx_comp[drv->rx.comp.index];
	const uint32_t whole = VMXNET3_RCD_SOP | VMXNET3_RCD_EOP;
	uint32_t index = vnic_load(&comp->index);
	uint32_t len = vnic_load(&comp->len) & VMXNET3_RCD_LEN;

	if ((index & (VMXNET3_CD_INDEX | VMXNET3_RCD_RQID | whole)) != (drv->rx.next | whole) ||
	    len > drv->frame_max || drv->rx.taken == RX_RING_SIZE - 1) {
		drv->broken = true;
		return false;
	}
	*frame = (struct vnic_frame){.data = vnic_driver_rx_buffer(drv, drv->rx.next),
				     .len = len,
				     .room = drv->frame_max};
	drv->rx.next = (drv->rx.next + 1) % RX_RING_SIZE;
	drv->rx.taken++;
	vnic_cursor_advance(&drv->rx.comp);
	return true;
}

uint32_t vnic_driver_rx(struct vnic_driver *drv, struct vnic_frame *frames, uint32_t n)
{
	uint32_t count = 0;

	while (count < n && vnic_driver_rx_waiting(drv) && take_completion(drv, &frames[count]))
		count++;
	return count;
}

void vnic_driver_rx_release(struct vnic_driver *drv, uint32_t n)
{
	assert(n <= drv->rx.taken);
	if (!n)
		return;
	drv->rx.taken -= n;
	while (n--)
		post_buffer(drv);
	/*
	 * A device that ran out of buffers asks for RXPROD writes (vmxnet3's updateRxProd). The
	 * fence pairs with the device's fence between its request and its last look at the ring.
	 */
	vnic_fence();
	if (!vnic_load(&drv->memory->queues.rx.update_prod))
		return;
	vnic_store(vnic_reg(drv->transport->bar0, VMXNET3_REG_RXPROD), drv->rx.fill.index);
	drv->transport->ops->kick(drv->transport);
}
