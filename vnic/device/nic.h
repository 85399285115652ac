/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device's private state: nothing in it can be reached by the driver. */
#ifndef URXE_VNIC_DEVICE_NIC_H
#define URXE_VNIC_DEVICE_NIC_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/device.h>
#include <vnic/regs.h>

#include "cursor.h"

/* Frames that vnic_device_tx shows ahead: more than any burst of the switch. */
#define VNIC_TX_AHEAD 64

/* A frame that was checked and waits for vnic_device_tx_done. */
struct vnic_tx_pending {
	const uint8_t *data;
	uint32_t len;
	uint16_t eop;    /* index of its last descriptor */
	bool completion; /* the driver asked for one */
	bool gathered;   /* data is the bounce buffer */
};

struct vnic_device_txq {
	struct vmxnet3_tx_queue_desc *shared;
	struct vmxnet3_tx_desc *ring;
	struct vmxnet3_tx_comp *comp;
	struct vnic_cursor next;      /* the first descriptor not looked at */
	struct vnic_cursor comp_next; /* the first free completion */
	struct vnic_tx_pending pending[VNIC_TX_AHEAD];
	uint32_t first, count; /* of pending, a queue */
	bool bounce_used;
	uint8_t vector;
};

struct vnic_device_rxq {
	struct vmxnet3_rx_queue_desc *shared;
	struct vmxnet3_rx_desc *ring[2];
	struct vmxnet3_rx_comp *comp;
	struct vnic_cursor next[2];
	struct vnic_cursor comp_next;
	bool starved; /* a frame was refused, and none has been taken since */
	uint8_t vector;
};

struct vnic_device {
	struct vnic_device_attr attr;
	enum vnic_device_state state;
	uint64_t counters[VNIC_COUNTER_COUNT];
	uint32_t shared_low, shared_high; /* DSAL, DSAH */
	uint32_t result;                  /* of the last command */
	struct vmxnet3_driver_shared *shared;
	struct vnic_device_txq tx;
	struct vnic_device_rxq rx;
	uint32_t interrupts; /* vectors with news for the driver, a bit each */
	uint8_t vectors;
	uint8_t event_vector;
	bool auto_mask;
	uint32_t frame_max;
	uint8_t *bounce; /* where a frame of several descriptors is gathered */
};

/* `size` bytes at `addr` of the driver's memory; NULL where they do not lie in it. */
static inline void *vnic_device_memory(const struct vnic_device *dev, uint64_t addr, uint64_t size)
{
	if (addr > dev->attr.memory_size || size > dev->attr.memory_size - addr)
		return NULL;
	return (uint8_t *)dev->attr.memory + addr;
}

/* Reads what the driver has set up; false, and nothing changed, where it makes no sense. */
bool vnic_device_configure(struct vnic_device *dev);
/* The driver broke the contract: its queues stop with `error` until it resets the NIC. */
void vnic_device_break(struct vnic_device *dev, uint32_t event, uint32_t error);
/* The driver has something to look at: vnic_device_flush interrupts for it. */
void vnic_device_news(struct vnic_device *dev, uint8_t vector);

#endif
