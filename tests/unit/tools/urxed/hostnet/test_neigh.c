/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "urxed/hostnet/arp.h"
#include "urxed/hostnet/nd.h"
#include "urxed/hostnet/neigh.h"
#include "urxed/hostnet/route.h"

#define SECOND 1000000000ull
#define T0     (100 * SECOND)

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1}, peer_mac[6] = {2, 0, 0, 0, 0, 9};
static const uint8_t thief_mac[6] = {2, 0, 0, 0, 0, 0x66};

/* A neighbour table on one uplink, with the frames and answers that it has produced. */
struct world {
	struct host host;
	struct neigh neigh;
	uint8_t frame[NEIGH_FRAME_ROOM];
	uint32_t len;
	uint32_t sent;
	uint32_t answers;
	int status;
	struct vnic_next_hop hop;
};

static struct world w;

static void on_send(void *ctx, int uplink, const uint8_t *frame, uint32_t len)
{
	(void)ctx;
	assert_int_equal(uplink, 0);
	assert_true(len <= sizeof(w.frame));
	memcpy(w.frame, frame, len);
	w.len = len;
	w.sent++;
}

static const uint8_t *on_mac(void *ctx, int uplink)
{
	(void)ctx;
	(void)uplink;
	return our_mac;
}

static void on_answer(void *ctx, struct neigh_waiter *waiter, int status,
		      const struct vnic_next_hop *hop)
{
	(void)ctx;
	(void)waiter;
	w.answers++;
	w.status = status;
	if (hop)
		w.hop = *hop;
}

static const struct neigh_ops ops = {on_send, on_mac, on_answer};

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	host_init(&w.host);
	memcpy(w.host.mac, our_mac, 6);
	neigh_init(&w.neigh, &w.host, &ops, NULL);
	return host_add_link_local(&w.host, 0) || host_add_text(&w.host, "192.0.2.1/24", 0) ||
	       host_add_text(&w.host, "2001:db8::1/64", 0);
}

/* Parses an address; IPv4 becomes ::ffff:a.b.c.d. */
static const uint8_t *ip(const char *text)
{
	static uint8_t ring[4][16];
	static int at;
	uint8_t *p = ring[at++ % 4];

	memset(p, 0, 16);
	p[10] = p[11] = 0xff;
	if (inet_pton(AF_INET, text, p + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, p), 1);
	return p;
}

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

	/* The peer's advertisement, built by nd.c. */
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
	solicit("::", "2001:db8::1");
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

/* --- Several users */

#define MANY 300

static struct neigh_waiter waiters[NEIGH_ENTRIES * 4];
static uint32_t n_waiters;

/* A user neither root nor that of this test. */
static uid_t stranger(uint32_t i)
{
	return geteuid() + 1 + i;
}

static const uint8_t *address_of(uint32_t i)
{
	static uint8_t to[16];

	memcpy(to, ip("2001:db8::9:0:0"), 16);
	to[13] = (uint8_t)(i >> 16);
	to[14] = (uint8_t)(i >> 8);
	to[15] = (uint8_t)i;
	return to;
}

static int resolve_for(uint64_t now, uid_t user, uint32_t i)
{
	return neigh_resolve(&w.neigh, now, user, 2, address_of(i), &waiters[n_waiters++], &w.hop);
}

static void advertise(uint64_t now, uint32_t i, const uint8_t *mac, int uplink)
{
	struct nd m = {.solicitation = true};
	uint8_t frame[ND_FRAME_LEN];

	memcpy(m.smac, our_mac, 6);
	memcpy(m.sip, ip("2001:db8::1"), 16);
	memcpy(m.target, address_of(i), 16);
	nd_build_advertisement(frame, &m, mac);
	neigh_input(&w.neigh, now, uplink, frame, sizeof(frame));
}

/* A user that resolves many absent addresses displaces its own oldest questions only. */
static void absent_addresses_of_a_user_displace_only_its_own(void **state)
{
	uint32_t i;

	(void)state;
	n_waiters = 0;
	assert_int_equal(resolve_for(T0, 0, 100000), -EINPROGRESS);
	assert_int_equal(resolve_for(T0, NEIGH_PEERS, 200000), -EINPROGRESS);
	assert_int_equal(resolve_for(T0, stranger(1), 300000), -EINPROGRESS);
	for (i = 0; i < MANY; i++)
		assert_int_equal(resolve_for(T0 + 1 + i, stranger(0), i), -EINPROGRESS);
	assert_in_range(w.neigh.table.n_incomplete, 4, NEIGH_INCOMPLETE_MAX / 2 + 3);
	/* No callback ran within neigh_resolve. The newest questions are still asked. */
	assert_int_equal(w.answers, 0);
	neigh_tick(&w.neigh, T0 + MANY);
	assert_int_equal(w.answers, MANY + 3 - w.neigh.table.n_incomplete);
	assert_int_equal(w.status, -EHOSTUNREACH);
	assert_false(waiters[3].waits);
	assert_true(waiters[n_waiters - 1].waits);
	for (i = 0; i < 3; i++)
		assert_true(waiters[i].waits);
	/* An address that answers is resolved for everybody, also for that user. */
	w.answers = 0;
	for (i = 0; i < 4; i++) {
		const uid_t users[] = {0, stranger(1), NEIGH_PEERS, stranger(0)};

		assert_int_equal(resolve_for(T0 + MANY + i, users[i], 400000 + i), -EINPROGRESS);
		advertise(T0 + MANY + i, 400000 + i, peer_mac, 0);
		assert_int_equal(w.answers, i + 1);
		assert_int_equal(w.status, 0);
	}
}

