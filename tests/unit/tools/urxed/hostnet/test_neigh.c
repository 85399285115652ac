/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address resolution by ARP and ND: requests, answers, claims of other stations, and pinned
 * addresses. test_neigh_table.c tests which entries the table keeps.
 */
#include "neigh_world.h"

#include "urxed/hostnet/route.h"

static int resolve(uint64_t now, const char *to, struct neigh_waiter *waiter)
{
	return neigh_resolve(&w.neigh, now, 0, 1, ip(to), waiter, &w.hop);
}

static void arp_from_peer(bool request, const char *sip, const char *tip)
{
	struct arp a = {.request = request};
	uint8_t frame[ARP_FRAME_LEN];

	memcpy(a.smac, peer_mac, 6);
	memcpy(a.sip, ip(sip), 16);
	memcpy(a.tip, ip(tip), 16);
	arp_build(frame, &a, our_mac);
	neigh_input(&w.neigh, T0, 0, frame, sizeof(frame));
}

/* Insert a VLAN tag into a frame, and remove it. */
static uint32_t put_tag(uint8_t *frame, uint32_t len, uint16_t tci)
{
	memmove(frame + 16, frame + 12, len - 12);
	ether_put16(frame + 12, ETHERTYPE_ID_VLAN);
	ether_put16(frame + 14, tci);
	return len + 4;
}

static uint32_t take_tag(uint8_t *frame, uint32_t len, uint16_t tci)
{
	assert_int_equal(ether_get16(frame + 12), ETHERTYPE_ID_VLAN);
	assert_int_equal(ether_get16(frame + 14), tci);
	memmove(frame + 12, frame + 16, len - 16);
	return len - 4;
}

static void arp_by_vlan(uint16_t tci, bool request, const char *sip, const char *tip)
{
	struct arp a = {.request = request};
	uint8_t frame[ARP_FRAME_LEN + 4];

	memcpy(a.smac, peer_mac, 6);
	memcpy(a.sip, ip(sip), 16);
	memcpy(a.tip, ip(tip), 16);
	arp_build(frame, &a, our_mac);
	neigh_input(&w.neigh, T0, 0, frame, put_tag(frame, ARP_FRAME_LEN, tci));
}

/* An address in a VLAN sends and answers ARP in that VLAN only. */
static void arp_stays_in_its_vlan(void **state)
{
	struct neigh_waiter waiter, other;
	struct arp a;

	(void)state;
	assert_int_equal(host_add_text(&w.host, "198.51.100.1/24@100", 0), 0);
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 3, ip("198.51.100.9"), &waiter, &w.hop),
			 -EINPROGRESS);
	assert_int_equal(w.sent, 1);
	assert_true(arp_parse(&a, w.frame, take_tag(w.frame, w.len, 100)));
	assert_true(a.request);
	/* Addresses outside the VLAN have no route to it. */
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 1, ip("198.51.100.8"), &other, &w.hop),
			 -ENETUNREACH);
	arp_from_peer(false, "198.51.100.9", "198.51.100.1");
	arp_by_vlan(101, false, "198.51.100.9", "198.51.100.1");
	assert_int_equal(w.answers, 0);
	arp_by_vlan(0xe064, false, "198.51.100.9", "198.51.100.1"); /* 100, with a priority */
	assert_int_equal(w.answers, 1);
	assert_int_equal(w.status, 0);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
	/* Requests for the address are answered in its VLAN only. */
	arp_from_peer(true, "198.51.100.9", "198.51.100.1");
	arp_by_vlan(101, true, "198.51.100.9", "198.51.100.1");
	arp_by_vlan(100, true, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.sent, 1);
	arp_by_vlan(100, true, "198.51.100.9", "198.51.100.1");
	assert_int_equal(w.sent, 2);
	assert_true(arp_parse(&a, w.frame, take_tag(w.frame, w.len, 100)));
	assert_false(a.request);
	/* A priority tag (VLAN ID 0) is no VLAN. */
	arp_by_vlan(0xe000, true, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.sent, 3);
	assert_int_equal(ether_get16(w.frame + 12), ETHERTYPE_ID_ARP);
}

static void nd_stays_in_its_vlan(void **state)
{
	uint8_t frame[ND_FRAME_LEN + 4];
	struct nd m = {.solicitation = true};

	(void)state;
	assert_int_equal(host_add_text(&w.host, "2001:db8:1::1/64@7", 0), 0);
	memcpy(m.smac, peer_mac, 6);
	memcpy(m.sip, ip("2001:db8:1::9"), 16);
	memcpy(m.target, ip("2001:db8:1::1"), 16);
	nd_build_solicitation(frame, &m);
	neigh_input(&w.neigh, T0, 0, frame, ND_FRAME_LEN);
	assert_int_equal(w.sent, 0);
	neigh_input(&w.neigh, T0, 0, frame, put_tag(frame, ND_FRAME_LEN, 7));
	assert_int_equal(w.sent, 1);
	assert_true(nd_parse(&m, w.frame, take_tag(w.frame, w.len, 7)));
	assert_false(m.solicitation);
	assert_memory_equal(m.smac, our_mac, 6);
}

static void advertise_link_local(const uint8_t *mac, int uplink)
{
	struct nd m = {.solicitation = true};
	uint8_t frame[ND_FRAME_LEN];

	memcpy(m.smac, our_mac, 6);
	memcpy(m.sip, w.host.addresses[0].ip, 16);
	memcpy(m.target, ip("fe80::2"), 16);
	nd_build_advertisement(frame, &m, mac);
	neigh_input(&w.neigh, T0, uplink, frame, sizeof(frame));
}

