/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The switch with receivers that are full, slow or stalled: which frames wait, whom they delay. */
#include "switch_lan.h"

#include "guest.h"
#include "urxed/switch/deliver.h"

/* Fills the receive ring of port 1 and the sender's ring; returns the number of frames. */
static uint32_t flood(void)
{
	uint32_t n = 0;

	for (;;) {
		while (post(0, lan_macs[0], w->qpn[1], n))
			n++;
		if (!switch_run(&w->sw, LAN_T0))
			return n;
	}
}

static void full_receiver_loses_no_frames(void **state)
{
	uint32_t n = flood(), got;

	(void)state;
	drops(SWITCH_NO_DROP, 0);
	/* The frame that waits takes no room of a run: processes behind it have that. */
	assert_int_equal(w->sw.room, SWITCH_RUN_FRAMES);
	assert_int_equal(switch_deadline(&w->sw, LAN_T0), LAN_T0 + SWITCH_STALL_NS);
	for (got = 0; got < n; got++) {
		assert_int_equal(lan_receive(w, 1), got);
		switch_run(&w->sw, LAN_T0 + SWITCH_STALL_NS - 1);
	}
	assert_int_equal(lan_receive(w, 1), -1);
	drops(SWITCH_NO_DROP, 0);
}

/* No one repeats datagrams, so a receiver that waits for a CPU must not lose any. */
static void receiver_without_cpu_for_60_ms_loses_nothing(void **state)
{
	(void)state;
	flood();
	switch_run(&w->sw, LAN_T0 + UINT64_C(60000000));
	drops(SWITCH_NO_DROP, 0);
}

static void frames_to_a_stalled_receiver_are_dropped(void **state)
{
	uint32_t n = flood(), taken = 0;

	(void)state;
	post(0, lan_macs[0], w->qpn[0], 0);
	while (switch_run(&w->sw, LAN_T0 + SWITCH_STALL_NS))
		;
	assert_true(dropped(SWITCH_DROP_RX_STALLED) > 0);
	drops(SWITCH_DROP_RX_STALLED, dropped(SWITCH_DROP_RX_STALLED));
	while (lan_receive(w, 1) >= 0)
		taken++;
	assert_int_equal(taken + dropped(SWITCH_DROP_RX_STALLED), n);
	/* Once the receiver takes frames again, it gets new ones. */
	post(0, lan_macs[0], w->qpn[1], 77);
	switch_run(&w->sw, LAN_T0 + SWITCH_STALL_NS);
	assert_int_equal(lan_receive(w, 1), 77);
}

/* Posts a frame of process 0 to itself, behind the others; returns whether there was room. */
static bool post_to_itself(void)
{
	return post(0, lan_macs[0], w->qpn[0], UINT32_MAX);
}

/* A receiver that takes a frame now and then holds up its own frames only. */
static void slow_receiver_delays_no_other_port(void **state)
{
	uint64_t t = LAN_T0;
	bool posted = false;

	(void)state;
	flood();
	while (lan_receive(w, 0) != UINT32_MAX) {
		t += SWITCH_STALL_NS - 1;
		assert_in_range(t, LAN_T0, LAN_T0 + 4 * SWITCH_STALL_NS);
		assert_true(lan_receive(w, 1) >= 0);
		while (switch_run(&w->sw, t))
			;
		posted = posted || post_to_itself();
	}
	assert_true(dropped(SWITCH_DROP_RX_STALLED) > 0);
}

static void post_all(uint32_t from, uint32_t to)
{
	while (post(from, lan_macs[0], w->qpn[to], 5))
		;
}

/*
 * Processes 0 and 2 send to a receiver that frees a place in each second run. In each run n
 * processes from `busy` on send to another receiver, which frees one place.
 */
static void share_places(uint32_t busy, uint32_t n)
{
	const uint64_t *in[] = {&w->processes[0].stats.counters[SWITCH_IN_FRAMES],
				&w->processes[2].stats.counters[SWITCH_IN_FRAMES]};
	uint64_t first;

	flood();
	first = *in[0];
	for (uint32_t i = 0; i < 2000; i++) {
		post_all(0, 1);
		post_all(2, 1);
		for (uint32_t k = busy; k < busy + n; k++)
			post_all(k, 10);
		if (i & 1)
			lan_receive(w, 1);
		lan_receive(w, 10);
		switch_run(&w->sw, LAN_T0);
	}
	assert_in_range(*in[0] - first, 499, 501);
	assert_in_range(*in[1], 499, 501);
}

