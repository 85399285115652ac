/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state machines of two connection managers, on a network that loses, duplicates and reorders
 * messages, in virtual time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cm/cm.h>

#include "rand.h"

#define NS      UINT64_C(1000000000)
#define DELAY   20000u /* ns, one way */
#define SERVICE UINT64_C(0x1061c06)
#define PAIRS   64
#define FLYING  4096

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
	double loss, again, late;
	uint32_t lose; /* bit n: messages with attribute n are lost, until lose_n reaches 0 */
	uint32_t lose_n;
	uint32_t sent[CM_SIDR_REP + 1]; /* messages sent, by attribute, including the lost ones */
	struct cm_mad last[CM_SIDR_REP + 1]; /* the last one of each attribute */
	struct cm_path last_path;            /* of the last message */
	uint32_t n;
	struct flying flying[FLYING];
};

static struct net net;

/* --- Wire */

static void fly(int to, uint64_t delay, const uint8_t mad[CM_MAD_LEN])
{
	struct flying *f = &net.flying[net.n++];

	assert_in_range(net.n, 1, FLYING - 1);
	f->due = net.now + delay;
	f->to = to;
	memcpy(f->mad, mad, CM_MAD_LEN);
}

static void on_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN])
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

static enum cm_verdict on_request(void *ctx, struct cm_conn *conn, const struct cm_mad *mad,
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

static void on_event(void *ctx, enum cm_event event, const struct cm_mad *mad)
{
	struct end *end = ctx;

	end->events[event]++;
	if (event == CM_EVENT_REJ)
		end->reason = mad->rej.reason;
}

static const struct cm_ops ops = {on_send, on_request, on_event};

/* --- Time */

static int next_flying(void)
{
	int first = -1;

	for (uint32_t i = 0; i < net.n; i++)
		if (first < 0 || net.flying[i].due < net.flying[first].due)
			first = (int)i;
	return first;
}

static void arrive(uint32_t i)
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
static void run(uint64_t until)
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

static void run_for(uint64_t ns)
{
	run(net.now + ns);
}

/* --- Set-up and its end */

static int set_up(void **state)
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

static void let_go(struct end *end)
{
	struct cm_conn *conn = end->conn;

	end->conn = NULL;
	if (conn)
		cm_release(conn, net.now);
}

/* When neither consumer holds a connection, both connection managers free everything in the end. */
static int tear_down(void **state)
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

static struct end *a_end(void)
{
	return &net.ends[A][0];
}

static struct end *b_end(void)
{
	return &net.ends[B][0];
}

static struct cm_param param(int side, int k, const uint8_t *data, uint32_t len)
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

static void connect_pair(int k)
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
		.param = param(A, k, data, sizeof(data)),
	};

	assert_int_equal(
		cm_connect(net.cm[A], net.now, &request, &net.ends[A][k], &net.ends[A][k].conn), 0);
}

static int accept_pair(int k)
{
	const struct cm_param p = param(B, k, NULL, 0);

	return cm_accept(net.ends[B][k].conn, net.now, &p);
}

static void expect_state(const struct end *end, enum cm_state state)
{
	assert_non_null(end->conn);
	assert_int_equal(cm_state(end->conn), state);
}

static void expect_channel(const struct end *mine, const struct end *other)
{
	const struct cm_channel *c = cm_channel(mine->conn);

	assert_int_equal(c->remote_qpn, other->qpn);
	assert_int_equal(c->sq_psn, other->psn);
	assert_int_equal(c->rq_psn, mine->psn);
}

/* Both consumers answer every pending event. */
static void serve_pair(int k)
{
	struct end *a = &net.ends[A][k], *b = &net.ends[B][k];

	if (b->conn && (cm_state(b->conn) == CM_REQ_RCVD || cm_state(b->conn) == CM_MRA_REQ_SENT))
		assert_int_equal(accept_pair(k), 0);
	if (a->conn && (cm_state(a->conn) == CM_REP_RCVD || cm_state(a->conn) == CM_MRA_REP_SENT))
		assert_int_equal(cm_ready(a->conn), 0);
}

static void establish(void)
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

/* --- Connecting */

static void test_three_messages_connect(void **state)
{
	(void)state;
	connect_pair(0);
	expect_state(a_end(), CM_REQ_SENT);
	run_for(DELAY);
	expect_state(b_end(), CM_REQ_RCVD);
	assert_int_equal(cm_channel(b_end()->conn)->responder_resources, 4);
	assert_int_equal(cm_channel(b_end()->conn)->initiator_depth, 3);
	assert_int_equal(cm_channel(b_end()->conn)->path.traffic_class, 0x20);
	assert_int_equal(cm_channel(b_end()->conn)->path.flow_label, 0x12345);
	assert_int_equal(accept_pair(0), 0);
	expect_state(b_end(), CM_REP_SENT);
	run_for(DELAY);
	expect_state(a_end(), CM_REP_RCVD);
	assert_int_equal(a_end()->events[CM_EVENT_REP], 1);
	assert_int_equal(cm_channel(a_end()->conn)->responder_resources, 2);
	assert_int_equal(cm_channel(a_end()->conn)->initiator_depth, 5);
	assert_int_equal(cm_channel(a_end()->conn)->rnr_retry_count, 4);
	assert_int_equal(cm_ready(a_end()->conn), 0);
	run_for(DELAY);
	expect_state(a_end(), CM_ESTABLISHED);
	expect_state(b_end(), CM_ESTABLISHED);
	assert_int_equal(b_end()->events[CM_EVENT_ESTABLISHED], 1);
	expect_channel(a_end(), b_end());
	expect_channel(b_end(), a_end());
}

