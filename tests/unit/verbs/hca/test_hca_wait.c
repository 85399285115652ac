/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A slow HCA, which a provider double plays: while a thread waits for it to create, change or query
 * a queue, without the lock, the others use the engine and the HCA.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include <hca/hca.h>
#include <rxe/offload.h>
#include <rxe/rxe.h>

#include "slow_hca.h"

static int slow_rc; /* of the command */

/* The command of a program that the HCA executes. */
static void *command(int (*call)(void))
{
	struct hca *hca = f->hca;

	pthread_mutex_lock(&f->lock);
	hca_allow_unlock(hca);
	slow_rc = call();
	hca_forbid_unlock(hca);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static int create_srq(void)
{
	const struct urxe_rq_attr attr = {.ctx = f, .pd = OTHER_PD, .max_wr = 4, .max_sge = 1};

	return urxe_srq_create(f->dev, &attr, &other_srq);
}

static void *slow_create_srq(void *arg)
{
	(void)arg;
	return command(create_srq);
}

#define QUEUE_SIZE 90

/* Of the CQ and shared receive queue; without one, with a receive queue of its own. */
static int create_qp(void)
{
	const struct urxe_qp_init init = {
		.ctx = f,
		.type = URXE_QPT_RC,
		.pd = OTHER_PD,
		.send_cq = other_cq,
		.recv_cq = other_cq,
		.srq = other_srq,
		.cap = {.max_send_wr = QUEUE_SIZE,
			.max_send_sge = 1,
			.max_recv_wr = other_srq ? 0 : QUEUE_SIZE,
			.max_recv_sge = other_srq ? 0 : 1},
	};

	return urxe_qp_create(f->dev, &init, &other_qp);
}

static void *slow_create_qp(void *arg)
{
	(void)arg;
	return command(create_qp);
}

static enum urxe_qp_state wanted; /* the transition of the queue pair */

static int modify_qp(struct urxe_qp *qp)
{
	static const uint32_t masks[] = {
		[URXE_QPS_INIT] = URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS,
		[URXE_QPS_RTR] = URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN | URXE_QP_RQ_PSN |
				 URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER,
		[URXE_QPS_RTS] = URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT | URXE_QP_RNR_RETRY |
				 URXE_QP_SQ_PSN | URXE_QP_MAX_QP_RD_ATOMIC,
		[URXE_QPS_ERR] = 0,
	};
	const struct urxe_qp_attr attr = {
		.state = wanted,
		.port = 1,
		.path = offloaded_path,
		.path_mtu = URXE_MTU_1024,
		.dest_qpn = 0x99,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
	};

	return urxe_qp_modify(qp, 1, &attr, masks[wanted] | URXE_QP_STATE);
}

static int modify(void)
{
	return modify_qp(other_qp);
}

static void *slow_modify(void *arg)
{
	(void)arg;
	return command(modify);
}

static struct urxe_qp *reused; /* a queue pair that is older than other_qp */

static int modify_reused(void)
{
	return modify_qp(reused);
}

static void *slow_modify_reused(void *arg)
{
	(void)arg;
	return command(modify_reused);
}

static const struct urxe_gid group = {.raw = {[10] = 0xff, [11] = 0xff, 224, 0, 0, 9}};

static int attach(void)
{
	return urxe_mcast_attach(f->qp, &group);
}

static void *slow_attach(void *arg)
{
	(void)arg;
	return command(attach);
}

static int detach(void)
{
	return urxe_mcast_detach(f->qp, &group);
}

static void *slow_detach(void *arg)
{
	(void)arg;
	return command(detach);
}

static int query(void)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_offload_query(f->qp, &attr, &init);
	return attr.state;
}

static void *slow_query(void *arg)
{
	(void)arg;
	return command(query);
}

static int query_other(void)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_offload_query(other_qp, &attr, &init);
	return attr.state;
}

static void *slow_query_other(void *arg)
{
	(void)arg;
	return command(query_other);
}

