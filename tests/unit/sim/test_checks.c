/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The simulator's checkers: each test damages a correct world, and expects the checker's message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/check/check.h"
#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

/* A fault that the test injects at the end of a phase. */
struct harm {
	enum phase after;
	void (*do_it)(struct world *world);
};

static void hear(void *arg, enum phase phase, struct world *world)
{
	const struct harm *harm = arg;

	if (harm && phase == harm->after)
		harm->do_it(world);
}

static struct scenario scenario_of(enum traffic traffic)
{
	struct scenario scenario = scenario_default;

	scenario.traffic = traffic;
	scenario.messages = 30;
	scenario.seed = 11;
	scenario.rate = 0;
	return scenario;
}

/* Runs a world of this traffic with the fault, which must fail. */
static void fail_world(struct world *world, enum traffic traffic, enum phase after,
		       void (*do_it)(struct world *))
{
	const struct scenario scenario = scenario_of(traffic);
	struct harm harm = {after, do_it};

	assert_false(world_run(world, &scenario, NULL, hear, &harm));
}

static void expect_failure_of(enum traffic traffic, enum phase after, void (*do_it)(struct world *),
			      const char *words)
{
	struct world world;

	fail_world(&world, traffic, after, do_it);
	if (!strstr(world.failure, words))
		fail_msg("'%s' says nothing of '%s'", world.failure, words);
	world_free(&world);
}

static void expect_failure(enum phase after, void (*do_it)(struct world *), const char *words)
{
	expect_failure_of(TRAFFIC_RC, after, do_it, words);
}

static void test_unharmed_world_is_right(void **state)
{
	const struct scenario scenario = scenario_of(TRAFFIC_RC);
	struct world world;

	(void)state;
	assert_true(world_run(&world, &scenario, NULL, hear, NULL));
	assert_true(world.n_atomics > 10);
	assert_string_equal(world.failure, "");
	world_free(&world);
}

static void spoil_target(struct world *world)
{
	struct stream *stream = &world->conn[0].stream[0];

	stream_to(stream)->host->mem[stream->target + 17] ^= 1;
}

static void spoil_word(struct world *world)
{
	struct stream *stream = &world->conn[0].stream[0];

	stream_to(stream)->host->mem[stream->words] ^= 1;
}

static void spoil_shared_word(struct world *world)
{
	struct simhost *host = &world->host[0];

	host->mem[host->shared_word] ^= 1;
}

static void forget_a_delivery(struct world *world)
{
	for (uint32_t i = 0; i < world->conn[0].stream[0].n; i++)
		world->conn[0].stream[0].request[i].delivered = false;
}

static void test_memory_damage_is_detected(void **state)
{
	(void)state;
	expect_failure(PHASE_TRAFFIC, spoil_target, "target of qp");
	expect_failure(PHASE_TRAFFIC, spoil_word, "do not add up");
	expect_failure(PHASE_TRAFFIC, forget_a_delivery, "never arrived");
}

/* --- UC and UD. */

/* A stream that has delivered a message. */
static struct stream *delivered_stream(struct world *world)
{
	for (uint32_t i = 0; i < 2 * world->n_conns; i++) {
		struct stream *stream = &world->conn[i / 2].stream[i % 2];

		if (stream->arrivals)
			return stream;
	}
	fail_msg("no message arrived");
	return NULL;
}

static void swallow_a_message(struct world *world)
{
	delivered_stream(world)->arrivals--;
}

static void deliver_too_much(struct world *world)
{
	struct stream *stream = delivered_stream(world);

	stream->arrivals = stream->posted + 1;
}

static void swallow_all_writes(struct world *world)
{
	struct stream *stream = &world->conn[0].stream[0];

	stream_initial(stream, stream_to(stream)->host->mem + stream->target);
}

static struct urxe_counters *counters_of(const struct stream *stream)
{
	return (struct urxe_counters *)(uintptr_t)urxe_qp_counters(stream_to(stream)->qp);
}

static void drop_a_good_packet(struct world *world)
{
	counters_of(delivered_stream(world))->drop[URXE_DROP_BAD_QKEY]++;
}

static void drop_amid_a_message(struct world *world)
{
	struct urxe_counters *counters = counters_of(delivered_stream(world));

	counters->drop[URXE_DROP_NO_RECV] = 0;
	counters->drop[URXE_DROP_UC_SEQUENCE]++;
}

