/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The simulator's checkers of completions: each test changes, loses or repeats one completion
 * between the engine and its checker, or damages memory before the check, and expects the checker's
 * message. In another test a timer of an engine spins.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rxe/state.h>

#include "sim/check/check.h"
#include "sim/host/recv_queue.h"
#include "sim/host/simconn.h"
#include "sim/world.h"

/* What a fault has done to the completion; NO_EFFECT: nothing, so the next completion is tried. */
enum effect { NO_EFFECT, CHANGED, LOST, REPEATED };

struct fault {
	const char *expected; /* part of the failure */
	enum effect (*inject)(struct endpoint *end, struct urxe_wc *wc);
	bool receive; /* about a receive, not a send */
	enum traffic traffic;
	uint64_t failures;
	uint64_t members;
};

static const struct fault *fault; /* NULL: it has been injected */

void __real_check_completion(struct simhost *host, const struct urxe_wc *wc);
void __wrap_check_completion(struct simhost *host, const struct urxe_wc *wc);
void __real_check_delivery(struct simhost *host, const struct urxe_wc *wc);
void __wrap_check_delivery(struct simhost *host, const struct urxe_wc *wc);

static void inject(struct simhost *host, const struct urxe_wc *wc, bool receive,
		   void (*check)(struct simhost *host, const struct urxe_wc *wc))
{
	enum effect effect = NO_EFFECT;
	struct urxe_wc copy = *wc;

	if (fault && fault->receive == receive)
		effect = fault->inject(simhost_end(host, wc->qpn), &copy);
	if (effect != NO_EFFECT)
		fault = NULL;
	if (effect != LOST)
		check(host, &copy);
	if (effect == REPEATED)
		check(host, &copy);
}

void __wrap_check_completion(struct simhost *host, const struct urxe_wc *wc)
{
	inject(host, wc, false, __real_check_completion);
}

void __wrap_check_delivery(struct simhost *host, const struct urxe_wc *wc)
{
	inject(host, wc, true, __real_check_delivery);
}

#define NO_EVENT UINT32_MAX

static uint32_t hidden_event = NO_EVENT; /* which the checker does not hear of */

void __real_check_event(struct simhost *host, enum urxe_async event, void *ctx);
void __wrap_check_event(struct simhost *host, enum urxe_async event, void *ctx);

void __wrap_check_event(struct simhost *host, enum urxe_async event, void *ctx)
{
	if (event != hidden_event)
		__real_check_event(host, event, ctx);
}

static void ignore_phase(void *arg, enum phase phase, struct world *world)
{
	(void)arg, (void)phase, (void)world;
}

/* Injects the fault into the first of some worlds in which that is possible. */
static void expect_detected(const struct fault *one)
{
	struct scenario scenario = scenario_default;
	struct world world;

	scenario.traffic = one->traffic;
	scenario.messages = 60;
	scenario.failures = one->failures;
	scenario.members = one->members;
	fault = one;
	for (scenario.seed = 1; fault && scenario.seed < 50; scenario.seed++) {
		world_run(&world, &scenario, NULL, ignore_phase, NULL);
		if (!fault && !strstr(world.failure, one->expected))
			fail_msg("'%s' says nothing of '%s'", world.failure, one->expected);
		if (fault)
			assert_string_equal(world.failure, "");
		world_free(&world);
	}
	if (fault)
		fail_msg("no completion for '%s'", one->expected);
}

static void expect_all_detected(const struct fault *faults, size_t n)
{
	for (size_t i = 0; i < n; i++)
		expect_detected(&faults[i]);
}

#define EXPECT_DETECTED(faults) expect_all_detected(faults, sizeof(faults) / sizeof((faults)[0]))

/* --- Receives. */

static enum effect lose(struct endpoint *end, struct urxe_wc *wc)
{
	(void)wc;
	return end->recv_queue->shared ? NO_EFFECT : LOST;
}

static enum effect repeat(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end, (void)wc;
	return REPEATED;
}

