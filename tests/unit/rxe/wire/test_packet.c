/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The packet parser: every field of every header, and every kind of malformed packet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rxe/opcode.h>
#include <rxe/packet.h>

#include "craft.h"
#include "rand.h"
#include "table38.h"

static const uint8_t payload[] = "The quick brown fox jumps over the lazy dog.";

static struct urxe_packet sample(enum urxe_net net, uint8_t opcode)
{
	const struct table38_row *row = table38_find(opcode);
	bool has_payload = row && row->contents & T38_PAYLOAD;
	struct urxe_packet p = {
		.payload = payload,
		.payload_len = opcode == 0x81 ? 16
			       : has_payload  ? 21
					      : 0,
		.dmac = {2, 0xd, 3, 4, 5, 6},
		.smac = {2, 0x5, 7, 8, 9, 10},
		.net = net,
		.traffic_class = 0xa5,
		.hop_limit = 61,
		.flow_label = net == URXE_NET_IPV4 ? 0 : 0xfedcb,
		.udp_sport = net == URXE_NET_ROCEV1 ? 0 : 0xc0de,
		.sgid = craft_gid(net, 0x51),
		.dgid = craft_gid(net, 0xd1),
		.opcode = opcode,
		.solicited = true,
		.mig_req = true,
		.fecn = true,
		.becn = true,
		.ack_req = true,
		.pkey = 0x8123,
		.dest_qpn = 0xabcdef,
		.psn = 0xfedcba,
		.deth = {0x80010203, 0xc0ffee},
		.feth = {0x5, 0x2},
		.reth = {0x0123456789abcdef, 0xdeadbeef, 0x80000000},
		.atomic = {0xfedcba9876543210, 0x600df00d, 0x1122334455667788, 0x99aabbccddeeff00},
		.aeth = {0x7f, 0x123456},
		.atomic_ack = 0xcafebabe01234567,
		.imm = 0x04030201,
		.ieth_rkey = 0x55aa55aa,
	};

	p.pad = -p.payload_len & 3;
	return p;
}

static void check_fields(const struct urxe_packet *got, const struct urxe_packet *want)
{
	uint16_t contents = table38_find(want->opcode)->contents;

	assert_memory_equal(got->dmac, want->dmac, 6);
	assert_memory_equal(got->smac, want->smac, 6);
	assert_int_equal(got->has_vlan, want->has_vlan);
	assert_int_equal(got->vlan_tci, want->vlan_tci);
	assert_int_equal(got->net, want->net);
	assert_int_equal(got->traffic_class, want->traffic_class);
	assert_int_equal(got->hop_limit, want->hop_limit);
	assert_int_equal(got->flow_label, want->flow_label);
	assert_int_equal(got->udp_sport, want->udp_sport);
	assert_memory_equal(&got->sgid, &want->sgid, 16);
	assert_memory_equal(&got->dgid, &want->dgid, 16);
	assert_int_equal(got->opcode, want->opcode);
	assert_int_equal(got->solicited, want->solicited);
	assert_int_equal(got->mig_req, want->mig_req);
	assert_int_equal(got->fecn, want->fecn);
	assert_int_equal(got->becn, want->becn);
	assert_int_equal(got->ack_req, want->ack_req);
	assert_int_equal(got->pad, want->pad);
	assert_int_equal(got->pkey, want->pkey);
	assert_int_equal(got->dest_qpn, want->dest_qpn);
	assert_int_equal(got->psn, want->psn);
	assert_int_equal(got->payload_len, want->payload_len);
	if (want->payload_len)
		assert_memory_equal(got->payload, want->payload, want->payload_len);
	if (contents & T38_DETH) {
		assert_int_equal(got->deth.qkey, want->deth.qkey);
		assert_int_equal(got->deth.src_qpn, want->deth.src_qpn);
	}
	if (contents & T38_RETH) {
		assert_true(got->reth.va == want->reth.va);
		assert_int_equal(got->reth.rkey, want->reth.rkey);
		assert_int_equal(got->reth.length, want->reth.length);
	}
	if (contents & T38_FETH) {
		assert_int_equal(got->feth.placement, want->feth.placement);
		assert_int_equal(got->feth.selectivity, want->feth.selectivity);
	}
	if (contents & T38_IETH)
		assert_int_equal(got->ieth_rkey, want->ieth_rkey);
	if (contents & T38_ATOMICETH) {
		assert_true(got->atomic.va == want->atomic.va);
		assert_int_equal(got->atomic.rkey, want->atomic.rkey);
		assert_true(got->atomic.swap_add == want->atomic.swap_add);
		assert_true(got->atomic.compare == want->atomic.compare);
	}
	if (contents & T38_AETH) {
		assert_int_equal(got->aeth.syndrome, want->aeth.syndrome);
		assert_int_equal(got->aeth.msn, want->aeth.msn);
	}
	if (contents & T38_ATOMICACKETH)
		assert_true(got->atomic_ack == want->atomic_ack);
	if (contents & T38_IMMDT)
		assert_int_equal(got->imm, want->imm);
}

