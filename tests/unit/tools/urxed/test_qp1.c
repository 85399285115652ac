/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address resolution, QP1 and rdma_cm together, in virtual time: a peer that the host knows is
 * answered within 50 ms, whatever other stations and local users do.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "qp1_net.h"
#include "urxed/cm/ucma.h"

#define ONE_BY_ONE 1
#define LAP        1024 /* frames that the switch may forward before the daemon runs QP1 */
#define BURST      1400 /* more than twice what QP1 keeps */

static struct qp1_net net;
static struct cma_id *listener;

static int set_up(void **state)
{
	(void)state;
	qp1_open(&net);
	listener = qp1_listen(&net);
	/* The host has accepted a connection of the peer before, and so knows it. */
	assert_true(qp1_peer_is_answered(&net, false, QP1_HEARD, ONE_BY_ONE));
	assert_true(qp1_peer_is_answered(&net, true, QP1_HEARD, ONE_BY_ONE));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cma_destroy_id(listener);
	qp1_close(&net);
	return 0;
}

static void expect_peer_is_answered(uint32_t burst)
{
	assert_true(qp1_peer_is_answered(&net, false, QP1_HEARD, burst));
	assert_true(qp1_peer_is_answered(&net, false, QP1_UNHEARD, burst));
	assert_true(qp1_peer_is_answered(&net, true, QP1_HEARD, burst));
	assert_true(qp1_peer_is_answered(&net, true, QP1_UNHEARD, burst));
}

/* 1,500 requests per second to a port without listener, from an address that nobody has. */
static void flood_from_an_absent_address_causes_no_arp(void **state)
{
	uint8_t absent[16];

	(void)state;
	qp1_on_link(absent, 66);
	for (uint32_t i = 0; i < 3000; i++) {
		qp1_attack_req(&net, absent, qp1_macs[2], QP1_UNHEARD, i);
		qp1_run(&net, net.now + QP1_SECOND / 1500, ONE_BY_ONE);
		if (i % 500 == 499)
			expect_peer_is_answered(ONE_BY_ONE);
	}
	/* The refusals went to the MAC that had sent the requests, and nobody was asked for it. */
	assert_int_equal(net.to_others, 3000);
	assert_memory_equal(net.last_to_others, qp1_macs[2], 6);
	assert_int_equal(net.host.neigh.table.n_incomplete, 0);
}

/* 300 requests per second, each from another address of the subnet. */
static void flood_from_many_absent_addresses_leaves_neighbour_entries(void **state)
{
	const uint16_t ports[] = {QP1_UNHEARD, QP1_HEARD};
	struct neigh_waiter waiter;
	struct vnic_next_hop hop;
	uint8_t ip[16], next[16];

	(void)state;
	for (int p = 0; p < 2; p++) {
		for (uint32_t i = 0; i < 1500; i++) {
			qp1_on_link(ip, 1000 + i);
			qp1_attack_req(&net, ip, qp1_macs[2], ports[p], i);
			qp1_run(&net, net.now + QP1_SECOND / 300, ONE_BY_ONE);
			if (i % 500 == 499)
				expect_peer_is_answered(ONE_BY_ONE);
		}
		/* A program can resolve new addresses meanwhile, as for the transition to RTR. */
		qp1_on_link(next, 100 + (uint32_t)p);
		assert_int_equal(neigh_resolve(&net.host.neigh, net.now, QP1_STRANGER, 0, next,
					       &waiter, &hop),
				 -EINPROGRESS);
		neigh_cancel(&net.host.neigh, &waiter);
		assert_in_range(net.host.gsi.n_hops, 0, GSI_HOPS);
	}
}

static uint32_t count_neighbours(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < NEIGH_ENTRIES; i++)
		n += net.host.neigh.table.entries[i].state == NEIGH_REACHABLE;
	return n;
}

/* Sends two requests each from many addresses, with a run between them. */
static void flood_from_present_addresses(uint32_t first)
{
	uint8_t ip[16], mac[6];

	for (uint32_t i = 0; i < 3000; i += 50) {
		for (uint32_t k = 0; k < 100; k++) {
			qp1_on_link(ip, first + i + k % 50);
			qp1_station_mac(&net, ip, mac);
			qp1_attack_req(&net, ip, mac, QP1_HEARD, i + k % 50);
			if (k % 50 == 49)
				qp1_run(&net, net.now + QP1_SECOND / 20, ONE_BY_ONE);
		}
	}
	assert_in_range(count_neighbours(), NEIGH_ENTRIES / 4, NEIGH_ENTRIES);
}

