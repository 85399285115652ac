/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ICRC: test vectors of other implementations, and its coverage, bit by bit (A16.5, A17.3.3).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rxe/packet.h>

#include "craft.h"
#include "engine.h"
#include "icrc_vectors.h"
#include "rand.h"

#define N_VECTORS (sizeof(icrc_vectors) / sizeof(icrc_vectors[0]))

static void test_test_vectors_match(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_VECTORS; i++) {
		const struct icrc_vector *v = &icrc_vectors[i];
		struct urxe_packet p;

		assert_int_equal(urxe_packet_parse(&p, v->frame, v->len), URXE_DROP_NONE);
		assert_int_equal(p.net, v->net);
		assert_int_equal(p.opcode, v->opcode);
		assert_true(urxe_packet_icrc_ok(&p));
	}
}

struct region {
	uint32_t offset, bits_from,
		bits; /* bit 0 is the most significant bit of the byte at `offset` */
};

/* Fields that a router or switch may change: offsets from the IP or GRH header. */
static bool is_masked(const struct icrc_vector *v, uint32_t l3, uint32_t bit)
{
	static const struct region ipv4[] = {
		{1, 0, 8}, {8, 0, 8}, {10, 0, 16}, {26, 0, 16}, {32, 0, 8}};
	static const struct region ipv6[] = {{0, 4, 28}, {7, 0, 8}, {46, 0, 16}, {52, 0, 8}};
	static const struct region grh[] = {{0, 4, 28}, {7, 0, 8}, {44, 0, 8}};
	static const struct {
		const struct region *regions;
		unsigned n;
	} by_net[] = {
		[URXE_NET_ROCEV1] = {grh, 3},
		[URXE_NET_IPV4] = {ipv4, 5},
		[URXE_NET_IPV6] = {ipv6, 4},
	};

	for (unsigned i = 0; i < by_net[v->net].n; i++) {
		const struct region *r = &by_net[v->net].regions[i];
		uint32_t from = (l3 + r->offset) * 8 + r->bits_from;

		if (bit >= from && bit < from + r->bits)
			return true;
	}
	return false;
}

/*
 * Flips every bit after the Ethernet header. The parser must refuse the packet if the ICRC covers
 * the bit, and accept it otherwise. A packet that no longer parses is refused, too.
 */
