/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The driver under a device that completes descriptors that it was not given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <vnic/regs.h>

#include "vnic_loop.h"

#define MTU       1500
#define BURST     64
#define TX_POSTED 255 /* a ring leaves one descriptor empty */
#define RX_POSTED 1023

static int open_loop(void **state)
{
	struct vnic_loop *loop;

	if (vnic_loop_open(MTU, &loop))
		return -1;
	*state = loop;
	return 0;
}

static int close_loop(void **state)
{
	vnic_loop_close(*state);
	return 0;
}

static void *at(const struct vnic_loop *loop, uint64_t addr)
{
	assert_true(addr && addr < loop->memory_size);
	return (uint8_t *)loop->memory + addr;
}

/* Finds the driver's rings as a device does. */
static const struct vmxnet3_queue_pair *queues(const struct vnic_loop *loop)
{
	const struct vmxnet3_driver_shared *shared;
	uint32_t low;

	assert_int_equal(vnic_device_reg_read(loop->device, 1, VMXNET3_REG_DSAL, &low), 0);
	shared = at(loop, low);
	assert_int_equal(shared->magic, VMXNET3_REV1_MAGIC);
	return at(loop, shared->misc.queue_desc_addr);
}

static struct vmxnet3_tx_comp *tx_comp(const struct vnic_loop *loop)
{
	return at(loop, queues(loop)->tx.comp_ring_addr);
}

static struct vmxnet3_rx_comp *rx_comp(const struct vnic_loop *loop)
{
	return at(loop, queues(loop)->rx.comp_ring_addr);
}

static uint32_t send_frames(struct vnic_loop *loop, uint32_t n)
{
	struct vnic_frame frames[BURST];

	n = vnic_driver_tx_reserve(loop->driver, frames, n);
	for (uint32_t i = 0; i < n; i++)
		frames[i].len = 60;
	vnic_driver_tx_commit(loop->driver, frames, n);
	return n;
}

static uint32_t send_all(struct vnic_loop *loop)
{
	uint32_t sent = 0, n;

	while ((n = send_frames(loop, BURST)))
		sent += n;
	return sent;
}

static void complete_tx(struct vnic_loop *loop, uint32_t index)
{
	tx_comp(loop)[0].index = index;
	tx_comp(loop)[0].gen = VMXNET3_CD_GEN;
}

static void test_completion_of_an_unsent_frame_breaks_the_nic(void **state)
{
	static const uint32_t indices[] = {10, TX_POSTED, TX_POSTED + 1, 4095};
	struct vnic_frame frames[TX_POSTED];

	for (size_t i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
		assert_int_equal(open_loop(state), 0);
		assert_int_equal(send_frames(*state, 10), 10);
		complete_tx(*state, indices[i]);
		/*
		 * The driver frees no buffer, neither now (a full reservation looks at completions)
		 * nor later.
		 */
		assert_int_equal(vnic_driver_tx_reserve(((struct vnic_loop *)*state)->driver,
							frames, TX_POSTED),
				 TX_POSTED - 10);
		assert_int_equal(send_all(*state), TX_POSTED - 10);
		assert_true(vnic_driver_broken(((struct vnic_loop *)*state)->driver));
		close_loop(state);
	}
}

static void test_completion_frees_all_earlier_buffers(void **state)
{
	struct vnic_loop *loop = *state;

	assert_int_equal(send_frames(loop, 10), 10);
	complete_tx(loop, 9);
	assert_int_equal(send_all(loop), TX_POSTED);
	assert_false(vnic_driver_broken(loop->driver));
}

/* A device that never flips the generation bit: the driver takes one lap of completions. */
static void test_stuck_generation_bit_completes_one_lap(void **state)
{
	struct vnic_loop *loop = *state;
	struct vmxnet3_tx_comp *comp = tx_comp(loop);

	for (uint32_t i = 0; i < queues(loop)->tx.comp_ring_size; i++)
		comp[i].gen = VMXNET3_CD_GEN;
	assert_int_equal(send_frames(loop, 1), 1);
	/* The first completion frees descriptor 0; the second would free it again. */
	assert_int_equal(send_all(loop), TX_POSTED);
	assert_int_equal(send_all(loop), 0);
}

struct bad_rx {
	uint32_t index, len;
};

static void test_bad_receive_completion_breaks_the_nic(void **state)
{
	const uint32_t whole = VMXNET3_RCD_SOP | VMXNET3_RCD_EOP;
	const struct bad_rx cases[] = {
		{1 | whole, 60},                               /* out of order */
		{4095 | whole, 60},                            /* no such buffer */
		{0 | VMXNET3_RCD_SOP, 60},                     /* the first part of a frame */
		{0 | VMXNET3_RCD_EOP, 60},                     /* likewise */
		{0 | whole | 1 << VMXNET3_RCD_RQID_SHIFT, 60}, /* the other ring */
		{0 | whole, VNIC_FRAME_MAX(MTU) + 1},
		{0 | whole, 0x3fff}, /* too long */
	};
	struct vnic_frame frames[4];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vnic_loop *loop;

		assert_int_equal(open_loop(state), 0);
		loop = *state;
		rx_comp(loop)[0].index = cases[i].index;
		rx_comp(loop)[0].len = cases[i].len;
		rx_comp(loop)[0].gen = VMXNET3_CD_GEN;
		assert_int_equal(vnic_driver_rx(loop->driver, frames, 4), 0);
		/*
		 * A later valid completion does not repair the driver, and no interrupt is raised.
		 */
		rx_comp(loop)[0].index = whole;
		rx_comp(loop)[0].len = 60;
		assert_int_equal(vnic_driver_rx(loop->driver, frames, 4), 0);
		assert_false(vnic_driver_irq_unmask(loop->driver));
		assert_true(vnic_driver_broken(loop->driver));
		close_loop(state);
	}
}

/* More frames than buffers, while the caller holds all buffers. */
static void test_more_frames_than_buffers_break_the_nic(void **state)
{
	struct vnic_loop *loop = *state;
	struct vmxnet3_rx_comp *comp = rx_comp(loop);
	struct vnic_frame frames[BURST];
	uint32_t received = 0, n;

	for (uint32_t i = 0; i < queues(loop)->rx.comp_ring_size; i++) {
		comp[i].index =
			i % queues(loop)->rx.ring_size[0] | VMXNET3_RCD_SOP | VMXNET3_RCD_EOP;
		comp[i].len = 60;
		comp[i].gen = VMXNET3_CD_GEN;
	}
	while ((n = vnic_driver_rx(loop->driver, frames, BURST)))
		received += n;
	assert_int_equal(received, RX_POSTED);
	assert_true(vnic_driver_broken(loop->driver));
}

#define LOOP_TEST(f) cmocka_unit_test_setup_teardown(f, open_loop, close_loop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_completion_of_an_unsent_frame_breaks_the_nic),
		LOOP_TEST(test_completion_frees_all_earlier_buffers),
		LOOP_TEST(test_stuck_generation_bit_completes_one_lap),
		cmocka_unit_test(test_bad_receive_completion_breaks_the_nic),
		LOOP_TEST(test_more_frames_than_buffers_break_the_nic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