static enum effect overtake(struct endpoint *end, struct urxe_wc *wc)
{
	const struct recv_queue *recv_queue = end->recv_queue;

	if (recv_queue->shared || recv_queue->posted <= wc->wr_id + 1)
		return NO_EFFECT;
	wc->wr_id++;
	return CHANGED;
}

static enum effect change_status(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	wc->status = URXE_WC_LOC_PROT_ERR;
	return CHANGED;
}

static enum effect give_up(struct endpoint *end, struct urxe_wc *wc)
{
	if (end->conn->attr.type != URXE_QPT_UC || !end->recv_queue->shared)
		return NO_EFFECT;
	wc->status = URXE_WC_REM_INV_REQ_ERR;
	return CHANGED;
}

static enum effect change_opcode(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	wc->opcode ^= 1;
	return CHANGED;
}

static enum effect change_length(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	wc->byte_len++;
	return CHANGED;
}

static enum effect hide_imm(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	if (!(wc->flags & URXE_WC_WITH_IMM))
		return NO_EFFECT;
	wc->flags &= ~(uint32_t)URXE_WC_WITH_IMM;
	return CHANGED;
}

static enum effect change_imm(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	if (!(wc->flags & URXE_WC_WITH_IMM))
		return NO_EFFECT;
	wc->imm ^= htonl(1);
	return CHANGED;
}

static enum effect claim_another_message(struct endpoint *end, struct urxe_wc *wc)
{
	if (change_imm(end, wc) == NO_EFFECT)
		return NO_EFFECT;
	wc->imm = htonl(100000);
	return CHANGED;
}

/* The first message comes again. */
static enum effect claim_first_message(struct endpoint *end, struct urxe_wc *wc)
{
	const struct stream *stream = &end->conn->stream[!end->side];

	if (!stream->delivered || change_imm(end, wc) == NO_EFFECT)
		return NO_EFFECT;
	wc->imm = 0;
	return CHANGED;
}

static enum effect change_invalidated_key(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	if (!(wc->flags & URXE_WC_WITH_INV))
		return NO_EFFECT;
	wc->invalidated_key ^= 1;
	return CHANGED;
}

static enum effect hide_grh(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	wc->flags &= ~(uint32_t)URXE_WC_GRH;
	return CHANGED;
}

static enum effect change_source(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	wc->src_qpn ^= 1;
	return CHANGED;
}

/* The segments of a receive; NULL = none. */
static const struct layout *find_layout(const struct endpoint *end, const struct urxe_wc *wc)
{
	const struct recv_queue *recv_queue = end->recv_queue;

	for (uint32_t i = 0; i < recv_queue->depth; i++)
		if (recv_queue->out[i] && recv_queue->wr_id[i] == wc->wr_id)
			return &recv_queue->layout[i];
	return NULL;
}

static void flip_first_byte(const struct endpoint *end, const struct layout *layout)
{
	uint32_t i = 0;

	while (!layout->length[i])
		i++;
	end->host->mem[layout->offset[i]] ^= 1;
}

static enum effect change_message(struct endpoint *end, struct urxe_wc *wc)
{
	const struct layout *layout = find_layout(end, wc);

	if (!layout || wc->opcode != URXE_WC_RECV || !wc->byte_len)
		return NO_EFFECT;
	flip_first_byte(end, layout);
	return CHANGED;
}

static enum effect write_into_gap(struct endpoint *end, struct urxe_wc *wc)
{
	const struct layout *layout = find_layout(end, wc);

	if (!layout)
		return NO_EFFECT;
	end->host->mem[layout->offset[0] - 1] ^= 1;
	return CHANGED;
}

