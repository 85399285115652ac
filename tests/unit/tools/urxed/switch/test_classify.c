/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rxe/packet.h>

#include "craft.h"
#include "urxed/switch/classify.h"

#define QPN  0x123456
#define ROOM 256
#define LONG 120
#define VLAN 100

static const uint8_t dmac[6] = {2, 0, 0, 0, 0, 1}, smac[6] = {2, 0, 0, 0, 0, 2};

/* Returns the offset behind the Ethernet header. */
static uint32_t ethernet(uint8_t *f, uint16_t ethertype, bool vlan)
{
	memset(f, 0, ROOM);
	memcpy(f, dmac, 6);
	memcpy(f + 6, smac, 6);
	if (vlan) {
		ether_put16(f + 12, ETHERTYPE_ID_VLAN);
		ether_put16(f + 16, ethertype);
		return 18;
	}
	ether_put16(f + 12, ethertype);
	return 14;
}

static uint32_t bth(uint8_t *f, uint32_t at)
{
	f[at + 5] = QPN >> 16;
	f[at + 6] = QPN >> 8 & 0xff;
	f[at + 7] = QPN & 0xff;
	return at + BTH_LEN;
}

static uint32_t udp(uint8_t *f, uint32_t at)
{
	ether_put16(f + at + 2, URXE_UDP_PORT);
	return bth(f, at + UDP_HDR_LEN);
}

static uint32_t make_v4(uint8_t *f, bool vlan)
{
	uint32_t at = ethernet(f, ETHERTYPE_ID_IPV4, vlan);

	f[at] = 0x45;
	f[at + 9] = PROTO_UDP;
	return udp(f, at + IPV4_HDR_LEN);
}

static uint32_t make_v6(uint8_t *f, bool vlan)
{
	uint32_t at = ethernet(f, ETHERTYPE_ID_IPV6, vlan);

	f[at] = 0x60;
	f[at + 6] = PROTO_UDP;
	return udp(f, at + IPV6_HDR_LEN);
}

static uint32_t make_v1(uint8_t *f, bool vlan)
{
	uint32_t at = ethernet(f, URXE_ETHERTYPE_ROCEV1, vlan);

	f[at] = 0x60;
	f[at + 6] = PROTO_BTH;
	return bth(f, at + IPV6_HDR_LEN);
}

static uint32_t (*const makers[])(uint8_t *, bool) = {make_v4, make_v6, make_v1};

static enum frame_kind kind_of(const uint8_t *f, uint32_t len)
{
	struct frame_class s;
	/* Allocated with exactly this size, so that a sanitizer reports a read beyond it. */
	uint8_t *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, f, len);
	classify_frame(&s, copy, len);
	free(copy);
	return s.kind;
}

static void destination_qpn_is_found(void **state)
{
	uint8_t f[ROOM];
	struct frame_class s;
	uint32_t i;

	(void)state;
	for (i = 0; i < 6; i++) {
		uint32_t len = makers[i / 2](f, i % 2);

		classify_frame(&s, f, len);
		assert_int_equal(s.kind, FRAME_ROCE);
		assert_int_equal(s.dest_qpn, QPN);
		assert_memory_equal(s.dmac, dmac, 6);
		assert_memory_equal(s.smac, smac, 6);
	}
}

static void cut_bth_is_not_roce(void **state)
{
	uint8_t f[ROOM];
	uint32_t i, len, cut;

	(void)state;
	for (i = 0; i < 6; i++) {
		len = makers[i / 2](f, i % 2);
		for (cut = 0; cut < len; cut++)
			assert_int_equal(kind_of(f, cut), cut < 14 ? FRAME_RUNT : FRAME_OTHER);
		assert_int_equal(kind_of(f, len), FRAME_ROCE);
		assert_int_equal(kind_of(f, ROOM), FRAME_ROCE);
	}
}

static void arp_and_neighbour_discovery_are_classified(void **state)
{
	uint8_t f[ROOM];
	uint32_t at;

	(void)state;
	ethernet(f, ETHERTYPE_ID_ARP, false);
	assert_int_equal(kind_of(f, 60), FRAME_ARP);
	at = ethernet(f, ETHERTYPE_ID_IPV6, false);
	f[at + 6] = PROTO_ICMPV6;
	f[at + IPV6_HDR_LEN] = 135;
	assert_int_equal(kind_of(f, LONG), FRAME_ND);
	f[at + IPV6_HDR_LEN] = 136;
	assert_int_equal(kind_of(f, LONG), FRAME_ND);
	f[at + IPV6_HDR_LEN] = 134; /* router advertisement */
	assert_int_equal(kind_of(f, LONG), FRAME_OTHER);
}