static int set_limit(void)
{
	return urxe_srq_set_limit(other_srq, 1);
}

static void *slow_set_limit(void *arg)
{
	(void)arg;
	return command(set_limit);
}

static int resize_srq(void)
{
	return urxe_srq_resize(other_srq, 8);
}

static void *slow_resize_srq(void *arg)
{
	(void)arg;
	return command(resize_srq);
}

static enum urxe_qp_state state_of(const struct urxe_qp *qp)
{
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	urxe_qp_query(qp, &attr, &init);
	return attr.state;
}

/* --- Tests */

static void expect_others_go_on(enum fake_hca_delay function, void *(*call)(void *))
{
	pthread_t thread = start_slow(function, call);

	slow_rc = -1;
	exchange_some();
	assert_int_equal(slow_rc, -1);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
}

static void others_go_on_while_queues_are_made(void **state)
{
	(void)state;
	assert_int_equal(urxe_cq_create(f->dev, f, &other_cq), 0);
	expect_others_go_on(FAKE_HCA_CREATE_SRQ, slow_create_srq);
	assert_int_equal(fake_hca.srqs, 1);
	expect_others_go_on(FAKE_HCA_CREATE_CQ, slow_create_qp);
	assert_int_equal(fake_hca.cqs, 2);
	assert_int_equal(urxe_qp_qpn(other_qp), fake_hca.last_qp->ibv.qp_num);
	expect_others_go_on(FAKE_HCA_CREATE_QP, slow_create_qp);
	assert_int_equal(urxe_qp_qpn(other_qp), fake_hca.last_qp->ibv.qp_num);
	assert_int_equal(fake_hca.qps, 3);
	expect_others_go_on(FAKE_HCA_MODIFY_SRQ, slow_set_limit);
	assert_int_equal(urxe_srq_limit(other_srq), 1);
}

/* Without a domain of the owner, the first object makes one. */
static void others_go_on_while_an_object_makes_its_domain(void **state)
{
	(void)state;
	expect_others_go_on(FAKE_HCA_ALLOC_PD, slow_create_srq);
	assert_int_equal(fake_hca.pds, 2);
}

/* A connection. */
static struct fake_qp *open_qp_of_queues(enum urxe_qp_state to)
{
	assert_int_equal(urxe_cq_create(f->dev, f, &other_cq), 0);
	assert_int_equal(create_qp(), 0);
	for (wanted = URXE_QPS_INIT; wanted <= to; wanted++)
		assert_int_equal(modify(), 0);
	return fake_hca.last_qp;
}

/* With a receive queue of its own. */
static struct fake_qp *open_other_qp(enum urxe_qp_state to)
{
	other_srq = NULL;
	return open_qp_of_queues(to);
}

static void others_go_on_while_queue_pairs_change(void **state)
{
	static const enum urxe_qp_state path[] = {URXE_QPS_INIT, URXE_QPS_RTR, URXE_QPS_RTS,
						  URXE_QPS_ERR, URXE_QPS_RESET};

	(void)state;
	open_other_qp(URXE_QPS_RESET);
	for (unsigned i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		wanted = path[i];
		expect_others_go_on(FAKE_HCA_MODIFY_QP, slow_modify);
		assert_int_equal(state_of(other_qp), wanted);
		assert_int_equal(fake_hca.last_qp->attr.qp_state, wanted);
	}
	expect_others_go_on(FAKE_HCA_CHANGE_MCAST, slow_attach);
	assert_true(urxe_mcast_attached(f->qp));
	expect_others_go_on(FAKE_HCA_CHANGE_MCAST, slow_detach);
	assert_false(urxe_mcast_attached(f->qp));
}

static void others_go_on_during_a_query(void **state)
{
	pthread_t thread;

	(void)state;
	thread = start_slow(FAKE_HCA_QUERY_QP, slow_query);
	exchange_some();
	let_go_on(thread);
	assert_int_equal(slow_rc, URXE_QPS_RTS);
}