static void test_swallowed_messages_are_detected(void **state)
{
	(void)state;
	expect_failure_of(TRAFFIC_UD, PHASE_TRAFFIC, swallow_a_message, "are missing");
	expect_failure_of(TRAFFIC_UC, PHASE_TRAFFIC, swallow_a_message, "are missing");
	expect_failure_of(TRAFFIC_UD, PHASE_TRAFFIC, deliver_too_much, "found no receive request");
	expect_failure_of(TRAFFIC_UC, PHASE_TRAFFIC, swallow_all_writes, "did not reach its");
	expect_failure_of(TRAFFIC_UD, PHASE_TRAFFIC, drop_a_good_packet, "dropped 1 as bad_qkey");
	expect_failure_of(TRAFFIC_UC, PHASE_TRAFFIC, drop_amid_a_message, "as uc_sequence");
}

/* --- Atomics. */

static struct atomic_op *some_atomic(struct world *world)
{
	uint32_t i = 0;

	while (!world->atomics[i].add)
		i++;
	return &world->atomics[i];
}

static void repeat_an_atomic(struct world *world)
{
	some_atomic(world)->original++;
}

static void complete_too_early(struct world *world)
{
	struct atomic_op *last = some_atomic(world);

	for (uint32_t i = 0; i < world->n_atomics; i++)
		if (world->atomics[i].host == last->host &&
		    world->atomics[i].original > last->original)
			last = &world->atomics[i];
	last->completed = 0;
}

static void test_atomic_damage_is_detected(void **state)
{
	(void)state;
	expect_failure(PHASE_TRAFFIC, spoil_shared_word, "the shared word holds");
	expect_failure(PHASE_TRAFFIC, repeat_an_atomic, "earlier atomics result in");
	expect_failure(PHASE_TRAFFIC, complete_too_early, "complete before");
}

/* --- Counters. */

/* A host without an engine counts with the counters that its engine had. */
static void test_frozen_hosts_have_counters(void **state)
{
	struct scenario scenario = scenario_default;
	struct urxe_counters sum;
	uint32_t n_frozen = 0;
	struct world world;

	(void)state;
	scenario.seed = 6;
	scenario.nodes = 6;
	scenario.traffic = TRAFFIC_RC;
	scenario.size = 4096;
	scenario.migrate = 500;
	scenario.messages = 2000;
	scenario.pause = 2000000;
	scenario.timeout = 8;
	scenario.retries = 0;
	scenario.max_losses = 0;
	scenario.loss = 0.0005;
	assert_false(world_run(&world, &scenario, NULL, hear, NULL));
	for (uint32_t i = 0; i < world.n_hosts; i++)
		n_frozen += !world.host[i].dev;
	assert_true(n_frozen > 0);
	world_sum_counters(&world, &sum);
	assert_true(sum.event[URXE_EVENT_RETRANSMIT] > 0);
	world_free(&world);
}

static void lose_a_frame(struct world *world)
{
	world->fabric.counters.sent++;
}

static void receive_too_much(struct world *world)
{
	world->received++;
}

static void drop_a_good_frame(struct world *world)
{
	const struct urxe_counters *counters = urxe_dev_counters(world->host[0].dev);

	((struct urxe_counters *)(uintptr_t)counters)->drop[URXE_DROP_BAD_ICRC]++;
}

static void count_up(struct world *world, enum urxe_event event)
{
	const struct urxe_counters *counters = urxe_dev_counters(world->host[0].dev);

	((struct urxe_counters *)(uintptr_t)counters)->event[event]++;
}

static void refuse_a_request(struct world *world)
{
	count_up(world, URXE_EVENT_NAK_ACCESS_SENT);
}

static void hear_a_nak(struct world *world)
{
	count_up(world, URXE_EVENT_NAK_SEQ_RCVD);
}

static void hear_an_rnr_nak(struct world *world)
{
	count_up(world, URXE_EVENT_NAK_RNR_RCVD);
}

static void repeat_a_packet(struct world *world)
{
	count_up(world, URXE_EVENT_RETRANSMIT);
}

