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

#include <rdma/rdma_user_rxe.h>
#include <rxe/state.h>

#include "checkpoint/quiesce.h"
#include "engine/clock.h"
#include "fake_hca.h"
#include "hca_program.h"
#include "queues/verbs_srq.h"
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

/* --- MODIFY_SRQ. */

/* Attributes of the SRQ for the engine's and the HCA's queue. */
static int modify(uint32_t mask, uint32_t max_wr, uint32_t limit)
{
	struct mminfo ring;
	const struct {
		struct ib_uverbs_modify_srq core;
		struct rxe_modify_srq_cmd driver;
	} request = {.core = {.srq_handle = srq,
			      .attr_mask = mask,
			      .max_wr = max_wr,
			      .srq_limit = limit},
		     .driver = {.mmap_info_addr = (uintptr_t)&ring}};

	return COMMAND(MODIFY_SRQ, request, NULL);
}

/* With adapter.lock. */
static struct urxe_rq *find_srq(void)
{
	struct object *object = handle_find(&uverbs_file_lookup(device)->handles, OBJECT_SRQ, srq);

	return ((const struct srq *)object)->recv.rq;
}

static void expect_limit(uint32_t limit)
{
	uint32_t armed;

	adapter_lock();
	armed = urxe_srq_limit(find_srq());
	adapter_unlock();
	assert_int_equal(armed, limit);
	assert_int_equal(fake_hca.srq_limit, limit);
}

static uint32_t new_size, new_limit; /* new_limit 0: none is given */

static void *resize_slowly(void *arg)
{
	const uint32_t mask = IBV_SRQ_MAX_WR | (new_limit ? IBV_SRQ_LIMIT : 0);

	slow_rc = modify(mask, new_size, new_limit);
	return arg;
}

static pthread_t start_resize(uint32_t size, uint32_t limit)
{
	new_size = size;
	new_limit = limit;
	assert_int_equal(create_srq(), 0);
	return start_slow(FAKE_HCA_MODIFY_SRQ, resize_slowly);
}

/* Messages that take the requests meanwhile raise the event. */
static void a_limit_stays_armed_while_the_queue_is_resized(void **state)
{
	pthread_t thread = start_resize(63, 0);

	(void)state;
	expect_limit(4);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	expect_limit(4);
}

static void a_limit_may_be_set_while_the_queue_is_resized(void **state)
{
	pthread_t thread = start_resize(63, 0);

	(void)state;
	assert_int_equal(modify(IBV_SRQ_LIMIT, 0, 2), 0);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	expect_limit(2);
}

static void a_resize_may_set_a_limit(void **state)
{
	pthread_t thread = start_resize(63, 20);

	(void)state;
	expect_limit(4);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	expect_limit(20);
}

/* The old limit exceeds the new size. */
static void a_smaller_queue_may_get_a_smaller_limit(void **state)
{
	pthread_t thread = start_resize(3, 2);

	(void)state;
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	expect_limit(2);
}

static void post_receives(int n)
{
	const struct urxe_recv_wr wr = {.wr_id = 1};

	adapter_lock();
	for (int i = 0; i < n; i++)
		assert_int_equal(urxe_post_recv(find_srq(), &wr), 0);
	adapter_unlock();
}

/* The queue has more requests than the new size. */
static void a_refused_resize_restores_the_limit(void **state)
{
	(void)state;
	assert_int_equal(create_srq(), 0);
	post_receives(5);
	assert_int_equal(modify(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 3, 2), -EINVAL);
	expect_limit(4);
}

static void a_refused_resize_arms_no_limit_that_another_thread_has_disarmed(void **state)
{
	pthread_t thread = start_resize(3, 2);

	(void)state;
	post_receives(5);
	assert_int_equal(modify(IBV_SRQ_LIMIT, 0, 0), 0);
	let_go_on(thread);
	assert_int_equal(slow_rc, -EINVAL);
	expect_limit(0);
}

/* The limit comes from another thread during the resize. */
static void a_queue_does_not_become_smaller_than_its_limit(void **state)
{
	pthread_t thread = start_resize(7, 0);

	(void)state;
	assert_int_equal(modify(IBV_SRQ_LIMIT, 0, 8), 0);
	let_go_on(thread);
	assert_int_equal(slow_rc, -EINVAL);
	expect_limit(8);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_queue_may_reach_its_limit_before_it_has_its_handle),
		TEST(a_queue_that_is_not_made_leaves_no_event),
		TEST(an_hca_may_go_before_the_queue_has_its_handle),
		TEST(a_checkpoint_saves_no_queue_without_a_handle),
		TEST(a_limit_stays_armed_while_the_queue_is_resized),
		TEST(a_limit_may_be_set_while_the_queue_is_resized),
		TEST(a_resize_may_set_a_limit),
		TEST(a_smaller_queue_may_get_a_smaller_limit),
		TEST(a_refused_resize_restores_the_limit),
		TEST(a_refused_resize_arms_no_limit_that_another_thread_has_disarmed),
		TEST(a_queue_does_not_become_smaller_than_its_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