/* Questions never displace addresses that are known. */
static void known_addresses_stay_while_others_are_asked(void **state)
{
	uint32_t i;

	(void)state;
	n_waiters = 0;
	for (i = 0; i < 100; i++) {
		assert_int_equal(resolve_for(T0, stranger(1), 100000 + i), -EINPROGRESS);
		advertise(T0, 100000 + i, peer_mac, 0);
	}
	for (i = 0; i < 1500; i++) {
		resolve_for(T0 + 1, stranger(0), i);
		resolve_for(T0 + 1, NEIGH_PEERS, 200000 + i / 2);
		neigh_tick(&w.neigh, T0 + 1);
	}
	for (i = 0; i < 100; i++)
		assert_int_equal(resolve_for(T0 + 2, 0, 100000 + i), 0);
}

/* Who makes many stations answer fills its own share of the table. */
static void answered_addresses_of_a_user_displace_only_its_own(void **state)
{
	uint32_t i;

	(void)state;
	n_waiters = 0;
	for (i = 0; i < 10; i++) {
		assert_int_equal(resolve_for(T0, NEIGH_PEERS, 100000 + i), -EINPROGRESS);
		advertise(T0, 100000 + i, peer_mac, 0);
	}
	for (i = 0; i < 2 * NEIGH_ENTRIES; i++) {
		assert_int_equal(resolve_for(T0 + 1 + i, stranger(0), i), -EINPROGRESS);
		advertise(T0 + 1 + i, i, peer_mac, 0);
	}
	for (i = 0; i < 10; i++)
		assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES + 1, 0, 100000 + i), 0);
	assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES + 1, 0, 2 * NEIGH_ENTRIES - 1), 0);
	assert_int_equal(resolve_for(T0 + 2 * NEIGH_ENTRIES + 1, 0, 0), -EINPROGRESS);
}

/* --- Proven entries */

/* Returns true if other hosts' entry of the address has that MAC, without a use of the entry. */
static bool has_entry(uint32_t i, const uint8_t *mac)
{
	struct neigh_key key = {.resolver = NEIGH_BY_DAEMON};
	struct neigh_entry *e;

	memcpy(key.ip, address_of(i), sizeof(key.ip));
	e = neigh_table_find(&w.neigh.table, &key);
	return e && !memcmp(e->mac, mac, 6);
}

static void learn_for_peers(uint64_t now, uint32_t i, const uint8_t *mac, bool use)
{
	struct neigh_waiter waiter;

	assert_int_equal(
		neigh_resolve(&w.neigh, now, NEIGH_PEERS, 2, address_of(i), &waiter, &w.hop),
		-EINPROGRESS);
	advertise(now, i, mac, 0);
	if (use)
		assert_true(neigh_knows(&w.neigh, now, address_of(i), 0, mac));
}

static void learn_some(uint64_t now, uint32_t first, uint32_t n, bool many_macs, bool use)
{
	uint8_t mac[6] = {2, 0x66};

	for (uint32_t i = first; i < first + n; i++) {
		if (many_macs)
			memcpy(mac + 2, &i, sizeof(i));
		learn_for_peers(now + i, i, mac, use);
	}
}

/* Learns more addresses than other hosts have places. They have a MAC each, or all the same. */
static void learn_many(uint64_t now, uint32_t first, bool many_macs, bool use)
{
	learn_some(now, first, NEIGH_ENTRIES, many_macs, use);
}

static void used_neighbour_stays_when_many_come(void **state)
{
	for (int how = 0; how < 4; how++) {
		neigh_fini(&w.neigh);
		setup(state);
		learn_for_peers(T0, 100000, peer_mac, true);
		learn_for_peers(T0, 100001, peer_mac, false);
		learn_many(T0, 0, how & 1, how & 2);
		assert_true(has_entry(100000, peer_mac));
		/* One that the host never used again goes. */
		assert_false(has_entry(100001, peer_mac));
		learn_many(T0 + SECOND, 200000, how & 1, how & 2);
		assert_true(has_entry(100000, peer_mac));
	}
}

