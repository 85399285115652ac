/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who wakes whom: interrupts to the driver, doorbells from it. */
#include "nic.h"
#include "shared.h"

void vnic_device_news(struct vnic_device *dev, uint8_t vector)
{
	dev->interrupts |= UINT32_C(1) << vector;
}

/* In auto-mask mode (enum vmxnet3_intr_mask_mode) delivery masks the vector until the driver is
 * done. */
static bool claim(struct vnic_device *dev, uint32_t vector)
{
	uint32_t *imr = vnic_reg(dev->attr.bars, VMXNET3_REG_IMR + vector * VMXNET3_REG_STRIDE);

	if (vnic_load(imr) != 0)
		return false;
	return !dev->auto_mask || vnic_exchange(imr, 1) == 0;
}

void vnic_device_flush(struct vnic_device *dev)
{
	uint32_t vectors = dev->interrupts;

	if (!vectors)
		return;
	dev->interrupts = 0;
	/*
	 * Our completions before our reading of the mask; the driver clears the mask
	 * before it looks for completions. So a masked vector needs no memory of what
	 * it missed: whoever unmasks it looks.
	 */
	vnic_fence();
	for (uint32_t vector = 0; vector < dev->vectors; vector++) {
		if (!(vectors & UINT32_C(1) << vector) || !claim(dev, vector))
			continue;
		dev->counters[VNIC_INTERRUPTS]++;
		dev->attr.interrupt(dev->attr.ctx, vector);
	}
}

void vnic_device_sleeping(struct vnic_device *dev, bool asleep)
{
	vnic_store(vnic_reg(dev->attr.bars, VNIC_REG_ASLEEP), asleep);
	/* The driver publishes, fences and then reads this word; we store it, fence and look. */
	if (asleep)
		vnic_fence();
}
