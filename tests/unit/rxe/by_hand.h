/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Node a's side of a connection, made by hand: a test builds packets for node b and reads node b's
 * answers.
 */
#ifndef URXE_TEST_BY_HAND_H
#define URXE_TEST_BY_HAND_H

#include <string.h>

#include "engine.h"

#define PAYLOAD 1024

static uint8_t payload[4096];

/* A packet from node a's QP to node b's QP, with the PSN that node b expects next. */
static inline struct urxe_packet from_peer(struct engine *e, const struct conn_attr *conn,
					   uint8_t opcode)
{
	struct urxe_packet p = {
		.payload = payload,
		.net = conn->net,
		.hop_limit = 64,
		.udp_sport = conn->net == URXE_NET_ROCEV1 ? 0 : 0xc123,
		.sgid = craft_gid(conn->net, 1),
		.dgid = craft_gid(conn->net, 2),
		.opcode = opcode,
		.pkey = 0xffff,
		.mig_req = true,
		.dest_qpn = e->end[1].qpn,
		.psn = conn->psn[0],
		.reth = {e->b->iova, e->b->key, 0},
		.atomic = {e->b->iova, e->b->key, 1, 0},
		.deth = {conn->qkey, e->end[0].qpn},
	};

	memcpy(p.smac, e->a->mac, 6);
	memcpy(p.dmac, e->b->mac, 6);
	return p;
}

static inline void inject(struct engine *e, const struct urxe_packet *p)
{
	uint8_t data[CRAFT_MAX];
	struct urxe_frame frame = {.data = data, .len = craft_frame(data, p), .room = sizeof(data)};

	urxe_input(e->b->dev, e->pair->now, &frame, 1);
}

/* Node b's answers: how many; `syndrome` and `psn` are of the last answer. */
struct answers {
	unsigned n;
	uint8_t opcode;
	uint8_t syndrome;
	uint32_t psn;
	uint32_t msn;
	uint32_t payload_len;
};

static inline struct answers answers(struct engine *e)
{
	static uint8_t data[32][4300];
	struct answers got = {0};
	struct urxe_frame frames[32];
	uint32_t n;

	for (unsigned i = 0; i < 32; i++)
		frames[i] = (struct urxe_frame){data[i], 0, sizeof(data[i])};
	n = urxe_output(e->b->dev, e->pair->now, frames, 32);
	for (uint32_t i = 0; i < n; i++) {
		struct urxe_packet p;

		assert_int_equal(urxe_packet_parse(&p, data[i], frames[i].len), URXE_DROP_NONE);
		assert_true(urxe_packet_icrc_ok(&p));
		assert_int_equal(p.dest_qpn, e->end[0].qpn);
		got = (struct answers){n,     p.opcode,   p.aeth.syndrome,
				       p.psn, p.aeth.msn, p.payload_len};
	}
	return got;
}

static inline void expect_quiet(struct engine *e)
{
	assert_int_equal(answers(e).n, 0);
}

#endif
