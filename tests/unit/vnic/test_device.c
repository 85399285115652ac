/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device under a driver that the test plays, descriptor by descriptor: operations that our
 * driver does not use (frames over several descriptors and buffers), and forbidden ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/device.h>
#include <vnic/frame.h>
#include <vnic/regs.h>

#define MTU  1500
#define RING 32

enum { /* places of the structures in the memory */
       SHARED = 0x1000,
       QUEUES = 0x2000,
       TX_RING = 0x3000,
       TX_COMP = 0x4000,
       RX_RING = 0x5000,
       RX_RING2 = 0x6000,
       RX_COMP = 0x7000,
       DATA = 0x8000,
       MEMORY = 0x20000,
};

struct nic {
	uint8_t *memory, *bars;
	struct vmxnet3_driver_shared *shared;
	struct vmxnet3_queue_pair *queues;
	struct vmxnet3_tx_desc *tx;
	struct vmxnet3_tx_comp *tx_comp;
	struct vmxnet3_rx_desc *rx, *rx2;
	struct vmxnet3_rx_comp *rx_comp;
	struct vnic_device *dev;
	uint32_t interrupts;
};

static void count_interrupt(void *ctx, uint32_t vector)
{
	struct nic *nic = ctx;

	assert_int_equal(vector, 0);
	nic->interrupts++;
}

static void fill_shared(struct nic *nic)
{
	nic->shared->magic = VMXNET3_REV1_MAGIC;
	nic->shared->misc.queue_desc_addr = QUEUES;
	nic->shared->misc.mtu = MTU;
	nic->shared->misc.tx_queues = nic->shared->misc.rx_queues = 1;
	nic->shared->intr.vectors = 1;
	nic->shared->intr.auto_mask = 1;
	nic->shared->rx_filter.mode = VMXNET3_RXM_PROMISC;
	nic->queues->tx.ring_addr = TX_RING;
	nic->queues->tx.ring_size = nic->queues->tx.comp_ring_size = RING;
	nic->queues->tx.comp_ring_addr = TX_COMP;
	nic->queues->rx.ring_addr[0] = RX_RING;
	nic->queues->rx.ring_addr[1] = RX_RING2;
	nic->queues->rx.ring_size[0] = nic->queues->rx.ring_size[1] = RING;
	nic->queues->rx.comp_ring_addr = RX_COMP;
	nic->queues->rx.comp_ring_size = 2 * RING;
}

static int set_up(void **state)
{
	struct nic *nic = calloc(1, sizeof(*nic));
	struct vnic_region region = {.size = MEMORY};
	struct vnic_device_attr attr = {
		.regions = &region,
		.region_count = 1,
		.mac = {2, 3, 4, 5, 6, 7},
		.mtu = MTU,
		.interrupt = count_interrupt,
		.ctx = nic,
	};

	/* The exact size, so that a sanitizer reports an access behind the end. */
	region.memory = nic->memory = aligned_alloc(4096, MEMORY);
	attr.bars = nic->bars = aligned_alloc(4096, VNIC_BAR_SIZE);
	memset(nic->memory, 0, MEMORY);
	memset(nic->bars, 0, VNIC_BAR_SIZE);
	nic->shared = (void *)(nic->memory + SHARED);
	nic->queues = (void *)(nic->memory + QUEUES);
	nic->tx = (void *)(nic->memory + TX_RING);
	nic->tx_comp = (void *)(nic->memory + TX_COMP);
	nic->rx = (void *)(nic->memory + RX_RING);
	nic->rx2 = (void *)(nic->memory + RX_RING2);
	nic->rx_comp = (void *)(nic->memory + RX_COMP);
	fill_shared(nic);
	*state = nic;
	return vnic_device_create(&attr, &nic->dev);
}

static int tear_down(void **state)
{
	struct nic *nic = *state;

	vnic_device_destroy(nic->dev);
	free(nic->memory);
	free(nic->bars);
	free(nic);
	return 0;
}

static uint32_t command(struct nic *nic, uint32_t cmd)
{
	uint32_t result;

	assert_int_equal(vnic_device_reg_write(nic->dev, 1, VMXNET3_REG_CMD, cmd), 0);
	assert_int_equal(vnic_device_reg_read(nic->dev, 1, VMXNET3_REG_CMD, &result), 0);
	return result;
}

