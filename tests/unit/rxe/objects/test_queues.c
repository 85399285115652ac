/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues, events, and shared receive queues. */
#include <errno.h>
#include <string.h>

#include <rxe/opcode.h>

#include "engine.h"

static void send_n(struct engine *e, unsigned n, uint32_t flags)
{
	for (unsigned i = 0; i < n; i++)
		post_send(e, 0,
			  &(struct post){
				  .wr_id = i, .opcode = URXE_WR_SEND, .length = 4, .flags = flags});
	pair_settle(e->pair);
}

static void recv_n(struct engine *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		post_recv(&e->end[1], i, 64 * i, 64);
}

/* One event for each arming of the CQ, however many completions follow (IBA 11.4.2.2). */
static void test_armed_cq_raises_one_event(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	recv_n(&e, 20);
	send_n(&e, 2, 0);
	assert_int_equal(e.b->recv_cq.events, 0); /* the CQ is not armed */
	urxe_cq_arm(e.b->recv_cq.cq, false);
	assert_int_equal(e.b->recv_cq.events,
			 0); /* the next completion causes the event, not an earlier one */
	send_n(&e, 3, 0);
	assert_int_equal(e.b->recv_cq.events, 1);
	urxe_cq_arm(e.b->recv_cq.cq, false);
	urxe_cq_arm(e.b->recv_cq.cq, false); /* twice is once */
	send_n(&e, 3, 0);
	assert_int_equal(e.b->recv_cq.events, 2);
	assert_int_equal(e.a->send_cq.events, 0);
	engine_close(&e);
}

static void test_solicited_arming_ignores_other_completions(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;
	struct urxe_wc wc;

	(void)state;
	engine_open(&e, &conn);
	recv_n(&e, 20);
	urxe_cq_arm(e.b->recv_cq.cq, true);
	send_n(&e, 3, 0);
	assert_int_equal(e.b->recv_cq.events, 0);
	while (node_poll(&e.b->recv_cq, &wc))
		assert_false(wc.solicited);
	send_n(&e, 1, URXE_SEND_SOLICITED);
	assert_int_equal(e.b->recv_cq.events, 1);
	assert_true(expect_wc(&e.b->recv_cq, 3, URXE_WC_SUCCESS).solicited);
	/*
	 * Arming for solicited completions does not cancel an arming for any completion (IBA
	 * 11.4.2.2).
	 */
	urxe_cq_arm(e.b->recv_cq.cq, false);
	urxe_cq_arm(e.b->recv_cq.cq, true);
	send_n(&e, 1, 0);
	assert_int_equal(e.b->recv_cq.events, 2);
	engine_close(&e);
}

/* An error completion counts as solicited. */
static void test_errors_count_as_solicited(void **state)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	recv_n(&e, 2);
	urxe_cq_arm(e.b->recv_cq.cq, true);
	assert_int_equal(urxe_qp_modify(e.end[1].qp, e.pair->now, &attr, URXE_QP_STATE), 0);
	assert_int_equal(e.b->recv_cq.events, 1);
	engine_close(&e);
}

/*
 * The CQ is full: the completion is lost, and an asynchronous event reports the loss (IBA
 * 11.6.3.1).
 */
static void test_cq_overflow_raises_an_event(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	e.b->recv_cq.depth = 2;
	recv_n(&e, 6);
	send_n(&e, 4, 0);
	expect_wc(&e.b->recv_cq, 0, URXE_WC_SUCCESS);
	expect_wc(&e.b->recv_cq, 1, URXE_WC_SUCCESS);
	assert_true(events(e.b, URXE_EVENT_CQ_OVERFLOW) > 0);
	assert_int_equal(e.b->async[URXE_ASYNC_CQ_ERR], 1);
	assert_ptr_equal(e.b->async_obj[URXE_ASYNC_CQ_ERR], &e.b->recv_cq);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	engine_close(&e);
}

/* All QPs of a full CQ end, whichever QP lost its completion. */
static void test_cq_overflow_fails_all_its_qps(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint other[2];
	struct node_cq *full;
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	conn_open(e.pair, &conn, other);
	recv_n(&e, 3);
	post_recv(&other[1], 9, 0, 8);
	full = &e.b->recv_cq;
	full->depth = 1;
	send_n(&e, 2, 0);
	assert_int_equal(e.b->async[URXE_ASYNC_CQ_ERR], 1);
	assert_int_equal(e.b->async[URXE_ASYNC_QP_FATAL], 2);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	assert_int_equal(qp_state(&other[1]), URXE_QPS_ERR);
	/* The application can still poll the earlier completions; no new ones follow. */
	full->depth = NODE_CQ_DEPTH;
	expect_wc(full, 0, URXE_WC_SUCCESS);
	assert_int_equal(urxe_qp_modify(other[1].qp, e.pair->now,
					&(struct urxe_qp_attr){.state = URXE_QPS_RESET},
					URXE_QP_STATE),
			 0);
	expect_none(full);
	engine_close(&e);
}

