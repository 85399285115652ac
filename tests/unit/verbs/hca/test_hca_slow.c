/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A slow HCA, which a provider double plays: while one thread waits for it, without the lock, the
 * others use the engine and the HCA.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hca/hca.h>
#include <hca/objects/hca_ah.h>
#include <rxe/offload.h>
#include <rxe/rxe.h>

#include "slow_hca.h"

static struct urxe_mr *region;
static _Alignas(4096) uint8_t bytes[2][4096];

/* --- Slow threads */

static const struct urxe_extent extents[] = {{bytes[0], sizeof(bytes[0])},
					     {bytes[1], sizeof(bytes[1])}};
static const struct urxe_mr_attr attrs[] = {{.pd = OFFLOADED_PD,
					     .access = URXE_ACCESS_LOCAL_WRITE,
					     .length = sizeof(bytes[0]),
					     .extents = &extents[0],
					     .n_extents = 1},
					    {.pd = OFFLOADED_PD,
					     .access = URXE_ACCESS_LOCAL_WRITE,
					     .length = sizeof(bytes[1]),
					     .extents = &extents[1],
					     .n_extents = 1}};

/* With the lock. The HCA may have gone. */
static int add_region(const struct urxe_mr_attr *attr, struct hca_mr *mr, uint32_t key)
{
	if (!f->hca)
		return -ENODEV;
	return region ? urxe_offload_mr_rereg(&region, attr, mr, key)
		      : urxe_offload_mr_reg(f->dev, attr, mr, key, &region);
}

/* Registers the region, or registers it again with other memory. */
static void *register_region(void *arg)
{
	const struct urxe_mr_attr *attr = &attrs[region != NULL];
	struct hca *hca = f->hca;
	struct hca_mr *mr;
	uint32_t key = 0;
	int rc;

	(void)arg;
	pthread_mutex_lock(&f->lock);
	rc = hca_mr_begin(hca, attr, &mr);
	pthread_mutex_unlock(&f->lock);
	if (rc)
		return NULL;
	rc = hca_mr_run(mr, attr, &key);
	pthread_mutex_lock(&f->lock);
	if (f->hca)
		hca_defer_destruction(hca);
	if (!rc)
		rc = add_region(attr, mr, key);
	hca_mr_end(mr, !rc);
	if (f->hca)
		hca_destroy_deferred(hca);
	pthread_mutex_unlock(&f->lock);
	hca_release(hca);
	return NULL;
}

static struct urxe_path path; /* of the next handle */

static void *make_handle(void *arg)
{
	struct hca *hca = f->hca;
	struct hca_ah_call *call;

	(void)arg;
	pthread_mutex_lock(&f->lock);
	call = hca_ah_begin(hca, OFFLOADED_PD, &path, false);
	pthread_mutex_unlock(&f->lock);
	if (!call)
		return NULL;
	hca_ah_run(call);
	pthread_mutex_lock(&f->lock);
	hca_ah_end(call);
	pthread_mutex_unlock(&f->lock);
	hca_release(hca);
	return NULL;
}

static void *make_domain(void *arg)
{
	struct hca *hca = f->hca;
	struct hca_pd *pd;

	(void)arg;
	pthread_mutex_lock(&f->lock);
	pd = hca_pd_begin(hca, OTHER_PD);
	pthread_mutex_unlock(&f->lock);
	if (!pd)
		return NULL;
	hca_pd_run(pd);
	pthread_mutex_lock(&f->lock);
	hca_pd_add(pd);
	pthread_mutex_unlock(&f->lock);
	hca_release(hca);
	return NULL;
}

