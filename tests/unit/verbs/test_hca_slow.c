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
#include <string.h>

#include <cmocka.h>

#include <hca/hca.h>
#include <rxe/offload.h>
#include <rxe/rxe.h>

#include "fake_hca.h"

#define PD 7u

static struct {
	pthread_mutex_t lock; /* of the engine and the HCA */
	struct urxe_dev *dev;
	struct hca *hca;
	struct urxe_cq *cq;
	struct urxe_qp *qp;
	struct urxe_mr *mr;
	uint32_t completions;
	uint8_t bytes[64];
} f;

static bool takes(void *ctx, void *qp_ctx, const struct urxe_qp_attr *attr)
{
	(void)ctx;
	(void)qp_ctx;
	(void)attr;
	return true;
}

static const struct hca_owner owner = {.takes = takes};

static bool complete(void *cq_ctx, const struct urxe_wc *wc)
{
	(void)cq_ctx;
	(void)wc;
	f.completions++;
	return true;
}

static void ignore(void *ctx)
{
	(void)ctx;
}

static void ignore_async(void *dev_ctx, enum urxe_async event, void *obj_ctx)
{
	(void)dev_ctx;
	(void)event;
	(void)obj_ctx;
}

static const struct urxe_path path = {.dgid = {.raw = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 9}}};