static uint32_t activate_at(struct nic *nic, uint64_t shared)
{
	vnic_device_reg_write(nic->dev, 1, VMXNET3_REG_DSAL, (uint32_t)shared);
	vnic_device_reg_write(nic->dev, 1, VMXNET3_REG_DSAH, (uint32_t)(shared >> 32));
	return command(nic, (uint32_t)VMXNET3_CMD_ACTIVATE_DEV);
}

static void activate(struct nic *nic)
{
	assert_int_equal(activate_at(nic, SHARED), 0);
	assert_int_equal(vnic_device_state(nic->dev), VNIC_DEVICE_ACTIVE);
	assert_int_equal(vnic_device_reg_write(nic->dev, 0, VMXNET3_REG_IMR, 0), 0);
}

static void post_tx(struct nic *nic, uint32_t index, uint64_t addr, uint32_t len, uint32_t flags)
{
	nic->tx[index] = (struct vmxnet3_tx_desc){
		.addr = addr, .len = len | VMXNET3_TXD_GEN, .flags = flags};
}

static void post_rx(struct nic *nic, struct vmxnet3_rx_desc *ring, uint32_t index, uint64_t addr,
		    uint32_t len)
{
	(void)nic;
	ring[index] = (struct vmxnet3_rx_desc){.addr = addr, .len = len | VMXNET3_RXD_GEN};
}

static void expect_broken(struct nic *nic, uint32_t event,
			  const struct vmxnet3_queue_status *status, uint32_t error)
{
	struct vnic_tx_frame frame;
	uint8_t data[60] = {0};

	assert_int_equal(vnic_device_state(nic->dev), VNIC_DEVICE_BROKEN);
	assert_int_equal(nic->shared->ecr, event);
	assert_true(status->stopped);
	assert_int_equal(status->error, error);
	assert_int_equal(nic->interrupts, 1);
	assert_int_equal(vnic_device_tx(nic->dev, 0, &frame, 1), 0);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, sizeof(data)), -ENETDOWN);
	/* A broken NIC affects its driver only: a reset repairs it. */
	assert_int_equal(command(nic, (uint32_t)VMXNET3_CMD_RESET_DEV), 0);
	activate(nic);
}

static void expect_bad_tx(struct nic *nic, uint32_t error)
{
	struct vnic_tx_frame frame;

	assert_int_equal(vnic_device_tx(nic->dev, 0, &frame, 1), 0);
	assert_int_equal(vnic_device_counters(nic->dev)[VNIC_TX_BAD], 1);
	memset(nic->tx, 0, RING * sizeof(*nic->tx));
	expect_broken(nic, VMXNET3_ECR_TQERR, &nic->queues->tx.status, error);
}

/* --- Allowed operations. */

static void test_frame_of_several_descriptors_is_gathered(void **state)
{
	struct nic *nic = *state;
	struct vnic_tx_frame frames[4];

	activate(nic);
	memset(nic->memory + DATA, 'a', 20);
	memset(nic->memory + DATA + 100, 'b', 30);
	memset(nic->memory + DATA + 200, 'c', 40);
	post_tx(nic, 0, DATA, 20, 0);
	post_tx(nic, 1, DATA + 100, 30, 0);
	/* The last descriptor is missing: no frame. */
	assert_int_equal(vnic_device_tx(nic->dev, 0, frames, 4), 0);
	post_tx(nic, 2, DATA + 200, 40, VMXNET3_TXD_EOP | VMXNET3_TXD_CQ);
	post_tx(nic, 3, DATA + 200, 40, VMXNET3_TXD_EOP);
	post_tx(nic, 4, DATA, 14, 0);
	post_tx(nic, 5, DATA, 14, VMXNET3_TXD_EOP);

	assert_int_equal(vnic_device_tx(nic->dev, 0, frames, 4), 3);
	assert_int_equal(frames[0].len, 90);
	assert_memory_equal(frames[0].data, nic->memory + DATA, 20);
	assert_memory_equal(frames[0].data + 20, nic->memory + DATA + 100, 30);
	assert_memory_equal(frames[0].data + 50, nic->memory + DATA + 200, 40);
	/* A frame in one descriptor is not copied. */
	assert_ptr_equal(frames[1].data, nic->memory + DATA + 200);
	assert_int_equal(frames[1].len, 40);
	assert_int_equal(frames[2].len, 28);
	assert_memory_equal(frames[2].data + 14, nic->memory + DATA, 14);
	vnic_device_tx_done(nic->dev, 0, 3);

	/*
	 * Only the frame that asked for a completion gets one, with the index of its last
	 * descriptor.
	 */
	assert_int_equal(nic->tx_comp[0].index, 2);
	assert_int_equal(nic->tx_comp[0].gen, VMXNET3_CD_GEN);
	assert_int_equal(nic->tx_comp[1].gen, 0);
}