static void test_lost_req_rep_or_rtu_is_sent_again(void **state)
{
	static const uint16_t attrs[] = {CM_REQ, CM_REP, CM_RTU};

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		net.lose = 1u << attrs[i];
		net.lose_n = CM_RETRIES;
		connect_pair(0);
		for (int k = 0; k < 200; k++) {
			run_for(NS);
			serve_pair(0);
		}
		expect_state(a_end(), CM_ESTABLISHED);
		expect_state(b_end(), CM_ESTABLISHED);
		assert_int_equal(b_end()->events[CM_EVENT_ESTABLISHED], i + 1);
		assert_int_equal(net.lose_n, 0);
		let_go(a_end());
		let_go(b_end());
		run(CM_NEVER);
	}
}

static void test_unanswered_req_ends_with_req_error(void **state)
{
	(void)state;
	net.lose = 1u << CM_REQ;
	net.lose_n = UINT32_MAX;
	connect_pair(0);
	run_for(60 * NS);
	assert_int_equal(a_end()->events[CM_EVENT_REQ_ERROR], 0);
	run(CM_NEVER);
	assert_int_equal(net.sent[CM_REQ], CM_RETRIES + 1);
	assert_int_equal(a_end()->events[CM_EVENT_REQ_ERROR], 1);
	expect_state(a_end(), CM_IDLE);
}

static void test_unanswered_rep_ends_with_one_event(void **state)
{
	(void)state;
	connect_pair(0);
	run_for(DELAY);
	assert_int_equal(accept_pair(0), 0);
	net.lose = 1u << CM_REP;
	net.lose_n = UINT32_MAX;
	run_for(NS);
	let_go(a_end());
	net.lose |= 1u << CM_REJ;
	run_for(200 * NS);
	assert_int_equal(b_end()->events[CM_EVENT_REP_ERROR] + b_end()->events[CM_EVENT_REJ], 1);
}

/* A server that answers late sends an MRA when the request is repeated. */
static void test_slow_server_sends_mra(void **state)
{
	(void)state;
	connect_pair(0);
	run_for(10 * NS);
	assert_int_equal(net.sent[CM_MRA], 1);
	expect_state(a_end(), CM_MRA_REQ_RCVD);
	expect_state(b_end(), CM_MRA_REQ_SENT);
	run_for(40 * NS);
	assert_int_equal(net.sent[CM_REQ], 2);
	serve_pair(0);
	run_for(DELAY);
	serve_pair(0);
	run_for(DELAY);
	expect_state(b_end(), CM_ESTABLISHED);
}

static void test_slow_client_sends_mra(void **state)
{
	(void)state;
	connect_pair(0);
	run_for(DELAY);
	assert_int_equal(accept_pair(0), 0);
	run_for(50 * NS);
	assert_int_equal(net.sent[CM_REP], 2);
	assert_int_equal(net.sent[CM_MRA], 1);
	expect_state(b_end(), CM_MRA_REP_RCVD);
	serve_pair(0);
	run_for(DELAY);
	expect_state(b_end(), CM_ESTABLISHED);
}

static void test_data_before_rtu_establishes_the_connection(void **state)
{
	(void)state;
	connect_pair(0);
	run_for(DELAY);
	assert_int_equal(cm_established(b_end()->conn), -EINVAL);
	assert_int_equal(accept_pair(0), 0);
	net.lose = 1u << CM_RTU;
	net.lose_n = 1;
	run_for(DELAY);
	serve_pair(0);
	assert_int_equal(cm_established(b_end()->conn), 0);
	assert_int_equal(cm_established(b_end()->conn), -EISCONN);
	assert_int_equal(b_end()->events[CM_EVENT_ESTABLISHED], 1);
	run_for(20 * NS);
	assert_int_equal(net.sent[CM_REP], 1);
}

/* --- Refusing */

static void test_req_without_listener_gets_rej_invalid_service_id(void **state)
{
	(void)state;
	net.verdict = CM_REJECT_NO_LISTENER;
	connect_pair(0);
	run_for(2 * DELAY);
	assert_int_equal(a_end()->events[CM_EVENT_REJ], 1);
	assert_int_equal(a_end()->reason, CM_REJ_INVALID_SERVICE_ID);
	expect_state(a_end(), CM_IDLE);
	assert_int_equal(cm_conns(net.cm[B]), 0);
}

/* The server listens, and rejects this client. */
static void test_consumer_reject_of_a_req_reaches_the_client(void **state)
{
	(void)state;
	net.verdict = CM_REJECT_CONSUMER;
	connect_pair(0);
	run_for(2 * DELAY);
	assert_int_equal(a_end()->reason, CM_REJ_CONSUMER);
	assert_int_equal(cm_conns(net.cm[B]), 0);
}

static void test_req_to_a_full_backlog_is_repeated(void **state)
{
	(void)state;
	net.verdict = CM_FORGET;
	connect_pair(0);
	run_for(NS);
	assert_int_equal(cm_conns(net.cm[B]), 0);
	net.verdict = CM_TAKE;
	run_for(5 * NS);
	expect_state(b_end(), CM_REQ_RCVD);
}

static void test_reject_carries_at_most_148_private_bytes(void **state)
{
	static const uint8_t data[CM_REJ_PRIVATE + 1];

	(void)state;
	connect_pair(0);
	run_for(DELAY);
	assert_int_equal(cm_reject(b_end()->conn, net.now, CM_REJ_CONSUMER, data, sizeof(data)),
			 -EINVAL);
	assert_int_equal(cm_reject(b_end()->conn, net.now, CM_REJ_CONSUMER, data, CM_REJ_PRIVATE),
			 0);
	assert_int_equal(cm_reject(b_end()->conn, net.now, CM_REJ_CONSUMER, NULL, 0), -EINVAL);
	run_for(DELAY);
	assert_int_equal(a_end()->reason, CM_REJ_CONSUMER);
	expect_state(a_end(), CM_IDLE);
}