/* Two networks may have the same link-local address: the source address tells them apart. */
static void link_local_address_is_resolved_on_each_uplink(void **state)
{
	struct neigh_waiter first, second;

	(void)state;
	assert_int_equal(host_add_text(&w.host, "fe80::1/64", 1), 0);
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 0, ip("fe80::2"), &first, &w.hop),
			 -EINPROGRESS);
	advertise_link_local(peer_mac, 0);
	assert_int_equal(w.answers, 1);
	w.uplink = 1;
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 3, ip("fe80::2"), &second, &w.hop),
			 -EINPROGRESS);
	assert_int_equal(w.sent, 2);
	advertise_link_local(peer_mac, 0);
	assert_int_equal(w.answers, 1);
	advertise_link_local(thief_mac, 1);
	assert_int_equal(w.answers, 2);
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 3, ip("fe80::2"), &second, &w.hop), 0);
	assert_memory_equal(w.hop.mac, thief_mac, 6);
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 0, ip("fe80::2"), &first, &w.hop), 0);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
	assert_true(neigh_knows(&w.neigh, T0, ip("fe80::2"), 0, peer_mac));
	assert_true(neigh_knows(&w.neigh, T0, ip("fe80::2"), 0, thief_mac));
}

static void own_multicast_and_unroutable_addresses_need_no_request(void **state)
{
	struct neigh_waiter waiter;

	(void)state;
	assert_int_equal(resolve(T0, "192.0.2.1", &waiter), 0);
	assert_memory_equal(w.hop.mac, our_mac, 6);
	assert_int_equal(resolve(T0, "239.1.2.3", &waiter), 0);
	assert_memory_equal(w.hop.mac, ((uint8_t[]){1, 0, 0x5e, 1, 2, 3}), 6);
	assert_int_equal(resolve(T0, "ff0e::1:2", &waiter), 0);
	assert_memory_equal(w.hop.mac, ((uint8_t[]){0x33, 0x33, 0, 1, 0, 2}), 6);
	assert_int_equal(resolve(T0, "198.51.100.1", &waiter), -ENETUNREACH);
	assert_int_equal(resolve(T0, "2001:db8:1::1", &waiter), -ENETUNREACH);
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 3, ip("192.0.2.9"), &waiter, &w.hop),
			 -EINVAL);
	assert_int_equal(
		neigh_resolve(&w.neigh, T0, 0, VNIC_ATTACH_GIDS, ip("192.0.2.9"), &waiter, &w.hop),
		-EINVAL);
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, HOST_ADDRESSES + 1, ip("192.0.2.1"),
				       &waiter, &w.hop),
			 0);
	assert_int_equal(w.sent, 0);
}

static void arp_asks_and_learns(void **state)
{
	struct neigh_waiter waiter;
	struct arp a;

	(void)state;
	assert_int_equal(resolve(T0, "192.0.2.9", &waiter), -EINPROGRESS);
	assert_int_equal(w.len, ARP_FRAME_LEN);
	assert_true(arp_parse(&a, w.frame, w.len));
	assert_true(a.request);
	assert_memory_equal(w.frame, "\xff\xff\xff\xff\xff\xff", 6);
	assert_memory_equal(a.smac, our_mac, 6);
	assert_memory_equal(a.sip, ip("192.0.2.1"), 16);
	assert_memory_equal(a.tip, ip("192.0.2.9"), 16);

	arp_from_peer(false, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.answers, 1);
	assert_int_equal(w.status, 0);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
	/* The entry is valid for a minute. */
	assert_int_equal(resolve(T0 + SECOND, "192.0.2.9", &waiter), 0);
	assert_int_equal(resolve(T0 + 61 * SECOND, "192.0.2.9", &waiter), -EINPROGRESS);
	assert_int_equal(w.sent, 2);
}

/* With VMs the daemon sends ARP itself even from a kernel address: VMs are not behind the kernel.
 */
static void vm_is_resolved_without_the_kernel(void **state)
{
	struct neigh_waiter waiter;
	struct route kernel = {0};

	(void)state;
	w.neigh.route = &kernel;
	w.neigh.vm_mask = 2;
	w.host.addresses[1].kernel = true;
	assert_int_equal(resolve(T0, "192.0.2.9", &waiter), -EINPROGRESS);
	assert_int_equal(w.sent, 1);
	arp_from_peer(false, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.answers, 1);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
}

static void nd_asks_and_learns(void **state)
{
	struct nd question, reply = {.solicitation = true};
	struct neigh_waiter waiter;
	uint8_t frame[ND_FRAME_LEN];

	(void)state;
	assert_int_equal(resolve(T0, "2001:db8::9", &waiter), -EINPROGRESS);
	assert_true(nd_parse(&question, w.frame, w.len));
	assert_true(question.solicitation);
	assert_memory_equal(w.frame, "\x33\x33\xff\x00\x00\x09", 6);
	assert_memory_equal(question.smac, our_mac, 6);
	assert_memory_equal(question.sip, ip("2001:db8::1"), 16);
	assert_memory_equal(question.target, ip("2001:db8::9"), 16);

	/* The peer's advertisement, built by nd_frame.c. */
	reply = question;
	nd_build_advertisement(frame, &reply, peer_mac);
	neigh_input(&w.neigh, T0, 0, frame, sizeof(frame));
	assert_int_equal(w.answers, 1);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
}

static void gives_up_after_three_tries(void **state)
{
	struct neigh_waiter a, b;

	(void)state;
	assert_int_equal(resolve(T0, "192.0.2.9", &a), -EINPROGRESS);
	assert_int_equal(resolve(T0 + 1, "192.0.2.9", &b), -EINPROGRESS);
	assert_int_equal(w.sent, 1);
	assert_int_equal(neigh_tick(&w.neigh, T0 + 1), T0 + SECOND);
	neigh_tick(&w.neigh, T0 + SECOND);
	neigh_tick(&w.neigh, T0 + 2 * SECOND);
	assert_int_equal(w.sent, 3);
	assert_int_equal(w.answers, 0);
	assert_true(neigh_tick(&w.neigh, T0 + 3 * SECOND) == UINT64_MAX);
	assert_int_equal(w.answers, 2);
	assert_int_equal(w.status, -EHOSTUNREACH);
	assert_int_equal(w.sent, 3);
}

