/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The switch between vNICs in this process and an uplink of netdev_mem. */
#include "switch_lan.h"

#include <errno.h>

#include "urxed/switch/classify.h"
#include "urxed/switch/deliver.h"

#define NOBODYS_QPN 0xfff123

static void frames_between_processes_go_by_qpn(void **state)
{
	(void)state;
	assert_true(post(0, lan_macs[0], w->qpn[1] + 17, 1));
	assert_true(post(0, lan_macs[0], w->qpn[0] + 4095, 2));
	assert_true(switch_run(&w->sw, LAN_T0));
	assert_int_equal(lan_receive(w, 1), 1);
	assert_int_equal(lan_receive(w, 0), 2);
	assert_int_equal(lan_receive(w, 1), -1);
	assert_false(switch_run(&w->sw, LAN_T0));
	drops(SWITCH_NO_DROP, 0);
}

static uint32_t meetings;
static bool is_deaf; /* process 0 does not read its notices */

static int count_meeting(struct switch_port *from, struct switch_port *to, uint32_t qpn)
{
	assert_ptr_equal(from, &w->processes[0]);
	assert_ptr_equal(to, &w->processes[1]);
	assert_int_equal(qpn, w->qpn[1] + 17);
	meetings++;
	return is_deaf ? -EAGAIN : 0;
}

/* The callback is called once for a pair of processes, or until it succeeds. */
static void first_frame_of_a_pair_introduces_it(void **state)
{
	(void)state;
	meetings = 0;
	is_deaf = true;
	w->sw.introduce = count_meeting;
	for (uint32_t i = 0; i < 2; i++) {
		post(0, lan_macs[0], w->qpn[1] + 17, 1);
		switch_run(&w->sw, LAN_T0);
	}
	assert_int_equal(meetings, 2);
	meetings = 0;
	is_deaf = false;
	for (uint32_t i = 0; i < 3; i++) {
		post(0, lan_macs[0], w->qpn[1] + 17, 1);
		switch_run(&w->sw, LAN_T0);
	}
	assert_int_equal(meetings, 1);
	switch_leave(&w->sw, &w->processes[1]);
	lan_join(w, 1);
	post(0, lan_macs[0], w->qpn[1] + 17, 1);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(meetings, 2);
}

static void frames_without_destination_are_counted(void **state)
{
	uint8_t f[LAN_LEN];

	(void)state;
	post(0, lan_macs[0], NOBODYS_QPN, 0);
	switch_run(&w->sw, LAN_T0);
	drops(SWITCH_DROP_NO_QP, 1);
	drops_seen();

	make(f, peer_mac, lan_macs[0], 5, 0);
	f[23] = 6; /* TCP, which processes may not send */
	lan_post(w, 0, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	drops(SWITCH_DROP_NOT_ROCE, 1);
	assert_int_equal(lan_receive(w, 0), -1);
	assert_int_equal(lan_receive(w, 1), -1);
}

/* The tap gets a whole frame, which the switch holds in two parts. */
static void keep(void *ctx, const struct switch_port *port, enum switch_direction dir,
		 const uint8_t *data, uint32_t len, enum switch_drop drop)
{
	(void)port;
	(void)dir;
	(void)drop;
	assert_int_equal(len, LAN_LEN);
	memcpy(ctx, data, len);
}

static void payload_is_delivered_unchanged(void **state)
{
	struct urxe_packet p = lan_datagram(lan_macs[0], w->qpn[1], w->qpn[0]);
	uint8_t f[LAN_LEN], tapped[LAN_LEN];
	struct netdev_frame out;
	struct vnic_frame frame;
	uint32_t i;

	(void)state;
	lan_frame(f, &p, 1);
	for (i = CLASSIFY_HEAD; i < LAN_LEN; i++)
		f[i] = (uint8_t)i;
	w->sw.tap = keep;
	w->sw.tap_ctx = tapped;
	lan_post(w, 0, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	assert_memory_equal(tapped, f, LAN_LEN);
	assert_int_equal(vnic_driver_rx(w->loops[1]->driver, &frame, 1), 1);
	assert_int_equal(frame.len, LAN_LEN);
	assert_memory_equal(frame.data, f, LAN_LEN);
	memcpy(f, peer_mac, 6);
	lan_post(w, 0, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(netdev_rx(w->far[0], LAN_T0, &out, 1), 1);
	assert_int_equal(out.len, LAN_LEN);
	assert_memory_equal(out.data, f, LAN_LEN);
}

static void frame_to_a_process_that_left_is_dropped(void **state)
{
	(void)state;
	switch_leave(&w->sw, &w->processes[1]);
	post(0, lan_macs[0], w->qpn[1], 1);
	switch_run(&w->sw, LAN_T0);
	drops(SWITCH_DROP_NO_QP, 1);
}

static const uint8_t group_mac[6] = {0x01, 0x00, 0x5e, 1, 2, 3};

static void all_hear_multicast(void)
{
	for (uint32_t i = 0; i < w->n_processes; i++)
		vnic_driver_set_multicast(w->loops[i]->driver, true);
}

/* Only processes that enabled multicast get such frames. */
static void multicast_needs_a_listener(void **state)
{
	(void)state;
	post(0, group_mac, URXE_QPN_MULTICAST, 7);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 1), -1);
	drops(SWITCH_DROP_UNHEARD, 1);
	vnic_driver_set_multicast(w->loops[1]->driver, true);
	post(0, group_mac, URXE_QPN_MULTICAST, 8);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 1), 8);
	vnic_driver_set_multicast(w->loops[1]->driver, false);
	post(0, group_mac, URXE_QPN_MULTICAST, 9);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 1), -1);
	drops(SWITCH_DROP_UNHEARD, 2);
}