static void test_every_field_is_parsed(void **state)
{
	static uint8_t frame[CRAFT_MAX];

	(void)state;
	for (int vlan = 0; vlan < 2; vlan++)
		for (int net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++)
			for (unsigned i = 0; i < table38_rows; i++) {
				struct urxe_packet want = sample(net, table38[i].opcode), got;
				uint32_t len;

				want.has_vlan = vlan;
				want.vlan_tci = vlan ? 0xe123 : 0;
				len = craft_frame(frame, &want);
				if (!table38[i].spoken) {
					assert_int_equal(urxe_packet_parse(&got, frame, len),
							 URXE_DROP_XRC);
					continue;
				}
				assert_int_equal(urxe_packet_parse(&got, frame, len),
						 URXE_DROP_NONE);
				check_fields(&got, &want);
				assert_ptr_equal(got.l3, frame + 14 + 4 * vlan);
				assert_ptr_equal(got.icrc, frame + len - 4);
				assert_true(urxe_packet_icrc_ok(&got));
			}
}

/* Sets one one-bit field at a time, so that the parser cannot confuse two. */
static void test_flags_are_distinct(void **state)
{
	uint8_t frame[CRAFT_MAX];

	(void)state;
	for (unsigned bit = 0; bit < 5; bit++) {
		struct urxe_packet want = sample(URXE_NET_IPV4, 0x04), got;

		want.solicited = bit == 0;
		want.mig_req = bit == 1;
		want.fecn = bit == 2;
		want.becn = bit == 3;
		want.ack_req = bit == 4;
		assert_int_equal(urxe_packet_parse(&got, frame, craft_frame(frame, &want)),
				 URXE_DROP_NONE);
		check_fields(&got, &want);
	}
}

static void test_pad_count_is_checked(void **state)
{
	uint8_t frame[CRAFT_MAX];

	(void)state;
	for (uint32_t length = 0; length <= 40; length++) {
		struct urxe_packet want = sample(URXE_NET_IPV6, 0x24), got;

		want.payload_len = length;
		want.pad = -length & 3;
		assert_int_equal(urxe_packet_parse(&got, frame, craft_frame(frame, &want)),
				 URXE_DROP_NONE);
		check_fields(&got, &want);
		want.pad = (want.pad + 1) & 3; /* then the length is no multiple of four */
		assert_int_equal(urxe_packet_parse(&got, frame, craft_frame(frame, &want)),
				 URXE_DROP_BAD_LENGTH);
	}
}

/* A short frame is padded to 60 bytes by Ethernet; the packet ends where IP says. */
static void test_ethernet_padding_is_ignored(void **state)
{
	uint8_t frame[CRAFT_MAX] = {0};

	(void)state;
	for (int net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++) {
		struct urxe_packet want = sample(net, 0x11), got;
		uint32_t len = craft_frame(frame, &want);

		memset(frame + len, 0xff, 50);
		assert_int_equal(urxe_packet_parse(&got, frame, len + 50), URXE_DROP_NONE);
		check_fields(&got, &want);
		assert_true(urxe_packet_icrc_ok(&got));
	}
}

/*
 * The parser refuses a frame cut at any length, with a named reason, and reads nothing behind its
 * end: each cut frame has its own allocation, for AddressSanitizer.
 */
