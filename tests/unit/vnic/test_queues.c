/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Several queues, each with its interrupt vector, in memory of several regions. */
#include "guest.h"

#include <errno.h>

static int create_full(void **state)
{
	*state = guest_create(VMXNET3_MAX_TX_QUEUES, VMXNET3_MAX_RX_QUEUES);
	return 0;
}

static int create_one(void **state)
{
	*state = guest_create(1, 1);
	return 0;
}

static int destroy(void **state)
{
	guest_destroy(*state);
	return 0;
}

static void send_frame(struct guest *g, uint32_t queue, uint8_t content)
{
	uint64_t addr = guest_alloc(g, GUEST_IN_HIGHER, 60);

	memset(guest_at(g, addr), content, 60);
	guest_post_tx(&g->tx[queue], addr, 60, VMXNET3_TXD_EOP | VMXNET3_TXD_CQ);
}

static void test_transmit_queues_are_independent(void **state)
{
	struct guest *g = *state;
	struct vnic_tx_frame frames[4];

	assert_int_equal(vnic_device_tx_queues(g->dev), 0);
	assert_int_equal(guest_activate(g), 0);
	assert_int_equal(vnic_device_tx_queues(g->dev), VMXNET3_MAX_TX_QUEUES);
	for (uint32_t i = 0; i < VMXNET3_MAX_TX_QUEUES; i++)
		for (uint32_t j = 0; j <= i % 3; j++)
			send_frame(g, i, (uint8_t)(16 * i + j));
	/* A driver rings the doorbell for each frame, and not without one. */
	for (uint32_t i = 0; i < VMXNET3_MAX_TX_QUEUES; i++)
		assert_int_equal(g->tx[i].conf->threshold, 1);
	/* From the last queue on: no queue depends on another. */
	for (uint32_t i = VMXNET3_MAX_TX_QUEUES; i-- > 0;) {
		assert_int_equal(vnic_device_tx(g->dev, i, frames, 4), i % 3 + 1);
		for (uint32_t j = 0; j <= i % 3; j++)
			assert_int_equal(frames[j].data[59], 16 * i + j);
		vnic_device_tx_done(g->dev, i, i % 3 + 1);
		vnic_device_flush(g->dev);
		for (uint32_t j = 0; j <= i % 3; j++)
			assert_int_equal(guest_tx_completed(&g->tx[i]), j);
		assert_int_equal(guest_tx_completed(&g->tx[i]), -1);
		assert_int_equal(g->interrupts[i], 1);
	}
	assert_int_equal(vnic_device_tx(g->dev, VMXNET3_MAX_TX_QUEUES, frames, 4), 0);
	vnic_device_tx_done(g->dev, VMXNET3_MAX_TX_QUEUES, 4);
}

/* A frame that one queue has gathered and not yet sent does not disturb another queue. */
static void test_gathered_frames_of_queues_are_apart(void **state)
{
	struct guest *g = *state;
	struct vnic_tx_frame frames[2];

	assert_int_equal(guest_activate(g), 0);
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t addr = guest_alloc(g, GUEST_IN_LOW, 100);

		memset(guest_at(g, addr), 'a' + (int)i, 100);
		guest_post_tx(&g->tx[i], addr, 50, 0);
		guest_post_tx(&g->tx[i], addr + 50, 50, VMXNET3_TXD_EOP);
	}
	assert_int_equal(vnic_device_tx(g->dev, 0, &frames[0], 1), 1);
	assert_int_equal(vnic_device_tx(g->dev, 1, &frames[1], 1), 1);
	assert_int_equal(frames[0].len, 100);
	assert_int_equal(frames[0].data[99], 'a');
	assert_int_equal(frames[1].data[99], 'b');
}

/* All frames of a flow go to one queue, in order, and only that queue's interrupt is raised. */
static void test_flow_keeps_its_queue_order_and_interrupt(void **state)
{
	struct guest *g = *state;
	const uint8_t vector = VMXNET3_MAX_TX_QUEUES;
	uint8_t data[60] = {0};

	assert_int_equal(guest_activate(g), 0);
	for (uint32_t i = 0; i < VMXNET3_MAX_RX_QUEUES; i++)
		for (uint32_t j = 0; j < 4; j++)
			guest_post_rx(g, &g->rx[i], 0, 256);
	for (uint32_t flow = 4096; flow < 4096 + 2 * VMXNET3_MAX_RX_QUEUES; flow++) {
		const struct vmxnet3_rx_comp *comp;
		uint32_t queue = flow % VMXNET3_MAX_RX_QUEUES;

		data[59] = (uint8_t)flow;
		assert_int_equal(vnic_device_rx(g->dev, flow, data, sizeof(data)), 0);
		vnic_device_flush(g->dev);
		comp = guest_received(&g->rx[queue]);
		assert_non_null(comp);
		assert_int_equal(guest_rqid(comp), queue);
		for (uint32_t i = 0; i < VMXNET3_MAX_RX_QUEUES; i++)
			assert_null(guest_received(&g->rx[i]));
		/* The first interrupt masked its vector; the other vectors stay unmasked. */
		assert_int_equal(g->interrupts[vector + queue], 1);
	}
	/* A frame without a flow goes to the first queue. */
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), 0);
	assert_non_null(guest_received(&g->rx[0]));
}