/* A process's frame goes to all other processes and the uplink; an uplink's to all processes. */
static void multicast_goes_to_listeners_and_uplink(void **state)
{
	struct netdev_frame out[4];
	uint8_t f[LAN_LEN];

	(void)state;
	all_hear_multicast();
	post(0, group_mac, URXE_QPN_MULTICAST, 7);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 0), -1);
	assert_int_equal(lan_receive(w, 1), 7);
	assert_int_equal(lan_receive(w, 1), -1);
	assert_int_equal(netdev_rx(w->far[0], LAN_T0, out, 4), 1);
	assert_memory_equal(out[0].data, group_mac, 6);
	make(f, group_mac, peer_mac, URXE_QPN_MULTICAST, 8);
	lan_send(w, 0, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 0), 8);
	assert_int_equal(lan_receive(w, 1), 8);
	assert_int_equal(netdev_rx(w->far[0], LAN_T0, out, 4), 0);
	drops(SWITCH_NO_DROP, 0);
	/* A group has no single QP. */
	post(0, group_mac, w->qpn[1], 9);
	make(f, group_mac, peer_mac, w->qpn[1], 9);
	lan_send(w, 0, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	drops(SWITCH_DROP_MULTICAST, 2);
	assert_int_equal(lan_receive(w, 1), -1);
}

static void multicast_works_without_an_uplink(void **state)
{
	(void)state;
	all_hear_multicast();
	post(1, group_mac, URXE_QPN_MULTICAST, 7);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 0), 7);
	assert_int_equal(lan_receive(w, 1), -1);
	drops(SWITCH_NO_DROP, 0);
}

static void frame_to_another_host_needs_an_uplink(void **state)
{
	(void)state;
	post(0, peer_mac, 5, 1);
	switch_run(&w->sw, LAN_T0);
	drops(SWITCH_DROP_NO_UPLINK, 1);
}

/* The kernel delivers the frame to the process's own socket, too. */
static void process_with_a_socket_gets_no_copy_of_an_uplink(void **state)
{
	uint8_t f[LAN_LEN];

	(void)state;
	w->processes[1].sockets = 1;
	make(f, lan_macs[0], peer_mac, w->qpn[1], 4);
	lan_send(w, 0, f, LAN_LEN);
	post(0, lan_macs[0], w->qpn[1], 5);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 1), 5);
	assert_int_equal(lan_receive(w, 1), -1);
	drops(SWITCH_DROP_SOCKET_COPY, 1);
}