static void expect_rx_comp(const struct nic *nic, uint32_t at, uint32_t index, uint32_t ring,
			   uint32_t position, uint32_t len)
{
	const struct vmxnet3_rx_comp *comp = &nic->rx_comp[at];

	assert_int_equal(comp->index,
			 index | ring << VMXNET3_RCD_RQID_SHIFT | position | VMXNET3_RCD_CNC);
	assert_int_equal(comp->len, len);
	assert_int_equal(comp->gen,
			 VMXNET3_CD_GEN | VMXNET3_CDTYPE_RXCOMP << VMXNET3_CD_TYPE_SHIFT);
}

/*
 * A head buffer, a body buffer of ring 0, then body buffers of ring 1; the device skips an unused
 * body buffer.
 */
static void test_long_frame_spans_both_receive_rings(void **state)
{
	struct nic *nic = *state;
	uint8_t data[300];

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	activate(nic);
	post_rx(nic, nic->rx, 0, DATA, 128);
	post_rx(nic, nic->rx, 1, DATA + 128, 128 | VMXNET3_RXD_BODY);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, 300), -ENOBUFS);
	assert_int_equal(nic->queues->rx.update_prod, 1);
	post_rx(nic, nic->rx2, 0, DATA + 256, 128 | VMXNET3_RXD_BODY);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, 300), 0);
	assert_memory_equal(nic->memory + DATA, data, 300);
	expect_rx_comp(nic, 0, 0, 0, VMXNET3_RCD_SOP, 128);
	expect_rx_comp(nic, 1, 1, 0, 0, 128);
	expect_rx_comp(nic, 2, 0, 1, VMXNET3_RCD_EOP, 44);

	post_rx(nic, nic->rx, 2, DATA, 128 | VMXNET3_RXD_BODY);
	post_rx(nic, nic->rx, 3, DATA + 512, 128);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, 60), 0);
	expect_rx_comp(nic, 3, 3, 0, VMXNET3_RCD_SOP | VMXNET3_RCD_EOP, 60);
	assert_int_equal(vnic_device_counters(nic->dev)[VNIC_RX_FRAMES], 2);
}

/* The parts of a frame may end within a buffer or at its end. */
static void test_parts_of_a_received_frame_are_joined(void **state)
{
	static const uint32_t heads[] = {1, 127, 128, 129, 256, 299};
	struct nic *nic = *state;
	uint8_t data[300];
	uint32_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	activate(nic);
	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		const struct iovec parts[] = {{data, heads[i]},
					      {data + heads[i], sizeof(data) - heads[i]}};

		memset(nic->memory + DATA, 0xee, 384);
		post_rx(nic, nic->rx, 3 * i, DATA, 128);
		post_rx(nic, nic->rx, 3 * i + 1, DATA + 128, 128 | VMXNET3_RXD_BODY);
		post_rx(nic, nic->rx, 3 * i + 2, DATA + 256, 128 | VMXNET3_RXD_BODY);
		assert_int_equal(vnic_device_rxv(nic->dev, 0, parts, 2), 0);
		assert_memory_equal(nic->memory + DATA, data, sizeof(data));
	}
}

/*
 * Only head buffers and an empty ring 1: a long frame can never fit, so the device drops it at
 * once.
 */
static void test_frame_that_can_never_fit_is_dropped(void **state)
{
	struct nic *nic = *state;
	uint8_t data[300] = {0};

	activate(nic);
	post_rx(nic, nic->rx, 0, DATA, 128);
	post_rx(nic, nic->rx, 1, DATA, 128);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, 300), -EMSGSIZE);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, 128), 0);
	expect_rx_comp(nic, 0, 0, 0, VMXNET3_RCD_SOP | VMXNET3_RCD_EOP, 128);
}