/* The command of a program that destroys something. */
static void *end_something(void (*end)(void))
{
	pthread_mutex_lock(&f->lock);
	hca_defer_destruction(f->hca);
	end();
	hca_destroy_deferred(f->hca);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static void end_region(void)
{
	assert_int_equal(urxe_mr_dereg(region), 0);
}

static void *deregister_region(void *arg)
{
	(void)arg;
	return end_something(end_region);
}

static void end_domain(void)
{
	hca_pd_end(f->hca, OTHER_PD);
}

static void *deallocate_domain(void *arg)
{
	(void)arg;
	return end_something(end_domain);
}

static void end_cq(void)
{
	assert_int_equal(urxe_cq_destroy(other_cq), 0);
}

static void *destroy_cq(void *arg)
{
	(void)arg;
	return end_something(end_cq);
}

static void end_srq(void)
{
	assert_int_equal(urxe_srq_destroy(other_srq), 0);
}

static void *destroy_srq(void *arg)
{
	(void)arg;
	return end_something(end_srq);
}

static void end_qp(void)
{
	urxe_qp_destroy(other_qp);
}

static void *destroy_qp(void *arg)
{
	(void)arg;
	return end_something(end_qp);
}

/* --- Tests */

static void others_go_on_during_a_registration(void **state)
{
	pthread_t thread;

	(void)state;
	thread = start_slow(FAKE_HCA_REG_MR, register_region);
	exchange_some();
	assert_int_equal(fake_hca.mrs, 0);
	let_go_on(thread);
	assert_int_equal(fake_hca.mrs, 1);
	assert_int_equal(urxe_mr_key(region), fake_hca.last_mr.lkey);
	assert_ptr_equal(fake_hca.last_mr.addr, bytes[0]);
	assert_int_equal(urxe_mr_dereg(region), 0);
	assert_int_equal(fake_hca.mrs, 0);
}

/* The old region ends after the new one has its key, and slowly, too. */
static void others_go_on_during_a_second_registration(void **state)
{
	pthread_t thread;
	uint32_t key;

	(void)state;
	register_region(NULL);
	assert_true(urxe_offload_has_mr(region));
	key = urxe_mr_key(region);
	thread = start_slow(FAKE_HCA_REG_MR, register_region);
	exchange_some();
	assert_int_equal(urxe_mr_key(region), key);
	fake_hca.delays = FAKE_HCA_DEREG_MR;
	sem_post(&fake_hca.go_on);
	sem_wait(&fake_hca.delayed);
	fake_hca.delays = FAKE_HCA_PROMPT;
	exchange_some();
	assert_int_equal(fake_hca.mrs, 2);
	let_go_on(thread);
	assert_int_equal(fake_hca.mrs, 1);
	assert_int_not_equal(urxe_mr_key(region), key);
	assert_int_equal(urxe_mr_key(region), fake_hca.last_mr.lkey);
	assert_ptr_equal(fake_hca.last_mr.addr, bytes[1]);
	assert_int_equal(urxe_mr_dereg(region), 0);
}

/* The thread that deregisters comes back when the HCA has ended the region. */
static void others_go_on_during_a_deregistration(void **state)
{
	pthread_t thread;

	(void)state;
	register_region(NULL);
	thread = start_slow(FAKE_HCA_DEREG_MR, deregister_region);
	exchange_some();
	assert_int_equal(fake_hca.mrs, 1);
	let_go_on(thread);
	assert_int_equal(fake_hca.mrs, 0);
}

static void others_go_on_while_a_domain_is_made(void **state)
{
	pthread_t thread;

	(void)state;
	thread = start_slow(FAKE_HCA_ALLOC_PD, make_domain);
	exchange_some();
	assert_int_equal(fake_hca.pds, 1);
	let_go_on(thread);
	assert_int_equal(fake_hca.pds, 2);
	assert_null(hca_pd_begin(f->hca, OTHER_PD));
	thread = start_slow(FAKE_HCA_DEALLOC_PD, deallocate_domain);
	exchange_some();
	let_go_on(thread);
	assert_int_equal(fake_hca.pds, 1);
}

/* An object gets a domain meanwhile, which stays that of its number. */
static void a_second_domain_is_dropped(void **state)
{
	struct urxe_mr_attr attr = attrs[0];
	pthread_t thread;

	(void)state;
	attr.pd = OTHER_PD;
	thread = start_slow(FAKE_HCA_ALLOC_PD, make_domain);
	pthread_mutex_lock(&f->lock);
	assert_int_equal(urxe_mr_reg(f->dev, &attr, &region), 0);
	pthread_mutex_unlock(&f->lock);
	assert_int_equal(fake_hca.pds, 2);
	let_go_on(thread);
	assert_int_equal(fake_hca.pds, 2);
	assert_int_equal(urxe_mr_dereg(region), 0);
	assert_int_equal(fake_hca.pds, 1);
}

/* A domain of the owner outlives its objects. */
static void a_domain_ends_with_its_owner(void **state)
{
	struct urxe_mr_attr attr = attrs[0];

	(void)state;
	make_domain(NULL);
	attr.pd = OTHER_PD;
	assert_int_equal(urxe_mr_reg(f->dev, &attr, &region), 0);
	deregister_region(NULL);
	assert_int_equal(fake_hca.pds, 2);
	deallocate_domain(NULL);
	assert_int_equal(fake_hca.pds, 1);
}

static void others_go_on_while_queues_end(void **state)
{
	pthread_t thread;

	(void)state;
	open_others();
	thread = start_slow(FAKE_HCA_DESTROY_QP, destroy_qp);
	exchange_some();
	let_go_on(thread);
	assert_int_equal(fake_hca.qps, 1);
	thread = start_slow(FAKE_HCA_DESTROY_SRQ, destroy_srq);
	exchange_some();
	let_go_on(thread);
	assert_int_equal(fake_hca.srqs, 0);
	thread = start_slow(FAKE_HCA_DESTROY_CQ, destroy_cq);
	exchange_some();
	let_go_on(thread);
	assert_int_equal(fake_hca.cqs, 1);
	assert_int_equal(fake_hca.pds, 1);
}

/* Other threads destroy the queues while the HCA still has a queue pair that uses them. */
static void queues_end_after_their_queue_pair(void **state)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_SRQ_LIMIT_REACHED};
	pthread_t thread;

	(void)state;
	open_others();
	fake_hca.comp_event = fake_hca.last_qp->init.send_cq;
	event.element.srq = &fake_hca.srq;
	thread = start_slow(FAKE_HCA_DESTROY_QP, destroy_qp);
	destroy_srq(NULL);
	destroy_cq(NULL);
	assert_int_equal(fake_hca.srqs, 1);
	assert_int_equal(fake_hca.cqs, 2);
	assert_int_equal(fake_hca.pds, 2);
	/* Events of the HCA's queues reach none of the engine. */
	fake_hca.event = event;
	fake_hca.has_event = true;
	pthread_mutex_lock(&f->lock);
	hca_handle_events(f->hca);
	pthread_mutex_unlock(&f->lock);
	assert_false(fake_hca.has_event);
	assert_int_equal(f->asyncs, 0);
	let_go_on(thread);
	assert_int_equal(fake_hca.srqs, 0);
	assert_int_equal(fake_hca.cqs, 1);
	assert_int_equal(fake_hca.pds, 1);
}

