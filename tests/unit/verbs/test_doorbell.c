/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A signal handler that posts, and has interrupted a call of its thread that has adapter.lock. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include <infiniband/verbs.h>

#include "hca/hca_program.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_qp.h"

#define MTU  1500
#define SIZE 4

static struct vnic_loop *loop;
static uint32_t cq, qps[2];

static void *find(enum object_type type, uint32_t handle)
{
	void *object;

	adapter_lock();
	object = handle_find(&uverbs_file_lookup(device)->handles, type, handle);
	adapter_unlock();
	assert_non_null(object);
	return object;
}

static void modify(uint32_t qp, enum ibv_qp_state to, uint32_t mask)
{
	const struct ib_uverbs_modify_qp modify = {
		.qp_handle = qp, .attr_mask = IBV_QP_STATE | mask, .qp_state = to, .port_num = 1};

	assert_int_equal(COMMAND(MODIFY_QP, modify, NULL), 0);
}

static void open_qp(uint32_t *qp)
{
	const struct ib_uverbs_create_qp create = {.pd_handle = pd,
						   .send_cq_handle = cq,
						   .recv_cq_handle = cq,
						   .max_send_wr = SIZE,
						   .max_send_sge = 1,
						   .qp_type = IBV_QPT_UD};

	assert_int_equal(COMMAND(CREATE_QP, create, qp), 0);
	modify(*qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	modify(*qp, IBV_QPS_RTR, 0);
	modify(*qp, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

static int setup(void **state)
{
	const struct ib_uverbs_create_cq create = {.cqe = 2 * SIZE, .comp_channel = -1};

	(void)state;
	fake_hca_init();
	loop = open_with_hca(MTU);
	set_hca("");
	assert_int_equal(leases_add_new(&adapter.leases, 0x1000), 0);
	assert_int_equal(COMMAND(CREATE_CQ, create, &cq), 0);
	for (int i = 0; i < 2; i++)
		open_qp(&qps[i]);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_with_hca(loop);
	return 0;
}

/* The ring's memory is zero: a datagram queue pair permits no RDMA WRITE, so the request ends in an
 * error completion at once. Returns the result of write(2). */
static ssize_t post(uint32_t handle)
{
	const struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send post;
	} doorbell = {
		.hdr = {.command = IB_USER_VERBS_CMD_POST_SEND,
			.in_words = sizeof(doorbell) / 4,
			.out_words = sizeof(struct ib_uverbs_post_send_resp) / 4},
		.post = {.qp_handle = handle, .wqe_size = sizeof(struct ib_uverbs_send_wr)},
	};
	struct qp *qp =
		(struct qp *)handle_find(&uverbs_file_lookup(device)->handles, OBJECT_QP, handle);

	queue_set_producer(&qp->sq.ring, queue_producer(&qp->sq.ring) + 1);
	return uverbs_write(uverbs_file_lookup(device), device, &doorbell, sizeof(doorbell));
}

static ssize_t results[2];

static void post_to_both(int number)
{
	(void)number;
	for (int i = 0; i < 2; i++)
		results[i] = post(qps[i]);
}

static void the_interrupted_call_rings_the_doorbells_of_a_handler(void **state)
{
	const struct cq *c = find(OBJECT_CQ, cq);

	(void)state;
	signal(SIGUSR1, post_to_both);
	adapter_lock();
	raise(SIGUSR1);
	assert_int_equal(queue_producer(&c->ring), 0);
	adapter_unlock();
	assert_true(results[0] > 0 && results[1] > 0);
	assert_int_equal(queue_producer(&c->ring), 2);
	signal(SIGUSR1, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_interrupted_call_rings_the_doorbells_of_a_handler, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