static void expect_peer_is_known(void)
{
	assert_true(qp1_knows_peer(&net, false));
	assert_true(qp1_knows_peer(&net, true));
	expect_peer_is_answered(ONE_BY_ONE);
}

/*
 * The same from addresses of one station that answers ARP and ND, so that each one becomes a
 * neighbour: the peer stays known, and so does another station that comes after the flood began.
 */
static void flood_from_one_station_displaces_no_other_neighbour(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0x77};
	uint8_t ip[16];

	(void)state;
	net.answers = true;
	flood_from_present_addresses(1000);
	expect_peer_is_known();
	qp1_on_link(ip, 77);
	memcpy(net.third_mac, mac, 6);
	for (uint32_t i = 0; i < 2; i++) {
		qp1_attack_req(&net, ip, mac, QP1_HEARD, i);
		qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	}
	memcpy(net.third_mac, qp1_macs[2], 6);
	flood_from_present_addresses(10000);
	assert_true(neigh_knows(&net.host.neigh, net.now, ip, 0, mac));
	expect_peer_is_known();
}

/* The same from stations that have a MAC each: the peer, which the host knew before, stays known.
 */
static void flood_from_many_stations_does_not_displace_the_peer(void **state)
{
	(void)state;
	net.answers = net.many_macs = true;
	flood_from_present_addresses(1000);
	expect_peer_is_known();
	flood_from_present_addresses(10000);
	expect_peer_is_known();
}

/* The peer's request comes early in a burst: more frames than QP1 keeps follow it at once. */
static void send_burst(uint32_t many, uint32_t round)
{
	uint8_t ip[16];

	for (uint32_t i = 0; i < BURST; i++) {
		if (i == BURST / 5)
			qp1_peer_connects(&net, round & 1, round & 2 ? QP1_HEARD : QP1_UNHEARD);
		qp1_on_link(ip, 1000 + (many ? i : 0));
		qp1_attack_req(&net, ip, qp1_macs[2], QP1_UNHEARD, i);
	}
}

/*
 * More frames than QP1 can keep arrive before the daemon looks at it. Those of the known peer are
 * not lost among them.
 */
static void burst_of_requests_does_not_drop_the_peers(void **state)
{
	(void)state;
	for (uint32_t many = 0; many < 2; many++) {
		for (uint32_t round = 0; round < 4; round++) {
			send_burst(many, round);
			assert_true(qp1_peer_was_answered(&net, LAP));
		}
		assert_int_not_equal(net.host.gsi.drops[GSI_DROP_FLOOD], 0);
	}
}

/* A burst of one unknown sender costs another unknown sender nothing. */
static void unknown_senders_share_fairly(void **state)
{
	uint8_t flooder[16], newcomer[16];

	(void)state;
	qp1_on_link(flooder, 66);
	qp1_on_link(newcomer, 67);
	for (uint32_t i = 0; i < 1000; i++) {
		if (i == 100)
			qp1_attack_req(&net, newcomer, qp1_macs[2], QP1_HEARD, 0xffff);
		qp1_attack_req(&net, flooder, qp1_macs[2], QP1_UNHEARD, i);
	}
	net.host.accepts = false;
	qp1_run(&net, net.now + QP1_MS, 2000);
	assert_int_equal(net.host.requests[net.host.n_requests - 1]->dst.ip[15], 67);
}

/* A sender with the peer's address, but another MAC, is not taken for the peer. */
static void flood_with_the_peers_address_is_not_the_peer(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < BURST; i++) {
			if (i == BURST / 5)
				qp1_peer_connects(&net, false, round & 1 ? QP1_HEARD : QP1_UNHEARD);
			qp1_attack_req(&net, net.peer.host.addresses[0].ip, qp1_macs[2],
				       i & 1 ? QP1_HEARD : QP1_UNHEARD, i);
		}
		assert_true(qp1_peer_was_answered(&net, LAP));
	}
}

/* Another station claims the peer's address all the time. */
static void false_arp_claims_do_not_redirect_mads(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		for (uint32_t k = 0; k < 5; k++)
			qp1_attack_arp(&net, net.peer.host.addresses[0].ip, k & 1);
		assert_true(qp1_peer_is_answered(&net, false, QP1_HEARD, ONE_BY_ONE));
	}
	/* No MAD for the peer went to that station, only ARP replies. */
	assert_int_equal(net.roce_to_others, 0);
	assert_int_equal(net.host.neigh.counters[NEIGH_COUNT_MOVED], 0);
	assert_int_not_equal(net.host.neigh.counters[NEIGH_COUNT_REFUTED], 0);
}