static void test_truncated_frames_are_refused(void **state)
{
	uint8_t frame[CRAFT_MAX];

	(void)state;
	for (int net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++)
		for (unsigned i = 0; i < table38_rows; i++) {
			struct urxe_packet want = sample(net, table38[i].opcode), got;
			uint32_t len = craft_frame(frame, &want);

			for (uint32_t cut = 0; cut < len; cut++) {
				uint8_t *piece = malloc(cut ? cut : 1);
				enum urxe_drop drop;

				assert_non_null(piece);
				memcpy(piece, frame, cut);
				drop = urxe_packet_parse(&got, piece, cut);
				free(piece);
				assert_true(drop == URXE_DROP_NOT_ROCE ||
					    drop == URXE_DROP_TRUNCATED);
				assert_null(got.bth);
				/*
				 * From the UDP header on, the parser can tell that the frame is
				 * RoCE.
				 */
				if (cut >= 14 + 48)
					assert_int_equal(drop, URXE_DROP_TRUNCATED);
			}
		}
}

struct damage {
	const char *what;
	uint8_t net;
	uint8_t opcode;
	uint16_t offset; /* from the start of the frame */
	uint8_t value;
	enum urxe_drop drop;
};

static const struct damage damages[] = {
	{"EtherType of ARP", URXE_NET_IPV4, 0x04, 13, 0x06, URXE_DROP_NOT_ROCE},
	{"EtherType of IPv6 in front of IPv4", URXE_NET_IPV4, 0x04, 12, 0x86, URXE_DROP_NOT_ROCE},
	{"IPv4: TCP", URXE_NET_IPV4, 0x04, 14 + 9, 6, URXE_DROP_NOT_ROCE},
	{"IPv4: UDP port 4790", URXE_NET_IPV4, 0x04, 14 + 23, 0xb6, URXE_DROP_NOT_ROCE},
	{"IPv4: UDP port 0x13b7", URXE_NET_IPV4, 0x04, 14 + 22, 0x13, URXE_DROP_NOT_ROCE},
	{"IPv4: version 5", URXE_NET_IPV4, 0x04, 14, 0x55, URXE_DROP_BAD_IP},
	{"IPv4: more fragments", URXE_NET_IPV4, 0x04, 14 + 6, 0x20, URXE_DROP_BAD_IP},
	{"IPv4: total length 0", URXE_NET_IPV4, 0x04, 14 + 3, 0, URXE_DROP_BAD_IP},
	{"IPv4: total length 19", URXE_NET_IPV4, 0x04, 14 + 3, 19, URXE_DROP_BAD_IP},
	{"IPv4: total length 20", URXE_NET_IPV4, 0x04, 14 + 3, 20, URXE_DROP_BAD_UDP},
	{"IPv4: total length 27", URXE_NET_IPV4, 0x04, 14 + 3, 27, URXE_DROP_BAD_UDP},
	{"IPv4: total length past the frame", URXE_NET_IPV4, 0x04, 14 + 2, 1, URXE_DROP_TRUNCATED},
	{"IPv4: total length one short", URXE_NET_IPV4, 0x04, 14 + 3, 67, URXE_DROP_BAD_UDP},
	{"IPv4: UDP length short", URXE_NET_IPV4, 0x04, 14 + 25, 20, URXE_DROP_BAD_UDP},
	{"IPv4: UDP length 0", URXE_NET_IPV4, 0x04, 14 + 25, 0, URXE_DROP_BAD_UDP},
	{"IPv4: UDP length long", URXE_NET_IPV4, 0x04, 14 + 24, 1, URXE_DROP_BAD_UDP},
	{"IPv6: TCP", URXE_NET_IPV6, 0x04, 14 + 6, 6, URXE_DROP_NOT_ROCE},
	{"IPv6: fragment header", URXE_NET_IPV6, 0x04, 14 + 6, 44, URXE_DROP_NOT_ROCE},
	{"IPv6: version 4", URXE_NET_IPV6, 0x04, 14, 0x4a, URXE_DROP_BAD_IP},
	{"IPv6: UDP port 4790", URXE_NET_IPV6, 0x04, 14 + 43, 0xb6, URXE_DROP_NOT_ROCE},
	{"IPv6: payload length 0", URXE_NET_IPV6, 0x04, 14 + 5, 0, URXE_DROP_BAD_UDP},
	{"IPv6: payload length past the frame", URXE_NET_IPV6, 0x04, 14 + 4, 1,
	 URXE_DROP_TRUNCATED},
	{"IPv6: UDP length long", URXE_NET_IPV6, 0x04, 14 + 44, 1, URXE_DROP_BAD_UDP},
	{"GRH: next header of UDP", URXE_NET_ROCEV1, 0x04, 14 + 6, 17, URXE_DROP_BAD_IP},
	{"GRH: version 5", URXE_NET_ROCEV1, 0x04, 14, 0x5a, URXE_DROP_BAD_IP},
	{"GRH: payload length 0", URXE_NET_ROCEV1, 0x04, 14 + 5, 0, URXE_DROP_BAD_LENGTH},
	{"GRH: payload length of a BTH and 3", URXE_NET_ROCEV1, 0x04, 14 + 5, 15,
	 URXE_DROP_BAD_LENGTH},
	{"GRH: payload length past the frame", URXE_NET_ROCEV1, 0x04, 14 + 4, 1,
	 URXE_DROP_TRUNCATED},
	{"BTH: transport version 1", URXE_NET_IPV4, 0x04, 14 + 28 + 1, 0x31, URXE_DROP_BAD_TVER},
	{"BTH: transport version 8", URXE_NET_IPV4, 0x04, 14 + 28 + 1, 0x38, URXE_DROP_BAD_TVER},
	{"BTH: RD", URXE_NET_IPV4, 0x04, 14 + 28, 0x44, URXE_DROP_BAD_OPCODE},
	{"BTH: XRC", URXE_NET_IPV4, 0x04, 14 + 28, 0xa4, URXE_DROP_XRC},
	{"BTH: reserved opcode", URXE_NET_IPV4, 0x04, 14 + 28, 0x1f, URXE_DROP_BAD_OPCODE},
	{"BTH: opcode 0xff", URXE_NET_IPV4, 0x04, 14 + 28, 0xff, URXE_DROP_BAD_OPCODE},
	{"acknowledgement with payload", URXE_NET_IPV4, 0x04, 14 + 28, 0x11, URXE_DROP_BAD_LENGTH},
	{"READ request with payload", URXE_NET_IPV4, 0x04, 14 + 28, 0x0c, URXE_DROP_BAD_LENGTH},
	{"atomic without its header", URXE_NET_IPV4, 0x04, 14 + 28, 0x13, URXE_DROP_BAD_LENGTH},
	{"CNP too long", URXE_NET_IPV4, 0x04, 14 + 28, 0x81, URXE_DROP_BAD_LENGTH},
	{"CNP of 12 bytes and pad", URXE_NET_IPV4, 0x81, 14 + 28 + 1, 0x30, URXE_DROP_BAD_LENGTH},
	{"acknowledgement with a pad count", URXE_NET_IPV4, 0x11, 14 + 28 + 1, 0x10,
	 URXE_DROP_BAD_LENGTH},
};