static void test_frame_in_more_than_16_buffers_is_dropped(void **state)
{
	struct nic *nic = *state;
	uint8_t data[17] = {0};

	activate(nic);
	post_rx(nic, nic->rx, 0, DATA, 1);
	for (uint32_t i = 1; i < RING; i++)
		post_rx(nic, nic->rx, i, DATA + i, 1 | VMXNET3_RXD_BODY);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, 17), -EMSGSIZE);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, 16), 0);
}

static void test_unknown_and_read_only_registers_are_refused(void **state)
{
	struct nic *nic = *state;
	uint32_t value;

	/* As after power-on: every vector is masked. */
	assert_int_equal(vnic_device_reg_read(nic->dev, 0, VMXNET3_REG_IMR, &value), 0);
	assert_int_equal(value, 1);
	activate(nic);
	assert_int_equal(vnic_device_reg_write(nic->dev, 0, VMXNET3_REG_IMR, 1), 0);
	assert_int_equal(*(uint32_t *)nic->bars, 1);
	assert_int_equal(vnic_device_reg_write(nic->dev, 0, VMXNET3_REG_RXPROD2 + 8 * 15, 7), 0);
	assert_int_equal(vnic_device_reg_read(nic->dev, 0, VMXNET3_REG_RXPROD2 + 8 * 15, &value),
			 0);
	assert_int_equal(value, 7);
	/*
	 * An unknown register, an unknown BAR, an address beyond the pages, a read-only register.
	 */
	assert_int_equal(vnic_device_reg_write(nic->dev, 1, 0x44, 1), -EINVAL);
	assert_int_equal(vnic_device_reg_write(nic->dev, 1, VMXNET3_REG_ICR, 1), -EINVAL);
	assert_int_equal(vnic_device_reg_read(nic->dev, 0, 4, &value), -EINVAL);
	assert_int_equal(vnic_device_reg_read(nic->dev, 2, 0, &value), -EINVAL);
	assert_int_equal(vnic_device_reg_write(nic->dev, 0, 0x80000000, 1), -EINVAL);
	assert_int_equal(vnic_device_reg_write(nic->dev, 0, VNIC_REG_ASLEEP, 1), -EINVAL);
	assert_int_equal(vnic_device_reg_write(nic->dev, 0, VMXNET3_REG_TXPROD + 8 * 8, 1),
			 -EINVAL);
	assert_int_equal(vnic_device_reg_write(nic->dev, 1, VMXNET3_REG_UVRS, 2), -EINVAL);
}

/* --- Forbidden operations. */

static void expect_refused(struct nic *nic)
{
	assert_int_equal(activate_at(nic, SHARED), 1);
	assert_int_equal(vnic_device_state(nic->dev), VNIC_DEVICE_DOWN);
	memset(nic->shared, 0, sizeof(*nic->shared));
	memset(nic->queues, 0, sizeof(*nic->queues));
	fill_shared(nic);
	activate(nic);
}

#define REFUSED(nic, field, value)   \
	do {                         \
		(field) = (value);   \
		expect_refused(nic); \
	} while (0)

/* The driver can write any length. */
static void test_last_frame_of_wrong_length_is_ignored(void **state)
{
	const struct {
		uint32_t length;
		bool valid;
	} rows[] = {{0, false},
		    {13, false},
		    {14, true},
		    {VNIC_LAST_FRAME_MAX, true},
		    {VNIC_LAST_FRAME_MAX + 1, false},
		    {UINT32_MAX, false}};
	struct nic *nic = *state;
	struct vnic_tx_frame frame;

	nic->bars[VNIC_REG_LAST_FRAME] = 0xab;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		*(uint32_t *)(nic->bars + VNIC_REG_LAST_LENGTH) = rows[i].length;
		assert_int_equal(vnic_device_last_frame(nic->dev, &frame), rows[i].valid);
		assert_true(!rows[i].valid ||
			    (frame.len == rows[i].length && frame.data[0] == 0xab));
	}
}

