/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of senders that are not the peer: unknown IDs, forged answers, floods. */
#include "cm_net.h"
#include "conn_id.h"

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
		mads[i].rej.local_id = conn_id(b_end()->conn);
		mads[i].rej.remote_id = conn_id(a_end()->conn);
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
		ids[i] = conn_id(conn);
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
		mads[i].rej.remote_id = conn_id(a_end()->conn);
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
	mad.sidr_rep.request_id = conn_id(a_end()->conn);
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
 * REQ number i to a service, each from another connection, from source address `host`. `known`: the
 * MAC is that of the host, else of another station.
 */
static void flood_service(uint64_t service, uint16_t host, uint32_t i, bool known)
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
				     .service_id = service,
				     .mtu = CM_MTU_MAX,
				     .local_response = 20,
				     .max_cm_retries = 15}};
	uint8_t bytes[CM_MAD_LEN];

	cm_mad_build(&mad, bytes);
	cm_input(net.cm[B], net.now, &path, bytes);
}

static void flood_req(uint16_t host, uint32_t i, bool known)
{
	flood_service(SERVICE, host, i, known);
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
	assert_int_equal(counters[CM_COUNT_NO_ROOM], 0);
}

/* Sends requests until one source is at its limit. Returns how many were taken. */
static uint32_t fill_limit(bool known)
{
	for (uint32_t i = 0; i < CROWD; i++)
		flood_req(1, i, known);
	assert_in_range(crowd.n, 1, CROWD / 2);
	return crowd.n;
}

/* A listener that answers nothing does not make its clients' host unable to reach other ones. */
static void test_other_listeners_hear_a_source_at_its_limit(void **state)
{
	uint32_t n;

	(void)state;
	n = fill_limit(true);
	flood_service(SERVICE + 1, 1, CROWD, true);
	assert_int_equal(crowd.n, n + 1);
}

/* Requests of another station in the name of a host do not count for the host. */
static void test_forged_requests_leave_room_for_the_host(void **state)
{
	uint32_t n;

	(void)state;
	n = fill_limit(false);
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
	assert_int_equal(counters[CM_COUNT_TIMED_OUT], 0);
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

/* A peer that connects and releases without end does not use up the connections. */
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
		rtu.pair.remote_id = conn_id(crowd.conns[0]);
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
	mad = (struct cm_mad){.attr = CM_RTU, .pair = {9, conn_id(b_end()->conn)}};
	cm_mad_build(&mad, bytes);
	cm_input(net.cm[B], net.now, &path, bytes);
	expect_state(b_end(), CM_ESTABLISHED);
	let_go(b_end());
	run_for(300 * NS);
	assert_int_equal(cm_conns(net.cm[B]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test_setup_teardown(test_other_listeners_hear_a_source_at_its_limit,
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
