/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interrupt. Receiving has a vector of its own, and so has sending: that one
 * stays masked unless a reservation fell short, so that completions alone wake nobody.
 */
#include "nic.h"
#include "shared.h"

static uint32_t *imr(const struct vnic_driver *drv, enum vnic_vector vector)
{
	return vnic_reg(drv->transport->bar0, VMXNET3_REG_IMR + vector * VMXNET3_REG_STRIDE);
}

/*
 * Delivery masks a vector: one that we left unmasked and find masked has sent,
 * or is about to send, exactly one interrupt. Counting them tells when the
 * transport holds one to take, without a system call to find out.
 */
static void disarm(struct vnic_driver *drv, enum vnic_vector vector)
{
	if (vnic_exchange(imr(drv, vector), 1) && drv->armed[vector])
		drv->arrived++;
	drv->armed[vector] = false;
}

void vnic_driver_irq_arm(struct vnic_driver *drv, enum vnic_vector vector)
{
	if (drv->armed[vector] && !vnic_load(imr(drv, vector)))
		return;
	disarm(drv, vector);
	drv->armed[vector] = true;
	vnic_publish(imr(drv, vector), 0);
}

void vnic_driver_irq_mask(struct vnic_driver *drv)
{
	drv->interrupts = false;
	disarm(drv, RX_VECTOR);
	disarm(drv, TX_VECTOR);
}

static void take_interrupts(struct vnic_driver *drv)
{
	uint32_t taken;

	if (!drv->arrived)
		return;
	taken = drv->transport->ops->take_interrupts(drv->transport);
	drv->arrived -= taken < drv->arrived ? taken : drv->arrived;
}

bool vnic_driver_irq_unmask(struct vnic_driver *drv)
{
	vnic_driver_irq_mask(drv);
	take_interrupts(drv);
	drv->interrupts = true;
	vnic_driver_irq_arm(drv, RX_VECTOR);
	if (drv->tx.short_of)
		vnic_driver_irq_arm(drv, TX_VECTOR);
	/*
	 * The device writes a completion, fences and reads the mask; we write the mask,
	 * fence and look for completions: one of us sees the other.
	 */
	vnic_fence();
	return vnic_driver_rx_waiting(drv) || (drv->tx.short_of && vnic_driver_tx_waiting(drv));
}

int vnic_driver_irq_fd(const struct vnic_driver *drv)
{
	return drv->transport->irq_fd;
}