static void test_cq_in_use_cannot_be_destroyed(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	assert_int_equal(urxe_cq_destroy(e.a->send_cq.cq), -EBUSY);
	assert_int_equal(urxe_cq_destroy(e.a->recv_cq.cq), -EBUSY);
	urxe_qp_destroy(e.end[0].qp);
	assert_int_equal(urxe_cq_destroy(e.a->send_cq.cq), 0);
	assert_int_equal(urxe_cq_destroy(e.a->recv_cq.cq), 0);
	engine_close(&e);
}

/* --- Shared receive queues: four connections whose receiving QPs share one. */

#define N 4

struct shared {
	struct pair *pair;
	struct node_queue queue;
	struct urxe_rq *srq;
	struct endpoint end[N][2];
	uint32_t kept; /* receive requests that refill may post */
	uint32_t qkey; /* of UD QPs */
};

static void shared_open(struct shared *s, struct conn_attr *conn)
{
	struct urxe_rq_attr attr = {.ctx = &s->queue, .pd = NODE_PD, .max_wr = 32, .max_sge = 2};

	s->pair = pair_create(&(struct pair_attr){.seed = 1});
	s->queue = (struct node_queue){.node = s->pair->node[1]};
	assert_int_equal(urxe_srq_create(s->pair->node[1]->dev, &attr, &s->srq), 0);
	conn->srq[1] = s->srq;
	s->qkey = conn->qkey;
	for (unsigned i = 0; i < N; i++)
		conn_open(s->pair, conn, s->end[i]);
}

static void shared_recv(struct shared *s, uint64_t wr_id)
{
	struct endpoint end = {.node = s->pair->node[1], .rq = s->srq};

	post_recv(&end, wr_id, (uint32_t)wr_id * 100, 100);
}

static void shared_send_long(struct shared *s, unsigned i, uint32_t length)
{
	struct urxe_path path = conn_path(URXE_NET_IPV4, s->pair->node[1]);
	struct urxe_seg seg = node_seg(s->pair->node[0], i * 10, length);
	struct urxe_send_wr wr = {
		.wr_id = i,
		.opcode = URXE_WR_SEND,
		.segs = &seg,
		.n_segs = 1,
		.path = &path,
		.remote_qpn = s->end[i][1].qpn,
		.remote_qkey = s->qkey,
	};

	assert_int_equal(urxe_post_send(s->end[i][0].qp, &wr), 0);
	pair_settle(s->pair);
}

static void shared_send(struct shared *s, unsigned i)
{
	memset(s->pair->node[0]->mem + i * 10, (int)i + 1, 10);
	shared_send_long(s, i, 10);
}

static void test_qps_share_a_srq(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct node *node;
	struct shared s;

	(void)state;
	shared_open(&s, &conn);
	node = s.pair->node[1];
	assert_null(urxe_qp_rq(s.end[0][1].qp));
	assert_int_equal(urxe_srq_destroy(s.srq), -EBUSY);
	for (uint64_t i = 0; i < 3 * N; i++)
		shared_recv(&s, i);
	for (unsigned i = 0; i < 3 * N; i++) {
		struct urxe_wc wc;

		shared_send(&s, i * 7 % N); /* messages arrive for the QPs in any order; each takes
					       the oldest request */
		wc = expect_wc(&node->recv_cq, i, URXE_WC_SUCCESS);
		assert_int_equal(wc.qpn, s.end[i * 7 % N][1].qpn);
		assert_int_equal(node->mem[i * 100 + 9], i * 7 % N + 1);
	}
	assert_int_equal(urxe_rq_retired(s.srq), 3 * N);
	for (unsigned i = 0; i < N; i++)
		urxe_qp_destroy(s.end[i][1].qp);
	assert_int_equal(urxe_srq_destroy(s.srq), 0);
	pair_destroy(s.pair);
}