static void test_counter_damage_is_detected(void **state)
{
	(void)state;
	expect_failure(PHASE_TRAFFIC, drop_a_good_frame, "1 packets dropped as bad_icrc");
	expect_failure(PHASE_TRAFFIC, refuse_a_request, "1 fatal NAKs");
	expect_failure(PHASE_TRAFFIC, hear_a_nak, "1 sequence NAKs and sent 0");
	expect_failure(PHASE_TRAFFIC, hear_an_rnr_nak, "RNR NAKs and sent");
	expect_failure_of(TRAFFIC_UC, PHASE_TRAFFIC, repeat_a_packet, "but 1 retransmit");
	expect_failure(PHASE_TRAFFIC, lose_a_frame, "frames sent");
	expect_failure(PHASE_TRAFFIC, receive_too_much, "frames delivered");
}

/* --- Completions and deliveries. */

static struct urxe_wc next_completion(const struct world *world)
{
	return (struct urxe_wc){.qpn = world->conn[0].end[0].qpn};
}

static void complete_nothing(struct world *world)
{
	const struct urxe_wc wc = next_completion(world);

	check_completion(world->conn[0].end[0].host, &wc);
}

static void complete_in_error(struct world *world)
{
	struct urxe_wc wc = next_completion(world);

	wc.status = URXE_WC_RETRY_EXC_ERR;
	check_completion(world->conn[0].end[0].host, &wc);
}

static void complete_for_nobody(struct world *world)
{
	struct urxe_wc wc = next_completion(world);

	wc.qpn = 0xabcdef;
	check_completion(world->conn[0].end[0].host, &wc);
}

static void receive_nothing(struct world *world)
{
	const struct urxe_wc wc = {.qpn = world->conn[0].end[1].qpn, .opcode = URXE_WC_RECV};

	check_delivery(world->conn[0].end[1].host, &wc);
}

static void test_completion_damage_is_detected(void **state)
{
	(void)state;
	expect_failure(PHASE_SETUP, complete_nothing, "where 0 of 0 is next");
	expect_failure(PHASE_TRAFFIC, complete_nothing, "where 30 of 30 is next");
	expect_failure(PHASE_SETUP, complete_in_error, "ended with status 12");
	expect_failure(PHASE_SETUP, complete_for_nobody, "unknown qp");
	expect_failure(PHASE_SETUP, receive_nothing, "not outstanding");
}

static void test_failed_request_has_its_status(void **state)
{
	struct world world;

	(void)state;
	fail_world(&world, TRAFFIC_RC, PHASE_SETUP, complete_in_error);
	assert_int_equal(world.failed_status, URXE_WC_RETRY_EXC_ERR);
	world_free(&world);
	fail_world(&world, TRAFFIC_RC, PHASE_SETUP, complete_for_nobody);
	assert_int_equal(world.failed_status, URXE_WC_SUCCESS);
	world_free(&world);
}

/* --- Events. */

static void arm_secretly(struct world *world)
{
	urxe_cq_arm(world->host[0].recv_cq.cq, false);
	world->host[0].recv_cq.armed = false;
}

static void await_an_event(struct world *world)
{
	world->host[0].send_cq.armed = true;
}

static void be_established(struct world *world)
{
	check_event(world->conn[0].end[0].host, URXE_ASYNC_COMM_EST, &world->conn[0].end[0]);
}

static void reach_the_last_wqe(struct world *world)
{
	check_event(world->conn[0].end[0].host, URXE_ASYNC_QP_LAST_WQE_REACHED,
		    &world->conn[0].end[0]);
}

static void reach_a_limit(struct world *world)
{
	check_event(&world->host[0], URXE_ASYNC_SRQ_LIMIT_REACHED, &world->host[0].recv_queue[0]);
}

static void test_wrong_events_are_detected(void **state)
{
	(void)state;
	expect_failure(PHASE_TRAFFIC, arm_secretly, "event that was not requested");
	expect_failure(PHASE_SETUP, await_an_event, "without its event");
	expect_failure(PHASE_SETUP, be_established, "asynchronous event 4");
	expect_failure(PHASE_SETUP, reach_the_last_wqe, "asynchronous event 16");
	expect_failure(PHASE_SETUP, reach_a_limit, "limit that was not requested");
}

/* --- UDP GSO. */

#define GSO_FRAME 100

/* Two IPv4 frames that may leave as one UDP GSO packet to host 1. */
struct gso_frames {
	uint8_t data[2][GSO_FRAME];
	struct urxe_frame frame[2];
};

