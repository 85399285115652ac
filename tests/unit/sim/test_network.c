/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The simulated network: the rates of faults, and the delays of queues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "craft.h"
#include "sim/network/address.h"
#include "sim/network/ecn.h"
#include "sim/network/fabric.h"
#include "sim/network/impair.h"

#define FRAMES 200000
#define GBIT   UINT64_C(1000000000)

/* --- Faults. */

struct runs {
	uint32_t lost;
	uint32_t bursts;
};

/* Counts the lost frames of one host, and the bursts of them. */
static struct runs lose_many(const struct scenario *scenario)
{
	static const uint8_t frame[64];
	struct runs runs = {0};
	struct impair faults;
	bool before = false;

	impair_init(&faults, scenario, scenario->seed);
	for (uint32_t i = 0; i < FRAMES; i++) {
		bool lost = impair_lose(&faults, 0, frame, sizeof(frame));

		runs.lost += lost;
		runs.bursts += lost && !before;
		before = lost;
	}
	impair_free(&faults);
	return runs;
}

static void test_loss_is_as_frequent_as_asked(void **state)
{
	struct scenario scenario = scenario_default;
	struct runs runs;

	(void)state;
	scenario.loss = 0.05;
	runs = lose_many(&scenario);
	assert_in_range(runs.lost, FRAMES * 0.048, FRAMES * 0.052);
	/* Independent losses: a burst has 1 / (1 - 0.05) frames on average. */
	assert_in_range(runs.lost * 100 / runs.bursts, 103, 108);
}

static void test_bursts_have_their_mean_and_their_share(void **state)
{
	struct scenario scenario = scenario_default;
	struct runs runs;

	(void)state;
	scenario.loss = 0.05;
	scenario.burst = 8;
	runs = lose_many(&scenario);
	assert_in_range(runs.lost, FRAMES * 0.046, FRAMES * 0.054);
	assert_in_range(runs.lost * 100 / runs.bursts, 760, 840);
}

static void test_bursts_leave_a_frame_between_them(void **state)
{
	struct scenario scenario = scenario_default;
	char error[256];

	(void)state;
	scenario.burst = 2;
	scenario.loss = 0.66;
	assert_true(scenario_check(&scenario, error, sizeof(error)));
	assert_in_range(lose_many(&scenario).lost, FRAMES * 0.65, FRAMES * 0.67);
	scenario.loss = 0.9;
	assert_false(scenario_check(&scenario, error, sizeof(error)));
	assert_string_equal(error, "--loss is at most 0.666667 with --burst 2: "
				   "a frame between two bursts arrives");
}

static void test_everything_can_be_lost(void **state)
{
	struct scenario scenario = scenario_default;

	(void)state;
	scenario.loss = 1;
	assert_int_equal(lose_many(&scenario).lost, FRAMES);
	scenario.loss = 0;
	assert_int_equal(lose_many(&scenario).lost, 0);
}

static void test_mask_loses_just_these(void **state)
{
	static const uint8_t frame[64];
	struct scenario scenario = scenario_default;
	struct impair faults;

	(void)state;
	scenario.drop_mask = UINT64_C(1) << 63 | 5;
	impair_init(&faults, &scenario, 1);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(impair_lose(&faults, i % 2, frame, sizeof(frame)),
				 i == 0 || i == 2 || i == 63);
	impair_free(&faults);
}

static uint32_t request_frame(uint8_t frame[CRAFT_MAX], uint32_t to, uint32_t psn, uint8_t ecn,
			      enum urxe_net net, uint32_t length)
{
	static const uint8_t payload[4096];
	struct urxe_packet p = {
		.net = (uint8_t)net,
		.sgid = address_gid(net, 1),
		.dgid = address_gid(net, to),
		.traffic_class = ecn,
		.hop_limit = 64,
		.opcode = 4, /* RC SEND only */
		.dest_qpn = 0x100,
		.psn = psn,
		.pkey = 0xffff,
		.payload = payload,
		.payload_len = length,
	};

	address_mac(to, p.dmac);
	return craft_frame(frame, &p);
}

static void test_a_packet_is_not_lost_for_ever(void **state)
{
	struct scenario scenario = scenario_default;
	uint8_t frame[CRAFT_MAX];
	struct impair faults;

	(void)state;
	scenario.loss = 1;
	scenario.max_losses = 3;
	impair_init(&faults, &scenario, 1);
	for (uint32_t psn = 0; psn < 5000; psn++) {
		uint32_t len = request_frame(frame, 0, psn, 0, URXE_NET_IPV4, 64);

		for (unsigned times = 0; times < 6; times++)
			assert_int_equal(impair_lose(&faults, 1, frame, len), times < 3);
		/* Another host's packet with the same PSN is a different packet. */
		assert_true(impair_lose(&faults, 2, frame, len));
	}
	impair_free(&faults);
}