static void test_wrong_receives_are_detected(void **state)
{
	static const struct fault faults[] = {
		{"completed before", lose, .receive = true},
		{"not outstanding", repeat, .receive = true},
		{"completed before", overtake, .receive = true},
		{"status 4", change_status, .receive = true},
		{"gave a message up", give_up, .receive = true, .traffic = TRAFFIC_UC},
		{"as opcode", change_opcode, .receive = true, .traffic = TRAFFIC_RC},
		{"as opcode", change_length, .receive = true, .traffic = TRAFFIC_RC},
		{"as opcode", hide_imm, .receive = true, .traffic = TRAFFIC_RC},
		{"immediate data of message", change_imm, .receive = true, .traffic = TRAFFIC_RC},
		{"nobody sent", claim_another_message, .receive = true, .traffic = TRAFFIC_UC},
		{"twice or late", claim_first_message, .receive = true, .traffic = TRAFFIC_UC},
		{"was invalidated, not", change_invalidated_key, .receive = true},
		{"datagram without GRH", hide_grh, .receive = true, .traffic = TRAFFIC_UD},
		{"or from qp", change_source, .receive = true, .traffic = TRAFFIC_UD},
		{"content of message", change_message, .receive = true, .traffic = TRAFFIC_RC},
		{"outside its segments", write_into_gap, .receive = true},
	};

	(void)state;
	EXPECT_DETECTED(faults);
}

/* --- Requests. */

static struct stream *stream_of(const struct endpoint *end)
{
	return &end->conn->stream[end->side];
}

static enum effect lose_request(struct endpoint *end, struct urxe_wc *wc)
{
	return wc->wr_id + 1 < stream_of(end)->posted ? LOST : NO_EFFECT;
}

/* The completion names the request after its own. */
static enum effect name_next_request(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	wc->wr_id++;
	return CHANGED;
}

static enum effect lengthen_read(struct endpoint *end, struct urxe_wc *wc)
{
	return wc->opcode == URXE_WC_RDMA_READ ? change_length(end, wc) : NO_EFFECT;
}

static enum effect change_read(struct endpoint *end, struct urxe_wc *wc)
{
	const uint32_t index = (uint32_t)wc->wr_id;

	if (wc->opcode != URXE_WC_RDMA_READ || !stream_of(end)->request[index].length)
		return NO_EFFECT;
	flip_first_byte(end, &stream_out(stream_of(end), index)->layout);
	return CHANGED;
}

static enum effect change_atomic(struct endpoint *end, struct urxe_wc *wc)
{
	const struct outstanding *out = stream_out(stream_of(end), (uint32_t)wc->wr_id);

	if (!is_atomic(stream_of(end)->request[wc->wr_id].opcode) || out->shared)
		return NO_EFFECT;
	end->host->mem[out->layout.offset[0]] ^= 1;
	return CHANGED;
}

static enum effect overrun_request(struct endpoint *end, struct urxe_wc *wc)
{
	const struct outstanding *out = stream_out(stream_of(end), (uint32_t)wc->wr_id);

	end->host->mem[out->layout.offset[0] - 1] ^= 1;
	return CHANGED;
}

/* The flushed bytes are not in memory yet. */
static enum effect flush_late(struct endpoint *end, struct urxe_wc *wc)
{
	const struct stream *stream = stream_of(end);
	const struct request *request = &stream->request[wc->wr_id];

	if (request->opcode != URXE_WR_FLUSH || !request->length || stream->posted != wc->wr_id + 1)
		return NO_EFFECT;
	stream_to(stream)->host->mem[stream->target + request->target] ^= 1;
	return CHANGED;
}

static void test_wrong_completions_are_detected(void **state)
{
	static const struct fault faults[] = {
		{"is next", lose_request},
		{"is next", repeat},
		{"is next", name_next_request},
		{"ended with status 4", change_status},
		{"completed as opcode", change_opcode},
		{"bytes, not", lengthen_read},
		{"brought wrong data", change_read},
		{"returned", change_atomic},
		{"outside its segments", overrun_request},
		{"complete too early", flush_late},
	};

	(void)state;
	EXPECT_DETECTED(faults);
}

/* --- Requests that end in an error. */