static void persistent_waiter_outlasts_silence(void **state)
{
	struct neigh_waiter persistent, other;

	(void)state;
	assert_int_equal(neigh_resolve_persistently(&w.neigh, T0, 0, 1, ip("192.0.2.9"),
						    &persistent, &w.hop),
			 -EINPROGRESS);
	for (uint64_t i = 1; i <= 10; i++)
		assert_int_equal(neigh_tick(&w.neigh, T0 + i * SECOND), T0 + (i + 1) * SECOND);
	assert_int_equal(w.sent, 11);
	assert_int_equal(w.answers, 0);
	/* Another waiter gets all tries, and then fails alone. */
	assert_int_equal(resolve(T0 + 10 * SECOND + 1, "192.0.2.9", &other), -EINPROGRESS);
	for (uint64_t i = 11; i <= 13; i++)
		neigh_tick(&w.neigh, T0 + i * SECOND);
	assert_int_equal(w.answers, 0);
	neigh_tick(&w.neigh, T0 + 14 * SECOND);
	assert_int_equal(w.answers, 1);
	assert_int_equal(w.status, -EHOSTUNREACH);
	assert_int_equal(w.sent, 15);
	arp_from_peer(false, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.answers, 2);
	assert_int_equal(w.status, 0);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
}

static void entry_ends_after_the_cancel_of_its_persistent_waiter(void **state)
{
	struct neigh_waiter waiter;

	(void)state;
	assert_int_equal(
		neigh_resolve_persistently(&w.neigh, T0, 0, 1, ip("192.0.2.9"), &waiter, &w.hop),
		-EINPROGRESS);
	for (uint64_t i = 1; i <= 3; i++)
		neigh_tick(&w.neigh, T0 + i * SECOND);
	neigh_cancel(&w.neigh, &waiter);
	for (uint64_t i = 4; i <= 6; i++)
		neigh_tick(&w.neigh, T0 + i * SECOND);
	assert_int_equal(w.neigh.table.n_incomplete, 0);
	assert_int_equal(w.answers, 0);
}

static void cancelled_waiter_gets_no_answer(void **state)
{
	struct neigh_waiter a, b;

	(void)state;
	resolve(T0, "192.0.2.9", &a);
	resolve(T0, "192.0.2.9", &b);
	neigh_cancel(&w.neigh, &a);
	neigh_cancel(&w.neigh, &a);
	arp_from_peer(false, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.answers, 1);
}

static void arp_is_answered_for_own_addresses_only(void **state)
{
	struct arp a;

	(void)state;
	arp_from_peer(true, "192.0.2.9", "192.0.2.7");
	assert_int_equal(w.sent, 0);
	arp_from_peer(true, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.sent, 1);
	assert_true(arp_parse(&a, w.frame, w.len));
	assert_false(a.request);
	assert_memory_equal(w.frame, peer_mac, 6);
	assert_memory_equal(a.smac, our_mac, 6);
	assert_memory_equal(a.sip, ip("192.0.2.1"), 16);
	/* The kernel answers for its own addresses. */
	w.host.addresses[1].kernel = true;
	arp_from_peer(true, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.sent, 1);
}

static void solicit(const char *from, const char *target)
{
	struct nd m = {.solicitation = true};
	uint8_t frame[ND_FRAME_LEN];

	memcpy(m.smac, peer_mac, 6);
	memcpy(m.sip, ip(from), 16);
	memcpy(m.target, ip(target), 16);
	nd_build_solicitation(frame, &m);
	neigh_input(&w.neigh, T0, 0, frame, sizeof(frame));
}

static void answers_solicitations(void **state)
{
	uint8_t frame[ND_FRAME_LEN];
	struct nd m;

	(void)state;
	solicit("2001:db8::9", "2001:db8::7");
	assert_int_equal(w.sent, 0);
	solicit("2001:db8::9", "2001:db8::1");
	assert_int_equal(w.sent, 1);
	assert_true(nd_parse(&m, w.frame, w.len));
	assert_false(m.solicitation);
	assert_memory_equal(w.frame, peer_mac, 6);
	assert_memory_equal(m.smac, our_mac, 6);
	assert_memory_equal(m.target, ip("2001:db8::1"), 16);
	/* Duplicate address detection: to all nodes. */
	neigh_input(&w.neigh, T0, 0, frame,
		    put_nd(frame, &(struct hand_made_nd){.type = 135,
							 .from = "::",
							 .to = "ff02::1:ff00:1",
							 .target = "2001:db8::1"}));
	assert_int_equal(w.sent, 2);
	assert_memory_equal(w.frame, "\x33\x33\x00\x00\x00\x01", 6);
}

static void unsolicited_arp_fills_no_table(void **state)
{
	(void)state;
	arp_from_peer(false, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.neigh.table.entries[0].state, NEIGH_FREE);
}

static void damaged_nd_is_ignored(void **state)
{
	struct nd m = {.solicitation = true}, out;
	uint8_t frame[ND_FRAME_LEN];
	uint32_t i;

	(void)state;
	memcpy(m.smac, peer_mac, 6);
	memcpy(m.sip, ip("2001:db8::9"), 16);
	memcpy(m.target, ip("2001:db8::1"), 16);
	nd_build_solicitation(frame, &m);
	for (i = 0; i < sizeof(frame); i++)
		assert_false(nd_parse(&out, frame, i));
	/* The checksum covers every byte from the addresses on. */
	for (i = ETHER_HDR_LEN + 8; i < sizeof(frame); i++) {
		frame[i] ^= 0x10;
		assert_false(nd_parse(&out, frame, sizeof(frame)));
		frame[i] ^= 0x10;
	}
	frame[ETHER_HDR_LEN + 7] = 254; /* hop limit below 255: forwarded by a router */
	assert_false(nd_parse(&out, frame, sizeof(frame)));
}