/*
 * The neighbour is in use, so many stations' entries become the oldest before it does. These do not
 * take all places of proven entries first.
 */
static void neighbour_in_use_stays_when_many_come(void **state)
{
	(void)state;
	learn_for_peers(T0, 100000, peer_mac, true);
	learn_some(T0, 0, NEIGH_ENTRIES / 2 - 10, true, true);
	assert_true(neigh_knows(&w.neigh, T0 + NEIGH_ENTRIES, address_of(100000), 0, peer_mac));
	learn_many(T0 + NEIGH_ENTRIES, 200000, true, true);
	assert_true(has_entry(100000, peer_mac));
}

/* Places are left for other stations while one answers for any number of addresses. */
static void station_with_many_addresses_leaves_places(void **state)
{
	(void)state;
	learn_many(T0, 0, false, true);
	learn_for_peers(T0 + SECOND, 100000, peer_mac, true);
	learn_many(T0 + SECOND, 200000, false, true);
	assert_true(has_entry(100000, peer_mac));
}

static void idle_neighbour_makes_place_for_a_used_one(void **state)
{
	const uint64_t later = T0 + NEIGH_PROVEN_IDLE_NS / 2;

	(void)state;
	learn_for_peers(T0, 100000, peer_mac, true);
	learn_for_peers(T0, 100001, peer_mac, true);
	learn_many(T0, 0, true, true);
	assert_true(neigh_knows(&w.neigh, later, address_of(100000), 0, peer_mac));
	learn_many(later, 200000, true, true);
	assert_true(has_entry(100001, peer_mac));
	learn_many(T0 + NEIGH_PROVEN_IDLE_NS, 300000, true, true);
	assert_true(has_entry(100000, peer_mac));
	assert_false(has_entry(100001, peer_mac));
}

/* The station that takes an address over does not take the protection of the former one. */
static void station_that_takes_over_an_address_is_not_proven(void **state)
{
	(void)state;
	learn_for_peers(T0, 100000, peer_mac, true);
	learn_many(T0, 0, true, true);
	advertise(T0 + SECOND, 100000, thief_mac, 0);
	for (uint64_t i = 1; i <= NEIGH_PROBES; i++)
		neigh_tick(&w.neigh, T0 + SECOND + i * NEIGH_PROBE_NS);
	assert_true(has_entry(100000, thief_mac));
	learn_many(T0 + 2 * SECOND, 200000, true, false);
	assert_false(has_entry(100000, thief_mac));
}

/* Claims of its own addresses put a station's entries into PROBING: these go before proven ones. */
static void probed_neighbours_go_before_proven_ones(void **state)
{
	(void)state;
	learn_for_peers(T0, 100000, peer_mac, true);
	learn_many(T0, 0, true, true);
	for (uint32_t i = 0; i < NEIGH_ENTRIES; i++)
		advertise(T0 + SECOND, i, thief_mac, 0);
	assert_true(neigh_knows(&w.neigh, T0 + SECOND, address_of(100000), 0, peer_mac));
	for (uint32_t i = 0; i < 100; i++)
		learn_for_peers(T0 + SECOND, 200000 + i, thief_mac, false);
	assert_true(has_entry(100000, peer_mac));
}

/* --- Quotas */

/* Root has no quota, but cannot keep others from resolving. */
static void users_without_quota_leave_room(void **state)
{
	(void)state;
	n_waiters = 0;
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(resolve_for(T0 + i, 0, i), -EINPROGRESS);
	assert_int_equal(w.neigh.table.n_incomplete, NEIGH_INCOMPLETE_MAX);
	assert_int_equal(resolve_for(T0 + MANY, NEIGH_PEERS, 100000), -EINPROGRESS);
	assert_int_equal(resolve_for(T0 + MANY, stranger(0), 100001), -EINPROGRESS);
	assert_int_equal(resolve_for(T0 + MANY + 1, 0, 100002), -EINPROGRESS);
	assert_true(waiters[MANY].waits);
	assert_true(waiters[MANY + 1].waits);
	advertise(T0 + MANY + 1, 100000, peer_mac, 0);
	assert_false(waiters[MANY].waits);
}