static void test_bad_configuration_does_not_activate(void **state)
{
	struct nic *nic = *state;
	struct vmxnet3_tx_queue_desc *tx = &nic->queues->tx;
	struct vmxnet3_rx_queue_desc *rx = &nic->queues->rx;

	REFUSED(nic, nic->shared->magic, 42);
	REFUSED(nic, nic->shared->misc.tx_queues, 0);
	REFUSED(nic, nic->shared->misc.tx_queues, VMXNET3_MAX_TX_QUEUES + 1);
	REFUSED(nic, nic->shared->misc.tx_queues, 2); /* the second queue is not set up */
	REFUSED(nic, nic->shared->misc.rx_queues, 0);
	REFUSED(nic, nic->shared->misc.rx_queues, VMXNET3_MAX_RX_QUEUES + 1);
	REFUSED(nic, nic->shared->misc.rx_queues, 2);
	REFUSED(nic, nic->shared->misc.mtu, MTU + 1);
	REFUSED(nic, nic->shared->misc.mtu, 0);
	REFUSED(nic, nic->shared->misc.queue_desc_addr, 0);
	REFUSED(nic, nic->shared->misc.queue_desc_addr, QUEUES + 8);
	REFUSED(nic, nic->shared->misc.queue_desc_addr, MEMORY);
	REFUSED(nic, nic->shared->misc.queue_desc_addr, UINT64_MAX - 127);
	REFUSED(nic, nic->shared->intr.vectors, 0);
	REFUSED(nic, nic->shared->intr.vectors, VMXNET3_MAX_INTRS + 1);
	REFUSED(nic, nic->shared->intr.event_vector, 1);
	REFUSED(nic, tx->vector, 1);
	REFUSED(nic, tx->ring_size, 0);
	REFUSED(nic, tx->ring_size, RING + 1);
	REFUSED(nic, tx->ring_size, 2 * RING); /* larger than its completion ring */
	REFUSED(nic, tx->ring_size, VMXNET3_RING_MAX_SIZE + VMXNET3_RING_SIZE_ALIGN);
	REFUSED(nic, tx->ring_size, UINT32_MAX & ~31u);
	REFUSED(nic, tx->ring_addr, TX_RING + 16);
	REFUSED(nic, tx->ring_addr, MEMORY - 256);
	REFUSED(nic, tx->ring_addr, UINT64_MAX & ~511ull);
	REFUSED(nic, tx->comp_ring_size, 0);
	REFUSED(nic, tx->comp_ring_addr, 0);
	REFUSED(nic, rx->vector, 200);
	REFUSED(nic, rx->ring_size[0], 0);
	REFUSED(nic, rx->ring_size[1], 31);
	REFUSED(nic, rx->ring_addr[0], MEMORY);
	REFUSED(nic, rx->ring_addr[1], 0);
	REFUSED(nic, rx->comp_ring_size, RING); /* too small for both rings */
	REFUSED(nic, rx->comp_ring_addr, 1);
}

static void test_bad_shared_area_address_does_not_activate(void **state)
{
	struct nic *nic = *state;

	assert_int_equal(command(nic, (uint32_t)VMXNET3_CMD_ACTIVATE_DEV), 1);
	assert_int_equal(activate_at(nic, 0), 1);
	assert_int_equal(activate_at(nic, SHARED + 4), 1);
	assert_int_equal(activate_at(nic, MEMORY - 8), 1);
	assert_int_equal(activate_at(nic, MEMORY), 1);
	assert_int_equal(activate_at(nic, UINT64_MAX - 7), 1);
	assert_int_equal(vnic_device_state(nic->dev), VNIC_DEVICE_DOWN);
	/* Registers of a NIC that was never active. */
	assert_int_equal(vnic_device_reg_write(nic->dev, 1, VMXNET3_REG_ECR, 1), 0);
}

static void test_long_frame_needs_a_second_receive_ring(void **state)
{
	struct nic *nic = *state;
	uint8_t data[300] = {0};

	nic->queues->rx.ring_size[1] = 0;
	nic->queues->rx.ring_addr[1] = 0;
	activate(nic);
	post_rx(nic, nic->rx, 0, DATA, 128);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, 300), -ENOBUFS);
	assert_int_equal(nic->queues->rx.update_prod, 1);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, 100), 0);
	assert_int_equal(nic->queues->rx.update_prod, 0);
}

static void deliver(struct nic *nic, uint32_t index)
{
	uint8_t data[60] = {0};

	post_rx(nic, nic->rx, index, DATA, 128);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, sizeof(data)), 0);
	vnic_device_flush(nic->dev);
}