/* A local user resolves 300 absent addresses, and connects to others that do not answer. */
static void local_user_resolves_many(void **state)
{
	struct cma_id *ids[300], *other;
	struct cma_addr to;
	uint8_t ip[16];

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		qp1_on_link(ip, 1000 + i);
		to = qp1_addr(ip, QP1_HEARD);
		ids[i] = qp1_create(&net.host, QP1_STRANGER);
		assert_int_equal(cma_resolve_addr(ids[i], NULL, &to, 60000), 0);
		if (i % 50 == 49)
			expect_peer_is_answered(ONE_BY_ONE);
	}
	/* Another user reaches the peer, and a station that was never asked before. */
	other = qp1_create(&net.host, QP1_STRANGER + 1);
	to = qp1_addr(net.peer.host.addresses[0].ip, QP1_HEARD);
	memset(net.host.events, 0, sizeof(net.host.events));
	assert_int_equal(cma_resolve_addr(other, NULL, &to, 1000), 0);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_ADDR_RESOLVED], 1);
	cma_destroy_id(other);
	net.answers = true;
	other = qp1_create(&net.host, QP1_STRANGER);
	qp1_on_link(ip, 77);
	to = qp1_addr(ip, QP1_HEARD);
	assert_int_equal(cma_resolve_addr(other, NULL, &to, 1000), 0);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_ADDR_RESOLVED], 2);
	cma_destroy_id(other);
	for (uint32_t i = 0; i < 300; i++)
		cma_destroy_id(ids[i]);
}

/* As in the kernel, a station that answers late, but before the program's timeout, is reached. */
static void resolution_lasts_until_the_timeout_of_the_program(void **state)
{
	struct cma_id *late = qp1_create(&net.host, QP1_STRANGER);
	struct cma_id *never = qp1_create(&net.host, QP1_STRANGER);
	struct cma_addr to;
	uint8_t ip[16];

	(void)state;
	memset(net.host.events, 0, sizeof(net.host.events));
	qp1_on_link(ip, 77);
	to = qp1_addr(ip, QP1_HEARD);
	assert_int_equal(cma_resolve_addr(late, NULL, &to, 10000), 0);
	qp1_run(&net, net.now + 5 * QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_ADDR_ERROR], 0);
	net.answers = true;
	qp1_run(&net, net.now + 4 * QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_ADDR_RESOLVED], 1);
	net.answers = false;
	qp1_on_link(ip, 78);
	to = qp1_addr(ip, QP1_HEARD);
	net.host.cma.now = net.now;
	assert_int_equal(cma_resolve_addr(never, NULL, &to, 10000), 0);
	qp1_run(&net, net.now + 10 * QP1_SECOND - 1, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_ADDR_ERROR], 0);
	qp1_run(&net, net.now + 1, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_ADDR_ERROR], 1);
	cma_destroy_id(late);
	cma_destroy_id(never);
}

/* A silent next hop costs one question a second, whatever the number of IDs. */
static void many_ids_ask_a_silent_next_hop_together(void **state)
{
	static struct cma_id *ids[NEIGH_WAITERS_MAX / 2];
	const uint32_t n = sizeof(ids) / sizeof(ids[0]);
	struct cma_id *more = qp1_create(&net.host, QP1_STRANGER);
	uint32_t asked = net.to_groups;
	struct cma_addr to;
	uint8_t ip[16];

	(void)state;
	qp1_on_link(ip, 77);
	to = qp1_addr(ip, QP1_HEARD);
	memset(net.host.events, 0, sizeof(net.host.events));
	for (uint32_t i = 0; i < n; i++) {
		ids[i] = qp1_create(&net.host, QP1_STRANGER);
		assert_int_equal(cma_resolve_addr(ids[i], NULL, &to, 60000), 0);
	}
	/* They keep their places in the user's quota, also between the questions. */
	for (uint32_t i = 0; i < 40; i++) {
		qp1_run(&net, net.now + QP1_SECOND / 4, ONE_BY_ONE);
		net.host.cma.now = net.now;
		assert_int_equal(cma_resolve_addr(more, NULL, &to, 60000), -ENOSPC);
	}
	assert_int_equal(net.to_groups - asked, 11);
	assert_int_equal(net.host.events[CMA_ADDR_ERROR], 0);
	net.answers = true;
	qp1_run(&net, net.now + 2 * QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_ADDR_RESOLVED], n);
	cma_destroy_id(more);
	for (uint32_t i = 0; i < n; i++)
		cma_destroy_id(ids[i]);
}

