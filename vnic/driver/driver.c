/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Activates and quiesces the NIC, as Linux' vmxnet3_activate_dev and vmxnet3_quiesce_dev do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach_socket.h"
#include "driver_private.h"
#include "shared.h"

/* The driver uses nothing of later revisions. */
#define DRIVER_REVISIONS (VMXNET3_REV_1 | VMXNET3_REV_2 | VMXNET3_REV_3)
/*
 * The driver's memory has the descriptors first, then all buffers; a buffer starts on a cache line.
 */
#define CACHE_LINE 64
#define RX_MODE    (VMXNET3_RXM_UCAST | VMXNET3_RXM_BCAST)

static uint64_t memory_size(const struct vnic_driver *drv)
{
	return sizeof(struct vnic_driver_memory) +
	       (uint64_t)(TX_RING_SIZE + RX_RING_SIZE) * drv->stride;
}

static void fill_misc(struct vnic_driver *drv, uint16_t mtu)
{
	struct vmxnet3_driver_shared *shared = &drv->memory->shared;

	shared->magic = VMXNET3_REV1_MAGIC;
	shared->misc.driver_info.gos = 2; /* 64 bits */
	shared->misc.driver_info.revisions = DRIVER_REVISIONS;
	shared->misc.driver_info.upt_versions = UPT1_VERSIONS;
	shared->misc.queue_desc_addr = vnic_driver_addr(drv, &drv->memory->queues);
	shared->misc.queue_desc_len = sizeof(drv->memory->queues);
	shared->misc.mtu = mtu;
	shared->misc.max_rx_sg = 1;
	shared->misc.tx_queues = 1;
	shared->misc.rx_queues = 1;
	shared->intr.auto_mask = 1;
	shared->intr.vectors = VECTORS;
	shared->intr.event_vector = RX_VECTOR;
	drv->rx_mode = RX_MODE;
	shared->rx_filter.mode = drv->rx_mode;
	/* The engine decides which VLANs it accepts. */
	memset(shared->rx_filter.vlan, 0xff, sizeof(shared->rx_filter.vlan));
}

static void fill_queues(struct vnic_driver *drv)
{
	struct vnic_driver_memory *memory = drv->memory;
	struct vmxnet3_tx_queue_desc *tx = &memory->queues.tx;
	struct vmxnet3_rx_queue_desc *rx = &memory->queues.rx;

	tx->ring_addr = vnic_driver_addr(drv, memory->tx_ring);
	tx->ring_size = TX_RING_SIZE;
	tx->comp_ring_addr = vnic_driver_addr(drv, memory->tx_comp);
	tx->comp_ring_size = TX_RING_SIZE;
	tx->vector = TX_VECTOR;
	rx->ring_addr[0] = vnic_driver_addr(drv, memory->rx_ring);
	rx->ring_size[0] = RX_RING_SIZE;
	rx->ring_addr[1] = vnic_driver_addr(drv, memory->rx_ring2);
	rx->ring_size[1] = RX_RING2_SIZE;
	rx->comp_ring_addr = vnic_driver_addr(drv, memory->rx_comp);
	rx->comp_ring_size = RX_RING_SIZE + RX_RING2_SIZE;
	rx->vector = RX_VECTOR;
}

static int run_command(struct vnic_driver *drv, uint32_t cmd, uint32_t *result)
{
	int ret = vnic_driver_reg_write(drv, VMXNET3_REG_CMD, cmd);

	return ret ? ret : vnic_driver_reg_read(drv, VMXNET3_REG_CMD, result);
}

/* Selects the newest common version: both sides of an interface offer a set of versions, one bit
 * each. -EPROTO: none is common; or an error of the transport. */
static int choose_version(struct vnic_driver *drv, uint32_t reg, uint32_t ours)
{
	uint32_t offered;
	int ret = vnic_driver_reg_read(drv, reg, &offered);

	if (ret)
		return ret;
	offered &= ours;
	return offered ? vnic_driver_reg_write(drv, reg, 1u << (31 - __builtin_clz(offered)))
		       : -EPROTO;
}

static int activate_nic(struct vnic_driver *drv)
{
	uint64_t addr = vnic_driver_addr(drv, &drv->memory->shared);
	uint32_t result;
	int ret;

	ret = choose_version(drv, VMXNET3_REG_VRRS, DRIVER_REVISIONS);
	if (!ret)
		ret = choose_version(drv, VMXNET3_REG_UVRS, UPT1_VERSIONS);
	if (!ret)
		ret = vnic_driver_reg_write(drv, VMXNET3_REG_DSAL, (uint32_t)addr);
	if (!ret)
		ret = vnic_driver_reg_write(drv, VMXNET3_REG_DSAH, (uint32_t)(addr >> 32));
	if (!ret)
		ret = run_command(drv, (uint32_t)VMXNET3_CMD_ACTIVATE_DEV, &result);
	if (!ret && result)
		ret = -EIO;
	return ret;
}