static void datagrams_use_the_handle_of_a_call(void **state)
{
	pthread_t thread;

	(void)state;
	thread = start_slow(FAKE_HCA_CREATE_AH, make_handle);
	let_go_on(thread);
	assert_int_equal(fake_hca.ahs, 1);
	fake_hca.no_ahs = true;
	exchange();
	assert_null(hca_ah_begin(f->hca, OTHER_PD, &offloaded_path, false));
}

/* The path has the MAC that the handle is for. */
static void a_path_with_a_next_hop_needs_one_handle(void **state)
{
	(void)state;
	path.dmac[5] = 1;
	make_handle(NULL);
	assert_int_equal(fake_hca.ahs, 1);
	assert_null(hca_ah_begin(f->hca, OFFLOADED_PD, &path, false));
	path.dmac[5] = 2;
	make_handle(NULL);
	assert_int_equal(fake_hca.ahs, 2);
}

/* The HCA has found the next hop of the handle, whose MAC may be another one now. */
static void datagrams_use_the_newest_handle_of_a_path_without_a_next_hop(void **state)
{
	const struct ibv_ah *first, *second;

	(void)state;
	make_handle(NULL);
	first = post_datagram();
	complete_datagram();
	make_handle(NULL);
	assert_int_equal(fake_hca.ahs, 1);
	second = post_datagram();
	assert_ptr_not_equal(second, first);
	/* The request keeps its handle. */
	make_handle(NULL);
	assert_int_equal(fake_hca.ahs, 2);
	assert_ptr_not_equal(post_datagram(), second);
	complete_datagram();
	assert_int_equal(fake_hca.ahs, 1);
	complete_datagram();
	exchange();
	assert_int_equal(fake_hca.ahs, 1);
}