static void test_client_rejects_rep(void **state)
{
	(void)state;
	connect_pair(0);
	run_for(DELAY);
	serve_pair(0);
	run_for(DELAY);
	assert_int_equal(cm_reject(a_end()->conn, net.now, CM_REJ_CONSUMER, NULL, 0), 0);
	run_for(DELAY);
	assert_int_equal(b_end()->events[CM_EVENT_REJ], 1);
	expect_state(b_end(), CM_IDLE);
}

/* The server recognises by its GUID the connection of a client that gives up before an answer. */
static void test_released_client_rejects_its_req_with_timeout(void **state)
{
	(void)state;
	connect_pair(0);
	run_for(DELAY);
	let_go(a_end());
	run_for(DELAY);
	assert_int_equal(b_end()->events[CM_EVENT_REJ], 1);
	assert_int_equal(b_end()->reason, CM_REJ_TIMEOUT);
	assert_int_equal(accept_pair(0), -EINVAL);
	assert_int_equal(cm_conns(net.cm[A]), 0);
}

static void test_req_with_invalid_service_type_is_rejected(void **state)
{
	struct cm_request request = {.path = {.dgid = {[15] = B}}, .service = 2};

	(void)state;
	assert_int_equal(cm_connect(net.cm[A], net.now, &request, a_end(), &a_end()->conn), 0);
	run_for(2 * DELAY);
	assert_int_equal(a_end()->reason, CM_REJ_INVALID_SERVICE_TYPE);
}

static void test_req_with_invalid_mtu_gets_rej_invalid_mtu(void **state)
{
	static const uint8_t wrong[] = {0, 6, 15};
	struct cm_request request = {.path = {.dgid = {[15] = B}}, .service_id = SERVICE};

	(void)state;
	for (uint32_t i = 0; i < sizeof(wrong); i++) {
		request.mtu = wrong[i];
		a_end()->reason = 0;
		assert_int_equal(cm_connect(net.cm[A], net.now, &request, a_end(), &a_end()->conn),
				 0);
		run_for(2 * DELAY);
		assert_int_equal(a_end()->reason, CM_REJ_INVALID_MTU);
		cm_release(a_end()->conn, net.now);
	}
	a_end()->conn = NULL;
	assert_int_equal(net.requests, 0);
}

/* A connected client learns that the server has destroyed the connection before the RTU arrived. */
static void test_server_released_before_rtu_rejects_the_client(void **state)
{
	(void)state;
	connect_pair(0);
	run_for(DELAY);
	serve_pair(0);
	run_for(DELAY);
	net.lose = 1u << CM_RTU;
	net.lose_n = 1;
	serve_pair(0);
	run_for(DELAY);
	expect_state(a_end(), CM_ESTABLISHED);
	let_go(b_end());
	run_for(DELAY);
	assert_int_equal(a_end()->events[CM_EVENT_REJ], 1);
	expect_state(a_end(), CM_TIMEWAIT);
}

/* A restarted peer sends a REQ with a QPN that the server takes for connected. */
static void test_req_of_a_connected_qpn_is_rejected_as_stale(void **state)
{
	struct end *old_a = a_end(), *old_b = b_end();

	(void)state;
	establish();
	net.ends[A][1] = *old_a;
	connect_pair(0);
	run_for(2 * DELAY);
	assert_int_equal(a_end()->reason, CM_REJ_STALE);
	expect_state(a_end(), CM_TIMEWAIT);
	/*
	 * The server asks the old connection's peer by a DREQ; the peer answers, and so the old
	 * connection ends.
	 */
	expect_state(old_b, CM_DREQ_SENT);
	expect_state(&net.ends[A][1], CM_DREQ_RCVD);
}

/* --- Disconnecting */

static void test_disconnect_passes_dreq_drep_timewait_to_idle(void **state)
{
	(void)state;
	establish();
	assert_int_equal(cm_disconnect(a_end()->conn, net.now), 0);
	expect_state(a_end(), CM_DREQ_SENT);
	assert_int_equal(cm_disconnect(a_end()->conn, net.now), -EINVAL);
	run_for(DELAY);
	expect_state(b_end(), CM_DREQ_RCVD);
	assert_int_equal(b_end()->events[CM_EVENT_DREQ], 1);
	assert_int_equal(cm_disconnect(b_end()->conn, net.now), 0);
	expect_state(b_end(), CM_TIMEWAIT);
	run_for(DELAY);
	assert_int_equal(a_end()->events[CM_EVENT_DREP], 1);
	expect_state(a_end(), CM_TIMEWAIT);
	run(CM_NEVER);
	assert_int_equal(a_end()->events[CM_EVENT_TIMEWAIT_EXIT], 1);
	assert_int_equal(b_end()->events[CM_EVENT_TIMEWAIT_EXIT], 1);
	expect_state(a_end(), CM_IDLE);
}

static void test_both_disconnect_at_once(void **state)
{
	(void)state;
	establish();
	assert_int_equal(cm_disconnect(a_end()->conn, net.now), 0);
	assert_int_equal(cm_disconnect(b_end()->conn, net.now), 0);
	run_for(2 * DELAY);
	assert_int_equal(a_end()->events[CM_EVENT_DREQ], 1);
	assert_int_equal(b_end()->events[CM_EVENT_DREQ], 1);
	assert_int_equal(net.sent[CM_DREP], 2);
	expect_state(a_end(), CM_TIMEWAIT);
	expect_state(b_end(), CM_TIMEWAIT);
}

static void test_lost_drep_is_sent_again(void **state)
{
	(void)state;
	establish();
	net.lose = 1u << CM_DREP;
	net.lose_n = 3;
	assert_int_equal(cm_disconnect(a_end()->conn, net.now), 0);
	run_for(DELAY);
	let_go(b_end());
	run_for(30 * NS);
	assert_int_equal(a_end()->events[CM_EVENT_DREP], 1);
	assert_int_equal(cm_conns(net.cm[B]), 0);
}