static void cut_arp_is_ignored(void **state)
{
	struct arp a = {.request = true}, out;
	uint8_t frame[ARP_FRAME_LEN];
	uint32_t i;

	(void)state;
	arp_build(frame, &a, peer_mac);
	for (i = 0; i < sizeof(frame); i++)
		assert_false(arp_parse(&out, frame, i));
	assert_true(arp_parse(&out, frame, sizeof(frame)));
	frame[ETHER_HDR_LEN + 7] = 3; /* RARP */
	assert_false(arp_parse(&out, frame, sizeof(frame)));
}

/* --- Stations that claim others' addresses */

static void arp_from(uint64_t now, int uplink, const uint8_t *mac, bool request)
{
	struct arp a = {.request = request};
	uint8_t frame[ARP_FRAME_LEN];

	memcpy(a.smac, mac, 6);
	memcpy(a.sip, ip("192.0.2.9"), 16);
	memcpy(a.tip, ip("192.0.2.1"), 16);
	arp_build(frame, &a, our_mac);
	neigh_input(&w.neigh, now, uplink, frame, sizeof(frame));
}

static void learn_peer(void)
{
	struct neigh_waiter waiter;

	assert_int_equal(resolve(T0, "192.0.2.9", &waiter), -EINPROGRESS);
	arp_from(T0, 0, peer_mac, false);
	w.answers = w.sent = 0;
}

static void expect_probe_of_peer(void)
{
	struct arp a;

	assert_true(arp_parse(&a, w.frame, w.len));
	assert_true(a.request);
	assert_memory_equal(w.frame, peer_mac, 6);
	assert_memory_equal(a.tip, ip("192.0.2.9"), 16);
}

/* A known MAC stays if its station answers, however often another one claims the address. */
static void claim_is_refuted_by_the_known_station(void **state)
{
	struct neigh_waiter waiter;
	uint64_t now = T0;

	(void)state;
	learn_peer();
	for (int round = 0; round < 5; round++) {
		uint32_t sent = w.sent, answers = w.answers;

		now += 2 * NEIGH_QUIET_NS;
		arp_from(now, 0, thief_mac, round & 1);
		/* The reply to the thief's request for our address, and the probe. */
		assert_int_equal(w.sent, sent + 1 + (round & 1));
		if (!(round & 1))
			expect_probe_of_peer();
		/* Nobody gets an answer before it is decided. */
		assert_int_equal(resolve(now, "192.0.2.9", &waiter), -EINPROGRESS);
		arp_from(now + 1, 0, thief_mac, false);
		assert_int_equal(w.answers, answers);
		arp_from(now + 2, 0, peer_mac, false);
		assert_int_equal(w.answers, answers + 1);
		assert_memory_equal(w.hop.mac, peer_mac, 6);
		/* More claims cause no more probes for a while. */
		sent = w.sent;
		for (int i = 0; i < 100; i++)
			arp_from(now + 3, 0, thief_mac, false);
		assert_int_equal(w.sent, sent);
		assert_int_equal(resolve(now + 4, "192.0.2.9", &waiter), 0);
		assert_memory_equal(w.hop.mac, peer_mac, 6);
	}
	assert_int_equal(w.neigh.counters[NEIGH_COUNT_REFUTED], 5);
}

/* After a failover the known MAC is silent, and the new one counts after 0.3 s. */
static void move_is_taken_when_the_known_station_is_silent(void **state)
{
	struct neigh_waiter waiter;
	uint64_t now = T0 + SECOND;

	(void)state;
	learn_peer();
	arp_from(now, 0, thief_mac, true);
	assert_int_equal(resolve(now, "192.0.2.9", &waiter), -EINPROGRESS);
	for (int i = 1; i < NEIGH_PROBES; i++)
		assert_int_equal(neigh_tick(&w.neigh, now + (uint64_t)i * NEIGH_PROBE_NS),
				 now + (uint64_t)(i + 1) * NEIGH_PROBE_NS);
	assert_int_equal(w.answers, 0);
	expect_probe_of_peer();
	neigh_tick(&w.neigh, now + NEIGH_PROBES * NEIGH_PROBE_NS);
	assert_int_equal(w.answers, 1);
	assert_int_equal(w.status, 0);
	assert_memory_equal(w.hop.mac, thief_mac, 6);
	assert_int_equal(w.neigh.counters[NEIGH_COUNT_MOVED], 1);
	assert_int_equal(resolve(now + SECOND, "192.0.2.9", &waiter), 0);
}

/* When an entry is a minute old, the station that has it is asked first, and only then all. */
static void old_entry_is_confirmed_by_its_station(void **state)
{
	const uint64_t later = T0 + NEIGH_LIFE_NS;
	struct neigh_waiter waiter;
	struct arp a;

	(void)state;
	learn_peer();
	assert_int_equal(resolve(later, "192.0.2.9", &waiter), -EINPROGRESS);
	expect_probe_of_peer();
	/* Another station answers first. */
	arp_from(later + 1, 0, thief_mac, false);
	assert_int_equal(w.answers, 0);
	arp_from(later + 2, 0, peer_mac, false);
	assert_int_equal(w.answers, 1);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
	/* The station has gone, and nobody claims the address yet. */
	assert_int_equal(resolve(later + NEIGH_LIFE_NS + 2, "192.0.2.9", &waiter), -EINPROGRESS);
	for (int i = 1; i <= NEIGH_PROBES; i++)
		neigh_tick(&w.neigh, later + NEIGH_LIFE_NS + 2 + (uint64_t)i * NEIGH_PROBE_NS);
	assert_true(arp_parse(&a, w.frame, w.len));
	assert_memory_equal(w.frame, "\xff\xff\xff\xff\xff\xff", 6);
	arp_from(later + NEIGH_LIFE_NS + SECOND, 0, thief_mac, false);
	assert_int_equal(w.answers, 2);
	assert_memory_equal(w.hop.mac, thief_mac, 6);
}

