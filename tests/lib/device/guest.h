/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A guest by hand: memory in three pieces with a hole between, any number of
 * queues, and a vmxnet3 driver's rings with their generation bits. It follows
 * vmxnet3's rules; what breaks them is in tests/unit/vnic/test_device.c.
 */
#ifndef URXE_TEST_GUEST_H
#define URXE_TEST_GUEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <vnic/device.h>
#include <vnic/regs.h>

#define GUEST_RING   64
#define GUEST_MTU    9000
#define GUEST_BUFFER 2048
#define GUEST_REGION 0x400000u
/* Low memory; behind a hole, two pieces that are adjacent in the guest and apart on the host. */
#define GUEST_LOW    0x1000u
#define GUEST_HIGH   0x100000000u
#define GUEST_HIGHER (GUEST_HIGH + GUEST_REGION)

struct guest_ring {
	void *base;
	uint64_t addr;
	uint32_t size, next;
	uint32_t gen;
};

struct guest_txq {
	struct vmxnet3_tx_queue_desc *conf;
	struct guest_ring ring, comp;
	uint64_t data_ring;
};

struct guest_rxq {
	struct vmxnet3_rx_queue_desc *conf;
	struct guest_ring ring[2], comp;
	uint64_t data_ring;
};

struct guest {
	struct vnic_region regions[3];
	uint64_t used[3]; /* bytes allocated of each piece */
	void *bars;
	uint64_t shared_addr;
	struct vmxnet3_driver_shared *shared;
	struct guest_txq tx[VMXNET3_MAX_TX_QUEUES];
	struct guest_rxq rx[VMXNET3_MAX_RX_QUEUES];
	struct vnic_device *dev;
	uint32_t interrupts[VMXNET3_MAX_INTRS];
	void *moved[3]; /* after guest_restore: where the device has the pieces */
};

enum guest_place { GUEST_IN_LOW, GUEST_IN_HIGH, GUEST_IN_HIGHER };

static inline uint64_t guest_alloc(struct guest *g, enum guest_place place, uint64_t size)
{
	uint64_t at = g->used[place];

	g->used[place] = (at + size + 511) / 512 * 512;
	assert_true(g->used[place] <= GUEST_REGION);
	return g->regions[place].addr + at;
}

static inline void *guest_at(const struct guest *g, uint64_t addr)
{
	for (size_t i = 0; i < 3; i++)
		if (addr - g->regions[i].addr < g->regions[i].size)
			return (uint8_t *)g->regions[i].memory + (addr - g->regions[i].addr);
	fail_msg("no memory at %llx", (unsigned long long)addr);
	return NULL;
}

static inline void guest_interrupt(void *ctx, uint32_t vector)
{
	struct guest *g = ctx;

	assert_true(vector < VMXNET3_MAX_INTRS);
	g->interrupts[vector]++;
}

static inline void guest_ring_init(struct guest *g, struct guest_ring *ring, uint32_t size)
{
	ring->addr = guest_alloc(g, GUEST_IN_HIGH, size * 16ull);
	ring->base = guest_at(g, ring->addr);
	ring->size = size;
	ring->next = 0;
	ring->gen = 1;
}

/* Resets the ring to its first lap, as a driver does before it activates the NIC. */
static inline void guest_ring_reset(struct guest_ring *ring)
{
	memset(ring->base, 0, ring->size * 16ull);
	ring->next = 0;
	ring->gen = 1;
}

static inline void guest_advance(struct guest_ring *ring)
{
	if (++ring->next == ring->size) {
		ring->next = 0;
		ring->gen ^= 1;
	}
}

/* --- Registers */

static inline void guest_write(struct guest *g, uint32_t offset, uint32_t value)
{
	assert_int_equal(vnic_device_reg_write(g->dev, 1, offset, value), 0);
}

static inline uint32_t guest_read(struct guest *g, uint32_t offset)
{
	uint32_t value;

	assert_int_equal(vnic_device_reg_read(g->dev, 1, offset, &value), 0);
	return value;
}

static inline uint32_t guest_command(struct guest *g, uint32_t cmd)
{
	guest_write(g, VMXNET3_REG_CMD, cmd);
	return guest_read(g, VMXNET3_REG_CMD);
}

/* --- Setting up */

static inline void guest_setup_tx(struct guest *g, struct guest_txq *q, uint8_t vector)
{
	guest_ring_init(g, &q->ring, GUEST_RING);
	guest_ring_init(g, &q->comp, GUEST_RING);
	q->data_ring = guest_alloc(g, GUEST_IN_HIGH, GUEST_RING * 128ull);
	q->conf->ring_addr = q->ring.addr;
	q->conf->ring_size = q->ring.size;
	q->conf->comp_ring_addr = q->comp.addr;
	q->conf->comp_ring_size = q->comp.size;
	q->conf->data_ring_addr = q->data_ring;
	q->conf->data_ring_size = GUEST_RING;
	q->conf->data_desc_size = 128;
	q->conf->vector = vector;
}

