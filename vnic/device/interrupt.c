/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Interrupts to the driver, and doorbells from the driver. */
#include "nic.h"
#include "shared.h"

void vnic_device_mark_interrupt(struct vnic_device *dev, uint8_t vector)
{
	dev->interrupts |= UINT32_C(1) << vector;
}

/*
 * Whether an interrupt may be raised now: the driver's register does not mask the vector. In
 * auto-mask mode (enum vmxnet3_intr_mask_mode) also masks the vector, until the driver unmasks it.
 * The device ignores the shared area's switch for all interrupts (intr.control): drivers mask each
 * vector as well. They set the switch to "enabled" last, without a register write, so the device
 * would not notice, and an interrupt that was due would wait for the next frame.
 */
static bool claim_vector(struct vnic_device *dev, uint32_t vector)
{
	uint32_t *imr = vnic_reg(dev->attr.bars, VMXNET3_REG_IMR + vector * VMXNET3_REG_STRIDE);

	if (vnic_load(imr) != 0)
		return false;
	if (!dev->auto_mask)
		return true;
	if (vnic_exchange(imr, 1) != 0)
		return false;
	dev->auto_masked |= UINT32_C(1) << vector;
	return true;
}

static void deliver_interrupt(struct vnic_device *dev, uint32_t vector)
{
	const uint32_t bit = UINT32_C(1) << vector;

	if (dev->no_master || !claim_vector(dev, vector)) {
		dev->missed |= bit;
		return;
	}
	dev->missed &= ~bit;
	dev->counters[VNIC_INTERRUPTS]++;
	dev->attr.interrupt(dev->attr.ctx, vector);
}

void vnic_device_flush(struct vnic_device *dev)
{
	uint32_t vectors = dev->interrupts;

	if (!vectors)
		return;
	dev->interrupts = 0;
	/*
	 * The completions must be visible before the mask is read. A driver that maps the mask
	 * clears it and then looks for completions, so it finds missed ones; a driver whose stores
	 * trap gets the interrupt in vnic_device_mask_written.
	 */
	vnic_fence();
	for (; vectors; vectors &= vectors - 1)
		deliver_interrupt(dev, (uint32_t)__builtin_ctz(vectors));
}

void vnic_device_mask_written(struct vnic_device *dev, uint32_t vector, uint32_t value)
{
	const uint32_t bit = UINT32_C(1) << vector;

	dev->auto_masked &= ~bit;
	if (value == 0 && dev->state != VNIC_DEVICE_DOWN && dev->missed & bit)
		deliver_interrupt(dev, vector);
}

void vnic_device_mask_all(struct vnic_device *dev)
{
	dev->interrupts = dev->missed = dev->auto_masked = 0;
	for (uint32_t i = 0; i < VMXNET3_MAX_INTRS; i++)
		vnic_store(vnic_reg(dev->attr.bars, VMXNET3_REG_IMR + i * VMXNET3_REG_STRIDE), 1);
}

void vnic_device_raise_event(struct vnic_device *dev, uint32_t event)
{
	__atomic_fetch_or(&dev->shared->ecr, event, __ATOMIC_RELEASE);
	vnic_device_mark_interrupt(dev, dev->event_vector);
	vnic_device_flush(dev);
}

void vnic_device_set_polling(struct vnic_device *dev, bool polling)
{
	for (uint32_t i = 0; i < vnic_device_tx_queues(dev); i++)
		vnic_store(&dev->tx[i].shared->threshold, polling ? UINT32_MAX : VNIC_TX_THRESHOLD);
	if (!polling)
		vnic_fence();
}

void vnic_device_set_asleep(struct vnic_device *dev, bool asleep)
{
	vnic_store(vnic_reg(dev->attr.bars, VNIC_REG_ASLEEP), asleep);
	/*
	 * The driver publishes a descriptor, fences and then reads this word; the device stores the
	 * word, fences and then looks for descriptors.
	 */
	if (asleep)
		vnic_fence();
}