/* Of a user's silent next hops the first is displaced, however often it has been asked for. */
static void oldest_silent_next_hop_is_displaced(void **state)
{
	static struct cma_id *ids[NEIGH_INCOMPLETE_MAX / 2 + 1];
	const uint32_t n = sizeof(ids) / sizeof(ids[0]);
	struct cma_addr to;
	uint8_t ip[16];

	(void)state;
	memset(net.host.events, 0, sizeof(net.host.events));
	for (uint32_t i = 0; i < n; i++) {
		if (i >= n - 2)
			qp1_run(&net, net.now + 2 * QP1_SECOND, ONE_BY_ONE);
		qp1_on_link(ip, 1000 + i);
		to = qp1_addr(ip, QP1_HEARD);
		ids[i] = qp1_create(&net.host, QP1_STRANGER);
		assert_int_equal(cma_resolve_addr(ids[i], NULL, &to, 10000), 0);
		qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	}
	qp1_run(&net, net.now + QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_ADDR_ERROR], 1);
	assert_int_equal(ids[0]->state, CMA_ADDR_BOUND);
	for (uint32_t i = 0; i < n; i++)
		cma_destroy_id(ids[i]);
}

/* A refusal has no next hop then: QP1 drops it, and goes on. */
static void request_from_mac_zero_leaves_qp1_at_work(void **state)
{
	static const uint8_t zero[6];
	uint8_t ip[16];

	(void)state;
	net.host.gsi.drops[GSI_DROP_NO_NEIGHBOUR] = 0;
	qp1_on_link(ip, 66);
	qp1_attack_req(&net, ip, zero, QP1_UNHEARD, 1);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	expect_peer_is_answered(ONE_BY_ONE);
	assert_int_equal(net.host.gsi.drops[GSI_DROP_NO_NEIGHBOUR], 1);
}

static void neighbour_with_mac_zero_is_not_resolved(void **state)
{
	struct cma_id *id = qp1_create(&net.host, QP1_STRANGER);
	struct cma_addr to;
	uint8_t ip[16];

	(void)state;
	memset(net.third_mac, 0, sizeof(net.third_mac));
	net.answers = true;
	memset(net.host.events, 0, sizeof(net.host.events));
	qp1_on_link(ip, 66);
	to = qp1_addr(ip, QP1_HEARD);
	assert_int_equal(cma_resolve_addr(id, NULL, &to, 1000), 0);
	qp1_run(&net, net.now + 2 * QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_ADDR_RESOLVED], 0);
	assert_int_equal(net.host.events[CMA_ADDR_ERROR], 1);
	cma_destroy_id(id);
	expect_peer_is_answered(ONE_BY_ONE);
}

/* A sender that answers no ARP cannot get a reply of a program, but refusals: to its own MAC. */
static void reply_of_a_program_needs_address_resolution(void **state)
{
	uint8_t ip[16];

	(void)state;
	qp1_on_link(ip, 66);
	net.to_others = 0;
	qp1_attack_req(&net, ip, qp1_macs[2], QP1_HEARD, 1);
	qp1_run(&net, net.now + 10 * QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.to_others, 0);
	qp1_attack_req(&net, ip, qp1_macs[2], QP1_UNHEARD, 2);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	assert_int_equal(net.to_others, 1);
}

/* MADs for a next hop that is being resolved are sent in order once it is. */
static void mads_wait_for_their_next_hop(void **state)
{
	uint8_t ip[16];

	(void)state;
	net.to_others = 0;
	qp1_on_link(ip, 66);
	for (uint32_t i = 0; i < 100; i++)
		qp1_attack_req(&net, ip, qp1_macs[2], QP1_HEARD, i);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	assert_int_equal(net.to_others, 0);
	assert_int_equal(net.host.gsi.unresolved.n, 100);
	assert_int_equal(net.host.gsi.n_hops, 1);
	net.answers = true;
	qp1_run(&net, net.now + QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.to_others, 100);
	assert_int_equal(net.host.gsi.n_hops, 0);
}