/* A driver that masks by itself gets an interrupt for each event until it masks. */
static void test_interrupts_repeat_without_auto_mask(void **state)
{
	struct nic *nic = *state;

	nic->shared->intr.auto_mask = 0;
	activate(nic);
	deliver(nic, 0);
	deliver(nic, 1);
	assert_int_equal(nic->interrupts, 2);
	vnic_device_reg_write(nic->dev, 0, VMXNET3_REG_IMR, 1);
	deliver(nic, 2);
	assert_int_equal(nic->interrupts, 2);
}

struct bad_tx {
	uint64_t addr;
	uint32_t len, flags, error;
};

static void test_bad_transmit_descriptors_stop_the_device(void **state)
{
	static const struct bad_tx cases[] = {
		{MEMORY, 60, VMXNET3_TXD_EOP, VMXNET3_ERR_TXD_INVALID},
		{MEMORY - 59, 60, VMXNET3_TXD_EOP, VMXNET3_ERR_TXD_INVALID},
		{UINT64_MAX - 10, 60, VMXNET3_TXD_EOP, VMXNET3_ERR_TXD_INVALID},
		{DATA, 13, VMXNET3_TXD_EOP, VMXNET3_ERR_TXD_INVALID},
		{DATA, 60 | VMXNET3_TXD_DTYPE, VMXNET3_TXD_EOP, VMXNET3_ERR_DESC_NOT_SPT},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct bad_tx *c = &cases[i];

		assert_int_equal(set_up(state), 0);
		activate(*state);
		post_tx(*state, 0, c->addr, c->len, c->flags);
		expect_bad_tx(*state, c->error);
		tear_down(state);
	}
}

/* The device sends the frames before a bad one. */
static void test_frames_before_a_bad_one_are_sent(void **state)
{
	struct nic *nic = *state;
	struct vnic_tx_frame frames[4];

	activate(nic);
	post_tx(nic, 0, DATA, 60, VMXNET3_TXD_EOP);
	post_tx(nic, 1, MEMORY, 60, VMXNET3_TXD_EOP);
	assert_int_equal(vnic_device_tx(nic->dev, 0, frames, 4), 1);
	assert_int_equal(vnic_device_state(nic->dev), VNIC_DEVICE_ACTIVE);
	vnic_device_tx_done(nic->dev, 0, 1);
	expect_bad_tx(nic, VMXNET3_ERR_TXD_INVALID);
}

static void test_frame_without_end_breaks_the_nic(void **state)
{
	struct nic *nic = *state;

	activate(nic);
	for (uint32_t i = 0; i < RING; i++)
		post_tx(nic, i, DATA, 14, 0);
	expect_bad_tx(nic, VMXNET3_ERR_BIG_PKT);
}

/* A guest's user can send such frames, so the driver is not at fault. */
static void test_frame_above_the_mtu_is_dropped(void **state)
{
	const uint32_t whole = VMXNET3_TXD_EOP | VMXNET3_TXD_CQ;
	struct nic *nic = *state;
	struct vnic_tx_frame frame;

	activate(nic);
	post_tx(nic, 0, DATA, VNIC_FRAME_MAX(MTU) + 1, whole);
	post_tx(nic, 1, DATA, 0, whole); /* 0 means 16384 */
	post_tx(nic, 2, DATA, 1000, 0);
	post_tx(nic, 3, DATA, 1000, 0);
	post_tx(nic, 4, DATA, 60, whole);
	post_tx(nic, 5, DATA, VNIC_FRAME_MAX(MTU), whole);
	assert_int_equal(vnic_device_tx(nic->dev, 0, &frame, 1), 1);
	assert_int_equal(frame.len, VNIC_FRAME_MAX(MTU));
	assert_int_equal(vnic_device_counters(nic->dev)[VNIC_TX_MISFIT], 3);
	assert_int_equal(nic->tx_comp[0].index, 0);
	assert_int_equal(nic->tx_comp[1].index, 1);
	assert_int_equal(nic->tx_comp[2].index, 4);
	assert_int_equal(nic->tx_comp[3].gen, 0);
	assert_int_equal(vnic_device_state(nic->dev), VNIC_DEVICE_ACTIVE);
}