static void make_gso_frames(struct world *world, struct gso_frames *frames)
{
	*frames = (struct gso_frames){0};
	for (uint8_t i = 0; i < 2; i++) {
		uint8_t *data = frames->data[i];

		frames->frame[i] = (struct urxe_frame){.data = data, .len = GSO_FRAME};
		memcpy(data, (const uint8_t[]){2, 0, 0, 0, 0, 2}, 6);
		data[12] = 8;
		data[19] = i; /* IPv4 identification */
	}
	frames->frame[1].continues = true;
	world->host[0].gso = world->host[1].gso = true;
}

static void expect_bad_gso(struct world *world, const struct gso_frames *frames)
{
	check_gso(&world->host[0], frames->frame, 2);
	assert_string_not_equal(world->failure, "");
	world->failure[0] = 0;
}

static void send_bad_runs(struct world *world)
{
	/* Offsets: 12 type of the frame, 19 identification, 14 and 22 in the IPv4 header, 35 in the
	 * UDP header, 49 in the QPN. */
	static const uint8_t places[] = {12, 19, 14, 22, 35, 49};
	struct gso_frames frames;

	make_gso_frames(world, &frames);
	check_gso(&world->host[0], frames.frame, 2);
	assert_string_equal(world->failure, "");
	for (uint32_t i = 0; i < sizeof(places); i++) {
		frames.data[1][places[i]] ^= 4;
		expect_bad_gso(world, &frames);
		frames.data[1][places[i]] ^= 4;
	}
	frames.frame[1].len++;
	expect_bad_gso(world, &frames);
	make_gso_frames(world, &frames);
	frames.frame[0].continues = true;
	expect_bad_gso(world, &frames);
	make_gso_frames(world, &frames);
	world->host[1].gso = false;
	expect_bad_gso(world, &frames);
	make_gso_frames(world, &frames);
	world->host[0].gso = false;
	check_gso(&world->host[0], frames.frame, 2);
}

static void test_wrong_gso_runs_are_detected(void **state)
{
	(void)state;
	expect_failure(PHASE_SETUP, send_bad_runs, "do not fit one UDP GSO packet");
}

/* --- Connections that fail. */

/* A connection whose failure has begun. */
static struct simconn *failed_conn(struct world *world, enum failure_kind kind)
{
	for (uint32_t i = 0; i < world->n_conns; i++)
		if (world->conn[i].failure.begun && world->conn[i].failure.kind == kind)
			return &world->conn[i];
	return NULL;
}

static void receive_refuses_again(struct world *world)
{
	struct simconn *conn = failed_conn(world, FAILURE_KEY);
	struct endpoint *end = conn ? &conn->end[!conn->failure.side] : NULL;

	if (end)
		check_event(end->host, URXE_ASYNC_QP_ACCESS_ERR, end);
}

/* Behind the mistaken request. */
static void execute_too_much(struct world *world)
{
	struct simconn *conn = failed_conn(world, FAILURE_KEY);
	struct stream *stream = conn ? &conn->stream[conn->failure.side] : NULL;

	if (stream)
		stream_to(stream)->host->mem[stream->target] ^= 0x55;
}

static void add_too_much(struct world *world)
{
	struct simconn *conn = failed_conn(world, FAILURE_KEY);
	struct stream *stream = conn ? &conn->stream[conn->failure.side] : NULL;

	if (stream)
		stream_to(stream)->host->mem[stream->words] ^= 0x55;
}

/* A WRITE that was posted after the end or its peer went to the error state; NULL: none. */
static struct stream *late_write(struct world *world, unsigned of_peer, uint32_t *index)
{
	for (uint32_t i = 0; i < world->n_conns; i++) {
		struct simconn *conn = &world->conn[i];
		struct stream *stream = &conn->stream[conn->failure.side ^ of_peer];

		if (!conn->failure.begun || conn->failure.kind != FAILURE_STATE)
			continue;
		for (*index = stream->mistake; *index < stream->posted; ++*index)
			if (stream->request[*index].opcode == URXE_WR_RDMA_WRITE &&
			    stream->request[*index].length > 8)
				return stream;
	}
	return NULL;
}

static void execute_late(struct world *world, unsigned of_peer)
{
	uint32_t index;
	struct stream *stream = late_write(world, of_peer, &index);
	struct request *request;

	if (!stream)
		return;
	request = &stream->request[index];
	content_fill(stream->seed, index,
		     stream_to(stream)->host->mem + stream->target + request->target,
		     request->length);
}