/* Two threads need the HCA's queue of one CQ. */
static void a_second_cq_is_dropped(void **state)
{
	pthread_t thread;

	(void)state;
	other_srq = NULL;
	assert_int_equal(urxe_cq_create(f->dev, f, &other_cq), 0);
	thread = start_slow(FAKE_HCA_CREATE_CQ, slow_create_qp);
	slow_create_qp(NULL);
	assert_int_equal(fake_hca.cqs, 2);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(fake_hca.cqs, 2);
	assert_int_equal(fake_hca.qps, 3);
	assert_ptr_equal(fake_hca.last_qp->init.send_cq->cq_context, urxe_offload_hca_cq(other_cq));
}

static void post_to_other_qp(void)
{
	const struct urxe_send_wr wr = {.opcode = URXE_WR_SEND, .flags = URXE_SEND_SIGNALED};

	pthread_mutex_lock(&f->lock);
	assert_int_equal(urxe_post_send(other_qp, &wr), 0);
	urxe_qp_execute(other_qp, 1);
	pthread_mutex_unlock(&f->lock);
}

/* Providers hold the lock of a CQ while they resize it, so nobody polls it meanwhile. */
static void a_cq_that_grows_is_polled_afterwards(void **state)
{
	struct fake_qp *first;
	pthread_t thread;
	uint32_t n;

	(void)state;
	first = open_other_qp(URXE_QPS_RTS);
	post_to_other_qp();
	urxe_cq_arm(other_cq, false);
	thread = start_slow(FAKE_HCA_RESIZE_CQ, slow_create_qp);
	n = f->n;
	fake_hca_complete_send(first, IBV_WC_SUCCESS);
	fake_hca.comp_event = first->init.send_cq;
	pthread_mutex_lock(&f->lock);
	assert_false(hca_drain(f->hca));
	pthread_mutex_unlock(&f->lock);
	assert_int_equal(f->n, n);
	exchange_some();
	n = f->n;
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(f->n, n + 1);
	assert_true(hca_drain(f->hca));
	assert_int_equal(f->comp_events, 1);
	assert_true(fake_hca.resized_to >= 4 * QUEUE_SIZE);
}

/* Another thread polls between the resize and the end of the command. */
static void an_event_during_a_resize_survives_a_poll(void **state)
{
	struct fake_qp *first;
	pthread_t thread;

	(void)state;
	first = open_other_qp(URXE_QPS_RTS);
	post_to_other_qp();
	urxe_cq_arm(other_cq, true);
	thread = start_slow(FAKE_HCA_RESIZE_CQ, slow_create_qp);
	fake_hca_complete_send(first, IBV_WC_SUCCESS);
	fake_hca.comp_event = first->init.send_cq;
	pthread_mutex_lock(&f->lock);
	hca_handle_events(f->hca);
	pthread_mutex_unlock(&f->lock);
	fake_hca.delays = FAKE_HCA_CREATE_QP;
	sem_post(&fake_hca.go_on);
	sem_wait(&fake_hca.delayed);
	fake_hca.delays = FAKE_HCA_PROMPT;
	pthread_mutex_lock(&f->lock);
	hca_poll(f->hca);
	pthread_mutex_unlock(&f->lock);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(f->comp_events, 1);
}

/* The CQ has a completion of an earlier connection, which names the queue pair only by its number,
 * while one thread resizes the CQ and another one connects the queue pair again. */