static void test_unanswered_dreq_ends_with_dreq_error(void **state)
{
	(void)state;
	establish();
	net.lose = 1u << CM_DREQ;
	net.lose_n = UINT32_MAX;
	assert_int_equal(cm_disconnect(a_end()->conn, net.now), 0);
	run(CM_NEVER);
	assert_int_equal(net.sent[CM_DREQ], CM_RETRIES + 1);
	assert_int_equal(a_end()->events[CM_EVENT_DREQ_ERROR], 1);
	assert_int_equal(a_end()->events[CM_EVENT_TIMEWAIT_EXIT], 1);
}

static void test_release_disconnects(void **state)
{
	(void)state;
	establish();
	net.lose = 1u << CM_DREQ;
	net.lose_n = 2;
	let_go(a_end());
	run_for(20 * NS);
	assert_int_equal(b_end()->events[CM_EVENT_DREQ], 1);
	assert_int_equal(a_end()->events[CM_EVENT_DREP], 0);
}

/* The owner says by its calls of cm_tick when a DREQ is sent. */
static void test_released_connection_sends_its_dreq_from_cm_tick(void **state)
{
	(void)state;
	establish();
	let_go(a_end());
	assert_int_equal(net.sent[CM_DREQ], 0);
	assert_int_equal(cm_next_deadline(net.cm[A]), net.now);
	cm_tick(net.cm[A], net.now);
	assert_int_equal(net.sent[CM_DREQ], 1);
	run_for(NS);
	assert_int_equal(net.sent[CM_DREQ], 1);
	assert_int_equal(b_end()->events[CM_EVENT_DREQ], 1);
	assert_int_equal(cm_counters(net.cm[A])[CM_COUNT_REPEATED], 0);
}

/* --- Datagrams */

static void resolve(void)
{
	const struct cm_sidr_request request = {
		.path = {.pkey = 0xffff, .sgid = {[15] = A}, .dgid = {[15] = B}},
		.service_id = SERVICE,
		.timeout_ns = NS,
	};

	assert_int_equal(cm_sidr_resolve(net.cm[A], net.now, &request, a_end(), &a_end()->conn), 0);
}

static void test_sidr_req_is_answered_once(void **state)
{
	const struct cm_sidr_reply reply = {.qpn = 0x77, .qkey = 0x1234567};

	(void)state;
	resolve();
	net.lose = 1u << CM_SIDR_REQ;
	net.lose_n = 0;
	run_for(NS / 2);
	expect_state(b_end(), CM_SIDR_REQ_RCVD);
	run_for(2 * NS);
	assert_int_equal(net.requests, 1); /* the server recognised the repeated REQ */
	assert_int_equal(cm_sidr_answer(b_end()->conn, &reply), 0);
	assert_int_equal(cm_sidr_answer(b_end()->conn, &reply), -EINVAL);
	run_for(DELAY);
	assert_int_equal(a_end()->events[CM_EVENT_SIDR_REP], 1);
	expect_state(a_end(), CM_IDLE);
}

static void test_sidr_req_without_listener_is_refused(void **state)
{
	(void)state;
	net.verdict = CM_REJECT_NO_LISTENER;
	resolve();
	run_for(2 * DELAY);
	assert_int_equal(a_end()->events[CM_EVENT_SIDR_REP], 1);
	assert_int_equal(cm_conns(net.cm[B]), 0);
}

static void test_unanswered_sidr_req_ends_with_sidr_error(void **state)
{
	(void)state;
	net.verdict = CM_FORGET;
	resolve();
	run(CM_NEVER);
	assert_int_equal(net.sent[CM_SIDR_REQ], CM_RETRIES + 1);
	assert_int_equal(a_end()->events[CM_EVENT_SIDR_ERROR], 1);
}

/* --- Strangers */

static void test_messages_of_unknown_connections_are_counted_as_stray(void **state)
{
	static const enum cm_attr attrs[] = {CM_MRA, CM_REJ, CM_REP, CM_RTU, CM_DREP, CM_SIDR_REP};
	const struct cm_path path = {.dgid = {[15] = B}};
	const uint64_t *counters = cm_counters(net.cm[A]);
	struct cm_mad mad = {.attr = CM_DREQ, .tid = 9, .pair = {1, 2, 3}};
	uint8_t bytes[CM_MAD_LEN];

	(void)state;
	for (uint32_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		struct cm_mad other = {.attr = attrs[i]};

		cm_mad_build(&other, bytes);
		cm_input(net.cm[A], net.now, &path, bytes);
		assert_int_equal(counters[CM_COUNT_STRAY], i + 1);
	}
	assert_int_equal(net.n, 0);
	/* The server answers an RTU for an unknown connection with a REJ. */
	cm_mad_build(&mad, bytes);
	cm_input(net.cm[A], net.now, &path, bytes);
	assert_int_equal(net.n, 1);
	assert_int_equal(cm_mad_parse(&mad, net.flying[0].mad), 0);
	assert_int_equal(mad.attr, CM_DREP);
	assert_int_equal(mad.pair.local_id, 2);
	assert_int_equal(mad.pair.remote_id, 1);
	bytes[1] = 0;
	cm_input(net.cm[A], net.now, &path, bytes);
	assert_int_equal(counters[CM_COUNT_MALFORMED], 1);
}

static void arrives_from(uint8_t host, const struct cm_mad *mad)
{
	const struct cm_path path = {.sgid = {[15] = A}, .dgid = {[15] = host}};
	uint8_t bytes[CM_MAD_LEN];

	cm_mad_build(mad, bytes);
	cm_input(net.cm[A], net.now, &path, bytes);
}

/*
 * A third party that knows the communication IDs can neither end the connection nor take it over.
 */
