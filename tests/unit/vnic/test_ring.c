/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames in both directions between the driver and the device, over many laps of the rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <vnic/regs.h>

#include "vnic_loop.h"

#define MTU       4200
#define TX_POSTED 255 /* a ring leaves one descriptor empty */
#define RX_POSTED 1023
#define BURST     64

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

static uint64_t counter(const struct vnic_loop *loop, enum vnic_counter which)
{
	return vnic_device_counters(loop->device)[which];
}

static uint32_t length_of(uint32_t number)
{
	return VNIC_ETH_HEADER + number * 7919 % (VNIC_FRAME_MAX(MTU) - VNIC_ETH_HEADER + 1);
}

static void fill(uint8_t *data, uint32_t number)
{
	/* An even first byte: a unicast destination. */
	memset(data, (int)(number * 62 + 2), length_of(number));
	memcpy(data + 6, &number, sizeof(number));
}

static void check(const uint8_t *data, uint32_t len, uint32_t number)
{
	static uint8_t want[VNIC_FRAME_MAX(MTU)];

	fill(want, number);
	assert_int_equal(len, length_of(number));
	assert_memory_equal(data, want, len);
}

/* Sends frames from *number on: at most n, as many as fit. */
static uint32_t send_frames(struct vnic_driver *drv, uint32_t *number, uint32_t n)
{
	struct vnic_frame frames[BURST];

	n = vnic_driver_tx_reserve(drv, frames, n);
	for (uint32_t i = 0; i < n; i++) {
		frames[i].len = length_of(*number);
		assert_true(frames[i].room >= frames[i].len);
		fill(frames[i].data, (*number)++);
	}
	vnic_driver_tx_commit(drv, frames, n);
	return n;
}

static uint32_t take_sent(struct vnic_device *dev, uint32_t *number, uint32_t n)
{
	struct vnic_tx_frame frames[BURST];

	n = vnic_device_tx(dev, 0, frames, n);
	for (uint32_t i = 0; i < n; i++)
		check(frames[i].data, frames[i].len, (*number)++);
	vnic_device_tx_done(dev, 0, n);
	return n;
}

static void test_transmit_ring_wraps_without_loss(void **state)
{
	struct vnic_loop *loop = *state;
	uint32_t sent = 0, taken = 0;

	/*
	 * Bursts of changing size, with a device that falls behind at times, for more than five
	 * laps.
	 */
	for (uint32_t round = 0; sent < 5 * 256 + 17; round++) {
		send_frames(loop->driver, &sent, 1 + round * 13 % BURST);
		take_sent(loop->device, &taken, 1 + round * 29 % BURST);
	}
	while (take_sent(loop->device, &taken, BURST))
		;
	assert_int_equal(taken, sent);
	assert_int_equal(counter(loop, VNIC_TX_FRAMES), sent);
	assert_int_equal(vnic_device_state(loop->device), VNIC_DEVICE_ACTIVE);
}

static uint32_t give(struct vnic_device *dev, uint32_t *number, uint32_t n)
{
	static uint8_t data[VNIC_FRAME_MAX(MTU)];
	uint32_t i;

	for (i = 0; i < n; i++) {
		fill(data, *number);
		if (vnic_device_rx(dev, 0, data, length_of(*number)))
			break;
		(*number)++;
	}
	return i;
}

static uint32_t receive(struct vnic_driver *drv, uint32_t *number, uint32_t n)
{
	struct vnic_frame frames[BURST];

	n = vnic_driver_rx(drv, frames, n);
	for (uint32_t i = 0; i < n; i++)
		check(frames[i].data, frames[i].len, (*number)++);
	vnic_driver_rx_release(drv, n);
	return n;
}

static void test_receive_ring_wraps_without_loss(void **state)
{
	struct vnic_loop *loop = *state;
	uint32_t given = 0, received = 0;

	for (uint32_t round = 0; given < 5 * 1056 + 17; round++) {
		give(loop->device, &given, 1 + round * 13 % BURST);
		receive(loop->driver, &received, 1 + round * 29 % BURST);
	}
	while (receive(loop->driver, &received, BURST))
		;
	assert_int_equal(received, given);
	assert_int_equal(counter(loop, VNIC_RX_FRAMES), given);
}

/* Received frames keep their buffers until they are released. */
static void test_receive_holds_buffers(void **state)
{
	struct vnic_loop *loop = *state;
	struct vnic_frame frames[BURST];
	uint32_t given = 0, received = 0;

	give(loop->device, &given, BURST);
	assert_int_equal(vnic_driver_rx(loop->driver, frames, BURST), BURST);
	while (give(loop->device, &given, 1))
		;
	for (uint32_t i = 0; i < BURST; i++)
		check(frames[i].data, frames[i].len, received++);
	assert_int_equal(given, RX_POSTED);
	vnic_driver_rx_release(loop->driver, BURST);
	assert_int_equal(give(loop->device, &given, BURST + 1), BURST);
	while (receive(loop->driver, &received, BURST))
		;
	assert_int_equal(received, given);
}

static void test_full_transmit_ring_frees_with_completions(void **state)
{
	struct vnic_loop *loop = *state;
	struct vnic_frame frame;
	uint32_t sent = 0, taken = 0;

	while (send_frames(loop->driver, &sent, BURST))
		;
	assert_int_equal(sent, TX_POSTED);
	assert_int_equal(vnic_driver_tx_reserve(loop->driver, &frame, 1), 0);
	while (take_sent(loop->device, &taken, BURST))
		;
	assert_int_equal(taken, TX_POSTED);
	while (send_frames(loop->driver, &sent, BURST))
		;
	assert_int_equal(sent, 2 * TX_POSTED);
}

