/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interrupts. Receiving and sending have their own vectors. The send vector stays masked unless
 * a reservation fell short, so completions alone wake no thread.
 */
#include "driver_private.h"
#include "shared.h"

static void set_mask(struct vnic_driver *drv, enum vnic_vector vector, uint32_t masked)
{
	vnic_publish(vnic_reg(drv->transport->bar0, VMXNET3_REG_IMR + vector * VMXNET3_REG_STRIDE),
		     masked);
}

void vnic_driver_irq_arm(struct vnic_driver *drv, enum vnic_vector vector)
{
	set_mask(drv, vector, 0);
	/*
	 * The device writes a completion, fences and reads the mask; the driver writes the mask,
	 * fences and then looks for completions: one of them sees the other's store.
	 */
	vnic_fence();
}

void vnic_driver_irq_mask(struct vnic_driver *drv)
{
	drv->interrupts = false;
	set_mask(drv, RX_VECTOR, 1);
	set_mask(drv, TX_VECTOR, 1);
}

bool vnic_driver_irq_unmask(struct vnic_driver *drv)
{
	drv->interrupts = true;
	set_mask(drv, TX_VECTOR, !drv->tx.short_of);
	vnic_driver_irq_arm(drv, RX_VECTOR);
	return vnic_driver_rx_waiting(drv) || (drv->tx.short_of && vnic_driver_tx_waiting(drv));
}

int vnic_driver_irq_fd(const struct vnic_driver *drv)
{
	return drv->transport->irq_fd;
}
