/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames that a program posted before it ended, or claimed its blocks again, reach their receivers:
 * another process, and a station behind an uplink.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include <netdev/netdev.h>
#include <rxe/packet.h>
#include <vnic/driver.h>

#include "craft.h"
#include "mem_port.h"
#include "session_pair.h"

#define UD_SEND_ONLY 0x64
#define FRAMES       100 /* more than a burst of the switch, less than a ring */
#define PLACES       64  /* in the queue of an uplink, UPLINK_QUEUE */

/* The station behind the uplink. */
static struct {
	struct uplink uplink;
	struct netdev *far;
} station;

static void *detach_thread(void *arg)
{
	struct server_process *p = arg;

	vnic_driver_detach(p->driver);
	atomic_store(&p->done, true);
	return NULL;
}

/* The station receives as many frames as `depth` until it takes some. */
static void setup_station(uint32_t depth)
{
	struct netdev *ends[2];

	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	assert_int_equal(netdev_mem_pair(depth, ends), 0);
	station.uplink =
		(struct uplink){.spec = "station", .port = ends[0], .mtu = MTU, .up = true};
	assert_int_equal(uplink_make_queue(&station.uplink), 0);
	station.far = ends[1];
	server_open(&w->server);
	w->server.uplinks = &station.uplink;
	w->server.n_uplinks = 1;
	attach_both();
}

static int setup_fast_station(void **state)
{
	(void)state;
	setup_station(1024);
	return 0;
}

static int setup_slow_station(void **state)
{
	(void)state;
	setup_station(PLACES / 2);
	return 0;
}

static int setup(void **state)
{
	return session_pair_open(state);
}

static int teardown(void **state)
{
	(void)state;
	session_pair_close();
	netdev_close(station.uplink.port);
	netdev_close(station.far);
	free(station.uplink.buffers);
	memset(&station, 0, sizeof(station));
	return 0;
}

/* Makes a datagram of a process with its number at the end; returns its length. */
static uint32_t make_frame(uint8_t *frame, const struct server_process *from, const uint8_t *dmac,
			   uint32_t number)
{
	static const uint8_t payload[32];
	struct urxe_packet p = {
		.net = URXE_NET_IPV4,
		.opcode = UD_SEND_ONLY,
		.dest_qpn = w->stayer.who.qpn_first,
		.deth.src_qpn = from->who.qpn_first,
		.sgid = craft_gid(URXE_NET_IPV4, 1),
		.dgid = craft_gid(URXE_NET_IPV4, 1),
		.payload = payload,
		.payload_len = sizeof(payload),
	};
	uint32_t len;

	memcpy(p.dmac, dmac, 6);
	memcpy(p.smac, w->server.host.mac, 6);
	len = craft_frame(frame, &p);
	memcpy(frame + len - 4, &number, 4);
	return len;
}

static void post_from(struct server_process *from, const uint8_t *dmac, uint32_t number)
{
	struct vnic_frame frame;
	uint8_t room[CRAFT_MAX];

	assert_int_equal(vnic_driver_tx_reserve(from->driver, &frame, 1), 1);
	frame.len = make_frame(room, from, dmac, number);
	memcpy(frame.data, room, frame.len);
	vnic_driver_tx_commit(from->driver, &frame, 1);
}

/* To `stayer`. */
static void post(uint32_t number)
{
	post_from(&w->leaver, w->server.host.mac, number);
}

static const uint8_t station_mac[6] = {2, 0, 0, 0, 0, 9};

static void post_to_station(struct server_process *from, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		post_from(from, station_mac, first + i);
}

static void stayer_has_all(void)
{
	struct vnic_frame frame;
	uint32_t n = 0, number;

	while (vnic_driver_rx(w->stayer.driver, &frame, 1)) {
		memcpy(&number, frame.data + frame.len - 4, 4);
		assert_int_equal(number, n++);
		vnic_driver_rx_release(w->stayer.driver, 1);
	}
	assert_int_equal(n, FRAMES);
}

/* The daemon sees doorbell and hang-up together, because it was busy or had no CPU. */
static void frames_posted_before_hang_up_are_forwarded(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < FRAMES; i++)
		post(i);
	vnic_driver_abandon(w->leaver.driver);
	take_events();
	assert_true(sessions_reap(&w->server.sessions));
	assert_int_equal(w->server.sessions.n, 1);
	switch_run(&w->server.sw, T0);
	stayer_has_all();
}

static void frames_posted_before_detach_are_forwarded(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < FRAMES; i++)
		post(i);
	serve(detach_thread, &w->leaver);
	take_events();
	assert_true(sessions_reap(&w->server.sessions));
	switch_run(&w->server.sw, T0);
	stayer_has_all();
}

/* The station takes what it has received, from number *next on. */
static void station_receives(uint32_t *next)
{
	struct netdev_frame frame;
	uint32_t number;

	while (netdev_rx(station.far, T0, &frame, 1)) {
		memcpy(&number, frame.data + frame.len - 4, 4);
		assert_int_equal(number, *next);
		++*next;
	}
}

static void station_has(uint32_t n)
{
	uint32_t next = 0;

	switch_run(&w->server.sw, T0);
	station_receives(&next);
	assert_int_equal(next, n);
}