/* The socket may receive the frame, until the process has had time to close it. */
static void process_that_closes_its_socket_gets_no_copy_meanwhile(void **state)
{
	uint8_t f[LAN_LEN];

	(void)state;
	w->processes[1].closing_sockets = 1;
	w->processes[1].closing_until = LAN_T0 + 10;
	for (uint32_t i = 0; i < 2; i++) {
		make(f, lan_macs[0], peer_mac, w->qpn[1], (uint8_t)(4 + i));
		lan_send(w, 0, f, LAN_LEN);
		switch_run(&w->sw, LAN_T0 + 9 + i);
	}
	assert_int_equal(lan_receive(w, 1), 5);
	assert_int_equal(lan_receive(w, 1), -1);
	drops(SWITCH_DROP_SOCKET_COPY, 1);
}

/* The socket's filter has leased QPNs only. */
static void process_with_a_socket_gets_packets_to_an_added_qpn(void **state)
{
	uint8_t f[LAN_LEN];

	(void)state;
	w->processes[1].sockets = 1;
	assert_int_equal(switch_add_qpn(&w->sw, &w->processes[1], 0x11, 0), 0);
	make(f, lan_macs[0], peer_mac, 0x11, 4);
	lan_send(w, 0, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 1), 4);
	drops(SWITCH_NO_DROP, 0);
}

/* Posts more frames than the station takes; the uplink goes with those that are left. */
static void lose_uplink(void)
{
	while (w->uplinks[0].queued < 10) {
		post(0, peer_mac, 5, 0);
		switch_run(&w->sw, LAN_T0);
	}
	uplink_free_queue(&w->uplinks[0]);
}

static void frames_that_go_with_an_uplink_are_counted(void **state)
{
	(void)state;
	lose_uplink();
	switch_run(&w->sw, LAN_T0);
	drops(SWITCH_DROP_UPLINK_GONE, 10);
}

static void frames_that_go_with_a_machine_are_counted(void **state)
{
	(void)state;
	lose_uplink();
	switch_remove_vm_port(&w->sw, 0);
	drops(SWITCH_DROP_UPLINK_GONE, 10);
}