static void test_corruption_flips_one_bit(void **state)
{
	struct scenario scenario = scenario_default;
	uint8_t frame[64] = {0};
	struct impair faults;

	(void)state;
	scenario.corrupt = 1;
	impair_init(&faults, &scenario, 1);
	for (unsigned i = 0; i < 1000; i++) {
		unsigned bits = 0;

		memset(frame, 0, sizeof(frame));
		assert_true(impair_corrupt(&faults, 0, frame, sizeof(frame)));
		for (unsigned k = 0; k < sizeof(frame) * 8; k++)
			bits += frame[k / 8] >> k % 8 & 1;
		assert_int_equal(bits, 1);
	}
	impair_free(&faults);
}

/* --- Marks. */

static void test_mark_of_capable_packets_only(void **state)
{
	static const enum urxe_net nets[] = {URXE_NET_IPV4, URXE_NET_IPV6};
	uint8_t frame[CRAFT_MAX];
	struct urxe_packet p;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		for (uint8_t ecn = 0; ecn < 4; ecn++) {
			uint8_t class = 0x68 | ecn;
			uint32_t len = request_frame(frame, 0, 7, class, nets[i], 64);

			assert_int_equal(ecn_mark(frame, len), ecn != 0);
			assert_int_equal(urxe_packet_parse(&p, frame, len), URXE_DROP_NONE);
			assert_int_equal(p.traffic_class, ecn ? 0x6b : 0x68);
			/* An ECN mark changes no byte that the ICRC covers. */
			assert_true(urxe_packet_icrc_ok(&p));
		}
	assert_false(ecn_mark(frame, request_frame(frame, 0, 7, 2, URXE_NET_ROCEV1, 64)));
}

static void test_mark_keeps_the_header_checksum_right(void **state)
{
	uint8_t frame[CRAFT_MAX];

	(void)state;
	for (uint32_t psn = 0; psn < 300; psn++) {
		uint32_t len = request_frame(frame, psn, psn, 2, URXE_NET_IPV4, psn);
		const uint8_t *ip = frame + 14;
		uint32_t sum = 0;

		/* Sets any header checksum that is right (RFC 1071). */
		memset(frame + 14 + 10, 0, 2);
		for (unsigned i = 0; i < 20; i += 2)
			sum += craft_get16(ip + i);
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		craft_put16(frame + 14 + 10, (uint16_t)~sum);
		assert_true(ecn_mark(frame, len));
		sum = 0;
		for (unsigned i = 0; i < 20; i += 2)
			sum += craft_get16(ip + i);
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		assert_int_equal(sum, 0xffff);
	}
}

/* --- Queues. */

struct network {
	struct scenario scenario;
	struct events events;
	struct fabric fabric;
};

static void network_open(struct network *network)
{
	struct rand r = {1};

	network->events = (struct events){0};
	fabric_init(&network->fabric, &network->scenario, &network->events, &r);
}

static void network_close(struct network *network)
{
	fabric_free(&network->fabric);
	events_free(&network->events);
}

/*
 * Runs the network until all frames have arrived; returns their number and the time of the last
 * one.
 */
static uint32_t deliver(struct network *network, uint64_t *last)
{
	struct event event;
	uint32_t n = 0;

	while (events_pop(&network->events, &event)) {
		if (event_kind(&event) == EVENT_SWITCH) {
			fabric_switch(&network->fabric, event.at, event.object);
			continue;
		}
		*last = event.at;
		fabric_arrived(&network->fabric, event.object);
		n++;
	}
	return n;
}

static struct scenario quiet_scenario(uint64_t nodes, uint64_t rate, uint64_t delay)
{
	struct scenario scenario = scenario_default;

	scenario.nodes = nodes;
	scenario.rate = rate;
	scenario.delay = delay;
	return scenario;
}

static void test_frame_arrives_after_the_delay_of_the_link(void **state)
{
	struct network network = {.scenario = quiet_scenario(2, 0, 1234)};
	uint8_t frame[CRAFT_MAX];
	uint64_t at = 0;

	(void)state;
	network_open(&network);
	fabric_send(&network.fabric, 1000, 1, frame,
		    request_frame(frame, 0, 1, 0, URXE_NET_IPV4, 64));
	assert_int_equal(deliver(&network, &at), 1);
	assert_int_equal(at, 1000 + 1234);
	network_close(&network);
}