/* Linux gives a VLAN interface, and one above that, the MTU of the NIC. */
static void test_two_tags_exceed_the_mtu(void **state)
{
	const uint32_t mtu = MTU - 4, most = VNIC_FRAME_MAX(mtu) + 4;
	struct nic *nic = *state;
	struct vnic_tx_frame frames[2];
	uint8_t data[MTU + 19] = {0};

	nic->shared->misc.mtu = mtu;
	activate(nic);
	assert_int_equal(vnic_device_mtu(nic->dev), mtu);
	post_tx(nic, 0, DATA, most, VMXNET3_TXD_EOP);
	post_tx(nic, 1, DATA, most - 4, VMXNET3_TXD_EOP | VMXNET3_TXD_TI);
	post_tx(nic, 2, DATA, most + 1, VMXNET3_TXD_EOP);
	assert_int_equal(vnic_device_tx(nic->dev, 0, frames, 2), 2);
	assert_int_equal(frames[0].len, most);
	assert_int_equal(frames[1].len, most);
	vnic_device_tx_done(nic->dev, 0, 2);
	assert_int_equal(vnic_device_tx(nic->dev, 0, frames, 2), 0);
	assert_int_equal(vnic_device_counters(nic->dev)[VNIC_TX_MISFIT], 1);
	post_rx(nic, nic->rx, 0, DATA, 2048);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, most + 1), -EMSGSIZE);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, most), 0);
}

/* A driver that never flips its generation bit: the device sends one lap, then nothing. */
static void test_stuck_generation_bit_yields_one_lap(void **state)
{
	struct nic *nic = *state;
	struct vnic_tx_frame frames[RING];
	uint8_t data[60] = {0};

	activate(nic);
	for (uint32_t i = 0; i < RING; i++) {
		post_tx(nic, i, DATA, 60, VMXNET3_TXD_EOP | VMXNET3_TXD_CQ);
		post_rx(nic, nic->rx, i, DATA, 128);
	}
	assert_int_equal(vnic_device_tx(nic->dev, 0, frames, RING), RING);
	vnic_device_tx_done(nic->dev, 0, RING);
	assert_int_equal(vnic_device_tx(nic->dev, 0, frames, RING), 0);
	for (uint32_t i = 0; i < RING; i++)
		assert_int_equal(vnic_device_rx(nic->dev, 0, data, sizeof(data)), 0);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, sizeof(data)), -ENOBUFS);
	assert_int_equal(vnic_device_state(nic->dev), VNIC_DEVICE_ACTIVE);
}

/* TXPROD and RXPROD are hints: no value creates a frame. */
static void test_producer_index_creates_no_frame(void **state)
{
	static const uint32_t values[] = {RING, 4096, 0x80000000, UINT32_MAX};
	struct nic *nic = *state;
	struct vnic_tx_frame frame;

	activate(nic);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		vnic_device_reg_write(nic->dev, 0, VMXNET3_REG_TXPROD, values[i]);
		vnic_device_reg_write(nic->dev, 0, VMXNET3_REG_RXPROD, values[i]);
		assert_int_equal(vnic_device_tx(nic->dev, 0, &frame, 1), 0);
	}
	vnic_device_reg_write(nic->dev, 0, VMXNET3_REG_TXPROD, RING - 1);
	assert_int_equal(vnic_device_tx(nic->dev, 0, &frame, 1), 0);
	assert_int_equal(vnic_device_state(nic->dev), VNIC_DEVICE_ACTIVE);
}

struct bad_rx {
	uint64_t addr;
	uint32_t len;
};

static void test_bad_receive_descriptors_stop_the_device(void **state)
{
	static const struct bad_rx cases[] = {
		{MEMORY, 128},
		{MEMORY - 127, 128},
		{UINT64_MAX, 128},
		{DATA, 0},
		{DATA, 128 | VMXNET3_RXD_DTYPE},
	};
	uint8_t data[60] = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nic *nic;

		assert_int_equal(set_up(state), 0);
		nic = *state;
		activate(nic);
		post_rx(nic, nic->rx, 0, cases[i].addr, cases[i].len);
		assert_int_equal(vnic_device_rx(nic->dev, 0, data, sizeof(data)), -ENETDOWN);
		assert_int_equal(vnic_device_counters(nic->dev)[VNIC_RX_BAD], 1);
		memset(nic->rx, 0, RING * sizeof(*nic->rx));
		expect_broken(nic, VMXNET3_ECR_RQERR, &nic->queues->rx.status,
			      VMXNET3_ERR_SMALL_BUF);
		tear_down(state);
	}
}