/* A queue without buffers delays only its own flows. */
static void test_full_queue_delays_its_own_flows_only(void **state)
{
	struct guest *g = *state;
	const uint8_t data[60] = {0};

	assert_int_equal(guest_activate(g), 0);
	guest_post_rx(g, &g->rx[1], 0, 256);
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), -ENOBUFS);
	assert_int_equal(g->rx[0].conf->update_prod, 1);
	assert_int_equal(vnic_device_rx(g->dev, 1, data, sizeof(data)), 0);
	assert_int_equal(g->rx[1].conf->update_prod, 0);
}

/* A frame that waits for a buffer is refused often, and dropped at most once. */
static void test_only_dropped_frames_are_counted(void **state)
{
	struct guest *g = *state;
	const uint8_t data[60] = {0};

	assert_int_equal(guest_activate(g), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(vnic_device_rx(g->dev, 2, data, sizeof(data)), -ENOBUFS);
	guest_post_rx(g, &g->rx[2], 0, 256);
	assert_int_equal(vnic_device_rx(g->dev, 2, data, sizeof(data)), 0);
	assert_int_equal(vnic_device_counters(g->dev)[VNIC_RX_NO_BUFFER], 0);
	assert_int_equal(vnic_device_rx(g->dev, 2, data, sizeof(data)), -ENOBUFS);
	vnic_device_rx_give_up(g->dev, false);
	assert_int_equal(vnic_device_counters(g->dev)[VNIC_RX_NO_BUFFER], 1);
}

/* A queue is stalled until it takes a frame, whatever the others do. */
static void test_stalled_queue_recovers_by_taking_a_frame(void **state)
{
	struct guest *g = *state;
	const uint8_t data[60] = {0};

	assert_int_equal(guest_activate(g), 0);
	guest_post_rx(g, &g->rx[1], 0, 256);
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), -ENOBUFS);
	assert_false(vnic_device_rx_is_stalled(g->dev));
	vnic_device_rx_give_up(g->dev, true);
	assert_int_equal(vnic_device_rx(g->dev, 1, data, sizeof(data)), 0);
	assert_int_equal(vnic_device_rx(g->dev, 1, data, sizeof(data)), -ENOBUFS);
	assert_false(vnic_device_rx_is_stalled(g->dev));
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), -ENOBUFS);
	assert_true(vnic_device_rx_is_stalled(g->dev));
	guest_post_rx(g, &g->rx[0], 0, 256);
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), 0);
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), -ENOBUFS);
	assert_false(vnic_device_rx_is_stalled(g->dev));
}

/* The second ring of a queue has the number of queues added to its number. */
static void test_second_ring_has_its_number_in_completions(void **state)
{
	struct guest *g = *state;
	const uint8_t data[200] = {0};
	const struct vmxnet3_rx_comp *comp;

	assert_int_equal(guest_activate(g), 0);
	guest_post_rx(g, &g->rx[5], 0, 128);
	guest_post_rx(g, &g->rx[5], 1, 128 | VMXNET3_RXD_BODY);
	assert_int_equal(vnic_device_rx(g->dev, 5, data, sizeof(data)), 0);
	comp = guest_received(&g->rx[5]);
	assert_int_equal(guest_rqid(comp), 5);
	comp = guest_received(&g->rx[5]);
	assert_int_equal(guest_rqid(comp), VMXNET3_MAX_RX_QUEUES + 5);
}

/* Only the faulty queue reports its error, and all queues stop. */
static void test_only_the_faulty_queue_reports_its_error(void **state)
{
	struct guest *g = *state;
	struct vnic_tx_frame frame;

	assert_int_equal(guest_activate(g), 0);
	guest_post_tx(&g->tx[3], GUEST_HIGHER + GUEST_REGION - 59, 60, VMXNET3_TXD_EOP);
	assert_int_equal(vnic_device_tx(g->dev, 3, &frame, 1), 0);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_BROKEN);
	assert_int_equal(g->tx[3].conf->status.stopped, 1);
	assert_int_equal(g->tx[3].conf->status.error, VMXNET3_ERR_TXD_INVALID);
	assert_int_equal(g->tx[2].conf->status.stopped, 0);
	assert_int_equal(g->shared->ecr, VMXNET3_ECR_TQERR);
	assert_int_equal(g->interrupts[g->shared->intr.event_vector], 1);
	assert_int_equal(vnic_device_tx_queues(g->dev), 0);
}