static void open_ud(void)
{
	const struct urxe_qp_init init = {
		.ctx = &f,
		.type = URXE_QPT_UD,
		.pd = PD,
		.send_cq = f.cq,
		.recv_cq = f.cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct urxe_qp_attr attr = {.state = URXE_QPS_INIT, .port = 1};

	assert_int_equal(urxe_qp_create(f.dev, &init, &f.qp), 0);
	assert_int_equal(
		urxe_qp_modify(f.qp, 1, &attr,
			       URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_QKEY),
		0);
	attr.state = URXE_QPS_RTR;
	assert_int_equal(urxe_qp_modify(f.qp, 1, &attr, URXE_QP_STATE), 0);
	attr.state = URXE_QPS_RTS;
	assert_int_equal(urxe_qp_modify(f.qp, 1, &attr, URXE_QP_STATE | URXE_QP_SQ_PSN), 0);
}

static int setup(void **state)
{
	static const struct urxe_ops ops = {.complete = complete,
					    .comp_event = ignore,
					    .refill = ignore,
					    .async_event = ignore_async};
	const struct urxe_dev_attr attr = {
		.ops = &ops, .mac = {2, 0, 0, 0, 0, 1}, .mtu = 4200, .seed = 1};

	(void)state;
	memset(&f, 0, sizeof(f));
	pthread_mutex_init(&f.lock, NULL);
	fake_hca_init();
	sem_init(&fake_hca.delayed, 0, 0);
	sem_init(&fake_hca.go_on, 0, 0);
	assert_int_equal(urxe_dev_create(&attr, &f.dev), 0);
	assert_int_equal(urxe_gid_set(f.dev, 0, &fake_gid, false), 0);
	assert_int_equal(hca_open(&fake_hca.verbs, "fake0", 1, &owner, &f.hca), 0);
	hca_set_gid(f.hca, 0, &fake_gid, false);
	hca_read_gids(f.hca);
	hca_set_pkeys(f.hca, (const uint16_t[]){0xffff}, 1);
	hca_attach(f.hca, f.dev);
	assert_int_equal(urxe_cq_create(f.dev, &f, &f.cq), 0);
	open_ud();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (f.hca) {
		hca_detach(f.hca);
		hca_close(f.hca);
	}
	urxe_dev_destroy(f.dev);
	assert_int_equal(fake_hca.pds + fake_hca.mrs + fake_hca.cqs + fake_hca.qps + fake_hca.ahs,
			 0);
	return 0;
}

/* A datagram goes to the HCA and completes. */
static void exchange(void)
{
	const struct urxe_send_wr wr = {.wr_id = 1,
					.opcode = URXE_WR_SEND,
					.flags = URXE_SEND_SIGNALED | URXE_SEND_INLINE,
					.path = &path,
					.remote_qpn = 0x55};
	const uint32_t before = f.completions;

	pthread_mutex_lock(&f.lock);
	assert_int_equal(urxe_post_send(f.qp, &wr), 0);
	urxe_qp_execute(f.qp, 1);
	fake_hca_complete_send(fake_hca.last_qp, IBV_WC_SUCCESS);
	hca_poll(f.hca);
	pthread_mutex_unlock(&f.lock);
	assert_int_equal(f.completions, before + 1);
}

/* --- The slow thread */

static const struct urxe_extent extent = {f.bytes, sizeof(f.bytes)};
static const struct urxe_mr_attr attr = {.pd = PD,
					 .access = URXE_ACCESS_LOCAL_WRITE,
					 .length = sizeof(f.bytes),
					 .extents = &extent,
					 .n_extents = 1};

static void *register_region(void *arg)
{
	struct hca_mr *mr;
	uint32_t key = 0;
	int rc;

	(void)arg;
	pthread_mutex_lock(&f.lock);
	rc = hca_mr_begin(f.hca, &attr, &mr);
	pthread_mutex_unlock(&f.lock);
	if (rc)
		return NULL;
	rc = hca_mr_run(mr, &attr, &key);
	pthread_mutex_lock(&f.lock);
	/* The HCA may have gone. */
	if (!rc)
		rc = f.hca ? urxe_offload_mr_reg(f.dev, &attr, mr, key, &f.mr) : -ENODEV;
	hca_mr_end(mr, !rc);
	pthread_mutex_unlock(&f.lock);
	return NULL;
}

static void *make_handle(void *arg)
{
	struct hca_ah_call *call;

	(void)arg;
	pthread_mutex_lock(&f.lock);
	call = hca_ah_begin(f.hca, PD, &path);
	pthread_mutex_unlock(&f.lock);
	if (!call)
		return NULL;
	hca_ah_run(call);
	pthread_mutex_lock(&f.lock);
	hca_ah_end(call);
	pthread_mutex_unlock(&f.lock);
	return NULL;
}

/* The thread has entered the HCA's function, which does not return yet. */
static pthread_t start_slow(void *(*call)(void *))
{
	pthread_t thread;

	fake_hca.delays = true;
	assert_int_equal(pthread_create(&thread, NULL, call, NULL), 0);
	sem_wait(&fake_hca.delayed);
	fake_hca.delays = false;
	return thread;
}

static void let_go_on(pthread_t thread)
{
	sem_post(&fake_hca.go_on);
	pthread_join(thread, NULL);
}

/* --- Tests */

static void others_go_on_during_a_registration(void **state)
{
	pthread_t thread;

	(void)state;
	thread = start_slow(register_region);
	for (int i = 0; i < 100; i++)
		exchange();
	assert_int_equal(fake_hca.mrs, 0);
	let_go_on(thread);
	assert_int_equal(fake_hca.mrs, 1);
	assert_int_equal(urxe_mr_key(f.mr), fake_hca.last_mr.lkey);
	assert_ptr_equal(fake_hca.last_mr.addr, f.bytes);
	assert_int_equal(urxe_mr_dereg(f.mr), 0);
	assert_int_equal(fake_hca.mrs, 0);
}

static void datagrams_use_the_handle_of_a_call(void **state)
{
	pthread_t thread;

	(void)state;
	thread = start_slow(make_handle);
	let_go_on(thread);
	assert_int_equal(fake_hca.ahs, 1);
	/* The datagrams use it, and the path needs no second one. */
	fake_hca.no_ahs = true;
	exchange();
	assert_null(hca_ah_begin(f.hca, PD, &path));
	assert_null(hca_ah_begin(f.hca, PD + 1, &path));
}

/* Datagrams go on during the call, and one of them makes the handle first. */
static void others_go_on_and_a_second_handle_is_dropped(void **state)
{
	pthread_t thread;

	(void)state;
	thread = start_slow(make_handle);
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
	let_go_on(start_slow(make_handle));
	assert_int_equal(fake_hca.ahs, 0);
	fake_hca.no_ahs = false;
	exchange();
}

static void *close_hca(void *hca)
{
	hca_close(hca);
	return NULL;
}

/* The HCA is closed when the call has ended; what it made is destroyed before. */
static void check_hca_that_goes(void *(*call)(void *))
{
	struct hca *hca = f.hca;
	pthread_t slow = start_slow(call), closer;

	pthread_mutex_lock(&f.lock);
	hca_detach(hca);
	f.hca = NULL;
	pthread_mutex_unlock(&f.lock);
	assert_int_equal(pthread_create(&closer, NULL, close_hca, hca), 0);
	let_go_on(slow);
	pthread_join(closer, NULL);
	assert_int_equal(fake_hca.mrs + fake_hca.ahs + fake_hca.pds, 0);
	assert_null(f.mr);
}

static void an_hca_may_go_during_a_registration(void **state)
{
	(void)state;
	check_hca_that_goes(register_region);
}

static void an_hca_may_go_while_a_handle_is_made(void **state)
{
	(void)state;
	check_hca_that_goes(make_handle);
}

/* Odd HCAs: the key is the engine's already, or there are two. */
static void a_key_of_the_engine_is_refused(void **state)
{
	struct urxe_mr *other;
	struct hca_mr *mr;
	uint32_t key;

	(void)state;
	assert_int_equal(urxe_offload_mr_reg(f.dev, &attr, NULL, 0, &other), 0);
	assert_int_equal(fake_hca.mrs, 0);
	fake_hca.next_key = urxe_mr_key(other);
	assert_int_equal(hca_mr_begin(f.hca, &attr, &mr), 0);
	assert_int_equal(hca_mr_run(mr, &attr, &key), 0);
	assert_int_equal(urxe_offload_mr_reg(f.dev, &attr, mr, key, &f.mr), -EEXIST);
	hca_mr_end(mr, false);
	assert_int_equal(fake_hca.mrs, 0);
	fake_hca.rkey_differs = 1;
	assert_int_equal(hca_mr_begin(f.hca, &attr, &mr), 0);
	{
		struct urxe_mr_attr remote = attr;

		remote.access |= URXE_ACCESS_REMOTE_READ;
		assert_int_equal(hca_mr_run(mr, &remote, &key), -EOPNOTSUPP);
	}
	hca_mr_end(mr, false);
	assert_int_equal(fake_hca.mrs, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(others_go_on_during_a_registration),
		TEST(datagrams_use_the_handle_of_a_call),
		TEST(others_go_on_and_a_second_handle_is_dropped),
		TEST(a_refused_handle_is_none),
		TEST(an_hca_may_go_during_a_registration),
		TEST(an_hca_may_go_while_a_handle_is_made),
		TEST(a_key_of_the_engine_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