/* The device returns a frame again until the caller completes it. */
static void test_frame_is_returned_until_completed(void **state)
{
	struct vnic_loop *loop = *state;
	struct vnic_tx_frame frames[BURST];
	uint32_t sent = 0;

	send_frames(loop->driver, &sent, 3);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(vnic_device_tx(loop->device, 0, frames, BURST), 3);
		check(frames[0].data, frames[0].len, 0);
	}
	vnic_device_tx_done(loop->device, 0, 2);
	assert_int_equal(vnic_device_tx(loop->device, 0, frames, BURST), 1);
	check(frames[0].data, frames[0].len, 2);
	/* A completion of more frames than there are is harmless. */
	vnic_device_tx_done(loop->device, 0, 99);
	assert_int_equal(counter(loop, VNIC_TX_FRAMES), 3);
}

static void test_runt_and_too_long_frames_are_refused(void **state)
{
	static const uint8_t data[VNIC_FRAME_MAX(MTU) + 1];
	struct vnic_loop *loop = *state;

	assert_int_equal(vnic_device_rx(loop->device, 0, data, sizeof(data)), -EMSGSIZE);
	assert_int_equal(counter(loop, VNIC_RX_TOO_LONG), 1);
	assert_int_equal(vnic_device_rx(loop->device, 0, data, 0), -EINVAL);
	assert_int_equal(vnic_device_rx(loop->device, 0, data, VNIC_ETH_HEADER - 1), -EINVAL);
	assert_int_equal(counter(loop, VNIC_RX_RUNT), 2);
	assert_int_equal(vnic_device_rx(loop->device, 0, data, sizeof(data) - 1), 0);
}

/* The processes of a host share its MAC; the switch assigns frames to processes. */
static void test_processes_share_a_mac_they_cannot_change(void **state)
{
	struct vnic_loop *loop = *state;
	uint8_t data[60] = {0x02, 9, 9, 9, 9, 9};
	uint32_t low, now;

	assert_int_equal(vnic_device_reg_read(loop->device, 1, VMXNET3_REG_MACL, &low), 0);
	assert_int_equal(vnic_device_reg_write(loop->device, 1, VMXNET3_REG_MACL, 0x09090902), 0);
	assert_int_equal(vnic_device_reg_write(loop->device, 1, VMXNET3_REG_MACH, 0x0909), 0);
	assert_int_equal(vnic_device_reg_read(loop->device, 1, VMXNET3_REG_MACL, &now), 0);
	assert_int_equal(now, low);
	assert_int_equal(vnic_device_rx(loop->device, 0, data, sizeof(data)), 0);
	assert_int_equal(counter(loop, VNIC_RX_FRAMES), 1);
	/* Any VLAN is received; a group only if the driver asked for groups. */
	memcpy(data + 12, (const uint8_t[]){0x81, 0x00, 0x0f, 0xfe}, 4);
	assert_int_equal(vnic_device_rx(loop->device, 0, data, sizeof(data)), 0);
	assert_int_equal(counter(loop, VNIC_RX_FRAMES), 2);
	data[0] = 0x01;
	assert_int_equal(vnic_device_rx(loop->device, 0, data, sizeof(data)), 0);
	assert_int_equal(counter(loop, VNIC_RX_FILTERED), 1);
	vnic_driver_set_multicast(loop->driver, true);
	assert_int_equal(vnic_device_rx(loop->device, 0, data, sizeof(data)), 0);
	assert_int_equal(counter(loop, VNIC_RX_FRAMES), 3);
}

/* A quiesced NIC neither sends nor receives; the frames that it had returned are dropped. */
static void test_quiesced_nic_passes_no_frames(void **state)
{
	struct vnic_loop *loop = *state;
	struct vnic_tx_frame frames[BURST];
	uint8_t data[60] = {0};
	uint32_t sent = 0;

	send_frames(loop->driver, &sent, 3);
	assert_int_equal(vnic_device_tx(loop->device, 0, frames, BURST), 3);
	vnic_driver_detach(loop->driver);
	assert_null(loop->driver);
	assert_int_equal(vnic_device_state(loop->device), VNIC_DEVICE_DOWN);
	vnic_device_tx_done(loop->device, 0, 3);
	assert_int_equal(counter(loop, VNIC_TX_FRAMES), 0);
	assert_int_equal(vnic_device_tx(loop->device, 0, frames, BURST), 0);
	assert_int_equal(vnic_device_rx(loop->device, 0, data, sizeof(data)), -ENETDOWN);
}

#define LOOP_TEST(f) cmocka_unit_test_setup_teardown(f, open_loop, close_loop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOOP_TEST(test_transmit_ring_wraps_without_loss),
		LOOP_TEST(test_receive_ring_wraps_without_loss),
		LOOP_TEST(test_receive_holds_buffers),
		LOOP_TEST(test_full_transmit_ring_frees_with_completions),
		LOOP_TEST(test_frame_is_returned_until_completed),
		LOOP_TEST(test_runt_and_too_long_frames_are_refused),
		LOOP_TEST(test_processes_share_a_mac_they_cannot_change),
		LOOP_TEST(test_quiesced_nic_passes_no_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