static enum effect change_first_error(struct endpoint *end, struct urxe_wc *wc)
{
	if (wc->status == URXE_WC_SUCCESS || stream_of(end)->failed)
		return NO_EFFECT;
	wc->status = URXE_WC_REM_OP_ERR;
	return CHANGED;
}

static enum effect change_flush(struct endpoint *end, struct urxe_wc *wc)
{
	if (!stream_of(end)->failed)
		return NO_EFFECT;
	wc->status = URXE_WC_RETRY_EXC_ERR;
	return CHANGED;
}

static enum effect forget_error(struct endpoint *end, struct urxe_wc *wc)
{
	if (wc->status == URXE_WC_SUCCESS || wc->wr_id != stream_of(end)->mistake)
		return NO_EFFECT;
	wc->status = URXE_WC_SUCCESS;
	return CHANGED;
}

static enum effect forget_flush(struct endpoint *end, struct urxe_wc *wc)
{
	if (!stream_of(end)->failed)
		return NO_EFFECT;
	wc->status = URXE_WC_SUCCESS;
	return CHANGED;
}

/* An unsignaled one, of which only the error tells. */
static enum effect lose_flush(struct endpoint *end, struct urxe_wc *wc)
{
	const struct stream *stream = stream_of(end);

	return stream->failed && wc->wr_id + 1 < stream->posted &&
			       !stream->request[wc->wr_id].signaled
		       ? LOST
		       : NO_EFFECT;
}

static enum effect repeat_flush(struct endpoint *end, struct urxe_wc *wc)
{
	(void)wc;
	return stream_of(end)->failed ? REPEATED : NO_EFFECT;
}

static enum effect flush_too_early(struct endpoint *end, struct urxe_wc *wc)
{
	if (!end->conn->failure.kind || end->conn->failure.kind == FAILURE_RECEIVES ||
	    end->conn->failure.begun)
		return NO_EFFECT;
	wc->status = URXE_WC_WR_FLUSH_ERR;
	return CHANGED;
}

static enum effect use_up_no_retry(struct endpoint *end, struct urxe_wc *wc)
{
	const struct failure *failure = &end->conn->failure;

	if (failure->kind != FAILURE_RECEIVES || wc->status != URXE_WC_SUCCESS)
		return NO_EFFECT;
	wc->status = URXE_WC_RNR_RETRY_EXC_ERR;
	return CHANGED;
}

static void test_wrong_errors_are_detected(void **state)
{
	static const struct fault faults[] = {
		{"ended with status 11", change_first_error, .failures = 4},
		{"ended with status 12", change_flush, .failures = 4},
		{"succeeded after a mistake", forget_error, .failures = 4},
		{"succeeded after a mistake", forget_flush, .failures = 4},
		{"is next", lose_flush, .failures = 4},
		{"is next", repeat_flush, .failures = 4},
		{"ended with status 5", flush_too_early, .failures = 4},
		{"ended with status 13", use_up_no_retry, .failures = 4},
	};

	(void)state;
	EXPECT_DETECTED(faults);
}

static enum effect fail_flushed_recv(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	if (wc->status != URXE_WC_WR_FLUSH_ERR)
		return NO_EFFECT;
	wc->status = URXE_WC_LOC_LEN_ERR;
	return CHANGED;
}

static enum effect receive_after_flush(struct endpoint *end, struct urxe_wc *wc)
{
	if (!end->flushed)
		return NO_EFFECT;
	wc->status = URXE_WC_SUCCESS;
	return CHANGED;
}

static enum effect flush_good_qp(struct endpoint *end, struct urxe_wc *wc)
{
	if (end->conn->failure.kind || wc->status != URXE_WC_SUCCESS)
		return NO_EFFECT;
	wc->status = URXE_WC_WR_FLUSH_ERR;
	return CHANGED;
}

static enum effect flush_srq(struct endpoint *end, struct urxe_wc *wc)
{
	if (!end->recv_queue->shared || wc->status != URXE_WC_SUCCESS)
		return NO_EFFECT;
	end->in_error = true;
	end->flushed = 1;
	wc->status = URXE_WC_WR_FLUSH_ERR;
	return CHANGED;
}