/* Datagrams go on during the call, and one of them makes the handle first. */
static void others_go_on_and_a_second_handle_is_dropped(void **state)
{
	pthread_t thread;

	(void)state;
	thread = start_slow(FAKE_HCA_CREATE_AH, make_handle);
	exchange();
	assert_int_equal(fake_hca.ahs, 1);
	let_go_on(thread);
	assert_int_equal(fake_hca.ahs, 1);
	exchange();
}

static void a_refused_handle_is_none(void **state)
{
	(void)state;
	fake_hca.no_ahs = true;
	let_go_on(start_slow(FAKE_HCA_CREATE_AH, make_handle));
	assert_int_equal(fake_hca.ahs, 0);
	fake_hca.no_ahs = false;
	exchange();
}

static void an_hca_may_go_during_a_registration(void **state)
{
	(void)state;
	check_hca_that_goes(FAKE_HCA_REG_MR, register_region);
	assert_null(region);
}

static void an_hca_may_go_during_a_deregistration(void **state)
{
	(void)state;
	register_region(NULL);
	check_hca_that_goes(FAKE_HCA_DEREG_MR, deregister_region);
}

static void an_hca_may_go_while_a_handle_is_made(void **state)
{
	(void)state;
	check_hca_that_goes(FAKE_HCA_CREATE_AH, make_handle);
}

static void an_hca_may_go_while_a_domain_is_made(void **state)
{
	(void)state;
	check_hca_that_goes(FAKE_HCA_ALLOC_PD, make_domain);
}

/* The regions of an HCA that goes end outside the lock, when it is closed. */
static void regions_end_when_the_hca_is_closed(void **state)
{
	struct hca *hca = f->hca;

	(void)state;
	register_region(NULL);
	f->hca = NULL;
	hca_defer_destruction(hca);
	hca_detach(hca);
	assert_int_equal(fake_hca.qps, 0);
	assert_int_equal(fake_hca.mrs, 1);
	assert_false(urxe_offload_has_mr(region));
	hca_close(hca);
	assert_int_equal(fake_hca.mrs, 0);
}

/* A peer could write by the queue pair that another thread destroys, after ibv_dereg_mr(). */
static void regions_end_with_an_hca_that_still_has_a_queue_pair(void **state)
{
	struct hca *hca = f->hca;
	pthread_t thread;

	(void)state;
	register_region(NULL);
	open_others();
	thread = start_slow(FAKE_HCA_DESTROY_QP, destroy_qp);
	pthread_mutex_lock(&f->lock);
	f->hca = NULL;
	hca_defer_destruction(hca);
	hca_detach(hca);
	assert_int_equal(fake_hca.qps, 1);
	assert_int_equal(fake_hca.mrs, 0);
	pthread_mutex_unlock(&f->lock);
	hca_close(hca);
	let_go_on(thread);
	assert_int_equal(fake_hca.closed, 1);
	assert_int_equal(urxe_mr_dereg(region), 0);
	assert_int_equal(urxe_srq_destroy(other_srq), 0);
	assert_int_equal(urxe_cq_destroy(other_cq), 0);
}

/* --- A handle that makes room for another one. */

