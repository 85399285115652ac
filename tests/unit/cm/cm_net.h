/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two connection managers on a network that loses, duplicates and reorders messages, in virtual
 * time.
 */
#ifndef URXE_TEST_CM_NET_H
#define URXE_TEST_CM_NET_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cm/cm.h>

#include "rand.h"

#define NS       UINT64_C(1000000000)
#define DELAY    20000u /* ns, one way */
#define SERVICE  UINT64_C(0x1061c06)
#define LIFETIME 17 /* of packets, 0.54 s */
#define PAIRS    64
#define FLYING   4096

enum { A, B };

/* One end of a connection, as the CM consumer sees it. */
struct end {
	struct cm_conn *conn; /* NULL: the end has no connection */
	uint32_t events[CM_EVENT_SIDR_ERROR + 1];
	uint16_t reason; /* of a REJ */
	uint32_t qpn, psn;
	bool quit; /* the consumer has rejected or destroyed the connection */
};

struct flying {
	uint64_t due;
	int to;
	uint8_t mad[CM_MAD_LEN];
};

struct net {
	struct cm *cm[2];
	struct end ends[2][PAIRS]; /* the private data contain the index, which is the same on both
				      sides */
	uint32_t requests;         /* connection requests that B's consumer got */
	enum cm_verdict verdict;
	bool known; /* address resolution has confirmed both hosts */
	uint64_t now;
	struct rand rand;
	double loss, again, late;       /* probabilities: message lost, duplicated, delayed */
	uint32_t lose;                  /* bit n: messages with attribute n are lost, */
	uint32_t lose_n;                /* this number of them, from now on */
	uint32_t sent[CM_SIDR_REP + 1]; /* messages sent, by attribute, including the lost ones */
	struct cm_mad last[CM_SIDR_REP + 1]; /* the last one of each attribute */
	struct cm_path last_path;            /* of the last message */
	uint32_t n;
	struct flying flying[FLYING];
};

static struct net net;

/* --- Wire */

static inline void fly(int to, uint64_t delay, const uint8_t mad[CM_MAD_LEN])
{
	struct flying *f = &net.flying[net.n++];

	assert_in_range(net.n, 1, FLYING - 1);
	f->due = net.now + delay;
	f->to = to;
	memcpy(f->mad, mad, CM_MAD_LEN);
}

static inline void on_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN])
{
	uint16_t attr = mad[17];
	uint64_t delay = DELAY;

	(void)ctx;
	net.sent[attr]++;
	assert_int_equal(cm_mad_parse(&net.last[attr], mad), 0);
	net.last_path = *path;
	if (net.lose & 1u << attr && net.lose_n) {
		net.lose_n--;
		return;
	}
	if (rand_chance(&net.rand, net.loss))
		return;
	/* A delay of up to ten seconds, longer than the time of a retransmission. */
	if (rand_chance(&net.rand, net.late))
		delay += rand_below(&net.rand, 10000) * (NS / 1000);
	fly(path->dgid[15], delay, mad);
	if (rand_chance(&net.rand, net.again))
		fly(path->dgid[15], delay + rand_below(&net.rand, 3000) * (NS / 1000), mad);
}

static inline enum cm_verdict on_request(void *ctx, struct cm_conn *conn, const struct cm_mad *mad,
					 void **conn_ctx)
{
	struct end *end = &net.ends[B][mad->private_data[0] % PAIRS];

	(void)ctx;
	net.requests++;
	if (net.verdict != CM_TAKE)
		return net.verdict;
	/* The consumer has answered this request, and the network lost the answer. */
	if (end->conn)
		return CM_FORGET;
	end->conn = conn;
	*conn_ctx = end;
	return CM_TAKE;
}

static inline void on_event(void *ctx, enum cm_event event, const struct cm_mad *mad)
{
	struct end *end = ctx;

	end->events[event]++;
	if (event == CM_EVENT_REJ)
		end->reason = mad->rej.reason;
}

static const struct cm_ops ops = {on_send, on_request, on_event};

/* --- Time */

static inline int next_flying(void)
{
	int first = -1;

	for (uint32_t i = 0; i < net.n; i++)
		if (first < 0 || net.flying[i].due < net.flying[first].due)
			first = (int)i;
	return first;
}

static inline void arrive(uint32_t i)
{
	struct flying f = net.flying[i];
	struct cm_path path = {.pkey = 0xffff,
			       .sgid = {[15] = (uint8_t)f.to},
			       .dgid = {[15] = (uint8_t)!f.to},
			       .has_mac = true,
			       .mac = {2, [5] = (uint8_t)!f.to},
			       .known = net.known};

	net.flying[i] = net.flying[--net.n];
	cm_input(net.cm[f.to], net.now, &path, f.mad);
}

/* Runs until `until`, or until no event is due. */
static inline void run(uint64_t until)
{
	for (;;) {
		int first = next_flying();
		uint64_t due = first < 0 ? CM_NEVER : net.flying[first].due;

		for (int i = A; i <= B; i++)
			if (cm_next_deadline(net.cm[i]) < due)
				due = cm_next_deadline(net.cm[i]);
		if (due == CM_NEVER || due > until)
			break;
		if (due > net.now)
			net.now = due;
		if (first >= 0 && net.flying[first].due <= net.now)
			arrive((uint32_t)first);
		for (int i = A; i <= B; i++)
			cm_tick(net.cm[i], net.now);
	}
	if (until != CM_NEVER)
		net.now = until;
}