static void a_completion_during_a_resize_is_not_of_the_next_connection(void **state)
{
	const struct urxe_recv_wr wr = {.wr_id = 7};
	struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV};
	pthread_t creating, modifying;
	struct urxe_qp *first;
	struct urxe_rq *srq;

	(void)state;
	assert_int_equal(create_srq(), 0);
	open_qp_of_queues(URXE_QPS_RTS);
	first = other_qp;
	srq = other_srq;
	assert_int_equal(urxe_post_recv(srq, &wr), 0);
	wc.wr_id = fake_hca.srq_recvs[0].wr_id;
	wc.qp_num = urxe_qp_qpn(first);
	fake_hca_complete(fake_hca.last_qp->init.recv_cq, &wc);
	wanted = URXE_QPS_RESET;
	assert_int_equal(modify(), 0);
	other_srq = NULL;
	reused = first;
	creating = start_slow(FAKE_HCA_RESIZE_CQ, slow_create_qp);
	wanted = URXE_QPS_INIT;
	assert_int_equal(pthread_create(&modifying, NULL, slow_modify_reused, NULL), 0);
	usleep(20000); /* enough for a thread that does not wait */
	let_go_on(creating);
	pthread_join(modifying, NULL);
	other_qp = first;
	for (wanted = URXE_QPS_RTR; wanted <= URXE_QPS_RTS; wanted++)
		assert_int_equal(modify(), 0);
	assert_int_equal(urxe_rq_retired(srq), 1);
}

#define SRQ_SIZE 300

/* Another thread lets the shared receive queue grow while the HCA is within `function`. */
static void expect_room_for_growth(enum fake_hca_delay function)
{
	const struct urxe_rq_attr attr = {
		.ctx = f, .pd = OFFLOADED_PD, .max_wr = SRQ_SIZE, .max_sge = 1};
	pthread_t thread;

	assert_int_equal(urxe_cq_create(f->dev, f, &other_cq), 0);
	assert_int_equal(urxe_srq_create(f->dev, &attr, &other_srq), 0);
	thread = start_slow(function, slow_create_qp);
	pthread_mutex_lock(&f->lock);
	assert_int_equal(urxe_srq_resize(other_srq, SRQ_SIZE + 200), 0);
	pthread_mutex_unlock(&f->lock);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_in_range(fake_hca.last_qp->init.recv_cq->cqe, QUEUE_SIZE + SRQ_SIZE + 200, 1000);
}

/* The HCA's CQ has room for all receives of the shared queue, whenever that queue grows. */
static void a_cq_has_room_for_a_queue_that_grows(void **state)
{
	(void)state;
	expect_room_for_growth(FAKE_HCA_CREATE_QP);
}

/* The queue pair counts all receives of the shared queue only after the growth. */
static void a_cq_has_room_for_a_queue_that_has_grown(void **state)
{
	(void)state;
	expect_room_for_growth(FAKE_HCA_ALLOC_PD);
}

static void a_queue_that_is_resized_gets_requests_afterwards(void **state)
{
	const struct urxe_recv_wr wr = {.wr_id = 5};
	pthread_t thread;

	(void)state;
	open_others();
	thread = start_slow(FAKE_HCA_MODIFY_SRQ, slow_resize_srq);
	pthread_mutex_lock(&f->lock);
	assert_int_equal(urxe_post_recv(other_srq, &wr), 0);
	urxe_offload_refill(other_srq);
	pthread_mutex_unlock(&f->lock);
	exchange_some();
	assert_int_equal(fake_hca.n_srq_recvs, 0);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	urxe_offload_refill(other_srq);
	assert_int_equal(fake_hca.n_srq_recvs, 1);
}

/* Requests of before the reset that the HCA would execute after it. */
static void requests_during_a_reset_stay_away_from_the_hca(void **state)
{
	struct fake_qp *qp;
	pthread_t thread;

	(void)state;
	qp = open_other_qp(URXE_QPS_RTS);
	wanted = URXE_QPS_RESET;
	thread = start_slow(FAKE_HCA_MODIFY_QP, slow_modify);
	post_to_other_qp();
	assert_int_equal(qp->n_sends, 0);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(qp->n_sends, 0);
	assert_int_equal(state_of(other_qp), URXE_QPS_RESET);
}

static void send_event(enum ibv_event_type type, struct fake_qp *qp)
{
	fake_hca.event = (struct ibv_async_event){.event_type = type, .element.qp = &qp->ibv};
	fake_hca.has_event = true;
	pthread_mutex_lock(&f->lock);
	hca_handle_events(f->hca);
	pthread_mutex_unlock(&f->lock);
}