static void test_malformed_packets_are_refused(void **state)
{
	uint8_t frame[CRAFT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		const struct damage *d = &damages[i];
		struct urxe_packet p = sample(d->net, d->opcode);
		uint32_t len = craft_frame(frame, &p);
		enum urxe_drop drop;

		assert_int_equal(urxe_packet_parse(&p, frame, len), URXE_DROP_NONE);
		assert_int_not_equal(frame[d->offset], d->value);
		frame[d->offset] = d->value;
		drop = urxe_packet_parse(&p, frame, len);
		if (drop != d->drop)
			fail_msg("%s: %s, not %s", d->what, urxe_drop_name(drop),
				 urxe_drop_name(d->drop));
	}
}

/* Header length of 6 words: IPv4 options, which RoCEv2 does not allow (A17.3.1.1). */
static void test_ipv4_options_are_refused(void **state)
{
	uint8_t frame[CRAFT_MAX];
	struct urxe_packet p = sample(URXE_NET_IPV4, 0x04);
	uint32_t len = craft_frame(frame, &p);

	(void)state;
	memmove(frame + 14 + 24, frame + 14 + 20, len - 34);
	memset(frame + 14 + 20, 1, 4); /* no-operation options */
	frame[14] = 0x46;
	craft_put16(frame + 16, craft_get16(frame + 16) + 4);
	assert_int_equal(urxe_packet_parse(&p, frame, len + 4), URXE_DROP_BAD_IP);
	frame[14] =
		0x44; /* shorter than an IPv4 header, so the UDP port 4791 is not at that place */
	assert_int_not_equal(urxe_packet_parse(&p, frame, len + 4), URXE_DROP_NONE);
	frame[14] = 0x4f; /* options that end after the frame */
	assert_int_not_equal(urxe_packet_parse(&p, frame, 14 + 28), URXE_DROP_NONE);
}