static void test_wrong_flushes_of_receives_are_detected(void **state)
{
	static const struct fault faults[] = {
		{"status 1", fail_flushed_recv, .receive = true, .failures = 4},
		{"status 0", receive_after_flush, .receive = true, .failures = 4},
		{"status 5", flush_good_qp, .receive = true, .failures = 1},
		{"flushed the requests of its SRQ", flush_srq, .receive = true},
	};

	(void)state;
	EXPECT_DETECTED(faults);
}

/* --- Events. */

static void expect_event_missed(enum urxe_async event, const char *expected)
{
	struct scenario scenario = scenario_default;
	struct world world;
	bool right = true;

	scenario.traffic = TRAFFIC_RC;
	hidden_event = event;
	for (scenario.seed = 1; right && scenario.seed < 50; scenario.seed++) {
		right = world_run(&world, &scenario, NULL, ignore_phase, NULL);
		if (!right && !strstr(world.failure, expected))
			fail_msg("'%s' says nothing of '%s'", world.failure, expected);
		world_free(&world);
	}
	hidden_event = NO_EVENT;
	assert_false(right);
}

static void test_missing_events_are_detected(void **state)
{
	(void)state;
	expect_event_missed(URXE_ASYNC_QP_LAST_WQE_REACHED, "has not told its last receive");
	expect_event_missed(URXE_ASYNC_SRQ_LIMIT_REACHED, "below its limit without an event");
}

static enum effect solicit(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	wc->solicited = !wc->solicited;
	return CHANGED;
}

static void test_wrong_solicitation_is_detected(void **state)
{
	static const struct fault faults[] = {{" solicited", solicit, .receive = true}};

	(void)state;
	EXPECT_DETECTED(faults);
}

/* --- Moves. */

static bool changes_states; /* the last byte of a saved state changes with each save */

int __real_urxe_state_save(struct urxe_dev *dev, uint64_t now, const struct urxe_state_save *how,
			   uint8_t **stream, size_t *length);
int __wrap_urxe_state_save(struct urxe_dev *dev, uint64_t now, const struct urxe_state_save *how,
			   uint8_t **stream, size_t *length);

int __wrap_urxe_state_save(struct urxe_dev *dev, uint64_t now, const struct urxe_state_save *how,
			   uint8_t **stream, size_t *length)
{
	static uint32_t saves;
	int rc = __real_urxe_state_save(dev, now, how, stream, length);

	/* The engine restores every first of two saves. */
	if (!rc && changes_states && saves++ % 2)
		(*stream)[*length - 1] ^= 0x80;
	return rc;
}

static void test_wrong_restoration_is_detected(void **state)
{
	struct scenario scenario = scenario_default;
	struct world world;

	(void)state;
	scenario.migrate = 5;
	scenario.movers = MOVERS_OPENERS;
	scenario.pattern = PATTERN_PAIRS;
	changes_states = true;
	assert_false(world_run(&world, &scenario, NULL, ignore_phase, NULL));
	changes_states = false;
	assert_non_null(strstr(world.failure, "the restored state differs from the saved one"));
	world_free(&world);
}

typedef void phase_fn(void *arg, enum phase phase, struct world *world);

/* The simulation fails, and its failure names the fault. */
static void expect_failure(const struct scenario *scenario, const char *expected,
			   phase_fn *on_phase)
{
	struct world world;

	assert_false(world_run(&world, scenario, NULL, on_phase, NULL));
	if (!strstr(world.failure, expected))
		fail_msg("'%s' says nothing of '%s'", world.failure, expected);
	world_free(&world);
}

static void expect_drain_fault(const char *expected, phase_fn *on_phase)
{
	struct scenario scenario = scenario_default;

	scenario.drains = 10;
	scenario.messages = 60;
	expect_failure(&scenario, expected, on_phase);
}