/* The error comes first: the command does not make it undone. */
static void a_queue_pair_may_fail_during_a_transition(void **state)
{
	struct fake_qp *qp;
	pthread_t thread;

	(void)state;
	qp = open_other_qp(URXE_QPS_RTR);
	wanted = URXE_QPS_RTS;
	thread = start_slow(FAKE_HCA_MODIFY_QP, slow_modify);
	send_event(IBV_EVENT_QP_FATAL, qp);
	assert_int_equal(state_of(other_qp), URXE_QPS_ERR);
	let_go_on(thread);
	assert_int_equal(slow_rc, -EINVAL);
	assert_int_equal(state_of(other_qp), URXE_QPS_ERR);
	assert_int_equal(f->asyncs, 1);
}

/* Flushed requests complete before the transition to the error state ends. */
static void a_queue_pair_fails_once(void **state)
{
	struct fake_qp *qp;
	pthread_t thread;
	uint32_t n;

	(void)state;
	qp = open_other_qp(URXE_QPS_RTS);
	post_to_other_qp();
	wanted = URXE_QPS_ERR;
	n = fake_hca.modified;
	thread = start_slow(FAKE_HCA_MODIFY_QP, slow_modify);
	fake_hca_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	pthread_mutex_lock(&f->lock);
	hca_poll(f->hca);
	pthread_mutex_unlock(&f->lock);
	assert_int_equal(state_of(other_qp), URXE_QPS_ERR);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(fake_hca.modified, n + 1);
}

/* Of three requests, two are at the HCA, where the first one fails while the HCA resets. */
static pthread_t start_reset_with_an_error(struct fake_qp *qp)
{
	pthread_t thread;
	uint32_t n;

	post_to_other_qp();
	post_to_other_qp();
	wanted = URXE_QPS_RESET;
	thread = start_slow(FAKE_HCA_MODIFY_QP, slow_modify);
	post_to_other_qp();
	n = f->n;
	fake_hca_complete_send(qp, IBV_WC_RETRY_EXC_ERR);
	pthread_mutex_lock(&f->lock);
	hca_poll(f->hca);
	pthread_mutex_unlock(&f->lock);
	assert_int_equal(f->n, n + 1);
	assert_int_equal(state_of(other_qp), URXE_QPS_ERR);
	return thread;
}

/* After the reset, Linux refuses the transition to the error state. */
static void a_queue_pair_that_fails_during_a_reset_stays_at_the_hca(void **state)
{
	struct fake_qp *qp;
	pthread_t thread;
	uint32_t n;

	(void)state;
	qp = open_other_qp(URXE_QPS_RTS);
	fake_hca.no_error_state = true;
	thread = start_reset_with_an_error(qp);
	n = f->n;
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(state_of(other_qp), URXE_QPS_RESET);
	assert_int_equal(qp->attr.qp_state, IBV_QPS_RESET);
	assert_true(urxe_offload_has_qp(other_qp));
	assert_int_equal(fake_hca.qps, 2);
	assert_int_equal(f->n, n);
}

/* The HCA's queue pair stops by the error state then. */
static void a_queue_pair_that_is_not_reset_fails_at_the_hca(void **state)
{
	struct fake_qp *qp;
	pthread_t thread;
	uint32_t n;

	(void)state;
	qp = open_other_qp(URXE_QPS_RTS);
	fake_hca.no_reset_state = true;
	thread = start_reset_with_an_error(qp);
	n = f->n;
	let_go_on(thread);
	assert_int_equal(slow_rc, -EIO);
	assert_int_equal(state_of(other_qp), URXE_QPS_ERR);
	assert_int_equal(qp->attr.qp_state, IBV_QPS_ERR);
	/* The HCA still has the second request. */
	assert_int_equal(f->n, n);
	fake_hca_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	hca_poll(f->hca);
	assert_int_equal(f->n, n + 2);
}

