/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Request and response frames of urxe bench --bare, over a netdev_mem pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <netdev/netdev.h>

#include "bench/raw_frame.h"
#include "bench/raw_latency.h"
#include "mem_port.h"

static struct netdev *ends[2];
static struct raw_latency asks, answers;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(netdev_mem_pair(64, ends), 0);
	raw_latency_init(&asks, ends[0]);
	raw_latency_init(&answers, ends[1]);
	/* Both ends are in one process and would generate the same MAC address. */
	answers.mac[5] ^= 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	netdev_close(ends[0]);
	netdev_close(ends[1]);
	return 0;
}

static void request_gets_its_response(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		raw_latency_ask(&asks, 0, false);
		assert_false(raw_latency_answered(&asks, 0));
		raw_latency_answer(&answers, 0);
		assert_true(raw_latency_answered(&asks, 0));
		assert_false(raw_latency_answered(&asks, 0));
		assert_memory_equal(asks.peer, answers.mac, sizeof(answers.mac));
	}
}

/* A late response to the first of two equal requests counts. */
static void repeated_request_is_answered_again(void **state)
{
	(void)state;
	raw_latency_ask(&asks, 0, false);
	raw_latency_answer(&answers, 0);
	raw_latency_ask(&asks, 0, true);
	assert_true(raw_latency_answered(&asks, 0));
}

static void response_to_an_older_request_is_ignored(void **state)
{
	(void)state;
	raw_latency_ask(&asks, 0, false);
	raw_latency_answer(&answers, 0);
	raw_latency_ask(&asks, 0, false);
	assert_false(raw_latency_answered(&asks, 0));
}

static void response_for_another_station_is_ignored(void **state)
{
	(void)state;
	raw_latency_ask(&asks, 0, false);
	raw_latency_answer(&answers, 0);
	asks.mac[5] ^= 2;
	assert_false(raw_latency_answered(&asks, 0));
}

/* Receives a frame from `port`. */
static uint32_t take(struct netdev *port, uint8_t frame[RAW_FRAME_LEN])
{
	struct netdev_frame got;
	uint32_t n = netdev_rx(port, 0, &got, 1);

	if (n) {
		assert_int_equal(got.len, RAW_FRAME_LEN);
		memcpy(frame, got.data, RAW_FRAME_LEN);
	}
	return n;
}

static void send_part(const uint8_t *data, uint32_t len)
{
	const struct netdev_frame part = {.data = data, .len = len};

	assert_int_equal(netdev_tx(ends[0], 0, &part, 1), 1);
}

static void malformed_request_gets_no_response(void **state)
{
	uint8_t frame[RAW_FRAME_LEN], other[RAW_FRAME_LEN];

	(void)state;
	raw_latency_ask(&asks, 0, false);
	assert_int_equal(take(ends[1], frame), 1);
	for (uint32_t len = 1; len < RAW_FRAME_LEN; len++) {
		send_part(frame, len);
		raw_latency_answer(&answers, 0);
	}
	for (uint32_t at = 12; at < 23; at++) {
		memcpy(other, frame, sizeof(other));
		other[at] ^= 0x40;
		send_part(other, sizeof(other));
		raw_latency_answer(&answers, 0);
	}
	assert_int_equal(take(ends[0], other), 0);
}

/* An RDMA device on the link must not take the frame for a RoCE packet. */
static void raw_frames_are_not_roce(void **state)
{
	uint8_t frame[RAW_FRAME_LEN];

	(void)state;
	raw_latency_ask(&asks, 0, false);
	assert_int_equal(take(ends[1], frame), 1);
	assert_int_not_equal(frame[14] >> 4, 6); /* the GRH's IP version */
}

/* Turns of both ends; returns the number of frames that were delivered. */
static uint64_t exchange_stream(struct raw_stream *stream, int turns)
{
	for (int i = 0; i < turns; i++) {
		raw_stream_turn(stream, 0);
		for (int k = 0; k < 4; k++)
			raw_latency_answer(&answers, 0);
	}
	return stream->delivered;
}

static void stream_counts_what_arrived(void **state)
{
	struct raw_stream stream;

	(void)state;
	assert_int_equal(raw_stream_init(&stream, ends[0], asks.mac, answers.mac), 0);
	assert_int_equal(stream.payload, 4096);
	assert_in_range(exchange_stream(&stream, 100), 1500, 3200);
	assert_true(stream.sent - stream.delivered <= RAW_STREAM_WINDOW);
}

static void stream_ends_at_its_window_without_credits(void **state)
{
	struct raw_stream stream;
	uint8_t other[6] = {2};

	(void)state;
	assert_int_equal(raw_stream_init(&stream, ends[0], asks.mac, other), 0);
	assert_int_equal(exchange_stream(&stream, 100), 0);
	assert_in_range(stream.sent, RAW_STREAM_WINDOW - RAW_STREAM_CREDIT, RAW_STREAM_WINDOW);
	/* Frames without a credit count as lost some time later. */
	raw_stream_turn(&stream, UINT64_C(1000000000));
	assert_true(stream.sent > RAW_STREAM_WINDOW);
	assert_int_equal(stream.delivered, 0);
}

static void credit_for_frames_that_were_not_sent_is_ignored(void **state)
{
	struct raw_stream stream;
	uint8_t bytes[RAW_FRAME_LEN];
	const struct netdev_frame credit = {.data = bytes, .len = sizeof(bytes)};

	(void)state;
	assert_int_equal(raw_stream_init(&stream, ends[0], asks.mac, answers.mac), 0);
	raw_frame_write(bytes, asks.mac, answers.mac, RAW_CREDIT, 1000);
	assert_int_equal(netdev_tx(ends[1], 0, &credit, 1), 1);
	raw_stream_turn(&stream, 0);
	assert_int_equal(stream.delivered, 0);
	raw_frame_write(bytes, asks.mac, answers.mac, RAW_CREDIT, 16);
	assert_int_equal(netdev_tx(ends[1], 0, &credit, 1), 1);
	raw_stream_turn(&stream, 0);
	assert_int_equal(stream.delivered, RAW_STREAM_CREDIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(request_gets_its_response, setup, teardown),
		cmocka_unit_test_setup_teardown(repeated_request_is_answered_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(response_to_an_older_request_is_ignored, setup,
						teardown),
		cmocka_unit_test_setup_teardown(response_for_another_station_is_ignored, setup,
						teardown),
		cmocka_unit_test_setup_teardown(malformed_request_gets_no_response, setup,
						teardown),
		cmocka_unit_test_setup_teardown(raw_frames_are_not_roce, setup, teardown),
		cmocka_unit_test_setup_teardown(stream_counts_what_arrived, setup, teardown),
		cmocka_unit_test_setup_teardown(stream_ends_at_its_window_without_credits, setup,
						teardown),
		cmocka_unit_test_setup_teardown(credit_for_frames_that_were_not_sent_is_ignored,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