/* As if SQ_DRAINED had come before the first request. */
static void drain_before_traffic(void *arg, enum phase phase, struct world *world)
{
	(void)arg;
	for (uint32_t i = 0; phase == PHASE_SETUP && i < world->n_conns; i++)
		world->conn[i].end[0].drain.state = DRAIN_ENDED;
}

/* As if the application had not begun to drain the send queue. */
static void forget_drains(void *arg, enum phase phase, struct world *world)
{
	(void)arg;
	if (phase == PHASE_TRAFFIC && !world->failure[0])
		check_event(world->conn[0].end[0].host, URXE_ASYNC_SQ_DRAINED,
			    &world->conn[0].end[0]);
}

static void test_wrong_drains_are_detected(void **state)
{
	(void)state;
	expect_drain_fault("whose send queue is drained", drain_before_traffic);
	expect_drain_fault("asynchronous event 5", forget_drains);
	hidden_event = URXE_ASYNC_SQ_DRAINED;
	expect_drain_fault("no request makes progress", ignore_phase);
	hidden_event = NO_EVENT;
}

/* --- Shared receive queues. */

static enum {
	NO_SRQ_FAULT,
	REFUSED_RESIZE,
	EXCESSIVE_RESIZE,
	REFUSED_LIMIT,
	FORGOTTEN_LIMIT,
} srq_fault;

int __real_urxe_srq_resize(struct urxe_rq *srq, uint32_t max_wr);
int __wrap_urxe_srq_resize(struct urxe_rq *srq, uint32_t max_wr);
int __real_urxe_srq_set_limit(struct urxe_rq *srq, uint32_t limit);
int __wrap_urxe_srq_set_limit(struct urxe_rq *srq, uint32_t limit);

int __wrap_urxe_srq_resize(struct urxe_rq *srq, uint32_t max_wr)
{
	int rc;

	if (srq_fault == REFUSED_RESIZE)
		return -EINVAL;
	rc = __real_urxe_srq_resize(srq, max_wr);
	if (!rc && srq_fault == EXCESSIVE_RESIZE)
		rc = __real_urxe_srq_resize(srq, max_wr + 1);
	return rc;
}

int __wrap_urxe_srq_set_limit(struct urxe_rq *srq, uint32_t limit)
{
	if (srq_fault == REFUSED_LIMIT)
		return -EINVAL;
	return __real_urxe_srq_set_limit(srq, srq_fault == FORGOTTEN_LIMIT ? 0 : limit);
}

/* Some world with resizes fails with this message. */
static void expect_srq_fault(int one, const char *expected)
{
	struct scenario scenario = scenario_default;
	struct world world;
	bool found = false;

	scenario.resizes = 20;
	scenario.messages = 60;
	srq_fault = one;
	for (scenario.seed = 1; !found && scenario.seed < 50; scenario.seed++) {
		world_run(&world, &scenario, NULL, ignore_phase, NULL);
		found = strstr(world.failure, expected);
		world_free(&world);
	}
	srq_fault = NO_SRQ_FAULT;
	if (!found)
		fail_msg("no world says '%s'", expected);
}

static void test_wrong_srqs_are_detected(void **state)
{
	(void)state;
	expect_srq_fault(REFUSED_RESIZE, "the resize of an SRQ with");
	expect_srq_fault(EXCESSIVE_RESIZE, "post_recv returned 0 with");
	expect_srq_fault(FORGOTTEN_LIMIT, "an SRQ has the limit 0, not");
	expect_srq_fault(REFUSED_LIMIT, "requests returned -22");
}

/* --- Changed attributes. */

static enum { NO_REREG_FAULT, FAILED_REREG, IGNORED_WINDOW } rereg_fault;

int __real_urxe_mr_rereg(struct urxe_mr **mr, const struct urxe_mr_attr *attr);
int __wrap_urxe_mr_rereg(struct urxe_mr **mr, const struct urxe_mr_attr *attr);