/* And by its end if it takes neither state. */
static void a_queue_pair_that_does_not_stop_ends(void **state)
{
	struct fake_qp *qp;
	pthread_t thread;
	uint32_t n;

	(void)state;
	urxe_qp_destroy(f->qp);
	qp = open_other_qp(URXE_QPS_RTS);
	fake_hca.no_reset_state = fake_hca.no_error_state = true;
	thread = start_reset_with_an_error(qp);
	n = f->n;
	let_go_on(thread);
	assert_int_equal(slow_rc, -EIO);
	assert_int_equal(fake_hca.qps, 0);
	assert_int_equal(f->n, n + 2);
	assert_int_equal(f->flushed_before_end, 0);
}

/* The HCA's queue pair has ended, so the engine tells that it takes no more requests of the SRQ. */
static void a_queue_pair_that_ends_tells_of_its_last_request(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(create_srq(), 0);
	fake_hca.no_reset_state = fake_hca.no_error_state = true;
	thread = start_reset_with_an_error(open_qp_of_queues(URXE_QPS_RTS));
	assert_int_equal(f->asyncs, 0);
	let_go_on(thread);
	assert_int_equal(fake_hca.qps, 1);
	assert_int_equal(f->asyncs, 1);
	assert_int_equal(f->last_async, URXE_ASYNC_QP_LAST_WQE_REACHED);
}

/* The same if the HCA goes before it has told; but the program is told once. */
static void an_hca_that_goes_tells_of_the_last_request_once(void **state)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};
	struct hca *hca = f->hca;
	uint32_t told, qpn;

	(void)state;
	urxe_qp_destroy(f->qp);
	assert_int_equal(create_srq(), 0);
	for (told = 0; told < 2; told++) {
		qpn = open_qp_of_queues(URXE_QPS_RTS)->ibv.qp_num;
		assert_int_equal(urxe_qp_modify(other_qp, 1, &attr, URXE_QP_STATE), 0);
	}
	assert_int_equal(f->asyncs, 0);
	urxe_offload_qp_event(f->dev, qpn, URXE_ASYNC_QP_LAST_WQE_REACHED);
	assert_int_equal(f->asyncs, 1);
	f->hca = NULL;
	hca_detach(hca);
	hca_close(hca);
	/* That of the first queue pair, and of the shared receive queue. */
	assert_int_equal(f->asyncs, 3);
}

static void an_hca_may_go_while_a_queue_is_made(void **state)
{
	(void)state;
	check_hca_that_goes(FAKE_HCA_CREATE_SRQ, slow_create_srq);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(fake_hca.srqs, 0);
}

static void an_hca_may_go_while_a_queue_pair_is_made(void **state)
{
	(void)state;
	other_srq = NULL;
	assert_int_equal(urxe_cq_create(f->dev, f, &other_cq), 0);
	check_hca_that_goes(FAKE_HCA_CREATE_QP, slow_create_qp);
	/* The owner chooses a number for the engine's queue pair. */
	assert_int_equal(slow_rc, -ENOSPC);
	assert_int_equal(fake_hca.qps + fake_hca.cqs, 0);
}

static void an_hca_may_go_while_a_cq_is_made(void **state)
{
	(void)state;
	other_srq = NULL;
	assert_int_equal(urxe_cq_create(f->dev, f, &other_cq), 0);
	check_hca_that_goes(FAKE_HCA_CREATE_CQ, slow_create_qp);
	assert_int_equal(slow_rc, -ENOSPC);
	assert_null(urxe_offload_hca_cq(other_cq));
	assert_int_equal(fake_hca.qps + fake_hca.cqs, 0);
}

/* Each queue pair has a CQ of its own, which ends with it. */
static void an_hca_may_go_while_queue_pairs_with_one_srq_are_made(void **state)
{
	struct hca *hca = f->hca;
	pthread_t first, second;

	(void)state;
	assert_int_equal(create_srq(), 0);
	assert_int_equal(urxe_cq_create(f->dev, f, &other_cq), 0);
	first = start_slow(FAKE_HCA_CREATE_QP, slow_create_qp);
	assert_int_equal(urxe_cq_create(f->dev, f, &other_cq), 0);
	second = start_slow(FAKE_HCA_CREATE_QP, slow_create_qp);
	pthread_mutex_lock(&f->lock);
	f->hca = NULL;
	hca_defer_destruction(hca);
	hca_detach(hca);
	pthread_mutex_unlock(&f->lock);
	hca_close(hca);
	sem_post(&fake_hca.go_on);
	let_go_on(first);
	pthread_join(second, NULL);
	assert_int_equal(slow_rc, -ENOSPC);
	assert_int_equal(fake_hca.qps + fake_hca.srqs + fake_hca.cqs, 0);
	assert_int_equal(fake_hca.closed, 1);
}