/* --- Memory */

/* Two regions adjacent in the guest's memory, and apart in this process. */
static void test_buffer_may_cross_a_region_border(void **state)
{
	struct guest *g = *state;
	uint8_t data[120];
	struct vnic_tx_frame frame;
	struct vmxnet3_rx_desc *desc = g->rx[0].ring[0].base;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	assert_int_equal(guest_activate(g), 0);
	memcpy(guest_at(g, GUEST_HIGHER - 20), data, 20);
	memcpy(guest_at(g, GUEST_HIGHER), data + 20, 100);
	guest_post_tx(&g->tx[0], GUEST_HIGHER - 20, 120, VMXNET3_TXD_EOP);
	assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 1);
	assert_int_equal(frame.len, 120);
	assert_memory_equal(frame.data, data, 120);

	desc[0] = (struct vmxnet3_rx_desc){.addr = GUEST_HIGHER - 50, .len = 256 | VMXNET3_RXD_GEN};
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), 0);
	assert_memory_equal(guest_at(g, GUEST_HIGHER - 50), data, 50);
	assert_memory_equal(guest_at(g, GUEST_HIGHER), data + 50, 70);
}

static void test_frames_in_memory_holes_are_refused(void **state)
{
	static const uint64_t addrs[] = {0,
					 GUEST_LOW - 30,
					 GUEST_LOW + GUEST_REGION - 30,
					 GUEST_HIGH - 30,
					 GUEST_HIGHER + GUEST_REGION - 30,
					 UINT64_MAX - 30};
	struct vnic_tx_frame frame;

	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
		struct guest *g = guest_create(1, 1);

		*state = g;
		assert_int_equal(guest_activate(g), 0);
		guest_post_tx(&g->tx[0], addrs[i], 60, VMXNET3_TXD_EOP);
		assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 0);
		assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_BROKEN);
		guest_destroy(g);
	}
}

/* A ring must lie in one region. */
static void test_ring_must_lie_in_one_region(void **state)
{
	struct guest *g = *state;

	g->tx[0].conf->ring_addr = GUEST_HIGHER - 512;
	assert_int_equal(guest_activate(g), 1);
	g->tx[0].conf->ring_addr = g->tx[0].ring.addr;
	assert_int_equal(guest_activate(g), 0);
}

static void test_overlapping_or_empty_regions_are_refused(void **state)
{
	struct guest *g = *state;
	struct vnic_region many[VNIC_REGIONS + 1];
	struct vnic_region bad[][2] = {
		{{0x1000, 0x1000, g->bars}, {0x1800, 0x1000, g->bars}},
		{{0x1800, 0x1000, g->bars}, {0x1000, 0x1000, g->bars}},
		{{0x1000, 0x1000, g->bars}, {0x1000, 0x1000, g->bars}},
		{{0x1000, 0x3000, g->bars}, {0x2000, 0x1000, g->bars}},
		{{0x1000, 0, g->bars}, {0x2000, 0x1000, g->bars}},
		{{0x1000, 0x1000, NULL}, {0x2000, 0x1000, g->bars}},
		{{0x1000, 0x1000, g->bars}, {UINT64_MAX - 1, 0x1000, g->bars}},
	};
	struct vnic_device_attr attr = {
		.region_count = 2,
		.bars = g->bars,
		.mtu = GUEST_MTU,
		.interrupt = guest_interrupt,
	};
	struct vnic_device *dev;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		attr.regions = bad[i];
		assert_int_equal(vnic_device_create(&attr, &dev), -EINVAL);
	}
	for (uint32_t i = 0; i <= VNIC_REGIONS; i++)
		many[i] = (struct vnic_region){i * 0x1000ull, 0x1000, g->bars};
	attr.regions = many;
	attr.region_count = VNIC_REGIONS + 1;
	assert_int_equal(vnic_device_create(&attr, &dev), -EINVAL);
	attr.region_count = VNIC_REGIONS;
	assert_int_equal(vnic_device_create(&attr, &dev), 0);
	vnic_device_destroy(dev);
}

/* --- Doorbells */

static void test_a_polling_device_wants_no_doorbells(void **state)
{
	struct guest *g = *state;

	g->tx[0].conf->threshold = 77;
	assert_int_equal(guest_activate(g), 0);
	assert_int_equal(g->tx[0].conf->threshold, 1);
	vnic_device_set_polling(g->dev, true);
	for (uint32_t i = 0; i < VMXNET3_MAX_TX_QUEUES; i++)
		assert_int_equal(g->tx[i].conf->threshold, UINT32_MAX);
	vnic_device_set_polling(g->dev, false);
	assert_int_equal(g->tx[7].conf->threshold, 1);
	assert_int_equal(guest_command(g, (uint32_t)VMXNET3_CMD_QUIESCE_DEV), 0);
	/* The memory is the driver's again. */
	g->tx[0].conf->threshold = 5;
	vnic_device_set_polling(g->dev, true);
	assert_int_equal(g->tx[0].conf->threshold, 5);
}