static inline void guest_setup_rx(struct guest *g, struct guest_rxq *q, uint8_t vector)
{
	for (uint32_t i = 0; i < 2; i++) {
		guest_ring_init(g, &q->ring[i], GUEST_RING);
		q->conf->ring_addr[i] = q->ring[i].addr;
		q->conf->ring_size[i] = q->ring[i].size;
	}
	guest_ring_init(g, &q->comp, 2 * GUEST_RING);
	q->conf->comp_ring_addr = q->comp.addr;
	q->conf->comp_ring_size = q->comp.size;
	q->conf->vector = vector;
}

/* Interrupt vectors: first the transmit queues', then the receive queues', then the events'. */
static inline struct guest *guest_create(uint8_t tx_queues, uint8_t rx_queues)
{
	static const uint64_t places[3] = {GUEST_LOW, GUEST_HIGH, GUEST_HIGHER};
	struct guest *g = calloc(1, sizeof(*g));
	struct vmxnet3_tx_queue_desc *conf;
	struct vnic_device_attr attr = {
		.regions = g->regions,
		.region_count = 3,
		.mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55},
		.mtu = GUEST_MTU,
		.interrupt = guest_interrupt,
		.ctx = g,
	};

	for (size_t i = 0; i < 3; i++)
		g->regions[i] = (struct vnic_region){
			.addr = places[i],
			.size = GUEST_REGION,
			.memory = mmap(NULL, GUEST_REGION, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		};
	attr.bars = g->bars = aligned_alloc(4096, VNIC_BAR_SIZE);
	memset(g->bars, 0, VNIC_BAR_SIZE);
	assert_int_equal(vnic_device_create(&attr, &g->dev), 0);

	g->shared_addr = guest_alloc(g, GUEST_IN_LOW, sizeof(*g->shared));
	g->shared = guest_at(g, g->shared_addr);
	g->shared->magic = VMXNET3_REV1_MAGIC;
	g->shared->misc.mtu = GUEST_MTU;
	g->shared->misc.tx_queues = tx_queues;
	g->shared->misc.rx_queues = rx_queues;
	g->shared->misc.queue_desc_addr =
		guest_alloc(g, GUEST_IN_LOW, (tx_queues + rx_queues) * sizeof(*conf));
	g->shared->rx_filter.mode = VMXNET3_RXM_PROMISC;
	g->shared->intr.auto_mask = 1;
	g->shared->intr.vectors = (uint8_t)(tx_queues + rx_queues + 1);
	g->shared->intr.event_vector = (uint8_t)(tx_queues + rx_queues);
	conf = guest_at(g, g->shared->misc.queue_desc_addr);
	for (uint8_t i = 0; i < tx_queues; i++) {
		g->tx[i].conf = &conf[i];
		guest_setup_tx(g, &g->tx[i], i);
	}
	for (uint8_t i = 0; i < rx_queues; i++) {
		g->rx[i].conf = (struct vmxnet3_rx_queue_desc *)&conf[tx_queues + i];
		guest_setup_rx(g, &g->rx[i], (uint8_t)(tx_queues + i));
	}
	return g;
}

static inline void guest_destroy(struct guest *g)
{
	vnic_device_destroy(g->dev);
	for (size_t i = 0; i < 3; i++)
		munmap(g->regions[i].memory, GUEST_REGION);
	for (size_t i = 0; i < 3; i++)
		if (g->moved[i])
			munmap(g->moved[i], GUEST_REGION);
	free(g->bars);
	free(g);
}

/* Pauses the device; the caller frees the stream. */
static inline void guest_save(struct guest *g, uint8_t **stream, size_t *length)
{
	vnic_device_pause(g->dev);
	assert_int_equal(vnic_device_save(g->dev, stream, length), 0);
}

/*
 * Replaces the paused device by another one, which gets the state of the stream, and has the
 * guest's memory at other addresses of this process. That memory is not accessible during the
 * restoration.
 */