/* The parser accepts one VLAN tag. A frame with two tags is not RoCE. */
static void test_double_tag_is_not_roce(void **state)
{
	static const struct {
		uint16_t outer, inner;
	} rows[] = {{0x8100, 0x8100}, {0x88a8, 0x8100}, {0x88a8, 0x88a8}, {0x8100, 0x88a8}};

	(void)state;
	for (enum urxe_net net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			uint8_t frame[CRAFT_MAX];
			struct urxe_packet p = sample(net, 0x04);
			uint32_t len;

			p.has_vlan = true;
			p.vlan_tci = 5;
			len = craft_frame(frame, &p);
			craft_put16(frame + 12, 0x88a8); /* an 802.1ad tag alone */
			assert_int_equal(urxe_packet_parse(&p, frame, len), URXE_DROP_DOUBLE_VLAN);
			memmove(frame + 16, frame + 12, len - 12);
			len += 4;
			craft_put16(frame + 12, rows[i].outer);
			craft_put16(frame + 16, rows[i].inner);
			assert_int_equal(urxe_packet_parse(&p, frame, len), URXE_DROP_DOUBLE_VLAN);
			assert_int_equal(urxe_packet_parse(&p, frame, 19), URXE_DROP_NOT_ROCE);
			craft_put16(frame + 20, 0x0806);
			assert_int_equal(urxe_packet_parse(&p, frame, len), URXE_DROP_NOT_ROCE);
		}
}

static void parse_copy(const uint8_t *data, uint32_t len)
{
	uint8_t *frame = malloc(len ? len : 1);
	struct urxe_packet p;

	assert_non_null(frame);
	memcpy(frame, data, len);
	if (urxe_packet_parse(&p, frame, len) == URXE_DROP_NONE) {
		assert_in_range((uintptr_t)p.payload, (uintptr_t)frame, (uintptr_t)p.icrc);
		assert_int_equal(p.payload + p.payload_len + p.pad - p.icrc, 0);
		assert_true(p.icrc + 4 <= frame + len);
		(void)urxe_packet_icrc_ok(&p);
	}
	free(frame);
}

/* Random bytes, and good frames with a few random bytes. */
static void test_random_frames_do_no_harm(void **state)
{
	struct rand r = {2};
	uint8_t frame[CRAFT_MAX];

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t len = rand_below(&r, 200);

		rand_fill(&r, frame, len);
		parse_copy(frame, len);
	}
	for (unsigned i = 0; i < 60000; i++) {
		struct urxe_packet p = sample(i % 3, table38[i % table38_rows].opcode);
		uint32_t len;

		p.has_vlan = i & 8;
		len = craft_frame(frame, &p);
		for (unsigned n = rand_below(&r, 4); n; n--)
			frame[12 + rand_below(&r, len - 12)] = (uint8_t)rand_next(&r);
		parse_copy(frame, rand_chance(&r, 0.2) ? rand_below(&r, len) : len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_field_is_parsed),
		cmocka_unit_test(test_flags_are_distinct),
		cmocka_unit_test(test_pad_count_is_checked),
		cmocka_unit_test(test_ethernet_padding_is_ignored),
		cmocka_unit_test(test_truncated_frames_are_refused),
		cmocka_unit_test(test_malformed_packets_are_refused),
		cmocka_unit_test(test_ipv4_options_are_refused),
		cmocka_unit_test(test_double_tag_is_not_roce),
		cmocka_unit_test(test_random_frames_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
