/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands of shared receive queues, from the uverbs ABI to a slow HCA, which a provider double
 * plays. The test plays the program and the engine thread.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rxe/state.h>

#include "checkpoint/quiesce.h"
#include "engine/clock.h"
#include "fake_hca.h"
#include "hca_program.h"
#include "slow_thread.h"

#define MTU 4200

static struct vnic_loop *loop;

static int setup(void **state)
{
	(void)state;
	fake_hca_init();
	slow_thread_init();
	loop = open_with_hca(MTU);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_with_hca(loop);
	assert_int_equal(fake_hca.pds + fake_hca.srqs, 0);
	return 0;
}

static int slow_rc;

/* --- CREATE_SRQ. */

static void *create_slowly(void *arg)
{
	slow_rc = create_srq();
	return arg;
}

static void reach_limit(void)
{
	fake_hca.event = (struct ibv_async_event){.event_type = IBV_EVENT_SRQ_LIMIT_REACHED,
						  .element.srq = &fake_hca.srq};
	fake_hca.has_event = true;
	handle_hca_events();
}

/* An HCA may raise the event at once, because the queue has no requests yet. */
static void a_queue_may_reach_its_limit_before_it_has_its_handle(void **state)
{
	pthread_t thread;

	(void)state;
	end_by_faults();
	thread = start_slow(FAKE_HCA_MODIFY_SRQ, create_slowly);
	reach_limit();
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	expect_event(SRQ_HANDLE, IBV_EVENT_SRQ_LIMIT_REACHED);
}

/* The program gets no event of a queue that it does not have. */
static void a_queue_that_is_not_made_leaves_no_event(void **state)
{
	pthread_t thread;

	(void)state;
	end_by_faults();
	fake_hca.srq_error = EIO;
	thread = start_slow(FAKE_HCA_MODIFY_SRQ, create_slowly);
	reach_limit();
	assert_true(is_readable(events));
	let_go_on(thread);
	assert_int_equal(slow_rc, -EIO);
	assert_false(is_readable(events));
}

/* The HCA that has gone has refused nothing: the queue is the engine's. */
static void an_hca_may_go_before_the_queue_has_its_handle(void **state)
{
	pthread_t thread;

	(void)state;
	end_by_faults();
	fake_hca.srq_error = EIO;
	thread = start_slow(FAKE_HCA_MODIFY_SRQ, create_slowly);
	set_hca("");
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	expect_event(SRQ_HANDLE, IBV_EVENT_SRQ_ERR);
	assert_int_equal(fake_hca.closed, 1);
}

static uint32_t saved; /* SRQs with a handle */

static uint64_t require_handle(void *arg, enum urxe_state_kind kind, void *ctx)
{
	const uint32_t handle = ((const struct object *)ctx)->handle;

	(void)arg;
	assert_int_equal(kind, URXE_STATE_SRQ);
	saved += handle != 0;
	return handle;
}

/* The handle is the name of the queue in the image. */
static void a_checkpoint_saves_no_queue_without_a_handle(void **state)
{
	const struct urxe_state_save how = {.tag = require_handle};
	pthread_t thread;
	uint8_t *stream;
	size_t length;
	int rc;

	(void)state;
	saved = 0;
	assert_int_equal(leases_add_new(&adapter.leases, 0x1000), 0);
	thread = start_slow(FAKE_HCA_MODIFY_SRQ, create_slowly);
	assert_int_equal(quiesce_begin(60000), 0);
	rc = urxe_state_save(adapter.dev, clock_now(), &how, &stream, &length);
	assert_int_equal(quiesce_end(), 0);
	let_go_on(thread);
	assert_int_equal(rc, 0);
	urxe_state_free(stream);
	assert_int_equal(saved, 1);
	assert_int_equal(slow_rc, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_queue_may_reach_its_limit_before_it_has_its_handle),
		TEST(a_queue_that_is_not_made_leaves_no_event),
		TEST(an_hca_may_go_before_the_queue_has_its_handle),
		TEST(a_checkpoint_saves_no_queue_without_a_handle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