/* The receiver answers all the time. */
static void processes_share_the_places_of_a_busy_receiver(void **state)
{
	(void)state;
	share_places(1, 1);
}

static void processes_share_places_beside_a_busy_process(void **state)
{
	(void)state;
	share_places(3, 1);
}

/* Others wait for places, too. */
static void processes_share_places_beside_others_that_wait(void **state)
{
	(void)state;
	share_places(3, 2);
}

/* A receiver that takes 256 of the sender's frames in 100 ms sets its pace. */
static void steady_receiver_loses_no_frames(void **state)
{
	const uint64_t pace = SWITCH_STALL_NS / SWITCH_STALL_FRAMES - 1;
	uint32_t n = flood(), i;

	(void)state;
	for (i = 0; i < 4 * n; i++) {
		assert_int_equal(lan_receive(w, 1), i);
		switch_run(&w->sw, LAN_T0 + (i + 1) * pace);
		assert_true(post(0, lan_macs[0], w->qpn[1], n + i));
	}
	drops(SWITCH_NO_DROP, 0);
}

/* A station that takes each free place of the receiver's ring holds up no process. */
static void flood_from_an_uplink_stops_no_process(void **state)
{
	uint64_t t = LAN_T0;
	uint8_t f[LAN_LEN];
	bool posted = false;

	(void)state;
	flood();
	make(f, lan_macs[0], peer_mac, w->qpn[1], 5);
	while (lan_receive(w, 0) != UINT32_MAX) {
		t += SWITCH_STALL_NS / 100;
		assert_in_range(t, LAN_T0, LAN_T0 + 2 * SWITCH_STALL_NS);
		assert_true(lan_receive(w, 1) >= 0);
		lan_send(w, 0, f, LAN_LEN);
		switch_run(&w->sw, t);
		posted = posted || post_to_itself();
	}
}

/* Other senders may get most of the receiver's places: a sender waits for its own frames only. */
static void crowd_at_a_receiver_stops_no_process(void **state)
{
	const uint64_t pace = SWITCH_STALL_NS / SWITCH_STALL_FRAMES - 1;
	uint64_t t = LAN_T0;
	bool posted = false;

	(void)state;
	flood();
	while (lan_receive(w, 0) != UINT32_MAX) {
		t += pace;
		assert_in_range(t, LAN_T0, LAN_T0 + 2 * SWITCH_STALL_NS);
		assert_true(lan_receive(w, 1) >= 0);
		for (uint32_t i = 2; i < 20; i++)
			post(i, lan_macs[0], w->qpn[1], 5);
		switch_run(&w->sw, t);
		posted = posted || post_to_itself();
	}
}

/* Few frames come between the pauses of a receiver: the time alone restores the budget. */
static void pauses_a_second_apart_lose_nothing(void **state)
{
	uint64_t t = LAN_T0;
	uint8_t f[LAN_LEN];

	(void)state;
	make(f, lan_macs[0], peer_mac, w->qpn[1], 5);
	for (uint32_t i = 0; i < 4; i++) {
		while (vnic_device_rx(w->loops[1]->device, 0, f, LAN_LEN) == 0)
			;
		assert_true(post(0, lan_macs[0], w->qpn[1], 9));
		switch_run(&w->sw, t);
		switch_run(&w->sw, t += 60000000);
		while (lan_receive(w, 1) == 5)
			;
		switch_run(&w->sw, t);
		assert_int_equal(lan_receive(w, 1), 9);
		switch_run(&w->sw, t += 940000000);
	}
	drops(SWITCH_NO_DROP, 0);
}

static void uplink_frame_is_dropped_at_a_full_process(void **state)
{
	uint8_t f[LAN_LEN];

	(void)state;
	flood();
	make(f, lan_macs[0], peer_mac, w->qpn[1], 5);
	lan_send(w, 0, f, LAN_LEN);
	assert_true(switch_run(&w->sw, LAN_T0));
	drops(SWITCH_DROP_RX_FULL, 1);
}