static inline void run_for(uint64_t ns)
{
	run(net.now + ns);
}

/* --- Set-up and its end */

static inline int set_up(void **state)
{
	(void)state;
	memset(&net, 0, sizeof(net));
	net.now = 1;
	net.known = true;
	for (int i = A; i <= B; i++) {
		const uint8_t seed[CM_SEED_LEN] = {(uint8_t)(7 * i)};

		assert_int_equal(cm_create(&ops, NULL, 0xa0 + (uint64_t)i, seed, &net.cm[i]), 0);
	}
	return 0;
}

static inline void let_go(struct end *end)
{
	struct cm_conn *conn = end->conn;

	end->conn = NULL;
	if (conn)
		cm_release(conn, net.now);
}

/* When neither consumer holds a connection, both connection managers free everything in the end. */
static inline int tear_down(void **state)
{
	(void)state;
	for (int i = A; i <= B; i++)
		for (int k = 0; k < PAIRS; k++)
			let_go(&net.ends[i][k]);
	net.verdict = CM_REJECT_NO_LISTENER;
	run(CM_NEVER);
	for (int i = A; i <= B; i++) {
		assert_int_equal(cm_conns(net.cm[i]), 0);
		cm_destroy(net.cm[i]);
	}
	return 0;
}

/* --- Actions of the consumers */

static inline struct end *a_end(void)
{
	return &net.ends[A][0];
}

static inline struct end *b_end(void)
{
	return &net.ends[B][0];
}

static inline struct cm_param param(int side, int k, const uint8_t *data, uint32_t len)
{
	struct end *end = &net.ends[side][k];

	end->qpn = 0x1000u * (uint32_t)(side + 1) + (uint32_t)k;
	end->psn = 0x700u * (uint32_t)(side + 1) + (uint32_t)k;
	return (struct cm_param){.qpn = end->qpn,
				 .psn = end->psn,
				 .responder_resources = side == A ? 3 : 5,
				 .initiator_depth = side == A ? 4 : 2,
				 .retry_count = 6,
				 .rnr_retry_count = side == A ? 5 : 4,
				 .private_data = data,
				 .private_len = len};
}

static inline void connect_pair(int k)
{
	const uint8_t data[] = {(uint8_t)k, 0x5a};
	const struct cm_request request = {
		.path = {.pkey = 0xffff,
			 .sgid = {[15] = A},
			 .dgid = {[15] = B},
			 .hop_limit = 64,
			 .traffic_class = 0x20,
			 .flow_label = 0x12345},
		.service_id = SERVICE,
		.service = CM_SERVICE_RC,
		.mtu = 3,
		.packet_lifetime = LIFETIME,
		.param = param(A, k, data, sizeof(data)),
	};

	assert_int_equal(
		cm_connect(net.cm[A], net.now, &request, &net.ends[A][k], &net.ends[A][k].conn), 0);
}

static inline int accept_pair(int k)
{
	const struct cm_param p = param(B, k, NULL, 0);

	return cm_accept(net.ends[B][k].conn, net.now, &p);
}

static inline void expect_state(const struct end *end, enum cm_state state)
{
	assert_non_null(end->conn);
	assert_int_equal(cm_state(end->conn), state);
}

static inline void expect_channel(const struct end *mine, const struct end *other)
{
	const struct cm_channel *c = cm_channel(mine->conn);

	assert_int_equal(c->remote_qpn, other->qpn);
	assert_int_equal(c->sq_psn, other->psn);
}

/* Both consumers answer every pending event. */
static inline void serve_pair(int k)
{
	struct end *a = &net.ends[A][k], *b = &net.ends[B][k];

	if (b->conn && (cm_state(b->conn) == CM_REQ_RCVD || cm_state(b->conn) == CM_MRA_REQ_SENT))
		assert_int_equal(accept_pair(k), 0);
	if (a->conn && (cm_state(a->conn) == CM_REP_RCVD || cm_state(a->conn) == CM_MRA_REP_SENT))
		assert_int_equal(cm_ready(a->conn), 0);
}

static inline void establish(void)
{
	connect_pair(0);
	run_for(DELAY);
	serve_pair(0);
	run_for(DELAY);
	serve_pair(0);
	run_for(DELAY);
	expect_state(a_end(), CM_ESTABLISHED);
	expect_state(b_end(), CM_ESTABLISHED);
}

static inline void resolve(void)
{
	const struct cm_sidr_request request = {
		.path = {.pkey = 0xffff, .sgid = {[15] = A}, .dgid = {[15] = B}},
		.service_id = SERVICE,
		.timeout_ns = NS,
	};

	assert_int_equal(cm_sidr_resolve(net.cm[A], net.now, &request, a_end(), &a_end()->conn), 0);
}

/* A test between set_up and tear_down. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