static void test_third_party_cannot_end_or_take_a_connection(void **state)
{
	struct cm_mad mads[] = {
		{.attr = CM_DREQ, .pair = {.remote_qpn = 0x1000}},
		{.attr = CM_DREP},
		{.attr = CM_REJ, .rej = {.about = CM_ABOUT_REP, .reason = CM_REJ_CONSUMER}},
		{.attr = CM_REJ, .rej = {.about = CM_ABOUT_REQ, .reason = CM_REJ_CONSUMER}},
		{.attr = CM_REQ, .req = {.local_id = 99, .ca_guid = 0xa1, .qpn = 0x2000, .mtu = 3}},
	};

	(void)state;
	establish();
	for (int i = 0; i < 4; i++) {
		/* All begin with both IDs. */
		mads[i].tid = net.last[CM_REQ].tid;
		mads[i].rej.local_id = cm_local_id(b_end()->conn);
		mads[i].rej.remote_id = cm_local_id(a_end()->conn);
	}
	net.verdict = CM_REJECT_NO_LISTENER;
	for (uint32_t i = 0; i < sizeof(mads) / sizeof(mads[0]); i++) {
		arrives_from(7, &mads[i]);
		expect_state(a_end(), CM_ESTABLISHED);
	}
	/* The peer itself cannot reject a connection that it has accepted, either. */
	arrives_from(B, &mads[3]);
	expect_state(a_end(), CM_ESTABLISHED);
	arrives_from(B, &mads[2]);
	expect_state(a_end(), CM_TIMEWAIT);
	net.n = 0;
}

/* --- Forgeries */

/* A peer that has seen many IDs and transaction IDs cannot tell the next ones. */
static void test_ids_are_random(void **state)
{
	uint32_t ids[PAIRS], small = 0;
	uint64_t tids[PAIRS];

	(void)state;
	for (int k = 0; k < PAIRS; k++) {
		connect_pair(k);
		ids[k] = net.last[CM_REQ].req.local_id;
		tids[k] = net.last[CM_REQ].tid;
		for (int i = 0; i < k; i++) {
			small += ids[k] - ids[i] + 65536 < 131072;
			assert_true(tids[k] - tids[i] + UINT32_MAX > UINT64_C(2) * UINT32_MAX);
		}
	}
	/* Of the 2016 differences of random numbers about 0.06 are that small. */
	assert_in_range(small, 0, 2);
	net.n = 0;
}

/* Another seed makes other IDs, and the same seed the same ones. */
static void test_equal_seeds_give_equal_local_ids(void **state)
{
	const struct cm_request request = {.path = {.dgid = {[15] = B}}};
	uint32_t ids[3];
	struct cm *cm;

	(void)state;
	for (int i = 0; i < 3; i++) {
		const uint8_t seed[CM_SEED_LEN] = {[15] = i == 2};
		struct cm_conn *conn;

		assert_int_equal(cm_create(&ops, NULL, 1, seed, &cm), 0);
		assert_int_equal(cm_connect(cm, 1, &request, NULL, &conn), 0);
		ids[i] = cm_local_id(conn);
		cm_destroy(cm);
	}
	assert_int_equal(ids[0], ids[1]);
	assert_int_not_equal(ids[0], ids[2]);
	net.n = 0;
}

/*
 * A sender that uses the peer's address, and knows the communication IDs, does not know the
 * transaction ID: it can neither reject the request nor answer it in the peer's place.
 */
static void test_answers_need_the_transaction_id(void **state)
{
	const uint64_t *counters = cm_counters(net.cm[A]);
	struct cm_mad mads[] = {
		{.attr = CM_REJ, .rej = {.about = CM_ABOUT_REQ, .reason = CM_REJ_CONSUMER}},
		{.attr = CM_REP, .rep = {.local_id = 7, .ca_guid = 9, .qpn = 0x66}},
		{.attr = CM_MRA, .mra = {.about = CM_ABOUT_REQ, .timeout = 31}},
	};
	uint32_t n = sizeof(mads) / sizeof(mads[0]);

	(void)state;
	connect_pair(0);
	for (uint32_t i = 0; i < n; i++) {
		mads[i].rej.remote_id = cm_local_id(a_end()->conn);
		mads[i].tid = net.last[CM_REQ].tid + 1;
		arrives_from(B, &mads[i]);
		expect_state(a_end(), CM_REQ_SENT);
	}
	assert_int_equal(counters[CM_COUNT_FORGED], n);
	assert_int_equal(a_end()->events[CM_EVENT_REJ], 0);
	/* The peer itself is heard. */
	mads[2].tid--;
	arrives_from(B, &mads[2]);
	expect_state(a_end(), CM_MRA_REQ_RCVD);
	mads[0].tid--;
	arrives_from(B, &mads[0]);
	assert_int_equal(a_end()->events[CM_EVENT_REJ], 1);
	net.n = 0;
}

static void test_sidr_answer_needs_the_transaction_id(void **state)
{
	struct cm_mad mad = {.attr = CM_SIDR_REP, .sidr_rep = {.qpn = 0x66}};

	(void)state;
	resolve();
	mad.sidr_rep.request_id = cm_local_id(a_end()->conn);
	mad.tid = net.last[CM_SIDR_REQ].tid + 1;
	arrives_from(B, &mad);
	expect_state(a_end(), CM_SIDR_REQ_SENT);
	mad.tid--;
	arrives_from(B, &mad);
	assert_int_equal(a_end()->events[CM_EVENT_SIDR_REP], 1);
	net.n = 0;
}

/* A REQ that names the QP of a connection ends it only if the sender is known to be the peer. */
static void test_unknown_sender_ends_no_stale_connection(void **state)
{
	struct cm_mad mad = {.attr = CM_REQ, .req = {.local_id = 99, .ca_guid = 0xa1, .mtu = 3}};

	(void)state;
	establish();
	mad.req.qpn = cm_channel(a_end()->conn)->remote_qpn;
	arrives_from(B, &mad);
	expect_state(a_end(), CM_ESTABLISHED);
	assert_int_equal(net.last[CM_REJ].rej.reason, CM_REJ_STALE);
}