/* No refusal is lost while the uplink's queue is full. */
static void mads_wait_for_room_in_the_switch(void **state)
{
	uint8_t ip[16];

	(void)state;
	net.to_others = 0;
	net.stalled = true;
	qp1_on_link(ip, 66);
	for (uint32_t i = 0; i < 2 * GSI_BURST; i++)
		qp1_attack_req(&net, ip, qp1_macs[2], QP1_UNHEARD, i);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	assert_int_equal(net.to_others, 0);
	net.stalled = false;
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	assert_int_equal(net.to_others, 2 * GSI_BURST);
}

/* --- The end of a process with many connections */

#define CROWD 1024 /* twice as many as QP1 keeps MADs */

/* Connects the peer's next ID to the host. */
static struct cma_id *connect_peer(uint32_t i)
{
	const struct cma_addr to = qp1_addr(net.host.host.addresses[0].ip, QP1_HEARD);
	const struct cma_param param = {.qpn = QP1_QPN + 1 + i};
	struct cma_id *id = qp1_create(&net.peer, 0);
	uint32_t n = net.host.n_requests;

	assert_int_equal(cma_resolve_addr(id, NULL, &to, 1000), 0);
	assert_int_equal(cma_resolve_route(id), 0);
	assert_int_equal(cma_connect(id, &param), 0);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	assert_int_equal(net.host.n_requests, n + 1);
	net.host.cma.now = net.now;
	assert_int_equal(cma_accept(net.host.requests[n], &param), 0);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	net.peer.cma.now = net.now;
	assert_int_equal(cma_accept(id, NULL), 0);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	return id;
}

/* All its peers get a disconnection request at once, and none has to be repeated. */
static void many_disconnections_are_sent_once(void **state)
{
	struct cma_id *ids[CROWD];
	uint32_t before;

	(void)state;
	net.host.accepts = false;
	for (uint32_t i = 0; i < CROWD; i++)
		ids[i] = connect_peer(i);
	before = net.peer.events[CMA_DISCONNECTED];
	net.host.cma.now = net.now;
	qp1_end_requests(&net.host);
	qp1_run(&net, net.now + QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.peer.events[CMA_DISCONNECTED] - before, CROWD);
	assert_int_equal(net.host.gsi.drops[GSI_DROP_NO_ROOM], 0);
	assert_int_equal(cm_counters(net.host.cma.cm)[CM_COUNT_REPEATED], 0);
	net.peer.cma.now = net.now;
	for (uint32_t i = 0; i < CROWD; i++)
		cma_destroy_id(ids[i]);
}

/* The same while the switch takes no frames: its MADs wait. */
static void disconnections_wait_for_room_in_the_switch(void **state)
{
	struct cma_id *ids[CROWD];
	uint32_t before;

	(void)state;
	net.host.accepts = false;
	for (uint32_t i = 0; i < CROWD; i++)
		ids[i] = connect_peer(i);
	before = net.peer.events[CMA_DISCONNECTED];
	net.stalled = true;
	net.host.cma.now = net.now;
	qp1_end_requests(&net.host);
	qp1_run(&net, net.now + QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.peer.events[CMA_DISCONNECTED], before);
	net.stalled = false;
	qp1_run(&net, net.now + QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.peer.events[CMA_DISCONNECTED] - before, CROWD);
	assert_int_equal(net.host.gsi.drops[GSI_DROP_NO_ROOM], 0);
	net.peer.cma.now = net.now;
	for (uint32_t i = 0; i < CROWD; i++)
		cma_destroy_id(ids[i]);
}

/* Two programs of one host disconnect at once: TIMEWAIT, 0.54 s, begins within one tick. */
static void local_connection_ends_in_time(void **state)
{
	const struct cma_addr to = qp1_addr(net.host.host.addresses[0].ip, QP1_HEARD);
	const struct cma_param param = {.qpn = QP1_QPN + 1};
	struct cma_id *id = qp1_create(&net.host, 0);

	(void)state;
	/* No other timer of the connection manager wakes the daemon then. */
	qp1_run(&net, net.now + 100 * QP1_SECOND, ONE_BY_ONE);
	memset(net.host.events, 0, sizeof(net.host.events));
	assert_int_equal(cma_resolve_addr(id, NULL, &to, 1000), 0);
	assert_int_equal(cma_resolve_route(id), 0);
	assert_int_equal(cma_connect(id, &param), 0);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_CONNECT_RESPONSE], 1);
	assert_int_equal(cma_accept(id, NULL), 0);
	qp1_run(&net, net.now + QP1_MS, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_ESTABLISHED], 1);
	assert_int_equal(cma_disconnect(id), 0);
	assert_int_equal(cma_disconnect(net.host.requests[net.host.n_requests - 1]), 0);
	qp1_run(&net, net.now + QP1_SECOND, ONE_BY_ONE);
	assert_int_equal(net.host.events[CMA_DISCONNECTED], 2);
	assert_int_equal(net.host.events[CMA_TIMEWAIT_EXIT], 2);
	cma_destroy_id(id);
}

