/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two devices on a network that loses packets chosen by the test. */
#ifndef URXE_TEST_LOSSY_H
#define URXE_TEST_LOSSY_H

#include <rxe/announcement.h>

#include "by_hand.h"

#define PACKET_LEN 1024 /* payload bytes of a packet: the path MTU of the connections below */

struct losses {
	uint64_t lost; /* bit n: the n-th frame of this direction is lost */
	bool all;      /* every frame of this direction is lost */
	unsigned seen; /* frames so far */
};

/* Filter of a link: true if the frame passes, false if it is lost. */
static inline bool passes(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct losses *losses = arg;
	unsigned n = losses->seen++;

	(void)now, (void)data, (void)len;
	return !losses->all && (n >= 64 || !(losses->lost >> n & 1));
}

struct lossy {
	struct engine e;
	struct losses losses[2]; /* [i]: frames that node i sends */
};

static inline void connect_lossy(struct lossy *l, uint8_t timeout)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.timeout = timeout;
	l->e.a = l->e.pair->node[0];
	l->e.b = l->e.pair->node[1];
	conn.path_mtu = URXE_MTU_1024;
	conn_open(l->e.pair, &conn, l->e.end);
	for (unsigned i = 0; i < 2; i++) {
		l->e.pair->link[i].filter = passes;
		l->e.pair->link[i].filter_arg = &l->losses[i];
	}
}

static inline void open_with_timeout(struct lossy *l, bool strict_a, bool strict_b, uint8_t timeout)
{
	*l = (struct lossy){0};
	l->e.pair = pair_create(&(struct pair_attr){
		.seed = 1, .mem_size = 4 << 20, .go_back_n = {strict_a, strict_b}});
	connect_lossy(l, timeout);
}

static inline void open_lossy(struct lossy *l, bool strict_a, bool strict_b)
{
	open_with_timeout(l, strict_a, strict_b, conn_default(URXE_QPT_RC).timeout);
}

/* One request of n packets, from the start of one node's memory to that of the other. */
static inline void transfer(struct lossy *l, uint32_t opcode, uint32_t n, uint64_t lost,
			    uint64_t lost_back)
{
	struct engine *e = &l->e;
	bool read = opcode == URXE_WR_RDMA_READ;
	uint8_t *from = read ? e->b->mem : e->a->mem, *to = read ? e->a->mem : e->b->mem;
	uint32_t length = n * PACKET_LEN;

	l->losses[0] = (struct losses){.lost = lost};
	l->losses[1] = (struct losses){.lost = lost_back};
	rand_fill(&(struct rand){lost + lost_back + n}, from, length);
	post_send(e, 0, &(struct post){.opcode = opcode, .length = length});
	pair_settle(e->pair);
	expect_wc(&e->a->send_cq, 0, URXE_WC_SUCCESS);
	assert_memory_equal(from, to, length);
}

/* A short exchange without loss, so that the requester knows a round-trip time. */
static inline void measure(struct lossy *l)
{
	transfer(l, URXE_WR_RDMA_WRITE, 1, 0, 0);
}

static inline void expect_again(const struct lossy *l, uint64_t packets)
{
	assert_int_equal(events(l->e.a, URXE_EVENT_RETRANSMIT), packets);
	assert_int_equal(events(l->e.a, URXE_EVENT_TIMEOUT), 0);
}

/* Local ACK timeout attribute: 67 ms. The engine waits three times as long, 201 ms. */
#define PATIENT    14
#define LONG_PROBE 10000000 /* ns; probe_ns of programs (verbs/attach/engine.c) */

/* A node gets the first len bytes of the frame by which the station `mac` announces itself. */
static inline void announce_to(struct node *node, uint64_t now, const uint8_t mac[6], uint32_t len)
{
	uint8_t data[URXE_ANNOUNCEMENT_LEN];
	const struct urxe_frame frame = {.data = data, .len = len};

	urxe_announcement_build(data, mac);
	urxe_input(node->dev, now, &frame, 1);
}

#endif