/* As while the peer's daemon is restarted: its MAC stays valid for a minute without a probe. */
static void silent_station_keeps_its_mac_for_a_minute(void **state)
{
	struct neigh_waiter waiter;

	(void)state;
	learn_peer();
	w.sent = 0;
	for (uint64_t age = 6; age < 60; age += 9) {
		assert_int_equal(resolve(T0 + age * SECOND, "192.0.2.9", &waiter), 0);
		assert_memory_equal(w.hop.mac, peer_mac, 6);
	}
	assert_int_equal(w.sent, 0);
}

/* An answer counts from the uplink that was asked, and from virtual machines, which hear it too. */
static void answer_from_another_uplink_does_not_count(void **state)
{
	struct neigh_waiter waiter;

	(void)state;
	w.neigh.vm_mask = 4;
	assert_int_equal(resolve(T0, "192.0.2.9", &waiter), -EINPROGRESS);
	arp_from(T0, 1, thief_mac, false);
	assert_int_equal(w.answers, 0);
	arp_from(T0, 2, peer_mac, false);
	assert_int_equal(w.answers, 1);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
	/* A known MAC is not contested from there, either. */
	w.sent = 0;
	arp_from(T0 + 1, 1, thief_mac, false);
	assert_int_equal(w.sent, 0);
}

/* Without a question, only frames from the neighbour's own port keep an entry fresh. */
static void known_mac_from_another_port_confirms_nothing(void **state)
{
	struct neigh_waiter waiter;

	(void)state;
	w.neigh.vm_mask = 2;
	learn_peer();
	arp_from(T0 + NEIGH_LIFE_NS - 1, 1, peer_mac, false);
	assert_int_equal(resolve(T0 + NEIGH_LIFE_NS, "192.0.2.9", &waiter), -EINPROGRESS);
	expect_probe_of_peer();
	arp_from(T0 + NEIGH_LIFE_NS, 0, our_mac, false);
	assert_int_equal(w.answers, 0);
	arp_from(T0 + NEIGH_LIFE_NS + 1, 0, peer_mac, false);
	assert_int_equal(w.answers, 1);
	arp_from(T0 + 2 * NEIGH_LIFE_NS, 0, peer_mac, false);
	assert_int_equal(resolve(T0 + 3 * NEIGH_LIFE_NS - 1, "192.0.2.9", &waiter), 0);
}

/* Of two claims while the known station is probed, one from that station's port counts. */
static void claim_from_the_port_of_the_station_is_preferred(void **state)
{
	static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 0x77};
	struct neigh_waiter waiter;

	(void)state;
	w.neigh.vm_mask = 2;
	learn_peer();
	arp_from(T0 + 1, 1, thief_mac, false);
	arp_from(T0 + 2, 0, other_mac, false);
	arp_from(T0 + 3, 1, thief_mac, false);
	for (int i = 1; i <= NEIGH_PROBES; i++)
		neigh_tick(&w.neigh, T0 + 1 + (uint64_t)i * NEIGH_PROBE_NS);
	assert_int_equal(resolve(T0 + SECOND, "192.0.2.9", &waiter), 0);
	assert_memory_equal(w.hop.mac, other_mac, 6);
}

static void nd_claims_are_refuted_too(void **state)
{
	struct neigh_waiter waiter;
	struct nd m;

	(void)state;
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 2, address_of(9), &waiter, &w.hop),
			 -EINPROGRESS);
	advertise(T0, 9, peer_mac, 0);
	advertise(T0 + 1, 9, thief_mac, 0);
	assert_true(nd_parse(&m, w.frame, w.len));
	assert_true(m.solicitation);
	assert_memory_equal(w.frame, peer_mac, 6);
	assert_memory_equal(w.frame + ETHER_HDR_LEN + 24, address_of(9), 16);
	advertise(T0 + 2, 9, peer_mac, 0);
	assert_int_equal(neigh_resolve(&w.neigh, T0 + 3, 0, 2, address_of(9), &waiter, &w.hop), 0);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
}

/* As Linux answers a unicast solicitation: without a MAC (RFC 4861, 7.2.4). */
static void advertise_without_mac(uint64_t now, uint8_t flags, const uint8_t *mac)
{
	char peer[INET6_ADDRSTRLEN];
	uint8_t frame[ND_FRAME_LEN];
	uint32_t len;

	inet_ntop(AF_INET6, address_of(9), peer, sizeof(peer));
	len = put_nd(frame, &(struct hand_made_nd){.type = 136,
						   .flags = flags,
						   .from = peer,
						   .to = "2001:db8::1",
						   .target = peer});
	memcpy(frame + 6, mac, 6);
	neigh_input(&w.neigh, now, 0, frame, len);
}