static void frames_go_to_and_from_the_uplink(void **state)
{
	struct netdev_frame out[4];
	uint8_t f[LAN_LEN];

	(void)state;
	post(0, peer_mac, 0x777777, 3);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(netdev_rx(w->far[0], LAN_T0, out, 4), 1);
	assert_int_equal(out[0].len, LAN_LEN);
	assert_memory_equal(out[0].data, peer_mac, 6);
	assert_memory_equal(out[0].data + 6, lan_macs[0], 6);

	make(f, lan_macs[0], peer_mac, w->qpn[1] + 1, 4);
	lan_send(w, 0, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(lan_receive(w, 1), 4);
	drops(SWITCH_NO_DROP, 0);

	make(f, peer_mac, peer_mac, w->qpn[1] + 1, 4);
	lan_send(w, 0, f, LAN_LEN);
	switch_run(&w->sw, LAN_T0);
	drops(SWITCH_DROP_NOT_OURS, 1);
}

/* Delay until the switch polls the uplink again; a netdev_mem port has no descriptor. */
static uint64_t look_after(uint64_t quiet)
{
	uint64_t now = LAN_T0 + quiet;

	assert_false(switch_run(&w->sw, now));
	return switch_deadline(&w->sw, now) - now;
}

static void uplink_is_polled_often_after_traffic(void **state)
{
	uint8_t f[LAN_LEN];

	(void)state;
	assert_int_equal(look_after(0), netdev_poll_interval_ns(LAN_T0));
	post(0, peer_mac, 0x777777, 3);
	assert_true(switch_run(&w->sw, LAN_T0));
	assert_int_equal(look_after(0), netdev_poll_interval_ns(0));
	assert_int_equal(look_after(1000000), netdev_poll_interval_ns(1000000));
	make(f, lan_macs[0], peer_mac, w->qpn[1], 4);
	lan_send(w, 0, f, LAN_LEN);
	assert_true(switch_run(&w->sw, LAN_T0));
	assert_int_equal(look_after(0), netdev_poll_interval_ns(0));
}

static void full_uplink_keeps_frames_in_order(void **state)
{
	struct netdev_frame out[8];
	uint32_t n = 0, got = 0, i, k, mark;

	(void)state;
	do
		while (post(0, peer_mac, 5, n))
			n++;
	while (switch_run(&w->sw, LAN_T0));
	assert_true(n > DEPTH + UPLINK_QUEUE);
	assert_true(switch_deadline(&w->sw, LAN_T0) <= LAN_T0 + SWITCH_RETRY_NS);
	while ((k = netdev_rx(w->far[0], LAN_T0, out, 8))) {
		for (i = 0; i < k; i++) {
			memcpy(&mark, out[i].data + LAN_LEN - 4, 4);
			assert_int_equal(mark, got++);
		}
		switch_run(&w->sw, LAN_T0 + SWITCH_UPLINK_STALL_NS - 1);
		switch_run(&w->sw, LAN_T0 + SWITCH_UPLINK_STALL_NS - 1);
	}
	assert_int_equal(got, n);
	drops(SWITCH_NO_DROP, 0);
}

static void stalled_uplink_drops_its_queue(void **state)
{
	uint32_t n = 0;

	(void)state;
	do
		while (post(0, peer_mac, 5, n))
			n++;
	while (switch_run(&w->sw, LAN_T0));
	switch_run(&w->sw, LAN_T0 + SWITCH_UPLINK_STALL_NS);
	drops(SWITCH_DROP_UPLINK_FULL, UPLINK_QUEUE);
}

/* A frame must not leave when its connection has failed long ago. */
static void uplink_without_a_link_keeps_no_frame(void **state)
{
	struct uplink *u = w->sw.uplinks;
	struct netdev_frame out;

	(void)state;
	u->kernel = true;
	u->up = false;
	assert_true(post(0, peer_mac, 5, 1));
	assert_true(switch_run(&w->sw, LAN_T0));
	drops(SWITCH_DROP_UPLINK_DOWN, 1);
	u->up = true;
	assert_true(post(0, peer_mac, 5, 2));
	assert_true(switch_run(&w->sw, LAN_T0));
	assert_int_equal(netdev_rx(w->far[0], LAN_T0, &out, 1), 1);
	assert_int_equal(out.data[LAN_LEN - 4], 2);
	drops(SWITCH_DROP_UPLINK_DOWN, 1);
}

/* MADs of the daemon: as many as the uplink takes, without a run of the switch between them. */
static void frames_of_urxed_wait_for_room(void **state)
{
	uint8_t frame[LAN_LEN] = {0};
	struct netdev_frame out[8];
	uint32_t sent = 0;

	(void)state;
	memcpy(frame, peer_mac, ETHER_MAC_LEN);
	for (; switch_has_room(&w->sw, 16); sent += 16)
		for (uint32_t i = 0; i < 16; i++)
			switch_send(&w->sw, 0, frame, sizeof(frame));
	assert_in_range(sent, DEPTH + UPLINK_QUEUE - 16, DEPTH + UPLINK_QUEUE);
	assert_true(switch_deadline(&w->sw, LAN_T0) <= LAN_T0 + SWITCH_RETRY_NS);
	drops(SWITCH_NO_DROP, 0);
	while (netdev_rx(w->far[0], LAN_T0, out, 8))
		;
	assert_true(switch_has_room(&w->sw, 16));
}

/* A full process loses its copy; no process gets two, and the sender does not wait. */
static void multicast_to_a_full_process_is_dropped(void **state)
{
	uint32_t n, got = 0;

	(void)state;
	all_hear_multicast();
	for (n = 0; n < 5000; n++) {
		assert_true(post(0, group_mac, URXE_QPN_MULTICAST, n));
		assert_true(switch_run(&w->sw, LAN_T0));
	}
	for (int64_t mark; (mark = lan_receive(w, 1)) >= 0; got++)
		assert_int_equal(mark, got);
	assert_true(got < n);
	drops(SWITCH_DROP_RX_FULL, n - got);
}

struct seen {
	uint32_t n;
	struct {
		const struct switch_port *port;
		enum switch_direction dir;
		enum switch_drop drop;
		uint32_t mark;
	} at[8];
};

static void look(void *ctx, const struct switch_port *port, enum switch_direction dir,
		 const uint8_t *data, uint32_t len, enum switch_drop drop)
{
	struct seen *seen = ctx;

	assert_int_equal(len, LAN_LEN);
	assert_true(seen->n < 8);
	seen->at[seen->n].port = port;
	seen->at[seen->n].dir = dir;
	seen->at[seen->n].drop = drop;
	memcpy(&seen->at[seen->n++].mark, data + LAN_LEN - 4, 4);
}

static void expect_seen(const struct seen *seen, uint32_t i, const struct switch_port *port,
			enum switch_direction dir, enum switch_drop drop, uint32_t mark)
{
	assert_true(i < seen->n);
	assert_ptr_equal(seen->at[i].port, port);
	assert_int_equal(seen->at[i].dir, dir);
	assert_int_equal(seen->at[i].drop, drop);
	assert_int_equal(seen->at[i].mark, mark);
}

/* The tap sees each frame in and out, and drops with their reason. */
static void tap_sees_frames_in_and_out(void **state)
{
	struct seen seen = {0};

	(void)state;
	w->sw.tap = look;
	w->sw.tap_ctx = &seen;
	post(0, lan_macs[0], w->qpn[1], 1);
	post(0, lan_macs[0], NOBODYS_QPN, 2);
	post(0, peer_mac, 5, 3);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(seen.n, 5);
	expect_seen(&seen, 0, &w->processes[0], SWITCH_IN, SWITCH_NO_DROP, 1);
	expect_seen(&seen, 1, &w->processes[1], SWITCH_OUT, SWITCH_NO_DROP, 1);
	expect_seen(&seen, 2, &w->processes[0], SWITCH_IN, SWITCH_DROP_NO_QP, 2);
	expect_seen(&seen, 3, &w->processes[0], SWITCH_IN, SWITCH_NO_DROP, 3);
	expect_seen(&seen, 4, &w->sw.uplink_ports[0], SWITCH_OUT, SWITCH_NO_DROP, 3);
	w->sw.tap = NULL;
	post(0, lan_macs[0], w->qpn[1], 4);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(seen.n, 5);
}

/* Each port has its own counters; the totals include ports that have left. */
static void each_port_has_its_own_counters(void **state)
{
	const struct switch_port *port = NULL;
	struct switch_stats all;
	uint32_t n = 0;

	(void)state;
	post(0, lan_macs[0], w->qpn[1], 1);
	post(0, lan_macs[0], NOBODYS_QPN, 2);
	post(1, peer_mac, 5, 3);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(w->processes[0].stats.counters[SWITCH_IN_FRAMES], 2);
	assert_int_equal(w->processes[0].stats.counters[SWITCH_IN_BYTES], 2 * LAN_LEN);
	assert_int_equal(w->processes[0].stats.drops[SWITCH_DROP_NO_QP], 1);
	assert_int_equal(w->processes[0].stats.counters[SWITCH_OUT_FRAMES], 0);
	assert_int_equal(w->processes[1].stats.counters[SWITCH_OUT_FRAMES], 1);
	assert_int_equal(w->processes[1].stats.counters[SWITCH_OUT_BYTES], LAN_LEN);
	assert_int_equal(w->sw.uplink_ports[0].stats.counters[SWITCH_OUT_FRAMES], 1);
	while ((port = switch_next_port(&w->sw, port)))
		n++;
	assert_int_equal(n, 2 + w->n_processes);
	switch_leave(&w->sw, &w->processes[0]);
	switch_totals(&w->sw, &all);
	assert_int_equal(all.counters[SWITCH_IN_FRAMES], 3);
	assert_int_equal(all.drops[SWITCH_DROP_NO_QP], 1);
}

/* Many processes that send do not keep the daemon from other work, and each gets its turn. */
static void run_of_a_crowd_ends_soon(void **state)
{
	const uint32_t each = 32, runs = LAN_PROCESSES * each / SWITCH_RUN_FRAMES;

	(void)state;
	assert_true(runs > 1);
	for (uint32_t i = 0; i < LAN_PROCESSES; i++)
		for (uint32_t n = 0; n < each + 1; n++)
			post(i, lan_macs[0], NOBODYS_QPN, n);
	for (uint32_t i = 1; i <= runs; i++) {
		assert_true(switch_run(&w->sw, LAN_T0));
		drops(SWITCH_DROP_NO_QP, i * SWITCH_RUN_FRAMES);
	}
	for (uint32_t i = 0; i < LAN_PROCESSES; i++)
		assert_int_equal(w->processes[i].stats.counters[SWITCH_IN_FRAMES], each);
}

static void copies_count_for_a_run(void **state)
{
	const uint64_t *in = w->processes[0].stats.counters;
	/* The last one may exceed the limit. */
	const uint32_t each = SWITCH_RUN_FRAMES / (LAN_PROCESSES - 1) + 1;

	(void)state;
	all_hear_multicast();
	for (uint32_t n = 0; n < 3 * each; n++)
		post(0, group_mac, URXE_QPN_MULTICAST, n);
	switch_run(&w->sw, LAN_T0);
	assert_int_equal(in[SWITCH_IN_FRAMES], each);
	/* The same before a message of the process. */
	assert_int_equal(switch_drain(&w->sw, LAN_T0, &w->processes[0]), SWITCH_RUN_FRAMES);
	assert_int_equal(in[SWITCH_IN_FRAMES], 2 * each);
	assert_in_range(switch_drain(&w->sw, LAN_T0, &w->processes[0]), 1, SWITCH_RUN_FRAMES);
	assert_int_equal(in[SWITCH_IN_FRAMES], 3 * each);
}

#define TEST(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)
#define CROWD(f) cmocka_unit_test_setup_teardown(f, setup_crowd, teardown)
/* Without an uplink, whose polling would set a deadline. */
#define ALONE(f) cmocka_unit_test_setup_teardown(f, setup_alone, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frames_between_processes_go_by_qpn),
		TEST(first_frame_of_a_pair_introduces_it),
		TEST(frames_without_destination_are_counted),
		TEST(payload_is_delivered_unchanged),
		TEST(frame_to_a_process_that_left_is_dropped),
		TEST(multicast_goes_to_listeners_and_uplink),
		ALONE(multicast_works_without_an_uplink),
		ALONE(multicast_needs_a_listener),
		ALONE(multicast_to_a_full_process_is_dropped),
		ALONE(frame_to_another_host_needs_an_uplink),
		TEST(process_with_a_socket_gets_no_copy_of_an_uplink),
		TEST(process_that_closes_its_socket_gets_no_copy_meanwhile),
		TEST(process_with_a_socket_gets_packets_to_an_added_qpn),
		TEST(frames_that_go_with_an_uplink_are_counted),
		TEST(frames_that_go_with_a_machine_are_counted),
		TEST(frames_go_to_and_from_the_uplink),
		TEST(uplink_is_polled_often_after_traffic),
		TEST(full_uplink_keeps_frames_in_order),
		TEST(stalled_uplink_drops_its_queue),
		TEST(uplink_without_a_link_keeps_no_frame),
		TEST(frames_of_urxed_wait_for_room),
		TEST(tap_sees_frames_in_and_out),
		TEST(each_port_has_its_own_counters),
		CROWD(run_of_a_crowd_ends_soon),
		CROWD(copies_count_for_a_run),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