/* A refusal goes to the MAC that the request came from, the answer of an owner does not. */
static void test_refusal_goes_back_to_the_mac(void **state)
{
	const uint8_t mac[6] = {2, [5] = A};

	(void)state;
	net.verdict = CM_REJECT_NO_LISTENER;
	connect_pair(0);
	run_for(DELAY);
	assert_int_equal(net.sent[CM_REJ], 1);
	assert_true(net.last_path.has_mac);
	assert_memory_equal(net.last_path.mac, mac, 6);
	net.verdict = CM_TAKE;
	connect_pair(1);
	run_for(DELAY);
	assert_int_equal(accept_pair(1), 0);
	assert_int_equal(net.sent[CM_REP], 1);
	assert_false(net.last_path.has_mac);
}

/* So the end of a program with many requests resolves no addresses. */
static void test_refusal_of_a_released_request_goes_back_to_the_mac(void **state)
{
	const uint8_t mac[6] = {2, [5] = A};

	(void)state;
	connect_pair(0);
	run_for(DELAY);
	expect_state(b_end(), CM_REQ_RCVD);
	let_go(b_end());
	assert_int_equal(net.sent[CM_REJ], 1);
	assert_true(net.last_path.has_mac);
	assert_memory_equal(net.last_path.mac, mac, 6);
	run_for(DELAY);
	expect_state(a_end(), CM_IDLE);
}

/* --- Floods */

#define CROWD 10000u

/*
 * REQ number i, each from another connection, from source address `host`. `known`: the MAC is that
 * of the host, else of another station.
 */
static void flood_req(uint16_t host, uint32_t i, bool known)
{
	const struct cm_path path = {.sgid = {[15] = B},
				     .dgid = {[13] = 9, [14] = host >> 8, [15] = (uint8_t)host},
				     .has_mac = true,
				     .mac = {2, [5] = known},
				     .known = known};
	struct cm_mad mad = {.attr = CM_REQ,
			     .tid = i,
			     .req = {.local_id = i + 1,
				     .ca_guid = 0xbad,
				     .qpn = i & 0xffffff,
				     .service_id = SERVICE,
				     .mtu = CM_MTU_MAX,
				     .local_response = 20,
				     .max_cm_retries = 15}};
	uint8_t bytes[CM_MAD_LEN];

	cm_mad_build(&mad, bytes);
	cm_input(net.cm[B], net.now, &path, bytes);
}

static struct {
	struct cm_conn *conns[CROWD];
	uint32_t n, given_up;
	uint32_t dreqs; /* messages of that kind to the crowd */
} crowd;

static enum cm_verdict take_crowd(void *ctx, struct cm_conn *conn, const struct cm_mad *mad,
				  void **conn_ctx)
{
	(void)ctx;
	(void)mad;
	assert_in_range(crowd.n, 0, CROWD - 1);
	crowd.conns[crowd.n] = conn;
	*conn_ctx = &crowd.conns[crowd.n++];
	return CM_TAKE;
}

static void on_crowd_event(void *ctx, enum cm_event event, const struct cm_mad *mad)
{
	(void)ctx;
	(void)mad;
	crowd.given_up += event == CM_EVENT_REP_ERROR;
}

static void drop_message(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN])
{
	(void)ctx;
	(void)path;
	crowd.dreqs += mad[17] == CM_DREQ;
}

static int set_up_crowd(void **state)
{
	static const struct cm_ops crowd_ops = {drop_message, take_crowd, on_crowd_event};
	const uint8_t seed[CM_SEED_LEN] = {3};

	set_up(state);
	cm_destroy(net.cm[B]);
	memset(&crowd, 0, sizeof(crowd));
	return cm_create(&crowd_ops, NULL, 0xa1, seed, &net.cm[B]);
}

static int tear_down_crowd(void **state)
{
	for (uint32_t i = 0; i < crowd.n; i++)
		cm_release(crowd.conns[i], net.now);
	return tear_down(state);
}

/* One sender cannot use up the connections: it gets a limited number until it confirms some. */
static void test_requests_of_one_source_are_limited(void **state)
{
	const uint64_t *counters = cm_counters(net.cm[B]);

	(void)state;
	for (uint32_t i = 0; i < CROWD; i++)
		flood_req(1, i, false);
	assert_in_range(crowd.n, 1, CROWD / 2);
	assert_int_equal(counters[CM_COUNT_CROWDED], CROWD - crowd.n);
	/* Others are served. */
	flood_req(2, 1, false);
	assert_int_equal(counters[CM_COUNT_CROWDED], CROWD + 1 - crowd.n);
	/* What ends makes room. */
	cm_release(crowd.conns[0], net.now);
	crowd.conns[0] = crowd.conns[--crowd.n];
	flood_req(1, CROWD, false);
	assert_int_equal(counters[CM_COUNT_CROWDED], CROWD - crowd.n + 1);
}

/* Requests of another station in the name of a host do not count for the host. */
static void test_forged_requests_leave_room_for_the_host(void **state)
{
	uint32_t n;

	(void)state;
	for (uint32_t i = 0; i < CROWD; i++)
		flood_req(1, i, false);
	n = crowd.n;
	assert_in_range(n, 1, CROWD / 2);
	flood_req(1, CROWD, true);
	assert_int_equal(crowd.n, n + 1);
}

/* A request with the QPN of a host, from another station, does not make the host's own one stale.
 */
static void test_forged_request_makes_none_stale(void **state)
{
	const uint64_t *counters = cm_counters(net.cm[B]);

	(void)state;
	flood_req(1, 7, false);
	/* The same queue pair, with another communication ID. */
	flood_req(1, 7 | 1u << 24, true);
	assert_int_equal(crowd.n, 2);
	assert_int_equal(counters[CM_COUNT_STALE], 0);
	/* Of one station the second request still means that the first connection is gone. */
	flood_req(1, 7 | 2u << 24, true);
	assert_int_equal(crowd.n, 2);
	assert_int_equal(counters[CM_COUNT_STALE], 1);
}