static void make_handle_of(uint32_t pd, uint32_t flow_label)
{
	struct hca_ah_call *call;

	path.flow_label = flow_label;
	call = hca_ah_begin(f->hca, pd, &path, false);
	assert_non_null(call);
	hca_ah_run(call);
	hca_ah_end(call);
	hca_release(f->hca);
}

static void make_one_more(void)
{
	make_handle_of(OFFLOADED_PD, HCA_AHS_MAX);
}

static void *make_last_handle(void *arg)
{
	(void)arg;
	return end_something(make_one_more);
}

/* The HCA refuses to deallocate a domain with an object. */
static void a_domain_outlives_its_oldest_handle(void **state)
{
	pthread_t thread;

	(void)state;
	make_domain(NULL);
	make_handle_of(OTHER_PD, 0);
	for (uint32_t i = 1; i < HCA_AHS_MAX; i++)
		make_handle_of(OFFLOADED_PD, i);
	thread = start_slow(FAKE_HCA_DESTROY_AH, make_last_handle);
	assert_int_equal(fake_hca.ahs, HCA_AHS_MAX + 1);
	deallocate_domain(NULL);
	assert_int_equal(fake_hca.pds, 2);
	let_go_on(thread);
	assert_int_equal(fake_hca.ahs, HCA_AHS_MAX);
	assert_int_equal(fake_hca.pds, 1);
}

/* Odd HCAs: the key is the engine's already, or there are two. */
static void a_key_of_the_engine_is_refused(void **state)
{
	struct urxe_mr_attr remote = attrs[0];
	struct urxe_mr *other;
	struct hca_mr *mr;
	uint32_t key;

	(void)state;
	assert_int_equal(urxe_offload_mr_reg(f->dev, &attrs[0], NULL, 0, &other), 0);
	assert_int_equal(fake_hca.mrs, 0);
	fake_hca.next_key = urxe_mr_key(other);
	assert_int_equal(hca_mr_begin(f->hca, &attrs[0], &mr), 0);
	assert_int_equal(hca_mr_run(mr, &attrs[0], &key), 0);
	assert_int_equal(urxe_offload_mr_reg(f->dev, &attrs[0], mr, key, &region), -EEXIST);
	hca_mr_end(mr, false);
	hca_release(f->hca);
	assert_int_equal(fake_hca.mrs, 0);
	fake_hca.rkey_differs = 1;
	remote.access |= URXE_ACCESS_REMOTE_READ;
	assert_int_equal(hca_mr_begin(f->hca, &attrs[0], &mr), 0);
	assert_int_equal(hca_mr_run(mr, &remote, &key), -EOPNOTSUPP);
	hca_mr_end(mr, false);
	hca_release(f->hca);
	assert_int_equal(fake_hca.mrs, 0);
}

static int setup_region(void **state)
{
	region = NULL;
	path = offloaded_path;
	return setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_region, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(others_go_on_during_a_registration),
		TEST(others_go_on_during_a_second_registration),
		TEST(others_go_on_during_a_deregistration),
		TEST(others_go_on_while_a_domain_is_made),
		TEST(a_second_domain_is_dropped),
		TEST(a_domain_ends_with_its_owner),
		TEST(others_go_on_while_queues_end),
		TEST(queues_end_after_their_queue_pair),
		TEST(datagrams_use_the_handle_of_a_call),
		TEST(a_path_with_a_next_hop_needs_one_handle),
		TEST(datagrams_use_the_newest_handle_of_a_path_without_a_next_hop),
		TEST(others_go_on_and_a_second_handle_is_dropped),
		TEST(a_refused_handle_is_none),
		TEST(an_hca_may_go_during_a_registration),
		TEST(an_hca_may_go_during_a_deregistration),
		TEST(an_hca_may_go_while_a_handle_is_made),
		TEST(an_hca_may_go_while_a_domain_is_made),
		TEST(regions_end_with_an_hca_that_still_has_a_queue_pair),
		TEST(a_domain_outlives_its_oldest_handle),
		TEST(regions_end_when_the_hca_is_closed),
		TEST(a_key_of_the_engine_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