/* --- Memory that comes and goes */

static void set_regions(struct guest *g, uint32_t first, uint32_t count)
{
	assert_int_equal(vnic_device_set_regions(g->dev, g->regions + first, count), 0);
}

static void test_nic_activates_after_its_memory_came(void **state)
{
	struct guest *g = *state;

	set_regions(g, 0, 0);
	assert_int_equal(guest_activate(g), 1);
	set_regions(g, 0, 3);
	assert_int_equal(guest_activate(g), 0);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_ACTIVE);
}

/* The third region has receive buffers only, which the device looks up for each frame. */
static void test_lost_buffer_memory_breaks_the_nic_on_use(void **state)
{
	struct guest *g = *state;
	uint8_t data[60] = {0};

	assert_int_equal(guest_activate(g), 0);
	set_regions(g, 0, 2);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_ACTIVE);
	guest_post_rx(g, &g->rx[0], 0, 256);
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), -ENETDOWN);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_BROKEN);
}

static void test_pending_frame_in_lost_memory_is_not_sent(void **state)
{
	struct guest *g = *state;
	struct vnic_tx_frame frame;

	assert_int_equal(guest_activate(g), 0);
	send_frame(g, 0, 1);
	assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 1);
	set_regions(g, 0, 2);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_BROKEN);
	assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 0);
	vnic_device_tx_done(g->dev, 0, 1);
}

static void test_lost_ring_memory_breaks_the_nic(void **state)
{
	struct guest *g = *state;
	const uint32_t event_vector = 2;

	assert_int_equal(guest_activate(g), 0);
	set_regions(g, 0, 1);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_BROKEN);
	assert_int_equal(g->interrupts[event_vector], 1);
	assert_int_equal(g->tx[0].conf->status.stopped, 1);
	assert_true(g->shared->ecr & VMXNET3_ECR_TQERR);
	/* Then the shared area goes, too: its registers must not be read there. */
	set_regions(g, 1, 2);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_DOWN);
	assert_int_equal(guest_read(g, VMXNET3_REG_ECR), 0);
	set_regions(g, 0, 3);
	assert_int_equal(guest_command(g, (uint32_t)VMXNET3_CMD_RESET_DEV), 0);
	for (uint32_t i = 0; i < 2; i++)
		guest_ring_reset(&g->rx[0].ring[i]);
	assert_int_equal(guest_activate(g), 0);
}

/* The place where the device would report the error is lost, too. */
static void test_lost_queue_descriptors_take_the_nic_down(void **state)
{
	struct guest *g = *state;
	const uint64_t size = sizeof(*g->tx[0].conf) + sizeof(*g->rx[0].conf);
	const uint64_t addr = guest_alloc(g, GUEST_IN_HIGHER, size);

	memcpy(guest_at(g, addr), g->tx[0].conf, size);
	g->shared->misc.queue_desc_addr = addr;
	assert_int_equal(guest_activate(g), 0);
	set_regions(g, 0, 2);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_DOWN);
	assert_int_equal(g->shared->ecr, 0);
}

#define FULL_TEST(f) cmocka_unit_test_setup_teardown(f, create_full, destroy)
#define ONE_TEST(f)  cmocka_unit_test_setup_teardown(f, create_one, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FULL_TEST(test_transmit_queues_are_independent),
		FULL_TEST(test_gathered_frames_of_queues_are_apart),
		FULL_TEST(test_flow_keeps_its_queue_order_and_interrupt),
		FULL_TEST(test_full_queue_delays_its_own_flows_only),
		FULL_TEST(test_only_dropped_frames_are_counted),
		FULL_TEST(test_stalled_queue_recovers_by_taking_a_frame),
		FULL_TEST(test_second_ring_has_its_number_in_completions),
		FULL_TEST(test_only_the_faulty_queue_reports_its_error),
		ONE_TEST(test_buffer_may_cross_a_region_border),
		cmocka_unit_test(test_frames_in_memory_holes_are_refused),
		ONE_TEST(test_ring_must_lie_in_one_region),
		ONE_TEST(test_overlapping_or_empty_regions_are_refused),
		FULL_TEST(test_a_polling_device_wants_no_doorbells),
		ONE_TEST(test_nic_activates_after_its_memory_came),
		ONE_TEST(test_lost_buffer_memory_breaks_the_nic_on_use),
		ONE_TEST(test_pending_frame_in_lost_memory_is_not_sent),
		ONE_TEST(test_lost_ring_memory_breaks_the_nic),
		ONE_TEST(test_lost_queue_descriptors_take_the_nic_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
