/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wake-ups: interrupts with their masks, and doorbells to a sleeping device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <vnic/regs.h>

#include "vnic_loop.h"

#define BURST 64

static const uint8_t frame[60] = {2};

static int open_loop(void **state)
{
	struct vnic_loop *loop;

	if (vnic_loop_open(1500, &loop))
		return -1;
	*state = loop;
	return 0;
}

static int close_loop(void **state)
{
	vnic_loop_close(*state);
	return 0;
}

static void deliver(struct vnic_loop *loop)
{
	assert_int_equal(vnic_device_rx(loop->device, 0, frame, sizeof(frame)), 0);
	vnic_device_flush(loop->device);
}

static uint32_t receive(struct vnic_loop *loop)
{
	struct vnic_frame frames[BURST];
	uint32_t n = vnic_driver_rx(loop->driver, frames, BURST);

	vnic_driver_rx_release(loop->driver, n);
	return n;
}

static uint32_t send_frames(struct vnic_loop *loop, uint32_t n)
{
	struct vnic_frame frames[BURST];

	n = vnic_driver_tx_reserve(loop->driver, frames, n);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(frames[i].data, frame, sizeof(frame));
		frames[i].len = sizeof(frame);
	}
	vnic_driver_tx_commit(loop->driver, frames, n);
	return n;
}

static uint32_t take_sent(struct vnic_loop *loop)
{
	struct vnic_tx_frame frames[BURST];
	uint32_t n = vnic_device_tx(loop->device, 0, frames, BURST);

	vnic_device_tx_done(loop->device, 0, n);
	vnic_device_flush(loop->device);
	return n;
}

static void test_frames_before_the_unmasking_are_reported(void **state)
{
	struct vnic_loop *loop = *state;

	deliver(loop);
	assert_int_equal(loop->interrupts, 0);
	/* Frames that came while the interrupt was masked raise it when it is unmasked. */
	assert_true(vnic_driver_irq_unmask(loop->driver));
	assert_int_equal(receive(loop), 1);
	assert_false(vnic_driver_irq_unmask(loop->driver));
}

static void test_interrupt_masks_itself_until_unmasked(void **state)
{
	struct vnic_loop *loop = *state;

	assert_false(vnic_driver_irq_unmask(loop->driver));
	deliver(loop);
	deliver(loop);
	assert_int_equal(loop->interrupts, 1);
	assert_int_equal(receive(loop), 2);
	assert_false(vnic_driver_irq_unmask(loop->driver));
	deliver(loop);
	assert_int_equal(loop->interrupts, 2);
	vnic_driver_irq_mask(loop->driver);
	deliver(loop);
	assert_int_equal(loop->interrupts, 2);
	assert_int_equal(vnic_device_counters(loop->device)[VNIC_INTERRUPTS], 2);
}

static void test_burst_raises_one_interrupt(void **state)
{
	struct vnic_loop *loop = *state;

	vnic_driver_irq_unmask(loop->driver);
	for (uint32_t i = 0; i < BURST; i++)
		assert_int_equal(vnic_device_rx(loop->device, 0, frame, sizeof(frame)), 0);
	assert_int_equal(loop->interrupts, 0);
	vnic_device_flush(loop->device);
	vnic_device_flush(loop->device);
	assert_int_equal(loop->interrupts, 1);
}

/* A transmit completion raises no interrupt, unless a reservation fell short. */
static void test_transmit_completion_interrupts_after_a_shortage_only(void **state)
{
	struct vnic_loop *loop = *state;

	vnic_driver_irq_unmask(loop->driver);
	send_frames(loop, BURST);
	assert_int_equal(take_sent(loop), BURST);
	assert_int_equal(loop->interrupts, 0);

	while (send_frames(loop, BURST) == BURST)
		;
	assert_int_equal(take_sent(loop), BURST);
	assert_int_equal(loop->interrupts, 1);
	/* The device has freed buffers, and the driver has not looked yet. */
	assert_true(vnic_driver_irq_unmask(loop->driver));
	assert_int_equal(send_frames(loop, BURST), BURST);
	assert_false(vnic_driver_irq_unmask(loop->driver));
	assert_int_equal(take_sent(loop), BURST);
	assert_int_equal(loop->interrupts, 1);
}