/* One event when fewer requests than the limit are left (IBA 10.2.9.3). */
static void test_srq_limit_raises_one_event(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct shared s;
	uint32_t *told;

	(void)state;
	shared_open(&s, &conn);
	told = &s.pair->node[1]->async[URXE_ASYNC_SRQ_LIMIT_REACHED];
	for (uint64_t i = 0; i < 6; i++)
		shared_recv(&s, i);
	assert_int_equal(urxe_srq_set_limit(s.srq, 33), -EINVAL);
	assert_int_equal(urxe_srq_set_limit(s.srq, 4), 0);
	assert_int_equal(urxe_srq_limit(s.srq), 4);
	shared_send(&s, 0);
	shared_send(&s, 1);
	assert_int_equal(*told, 0); /* four are left */
	shared_send(&s, 2);
	assert_int_equal(*told, 1);
	assert_ptr_equal(s.pair->node[1]->async_obj[URXE_ASYNC_SRQ_LIMIT_REACHED], &s.queue);
	assert_int_equal(urxe_srq_limit(s.srq), 0); /* disarmed */
	shared_send(&s, 3);
	assert_int_equal(*told, 1);
	pair_destroy(s.pair);
}

/*
 * A QP in the error state leaves the shared requests to other QPs, and raises an event when it
 * holds none.
 */
static void test_failed_qp_leaves_the_srq_to_others(void **state)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_ERR};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct shared s;

	(void)state;
	shared_open(&s, &conn);
	shared_recv(&s, 0);
	assert_int_equal(urxe_qp_modify(s.end[0][1].qp, s.pair->now, &attr, URXE_QP_STATE), 0);
	expect_none(&s.pair->node[1]->recv_cq);
	assert_int_equal(s.pair->node[1]->async[URXE_ASYNC_QP_LAST_WQE_REACHED], 1);
	assert_ptr_equal(s.pair->node[1]->async_obj[URXE_ASYNC_QP_LAST_WQE_REACHED],
			 &s.end[0][1].queue);
	shared_send(&s, 1);
	expect_wc(&s.pair->node[1]->recv_cq, 0, URXE_WC_SUCCESS);
	pair_destroy(s.pair);
}

/* A datagram that does not fit is dropped, and its receive goes to the next one, of any QP. */
static void test_dropped_datagram_leaves_its_receive_in_the_srq(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct node *node;
	struct urxe_wc wc;
	struct shared s;

	(void)state;
	shared_open(&s, &conn);
	node = s.pair->node[1];
	shared_recv(&s, 5);
	shared_send_long(&s, 0, 100); /* the GRH needs 40 bytes more */
	assert_int_equal(drops(node, URXE_DROP_BAD_REQUEST), 1);
	expect_none(&node->recv_cq);
	assert_int_equal(urxe_rq_retired(s.srq), 0);
	shared_send(&s, 1);
	wc = expect_wc(&node->recv_cq, 5, URXE_WC_SUCCESS);
	assert_int_equal(wc.qpn, s.end[1][1].qpn);
	assert_int_equal(drops(node, URXE_DROP_NO_RECV), 0);
	pair_destroy(s.pair);
}

/* UC (IBA 9.9.3, class E): the QP goes on with its next message. */
static void test_given_up_message_completes_the_receive_of_the_srq(void **state)
{
	static const struct {
		uint32_t length;
		unsigned lost; /* packet */
		uint32_t status;
	} rows[] = {
		{101, 9, URXE_WC_LOC_LEN_ERR},
		{1100, 9, URXE_WC_LOC_LEN_ERR},
		{2100, 1, URXE_WC_REM_INV_REQ_ERR}, /* with the last packet */
		{2100, 2, URXE_WC_REM_INV_REQ_ERR}, /* with the next message */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conn_attr conn = conn_default(URXE_QPT_UC);
		struct link_loss loss = {.first = rows[i].lost};
		struct endpoint end;
		struct shared s;

		shared_open(&s, &conn);
		end = (struct endpoint){.node = s.pair->node[1], .rq = s.srq};
		s.pair->link[0].filter = link_lose_one;
		s.pair->link[0].filter_arg = &loss;
		post_recv(&end, 1, 0, rows[i].length == 2100 ? 4096 : 100);
		post_recv(&end, 2, 4096, 100);
		shared_send_long(&s, 0, rows[i].length);
		shared_send(&s, 0);
		expect_wc(&end.node->recv_cq, 1, rows[i].status);
		expect_wc(&end.node->recv_cq, 2, URXE_WC_SUCCESS);
		expect_none(&end.node->recv_cq);
		pair_destroy(s.pair);
	}
}

