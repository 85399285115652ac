/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The registers of both BARs. */
#include <errno.h>
#include <string.h>

#include "nic.h"
#include "shared.h"

/* The offered capabilities: inner and outer offloads of tunnels, and RSS of UDP and ESP. */
#define CAPABILITIES                                                                 \
	(VMXNET3_CAP_UDP_RSS | VMXNET3_CAP_ESP_RSS_IP4 | VMXNET3_CAP_ESP_RSS_IP6 |   \
	 VMXNET3_CAP_GENEVE_CSUM | VMXNET3_CAP_GENEVE_TSO | VMXNET3_CAP_VXLAN_CSUM | \
	 VMXNET3_CAP_VXLAN_TSO | VMXNET3_CAP_GENEVE_OUTER | VMXNET3_CAP_VXLAN_OUTER)

/*
 * Selects one of the offered revisions (else -EINVAL), and withdraws all capabilities: a driver
 * selects its revision only at its start. The driver's reset command keeps the capabilities,
 * because drivers request them once.
 */
static int select_revision(struct vnic_device *dev, uint32_t value)
{
	if (!(value & VMXNET3_REVISIONS) || (value & (value - 1)))
		return -EINVAL;
	dev->revision = value;
	dev->capabilities = 0;
	return 0;
}

/* Sets the MAC to the last value of MACL and `high`. Ignores multicast MACs, and any MAC where the
 * driver may not choose: the registers then read back the old MAC. */
static void set_mac(struct vnic_device *dev, uint32_t high)
{
	if (dev->attr.shared_mac || dev->mac_low & 1)
		return;
	for (uint32_t i = 0; i < 4; i++)
		dev->mac[i] = (uint8_t)(dev->mac_low >> 8 * i);
	dev->mac[4] = (uint8_t)high;
	dev->mac[5] = (uint8_t)(high >> 8);
}

/* Whether the device can access the event bits, which the register ECR shows: they lie in the
 * shared area. */
static bool has_events(const struct vnic_device *dev)
{
	return dev->state != VNIC_DEVICE_DOWN && !dev->no_master;
}

static void acknowledge(struct vnic_device *dev, uint32_t events)
{
	if (has_events(dev))
		__atomic_fetch_and(&dev->shared->ecr, ~events, __ATOMIC_RELAXED);
}

static int bar1_write(struct vnic_device *dev, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case VMXNET3_REG_VRRS: return select_revision(dev, value);
	case VMXNET3_REG_UVRS: return value == UPT1_VERSIONS ? 0 : -EINVAL;
	case VMXNET3_REG_DSAL: dev->shared_low = value; return 0;
	case VMXNET3_REG_DSAH: dev->shared_high = value; return 0;
	case VMXNET3_REG_CMD: dev->result = vnic_device_command(dev, value); return 0;
	case VMXNET3_REG_MACL: dev->mac_low = value; return 0;
	case VMXNET3_REG_MACH: set_mac(dev, value); return 0;
	case VMXNET3_REG_ECR: acknowledge(dev, value); return 0;
	case VMXNET3_REG_DCR: dev->capabilities = value & CAPABILITIES; return 0;
	default: return -EINVAL;
	}
}

static int bar1_read(struct vnic_device *dev, uint32_t offset, uint32_t *value)
{
	switch (offset) {
	case VMXNET3_REG_VRRS: *value = VMXNET3_REVISIONS; return 0;
	case VMXNET3_REG_UVRS: *value = UPT1_VERSIONS; return 0;
	case VMXNET3_REG_DSAL: *value = dev->shared_low; return 0;
	case VMXNET3_REG_DSAH: *value = dev->shared_high; return 0;
	case VMXNET3_REG_CMD: *value = dev->result; return 0;
	case VMXNET3_REG_MACL: *value = vnic_mac_low(dev->mac); return 0;
	case VMXNET3_REG_MACH: *value = vnic_mac_high(dev->mac); return 0;
	case VMXNET3_REG_ICR: *value = 0; return 0; /* no INTx */
	case VMXNET3_REG_ECR: *value = has_events(dev) ? vnic_load(&dev->shared->ecr) : 0; return 0;
	case VMXNET3_REG_DCR: *value = CAPABILITIES; return 0;
	case VMXNET3_REG_PTCR: *value = VMXNET3_PTCR_NO_PASS_THROUGH; return 0;
	default: return -EINVAL;
	}
}

static bool one_of(uint32_t offset, uint32_t first, uint32_t count)
{
	return offset >= first && offset - first < count * VMXNET3_REG_STRIDE &&
	       offset % VMXNET3_REG_STRIDE == 0;
}

static bool is_mask(uint32_t offset)
{
	return one_of(offset, VMXNET3_REG_IMR, VMXNET3_MAX_INTRS);
}

/* Whether vmxnet3 has a BAR0 register at the offset. */
static bool bar0_register(uint32_t offset)
{
	return is_mask(offset) || one_of(offset, VMXNET3_REG_TXPROD, VMXNET3_MAX_TX_QUEUES) ||
	       one_of(offset, VMXNET3_REG_RXPROD, VMXNET3_MAX_RX_QUEUES) ||
	       one_of(offset, VMXNET3_REG_RXPROD2, VMXNET3_MAX_RX_QUEUES);
}

bool vnic_device_last_frame(const struct vnic_device *dev, struct vnic_tx_frame *frame)
{
	*frame = (struct vnic_tx_frame){
		.data = (const uint8_t *)vnic_reg(dev->attr.bars, VNIC_REG_LAST_FRAME),
		.len = vnic_acquire(vnic_reg(dev->attr.bars, VNIC_REG_LAST_LENGTH)),
	};
	return frame->len >= VNIC_ETH_HEADER && frame->len <= VNIC_LAST_FRAME_MAX;
}

int vnic_device_reg_write(struct vnic_device *dev, uint32_t bar, uint32_t offset, uint32_t value)
{
	if (bar == 1)
		return bar1_write(dev, offset, value);
	if (bar != 0 || !bar0_register(offset))
		return -EINVAL;
	vnic_publish(vnic_reg(dev->attr.bars, offset), value);
	if (is_mask(offset))
		vnic_device_mask_written(dev, (offset - VMXNET3_REG_IMR) / VMXNET3_REG_STRIDE,
					 value);
	return 0;
}

int vnic_device_reg_read(struct vnic_device *dev, uint32_t bar, uint32_t offset, uint32_t *value)
{
	if (bar == 1)
		return bar1_read(dev, offset, value);
	if (bar != 0 || !bar0_register(offset))
		return -EINVAL;
	*value = vnic_load(vnic_reg(dev->attr.bars, offset));
	return 0;
}