static void frames_other_than_roce_are_classified_as_such(void **state)
{
	uint8_t f[ROOM];

	(void)state;
	make_v4(f, false);
	f[14] = 0x46; /* IP options move the BTH, and the engine drops such packets */
	assert_int_equal(kind_of(f, LONG), FRAME_OTHER);
	make_v4(f, false);
	f[14 + 9] = 6;
	assert_int_equal(kind_of(f, LONG), FRAME_OTHER);
	make_v4(f, false);
	f[14 + 20 + 3]++;
	assert_int_equal(kind_of(f, LONG), FRAME_OTHER);
	make_v1(f, false);
	f[14 + 6]++;
	assert_int_equal(kind_of(f, LONG), FRAME_OTHER);
	ethernet(f, 0x88cc, false);
	assert_int_equal(kind_of(f, LONG), FRAME_OTHER);
}

static void survives_random_bytes(void **state)
{
	uint8_t f[ROOM];
	uint32_t i, j;

	(void)state;
	srandom(7);
	for (i = 0; i < 20000; i++) {
		uint32_t len = (uint32_t)random() % LONG;

		makers[i % 3](f, i & 8);
		for (j = 12; j < len; j += 1 + (uint32_t)random() % 40)
			f[j] = (uint8_t)random();
		assert_in_range(kind_of(f, len), FRAME_RUNT, FRAME_ND);
	}
}

/* A packet of each kind, with and without VLAN tag. */
static uint32_t craft(uint8_t f[CRAFT_MAX], enum urxe_net net, bool vlan, uint8_t opcode)
{
	const struct urxe_packet p = {
		.net = net,
		.opcode = opcode,
		.dest_qpn = QPN,
		.deth.src_qpn = QPN + 1,
		.has_vlan = vlan,
		.vlan_tci = 7 << 13 | VLAN,
		.sgid = craft_gid(net, 1),
		.dgid = craft_gid(net, 2),
	};

	return craft_frame(f, &p);
}

static void addresses_service_and_qpns_are_found(void **state)
{
	static const struct {
		uint8_t opcode;
		enum frame_service service;
	} opcodes[] = {
		{0x04, FRAME_RC},         {0x11, FRAME_RC},         {0x24, FRAME_UC},
		{0x64, FRAME_DATAGRAM},   {0x65, FRAME_DATAGRAM},   {0x81, FRAME_CNP},
		{0x80, FRAME_NO_SERVICE}, {0x44, FRAME_NO_SERVICE}, {0xa4, FRAME_NO_SERVICE},
	};
	uint8_t f[CRAFT_MAX];
	struct urxe_gid gid;
	struct frame_class s;
	uint32_t i, net;

	(void)state;
	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		for (net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++) {
			classify_frame(&s, f, craft(f, net, i % 2, opcodes[i].opcode));
			assert_int_equal(s.kind, FRAME_ROCE);
			assert_true(s.whole);
			assert_int_equal(s.vlan, i % 2 ? VLAN : 0);
			assert_int_equal(s.service, opcodes[i].service);
			assert_int_equal(s.dest_qpn, QPN);
			if (s.service == FRAME_DATAGRAM)
				assert_int_equal(s.src_qpn, QPN + 1);
			gid = craft_gid(net, 1);
			assert_memory_equal(s.sip, &gid, 16);
			gid = craft_gid(net, 2);
			assert_memory_equal(s.dip, &gid, 16);
			assert_memory_equal(s.head, f, s.head_len);
		}
	}
}

/* One byte less than the lengths in the headers. */
static void a_cut_packet_is_not_whole(void **state)
{
	uint8_t f[CRAFT_MAX];
	struct frame_class s;
	uint32_t net, len;

	(void)state;
	for (net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++) {
		len = craft(f, net, false, 0x64);
		classify_frame(&s, f, len + 1); /* padded */
		assert_true(s.whole);
		classify_frame(&s, f, len - 1);
		assert_int_equal(s.kind, FRAME_ROCE);
		assert_false(s.whole);
	}
}

/* Suite sanitize: nothing may be copied from no memory. */
static void frame_without_a_byte_is_a_runt(void **state)
{
	struct frame_class s = {.kind = FRAME_ROCE, .head_len = 7};

	(void)state;
	classify_frame(&s, NULL, 0);
	assert_int_equal(s.kind, FRAME_RUNT);
	assert_int_equal(s.head_len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_without_a_byte_is_a_runt),
		cmocka_unit_test(destination_qpn_is_found),
		cmocka_unit_test(addresses_service_and_qpns_are_found),
		cmocka_unit_test(a_cut_packet_is_not_whole),
		cmocka_unit_test(cut_bth_is_not_roce),
		cmocka_unit_test(arp_and_neighbour_discovery_are_classified),
		cmocka_unit_test(frames_other_than_roce_are_classified_as_such),
		cmocka_unit_test(survives_random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
