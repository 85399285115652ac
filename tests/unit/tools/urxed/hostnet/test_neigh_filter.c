/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The filters of claims against frames that other receivers accept and neigh.c does not. */
#include "neigh_world.h"

#define ROOM    256
#define SOURCE  1
#define TARGET  2
#define AT_IPV6 ETHER_HDR_LEN

/* The frame that the next call of a filter gets. */
static uint8_t frame[ROOM];
static uint32_t frame_len;

static void insert(uint32_t at, const uint8_t *bytes, uint32_t n)
{
	assert_true(frame_len + n <= ROOM);
	memmove(frame + at + n, frame + at, frame_len - at);
	memcpy(frame + at, bytes, n);
	frame_len += n;
}

static void insert_tag(uint16_t type, uint16_t vlan)
{
	uint8_t tag[ETHER_VLAN_LEN];

	ether_put16(tag, type);
	ether_put16(tag + 2, vlan);
	insert(2 * ETHER_MAC_LEN, tag, sizeof(tag));
}

/* A reply by which the thief claims the address. */
static void make_arp(const char *address)
{
	struct arp a = {.request = false};

	memcpy(a.sip, ip(address), 16);
	memcpy(a.smac, thief_mac, 6);
	memcpy(a.tip, ip("192.0.2.7"), 16);
	arp_build(frame, &a, our_mac);
	frame_len = ARP_FRAME_LEN;
}

/* A message of len bytes without options from that IPv6 source; target NULL: it has none. */
static void make_nd(uint8_t type, uint32_t len, const char *from, const char *target)
{
	uint8_t *ip6 = frame + AT_IPV6;

	memset(frame, 0, sizeof(frame));
	memcpy(frame, our_mac, 6);
	memcpy(frame + 6, thief_mac, 6);
	ether_put16(frame + 12, ETHERTYPE_ID_IPV6);
	memcpy(ip6, (uint8_t[]){0x60, 0, 0, 0, 0, 0, PROTO_ICMPV6, 255}, 8);
	memcpy(ip6 + 8, ip(from), 16);
	memcpy(ip6 + 24, ip("ff02::1"), 16);
	ip6[IPV6_HDR_LEN] = type;
	if (target)
		memcpy(ip6 + IPV6_HDR_LEN + 8, ip(target), 16);
	frame_len = AT_IPV6 + IPV6_HDR_LEN + len;
}

static void add_option(uint8_t type, const uint8_t *mac)
{
	const uint8_t option[] = {type, 1, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]};

	insert(frame_len, option, sizeof(option));
}

/* Writes the length and the checksum. */
static void finish_nd(void)
{
	uint8_t *ip6 = frame + AT_IPV6;
	uint32_t len = frame_len - AT_IPV6 - IPV6_HDR_LEN;

	ether_put16(ip6 + 4, (uint16_t)len);
	ether_put16(ip6 + IPV6_HDR_LEN + 2, 0);
	ether_put16(ip6 + IPV6_HDR_LEN + 2, sum_nd(ip6, len));
}

static void make_advertisement(const char *target)
{
	make_nd(136, 24, "2001:db8::8", target);
	add_option(TARGET, thief_mac);
	finish_nd();
}

/* An extension header of 8 bytes before ICMPv6. */
static void insert_extension(uint8_t protocol, uint16_t second)
{
	uint8_t header[8] = {frame[AT_IPV6 + 6], 0, (uint8_t)(second >> 8), (uint8_t)second};

	frame[AT_IPV6 + 6] = protocol;
	insert(AT_IPV6 + IPV6_HDR_LEN, header, sizeof(header));
	ether_put16(frame + AT_IPV6 + 4, (uint16_t)(frame_len - AT_IPV6 - IPV6_HDR_LEN));
}

static bool is_allowed(void)
{
	return neigh_claim_allowed(&w.neigh, frame, frame_len);
}

static bool claims_host(void)
{
	return neigh_claims_host(&w.neigh, frame, frame_len);
}

static void expect_refused(void)
{
	assert_false(is_allowed());
	assert_true(claims_host());
}

static void expect_passed(void)
{
	assert_true(is_allowed());
	assert_false(claims_host());
}