/* The same if the interrupt was masked when the ring was full: unmasking reports it. */
static void test_unmasking_reports_freed_transmit_buffers(void **state)
{
	struct vnic_loop *loop = *state;

	while (send_frames(loop, BURST) == BURST)
		;
	assert_false(vnic_driver_irq_unmask(loop->driver));
	take_sent(loop);
	assert_int_equal(loop->interrupts, 1);
	vnic_driver_irq_mask(loop->driver);
	take_sent(loop);
	assert_int_equal(loop->interrupts, 1);
	assert_true(vnic_driver_irq_unmask(loop->driver));
}

static void test_only_a_sleeping_device_gets_a_doorbell(void **state)
{
	struct vnic_loop *loop = *state;

	send_frames(loop, 1);
	assert_int_equal(loop->kicks, 0);
	vnic_device_set_asleep(loop->device, true);
	/* The first frame rings the doorbell; the next frames find the device awake. */
	send_frames(loop, 1);
	send_frames(loop, 1);
	assert_int_equal(loop->kicks, 1);
	vnic_device_set_asleep(loop->device, true);
	vnic_device_set_asleep(loop->device, false);
	send_frames(loop, 1);
	assert_int_equal(loop->kicks, 1);
}

/* A held frame waits for the next doorbell, and is there if the device wakes up by itself. */
static void test_held_frame_rings_with_the_next_doorbell(void **state)
{
	struct vnic_loop *loop = *state;

	vnic_device_set_asleep(loop->device, true);
	vnic_driver_tx_wake(loop->driver);
	vnic_driver_tx_hold(loop->driver, true);
	send_frames(loop, 1);
	vnic_driver_tx_wake(loop->driver);
	assert_int_equal(loop->kicks, 0);
	assert_int_equal(take_sent(loop), 1);
	vnic_driver_tx_hold(loop->driver, false);
	vnic_driver_tx_wake(loop->driver);
	assert_int_equal(loop->kicks, 1);
	vnic_driver_tx_wake(loop->driver);
	vnic_device_set_asleep(loop->device, true);
	assert_int_equal(loop->kicks, 1);

	vnic_driver_tx_hold(loop->driver, true);
	send_frames(loop, 1);
	vnic_driver_tx_hold(loop->driver, false);
	send_frames(loop, 1);
	assert_int_equal(loop->kicks, 2);
	assert_int_equal(take_sent(loop), 2);
	vnic_driver_tx_wake(loop->driver);
	vnic_device_set_asleep(loop->device, true);
	assert_int_equal(loop->kicks, 2);
}

/* Bursts wake the device at once. */
static void test_held_burst_rings_the_doorbell_at_once(void **state)
{
	struct vnic_loop *loop = *state;

	vnic_device_set_asleep(loop->device, true);
	vnic_driver_tx_hold(loop->driver, true);
	send_frames(loop, 2);
	assert_int_equal(loop->kicks, 1);
}

/*
 * A device that ran out of receive buffers gets a doorbell for the first new buffer, and none
 * otherwise.
 */
static void test_doorbell_rings_for_the_first_new_buffer(void **state)
{
	struct vnic_loop *loop = *state;
	struct vnic_frame frames[1];

	deliver(loop);
	vnic_device_set_asleep(loop->device, true);
	receive(loop);
	assert_int_equal(loop->kicks, 0);

	while (!vnic_device_rx(loop->device, 0, frame, sizeof(frame)))
		;
	assert_int_equal(vnic_driver_rx(loop->driver, frames, 1), 1);
	vnic_driver_rx_release(loop->driver, 1);
	assert_int_equal(loop->kicks, 1);
	assert_int_equal(vnic_device_rx(loop->device, 0, frame, sizeof(frame)), 0);
	vnic_device_set_asleep(loop->device, true);
	receive(loop);
	assert_int_equal(loop->kicks, 1);
}

#define LOOP_TEST(f) cmocka_unit_test_setup_teardown(f, open_loop, close_loop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOOP_TEST(test_frames_before_the_unmasking_are_reported),
		LOOP_TEST(test_interrupt_masks_itself_until_unmasked),
		LOOP_TEST(test_burst_raises_one_interrupt),
		LOOP_TEST(test_transmit_completion_interrupts_after_a_shortage_only),
		LOOP_TEST(test_unmasking_reports_freed_transmit_buffers),
		LOOP_TEST(test_only_a_sleeping_device_gets_a_doorbell),
		LOOP_TEST(test_held_frame_rings_with_the_next_doorbell),
		LOOP_TEST(test_held_burst_rings_the_doorbell_at_once),
		LOOP_TEST(test_doorbell_rings_for_the_first_new_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