static void advertisement_without_a_mac_refutes_claims(void **state)
{
	const uint8_t solicited = 0x40, override = 0x20;
	struct neigh_waiter waiter;

	(void)state;
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 2, address_of(9), &waiter, &w.hop),
			 -EINPROGRESS);
	/* It resolves no address. */
	advertise_without_mac(T0, solicited, thief_mac);
	assert_int_equal(w.answers, 0);
	advertise(T0, 9, peer_mac, 0);
	assert_int_equal(w.answers, 1);
	/* It contests no MAC. */
	w.sent = 0;
	advertise_without_mac(T0 + 1, solicited | override, thief_mac);
	assert_int_equal(w.sent, 0);
	advertise(T0 + 1, 9, thief_mac, 0);
	assert_int_equal(w.sent, 1);
	/* Only the known station confirms its MAC, and only when it was asked. */
	advertise_without_mac(T0 + 2, solicited, thief_mac);
	advertise_without_mac(T0 + 2, 0, peer_mac);
	assert_int_equal(w.neigh.counters[NEIGH_COUNT_REFUTED], 0);
	advertise_without_mac(T0 + 2, solicited, peer_mac);
	assert_int_equal(w.neigh.counters[NEIGH_COUNT_REFUTED], 1);
	assert_int_equal(neigh_resolve(&w.neigh, T0 + 3, 0, 2, address_of(9), &waiter, &w.hop), 0);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
}

/* Without the override flag an advertisement replaces no known MAC (RFC 4861, 7.2.5). */
static void weak_advertisement_claims_nothing(void **state)
{
	struct nd m = {.solicitation = true};
	struct neigh_waiter waiter;
	uint8_t frame[ND_FRAME_LEN];
	uint8_t *icmp = frame + ETHER_HDR_LEN + IPV6_HDR_LEN;
	uint32_t sum;

	(void)state;
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 2, address_of(9), &waiter, &w.hop),
			 -EINPROGRESS);
	advertise(T0, 9, peer_mac, 0);
	memcpy(m.smac, our_mac, 6);
	memcpy(m.sip, ip("2001:db8::1"), 16);
	memcpy(m.target, address_of(9), 16);
	nd_build_advertisement(frame, &m, thief_mac);
	icmp[4] &= 0xdf;
	/* The checksum grows by what the message shrinks. */
	sum = ether_get16(icmp + 2) + 0x2000u;
	ether_put16(icmp + 2, (uint16_t)((sum & 0xffff) + (sum >> 16)));
	assert_true(nd_parse(&m, frame, sizeof(frame)));
	assert_false(m.override);
	w.sent = 0;
	neigh_input(&w.neigh, T0 + 1, 0, frame, sizeof(frame));
	assert_int_equal(w.sent, 0);
}

/* An entry of the peer, which the kernel resolves. */
static struct neigh_entry *ask_kernel(void)
{
	const struct neigh_key key = {.ip = {[10] = 0xff, 0xff, 192, 0, 2, 9},
				      .resolver = NEIGH_BY_KERNEL};
	struct neigh_entry *e = &w.neigh.table.entries[7];

	w.neigh.now = T0;
	neigh_table_fill(&w.neigh.table, e, &key, 0, NEIGH_INCOMPLETE);
	e->from = w.host.addresses[1];
	return e;
}

/* The kernel says that the MAC has changed: the station that had the address is asked first. */
static void move_that_the_kernel_reports_is_checked(void **state)
{
	struct neigh_entry *e = ask_kernel();

	(void)state;
	neigh_kernel_answer(&w.neigh, e, peer_mac, false);
	assert_int_equal(e->state, NEIGH_REACHABLE);
	assert_int_equal(w.sent, 0);
	neigh_kernel_answer(&w.neigh, e, thief_mac, false);
	assert_int_equal(e->state, NEIGH_PROBING);
	expect_probe_of_peer();
	arp_from(T0 + 1, 0, thief_mac, false);
	assert_int_equal(e->state, NEIGH_PROBING);
	arp_from(T0 + 2, 0, peer_mac, false);
	assert_int_equal(e->state, NEIGH_REACHABLE);
	assert_memory_equal(e->mac, peer_mac, 6);
	/* It is silent the next time. */
	neigh_tick(&w.neigh, T0 + 2 * NEIGH_QUIET_NS);
	neigh_kernel_answer(&w.neigh, e, thief_mac, false);
	for (int i = 1; i <= NEIGH_PROBES; i++)
		neigh_tick(&w.neigh, T0 + 2 * NEIGH_QUIET_NS + (uint64_t)i * NEIGH_PROBE_NS);
	assert_int_equal(e->state, NEIGH_REACHABLE);
	assert_memory_equal(e->mac, thief_mac, 6);
}

/* An administrator has set it, though the station that was known before still answers. */
static void permanent_mac_of_the_kernel_needs_no_check(void **state)
{
	struct neigh_entry *e = ask_kernel();

	(void)state;
	for (int probing = 0; probing <= 1; probing++) {
		neigh_kernel_answer(&w.neigh, e, peer_mac, true);
		assert_memory_equal(e->mac, peer_mac, 6);
		if (probing)
			neigh_kernel_answer(&w.neigh, e, thief_mac, false);
		w.sent = 0;
		neigh_kernel_answer(&w.neigh, e, thief_mac, true);
		assert_int_equal(e->state, NEIGH_REACHABLE);
		assert_memory_equal(e->mac, thief_mac, 6);
		assert_int_equal(w.sent, 0);
	}
}

/*
 * Programs keep resolving an address whose machine has left: the kernel's entry may be old, so only
 * the station's own answer shows that it is still there.
 */
static void kernel_entry_does_not_stand_for_its_station(void **state)
{
	struct neigh_entry *e = ask_kernel();
	uint64_t now = T0;

	(void)state;
	for (int left = 0; left <= 1; left++) {
		neigh_kernel_answer(&w.neigh, e, peer_mac, false);
		assert_true(neigh_probe_station(&w.neigh, now, 1, 0, peer_mac));
		expect_probe_of_peer();
		neigh_kernel_answer(&w.neigh, e, peer_mac, false);
		assert_int_equal(e->state, NEIGH_PROBING);
		for (int i = 0; left && i < NEIGH_PROBES; i++)
			neigh_tick(&w.neigh, now += NEIGH_PROBE_NS);
		if (!left)
			arp_from(now, 0, peer_mac, false);
		neigh_kernel_answer(&w.neigh, e, peer_mac, false);
		assert_int_equal(e->state, NEIGH_REACHABLE);
		w.sent = 0;
		assert_int_equal(neigh_probe_station(&w.neigh, now, 1, 0, peer_mac), !left);
		assert_int_equal(w.sent, 0);
		now += NEIGH_QUIET_NS;
	}
	assert_true(neigh_probe_station(&w.neigh, now, 1, 0, peer_mac));
	/* The MAC of a peer behind a router is the router's, which has an entry of its own. */
	e->from.valid = false;
	assert_false(neigh_probe_station(&w.neigh, now, 1, 0, peer_mac));
}