static inline void guest_restore(struct guest *g, const uint8_t *stream, size_t length)
{
	struct vnic_region regions[3];
	struct vnic_device_attr attr = {
		.regions = regions,
		.region_count = 3,
		.mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55},
		.mtu = GUEST_MTU,
		.interrupt = guest_interrupt,
		.ctx = g,
	};
	struct vnic_device *dev;

	attr.bars = aligned_alloc(4096, VNIC_BAR_SIZE);
	memset(attr.bars, 0, VNIC_BAR_SIZE);
	memcpy(regions, g->regions, sizeof(regions));
	for (size_t i = 0; i < 3; i++) {
		regions[i].memory = mremap(g->regions[i].memory, 0, GUEST_REGION, MREMAP_MAYMOVE);
		assert_ptr_not_equal(regions[i].memory, MAP_FAILED);
	}
	assert_int_equal(vnic_device_create(&attr, &dev), 0);
	for (size_t i = 0; i < 3; i++)
		mprotect(regions[i].memory, GUEST_REGION, PROT_NONE);
	assert_int_equal(vnic_device_restore(dev, stream, length), 0);
	vnic_device_destroy(g->dev);
	free(g->bars);
	for (size_t i = 0; i < 3; i++) {
		mprotect(regions[i].memory, GUEST_REGION, PROT_READ | PROT_WRITE);
		if (g->moved[i])
			munmap(g->moved[i], GUEST_REGION);
		g->moved[i] = regions[i].memory;
	}
	g->dev = dev;
	g->bars = attr.bars;
	vnic_device_resume(dev);
}

static inline void guest_move(struct guest *g)
{
	uint8_t *stream;
	size_t length;

	guest_save(g, &stream, &length);
	guest_restore(g, stream, length);
	free(stream);
}

static inline void guest_mask(struct guest *g, uint32_t vector, uint32_t masked)
{
	uint32_t offset = VMXNET3_REG_IMR + vector * VMXNET3_REG_STRIDE;

	assert_int_equal(vnic_device_reg_write(g->dev, 0, offset, masked), 0);
}

/* Returns the result of the activation command; interrupts are unmasked afterwards. */
static inline uint32_t guest_activate(struct guest *g)
{
	uint32_t result;

	guest_write(g, VMXNET3_REG_DSAL, (uint32_t)g->shared_addr);
	guest_write(g, VMXNET3_REG_DSAH, (uint32_t)(g->shared_addr >> 32));
	result = guest_command(g, (uint32_t)VMXNET3_CMD_ACTIVATE_DEV);
	for (uint32_t i = 0; i < VMXNET3_MAX_INTRS; i++)
		guest_mask(g, i, 0);
	return result;
}

/* --- Transmit */

/* Posts one descriptor; `word` and `flags` without their generation bits. */
static inline void guest_post_tx(struct guest_txq *q, uint64_t addr, uint32_t word, uint32_t flags)
{
	struct vmxnet3_tx_desc *desc = q->ring.base;

	desc[q->ring.next] = (struct vmxnet3_tx_desc){
		.addr = addr,
		.len = word | (q->ring.gen ? VMXNET3_TXD_GEN : 0),
		.flags = flags,
	};
	guest_advance(&q->ring);
}

/* The index in the next completion; -1: no completion. */
static inline int guest_tx_completed(struct guest_txq *q)
{
	const struct vmxnet3_tx_comp *comp =
		(const struct vmxnet3_tx_comp *)q->comp.base + q->comp.next;

	if (comp->gen >> 31 != q->comp.gen)
		return -1;
	guest_advance(&q->comp);
	return (int)(comp->index & VMXNET3_CD_INDEX);
}

/* --- Receive */

static inline uint64_t guest_post_rx(struct guest *g, struct guest_rxq *q, uint32_t ring,
				     uint32_t word)
{
	struct vmxnet3_rx_desc *desc = q->ring[ring].base;
	uint64_t addr = guest_alloc(g, GUEST_IN_HIGHER, word & VMXNET3_RXD_LEN);

	desc[q->ring[ring].next] = (struct vmxnet3_rx_desc){
		.addr = addr,
		.len = word | (q->ring[ring].gen ? VMXNET3_RXD_GEN : 0),
	};
	guest_advance(&q->ring[ring]);
	return addr;
}

/* The next completion; NULL: no completion. */
static inline const struct vmxnet3_rx_comp *guest_received(struct guest_rxq *q)
{
	const struct vmxnet3_rx_comp *comp =
		(const struct vmxnet3_rx_comp *)q->comp.base + q->comp.next;

	if (comp->gen >> 31 != q->comp.gen)
		return NULL;
	guest_advance(&q->comp);
	return comp;
}

/* The number of the completion's queue, as vmxnet3 counts queues. */
static inline uint32_t guest_rqid(const struct vmxnet3_rx_comp *comp)
{
	return (comp->index & VMXNET3_RCD_RQID) >> VMXNET3_RCD_RQID_SHIFT;
}

#endif