static int set_up(struct vnic_driver *drv, uint16_t mtu)
{
	void *memory;
	int ret;

	ret = drv->transport->ops->memory(drv->transport, memory_size(drv), &memory);
	if (ret)
		return ret;
	drv->memory = memory;
	fill_misc(drv, mtu);
	fill_queues(drv);
	vnic_driver_irq_mask(drv);
	vnic_driver_tx_init(drv);
	vnic_driver_rx_init(drv);
	return activate_nic(drv);
}

int vnic_driver_open(struct vnic_transport *transport, uint16_t mtu, struct vnic_driver **drv)
{
	struct vnic_driver *d = calloc(1, sizeof(*d));
	int ret;

	if (!d) {
		transport->ops->close(transport);
		return -ENOMEM;
	}
	d->transport = transport;
	d->mtu = mtu;
	vnic_driver_init_notices(d);
	d->frame_max = VNIC_FRAME_MAX(mtu);
	d->stride = (d->frame_max + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	ret = set_up(d, mtu);
	if (ret) {
		vnic_driver_abandon(d);
		return ret;
	}
	*drv = d;
	return 0;
}

void vnic_driver_detach(struct vnic_driver *drv)
{
	uint32_t result;

	if (!drv)
		return;
	/* Ignores errors: a daemon that has ended cannot answer, and need not. */
	(void)vnic_driver_limit_wait(drv, VNIC_ANSWER_SECONDS);
	(void)run_command(drv, (uint32_t)VMXNET3_CMD_QUIESCE_DEV, &result);
	vnic_driver_abandon(drv);
}

void vnic_driver_abandon(struct vnic_driver *drv)
{
	if (!drv)
		return;
	vnic_driver_close_notices(drv);
	if (drv->transport->ops->close(drv->transport))
		free(drv);
}

void vnic_driver_isolate(struct vnic_driver *drv)
{
	if (drv)
		drv->transport->ops->isolate(drv->transport);
}

bool vnic_driver_choose_multicast(struct vnic_driver *drv, bool on)
{
	uint32_t mode = on ? RX_MODE | VMXNET3_RXM_ALL_MULTI : RX_MODE;

	if (mode == drv->rx_mode)
		return false;
	drv->rx_mode = mode;
	vnic_store(&drv->memory->shared.rx_filter.mode, mode);
	return true;
}

int vnic_driver_apply_multicast(struct vnic_driver *drv)
{
	return vnic_driver_reg_write(drv, VMXNET3_REG_CMD, (uint32_t)VMXNET3_CMD_UPDATE_RX_MODE);
}

void vnic_driver_set_multicast(struct vnic_driver *drv, bool on)
{
	/* A daemon that has ended cannot apply the choice, and delivers no frames either. */
	if (vnic_driver_choose_multicast(drv, on))
		(void)vnic_driver_apply_multicast(drv);
}

bool vnic_driver_broken(const struct vnic_driver *drv)
{
	return drv->broken;
}

int vnic_driver_ctl_fd(const struct vnic_driver *drv)
{
	return drv->transport->ctl_fd;
}

int vnic_driver_limit_wait(const struct vnic_driver *drv, unsigned int seconds)
{
	return vnic_socket_limit_wait(drv->transport->ctl_fd, seconds);
}

int vnic_driver_notice_fd(const struct vnic_driver *drv)
{
	return drv->transport->notice_fd;
}

bool vnic_driver_bypass_allowed(const struct vnic_driver *drv)
{
	return vnic_load(vnic_reg(drv->transport->bar0, VNIC_REG_BYPASS));
}

void vnic_driver_set_last_frame(struct vnic_driver *drv, const uint8_t *data, uint32_t len)
{
	memcpy(vnic_reg(drv->transport->bar0, VNIC_REG_LAST_FRAME), data, len);
	/* If the process is killed before this store, the daemon sends no incomplete frame. */
	vnic_publish(vnic_reg(drv->transport->bar0, VNIC_REG_LAST_LENGTH), len);
}

void vnic_driver_clear_last_frame(struct vnic_driver *drv)
{
	vnic_store(vnic_reg(drv->transport->bar0, VNIC_REG_LAST_LENGTH), 0);
}
