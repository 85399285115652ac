/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The simulator's checkers of completions: each test changes, loses or repeats one completion
 * between the engine and its checker, or damages memory before the check, and expects the checker's
 * message.
 */
#include <arpa/inet.h>
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

/* What a function of a lie has done to the completion; TRUE: nothing, it waits for another one. */
enum told { TRUE, CHANGED, LOST, REPEATED };

struct lie {
	const char *expected; /* part of the failure */
	enum told (*tell)(struct endpoint *end, struct urxe_wc *wc);
	bool receive; /* about a receive, not a send */
	enum traffic traffic;
	uint64_t failures;
};

static const struct lie *lie; /* NULL: it has been told */

void __real_check_completion(struct simhost *host, const struct urxe_wc *wc);
void __wrap_check_completion(struct simhost *host, const struct urxe_wc *wc);
void __real_check_delivery(struct simhost *host, const struct urxe_wc *wc);
void __wrap_check_delivery(struct simhost *host, const struct urxe_wc *wc);

static void tell(struct simhost *host, const struct urxe_wc *wc, bool receive,
		 void (*check)(struct simhost *host, const struct urxe_wc *wc))
{
	enum told told = TRUE;
	struct urxe_wc copy = *wc;

	if (lie && lie->receive == receive)
		told = lie->tell(simhost_end(host, wc->qpn), &copy);
	if (told != TRUE)
		lie = NULL;
	if (told != LOST)
		check(host, &copy);
	if (told == REPEATED)
		check(host, &copy);
}

void __wrap_check_completion(struct simhost *host, const struct urxe_wc *wc)
{
	tell(host, wc, false, __real_check_completion);
}

void __wrap_check_delivery(struct simhost *host, const struct urxe_wc *wc)
{
	tell(host, wc, true, __real_check_delivery);
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

/* Tells the lie in the first of some worlds in which it can be told. */
static void expect_detected(const struct lie *told)
{
	struct scenario scenario = scenario_default;
	struct world world;

	scenario.traffic = told->traffic;
	scenario.messages = 60;
	scenario.failures = told->failures;
	lie = told;
	for (scenario.seed = 1; lie && scenario.seed < 50; scenario.seed++) {
		world_run(&world, &scenario, NULL, ignore_phase, NULL);
		if (!lie && !strstr(world.failure, told->expected))
			fail_msg("'%s' says nothing of '%s'", world.failure, told->expected);
		if (lie)
			assert_string_equal(world.failure, "");
		world_free(&world);
	}
	if (lie)
		fail_msg("no completion for '%s'", told->expected);
}

static void expect_all_detected(const struct lie *lies, size_t n)
{
	for (size_t i = 0; i < n; i++)
		expect_detected(&lies[i]);
}

#define EXPECT_DETECTED(lies) expect_all_detected(lies, sizeof(lies) / sizeof((lies)[0]))

/* --- Requests that end in an error. */

static struct stream *stream_of(const struct endpoint *end)
{
	return &end->conn->stream[end->side];
}

static enum told change_first_error(struct endpoint *end, struct urxe_wc *wc)
{
	if (wc->status == URXE_WC_SUCCESS || stream_of(end)->failed)
		return TRUE;
	wc->status = URXE_WC_REM_OP_ERR;
	return CHANGED;
}

static enum told change_flush(struct endpoint *end, struct urxe_wc *wc)
{
	if (!stream_of(end)->failed)
		return TRUE;
	wc->status = URXE_WC_RETRY_EXC_ERR;
	return CHANGED;
}

static enum told forget_error(struct endpoint *end, struct urxe_wc *wc)
{
	if (wc->status == URXE_WC_SUCCESS || wc->wr_id != stream_of(end)->mistake)
		return TRUE;
	wc->status = URXE_WC_SUCCESS;
	return CHANGED;
}

static enum told forget_flush(struct endpoint *end, struct urxe_wc *wc)
{
	if (!stream_of(end)->failed)
		return TRUE;
	wc->status = URXE_WC_SUCCESS;
	return CHANGED;
}

/* An unsignaled one, of which only the error tells. */
static enum told lose_flush(struct endpoint *end, struct urxe_wc *wc)
{
	const struct stream *stream = stream_of(end);

	return stream->failed && wc->wr_id + 1 < stream->posted &&
			       !stream->request[wc->wr_id].signaled
		       ? LOST
		       : TRUE;
}

static enum told repeat_flush(struct endpoint *end, struct urxe_wc *wc)
{
	(void)wc;
	return stream_of(end)->failed ? REPEATED : TRUE;
}

static enum told flush_too_early(struct endpoint *end, struct urxe_wc *wc)
{
	if (!end->conn->failure.kind || end->conn->failure.kind == FAILURE_RECEIVES ||
	    end->conn->failure.begun)
		return TRUE;
	wc->status = URXE_WC_WR_FLUSH_ERR;
	return CHANGED;
}

static enum told use_up_no_retry(struct endpoint *end, struct urxe_wc *wc)
{
	const struct failure *failure = &end->conn->failure;

	if (failure->kind != FAILURE_RECEIVES || wc->status != URXE_WC_SUCCESS)
		return TRUE;
	wc->status = URXE_WC_RNR_RETRY_EXC_ERR;
	return CHANGED;
}

static void test_wrong_errors_are_detected(void **state)
{
	static const struct lie lies[] = {
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
	EXPECT_DETECTED(lies);
}

static enum told fail_flushed_recv(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	if (wc->status != URXE_WC_WR_FLUSH_ERR)
		return TRUE;
	wc->status = URXE_WC_LOC_LEN_ERR;
	return CHANGED;
}

static enum told receive_after_flush(struct endpoint *end, struct urxe_wc *wc)
{
	if (!end->flushed)
		return TRUE;
	wc->status = URXE_WC_SUCCESS;
	return CHANGED;
}

static enum told flush_good_qp(struct endpoint *end, struct urxe_wc *wc)
{
	if (end->conn->failure.kind || wc->status != URXE_WC_SUCCESS)
		return TRUE;
	wc->status = URXE_WC_WR_FLUSH_ERR;
	return CHANGED;
}

static enum told flush_srq(struct endpoint *end, struct urxe_wc *wc)
{
	if (!end->recv_queue->shared || wc->status != URXE_WC_SUCCESS)
		return TRUE;
	end->in_error = true;
	end->flushed = 1;
	wc->status = URXE_WC_WR_FLUSH_ERR;
	return CHANGED;
}

static void test_wrong_flushes_of_receives_are_detected(void **state)
{
	static const struct lie lies[] = {
		{"status 1", fail_flushed_recv, .receive = true, .failures = 4},
		{"status 0", receive_after_flush, .receive = true, .failures = 4},
		{"status 5", flush_good_qp, .receive = true, .failures = 1},
		{"flushed the requests of its SRQ", flush_srq, .receive = true},
	};

	(void)state;
	EXPECT_DETECTED(lies);
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

static enum told solicit(struct endpoint *end, struct urxe_wc *wc)
{
	(void)end;
	wc->solicited = !wc->solicited;
	return CHANGED;
}

static void test_wrong_solicitation_is_detected(void **state)
{
	static const struct lie lies[] = {{" solicited", solicit, .receive = true}};

	(void)state;
	EXPECT_DETECTED(lies);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_errors_are_detected),
		cmocka_unit_test(test_wrong_flushes_of_receives_are_detected),
		cmocka_unit_test(test_missing_events_are_detected),
		cmocka_unit_test(test_wrong_solicitation_is_detected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