/* The HCA still accesses memory, so the requests are flushed when the command ends. */
static void an_hca_may_go_during_a_transition(void **state)
{
	struct hca *hca = f->hca;
	pthread_t thread;
	uint32_t n;

	(void)state;
	open_other_qp(URXE_QPS_RTS);
	post_to_other_qp();
	wanted = URXE_QPS_RTS;
	thread = start_slow(FAKE_HCA_QUERY_QP, slow_query_other);
	n = f->n;
	pthread_mutex_lock(&f->lock);
	f->hca = NULL;
	hca_defer_destruction(hca);
	hca_detach(hca);
	pthread_mutex_unlock(&f->lock);
	hca_close(hca);
	/* The other queue pair has failed at once. */
	assert_int_equal(fake_hca.qps, 1);
	assert_int_equal(f->asyncs, 1);
	post_to_other_qp();
	assert_int_equal(f->n, n);
	let_go_on(thread);
	assert_int_equal(f->n, n + 2);
	assert_int_equal(f->asyncs, 2);
	assert_int_equal(state_of(other_qp), URXE_QPS_ERR);
	assert_int_equal(fake_hca.qps, 0);
	assert_int_equal(fake_hca.closed, 1);
}

/* No CQ of the HCA has room for so many receives. */
static void a_queue_that_could_not_grow_does_not_grow_later(void **state)
{
	(void)state;
	assert_int_equal(create_srq(), 0);
	assert_int_equal(urxe_cq_create(f->dev, f, &other_cq), 0);
	assert_int_equal(create_qp(), 0);
	assert_int_equal(urxe_srq_resize(other_srq, 1000), -ENOMEM);
	assert_int_equal(urxe_srq_resize(other_srq, 1000), -ENOMEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(others_go_on_while_queues_are_made),
		TEST(others_go_on_while_an_object_makes_its_domain),
		TEST(others_go_on_while_queue_pairs_change),
		TEST(others_go_on_during_a_query),
		TEST(a_second_cq_is_dropped),
		TEST(a_cq_that_grows_is_polled_afterwards),
		TEST(an_event_during_a_resize_survives_a_poll),
		TEST(a_completion_during_a_resize_is_not_of_the_next_connection),
		TEST(a_cq_has_room_for_a_queue_that_grows),
		TEST(a_cq_has_room_for_a_queue_that_has_grown),
		TEST(a_queue_that_is_resized_gets_requests_afterwards),
		TEST(requests_during_a_reset_stay_away_from_the_hca),
		TEST(a_queue_pair_may_fail_during_a_transition),
		TEST(a_queue_pair_fails_once),
		TEST(a_queue_pair_that_fails_during_a_reset_stays_at_the_hca),
		TEST(a_queue_pair_that_is_not_reset_fails_at_the_hca),
		TEST(a_queue_pair_that_does_not_stop_ends),
		TEST(a_queue_pair_that_ends_tells_of_its_last_request),
		TEST(an_hca_that_goes_tells_of_the_last_request_once),
		TEST(an_hca_may_go_while_a_queue_is_made),
		TEST(an_hca_may_go_while_a_queue_pair_is_made),
		TEST(an_hca_may_go_while_a_cq_is_made),
		TEST(an_hca_may_go_while_queue_pairs_with_one_srq_are_made),
		TEST(a_queue_that_could_not_grow_does_not_grow_later),
		TEST(an_hca_may_go_during_a_transition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