static int set_up(void **state)
{
	int rc = setup(state);

	pin("192.0.2.9=02:00:00:00:00:09");
	pin("2001:db8::9=02:00:00:00:00:09");
	pin("192.0.2.20@20=02:00:00:00:00:09");
	pin("fe80::9=02:00:00:00:00:09");
	/* The host's addresses, too: either filter refuses the frames below. */
	pin("192.0.2.1=02:00:00:00:00:01");
	pin("2001:db8::1=02:00:00:00:00:01");
	return rc;
}

/* Linux accepts hardware type 6, and BSD learns from any operation. */
static void arp_of_other_types_is_a_claim(void **state)
{
	(void)state;
	make_arp("192.0.2.1");
	frame[AT_IPV6 + 1] = 6;
	expect_refused();
	make_arp("192.0.2.1");
	frame[AT_IPV6 + 7] = 9;
	expect_refused();
	make_arp("192.0.2.9");
	frame[AT_IPV6 + 1] = 6;
	assert_false(is_allowed());
	make_arp("192.0.2.8");
	frame[AT_IPV6 + 1] = 6;
	expect_passed();
}

static void arp_that_is_not_understood_is_refused(void **state)
{
	(void)state;
	for (uint32_t at = 0; at < 6; at++) {
		make_arp("192.0.2.8");
		expect_passed();
		frame[AT_IPV6 + at] ^= 0x10;
		expect_refused();
	}
	make_arp("192.0.2.8");
	frame_len--;
	expect_refused();
}

static void tags_and_snap_headers_hide_no_claim(void **state)
{
	static const uint16_t tags[] = {0x8100, 0x88a8};
	static const uint8_t snap[] = {0, 36, 0xaa, 0xaa, 3, 0, 0, 0};

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		if (i & 1)
			make_advertisement("2001:db8::1");
		else
			make_arp("192.0.2.1");
		insert_tag(tags[i >> 1 & 1], 0);
		expect_refused();
		insert_tag(tags[i >> 2], 0);
		expect_refused();
		insert(2 * ETHER_MAC_LEN, snap, sizeof(snap));
		expect_refused();
	}
}

/* A switch between may remove the outer tag, so each tag may be that of the receiver's VLAN. */
static void each_tag_counts(void **state)
{
	static const uint16_t vlans[][2] = {{20, 0}, {0, 20}, {20, 30}, {30, 20}};

	(void)state;
	for (size_t i = 0; i < sizeof(vlans) / sizeof(vlans[0]); i++) {
		make_arp("192.0.2.20");
		assert_true(is_allowed());
		insert_tag(0x8100, vlans[i][0]);
		insert_tag(0x88a8, vlans[i][1]);
		assert_false(is_allowed());
	}
	make_arp("192.0.2.20");
	insert_tag(0x8100, 30);
	insert_tag(0x88a8, 31);
	assert_true(is_allowed());
}

static void tagged_frames_of_other_types_pass(void **state)
{
	(void)state;
	make_arp("192.0.2.1");
	ether_put16(frame + 12, ETHERTYPE_ID_IPV4);
	insert_tag(0x8100, 20);
	insert_tag(0x88a8, 30);
	expect_passed();
	/* More tags than any network needs. */
	for (int i = 0; i < 3; i++)
		insert_tag(0x8100, 0);
	expect_refused();
}

static void nd_behind_extension_headers_is_refused(void **state)
{
	static const uint8_t extensions[] = {0, 43, 44, 51, 60};

	(void)state;
	for (size_t i = 0; i < sizeof(extensions); i++) {
		make_advertisement("2001:db8::8");
		expect_passed();
		insert_extension(extensions[i], 0);
		expect_refused();
		insert_extension(0, 0);
		expect_refused();
	}
}

/* Multicast listener reports have a router alert, and any packet may come in fragments. */
static void other_packets_with_extension_headers_pass(void **state)
{
	(void)state;
	make_nd(143, 24, "fe80::8", NULL);
	finish_nd();
	insert_extension(0, 0x0502);
	expect_passed();
	make_advertisement("2001:db8::1");
	insert_extension(44, 8);
	expect_passed();
	make_advertisement("2001:db8::1");
	frame[AT_IPV6 + 6] = 6; /* TCP */
	insert_extension(44, 1);
	insert_extension(60, 0);
	expect_passed();
}

