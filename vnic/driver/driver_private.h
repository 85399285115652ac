/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The driver's private state, and the layout of the memory that it shares with the device. */
#ifndef URXE_VNIC_DRIVER_PRIVATE_H
#define URXE_VNIC_DRIVER_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/driver.h>
#include <vnic/regs.h>

#include "cursor.h"
#include "transport.h"

/*
 * The buffers of a ring are used in turn, so all of them pass through the cache. Cost of a frame,
 * sent and received in one thread (EPYC, 4,158-byte frames in bursts of 32): 457 ns with 1,024
 * descriptors to send and 2,048 to receive, 338 with 256 and 1,024, 311 with 256 and 512. But fewer
 * receive buffers hold less of a burst from an uplink, and the rest of the burst is lost.
 */
#define TX_RING_SIZE  256
#define RX_RING_SIZE  1024
#define RX_RING2_SIZE VMXNET3_RING_SIZE_ALIGN /* never filled: one buffer holds a frame */

enum vnic_vector { RX_VECTOR, TX_VECTOR, VECTORS };

/*
 * The device sees this memory at address 0. Page 0 stays empty: address 0 means "none" in vmxnet3.
 */
struct vnic_driver_memory {
	uint8_t none[4096];
	struct vmxnet3_driver_shared shared;
	_Alignas(VMXNET3_QUEUE_DESC_ALIGN) struct vmxnet3_queue_pair queues;
	_Alignas(4096) struct vmxnet3_tx_desc tx_ring[TX_RING_SIZE];
	_Alignas(4096) struct vmxnet3_tx_comp tx_comp[TX_RING_SIZE];
	_Alignas(4096) struct vmxnet3_rx_desc rx_ring[RX_RING_SIZE];
	_Alignas(4096) struct vmxnet3_rx_desc rx_ring2[RX_RING2_SIZE];
	_Alignas(4096) struct vmxnet3_rx_comp rx_comp[RX_RING_SIZE + RX_RING2_SIZE];
	/* Transmit buffers, then receive buffers, one for each descriptor. */
	_Alignas(4096) uint8_t buffers[];
};

/*
 * As in every vmxnet3 driver, one descriptor of each ring stays unposted: equal producer and
 * consumer indices mean an empty ring.
 */
struct vnic_driver_txq {
	struct vnic_cursor fill; /* the next descriptor to post */
	struct vnic_cursor comp;
	uint32_t oldest;    /* first descriptor posted and not completed */
	uint32_t free;      /* descriptors that may be posted */
	bool short_of;      /* a reservation got less than requested */
	bool held;          /* a commit of one short frame rings no doorbell */
	bool due;           /* a frame was committed, and its doorbell has not been rung yet */
	uint32_t doorbells; /* how often the doorbell was rung */
};

struct vnic_driver_rxq {
	struct vnic_cursor fill;
	struct vnic_cursor comp;
	uint32_t next;  /* the descriptor that completes next */
	uint32_t taken; /* frames that the caller has not released */
};

struct vnic_driver {
	struct vnic_transport *transport;
	struct vnic_driver_memory *memory;
	uint16_t mtu;
	uint32_t frame_max;
	uint32_t stride; /* distance of two buffers, bytes */
	bool broken;     /* see vnic_driver_broken() */
	struct vnic_driver_txq tx;
	struct vnic_driver_rxq rx;
	bool interrupts; /* the caller wants receive interrupts */
	uint32_t rx_mode;
	uint32_t qpns_set; /* QPN_SET messages sent since the driver connected */
	/* The last introduction that came as a notice; fds[0] is -1 if there is none. */
	uint32_t introduced_qpn;
	int introduced_fds[VNIC_INBOX_FDS];
	bool record_asked; /* a NOTICE_RECORD has come, which vnic_driver_record() returns */
	int record_fd;     /* its ring; -1: it ends the recording */
};

static inline uint8_t *vnic_driver_tx_buffer(const struct vnic_driver *drv, uint32_t index)
{
	return drv->memory->buffers + (uint64_t)index * drv->stride;
}

static inline uint8_t *vnic_driver_rx_buffer(const struct vnic_driver *drv, uint32_t index)
{
	return drv->memory->buffers + (uint64_t)(TX_RING_SIZE + index) * drv->stride;
}

/* The address by which the device knows the memory. */
static inline uint64_t vnic_driver_addr(const struct vnic_driver *drv, const void *p)
{
	return (uint64_t)((const uint8_t *)p - (const uint8_t *)drv->memory);
}

void vnic_driver_tx_init(struct vnic_driver *drv);
void vnic_driver_rx_init(struct vnic_driver *drv);
/* Whether the device has completed transmit buffers that the driver has not freed yet. */
bool vnic_driver_tx_waiting(const struct vnic_driver *drv);
/* Whether the device has delivered frames that vnic_driver_rx has not returned yet. */
bool vnic_driver_rx_waiting(const struct vnic_driver *drv);
/* Unmasks a vector. The caller then looks for completions, because those that came before raise no
 * interrupt. */
void vnic_driver_irq_arm(struct vnic_driver *drv, enum vnic_vector vector);
int vnic_driver_reg_write(struct vnic_driver *drv, uint32_t offset, uint32_t value);
int vnic_driver_reg_read(struct vnic_driver *drv, uint32_t offset, uint32_t *value);
/* `mtu`: the NIC's. */
bool vnic_driver_port_valid(uint16_t mtu, const struct vnic_attach_port *port);
bool vnic_driver_is_lease(uint32_t qpn_first);
/* Frees the number transport->spare, or reserves it again. */
void vnic_driver_release_spare(struct vnic_transport *transport);
void vnic_driver_keep_spare(struct vnic_transport *transport);
void vnic_driver_init_notices(struct vnic_driver *drv);
/* Closes the descriptors of notices that the owner has not taken. */
void vnic_driver_close_notices(struct vnic_driver *drv);

#endif
