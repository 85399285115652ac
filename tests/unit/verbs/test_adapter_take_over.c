/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two threads want the engine to take over the HCA's queue pairs, or abandon that. The test plays
 * the engine and the HCA. The engine's time stands still.
 */
#include "daemon/adapter_hca.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hca/hca.h>

#include "adapter/adapter.h"
#include "engine/clock.h"

/* So many calls look for a pause of the peers. */
#define PATIENCE 15

static int answer; /* of the engine */
static enum urxe_offload_reason waits_for;
static bool stopped;  /* queue pairs wait for their receive requests */
static bool forced;   /* the engine's newest call */
static bool resizing; /* a thread resizes a CQ, so completions may be left */
static unsigned calls, keeps, polls;

int __wrap_urxe_offload_take_over(struct urxe_dev *dev, uint64_t now, bool force,
				  struct urxe_offload_refusal *refusal);
void __wrap_urxe_offload_keep(struct urxe_dev *dev);
bool __wrap_urxe_offload_stopped(const struct urxe_dev *dev);
bool __wrap_hca_drain(struct hca *hca);
bool __wrap_hca_is_dead(const struct hca *hca);
bool __wrap_vnic_driver_qpns_handled(const struct vnic_driver *drv);

int __wrap_urxe_offload_take_over(struct urxe_dev *dev, uint64_t now, bool force,
				  struct urxe_offload_refusal *refusal)
{
	(void)dev;
	(void)now;
	*refusal = (struct urxe_offload_refusal){.reason = answer == -EAGAIN ? waits_for
							   : answer == -EOPNOTSUPP
								   ? URXE_OFFLOAD_STALE_PSN
								   : 0};
	forced = force;
	calls++;
	return answer;
}

void __wrap_urxe_offload_keep(struct urxe_dev *dev)
{
	(void)dev;
	keeps++;
}

bool __wrap_urxe_offload_stopped(const struct urxe_dev *dev)
{
	(void)dev;
	return stopped;
}

bool __wrap_hca_drain(struct hca *hca)
{
	(void)hca;
	polls++;
	return !resizing;
}

bool __wrap_hca_is_dead(const struct hca *hca)
{
	(void)hca;
	return false;
}

bool __wrap_vnic_driver_qpns_handled(const struct vnic_driver *drv)
{
	(void)drv;
	return true;
}

static int open_hca(void **state)
{
	static int hca;

	(void)state;
	adapter.hca = (struct adapter_hca){.hca = (struct hca *)&hca};
	answer = -EAGAIN;
	waits_for = URXE_OFFLOAD_BUSY_PEER;
	stopped = resizing = false;
	calls = keeps = polls = 0;
	return 0;
}

static void pass_time(void)
{
	adapter.hca.take_over.due = 0;
}

static int take_over(enum hca_taker taker)
{
	struct urxe_offload_refusal refusal;
	int rc = adapter_hca_take_over(taker, &refusal);

	if (rc == -EAGAIN)
		assert_int_equal(refusal.reason, waits_for);
	return rc;
}

static void two_takers_share_an_attempt(void **state)
{
	(void)state;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(take_over(TAKER_GONE), -EAGAIN);
	assert_int_equal(calls, 1);
	pass_time();
	assert_int_equal(take_over(TAKER_GONE), -EAGAIN);
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(calls, 2);
	adapter_hca_abandon(TAKER_QUIESCE);
	assert_int_equal(keeps, 0);
	adapter_hca_abandon(TAKER_GONE);
	assert_int_equal(keeps, 1);
}

static void a_new_attempt_waits_as_long_for_a_pause(void **state)
{
	(void)state;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	adapter_hca_abandon(TAKER_QUIESCE);
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(calls, 2);
	for (unsigned i = 1; i < PATIENCE; i++) {
		pass_time();
		assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
		assert_false(forced);
	}
	pass_time();
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_true(forced);
}

/* The engine's time stands still, so the pause between two calls of an attempt does not end. */
static void a_new_attempt_tells_its_own_reason(void **state)
{
	(void)state;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	adapter_hca_abandon(TAKER_QUIESCE);
	waits_for = URXE_OFFLOAD_REQUESTS;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(calls, 2);
}

static void a_refusal_leaves_no_reason_behind(void **state)
{
	(void)state;
	answer = -EOPNOTSUPP;
	assert_int_equal(take_over(TAKER_QUIESCE), -EOPNOTSUPP);
	assert_int_equal(take_over(TAKER_GONE), -EOPNOTSUPP);
	adapter_hca_abandon(TAKER_QUIESCE);
	answer = -EAGAIN;
	assert_int_equal(take_over(TAKER_GONE), -EAGAIN);
	assert_int_equal(calls, 3);
	assert_int_equal(keeps, 0);
}

static void the_engine_goes_on_with_stopped_queue_pairs(void **state)
{
	(void)state;
	stopped = true;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(calls, 2);
	adapter_hca_abandon(TAKER_QUIESCE);
	assert_true(adapter.hca.qps_stopped);
	polls = keeps = 0;
	adapter_hca_finish();
	assert_int_equal(polls, 1);
	assert_int_equal(keeps, 1);
	assert_true(adapter.hca.qps_stopped);
	/* A new attempt holds the requests of the others back. */
	assert_int_equal(take_over(TAKER_GONE), -EAGAIN);
	stopped = false;
	adapter_hca_finish();
	assert_int_equal(keeps, 1);
	assert_false(adapter.hca.qps_stopped);
	adapter_hca_finish();
	assert_int_equal(polls, 3);
}

/* The requests of a shared receive queue that have no completion are those that the HCA has not
 * used. */
static void the_engine_goes_on_after_all_completions(void **state)
{
	(void)state;
	stopped = resizing = true;
	waits_for = URXE_OFFLOAD_REQUESTS;
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	adapter_hca_abandon(TAKER_QUIESCE);
	adapter_hca_finish();
	assert_int_equal(calls + keeps, 0);
	stopped = resizing = false;
	assert_true(adapter.hca.qps_stopped);
	adapter_hca_finish();
	assert_int_equal(keeps, 1);
	assert_false(adapter.hca.qps_stopped);
	assert_int_equal(take_over(TAKER_QUIESCE), -EAGAIN);
	assert_int_equal(calls, 1);
}

static void success_ends_the_attempts_of_both_takers(void **state)
{
	(void)state;
	assert_int_equal(take_over(TAKER_GONE), -EAGAIN);
	pass_time();
	answer = 0;
	assert_int_equal(take_over(TAKER_QUIESCE), 0);
	assert_int_equal(adapter.hca.take_over.takers, 0);
	assert_int_equal(take_over(TAKER_GONE), 0);
	assert_int_equal(keeps, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(two_takers_share_an_attempt, open_hca),
		cmocka_unit_test_setup(a_new_attempt_waits_as_long_for_a_pause, open_hca),
		cmocka_unit_test_setup(a_new_attempt_tells_its_own_reason, open_hca),
		cmocka_unit_test_setup(a_refusal_leaves_no_reason_behind, open_hca),
		cmocka_unit_test_setup(the_engine_goes_on_with_stopped_queue_pairs, open_hca),
		cmocka_unit_test_setup(the_engine_goes_on_after_all_completions, open_hca),
		cmocka_unit_test_setup(success_ends_the_attempts_of_both_takers, open_hca),
	};

	clock_stop();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