static void execute_in_the_error_state(struct world *world)
{
	execute_late(world, 0);
}

static void answer_in_the_error_state(struct world *world)
{
	execute_late(world, 1);
}

/* As if the QP had not gone to the error state: requests that are posted now succeed. */
static void ignore_the_error_state(struct world *world)
{
	for (uint32_t i = 0; i < world->n_conns; i++) {
		struct simconn *conn = &world->conn[i];

		if (conn->failure.kind != FAILURE_STATE)
			continue;
		conn->failure.begun = true;
		conn->stream[conn->failure.side].mistake = 0;
	}
}

/* Runs the scenario with one seed after the other until a world fails: not every seed has what is
 * to be harmed. */
static void expect_failure_of_a_seed(struct scenario scenario, enum phase after,
				     void (*do_it)(struct world *), const char *words)
{
	struct harm harm = {after, do_it};
	struct world world;
	bool right = true;

	for (uint32_t i = 0; right && i < 50; i++) {
		scenario.seed = i;
		right = world_run(&world, &scenario, NULL, hear, &harm);
		if (!right && !strstr(world.failure, words))
			fail_msg("'%s' says nothing of '%s'", world.failure, words);
		world_free(&world);
	}
	assert_false(right);
}

/* Runs worlds with failures until one of them fails. */
static void expect_failure_among_failures(enum phase after, void (*do_it)(struct world *),
					  const char *words)
{
	struct scenario scenario = scenario_of(TRAFFIC_RC);

	scenario.failures = 4;
	expect_failure_of_a_seed(scenario, after, do_it, words);
}

static void test_damage_among_failures_is_detected(void **state)
{
	(void)state;
	expect_failure_among_failures(PHASE_TRAFFIC, receive_refuses_again, "asynchronous event 3");
	expect_failure_among_failures(PHASE_TRAFFIC, execute_too_much, "target of qp");
	expect_failure_among_failures(PHASE_TRAFFIC, add_too_much, "do not add up");
	expect_failure_among_failures(PHASE_TRAFFIC, execute_in_the_error_state, "target of qp");
	expect_failure_among_failures(PHASE_TRAFFIC, answer_in_the_error_state, "target of qp");
	expect_failure_among_failures(PHASE_SETUP, ignore_the_error_state,
				      "succeeded after a mistake");
}

/* --- Networks that lose frames. */

/* Runs worlds with multicast and this loss until one of them fails. */
static void expect_failure_with_loss(enum traffic traffic, double loss, enum phase after,
				     void (*do_it)(struct world *), const char *words)
{
	struct scenario scenario = scenario_of(traffic);

	scenario.loss = loss;
	scenario.members = 4;
	expect_failure_of_a_seed(scenario, after, do_it, words);
}

static void expect_failure_among_losses(enum traffic traffic, void (*do_it)(struct world *),
					const char *words)
{
	expect_failure_with_loss(traffic, 0.02, PHASE_TRAFFIC, do_it, words);
}

/* A stream with arrivals of which the network has lost nothing; NULL: none. */
static struct stream *undisturbed_stream(struct world *world)
{
	for (uint32_t i = 0; i < 2 * world->n_conns; i++) {
		struct stream *stream = &world->conn[i / 2].stream[i % 2];

		if (stream->arrivals && !stream->lost && world_lost_frames(world))
			return stream;
	}
	return NULL;
}

static void swallow_beside_losses(struct world *world)
{
	struct stream *stream = undisturbed_stream(world);

	if (stream)
		stream->arrivals--;
}

static void drop_beside_losses(struct world *world)
{
	struct stream *stream = undisturbed_stream(world);

	if (stream)
		counters_of(stream)->drop[URXE_DROP_BAD_QKEY]++;
}

/* A datagram to a member of which the network has lost no frame. */
static void swallow_multicast(struct world *world)
{
	struct member *member = world->members.member;
	const uint32_t n = world->members.n;

	for (uint32_t to = 0; to < n; to++)
		for (uint32_t from = 0; from < n; from++) {
			const uint8_t group = member[from].message[0].group;
			uint8_t *seen = member_seen(&member[to], &member[from], 0);

			if (*seen != (MESSAGE_DUE | MESSAGE_ARRIVED) || member[to].lost[group] ||
			    urxe_qp_counters(member[to].qp)->drop[URXE_DROP_NO_RECV] ||
			    !world_lost_frames(world))
				continue;
			*seen = MESSAGE_DUE;
			return;
		}
}