/* The number of those who wait is limited for each user, whatever they wait for. */
static void waiters_of_a_user_are_limited(void **state)
{
	static struct neigh_waiter crowd[NEIGH_WAITERS_MAX];
	struct neigh_waiter waiter;
	uint32_t n = 0;

	(void)state;
	while (!neigh_resolve(&w.neigh, T0, stranger(0), 2, address_of(1), &crowd[n], &w.hop) ||
	       crowd[n].waits)
		n++;
	assert_int_equal(n, NEIGH_WAITERS_MAX / 2);
	assert_int_equal(
		neigh_resolve(&w.neigh, T0, stranger(0), 2, address_of(1), &waiter, &w.hop),
		-ENOSPC);
	assert_int_equal(
		neigh_resolve(&w.neigh, T0, stranger(1), 2, address_of(1), &waiter, &w.hop),
		-EINPROGRESS);
	neigh_cancel(&w.neigh, &waiter);
	neigh_cancel(&w.neigh, &crowd[0]);
	assert_int_equal(
		neigh_resolve(&w.neigh, T0, stranger(0), 2, address_of(1), &crowd[0], &w.hop),
		-EINPROGRESS);
	advertise(T0, 1, peer_mac, 0);
	assert_int_equal(w.answers, n);
	assert_int_equal(w.neigh.waiting.total, 0);
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

/* The kernel says that the MAC has changed: the station that had the address is asked first. */
static void move_that_the_kernel_reports_is_checked(void **state)
{
	const struct neigh_key key = {.ip = {[10] = 0xff, 0xff, 192, 0, 2, 9},
				      .resolver = NEIGH_BY_KERNEL};
	struct neigh_entry *e = &w.neigh.table.entries[7];

	(void)state;
	w.neigh.now = T0;
	neigh_table_fill(&w.neigh.table, e, &key, 0, NEIGH_INCOMPLETE);
	e->from = w.host.addresses[1];
	neigh_kernel_answer(&w.neigh, e, peer_mac);
	assert_int_equal(e->state, NEIGH_REACHABLE);
	assert_int_equal(w.sent, 0);
	neigh_kernel_answer(&w.neigh, e, thief_mac);
	assert_int_equal(e->state, NEIGH_PROBING);
	expect_probe_of_peer();
	arp_from(T0 + 1, 0, thief_mac, false);
	assert_int_equal(e->state, NEIGH_PROBING);
	arp_from(T0 + 2, 0, peer_mac, false);
	assert_int_equal(e->state, NEIGH_REACHABLE);
	assert_memory_equal(e->mac, peer_mac, 6);
	/* It is silent the next time. */
	neigh_tick(&w.neigh, T0 + 2 * NEIGH_QUIET_NS);
	neigh_kernel_answer(&w.neigh, e, thief_mac);
	for (int i = 1; i <= NEIGH_PROBES; i++)
		neigh_tick(&w.neigh, T0 + 2 * NEIGH_QUIET_NS + (uint64_t)i * NEIGH_PROBE_NS);
	assert_int_equal(e->state, NEIGH_REACHABLE);
	assert_memory_equal(e->mac, thief_mac, 6);
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

static void pin(const char *text)
{
	struct address_pin parsed;

	assert_int_equal(address_pin_parse(text, &parsed), 0);
	assert_int_equal(address_pins_add(&w.neigh.pins, &parsed), 0);
}

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

static int end(void **state)
{
	(void)state;
	neigh_fini(&w.neigh);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(own_multicast_and_unroutable_addresses_need_no_request),
		TEST(arp_stays_in_its_vlan),
		TEST(nd_stays_in_its_vlan),
		TEST(arp_asks_and_learns),
		TEST(vm_is_resolved_without_the_kernel),
		TEST(nd_asks_and_learns),
		TEST(gives_up_after_three_tries),
		TEST(cancelled_waiter_gets_no_answer),
		TEST(arp_is_answered_for_own_addresses_only),
		TEST(answers_solicitations),
		TEST(unsolicited_arp_fills_no_table),
		TEST(damaged_nd_is_ignored),
		TEST(cut_arp_is_ignored),
		TEST(absent_addresses_of_a_user_displace_only_its_own),
		TEST(known_addresses_stay_while_others_are_asked),
		TEST(answered_addresses_of_a_user_displace_only_its_own),
		TEST(used_neighbour_stays_when_many_come),
		TEST(neighbour_in_use_stays_when_many_come),
		TEST(station_with_many_addresses_leaves_places),
		TEST(idle_neighbour_makes_place_for_a_used_one),
		TEST(station_that_takes_over_an_address_is_not_proven),
		TEST(probed_neighbours_go_before_proven_ones),
		TEST(users_without_quota_leave_room),
		TEST(waiters_of_a_user_are_limited),
		TEST(claim_is_refuted_by_the_known_station),
		TEST(move_is_taken_when_the_known_station_is_silent),
		TEST(old_entry_is_confirmed_by_its_station),
		TEST(answer_from_another_uplink_does_not_count),
		TEST(known_mac_from_another_port_confirms_nothing),
		TEST(claim_from_the_port_of_the_station_is_preferred),
		TEST(nd_claims_are_refuted_too),
		TEST(weak_advertisement_claims_nothing),
		TEST(move_that_the_kernel_reports_is_checked),
		TEST(known_senders_have_the_resolved_mac),
		TEST(pinned_address_needs_no_question),
		TEST(pins_are_parsed),
		TEST(tick_runs_only_while_entries_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
