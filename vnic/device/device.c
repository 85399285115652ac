/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Life, state and registers of the device. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic.h"
#include "shared.h"

const char *vnic_counter_name(enum vnic_counter counter)
{
#define NAME(id, name, text) [VNIC_##id] = name,
	static const char *const names[] = {VNIC_COUNTER_LIST(NAME)};
#undef NAME
	return counter < VNIC_COUNTER_COUNT ? names[counter] : "unknown";
}

int vnic_device_create(const struct vnic_device_attr *attr, struct vnic_device **dev)
{
	struct vnic_device *d;

	if (!attr->memory || !attr->bars || !attr->interrupt || attr->mtu < VMXNET3_MIN_MTU ||
	    attr->mtu > VMXNET3_MAX_MTU)
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->bounce = malloc(VNIC_FRAME_MAX(attr->mtu));
	if (!d->bounce) {
		free(d);
		return -ENOMEM;
	}
	d->attr = *attr;
	*dev = d;
	return 0;
}

void vnic_device_destroy(struct vnic_device *dev)
{
	if (!dev)
		return;
	free(dev->bounce);
	free(dev);
}

enum vnic_device_state vnic_device_state(const struct vnic_device *dev)
{
	return dev->state;
}

const uint64_t *vnic_device_counters(const struct vnic_device *dev)
{
	return dev->counters;
}

/* Frames that were shown and not done are forgotten: vnic_device_tx_done finds none. */
static void stop(struct vnic_device *dev)
{
	dev->state = VNIC_DEVICE_DOWN;
	dev->tx.count = 0;
}

void vnic_device_break(struct vnic_device *dev, uint32_t event, uint32_t error)
{
	struct vmxnet3_queue_status *status =
		event == VMXNET3_ECR_TQERR ? &dev->tx.shared->status : &dev->rx.shared->status;

	stop(dev);
	dev->state = VNIC_DEVICE_BROKEN;
	vnic_store(&status->error, error);
	vnic_store(&status->stopped, 1);
	__atomic_fetch_or(&dev->shared->ecr, event, __ATOMIC_RELEASE);
	/* At once: nobody flushes a device that is not active. */
	vnic_device_news(dev, dev->event_vector);
	vnic_device_flush(dev);
}

static void activate(struct vnic_device *dev)
{
	stop(dev);
	if (!vnic_device_configure(dev)) {
		dev->result = 1;
		return;
	}
	dev->state = VNIC_DEVICE_ACTIVE;
}

bool vnic_device_hears_multicast(const struct vnic_device *dev)
{
	return dev->state == VNIC_DEVICE_ACTIVE &&
	       vnic_load(&dev->shared->rx_filter.mode) &
		       (VMXNET3_RXM_MCAST | VMXNET3_RXM_ALL_MULTI);
}

static uint32_t mac_low(const uint8_t mac[6])
{
	return mac[0] | mac[1] << 8 | mac[2] << 16 | (uint32_t)mac[3] << 24;
}

static uint32_t mac_high(const uint8_t mac[6])
{
	return mac[4] | mac[5] << 8;
}

/* An unknown command fails (result 1), as a device older than its driver would have it. */
static void command(struct vnic_device *dev, uint32_t cmd)
{
	dev->result = 0;
	switch (cmd) {
	case (uint32_t)VMXNET3_CMD_ACTIVATE_DEV: activate(dev); break;
	case (uint32_t)VMXNET3_CMD_QUIESCE_DEV:
	case (uint32_t)VMXNET3_CMD_RESET_DEV: stop(dev); break;
	case (uint32_t)VMXNET3_CMD_UPDATE_RX_MODE:   /* looked up when it matters */
	case (uint32_t)VMXNET3_CMD_GET_QUEUE_STATUS: /* kept up to date in the queue descriptors */
		break;
	case (uint32_t)VMXNET3_CMD_GET_LINK: dev->result = VMXNET3_LINK_UP(10000); break;
	case (uint32_t)VMXNET3_CMD_GET_PERM_MAC_LO: dev->result = mac_low(dev->attr.mac); break;
	case (uint32_t)VMXNET3_CMD_GET_PERM_MAC_HI: dev->result = mac_high(dev->attr.mac); break;
	case (uint32_t)VMXNET3_CMD_GET_CONF_INTR:
		dev->result = VMXNET3_IT_MSIX | VMXNET3_IMM_AUTO << 2;
		break;
	default: dev->result = 1;
	}
}

static int bar1_write(struct vnic_device *dev, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case VMXNET3_REG_VRRS: return value == VMXNET3_REVISIONS ? 0 : -EINVAL;
	case VMXNET3_REG_UVRS: return value == UPT1_VERSIONS ? 0 : -EINVAL;
	case VMXNET3_REG_DSAL: dev->shared_low = value; return 0;
	case VMXNET3_REG_DSAH: dev->shared_high = value; return 0;
	case VMXNET3_REG_CMD: command(dev, value); return 0;
	case VMXNET3_REG_ECR:
		if (dev->state != VNIC_DEVICE_DOWN)
			__atomic_fetch_and(&dev->shared->ecr, ~value, __ATOMIC_RELAXED);
		return 0;
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
	case VMXNET3_REG_MACL: *value = mac_low(dev->attr.mac); return 0;
	case VMXNET3_REG_MACH: *value = mac_high(dev->attr.mac); return 0;
	case VMXNET3_REG_ICR: *value = 0; return 0; /* no INTx */
	default: return -EINVAL;
	}
}

/* BAR0 words that vmxnet3 has, with our one queue pair; what lies beyond is not a register. */
static bool bar0_register(uint32_t offset)
{
	return offset == VMXNET3_REG_TXPROD || offset == VMXNET3_REG_RXPROD ||
	       offset == VMXNET3_REG_RXPROD2 ||
	       (offset < VMXNET3_MAX_INTRS * VMXNET3_REG_STRIDE &&
		offset % VMXNET3_REG_STRIDE == 0);
}

int vnic_device_reg_write(struct vnic_device *dev, uint32_t bar, uint32_t offset, uint32_t value)
{
	if (bar == 1)
		return bar1_write(dev, offset, value);
	if (bar != 0 || !bar0_register(offset))
		return -EINVAL;
	vnic_publish(vnic_reg(dev->attr.bars, offset), value);
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