/*
 * The host loses the address of a connection, and another address gets its GID index. No message of
 * the connection leaves with that address, so the program learns that the peer was not reached.
 */
static void lost_address_is_not_replaced_by_another(void **state)
{
	struct host_address *own = net.host.host.addresses;
	struct cma_id *id;

	(void)state;
	net.host.accepts = false;
	id = connect_peer(0);
	memset(net.host.events, 0, sizeof(net.host.events));
	net.host.gsi.drops[GSI_DROP_NO_ADDRESS] = 0;
	own[0].ip[15]++;
	gsi_host_changed(&net.host.gsi);
	net.host.cma.now = net.now;
	assert_int_equal(cma_disconnect(net.host.requests[net.host.n_requests - 1]), 0);
	qp1_run(&net, net.now + 100 * QP1_SECOND, ONE_BY_ONE);
	assert_int_not_equal(net.host.gsi.drops[GSI_DROP_NO_ADDRESS], 0);
	assert_int_equal(net.host.events[CMA_DISCONNECTED], 1);
	assert_int_equal(net.host.disconnect_status, -ETIMEDOUT);
	own[0].ip[15]--;
	gsi_host_changed(&net.host.gsi);
	net.peer.cma.now = net.now;
	cma_destroy_id(id);
}

static void set_pkey(struct qp1_host *h, uint32_t index, uint16_t pkey)
{
	h->host.pkeys[index] = pkey;
	h->host.n_pkeys = index + 1;
	assert_int_equal(urxe_pkey_set(h->gsi.dev, index, pkey), 0);
}

/* A limited member answers a full member, and its program uses that partition. */
static void request_of_a_full_member_reaches_a_limited_member(void **state)
{
	struct ib_uverbs_qp_attr attr;
	uint32_t n = net.peer.events[CMA_CONNECT_RESPONSE];

	(void)state;
	set_pkey(&net.peer, 0, 0x8001);
	set_pkey(&net.host, 1, 0x0001);
	qp1_peer_connects(&net, false, QP1_HEARD);
	assert_true(qp1_peer_was_answered(&net, ONE_BY_ONE));
	assert_int_equal(net.peer.events[CMA_CONNECT_RESPONSE], n + 1);
	assert_int_equal(ucma_fill_qp_attr(&attr, net.host.requests[net.host.n_requests - 1], 1),
			 0);
	assert_int_equal(attr.pkey_index, 1);
}

/* The P_Key in a request may be another one than that of its packet. */
static void request_in_a_foreign_partition_is_rejected(void **state)
{
	uint32_t n = net.host.n_requests;

	(void)state;
	net.peer.host.pkeys[0] = 0x8003;
	assert_true(qp1_peer_is_answered(&net, false, QP1_HEARD, ONE_BY_ONE));
	assert_int_equal(net.host.n_requests, n);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flood_from_an_absent_address_causes_no_arp),
		TEST(flood_from_many_absent_addresses_leaves_neighbour_entries),
		TEST(flood_from_one_station_displaces_no_other_neighbour),
		TEST(flood_from_many_stations_does_not_displace_the_peer),
		TEST(burst_of_requests_does_not_drop_the_peers),
		TEST(unknown_senders_share_fairly),
		TEST(flood_with_the_peers_address_is_not_the_peer),
		TEST(false_arp_claims_do_not_redirect_mads),
		TEST(local_user_resolves_many),
		TEST(resolution_lasts_until_the_timeout_of_the_program),
		TEST(many_ids_ask_a_silent_next_hop_together),
		TEST(oldest_silent_next_hop_is_displaced),
		TEST(request_from_mac_zero_leaves_qp1_at_work),
		TEST(neighbour_with_mac_zero_is_not_resolved),
		TEST(reply_of_a_program_needs_address_resolution),
		TEST(mads_wait_for_their_next_hop),
		TEST(mads_wait_for_room_in_the_switch),
		TEST(many_disconnections_are_sent_once),
		TEST(disconnections_wait_for_room_in_the_switch),
		TEST(local_connection_ends_in_time),
		TEST(lost_address_is_not_replaced_by_another),
		TEST(request_of_a_full_member_reaches_a_limited_member),
		TEST(request_in_a_foreign_partition_is_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