int __wrap_urxe_mr_rereg(struct urxe_mr **mr, const struct urxe_mr_attr *attr)
{
	int rc = __real_urxe_mr_rereg(mr, attr);

	if (rereg_fault == FAILED_REREG && !rc)
		return -EBUSY;
	if (rereg_fault == IGNORED_WINDOW && rc)
		return 0;
	return rc;
}

static void expect_change_fault(const char *expected, phase_fn *on_phase)
{
	struct scenario scenario = scenario_default;

	scenario.changes = 40;
	scenario.messages = 60;
	scenario.traffic = TRAFFIC_RC;
	expect_failure(&scenario, expected, on_phase);
}

/* As if the application had set another timeout than the engine has. */
static void forget_timeout(void *arg, enum phase phase, struct world *world)
{
	(void)arg;
	if (phase == PHASE_SETUP)
		world->conn[0].end[0].change.attr.timeout++;
}

/* As if the region had another key before. */
static void forget_key(void *arg, enum phase phase, struct world *world)
{
	(void)arg;
	if (phase != PHASE_TRAFFIC)
		return;
	world->host[0].key ^= 1;
	check_rereg(&world->host[0], 0);
}

static void test_wrong_changes_are_detected(void **state)
{
	(void)state;
	expect_change_fault("timeout of qp", forget_timeout);
	expect_change_fault("re-registration changed the key", forget_key);
	rereg_fault = FAILED_REREG;
	expect_change_fault("re-registration of its memory returned -16", ignore_phase);
	rereg_fault = IGNORED_WINDOW;
	expect_change_fault("re-registration of its memory returned 0", ignore_phase);
	rereg_fault = NO_REREG_FAULT;
}

/* --- Multicast. The QPs of members have no endpoint. */

static enum effect lengthen_datagram(struct endpoint *end, struct urxe_wc *wc)
{
	return end ? NO_EFFECT : change_length(end, wc);
}

static enum effect change_sender(struct endpoint *end, struct urxe_wc *wc)
{
	if (end)
		return NO_EFFECT;
	wc->src_qpn = 0;
	return CHANGED;
}

static enum effect claim_unsent_datagram(struct endpoint *end, struct urxe_wc *wc)
{
	return end ? NO_EFFECT : claim_another_message(end, wc);
}

static enum effect flush_member(struct endpoint *end, struct urxe_wc *wc)
{
	if (end || wc->status != URXE_WC_SUCCESS)
		return NO_EFFECT;
	wc->status = URXE_WC_WR_FLUSH_ERR;
	return CHANGED;
}

static enum effect repeat_datagram(struct endpoint *end, struct urxe_wc *wc)
{
	(void)wc;
	return end ? NO_EFFECT : REPEATED;
}

static void expect_member_fault(const char *expected, phase_fn *on_phase)
{
	struct scenario scenario = scenario_default;

	scenario.members = 8;
	scenario.messages = 60;
	expect_failure(&scenario, expected, on_phase);
}

static void set_seen(struct world *world, uint8_t seen)
{
	for (uint32_t i = 0; i < world->members.n; i++)
		memset(world->members.member[i].seen, seen, world->members.n * MEMBER_MESSAGES);
}

static void forget_memberships(void *arg, enum phase phase, struct world *world)
{
	(void)arg;
	for (uint32_t i = 0; phase == PHASE_SETUP && i < world->members.n; i++)
		memset(world->members.member[i].attached, 0, MEMBER_GROUPS);
}

static void deliver_before(void *arg, enum phase phase, struct world *world)
{
	(void)arg;
	if (phase == PHASE_SETUP)
		set_seen(world, MESSAGE_ARRIVED);
}

static void forget_datagrams(void *arg, enum phase phase, struct world *world)
{
	(void)arg;
	if (phase == PHASE_QUIET)
		set_seen(world, MESSAGE_DUE);
}

static void forget_multicast_completion(void *arg, enum phase phase, struct world *world)
{
	(void)arg;
	if (phase == PHASE_QUIET)
		world->members.member[0].completed--;
}