/* Senders that never confirm are given up, the oldest first, before those that are known. */
static void test_unconfirmed_answers_are_limited(void **state)
{
	const struct cm_param param = {.qpn = 7};
	const uint64_t *counters = cm_counters(net.cm[B]);

	(void)state;
	for (uint32_t i = 0; i < CROWD; i++) {
		flood_req((uint16_t)i, i, i == 0);
		assert_int_equal(cm_accept(crowd.conns[i], net.now, &param), 0);
	}
	assert_in_range(crowd.given_up, 1, CROWD / 2);
	assert_int_equal(crowd.given_up, counters[CM_COUNT_CROWDED]);
	assert_int_equal(cm_state(crowd.conns[0]), CM_REP_SENT);
	assert_int_equal(cm_state(crowd.conns[1]), CM_IDLE);
	assert_int_equal(cm_state(crowd.conns[crowd.given_up]), CM_IDLE);
	assert_int_equal(cm_state(crowd.conns[crowd.given_up + 1]), CM_REP_SENT);
	assert_int_equal(cm_state(crowd.conns[CROWD - 1]), CM_REP_SENT);
}

/* A frozen connection is not half open, also if it is restored: it takes no other one's place. */
static void test_frozen_connection_evicts_none(void **state)
{
	const struct cm_param param = {.qpn = 7};
	struct cm_saved saved;
	struct cm_conn *restored;
	uint32_t n = 0;

	(void)state;
	/* The last answer before the limit, and then the first one that displaces another. */
	for (; n < CROWD && !crowd.given_up; n++) {
		flood_req((uint16_t)n, n, false);
		assert_int_equal(cm_accept(crowd.conns[n], net.now, &param), 0);
	}
	assert_int_equal(crowd.given_up, 1);
	cm_save(crowd.conns[n - 1], &saved);
	saved.local_id ^= 1;
	saved.by_peer = false;
	assert_int_equal(cm_restore(net.cm[B], net.now, &saved, true, NULL, &restored), 0);
	assert_int_equal(crowd.given_up, 1);
	assert_int_equal(cm_state(restored), CM_REP_SENT);
	cm_release(restored, net.now);
	assert_int_equal(cm_state(crowd.conns[1]), CM_REP_SENT);
}

/* Who connects and releases without end does not use up the connections. */
static void test_released_connections_are_limited(void **state)
{
	const struct cm_path path = {.sgid = {[15] = B}, .dgid = {[13] = 9}};
	const struct cm_param param = {.qpn = 7};
	uint8_t bytes[CM_MAD_LEN];

	(void)state;
	for (uint32_t i = 0; i < 2 * CROWD; i++) {
		struct cm_mad rtu = {.attr = CM_RTU, .pair = {.local_id = i + 1}};

		flood_req(0, i, true);
		assert_int_equal(cm_accept(crowd.conns[0], net.now, &param), 0);
		rtu.pair.remote_id = cm_local_id(crowd.conns[0]);
		cm_mad_build(&rtu, bytes);
		cm_input(net.cm[B], net.now, &path, bytes);
		assert_int_equal(cm_state(crowd.conns[0]), CM_ESTABLISHED);
		cm_release(crowd.conns[0], net.now);
		crowd.n = 0;
	}
	assert_in_range(cm_conns(net.cm[B]), CROWD, 2 * CROWD - 1);
	assert_int_equal(cm_counters(net.cm[B])[CM_COUNT_CROWDED], 2 * CROWD - cm_conns(net.cm[B]));
	/* No tick has sent a DREQ, but each peer of a dropped connection has one. */
	assert_int_equal(crowd.dreqs, cm_counters(net.cm[B])[CM_COUNT_CROWDED]);
}

/* A client asks for hours of patience by an MRA, and then is silent. */
static void test_req_with_huge_timeouts_holds_no_connection(void **state)
{
	struct cm_mad mad = {.attr = CM_REQ,
			     .req = {.local_id = 9,
				     .ca_guid = 0xbad,
				     .qpn = 0x99,
				     .service_id = SERVICE,
				     .mtu = 3,
				     .local_response = 31,
				     .max_cm_retries = 15,
				     .ack_timeout = 31}};
	const struct cm_path path = {.sgid = {[15] = B}, .dgid = {[15] = 7}};
	uint8_t bytes[CM_MAD_LEN];

	(void)state;
	cm_mad_build(&mad, bytes);
	cm_input(net.cm[B], net.now, &path, bytes);
	net.lose = 1u << CM_REP | 1u << CM_DREQ;
	net.lose_n = UINT32_MAX;
	assert_int_equal(accept_pair(0), 0);
	mad = (struct cm_mad){.attr = CM_RTU, .pair = {9, cm_local_id(b_end()->conn)}};
	cm_mad_build(&mad, bytes);
	cm_input(net.cm[B], net.now, &path, bytes);
	expect_state(b_end(), CM_ESTABLISHED);
	let_go(b_end());
	run_for(300 * NS);
	assert_int_equal(cm_conns(net.cm[B]), 0);
}

/* --- Random order of events */

static bool is_established(const struct end *end)
{
	return end->conn && cm_state(end->conn) == CM_ESTABLISHED;
}

/* The consumer acts at random, does nothing, or destroys the connection. */
static void act(int side, int k)
{
	struct end *end = &net.ends[side][k];
	uint32_t dice = rand_below(&net.rand, 100);

	if (!end->conn)
		return;
	if (dice < 3) {
		let_go(end);
		end->quit = true;
	} else if (dice < 6)
		end->quit |= !cm_reject(end->conn, net.now, CM_REJ_CONSUMER, NULL, 0);
	else if (dice < 9)
		end->quit |= !cm_disconnect(end->conn, net.now);
	else if (dice < 12 && is_established(&net.ends[!side][k])) /* which sends data */
		cm_established(end->conn);
	else if (dice < 60)
		serve_pair(k);
}