static void test_icrc_covers_the_specified_bits(void **state)
{
	uint32_t masked = 0;

	(void)state;
	for (size_t i = 0; i < N_VECTORS; i++) {
		const struct icrc_vector *v = &icrc_vectors[i];
		uint32_t l3 = craft_get16(v->frame + 12) == 0x8100 ? 18 : 14;
		uint8_t frame[sizeof(v->frame)];

		memcpy(frame, v->frame, v->len);
		for (uint32_t bit = l3 * 8; bit < v->len * 8; bit++) {
			struct urxe_packet p;
			bool ok;

			frame[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
			ok = urxe_packet_parse(&p, frame, v->len) == URXE_DROP_NONE &&
			     urxe_packet_icrc_ok(&p);
			if (ok != is_masked(v, l3, bit))
				fail_msg("%s: byte %u bit %u behind L2: %s", v->name, bit / 8 - l3,
					 bit % 8, ok ? "taken" : "refused");
			masked += ok;
			frame[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		}
	}
	assert_true(masked > N_VECTORS * 40);
}

/* The ICRC does not cover Ethernet addresses, VLAN tags and Ethernet padding. */
static void test_icrc_excludes_ethernet(void **state)
{
	uint8_t frame[400];
	struct urxe_packet p;

	(void)state;
	for (size_t i = 0; i < N_VECTORS; i++) {
		memset(frame, 0xee, sizeof(frame));
		memcpy(frame, icrc_vectors[i].frame, icrc_vectors[i].len);
		memset(frame, 0x55, 12);
		assert_int_equal(urxe_packet_parse(&p, frame, sizeof(frame)), URXE_DROP_NONE);
		assert_true(urxe_packet_icrc_ok(&p));
		assert_ptr_equal(p.icrc, frame + icrc_vectors[i].len - 4);
	}
}

/* Compares with a bitwise computation, for all networks and lengths. */
static void test_icrc_equals_bitwise_computation(void **state)
{
	static uint8_t frame[CRAFT_MAX], payload[4096];
	struct rand r = {1};

	(void)state;
	rand_fill(&r, payload, sizeof(payload));
	for (unsigned i = 0; i < 600; i++) {
		struct urxe_packet p = {
			.net = (uint8_t)(i % 3),
			.opcode = 0x04,
			.payload = payload,
			.payload_len = rand_below(&r, i % 10 ? 200 : 4097),
			.traffic_class = (uint8_t)rand_next(&r),
			.flow_label = rand_below(&r, 1 << 20),
			.hop_limit = (uint8_t)rand_next(&r),
			.psn = rand_below(&r, 1 << 24),
			.dest_qpn = rand_below(&r, 1 << 24),
			.fecn = i & 1,
			.becn = i & 2,
		};
		uint32_t len;

		p.pad = -p.payload_len & 3;
		p.sgid = craft_gid(p.net, 1);
		p.dgid = craft_gid(p.net, 2);
		len = craft_frame(frame, &p);
		assert_int_equal(urxe_packet_parse(&p, frame, len), URXE_DROP_NONE);
		assert_true(urxe_packet_icrc_ok(&p));
	}
}

/* urxe_frame_add_icrc finds the place of the ICRC in front of Ethernet padding, too. */
static void test_add_icrc_gives_the_right_icrc(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_VECTORS; i++) {
		const struct icrc_vector *v = &icrc_vectors[i];
		uint8_t frame[sizeof(v->frame) + 8] = {0};

		memcpy(frame, v->frame, v->len - 4);
		urxe_frame_add_icrc(frame, v->len);
		assert_memory_equal(frame, v->frame, v->len);
		memset(frame + v->len - 4, 0, 4);
		urxe_frame_add_icrc(frame, v->len + 8);
		assert_memory_equal(frame, v->frame, v->len);
	}
}

/* What is not a RoCE packet stays as it is. */
static void test_add_icrc_leaves_other_frames(void **state)
{
	uint8_t frame[60] = {0}, before[sizeof(frame)];

	(void)state;
	memcpy(frame, icrc_vectors[0].frame, 14);
	memcpy(before, frame, sizeof(frame));
	urxe_frame_add_icrc(frame, sizeof(frame));
	assert_memory_equal(frame, before, sizeof(frame));
}

/* --- Packets that stay on the host (urxe_dev_attr.omit_local_icrc). */

#define UNDEFINED 0xa5

struct sent {
	struct engine e;
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame;
};

/* Node 0 sends one packet to node 1, in a frame that was full of UNDEFINED bytes. */
static void open_sent(struct sent *s, enum urxe_net net, uint32_t length, bool same_mac)
{
	const struct pair_attr attr = {.seed = 1, .omit_local_icrc = true, .same_mac = same_mac};
	struct post post = {.wr_id = 5, .opcode = URXE_WR_SEND, .flags = URXE_SEND_SIGNALED};
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.net = net;
	s->e.pair = pair_create(&attr);
	s->e.a = s->e.pair->node[0];
	s->e.b = s->e.pair->node[1];
	conn_open(s->e.pair, &conn, s->e.end);
	memset(s->e.a->mem, 0x3c, length);
	memset(s->e.b->mem, 0, length);
	post_recv(&s->e.end[1], 6, 0, length);
	post.length = length;
	post_send(&s->e, 0, &post);
	memset(s->data, UNDEFINED, sizeof(s->data));
	s->frame = (struct urxe_frame){.data = s->data, .room = sizeof(s->data)};
	assert_int_equal(urxe_output(s->e.a->dev, s->e.pair->now, &s->frame, 1), 1);
}

static bool has_icrc(const struct sent *s)
{
	struct urxe_packet p;

	assert_int_equal(urxe_packet_parse(&p, s->data, s->frame.len), URXE_DROP_NONE);
	assert_ptr_equal(p.icrc, s->data + s->frame.len - 4);
	return urxe_packet_icrc_ok(&p);
}

static bool is_icrc_undefined(const struct sent *s)
{
	for (uint32_t i = s->frame.len - 4; i < s->frame.len; i++)
		if (s->data[i] != UNDEFINED)
			return false;
	return true;
}

/* Whether node 1 accepts the frame. */
static bool is_accepted(struct sent *s, uint32_t length)
{
	struct urxe_wc wc;

	urxe_input(s->e.b->dev, s->e.pair->now, &s->frame, 1);
	if (!node_poll(&s->e.b->recv_cq, &wc))
		return false;
	assert_int_equal(wc.byte_len, length);
	assert_memory_equal(s->e.b->mem, s->e.a->mem, length);
	return true;
}

static void check_local(enum urxe_net net, uint32_t length)
{
	static struct sent s;

	open_sent(&s, net, length, true);
	assert_true(is_icrc_undefined(&s));
	assert_false(is_accepted(&s, length));
	assert_int_equal(urxe_dev_counters(s.e.b->dev)->drop[URXE_DROP_BAD_ICRC], 1);
	s.frame.without_icrc = true;
	assert_true(is_accepted(&s, length));
	pair_destroy(s.e.pair);

	open_sent(&s, net, length, true);
	urxe_frame_add_icrc(s.data, s.frame.len);
	assert_true(has_icrc(&s));
	assert_true(is_accepted(&s, length));
	pair_destroy(s.e.pair);
}

static void check_remote(enum urxe_net net, uint32_t length)
{
	static struct sent s;

	open_sent(&s, net, length, false);
	assert_true(has_icrc(&s));
	assert_true(is_accepted(&s, length));
	pair_destroy(s.e.pair);
}

/* With and without padding, and of a size for which the copy computes the CRC. */
static void test_local_packets_have_no_icrc(void **state)
{
	static const uint32_t lengths[] = {1, 8, 1023, 1024};

	(void)state;
	for (int net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++)
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			check_local((enum urxe_net)net, lengths[i]);
			check_remote((enum urxe_net)net, lengths[i]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_test_vectors_match),
		cmocka_unit_test(test_icrc_covers_the_specified_bits),
		cmocka_unit_test(test_icrc_excludes_ethernet),
		cmocka_unit_test(test_icrc_equals_bitwise_computation),
		cmocka_unit_test(test_add_icrc_gives_the_right_icrc),
		cmocka_unit_test(test_add_icrc_leaves_other_frames),
		cmocka_unit_test(test_local_packets_have_no_icrc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
