/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state machines of two connection managers, on a network that loses, duplicates and reorders
 * messages, in virtual time.
 */
#include "cm_net.h"

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
	assert_int_equal(net.last[CM_REQ].req.ack_timeout, LIFETIME + 1);
	assert_int_equal(cm_channel(a_end()->conn)->ack_timeout, LIFETIME + 1);
	assert_int_equal(cm_channel(b_end()->conn)->ack_timeout, LIFETIME + 1);
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

/* The client's own request is outstanding, with and without an MRA. */
static void test_client_rejects_its_own_req(void **state)
{
	static const uint8_t data[] = {1, 2, 3};

	(void)state;
	for (uint32_t slow = 0; slow < 2; slow++) {
		connect_pair(0);
		run_for(slow ? 30 * NS : DELAY);
		expect_state(a_end(), slow ? CM_MRA_REQ_RCVD : CM_REQ_SENT);
		assert_int_equal(
			cm_reject(a_end()->conn, net.now, CM_REJ_CONSUMER, data, sizeof(data)), 0);
		expect_state(a_end(), CM_IDLE);
		assert_memory_equal(net.last[CM_REJ].private_data, data, sizeof(data));
		run_for(DELAY);
		assert_int_equal(b_end()->reason, CM_REJ_TIMEOUT);
		expect_state(b_end(), CM_IDLE);
		run_for(200 * NS);
		assert_int_equal(a_end()->events[CM_EVENT_REQ_ERROR], 0);
		let_go(a_end());
		let_go(b_end());
	}
	assert_int_equal(net.requests, 2);
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

/* The peer, which has lost its connection, names the same QP in the reply to another request. */
static void test_rep_of_a_connected_qpn_is_rejected_as_stale(void **state)
{
	struct cm_param p;

	(void)state;
	establish();
	connect_pair(1);
	run_for(DELAY);
	p = param(B, 0, NULL, 0);
	assert_int_equal(cm_accept(net.ends[B][1].conn, net.now, &p), 0);
	run_for(2 * DELAY);
	assert_int_equal(net.ends[B][1].events[CM_EVENT_REJ], 1);
	assert_int_equal(net.ends[B][1].reason, CM_REJ_STALE);
	assert_int_equal(net.ends[A][1].events[CM_EVENT_REP], 0);
	/* The old connection ends, because address resolution has confirmed the peer. */
	assert_int_equal(net.sent[CM_DREQ], 1);
	expect_state(a_end(), CM_DREQ_SENT);
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

/* The network delivers a copy of the REQ after the end of the connection. */
static void test_late_req_in_timewait_is_ignored(void **state)
{
	uint8_t req[CM_MAD_LEN];

	(void)state;
	connect_pair(0);
	memcpy(req, net.flying[0].mad, sizeof(req));
	for (int k = 0; k < 3; k++) {
		run_for(DELAY);
		serve_pair(0);
	}
	assert_int_equal(cm_disconnect(a_end()->conn, net.now), 0);
	run_for(DELAY);
	let_go(b_end());
	run_for(DELAY);
	fly(B, DELAY, req);
	run_for(2 * DELAY);
	assert_int_equal(net.requests, 1);
	assert_int_equal(cm_conns(net.cm[B]), 1);
}

/* The consumer of a connection whose TIMEWAIT has ended still holds it. */
static void test_dreq_after_timewait_is_answered(void **state)
{
	(void)state;
	establish();
	net.lose = 1u << CM_DREP;
	net.lose_n = 1;
	assert_int_equal(cm_disconnect(a_end()->conn, net.now), 0);
	run_for(DELAY);
	assert_int_equal(cm_disconnect(b_end()->conn, net.now), 0);
	run_for(30 * NS);
	expect_state(b_end(), CM_IDLE);
	assert_int_equal(a_end()->events[CM_EVENT_DREP], 1);
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

static void restore(struct end *end)
{
	struct cm_saved saved;

	cm_save(end->conn, &saved);
	cm_release(end->conn, net.now);
	assert_int_equal(cm_restore(net.cm[A], net.now, &saved, false, end, &end->conn), 0);
}

static uint64_t dropped_frozen(int side)
{
	return cm_counters(net.cm[side])[CM_COUNT_FROZEN];
}

/* Messages that arrive meanwhile are lost, and the peer repeats them. */
static void test_connection_goes_on_after_either_end_was_frozen(void **state)
{
	(void)state;
	connect_pair(0);
	run_for(DELAY);
	cm_freeze(b_end()->conn);
	run_for(30 * NS);
	assert_true(dropped_frozen(B));
	assert_int_equal(net.requests, 1);
	cm_thaw(b_end()->conn, net.now);
	cm_freeze(a_end()->conn);
	assert_int_equal(accept_pair(0), 0);
	run_for(DELAY);
	assert_int_equal(dropped_frozen(A), 1);
	expect_state(a_end(), CM_REQ_SENT);
	cm_thaw(a_end()->conn, net.now);
	run_for(30 * NS);
	assert_int_equal(a_end()->events[CM_EVENT_REP], 1);
	serve_pair(0);
	run_for(DELAY);
	expect_state(b_end(), CM_ESTABLISHED);
}

/* The peer answers the repeated REQ by a further REJ. */
static void test_refusal_reaches_an_end_that_was_frozen(void **state)
{
	(void)state;
	connect_pair(0);
	run_for(DELAY);
	cm_freeze(a_end()->conn);
	assert_int_equal(cm_reject(b_end()->conn, net.now, CM_REJ_CONSUMER, NULL, 0), 0);
	net.verdict = CM_REJECT_NO_LISTENER;
	run_for(DELAY);
	assert_int_equal(dropped_frozen(A), 1);
	assert_int_equal(a_end()->events[CM_EVENT_REJ], 0);
	cm_thaw(a_end()->conn, net.now);
	run_for(30 * NS);
	assert_int_equal(a_end()->events[CM_EVENT_REJ], 1);
}

/* The peer gives up, and tells so, while the end is frozen: then nobody answers its reply. */
static void test_end_of_a_request_while_frozen(void **state)
{
	(void)state;
	connect_pair(0);
	run_for(DELAY);
	cm_freeze(b_end()->conn);
	let_go(a_end());
	run_for(DELAY);
	assert_int_equal(dropped_frozen(B), 1);
	expect_state(b_end(), CM_REQ_RCVD);
	cm_thaw(b_end()->conn, net.now);
	assert_int_equal(accept_pair(0), 0);
	run(CM_NEVER);
	assert_int_equal(b_end()->events[CM_EVENT_REP_ERROR], 1);
}

static void test_datagram_service_is_resolved_after_either_end_was_frozen(void **state)
{
	const struct cm_sidr_reply reply = {.qpn = 0x77, .qkey = 0x1234567};

	(void)state;
	resolve();
	run_for(DELAY);
	cm_freeze(b_end()->conn);
	run_for(3 * NS / 2);
	assert_true(dropped_frozen(B));
	assert_int_equal(net.requests, 1);
	cm_thaw(b_end()->conn, net.now);
	cm_freeze(a_end()->conn);
	assert_int_equal(cm_sidr_answer(b_end()->conn, &reply), 0);
	run_for(DELAY);
	assert_int_equal(dropped_frozen(A), 1);
	let_go(b_end());
	cm_thaw(a_end()->conn, net.now);
	/* The repeated request is a new one to the peer, which has answered the first. */
	run_for(3 * NS / 2);
	assert_int_equal(net.requests, 2);
	assert_int_equal(cm_sidr_answer(b_end()->conn, &reply), 0);
	run_for(DELAY);
	assert_int_equal(a_end()->events[CM_EVENT_SIDR_REP], 1);
}

/* A DREQ that waits for cm_tick, or whose answer is lost meanwhile, does not wait for a timeout. */
static void test_dreq_goes_out_at_once_after_a_freeze_or_a_restoration(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool restored = i & 1, sent = i & 2;

		establish();
		net.sent[CM_DREQ] = 0;
		b_end()->events[CM_EVENT_DREQ] = 0;
		assert_int_equal(cm_disconnect(a_end()->conn, net.now), 0);
		if (sent)
			cm_tick(net.cm[A], net.now);
		cm_freeze(a_end()->conn);
		if (restored)
			restore(a_end());
		else
			cm_thaw(a_end()->conn, net.now);
		assert_int_equal(net.sent[CM_DREQ], sent);
		cm_tick(net.cm[A], net.now);
		assert_int_equal(net.sent[CM_DREQ], sent + 1);
		run_for(NS);
		assert_int_equal(net.sent[CM_DREQ], sent + 1);
		assert_int_equal(b_end()->events[CM_EVENT_DREQ], 1);
		assert_int_equal(cm_counters(net.cm[A])[CM_COUNT_REPEATED], 0);
		let_go(a_end());
		let_go(b_end());
		run_for(60 * NS);
	}
}

/* --- Datagrams */

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
	assert_int_equal(cm_counters(net.cm[B])[CM_COUNT_REJECTED], 1);
}

static void test_consumer_refuses_a_sidr_req(void **state)
{
	const struct cm_sidr_reply refusal = {.status = CM_SIDR_REJECT};

	(void)state;
	resolve();
	run_for(DELAY);
	assert_int_equal(cm_sidr_answer(b_end()->conn, &refusal), 0);
	run_for(DELAY);
	assert_int_equal(a_end()->events[CM_EVENT_SIDR_REP], 1);
	assert_int_equal(cm_counters(net.cm[B])[CM_COUNT_REJECTED], 1);
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
		TEST(test_client_rejects_its_own_req),
		TEST(test_req_with_invalid_service_type_is_rejected),
		TEST(test_req_with_invalid_mtu_gets_rej_invalid_mtu),
		TEST(test_server_released_before_rtu_rejects_the_client),
		TEST(test_req_of_a_connected_qpn_is_rejected_as_stale),
		TEST(test_rep_of_a_connected_qpn_is_rejected_as_stale),
		TEST(test_disconnect_passes_dreq_drep_timewait_to_idle),
		TEST(test_both_disconnect_at_once),
		TEST(test_lost_drep_is_sent_again),
		TEST(test_late_req_in_timewait_is_ignored),
		TEST(test_dreq_after_timewait_is_answered),
		TEST(test_unanswered_dreq_ends_with_dreq_error),
		TEST(test_release_disconnects),
		TEST(test_released_connection_sends_its_dreq_from_cm_tick),
		TEST(test_connection_goes_on_after_either_end_was_frozen),
		TEST(test_refusal_reaches_an_end_that_was_frozen),
		TEST(test_end_of_a_request_while_frozen),
		TEST(test_datagram_service_is_resolved_after_either_end_was_frozen),
		TEST(test_dreq_goes_out_at_once_after_a_freeze_or_a_restoration),
		TEST(test_sidr_req_is_answered_once),
		TEST(test_sidr_req_without_listener_is_refused),
		TEST(test_consumer_refuses_a_sidr_req),
		TEST(test_unanswered_sidr_req_ends_with_sidr_error),
		cmocka_unit_test(test_ends_connect_despite_loss_and_reordering),
		cmocka_unit_test(test_random_actions_leave_both_ends_consistent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