static void post_in_queue(struct guest *g, uint32_t queue, const uint8_t *dmac, uint32_t qpn,
			  uint32_t src_qpn)
{
	struct urxe_packet p = lan_datagram(dmac, qpn, src_qpn);
	uint64_t addr = guest_alloc(g, GUEST_IN_LOW, LAN_LEN);

	lan_frame(guest_at(g, addr), &p, queue);
	guest_post_tx(&g->tx[queue], addr, LAN_LEN, VMXNET3_TXD_EOP);
}

/* A frame that waits delays only the frames behind it in its own transmit queue. */
static void blocked_transmit_queue_does_not_block_others(void **state)
{
	struct guest *g = guest_create(2, 1);
	const uint64_t *in = w->processes[0].stats.counters;
	struct netdev_frame out;
	uint8_t f[LAN_LEN];

	(void)state;
	assert_int_equal(guest_activate(g), 0);
	w->processes[0].dev = g->dev;
	make(f, lan_macs[0], lan_macs[0], w->qpn[1], 7);
	while (vnic_device_rx(w->loops[1]->device, 0, f, LAN_LEN) == 0)
		;
	post_in_queue(g, 0, lan_macs[0], w->qpn[1], w->qpn[0]);
	post_in_queue(g, 1, peer_mac, 5, w->qpn[0]);
	for (uint32_t i = 0; i < 3; i++)
		switch_run(&w->sw, LAN_T0);
	assert_int_equal(netdev_rx(w->far[0], LAN_T0, &out, 1), 1);
	assert_int_equal(out.data[LAN_LEN - 4], 1);
	/* A frame that was retried counts once. */
	assert_int_equal(in[SWITCH_IN_FRAMES], 2);
	while (lan_receive(w, 1) == 7)
		;
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 1), 0);
	assert_int_equal(in[SWITCH_IN_FRAMES], 2);
	w->processes[0].dev = NULL;
	guest_destroy(g);
}

/* A receiver's second queue takes the receiver's own datagrams, and the first takes nothing. */
static void queue_without_buffers_stops_no_process(void **state)
{
	struct guest *g = guest_create(1, 2);
	uint64_t t = LAN_T0;

	(void)state;
	assert_int_equal(guest_activate(g), 0);
	w->processes[1].dev = g->dev;
	post(0, lan_macs[0], w->qpn[1], 7);
	post_to_itself();
	while (lan_receive(w, 0) != UINT32_MAX) {
		t += SWITCH_STALL_NS / 100;
		assert_in_range(t, LAN_T0, LAN_T0 + 2 * SWITCH_STALL_NS);
		for (uint32_t i = 0; i < 8; i++) {
			guest_post_rx(g, &g->rx[1], 0, 2 * LAN_LEN);
			post_in_queue(g, 0, lan_macs[0], w->qpn[1] + 1, w->qpn[1]);
		}
		switch_run(&w->sw, t);
		for (uint32_t i = 0; i < 8; i++)
			assert_non_null(guest_received(&g->rx[1]));
	}
	drops(SWITCH_DROP_RX_STALLED, 1);
	w->processes[1].dev = NULL;
	guest_destroy(g);
}

static void filtered_frames_give_no_time_back(void **state)
{
	const uint64_t t = LAN_T0 + SWITCH_STALL_NS;
	struct guest *g = guest_create(1, 1);

	(void)state;
	g->shared->rx_filter.mode = VMXNET3_RXM_UCAST; /* to a MAC that is not the host's */
	assert_int_equal(guest_activate(g), 0);
	w->processes[2].dev = g->dev;
	flood();
	for (uint32_t i = 0; i <= SWITCH_STALL_FRAMES; i++) {
		while (switch_run(&w->sw, t))
			;
		post(0, lan_macs[0], i < SWITCH_STALL_FRAMES ? w->qpn[2] : w->qpn[1], 5);
	}
	switch_run(&w->sw, t);
	assert_false(w->processes[0].waiting);
	w->processes[2].dev = NULL;
	guest_destroy(g);
}

/* --- Stations: an uplink and three virtual machines */

#define STATIONS 4
#define RECEIVER (STATIONS - 1)

static const uint8_t vm_mac[6] = {4, 0, 0, 0, 0, RECEIVER};