static void drop_datagram(void *arg, enum phase phase, struct world *world)
{
	const struct urxe_counters *counters;

	(void)arg;
	if (phase != PHASE_QUIET)
		return;
	counters = urxe_qp_counters(world->members.member[0].qp);
	((struct urxe_counters *)(uintptr_t)counters)->drop[URXE_DROP_BAD_QKEY]++;
}

static void establish_member(void *arg, enum phase phase, struct world *world)
{
	struct member *member = &world->members.member[0];

	(void)arg;
	if (phase == PHASE_SETUP)
		check_event(member->host, URXE_ASYNC_COMM_EST, member);
}

static void test_wrong_multicast_is_detected(void **state)
{
	static const struct fault faults[] = {
		{"with wrong content", lengthen_datagram, .receive = true, .members = 8},
		{"that nobody sent", claim_unsent_datagram, .receive = true, .members = 8},
		{"that nobody sent", change_sender, .receive = true, .members = 8},
		{"status 5", flush_member, .receive = true, .members = 8},
		{"not outstanding", repeat_datagram, .receive = true, .members = 8},
		{"of multicast qp", repeat_datagram, .members = 8},
	};

	(void)state;
	EXPECT_DETECTED(faults);
	expect_member_fault("to a group that it is not in", forget_memberships);
	expect_member_fault("twice", deliver_before);
	expect_member_fault("are missing", forget_datagrams);
	expect_member_fault("are complete", forget_multicast_completion);
	expect_member_fault("as bad_qkey", drop_datagram);
	expect_member_fault("of a multicast qp", establish_member);
}

/* --- Timers. */

static struct world *spinning; /* a timer of host 0 is due for ever; NULL: none */
static bool sends;             /* with a frame each time */
static uint32_t turns_left;    /* after so many turns the simulator has not found it */

uint64_t __real_urxe_next_deadline(const struct urxe_dev *dev);
uint64_t __wrap_urxe_next_deadline(const struct urxe_dev *dev);

uint64_t __wrap_urxe_next_deadline(const struct urxe_dev *dev)
{
	static const uint8_t to_host_1[64] = {2, 0, 0, 0, 0, 2};

	if (!spinning || dev != spinning->host[0].dev)
		return __real_urxe_next_deadline(dev);
	if (!turns_left--)
		fail_msg("the simulation does not end");
	if (sends)
		fabric_send(&spinning->fabric, spinning->now, 0, to_host_1, sizeof(to_host_1));
	return spinning->now;
}

static void begin_to_spin(void *arg, enum phase phase, struct world *world)
{
	(void)arg;
	if (phase == PHASE_SETUP)
		spinning = world;
}

static void test_spinning_timers_are_detected(void **state)
{
	struct scenario scenario = scenario_default;
	struct world world;

	(void)state;
	scenario.traffic = TRAFFIC_RC;
	scenario.rate = 0;
	for (int i = 0; i < 2; i++) {
		sends = i;
		turns_left = 1000000;
		assert_false(world_run(&world, &scenario, NULL, begin_to_spin, NULL));
		spinning = NULL;
		assert_non_null(strstr(world.failure, "a deadline stays due"));
		world_free(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_receives_are_detected),
		cmocka_unit_test(test_wrong_completions_are_detected),
		cmocka_unit_test(test_wrong_errors_are_detected),
		cmocka_unit_test(test_wrong_flushes_of_receives_are_detected),
		cmocka_unit_test(test_missing_events_are_detected),
		cmocka_unit_test(test_wrong_solicitation_is_detected),
		cmocka_unit_test(test_wrong_restoration_is_detected),
		cmocka_unit_test(test_wrong_drains_are_detected),
		cmocka_unit_test(test_wrong_srqs_are_detected),
		cmocka_unit_test(test_wrong_changes_are_detected),
		cmocka_unit_test(test_wrong_multicast_is_detected),
		cmocka_unit_test(test_spinning_timers_are_detected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
