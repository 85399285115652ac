/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The driver's private state, and how it lays out the memory it shares. */
#ifndef URXE_VNIC_DRIVER_NIC_H
#define URXE_VNIC_DRIVER_NIC_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/driver.h>
#include <vnic/regs.h>

#include "cursor.h"
#include "transport.h"

/*
 * A ring's buffers are used in turn, so that all of them pass through the cache.
 * Sent and received in one thread (EPYC, 4,158-byte frames in bursts of 32), 1,024 + 2,048
 * cost 457 ns a frame, 256 + 1,024 cost 338, 256 + 512 cost 311; but fewer receive
 * buffers hold less of a burst from an uplink, which is lost when they are full.
 */
#define TX_RING_SIZE  256
#define RX_RING_SIZE  1024
#define RX_RING2_SIZE VMXNET3_RING_SIZE_ALIGN /* never filled: one buffer holds a frame */

enum vnic_vector { RX_VECTOR, TX_VECTOR, VECTORS };

/* The device sees this at address 0. Page 0 stays empty: address 0 is vmxnet3's "none". */
struct vnic_driver_memory {
	uint8_t none[4096];
	struct vmxnet3_driver_shared shared;
	_Alignas(VMXNET3_QUEUE_DESC_ALIGN) struct vmxnet3_queue_pair queues;
	_Alignas(4096) struct vmxnet3_tx_desc tx_ring[TX_RING_SIZE];
	_Alignas(4096) struct vmxnet3_tx_comp tx_comp[TX_RING_SIZE];
	_Alignas(4096) struct vmxnet3_rx_desc rx_ring[RX_RING_SIZE];
	_Alignas(4096) struct vmxnet3_rx_desc rx_ring2[RX_RING2_SIZE];
	_Alignas(4096) struct vmxnet3_rx_comp rx_comp[RX_RING_SIZE + RX_RING2_SIZE];
	/* Transmit buffers, then receive buffers, one a descriptor. */
	_Alignas(4096) uint8_t buffers[];
};

/*
 * As every vmxnet3 driver, both rings leave one descriptor unposted: a producer
 * index equal to the consumer's means empty.
 */
struct vnic_driver_txq {
	struct vnic_cursor fill; /* the next descriptor to post */
	struct vnic_cursor comp;
	uint32_t oldest; /* posted and not completed */
	uint32_t free;   /* descriptors that may be posted */
	bool short_of;   /* a reservation got less than it asked for */
};

struct vnic_driver_rxq {
	struct vnic_cursor fill;
	struct vnic_cursor comp;
	uint32_t next;  /* the descriptor that completes next */
	uint32_t taken; /* frames that the caller holds */
};

struct vnic_driver {
	struct vnic_transport *transport;
	struct vnic_driver_memory *memory;
	uint32_t frame_max;
	uint32_t stride; /* from one buffer to the next */
	bool broken;     /* see vnic_driver_broken */
	struct vnic_driver_txq tx;
	struct vnic_driver_rxq rx;
	bool interrupts; /* the caller wants them */
	uint32_t rx_mode;
};

static inline uint8_t *vnic_driver_tx_buffer(const struct vnic_driver *drv, uint32_t index)
{
	return drv->memory->buffers + (uint64_t)index * drv->stride;
}

static inline uint8_t *vnic_driver_rx_buffer(const struct vnic_driver *drv, uint32_t index)
{
	return drv->memory->buffers + (uint64_t)(TX_RING_SIZE + index) * drv->stride;
}

/* Where the device sees it. */
static inline uint64_t vnic_driver_addr(const struct vnic_driver *drv, const void *p)
{
	return (uint64_t)((const uint8_t *)p - (const uint8_t *)drv->memory);
}

void vnic_driver_tx_init(struct vnic_driver *drv);
void vnic_driver_rx_init(struct vnic_driver *drv);
bool vnic_driver_tx_waiting(const struct vnic_driver *drv);
bool vnic_driver_rx_waiting(const struct vnic_driver *drv);
/* Unmasks a vector; what completed before that has to be looked for afterwards. */
void vnic_driver_irq_arm(struct vnic_driver *drv, enum vnic_vector vector);

#endif