/* 976 bytes, and 24 of preamble, FCS and gap, take 8 us at 1 Gb/s on each of two cables. */
static void test_rate_is_kept(void **state)
{
	struct network network = {.scenario = quiet_scenario(2, GBIT, 1000)};
	static uint8_t frame[976];
	uint64_t at = 0;

	(void)state;
	address_mac(0, frame);
	network_open(&network);
	fabric_send(&network.fabric, 1, 1, frame, sizeof(frame));
	assert_int_equal(fabric_uplink_free(&network.fabric, 1), 1 + 8000);
	assert_int_equal(fabric_uplink_free(&network.fabric, 0), 0);
	assert_int_equal(deliver(&network, &at), 1);
	assert_int_equal(at, 1 + 8000 + 8000 + 1000);
	/* Two frames at once: the second waits for the first. */
	fabric_send(&network.fabric, 100000, 1, frame, sizeof(frame));
	fabric_send(&network.fabric, 100000, 1, frame, sizeof(frame));
	assert_int_equal(deliver(&network, &at), 2);
	assert_int_equal(at, 100000 + 3 * 8000 + 1000);
	network_close(&network);
}

/* Ten hosts send one frame each to host 0 at once: nine frames wait. */
static void crowd(struct network *network)
{
	static uint8_t frame[976];

	address_mac(0, frame);
	network_open(network);
	for (uint32_t from = 1; from <= 10; from++)
		fabric_send(&network->fabric, 1, from, frame, sizeof(frame));
}

static void test_queue_grows_and_shrinks(void **state)
{
	struct network network = {.scenario = quiet_scenario(11, GBIT, 0)};
	uint64_t at = 0;

	(void)state;
	crowd(&network);
	assert_int_equal(deliver(&network, &at), 10);
	assert_int_equal(at, 1 + 8000 + 10 * 8000);
	assert_in_range(network.fabric.queues[0].max, 9 * 1000 + 976 - 10, 9 * 1000 + 976);
	/* The queue falls from 10,000 bytes to 0 within 80 us; the mean is from 0 to 160 us. */
	assert_in_range(fabric_mean_queue(&network.fabric, 160000, 0), 2480, 2520);
	assert_int_equal(network.fabric.queues[1].max, 0);
	network_close(&network);
}

static void test_queue_drops_what_does_not_fit(void **state)
{
	struct network network = {.scenario = quiet_scenario(11, GBIT, 0)};
	uint64_t at = 0;

	(void)state;
	network.scenario.queue = 5000;
	crowd(&network);
	assert_int_equal(deliver(&network, &at), 5);
	assert_int_equal(network.fabric.counters.tail_drops, 5);
	assert_true(network.fabric.queues[0].max <= 5000);
	network_close(&network);
}

static void test_marks_follow_the_queue(void **state)
{
	struct network network = {.scenario = quiet_scenario(11, GBIT, 0)};
	uint8_t frame[CRAFT_MAX];
	uint64_t at = 0;

	(void)state;
	network.scenario.ecn_min = 1;
	network.scenario.ecn_max = 4000;
	network.scenario.ecn_share = 0.000001;
	network_open(&network);
	for (uint32_t from = 1; from <= 10; from++)
		fabric_send(&network.fabric, 1, from, frame,
			    request_frame(frame, 0, from, 2, URXE_NET_IPV4, 900));
	assert_int_equal(deliver(&network, &at), 10);
	/*
	 * Frames of 962 bytes take 986 on the cable: the fifth frame finds 3,944 bytes before it.
	 */
	assert_int_equal(network.fabric.counters.marked, 6);
	network_close(&network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss_is_as_frequent_as_asked),
		cmocka_unit_test(test_bursts_have_their_mean_and_their_share),
		cmocka_unit_test(test_bursts_leave_a_frame_between_them),
		cmocka_unit_test(test_everything_can_be_lost),
		cmocka_unit_test(test_mask_loses_just_these),
		cmocka_unit_test(test_a_packet_is_not_lost_for_ever),
		cmocka_unit_test(test_corruption_flips_one_bit),
		cmocka_unit_test(test_mark_of_capable_packets_only),
		cmocka_unit_test(test_mark_keeps_the_header_checksum_right),
		cmocka_unit_test(test_frame_arrives_after_the_delay_of_the_link),
		cmocka_unit_test(test_rate_is_kept),
		cmocka_unit_test(test_queue_grows_and_shrinks),
		cmocka_unit_test(test_queue_drops_what_does_not_fit),
		cmocka_unit_test(test_marks_follow_the_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