/* More frames than places in the uplink's queue. */
static void frames_to_an_uplink_before_hang_up_are_forwarded(void **state)
{
	(void)state;
	post_to_station(&w->leaver, 0, 3 * PLACES);
	vnic_driver_abandon(w->leaver.driver);
	take_events();
	assert_true(sessions_reap(&w->server.sessions));
	station_has(3 * PLACES);
}

static void frames_to_an_uplink_before_detach_are_forwarded(void **state)
{
	(void)state;
	post_to_station(&w->leaver, 0, 3 * PLACES);
	serve(detach_thread, &w->leaver);
	take_events();
	assert_true(sessions_reap(&w->server.sessions));
	station_has(3 * PLACES);
}

/* The frames of others fill the uplink's queue. */
static void the_last_frame_is_forwarded(void **state)
{
	uint8_t frame[CRAFT_MAX];
	uint32_t len = make_frame(frame, &w->leaver, station_mac, PLACES);

	(void)state;
	post_to_station(&w->stayer, 0, PLACES);
	vnic_driver_set_last_frame(w->leaver.driver, frame, len);
	vnic_driver_abandon(w->leaver.driver);
	take_events();
	assert_true(sessions_reap(&w->server.sessions));
	station_has(PLACES + 1);
}

static const struct switch_port *uplink_port(void)
{
	return &w->server.sw.uplink_ports[0];
}

/* A link that is slower than the process: the daemon waits for it. */
static void frames_to_a_slow_uplink_are_forwarded(void **state)
{
	uint32_t next = 0;

	(void)state;
	post_to_station(&w->leaver, 0, 3 * PLACES);
	vnic_driver_abandon(w->leaver.driver);
	for (int i = 0; i < 20; i++) {
		reap_all();
		switch_run(&w->server.sw, T0);
		station_receives(&next);
	}
	assert_int_equal(next, 3 * PLACES);
	assert_int_equal(w->server.sessions.n, 1);
}

/* The daemon does not wait for ever. */
static void frames_that_nobody_takes_are_dropped(void **state)
{
	const struct switch_stats *out = &uplink_port()->stats;
	uint32_t queued, next = 0;
	const uint64_t late = T0 + SESSION_END_NS;

	(void)state;
	post_to_station(&w->leaver, 0, 3 * PLACES);
	vnic_driver_abandon(w->leaver.driver);
	reap_all();
	assert_int_equal(w->server.sessions.n, 2);
	server_take_events(&w->server, late);
	assert_true(sessions_reap(&w->server.sessions));
	queued = station.uplink.queued;
	station_receives(&next);
	assert_int_equal(next, out->counters[SWITCH_OUT_FRAMES]);
	assert_int_equal(next + queued + out->drops[SWITCH_DROP_UPLINK_FULL], 3 * PLACES);
}

/* The daemon sleeps until a frame moves, or the time of the wait is over. */
static void the_wait_for_receivers_causes_no_events(void **state)
{
	const uint64_t later = T0 + SESSION_CLAIM_NS;
	struct sessions *sessions = &w->server.sessions;
	struct epoll_event events[8];
	uint32_t next = 0;

	(void)state;
	post_to_station(&w->leaver, 0, 2 * PLACES);
	vnic_driver_abandon(w->leaver.driver);
	sessions_tick(sessions, later);
	server_take_events(&w->server, later);
	assert_int_equal(sessions_tick(sessions, later), later + SESSION_END_NS);
	epoll_wait(sessions->epoll_fd, events, 8, 0);
	assert_int_equal(epoll_wait(sessions->epoll_fd, events, 8, 0), 0);
	assert_false(sessions_reap(sessions));
	station_receives(&next);
	switch_run(&w->server.sw, later);
	assert_int_equal(sessions_tick(sessions, later), UINT64_MAX);
	assert_true(sessions_reap(sessions));
}

/* The daemon sees the new connection before the end of the earlier one. */
static void frames_posted_before_a_claim_are_forwarded(void **state)
{
	struct vnic_driver *earlier = w->leaver.driver;

	(void)state;
	for (uint32_t i = 0; i < FRAMES; i++)
		post(i);
	close(server_send_claim(&w->server, &w->leaver));
	reap_all();
	serve(server_claim_thread, &w->leaver);
	assert_int_equal(w->leaver.status, 0);
	switch_run(&w->server.sw, T0);
	stayer_has_all();
	vnic_driver_abandon(earlier);
	vnic_driver_abandon(w->leaver.driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frames_posted_before_hang_up_are_forwarded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(frames_posted_before_detach_are_forwarded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(frames_to_an_uplink_before_hang_up_are_forwarded,
						setup_fast_station, teardown),
		cmocka_unit_test_setup_teardown(frames_to_an_uplink_before_detach_are_forwarded,
						setup_fast_station, teardown),
		cmocka_unit_test_setup_teardown(the_last_frame_is_forwarded, setup_fast_station,
						teardown),
		cmocka_unit_test_setup_teardown(frames_to_a_slow_uplink_are_forwarded,
						setup_slow_station, teardown),
		cmocka_unit_test_setup_teardown(frames_that_nobody_takes_are_dropped,
						setup_slow_station, teardown),
		cmocka_unit_test_setup_teardown(the_wait_for_receivers_causes_no_events,
						setup_slow_station, teardown),
		cmocka_unit_test_setup_teardown(frames_posted_before_a_claim_are_forwarded, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