/* As if the engine used the receive of a message that lost a frame for the next message. */
static void keep_a_receive(struct world *world)
{
	for (uint32_t i = 0; i < 2 * world->n_conns; i++) {
		struct stream *stream = &world->conn[i / 2].stream[i % 2];

		if (stream->given_up &&
		    !urxe_qp_counters(stream_to(stream)->qp)->drop[URXE_DROP_NO_RECV]) {
			stream->given_up = 0;
			return;
		}
	}
}

static void test_damage_among_losses_is_detected(void **state)
{
	(void)state;
	expect_failure_among_losses(TRAFFIC_UD, swallow_beside_losses, "are missing");
	expect_failure_among_losses(TRAFFIC_UC, swallow_beside_losses, "are missing");
	expect_failure_among_losses(TRAFFIC_UC, drop_beside_losses, "dropped 1 as bad_qkey");
	expect_failure_among_losses(TRAFFIC_MIXED, swallow_multicast, "1 multicast messages");
	expect_failure_among_losses(TRAFFIC_UC, keep_a_receive, "ended their receive");
}

/* --- Rest. */

static void leave_a_timer(struct world *world)
{
	events_add(&world->events, UINT64_MAX - 1, EVENT_WAKE, &world->host[0]);
}

static void leave_a_completion(struct world *world)
{
	struct simcq *cq = &world->host[0].send_cq;

	cq->head--;
}

static void forget_a_receive(struct world *world)
{
	for (uint32_t i = 0; i < world->host[0].n_recv_queues; i++)
		world->host[0].recv_queue[i]->posted++;
}

/* As if the engine completed one request less than it took from an SRQ. */
static void swallow_a_taken_receive(struct world *world)
{
	for (uint32_t i = 0; i < world->n_hosts; i++)
		for (uint32_t k = 0; k < world->host[i].n_recv_queues; k++)
			if (world->host[i].recv_queue[k]->shared)
				world->host[i].recv_queue[k]->consumed--;
}

/* No message is in progress. */
static void flush_an_untaken_receive(struct world *world)
{
	for (uint32_t i = 0; i < 2 * world->n_conns; i++) {
		struct endpoint *end = &world->conn[i / 2].end[i % 2];
		const struct urxe_wc wc = {.qpn = end->qpn, .status = URXE_WC_WR_FLUSH_ERR};

		if (end->recv_queue->shared)
			check_flushed_recv(end, &wc);
	}
}

static void leave_a_drain(struct world *world)
{
	world->conn[0].end[0].drain.state = DRAIN_BEGUN;
}

static void test_unrest_at_the_end_is_detected(void **state)
{
	(void)state;
	expect_failure(PHASE_TRAFFIC, leave_a_timer, "do not come to rest");
	expect_failure(PHASE_TRAFFIC, forget_a_receive, "receive requests were not flushed");
	expect_failure(PHASE_TRAFFIC, leave_a_completion, "a completion after the last one");
	expect_failure_with_loss(TRAFFIC_RC, 0, PHASE_TRAFFIC, swallow_a_taken_receive,
				 "receive requests taken from an SRQ");
	expect_failure_with_loss(TRAFFIC_RC, 0, PHASE_QUIET, flush_an_untaken_receive,
				 "flushed the requests of its SRQ");
	expect_failure(PHASE_TRAFFIC, leave_a_drain, "is not drained");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unharmed_world_is_right),
		cmocka_unit_test(test_memory_damage_is_detected),
		cmocka_unit_test(test_swallowed_messages_are_detected),
		cmocka_unit_test(test_atomic_damage_is_detected),
		cmocka_unit_test(test_counter_damage_is_detected),
		cmocka_unit_test(test_frozen_hosts_have_counters),
		cmocka_unit_test(test_completion_damage_is_detected),
		cmocka_unit_test(test_failed_request_has_its_status),
		cmocka_unit_test(test_wrong_events_are_detected),
		cmocka_unit_test(test_wrong_gso_runs_are_detected),
		cmocka_unit_test(test_damage_among_failures_is_detected),
		cmocka_unit_test(test_damage_among_losses_is_detected),
		cmocka_unit_test(test_unrest_at_the_end_is_detected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