static int setup_stations(void **state)
{
	static const char *const specs[STATIONS] = {"mem", "qemu:/1", "qemu:/2", "qemu:/3"};
	static const char *const address = "10.0.0.1/24";
	const struct lan_attr attr = {.n_processes = 1,
				      .n_stations = STATIONS,
				      .first_vm = 1,
				      .specs = specs,
				      .depth = DEPTH,
				      .addresses = &address,
				      .n_addresses = 1};
	uint8_t f[LAN_LEN];

	(void)state;
	memset(&before, 0, sizeof(before));
	w = lan_open(&attr);
	/* The switch learns the MAC of the last machine, from a frame that no process gets. */
	make(f, lan_macs[0], vm_mac, 5, 0);
	lan_send(w, RECEIVER, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	drops_seen();
	return 0;
}

static uint32_t count_received(uint32_t station)
{
	struct netdev_frame out;
	uint32_t n = 0;

	while (netdev_rx(w->far[station], LAN_T0, &out, 1))
		n++;
	return n;
}

static void send_burst(uint32_t station, uint32_t n)
{
	const uint8_t mac[6] = {4, 0, 0, 0, 0, (uint8_t)station};
	uint8_t f[LAN_LEN];

	make(f, vm_mac, mac, 5, 0);
	while (n--)
		lan_send(w, station, f, LAN_LEN);
}

/* The bursts of one run are longer than the machine's queue, but not than its ring. */
static void bursts_of_many_stations_reach_one_machine(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RECEIVER; i++)
		send_burst(i, 32);
	switch_run(&w->sw, LAN_T0);
	drops(SWITCH_NO_DROP, 0);
	assert_int_equal(count_received(RECEIVER), 32 * RECEIVER);
}

/* Stations send to a machine that takes nothing: it has its ring and its queue full. */
static void bursts_to_a_stalled_machine_are_dropped(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		send_burst(0, 100);
		send_burst(1, 100);
		while (switch_run(&w->sw, LAN_T0))
			;
	}
	drops(SWITCH_DROP_UPLINK_FULL, 800 - DEPTH - UPLINK_QUEUE);
	assert_int_equal(count_received(RECEIVER), DEPTH);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(count_received(RECEIVER), UPLINK_QUEUE);
}

/* MADs of the daemon, without a run of the switch between them. */
static void frames_of_urxed_to_a_machine_are_not_lost(void **state)
{
	uint8_t f[LAN_LEN];
	uint32_t sent = 0;

	(void)state;
	make(f, vm_mac, lan_macs[0], 1, 0);
	for (; sent < 2 * UPLINK_QUEUE; sent++)
		switch_send_gsi(&w->sw, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	drops(SWITCH_NO_DROP, 0);
	assert_int_equal(count_received(RECEIVER), sent);
}

#define TEST(f)    cmocka_unit_test_setup_teardown(f, setup, teardown)
#define CROWD(f)   cmocka_unit_test_setup_teardown(f, setup_crowd, teardown)
#define STATION(f) cmocka_unit_test_setup_teardown(f, setup_stations, teardown)
/* Without an uplink, whose polling would set a deadline. */
#define ALONE(f) cmocka_unit_test_setup_teardown(f, setup_alone, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(blocked_transmit_queue_does_not_block_others),
		ALONE(full_receiver_loses_no_frames),
		ALONE(receiver_without_cpu_for_60_ms_loses_nothing),
		TEST(frames_to_a_stalled_receiver_are_dropped),
		ALONE(slow_receiver_delays_no_other_port),
		ALONE(steady_receiver_loses_no_frames),
		TEST(flood_from_an_uplink_stops_no_process),
		TEST(queue_without_buffers_stops_no_process),
		ALONE(pauses_a_second_apart_lose_nothing),
		TEST(uplink_frame_is_dropped_at_a_full_process),
		CROWD(processes_share_the_places_of_a_busy_receiver),
		CROWD(processes_share_places_beside_a_busy_process),
		CROWD(processes_share_places_beside_others_that_wait),
		CROWD(crowd_at_a_receiver_stops_no_process),
		CROWD(filtered_frames_give_no_time_back),
		STATION(bursts_of_many_stations_reach_one_machine),
		STATION(bursts_to_a_stalled_machine_are_dropped),
		STATION(frames_of_urxed_to_a_machine_are_not_lost),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