/* A ring of body buffers only has no place for the start of a frame. */
static void test_ring_of_body_buffers_receives_nothing(void **state)
{
	struct nic *nic = *state;
	uint8_t data[60] = {0};

	activate(nic);
	for (uint32_t i = 0; i < RING; i++)
		post_rx(nic, nic->rx, i, DATA, 128 | VMXNET3_RXD_BODY);
	assert_int_equal(vnic_device_rx(nic->dev, 0, data, sizeof(data)), -ENOBUFS);
}

/*
 * The driver can change its memory after a check, so the device must not read checked values again.
 */
static void test_checked_configuration_is_not_read_again(void **state)
{
	struct nic *nic = *state;
	struct vnic_tx_frame frame;

	activate(nic);
	nic->queues->tx.ring_addr = UINT64_MAX & ~511ull;
	nic->queues->rx.ring_size[0] = UINT32_MAX;
	nic->shared->intr.vectors = 255;
	nic->shared->misc.mtu = UINT32_MAX;
	post_tx(nic, 0, DATA, 60, VMXNET3_TXD_EOP | VMXNET3_TXD_CQ);
	assert_int_equal(vnic_device_tx(nic->dev, 0, &frame, 1), 1);
	post_tx(nic, 0, MEMORY, 16000, 0);
	assert_int_equal(vnic_device_tx(nic->dev, 0, &frame, 1), 1);
	assert_ptr_equal(frame.data, nic->memory + DATA);
	assert_int_equal(frame.len, 60);
	vnic_device_tx_done(nic->dev, 0, 1);
	vnic_device_flush(nic->dev);
	assert_int_equal(nic->interrupts, 1);
}

static void test_device_with_bad_attributes_is_not_created(void **state)
{
	struct nic *nic = *state;
	struct vnic_region region = {.memory = nic->memory, .size = MEMORY};
	struct vnic_device_attr attr = {.regions = &region,
					.region_count = 1,
					.bars = nic->bars,
					.mtu = VMXNET3_MAX_MTU + 1,
					.interrupt = count_interrupt};
	struct vnic_device *dev;

	assert_int_equal(vnic_device_create(&attr, &dev), -EINVAL);
	attr.mtu = VMXNET3_MIN_MTU - 1;
	assert_int_equal(vnic_device_create(&attr, &dev), -EINVAL);
	attr.mtu = MTU;
	region.memory = NULL;
	assert_int_equal(vnic_device_create(&attr, &dev), -EINVAL);
}

#define NIC_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NIC_TEST(test_frame_of_several_descriptors_is_gathered),
		NIC_TEST(test_long_frame_spans_both_receive_rings),
		NIC_TEST(test_parts_of_a_received_frame_are_joined),
		NIC_TEST(test_frame_that_can_never_fit_is_dropped),
		NIC_TEST(test_frame_in_more_than_16_buffers_is_dropped),
		NIC_TEST(test_unknown_and_read_only_registers_are_refused),
		NIC_TEST(test_last_frame_of_wrong_length_is_ignored),
		NIC_TEST(test_bad_configuration_does_not_activate),
		NIC_TEST(test_bad_shared_area_address_does_not_activate),
		NIC_TEST(test_long_frame_needs_a_second_receive_ring),
		NIC_TEST(test_interrupts_repeat_without_auto_mask),
		cmocka_unit_test(test_bad_transmit_descriptors_stop_the_device),
		NIC_TEST(test_frames_before_a_bad_one_are_sent),
		NIC_TEST(test_frame_without_end_breaks_the_nic),
		NIC_TEST(test_frame_above_the_mtu_is_dropped),
		NIC_TEST(test_two_tags_exceed_the_mtu),
		NIC_TEST(test_stuck_generation_bit_yields_one_lap),
		NIC_TEST(test_producer_index_creates_no_frame),
		cmocka_unit_test(test_bad_receive_descriptors_stop_the_device),
		NIC_TEST(test_ring_of_body_buffers_receives_nothing),
		NIC_TEST(test_checked_configuration_is_not_read_again),
		NIC_TEST(test_device_with_bad_attributes_is_not_created),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