/* Fills entry 7: the kernel has resolved `to` from this host's address. Then its MAC changes. */
static void probe_by_kernel(const char *to, const struct host_address *from)
{
	struct neigh_entry *e = &w.neigh.table.entries[7];
	struct neigh_key key = {.resolver = NEIGH_BY_KERNEL};

	memcpy(key.ip, ip(to), 16);
	w.neigh.now = T0;
	neigh_table_fill(&w.neigh.table, e, &key, 0, NEIGH_INCOMPLETE);
	e->from = *from;
	neigh_kernel_answer(&w.neigh, e, peer_mac, false);
	neigh_kernel_answer(&w.neigh, e, thief_mac, false);
	assert_int_equal(e->state, NEIGH_PROBING);
	neigh_table_free(&w.neigh.table, e);
}

/* A router of the other family: receivers would take the sender's address for that of the MAC. */
static void probe_has_a_source_of_the_neighbours_family(void **state)
{
	struct arp a;
	struct nd m;

	(void)state;
	probe_by_kernel("192.0.2.9", &w.host.addresses[2]);
	assert_true(arp_parse(&a, w.frame, w.len));
	assert_memory_equal(a.sip, ip("0.0.0.0"), 16);
	probe_by_kernel("fe80::9", &w.host.addresses[1]);
	assert_true(nd_parse(&m, w.frame, w.len));
	assert_memory_equal(m.sip, w.host.addresses[0].ip, 16); /* made from the MAC */
}

/* neigh_knows takes a sender for known only with the MAC that address resolution has found. */
static void known_senders_have_the_resolved_mac(void **state)
{
	(void)state;
	assert_false(neigh_knows(&w.neigh, T0, ip("192.0.2.9"), 0, peer_mac));
	learn_peer();
	assert_true(neigh_knows(&w.neigh, T0, ip("192.0.2.9"), 0, peer_mac));
	assert_false(neigh_knows(&w.neigh, T0, ip("192.0.2.9"), 0, thief_mac));
	assert_false(neigh_knows(&w.neigh, T0, ip("192.0.2.9"), 7, peer_mac));
	assert_false(neigh_knows(&w.neigh, T0, ip("192.0.2.8"), 0, peer_mac));
	/* Even while another station claims the address. */
	arp_from(T0, 0, thief_mac, false);
	assert_true(neigh_knows(&w.neigh, T0, ip("192.0.2.9"), 0, peer_mac));
	assert_false(neigh_knows(&w.neigh, T0, ip("192.0.2.9"), 0, thief_mac));
}

/* --- Pinned addresses */

static void pinned_address_needs_no_question(void **state)
{
	struct neigh_waiter waiter;
	struct arp a = {.request = false};
	uint8_t frame[ARP_FRAME_LEN];

	(void)state;
	pin("192.0.2.9=02:00:00:00:00:09");
	assert_int_equal(resolve(T0, "192.0.2.9", &waiter), 0);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
	arp_from(T0, 0, thief_mac, false);
	assert_int_equal(w.sent, 0);
	assert_int_equal(resolve(T0, "192.0.2.9", &waiter), 0);
	assert_memory_equal(w.hop.mac, peer_mac, 6);
	assert_true(neigh_knows(&w.neigh, T0, ip("192.0.2.9"), 0, peer_mac));
	assert_false(neigh_knows(&w.neigh, T0, ip("192.0.2.9"), 0, thief_mac));
	memcpy(a.sip, ip("192.0.2.9"), 16);
	memcpy(a.smac, thief_mac, 6);
	arp_build(frame, &a, our_mac);
	assert_false(neigh_claim_allowed(&w.neigh, frame, sizeof(frame)));
	memcpy(a.smac, peer_mac, 6);
	arp_build(frame, &a, our_mac);
	assert_true(neigh_claim_allowed(&w.neigh, frame, sizeof(frame)));
}

static void pins_are_parsed(void **state)
{
	static const char *const wrong[] = {
		"",
		"192.0.2.9",
		"192.0.2.9=",
		"192.0.2.9=2",
		"192.0.2.9=02:00:00:00:00",
		"192.0.2.9=02:00:00:00:00:09:",
		"192.0.2.9=03:00:00:00:00:09",
		"192.0.2.9=00:00:00:00:00:00",
		"224.0.0.1=02:00:00:00:00:09",
		"ff02::1=02:00:00:00:00:09",
		"192.0.2.9@=02:00:00:00:00:09",
		"192.0.2.9@0=02:00:00:00:00:09",
		"192.0.2.9@4095=02:00:00:00:00:09",
		"192.0.2.9@x=02:00:00:00:00:09",
		"192.0.2.256=02:00:00:00:00:09",
		"52:54:00:12:34:56=2",
	};
	struct address_pins pins = {.n = 0};
	struct address_pin p;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(address_pin_parse(wrong[i], &p), -EINVAL);
	assert_int_equal(address_pin_parse("2001:db8::9@7=02:00:00:00:00:09", &p), 0);
	assert_memory_equal(p.ip, ip("2001:db8::9"), 16);
	assert_int_equal(p.vlan, 7);
	assert_memory_equal(p.mac, peer_mac, 6);
	assert_int_equal(address_pins_add(&pins, &p), 0);
	assert_int_equal(address_pins_add(&pins, &p), -EEXIST);
	assert_null(address_pins_find(&pins, p.ip, 8));
	assert_int_equal(address_pin_parse("2001:db8::9=02:00:00:00:00:66", &p), 0);
	assert_int_equal(address_pins_add(&pins, &p), 0);
	assert_memory_equal(address_pins_find(&pins, p.ip, 8), thief_mac, 6);
	assert_memory_equal(address_pins_find(&pins, p.ip, 7), peer_mac, 6);
	while (pins.n < ADDRESS_PINS) {
		p.ip[15]++;
		assert_int_equal(address_pins_add(&pins, &p), 0);
	}
	p.ip[15]++;
	assert_int_equal(address_pins_add(&pins, &p), -ENOSPC);
}

