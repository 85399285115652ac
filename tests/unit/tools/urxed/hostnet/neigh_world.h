/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's address resolution on uplink 0 of a host with the addresses 192.0.2.1 and
 * 2001:db8::1, unless a test says otherwise. For test_neigh.c and test_neigh_table.c.
 */
#ifndef URXE_TEST_NEIGH_WORLD_H
#define URXE_TEST_NEIGH_WORLD_H

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

#include "urxed/hostnet/arp_frame.h"
#include "urxed/hostnet/nd_frame.h"
#include "urxed/hostnet/neigh.h"
#include "urxed/hostnet/neigh_filter.h"

#define SECOND 1000000000ull
#define T0     (100 * SECOND)

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1}, peer_mac[6] = {2, 0, 0, 0, 0, 9};
static const uint8_t thief_mac[6] = {2, 0, 0, 0, 0, 0x66};

/* A neighbour table, with the frames and answers that it has produced. */
struct world {
	struct host host;
	struct neigh neigh;
	int uplink; /* on which frames must be sent */
	uint8_t frame[NEIGH_FRAME_ROOM];
	uint32_t len;
	uint32_t sent;
	uint32_t answers;
	int status;
	struct vnic_next_hop hop;
};

static struct world w;

static inline void on_send(void *ctx, int uplink, const uint8_t *frame, uint32_t len)
{
	(void)ctx;
	assert_int_equal(uplink, w.uplink);
	assert_true(len <= sizeof(w.frame));
	memcpy(w.frame, frame, len);
	w.len = len;
	w.sent++;
}

static inline const uint8_t *on_mac(void *ctx, int uplink)
{
	(void)ctx;
	(void)uplink;
	return our_mac;
}

static inline void on_answer(void *ctx, struct neigh_waiter *waiter, int status,
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

static inline int setup(void **state)
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
static inline const uint8_t *ip(const char *text)
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

/* Address number i of a neighbour. */
static inline const uint8_t *address_of(uint32_t i)
{
	static uint8_t to[16];

	memcpy(to, ip("2001:db8::9:0:0"), 16);
	to[13] = (uint8_t)(i >> 16);
	to[14] = (uint8_t)(i >> 8);
	to[15] = (uint8_t)i;
	return to;
}

/* The station with that MAC advertises address number i. */
static inline void advertise(uint64_t now, uint32_t i, const uint8_t *mac, int uplink)
{
	struct nd m = {.solicitation = true};
	uint8_t frame[ND_FRAME_LEN];

	memcpy(m.smac, our_mac, 6);
	memcpy(m.sip, ip("2001:db8::1"), 16);
	memcpy(m.target, address_of(i), 16);
	nd_build_advertisement(frame, &m, mac);
	neigh_input(&w.neigh, now, uplink, frame, sizeof(frame));
}

/* An ND message as any host may send it. Members that are NULL or 0 stay out of the frame. */
struct hand_made_nd {
	uint8_t type; /* 135: solicitation, 136: advertisement */
	uint8_t flags;
	const char *from, *to, *target;
	uint8_t option; /* 1: source, 2: target link-layer address, which is peer_mac */
};

/* Ones' complement sum of the pseudo-header and the ICMPv6 message of len bytes (RFC 4443, 2.3). */
static inline uint16_t sum_nd(const uint8_t *ip, uint32_t len)
{
	uint32_t sum = len + 58;

	for (uint32_t i = 8; i < 40 + len; i += 2)
		sum += ether_get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~((sum & 0xffff) + (sum >> 16));
}

/* Returns the length of the frame. */
static inline uint32_t put_nd(uint8_t frame[ND_FRAME_LEN], const struct hand_made_nd *nd)
{
	uint8_t *ip6 = frame + ETHER_HDR_LEN, *icmp = ip6 + 40;
	uint32_t len = nd->option ? 32 : 24;

	memset(frame, 0, ND_FRAME_LEN);
	memcpy(frame, our_mac, 6);
	memcpy(frame + 6, peer_mac, 6);
	ether_put16(frame + 12, 0x86dd);
	memcpy(ip6, (uint8_t[]){0x60, 0, 0, 0, 0, (uint8_t)len, 58, 255}, 8);
	memcpy(ip6 + 8, ip(nd->from), 16);
	memcpy(ip6 + 24, ip(nd->to), 16);
	icmp[0] = nd->type;
	icmp[4] = nd->flags;
	memcpy(icmp + 8, ip(nd->target), 16);
	if (nd->option) {
		icmp[24] = nd->option;
		icmp[25] = 1;
		memcpy(icmp + 26, peer_mac, 6);
	}
	ether_put16(icmp + 2, sum_nd(ip6, len));
	return ETHER_HDR_LEN + 40 + len;
}

/* Pins an address, as with --fdb. */
static inline void pin(const char *text)
{
	struct address_pin parsed;

	assert_int_equal(address_pin_parse(text, &parsed), 0);
	assert_int_equal(address_pins_add(&w.neigh.pins, &parsed), 0);
}

static inline int end(void **state)
{
	(void)state;
	neigh_fini(&w.neigh);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, end)

#endif
