/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "urxed/hostnet/arp.h"
#include "urxed/hostnet/nd.h"
#include "urxed/hostnet/neigh.h"
#include "urxed/hostnet/route.h"

#define SECOND 1000000000ull
#define T0     (100 * SECOND)

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1}, peer_mac[6] = {2, 0, 0, 0, 0, 9};

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
	return neigh_resolve(&w.neigh, now, 1, ip(to), waiter, &w.hop);
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
	assert_int_equal(neigh_resolve(&w.neigh, T0, 3, ip("198.51.100.9"), &waiter, &w.hop),
			 -EINPROGRESS);
	assert_int_equal(w.sent, 1);
	assert_true(arp_parse(&a, w.frame, take_tag(w.frame, w.len, 100)));
	assert_true(a.request);
	/* Addresses outside the VLAN have no route to it. */
	assert_int_equal(neigh_resolve(&w.neigh, T0, 1, ip("198.51.100.8"), &other, &w.hop),
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
	assert_int_equal(neigh_resolve(&w.neigh, T0, 3, ip("192.0.2.9"), &waiter, &w.hop), -EINVAL);
	assert_int_equal(
		neigh_resolve(&w.neigh, T0, VNIC_ATTACH_GIDS, ip("192.0.2.9"), &waiter, &w.hop),
		-EINVAL);
	assert_int_equal(
		neigh_resolve(&w.neigh, T0, HOST_ADDRESSES + 1, ip("192.0.2.1"), &waiter, &w.hop),
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
	w.neigh.vms = true;
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
	assert_int_equal(w.neigh.entries[0].state, NEIGH_FREE);
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

static void full_table_evicts_resolved_entries(void **state)
{
	struct neigh_waiter waiters[NEIGH_ENTRIES + 1];
	uint8_t to[16];
	uint32_t i;

	(void)state;
	memcpy(to, ip("2001:db8::9:0"), 16);
	for (i = 0; i <= NEIGH_ENTRIES; i++) {
		to[14] = (uint8_t)(i >> 8);
		to[15] = (uint8_t)i;
		to[13] = 1;
		assert_int_equal(neigh_resolve(&w.neigh, T0, 2, to, &waiters[i], &w.hop),
				 i < NEIGH_ENTRIES ? -EINPROGRESS : -EHOSTUNREACH);
	}
	w.neigh.entries[5].state = NEIGH_REACHABLE;
	assert_int_equal(neigh_resolve(&w.neigh, T0, 2, to, &waiters[NEIGH_ENTRIES], &w.hop),
			 -EINPROGRESS);
	assert_memory_equal(w.neigh.entries[5].ip, to, 16);
}

/* neigh_tick scans the table only while an entry waits for an answer. */
static void tick_runs_only_while_entries_wait(void **state)
{
	struct neigh_waiter a, b, c;

	(void)state;
	assert_int_equal(w.neigh.n_incomplete, 0);
	assert_int_equal(resolve(T0, "192.0.2.9", &a), -EINPROGRESS);
	assert_int_equal(resolve(T0, "192.0.2.8", &b), -EINPROGRESS);
	assert_int_equal(resolve(T0, "192.0.2.8", &c), -EINPROGRESS);
	assert_int_equal(w.neigh.n_incomplete, 2);
	arp_from_peer(false, "192.0.2.9", "192.0.2.1");
	arp_from_peer(false, "192.0.2.9", "192.0.2.1");
	assert_int_equal(w.neigh.n_incomplete, 1);
	assert_int_equal(neigh_tick(&w.neigh, T0 + NEIGH_TRY_NS), T0 + 2 * NEIGH_TRY_NS);
	assert_int_equal(w.sent, 3);
	for (int i = 2; i <= NEIGH_TRIES; i++)
		neigh_tick(&w.neigh, T0 + (uint64_t)i * NEIGH_TRY_NS);
	assert_int_equal(w.answers, 3);
	assert_int_equal(w.neigh.n_incomplete, 0);
	assert_int_equal(neigh_tick(&w.neigh, T0 + 9 * NEIGH_TRY_NS), UINT64_MAX);
	/* An expired entry is resolved again; a change of the host's addresses ends that. */
	assert_int_equal(resolve(T0 + NEIGH_LIFE_NS, "192.0.2.9", &a), -EINPROGRESS);
	assert_int_equal(w.neigh.n_incomplete, 1);
	w.host.addresses[1].valid = false;
	neigh_host_changed(&w.neigh);
	assert_int_equal(w.answers, 4);
	assert_int_equal(w.neigh.n_incomplete, 0);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

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
		TEST(full_table_evicts_resolved_entries),
		TEST(tick_runs_only_while_entries_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