/* The completion in error does not fit the CQ: the QP takes no further receive. */
static void test_given_up_message_may_overflow_the_cq(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_UC);
	struct link_loss loss = {.first = 1};
	struct endpoint end;
	struct shared s;

	(void)state;
	shared_open(&s, &conn);
	end = (struct endpoint){.node = s.pair->node[1], .rq = s.srq};
	s.pair->link[0].filter = link_lose_one;
	s.pair->link[0].filter_arg = &loss;
	post_recv(&end, 1, 0, 4096);
	post_recv(&end, 2, 4096, 4096);
	shared_send_long(&s, 0, 1100);
	end.node->recv_cq.depth = 0;
	shared_send(&s, 0);
	assert_int_equal(qp_state(&s.end[0][1]), URXE_QPS_ERR);
	assert_int_equal(urxe_rq_retired(s.srq), 1);
	pair_destroy(s.pair);
}

/* The SRQ is empty: the responder calls refill, and the sender waits after an RNR NAK. */
static void test_empty_srq_sends_rnr_nak(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_send_wr wr = {.wr_id = 1, .opcode = URXE_WR_SEND};
	struct shared s;

	(void)state;
	shared_open(&s, &conn);
	assert_int_equal(urxe_post_send(s.end[2][0].qp, &wr), 0);
	pair_run(s.pair, 1000000);
	assert_true(s.queue.refills > 0);
	expect_none(&s.pair->node[0]->send_cq);
	shared_recv(&s, 5);
	pair_settle(s.pair);
	expect_wc(&s.pair->node[0]->send_cq, 1, URXE_WC_SUCCESS);
	expect_wc(&s.pair->node[1]->recv_cq, 5, URXE_WC_SUCCESS);
	pair_destroy(s.pair);
}

static bool lose_acks(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct urxe_packet p;

	(void)arg, (void)now;
	return urxe_packet_parse(&p, data, len) || !(urxe_opcodes[p.opcode].flags & URXE_OPF_ACK);
}

/* The CQ may overflow with the completion of a request that a READ response acknowledges. */
static void test_read_response_may_overflow_the_cq(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.cap.max_send_wr = 4; /* the slot behind the last request holds an old READ */
	engine_open(&e, &conn);
	for (unsigned i = 0; i < 4; i++)
		post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 8});
	pair_settle(e.pair);
	e.a->send_cq.depth = 0;
	e.pair->link[1].filter = lose_acks;
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 8});
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = 8});
	pair_settle(e.pair);
	assert_int_equal(qp_state(&e.end[0]), URXE_QPS_ERR);
	assert_int_equal(urxe_sq_retired(e.end[0].qp), 4 + 3);
	assert_int_equal(e.a->async[URXE_ASYNC_CQ_ERR], 1);
	engine_close(&e);
}

/* The receive completion is lost: the responder does not acknowledge the message. */
static void test_overflow_sends_no_ack(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	recv_n(&e, 1);
	e.b->recv_cq.depth = 0;
	send_n(&e, 1, 0);
	expect_wc(&e.a->send_cq, 0, URXE_WC_REM_OP_ERR);
	assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
	engine_close(&e);
}

/* The requests that refill posts. */
static void refill_shared(struct node_queue *queue)
{
	struct shared *s = queue->arg;

	for (; s->kept; s->kept--)
		shared_recv(s, 0);
}

/* Requests that refill can still post count against the limit: no premature limit event. */
static void test_refillable_receives_count_against_the_srq_limit(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct shared s;

	(void)state;
	shared_open(&s, &conn);
	s.queue.refill = refill_shared;
	s.queue.arg = &s;
	for (uint64_t i = 0; i < 4; i++)
		shared_recv(&s, i);
	assert_int_equal(urxe_srq_set_limit(s.srq, 4), 0);
	s.kept = 10;
	for (unsigned i = 0; i < 10; i++)
		shared_send(&s, 0);
	assert_int_equal(s.pair->node[1]->async[URXE_ASYNC_SRQ_LIMIT_REACHED], 0);
	shared_send(&s, 0);
	assert_int_equal(s.pair->node[1]->async[URXE_ASYNC_SRQ_LIMIT_REACHED], 1);
	pair_destroy(s.pair);
}

static void resize(struct shared *s, uint32_t max_wr, int rc)
{
	assert_int_equal(urxe_srq_resize(s->srq, max_wr), rc);
}