/* neigh_tick scans the table only while an entry waits for an answer. */
static void tick_runs_only_while_entries_wait(void **state)
{
	struct neigh_waiter a, b, c;

	(void)state;
	assert_int_equal(w.neigh.table.n_incomplete, 0);
	assert_int_equal(resolve(T0, "192.0.2.9", &a), -EINPROGRESS);
	assert_int_equal(resolve(T0, "192.0.2.8", &b), -EINPROGRESS);
	assert_int_equal(resolve(T0, "192.0.2.8", &c), -EINPROGRESS);
	assert_int_equal(w.neigh.table.n_incomplete, 2);
	arp_from_peer(false, "192.0.2.9", "192.0.2.1");
	arp_from_peer(false, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.neigh.table.n_incomplete, 1);
	assert_int_equal(neigh_tick(&w.neigh, T0 + NEIGH_TRY_NS), T0 + 2 * NEIGH_TRY_NS);
	assert_int_equal(w.sent, 3);
	for (int i = 2; i <= NEIGH_TRIES; i++)
		neigh_tick(&w.neigh, T0 + (uint64_t)i * NEIGH_TRY_NS);
	assert_int_equal(w.answers, 3);
	assert_int_equal(w.neigh.table.n_incomplete, 0);
	assert_int_equal(neigh_tick(&w.neigh, T0 + 9 * NEIGH_TRY_NS), UINT64_MAX);
	/* An expired entry is resolved again; a change of the host's addresses ends that. */
	assert_int_equal(resolve(T0 + NEIGH_LIFE_NS, "192.0.2.9", &a), -EINPROGRESS);
	assert_int_equal(neigh_tick(&w.neigh, T0 + NEIGH_LIFE_NS),
			 T0 + NEIGH_LIFE_NS + NEIGH_PROBE_NS);
	w.host.addresses[1].valid = false;
	neigh_host_changed(&w.neigh);
	assert_int_equal(w.answers, 4);
	assert_int_equal(w.status, -ENETUNREACH);
}

/* A VLAN interface of the kernel has the link-local address of its parent. */
static void address_of_two_vlans_counts_in_both(void **state)
{
	struct host_address *own = &w.host.addresses[3];
	struct neigh_waiter waiter;
	char text[INET6_ADDRSTRLEN + 8];

	(void)state;
	inet_ntop(AF_INET6, w.host.addresses[0].ip, text, INET6_ADDRSTRLEN);
	strcat(text, "/64@100");
	assert_int_equal(host_add_text(&w.host, text, 0), 0);
	assert_memory_equal(own->ip, w.host.addresses[0].ip, 16);
	assert_int_equal(neigh_resolve(&w.neigh, T0, 0, 3, ip("fe80::9"), &waiter, &w.hop),
			 -EINPROGRESS);
	neigh_host_changed(&w.neigh);
	assert_int_equal(w.answers, 0);
	own->valid = false;
	neigh_host_changed(&w.neigh);
	assert_int_equal(w.answers, 1);
	assert_int_equal(w.status, -ENETUNREACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(link_local_address_is_resolved_on_each_uplink),
		TEST(own_multicast_and_unroutable_addresses_need_no_request),
		TEST(arp_stays_in_its_vlan),
		TEST(nd_stays_in_its_vlan),
		TEST(address_of_two_vlans_counts_in_both),
		TEST(arp_asks_and_learns),
		TEST(vm_is_resolved_without_the_kernel),
		TEST(nd_asks_and_learns),
		TEST(gives_up_after_three_tries),
		TEST(persistent_waiter_outlasts_silence),
		TEST(entry_ends_after_the_cancel_of_its_persistent_waiter),
		TEST(cancelled_waiter_gets_no_answer),
		TEST(arp_is_answered_for_own_addresses_only),
		TEST(answers_solicitations),
		TEST(unsolicited_arp_fills_no_table),
		TEST(damaged_nd_is_ignored),
		TEST(cut_arp_is_ignored),
		TEST(claim_is_refuted_by_the_known_station),
		TEST(move_is_taken_when_the_known_station_is_silent),
		TEST(old_entry_is_confirmed_by_its_station),
		TEST(silent_station_keeps_its_mac_for_a_minute),
		TEST(answer_from_another_uplink_does_not_count),
		TEST(known_mac_from_another_port_confirms_nothing),
		TEST(claim_from_the_port_of_the_station_is_preferred),
		TEST(nd_claims_are_refuted_too),
		TEST(advertisement_without_a_mac_refutes_claims),
		TEST(weak_advertisement_claims_nothing),
		TEST(move_that_the_kernel_reports_is_checked),
		TEST(permanent_mac_of_the_kernel_needs_no_check),
		TEST(kernel_entry_does_not_stand_for_its_station),
		TEST(probe_has_a_source_of_the_neighbours_family),
		TEST(known_senders_have_the_resolved_mac),
		TEST(pinned_address_needs_no_question),
		TEST(pins_are_parsed),
		TEST(tick_runs_only_while_entries_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