static void seed_network(uint64_t seed)
{
	net.rand.state = seed;
	net.loss = rand_below(&net.rand, 30) / 100.0;
	net.again = rand_below(&net.rand, 30) / 100.0;
	net.late = rand_below(&net.rand, 50) / 100.0;
}

/* If both consumers only wait and answer, both ends become connected on any network. */
static void test_ends_connect_despite_loss_and_reordering(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		set_up(state);
		seed_network(seed);
		for (int k = 0; k < PAIRS; k++)
			connect_pair(k);
		for (int t = 0; t < 400; t++) {
			run_for(NS);
			for (int k = 0; k < PAIRS; k++)
				serve_pair(k);
		}
		for (int k = 0; k < PAIRS; k++) {
			assert_true(is_established(&net.ends[A][k]));
			assert_true(is_established(&net.ends[B][k]));
			expect_channel(&net.ends[A][k], &net.ends[B][k]);
			expect_channel(&net.ends[B][k], &net.ends[A][k]);
		}
		tear_down(state);
	}
}

/*
 * One end may be unconnected while its peer is connected: a REJ is sent only once, and may be lost.
 */
static void expect_reason(const struct end *end)
{
	assert_true(end->quit || end->events[CM_EVENT_REP_ERROR] || end->events[CM_EVENT_REJ]);
}

/*
 * When no event is due any more, both ends are connected to each other, or have a reason not to be.
 */
static void test_random_actions_leave_both_ends_consistent(void **state)
{
	uint32_t connected = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		set_up(state);
		seed_network(seed);
		for (int k = 0; k < PAIRS; k++)
			connect_pair(k);
		for (int t = 0; t < 60; t++) {
			run_for(NS / 2);
			for (int k = 0; k < PAIRS; k++)
				act(rand_below(&net.rand, 2) ? A : B, k);
		}
		for (int t = 0; t < 400; t++) {
			run_for(NS);
			for (int k = 0; k < PAIRS; k++)
				serve_pair(k);
		}
		for (int k = 0; k < PAIRS; k++) {
			const struct end *a = &net.ends[A][k], *b = &net.ends[B][k];

			if (is_established(a) && is_established(b)) {
				expect_channel(a, b);
				expect_channel(b, a);
				connected++;
			}
			if (is_established(a) != is_established(b))
				expect_reason(is_established(a) ? b : a);
		}
		tear_down(state);
	}
	assert_int_not_equal(connected, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_three_messages_connect),
		TEST(test_lost_req_rep_or_rtu_is_sent_again),
		TEST(test_unanswered_req_ends_with_req_error),
		TEST(test_unanswered_rep_ends_with_one_event),
		TEST(test_slow_server_sends_mra),
		TEST(test_slow_client_sends_mra),
		TEST(test_data_before_rtu_establishes_the_connection),
		TEST(test_req_without_listener_gets_rej_invalid_service_id),
		TEST(test_consumer_reject_of_a_req_reaches_the_client),
		TEST(test_req_to_a_full_backlog_is_repeated),
		TEST(test_reject_carries_at_most_148_private_bytes),
		TEST(test_client_rejects_rep),
		TEST(test_released_client_rejects_its_req_with_timeout),
		TEST(test_req_with_invalid_service_type_is_rejected),
		TEST(test_req_with_invalid_mtu_gets_rej_invalid_mtu),
		TEST(test_server_released_before_rtu_rejects_the_client),
		TEST(test_req_of_a_connected_qpn_is_rejected_as_stale),
		TEST(test_disconnect_passes_dreq_drep_timewait_to_idle),
		TEST(test_both_disconnect_at_once),
		TEST(test_lost_drep_is_sent_again),
		TEST(test_unanswered_dreq_ends_with_dreq_error),
		TEST(test_release_disconnects),
		TEST(test_released_connection_sends_its_dreq_from_cm_tick),
		TEST(test_sidr_req_is_answered_once),
		TEST(test_sidr_req_without_listener_is_refused),
		TEST(test_unanswered_sidr_req_ends_with_sidr_error),
		TEST(test_messages_of_unknown_connections_are_counted_as_stray),
		TEST(test_third_party_cannot_end_or_take_a_connection),
		TEST(test_ids_are_random),
		TEST(test_equal_seeds_give_equal_local_ids),
		TEST(test_answers_need_the_transaction_id),
		TEST(test_sidr_answer_needs_the_transaction_id),
		TEST(test_unknown_sender_ends_no_stale_connection),
		TEST(test_refusal_goes_back_to_the_mac),
		TEST(test_refusal_of_a_released_request_goes_back_to_the_mac),
		cmocka_unit_test_setup_teardown(test_requests_of_one_source_are_limited,
						set_up_crowd, tear_down_crowd),
		cmocka_unit_test_setup_teardown(test_forged_requests_leave_room_for_the_host,
						set_up_crowd, tear_down_crowd),
		cmocka_unit_test_setup_teardown(test_forged_request_makes_none_stale, set_up_crowd,
						tear_down_crowd),
		cmocka_unit_test_setup_teardown(test_unconfirmed_answers_are_limited, set_up_crowd,
						tear_down_crowd),
		cmocka_unit_test_setup_teardown(test_frozen_connection_evicts_none, set_up_crowd,
						tear_down_crowd),
		cmocka_unit_test_setup_teardown(test_released_connections_are_limited, set_up_crowd,
						tear_down_crowd),
		TEST(test_req_with_huge_timeouts_holds_no_connection),
		cmocka_unit_test(test_ends_connect_despite_loss_and_reordering),
		cmocka_unit_test(test_random_actions_leave_both_ends_consistent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