/* The SRQ grows, then shrinks, with requests in it: each request is taken, in its order. */
static void test_srq_resize_keeps_requests(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_recv_wr empty = {.wr_id = 0};
	struct shared s;
	uint64_t next = 0;

	(void)state;
	shared_open(&s, &conn);
	/* Not at the start of the ring, so that the posted requests wrap around its end. */
	for (; next < 27; next++) {
		shared_recv(&s, next);
		shared_send(&s, 0);
		expect_wc(&s.pair->node[1]->recv_cq, next, URXE_WC_SUCCESS);
	}
	for (uint64_t i = next; i < next + 32; i++)
		shared_recv(&s, i);
	assert_int_equal(urxe_post_recv(s.srq, &empty), -ENOMEM);
	resize(&s, 31, -EINVAL);
	resize(&s, 0, -EINVAL);
	resize(&s, URXE_MAX_WR + 1, -EINVAL);
	resize(&s, 40, 0);
	for (uint64_t i = next + 32; i < next + 40; i++)
		shared_recv(&s, i);
	assert_int_equal(urxe_post_recv(s.srq, &empty), -ENOMEM);
	for (unsigned i = 0; i < 35; i++, next++) {
		shared_send(&s, i % N);
		expect_wc(&s.pair->node[1]->recv_cq, next, URXE_WC_SUCCESS);
	}
	assert_int_equal(urxe_srq_set_limit(s.srq, 6), 0);
	resize(&s, 5, -EINVAL); /* under the limit */
	assert_int_equal(urxe_srq_set_limit(s.srq, 5), 0);
	resize(&s, 5, 0);
	assert_int_equal(urxe_srq_set_limit(s.srq, 6), -EINVAL);
	assert_int_equal(urxe_post_recv(s.srq, &empty), -ENOMEM);
	for (unsigned i = 0; i < 5; i++, next++) {
		shared_send(&s, i % N);
		expect_wc(&s.pair->node[1]->recv_cq, next, URXE_WC_SUCCESS);
	}
	assert_int_equal(s.pair->node[1]->async[URXE_ASYNC_SRQ_LIMIT_REACHED], 1);
	shared_recv(&s, next);
	shared_send(&s, 0);
	expect_wc(&s.pair->node[1]->recv_cq, next, URXE_WC_SUCCESS);
	pair_destroy(s.pair);
}

/*
 * An armed limit raises one event. If it is armed again when fewer requests are left, the event
 * comes at the next message.
 */
static void test_rearmed_srq_limit_raises_another_event(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct shared s;
	uint32_t *told;

	(void)state;
	shared_open(&s, &conn);
	told = &s.pair->node[1]->async[URXE_ASYNC_SRQ_LIMIT_REACHED];
	for (uint64_t i = 0; i < 8; i++)
		shared_recv(&s, i);
	assert_int_equal(urxe_srq_set_limit(s.srq, 8), 0);
	shared_send(&s, 0);
	assert_int_equal(*told, 1);
	shared_send(&s, 0);
	assert_int_equal(*told, 1);
	assert_int_equal(urxe_srq_set_limit(s.srq, 20), 0);
	shared_send(&s, 0);
	assert_int_equal(*told, 2);
	assert_int_equal(urxe_srq_set_limit(s.srq, 3), 0);
	assert_int_equal(urxe_srq_set_limit(s.srq, 0), 0); /* taken back */
	for (unsigned i = 0; i < 5; i++)
		shared_send(&s, 0);
	assert_int_equal(*told, 2);
	pair_destroy(s.pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_armed_cq_raises_one_event),
		cmocka_unit_test(test_solicited_arming_ignores_other_completions),
		cmocka_unit_test(test_errors_count_as_solicited),
		cmocka_unit_test(test_cq_overflow_raises_an_event),
		cmocka_unit_test(test_cq_overflow_fails_all_its_qps),
		cmocka_unit_test(test_cq_in_use_cannot_be_destroyed),
		cmocka_unit_test(test_srq_resize_keeps_requests),
		cmocka_unit_test(test_rearmed_srq_limit_raises_another_event),
		cmocka_unit_test(test_qps_share_a_srq),
		cmocka_unit_test(test_srq_limit_raises_one_event),
		cmocka_unit_test(test_failed_qp_leaves_the_srq_to_others),
		cmocka_unit_test(test_dropped_datagram_leaves_its_receive_in_the_srq),
		cmocka_unit_test(test_given_up_message_completes_the_receive_of_the_srq),
		cmocka_unit_test(test_given_up_message_may_overflow_the_cq),
		cmocka_unit_test(test_empty_srq_sends_rnr_nak),
		cmocka_unit_test(test_read_response_may_overflow_the_cq),
		cmocka_unit_test(test_overflow_sends_no_ack),
		cmocka_unit_test(test_refillable_receives_count_against_the_srq_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