static void nd_with_two_macs_is_refused(void **state)
{
	static const uint8_t *const macs[2][2] = {{thief_mac, peer_mac}, {peer_mac, thief_mac}};
	struct nd m;

	(void)state;
	for (int i = 0; i < 4; i++) {
		if (i < 2)
			make_nd(136, 24, "2001:db8::8", "2001:db8::9");
		else
			make_nd(135, 24, "2001:db8::9", "2001:db8::8");
		add_option(i < 2 ? TARGET : SOURCE, macs[i % 2][0]);
		add_option(i < 2 ? TARGET : SOURCE, macs[i % 2][1]);
		finish_nd();
		expect_refused();
		assert_false(nd_parse(&m, frame, frame_len));
	}
	make_nd(136, 24, "2001:db8::8", "2001:db8::9");
	add_option(TARGET, peer_mac);
	add_option(TARGET, peer_mac);
	finish_nd();
	expect_passed();
	assert_true(nd_parse(&m, frame, frame_len));
}

static void invalid_nd_is_refused(void **state)
{
	static const uint8_t changed[] = {
		0, 5, 7, IPV6_HDR_LEN + 1, IPV6_HDR_LEN + 2, IPV6_HDR_LEN + 25};

	(void)state;
	for (size_t i = 0; i < sizeof(changed); i++) {
		make_advertisement("2001:db8::8");
		frame[AT_IPV6 + changed[i]] ^= 0x40;
		expect_refused();
	}
}

/* Receivers learn from messages of routers as well. */
static void messages_of_routers_are_claims(void **state)
{
	static const struct {
		uint8_t type;
		uint8_t len;
	} routers[] = {{133, 8}, {134, 16}};
	struct nd m;

	(void)state;
	for (size_t i = 0; i < sizeof(routers) / sizeof(routers[0]); i++) {
		make_nd(routers[i].type, routers[i].len, "2001:db8::1", NULL);
		add_option(SOURCE, thief_mac);
		finish_nd();
		expect_refused();
		make_nd(routers[i].type, routers[i].len, "fe80::9", NULL);
		add_option(SOURCE, thief_mac);
		finish_nd();
		assert_false(is_allowed());
		make_nd(routers[i].type, routers[i].len, "fe80::8", NULL);
		add_option(SOURCE, thief_mac);
		finish_nd();
		expect_passed();
		assert_false(nd_parse(&m, frame, frame_len));
	}
}

static void redirect_claims_its_target(void **state)
{
	struct nd m;

	(void)state;
	make_nd(137, 40, "fe80::8", "2001:db8::1");
	add_option(TARGET, thief_mac);
	finish_nd();
	expect_refused();
	make_nd(137, 40, "fe80::8", "2001:db8::9");
	add_option(TARGET, peer_mac);
	finish_nd();
	expect_passed();
	assert_false(nd_parse(&m, frame, frame_len));
	/* Without a MAC it tells only of a better router. */
	make_nd(137, 40, "fe80::8", "2001:db8::9");
	finish_nd();
	expect_passed();
}

static void cut_frames_are_harmless(void **state)
{
	(void)state;
	make_advertisement("2001:db8::1");
	insert_extension(60, 0);
	insert_extension(51, 0);
	insert_tag(0x8100, 20);
	insert_tag(0x88a8, 0);
	for (uint32_t len = 0; len < frame_len; len++) {
		/* Allocated with exactly this size, so that a sanitizer reports a read beyond it.
		 */
		uint8_t *copy = malloc(len ? len : 1);

		assert_non_null(copy);
		memcpy(copy, frame, len);
		neigh_claim_allowed(&w.neigh, copy, len);
		neigh_claims_host(&w.neigh, copy, len);
		free(copy);
	}
}

#define FILTER_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILTER_TEST(arp_of_other_types_is_a_claim),
		FILTER_TEST(arp_that_is_not_understood_is_refused),
		FILTER_TEST(tags_and_snap_headers_hide_no_claim),
		FILTER_TEST(each_tag_counts),
		FILTER_TEST(tagged_frames_of_other_types_pass),
		FILTER_TEST(nd_behind_extension_headers_is_refused),
		FILTER_TEST(other_packets_with_extension_headers_pass),
		FILTER_TEST(nd_with_two_macs_is_refused),
		FILTER_TEST(invalid_nd_is_refused),
		FILTER_TEST(messages_of_routers_are_claims),
		FILTER_TEST(redirect_claims_its_target),
		FILTER_TEST(cut_frames_are_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
