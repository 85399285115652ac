/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine takes over queue pairs from an HCA, in the middle of messages, and its peer, which
 * runs an engine without changes, notices only a pause. The HCA is the engine of another device.
 */
#include <errno.h>
#include <string.h>

#include "take_over_bed.h"

#define TO     500000u /* of operations, offset in the peer's memory */
#define BEFORE 900000u /* of the messages that come first */
#define LENGTH 20000u
/* The word that atomics find. */
#define ORIGINAL 40u
#define STEPS    100u

/* --- Operations. */

struct operation {
	uint32_t opcode;
	uint32_t length;
	bool receive;
};

static const struct operation operations[] = {
	{URXE_WR_SEND, LENGTH, true},        {URXE_WR_SEND_IMM, LENGTH, true},
	{URXE_WR_RDMA_WRITE, LENGTH, false}, {URXE_WR_RDMA_WRITE_IMM, LENGTH, true},
	{URXE_WR_RDMA_READ, LENGTH, false},  {URXE_WR_SEND, 10, true},
	{URXE_WR_RDMA_WRITE, 10, false},     {URXE_WR_RDMA_READ, 10, false},
	{URXE_WR_FETCH_ADD, 8, false},       {URXE_WR_COMPARE_SWAP, 8, false},
};

#define SEND      (&operations[0])
#define WRITE     (&operations[2])
#define FETCH_ADD (&operations[8])

#define REMOTE (NODE_ACCESS & ~(uint32_t)URXE_ACCESS_LOCAL_WRITE)

static uint8_t pattern(uint32_t i)
{
	return (uint8_t)(i * 7 + i / 256);
}

/* A requester asks for an ACK when a PSN is the last one of 32: in none, or in each message of
 * several packets. */
#define FIRST_PSN   0x123400
#define PSN_OF_ACKS 0x123415

struct bed_attr {
	unsigned hca_side;
	uint32_t access;                    /* of both queue pairs */
	uint32_t psn;                       /* of side 0; 0 = FIRST_PSN */
	bool go_back_n;                     /* the peer's */
	const struct urxe_offload_ops *ops; /* of the HCA; NULL = engine_hca_ops */
};

/* A bed whose connection has carried a SEND in each direction. */
static void open_bed(struct bed *bed, const struct bed_attr *attr)
{
	const bool second = attr->hca_side;
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.access = attr->access;
	conn.psn[0] = attr->psn ? attr->psn : FIRST_PSN;
	bed_open_sides(bed, !second, second,
		       &(struct pair_attr){.seed = 1,
					   .go_back_n = {attr->go_back_n && second,
							 attr->go_back_n && !second}});
	if (attr->ops)
		urxe_offload_set(device(bed, second), attr->ops, &bed->hca[second]);
	conn_open(&bed->above, &conn, bed->e.end);
	/* More than a message needs: without credits its first packet would ask for an ACK. */
	for (unsigned side = 0; side < 2; side++) {
		post_recv(&bed->e.end[side], 1, BEFORE, 100);
		for (uint32_t id = 5; id < 8; id++)
			post_recv(&bed->e.end[side], 70 + id, TO, LENGTH);
	}
	for (unsigned from = 0; from < 2; from++)
		post_send(&bed->e, from, &(struct post){.wr_id = 2, .opcode = URXE_WR_SEND});
	run_for(bed, 100000);
	for (unsigned i = 0; i < 2; i++) {
		expect_wc(&bed->above.node[i]->recv_cq, 1, URXE_WC_SUCCESS);
		expect_wc(&bed->above.node[i]->send_cq, 2, URXE_WC_SUCCESS);
	}
}

static void prepare_memory(struct bed *bed, const struct operation *op)
{
	const bool read = op->opcode == URXE_WR_RDMA_READ;

	for (uint32_t i = 0; i < LENGTH; i++) {
		bed->e.a->mem[i] = read ? 0 : pattern(i);
		bed->e.b->mem[TO + i] = read ? pattern(i) : 0;
	}
	if (op->opcode == URXE_WR_FETCH_ADD || op->opcode == URXE_WR_COMPARE_SWAP)
		memcpy(bed->e.b->mem + TO, &(uint64_t){ORIGINAL}, 8);
}

static void post_operation(struct bed *bed, const struct operation *op, uint64_t id)
{
	post_send(&bed->e, 0,
		  &(struct post){.wr_id = id,
				 .opcode = op->opcode,
				 .length = op->length,
				 .remote = TO,
				 .compare_add = 3,
				 .swap = 4});
}

static uint64_t word_at(const struct node *node, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, node->mem + offset, sizeof(word));
	return word;
}

static void expect_contents(struct bed *bed, const struct operation *op)
{
	const uint8_t *at = op->opcode == URXE_WR_RDMA_READ ? bed->e.a->mem : bed->e.b->mem + TO;

	if (op->opcode == URXE_WR_FETCH_ADD)
		assert_int_equal(word_at(bed->e.b, TO), ORIGINAL + 3);
	else if (op->opcode == URXE_WR_COMPARE_SWAP)
		assert_int_equal(word_at(bed->e.b, TO), ORIGINAL);
	else
		for (uint32_t i = 0; i < op->length; i++)
			assert_int_equal(at[i], pattern(i));
}

static void expect_result(struct bed *bed, const struct operation *op, uint64_t id)
{
	expect_wc(&bed->e.a->send_cq, id, URXE_WC_SUCCESS);
	expect_none(&bed->e.a->send_cq);
	if (op->receive)
		expect_wc(&bed->e.b->recv_cq, 70 + id, URXE_WC_SUCCESS);
	expect_none(&bed->e.b->recv_cq);
	expect_contents(bed, op);
}

/* --- Each moment of each operation. */

/* `how`: bit 0 = the peer is one that goes back N, bit 1 = the device moves to another engine. */
static void run_operation(const struct operation *op, unsigned side, uint32_t step, unsigned how)
{
	static struct bed bed;

	open_bed(&bed, &(struct bed_attr){side, REMOTE, 0, how & 1, NULL});
	prepare_memory(&bed, op);
	post_operation(&bed, op, 5);
	run_for(&bed, step * STEP);
	take_over(&bed, side);
	if (how & 2)
		move(&bed, side);
	settle(&bed);
	expect_result(&bed, op, 5);
	/* The connection goes on in both directions. */
	prepare_memory(&bed, op);
	post_operation(&bed, op, 6);
	post_send(&bed.e, 1, &(struct post){.wr_id = 9, .opcode = URXE_WR_SEND, .length = 100});
	settle(&bed);
	expect_result(&bed, op, 6);
	expect_wc(&bed.e.a->recv_cq, 75, URXE_WC_SUCCESS);
	expect_wc(&bed.e.b->send_cq, 9, URXE_WC_SUCCESS);
	bed_close(&bed);
}

static void test_take_over_at_each_moment_loses_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		for (unsigned side = 0; side < 2; side++)
			for (uint32_t step = 0; step < STEPS; step += 1 + i)
				run_operation(&operations[i], side, step, step % 4);
}

/* --- Messages in progress: the HCA gets only the first packets of them. */

static uint32_t room; /* frames that still pass */

static bool pass_first(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return room && room--;
}

static bool lose(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return false;
}

/* The first `n` packets arrive before the engine takes over. */
static void cut_operation(struct bed *bed, const struct operation *op, uint32_t n,
			  bool lose_answers)
{
	prepare_memory(bed, op);
	room = n;
	bed->wire->link[0].filter = pass_first;
	bed->wire->link[1].filter = lose_answers ? lose : NULL;
	post_operation(bed, op, 5);
	run_for(bed, 5000);
	take_over(bed, 1);
	bed->wire->link[0].filter = bed->wire->link[1].filter = NULL;
}

static void run_cut(const struct operation *op, uint32_t n, bool lose_answers, unsigned how)
{
	static struct bed bed;

	open_bed(&bed, &(struct bed_attr){1, REMOTE, 0, how & 1, NULL});
	cut_operation(&bed, op, n, lose_answers);
	if (how & 2)
		move(&bed, 1);
	settle(&bed);
	expect_result(&bed, op, 5);
	prepare_memory(&bed, op);
	post_operation(&bed, op, 6);
	settle(&bed);
	expect_result(&bed, op, 6);
	bed_close(&bed);
}

static void test_take_over_at_each_packet_loses_nothing(void **state)
{
	(void)state;
	for (const struct operation *op = operations; op < FETCH_ADD; op++)
		for (uint32_t n = 0; n <= LENGTH / 1024 + 1; n++)
			for (unsigned how = 0; how < 8; how++)
				run_cut(op, n, how & 4, how);
}

/* --- What does not go on. */

/* The peer has an ACK of a part of the message. If it may only SEND, the engine knows the rest. */
static void test_take_over_resumes_a_partly_acknowledged_send(void **state)
{
	static struct bed bed;

	(void)state;
	for (uint32_t n = 11; n < 16; n++) {
		open_bed(&bed, &(struct bed_attr){1, 0, PSN_OF_ACKS, false, NULL});
		cut_operation(&bed, SEND, n, false);
		move(&bed, 1);
		settle(&bed);
		expect_result(&bed, SEND, 5);
		bed_close(&bed);

		open_bed(&bed, &(struct bed_attr){1, REMOTE, PSN_OF_ACKS, false, NULL});
		cut_operation(&bed, WRITE, n, false);
		settle(&bed);
		expect_wc(&bed.e.a->send_cq, 5, URXE_WC_RETRY_EXC_ERR);
		assert_int_equal(qp_state(&bed.e.end[1]), URXE_QPS_RTS);
		bed_close(&bed);
	}
}

static const struct operation two_packets = {URXE_WR_SEND, 2000, true};
static struct bed *connecting;

/* The peer's first message arrives before the HCA answers. */
static int connect_and_receive(void *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	const int rc = engine_hca_ops.qp_modify(qp, attr, mask);

	if (attr->state == URXE_QPS_RTR) {
		post_recv(&connecting->e.end[1], 75, TO, LENGTH);
		post_operation(connecting, &two_packets, 5);
		run_for(connecting, 100000);
	}
	return rc;
}

static void take_over_after_transition(bool shared)
{
	const struct urxe_rq_attr srq = {.pd = NODE_PD, .max_wr = 8, .max_sge = 2};
	struct urxe_offload_ops ops = engine_hca_ops;
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	static struct bed bed;

	conn.access = 0;
	ops.qp_modify = connect_and_receive;
	bed_open_sides(&bed, false, true, &(struct pair_attr){.seed = 1});
	urxe_offload_set(device(&bed, 1), &ops, &bed.hca[1]);
	if (shared)
		assert_int_equal(urxe_srq_create(device(&bed, 1), &srq, &conn.srq[1]), 0);
	prepare_memory(&bed, &two_packets);
	connecting = &bed;
	conn_open(&bed.above, &conn, bed.e.end);
	expect_result(&bed, &two_packets, 5);
	post_recv(&bed.e.end[1], 75, TO, LENGTH);
	cut_operation(&bed, SEND, 5, false);
	settle(&bed);
	expect_result(&bed, SEND, 5);
	bed_close(&bed);
}

/* The path MTU of the connection, by which the engine counts packets, is not that of the device. */
static void test_take_over_counts_a_message_during_the_transition_to_rtr(void **state)
{
	(void)state;
	for (unsigned shared = 0; shared < 2; shared++)
		take_over_after_transition(shared);
}

/* The HCA has the answer, which the peer has not received. */
static void test_atomic_is_not_repeated(void **state)
{
	static struct bed bed;

	(void)state;
	open_bed(&bed, &(struct bed_attr){1, REMOTE, 0, false, NULL});
	cut_operation(&bed, FETCH_ADD, 1, true);
	settle(&bed);
	expect_wc(&bed.e.a->send_cq, 5, URXE_WC_RETRY_EXC_ERR);
	expect_contents(&bed, FETCH_ADD);
	assert_true(drops(bed.e.b, URXE_DROP_DUPLICATE) > 0);
	bed_close(&bed);
}

/* --- Requests that the HCA does not have yet, and the end of the attempt. */

static void post_writes(struct bed *bed, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		post_send(&bed->e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = URXE_WR_RDMA_WRITE,
					 .offset = i * 2000,
					 .length = 2000,
					 .remote = TO + i * 2000});
}

static void expect_writes(struct bed *bed, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		expect_wc(&bed->e.a->send_cq, i, URXE_WC_SUCCESS);
	expect_none(&bed->e.a->send_cq);
	assert_memory_equal(bed->e.b->mem + TO, bed->e.a->mem, n * 2000);
}

/* The HCA has a part of n requests when the engine begins to take over. */
static void begin_take_over(struct bed *bed, uint32_t n)
{
	struct urxe_offload_refusal refusal;

	open_bed(bed, &(struct bed_attr){0, REMOTE, 0, false, NULL});
	prepare_memory(bed, WRITE);
	post_writes(bed, n);
	hand_over(bed, 0);
	assert_int_equal(urxe_offload_take_over(device(bed, 0), 1, true, &refusal), -EAGAIN);
	assert_int_equal(refusal.reason, URXE_OFFLOAD_REQUESTS);
	run_for(bed, 100000);
}

static void test_waiting_requests_run_after_a_take_over(void **state)
{
	const uint32_t n = 2 * HCA_ROOM + 1;
	static struct bed bed;

	(void)state;
	begin_take_over(&bed, n);
	/* The HCA has got no request since. */
	assert_int_equal(events(bed.e.a, URXE_EVENT_HCA_REQUESTS), 1 + HCA_ROOM);
	take_over(&bed, 0);
	settle(&bed);
	assert_int_equal(events(bed.e.a, URXE_EVENT_HCA_REQUESTS), 1 + HCA_ROOM);
	expect_writes(&bed, n);
	bed_close(&bed);
}

static void test_abandoned_take_over_leaves_requests_to_the_hca(void **state)
{
	const uint32_t n = 2 * HCA_ROOM + 1;
	static struct bed bed;

	(void)state;
	begin_take_over(&bed, n);
	urxe_offload_keep(device(&bed, 0));
	assert_false(urxe_offload_stopped(device(&bed, 0)));
	settle(&bed);
	assert_true(urxe_qp_offloaded(bed.e.end[0].qp));
	assert_int_equal(events(bed.e.a, URXE_EVENT_HCA_REQUESTS), 1 + n);
	expect_writes(&bed, n);
	bed_close(&bed);
}

static bool writes_only;

static uint32_t post_writes_only(void *qp, const struct urxe_send_wr *wrs, uint32_t n, int *rc)
{
	uint32_t taken = 0;

	while (taken < n && (!writes_only || wrs[taken].opcode == URXE_WR_RDMA_WRITE))
		taken++;
	if (taken)
		taken = engine_hca_ops.post_send(qp, wrs, taken, rc);
	if (taken < n)
		*rc = -EINVAL;
	return taken;
}

/* The HCA refuses a request while it executes an earlier one. The request fails after the move. */
static void test_request_that_the_hca_refused_moves(void **state)
{
	static const struct post refused[] = {
		{.wr_id = 6, .opcode = URXE_WR_SEND, .length = 100},
		{.wr_id = 6, .opcode = URXE_WR_SEND_IMM},
		{.wr_id = 6, .opcode = URXE_WR_RDMA_READ},
	};
	struct urxe_offload_ops ops = engine_hca_ops;
	struct urxe_offload_refusal refusal;
	static struct bed bed;

	(void)state;
	ops.post_send = post_writes_only;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		writes_only = false;
		open_bed(&bed, &(struct bed_attr){0, REMOTE, 0, false, &ops});
		writes_only = true;
		prepare_memory(&bed, WRITE);
		post_operation(&bed, WRITE, 5);
		post_send(&bed.e, 0, &refused[i]);
		post_send(&bed.e, 0, &(struct post){.wr_id = 7, .opcode = URXE_WR_SEND});
		hand_over(&bed, 0);
		assert_int_equal(urxe_offload_take_over(device(&bed, 0), 1, true, &refusal),
				 -EAGAIN);
		assert_int_equal(refusal.reason, URXE_OFFLOAD_REQUESTS);
		run_for(&bed, 100000);
		take_over(&bed, 0);
		move(&bed, 0);
		settle(&bed);
		expect_wc(&bed.e.a->send_cq, 5, URXE_WC_SUCCESS);
		expect_wc(&bed.e.a->send_cq, 6, URXE_WC_LOC_QP_OP_ERR);
		expect_wc(&bed.e.a->send_cq, 7, URXE_WC_WR_FLUSH_ERR);
		expect_none(&bed.e.a->send_cq);
		bed_close(&bed);
	}
}

/* The HCA's queue pair has stopped, and its receive requests have not come back yet. */
static void stop_hca(struct bed *bed, const struct urxe_offload_ops *ops)
{
	struct urxe_offload_refusal refusal;
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	open_bed(bed, &(struct bed_attr){.hca_side = 1, .access = REMOTE, .ops = ops});
	prepare_memory(bed, WRITE);
	assert_int_equal(urxe_offload_take_over(device(bed, 1), bed->wire->now, true, &refusal),
			 -EAGAIN);
	assert_int_equal(refusal.reason, URXE_OFFLOAD_RECEIVES);
	assert_true(urxe_offload_stopped(device(bed, 1)));
	urxe_offload_query(bed->e.end[1].qp, &attr, &init);
	assert_int_equal(attr.state, URXE_QPS_RTS);
}

/* The queue pair is the engine's. Messages of both directions arrive. */
static void expect_engine_goes_on(struct bed *bed)
{
	assert_false(urxe_offload_stopped(device(bed, 1)));
	assert_false(urxe_qp_offloaded(bed->e.end[1].qp));
	leave_hca(bed, 1);
	post_writes(bed, 3);
	settle(bed);
	expect_writes(bed, 3);
	post_operation(bed, SEND, 5);
	settle(bed);
	expect_result(bed, SEND, 5);
	expect_wc(&bed->e.b->send_cq, 9, URXE_WC_SUCCESS);
	expect_wc(&bed->e.a->recv_cq, 75, URXE_WC_SUCCESS);
	assert_int_equal(qp_state(&bed->e.end[1]), URXE_QPS_RTS);
	assert_int_equal(bed->e.b->async[URXE_ASYNC_QP_FATAL], 0);
	bed_close(bed);
}

static void post_from_stopped(struct bed *bed)
{
	post_send(&bed->e, 1, &(struct post){.wr_id = 9, .opcode = URXE_WR_SEND, .length = 100});
}

/* The owner abandons the attempt when the HCA cannot go on any more. `wait`: the program posts
 * after the receive requests have come back, else before. */
static void test_abandoned_attempt_after_the_stop_runs_in_software(void **state)
{
	static struct bed bed;

	(void)state;
	for (unsigned wait = 0; wait < 2; wait++) {
		stop_hca(&bed, NULL);
		urxe_offload_keep(device(&bed, 1));
		if (!wait)
			post_from_stopped(&bed);
		run_for(&bed, STEP);
		if (wait)
			post_from_stopped(&bed);
		expect_engine_goes_on(&bed);
	}
}

/* A shared receive queue of the program would end the attempt. */
static void test_new_srq_does_not_end_a_take_over(void **state)
{
	const struct urxe_rq_attr attr = {.pd = NODE_PD, .max_wr = 8, .max_sge = 2};
	struct urxe_offload_refusal refusal;
	static struct bed bed;
	struct urxe_rq *srq;

	(void)state;
	stop_hca(&bed, NULL);
	assert_int_equal(urxe_srq_create(device(&bed, 1), &attr, &srq), 0);
	assert_int_equal(try_take_over(&bed, 1, &refusal), 0);
	assert_int_equal(urxe_srq_destroy(srq), 0);
	post_from_stopped(&bed);
	expect_engine_goes_on(&bed);
}

/* The receive requests come back while the HCA refuses the transition to RESET. */
static struct bed *resetting;

static int refuse_reset(void *qp, const struct urxe_qp_attr *attr, uint32_t mask)
{
	if (attr->state != URXE_QPS_RESET)
		return engine_hca_ops.qp_modify(qp, attr, mask);
	engine_hca_deliver(&resetting->hca[1]);
	return -EIO;
}

static void test_refused_reset_after_the_stop_ends_in_software(void **state)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_RESET};
	struct urxe_offload_ops ops = engine_hca_ops;
	static struct bed bed;

	(void)state;
	ops.qp_modify = refuse_reset;
	resetting = &bed;
	stop_hca(&bed, &ops);
	assert_int_equal(urxe_qp_modify(bed.e.end[1].qp, bed.wire->now, &attr, URXE_QP_STATE),
			 -EIO);
	assert_true(urxe_offload_stopped(device(&bed, 1)));
	urxe_offload_keep(device(&bed, 1));
	post_from_stopped(&bed);
	expect_engine_goes_on(&bed);
}

/* The peer sends all the time. Two calls at one moment, of two attempts, do not show a pause. */
static void test_two_calls_at_one_moment_show_no_pause(void **state)
{
	struct urxe_offload_refusal refusal;
	static struct bed bed;

	(void)state;
	open_bed(&bed, &(struct bed_attr){1, REMOTE, 0, false, NULL});
	prepare_memory(&bed, WRITE);
	post_writes(&bed, 1);
	run_for(&bed, 10000);
	expect_writes(&bed, 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(
			urxe_offload_take_over(device(&bed, 1), bed.wire->now, false, &refusal),
			-EAGAIN);
		assert_int_equal(refusal.reason, URXE_OFFLOAD_BUSY_PEER);
		assert_false(urxe_offload_stopped(device(&bed, 1)));
		urxe_offload_keep(device(&bed, 1));
	}
	bed_close(&bed);
}

/* Without `force` the engine waits for a moment at which the peer sends nothing. */
static void test_take_over_waits_for_a_pause_of_the_peer(void **state)
{
	struct urxe_offload_refusal refusal;
	static struct bed bed;

	(void)state;
	open_bed(&bed, &(struct bed_attr){1, REMOTE, 0, false, NULL});
	prepare_memory(&bed, WRITE);
	for (unsigned i = 0; i < 3; i++) {
		post_writes(&bed, 1);
		run_for(&bed, 10000);
		expect_writes(&bed, 1);
		assert_int_equal(
			urxe_offload_take_over(device(&bed, 1), bed.wire->now, false, &refusal),
			-EAGAIN);
		assert_int_equal(refusal.reason, URXE_OFFLOAD_BUSY_PEER);
		assert_true(urxe_qp_offloaded(bed.e.end[1].qp));
	}
	assert_false(urxe_offload_stopped(device(&bed, 1)));
	assert_int_equal(urxe_offload_take_over(device(&bed, 1), bed.wire->now, false, &refusal),
			 -EAGAIN); /* of the receive requests */
	assert_true(urxe_offload_stopped(device(&bed, 1)));
	run_for(&bed, STEP);
	assert_int_equal(urxe_offload_take_over(device(&bed, 1), bed.wire->now, false, &refusal),
			 0);
	leave_hca(&bed, 1);
	post_writes(&bed, 3);
	settle(&bed);
	expect_writes(&bed, 3);
	bed_close(&bed);
}

/* The program changes the queue pair while the HCA gives back its receive requests. */
static void test_qp_modified_during_a_take_over_is_taken(void **state)
{
	static const uint8_t states[] = {URXE_QPS_ERR, URXE_QPS_RESET};
	struct urxe_offload_refusal refusal;
	static struct bed bed;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const struct urxe_qp_attr attr = {.state = states[i]};
		struct node_cq *cq;

		open_bed(&bed, &(struct bed_attr){1, REMOTE, 0, false, NULL});
		cq = &bed.e.b->recv_cq;
		assert_int_equal(
			urxe_offload_take_over(device(&bed, 1), bed.wire->now, true, &refusal),
			-EAGAIN);
		assert_int_equal(
			urxe_qp_modify(bed.e.end[1].qp, bed.wire->now, &attr, URXE_QP_STATE), 0);
		run_for(&bed, STEP);
		for (uint32_t id = 75; states[i] == URXE_QPS_ERR && id < 78; id++)
			expect_wc(cq, id, URXE_WC_WR_FLUSH_ERR);
		expect_none(cq);
		take_over(&bed, 1);
		expect_none(cq);
		bed_close(&bed);
	}
}

static void drain_with_event(struct bed *bed)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_SQD, .en_sqd_async_notify = true};
	const uint32_t mask = URXE_QP_STATE | URXE_QP_EN_SQD_ASYNC_NOTIFY;

	assert_int_equal(urxe_qp_modify(bed->e.end[1].qp, bed->wire->now, &attr, mask), 0);
}

static void expect_drained_event(struct bed *bed)
{
	take_over(bed, 1);
	assert_int_equal(bed->e.b->async[URXE_ASYNC_SQ_DRAINED], 1);
	bed_close(bed);
}

/* The program asks for the event when the HCA has stopped, or before. Then the HCA reports it
 * before the stop or after, or even before the program's call returns. */
static void test_drained_event_comes_once_in_a_take_over(void **state)
{
	struct urxe_offload_refusal refusal;
	static struct bed bed;

	(void)state;
	stop_hca(&bed, NULL);
	drain_with_event(&bed);
	assert_int_equal(bed.e.b->async[URXE_ASYNC_SQ_DRAINED], 0);
	expect_drained_event(&bed);

	for (unsigned reported = 0; reported < 2; reported++) {
		open_bed(&bed, &(struct bed_attr){.hca_side = 1, .access = REMOTE});
		drain_with_event(&bed);
		if (reported)
			run_for(&bed, STEP);
		assert_int_equal(
			urxe_offload_take_over(device(&bed, 1), bed.wire->now, true, &refusal),
			-EAGAIN);
		assert_int_equal(bed.e.b->async[URXE_ASYNC_SQ_DRAINED], reported);
		expect_drained_event(&bed);
	}

	open_bed(&bed, &(struct bed_attr){.hca_side = 1, .access = REMOTE});
	bed.hca[1].prompt = true;
	drain_with_event(&bed);
	bed.hca[1].prompt = false;
	assert_int_equal(bed.e.b->async[URXE_ASYNC_SQ_DRAINED], 1);
	expect_drained_event(&bed);
}

/* --- Traffic in both directions on a cable that loses packets. */

#define MESSAGES 40u
#define SLOT     6000u /* bytes of the longest message */

/* If the peer may WRITE, messages of one packet, because an ACK of a part would be the end. */
static uint32_t message_length(uint32_t i, bool writes)
{
	return 1 + i * 1237 % (writes ? 1024 : SLOT);
}

static bool is_send(uint32_t i, bool writes)
{
	return !writes || i % 3 == 0;
}

/* Message i of a direction has a part of the memory of its own. */
static void post_message(struct bed *bed, unsigned from, uint32_t i, bool writes)
{
	post_send(&bed->e, from,
		  &(struct post){.wr_id = i,
				 .opcode = is_send(i, writes) ? URXE_WR_SEND : URXE_WR_RDMA_WRITE,
				 .offset = i * SLOT,
				 .length = message_length(i, writes),
				 .remote = TO + i * SLOT});
}

static void open_traffic(struct bed *bed, unsigned hca_side, bool go_back_n, bool writes)
{
	open_bed(bed, &(struct bed_attr){hca_side, writes ? REMOTE : 0, 0, go_back_n, NULL});
	for (unsigned side = 0; side < 2; side++) {
		struct node *node = bed->above.node[side];

		/* The receives that open_bed has left. */
		for (uint32_t i = 0; i < 3; i++)
			post_send(&bed->e, side,
				  &(struct post){.wr_id = 1, .opcode = URXE_WR_SEND});
		run_for(bed, 100000);
		node->send_cq.head = node->send_cq.tail;
		for (uint32_t i = 0; i < TO; i++)
			node->mem[i] = (uint8_t)(pattern(i) + side);
	}
	for (unsigned side = 0; side < 2; side++) {
		struct node *node = bed->above.node[side];

		node->recv_cq.head = node->recv_cq.tail;
		for (uint32_t i = 0; i < MESSAGES; i++)
			if (is_send(i, writes))
				post_recv(&bed->e.end[side], i, TO + i * SLOT, SLOT);
		bed->wire->link[side].faults = (struct link_faults){
			.drop = 0.05, .duplicate = 0.05, .reorder = 0.05, .max_losses = 3};
	}
}

/* The messages of each direction complete once, in order, and their contents are right. */
static void expect_traffic(struct bed *bed, bool writes)
{
	for (unsigned from = 0; from < 2; from++) {
		struct node *node = bed->above.node[from], *to = bed->above.node[!from];

		for (uint32_t i = 0; i < MESSAGES; i++) {
			expect_wc(&node->send_cq, i, URXE_WC_SUCCESS);
			if (is_send(i, writes))
				expect_wc(&to->recv_cq, i, URXE_WC_SUCCESS);
			assert_memory_equal(to->mem + TO + i * SLOT, node->mem + i * SLOT,
					    message_length(i, writes));
		}
		expect_none(&node->send_cq);
		expect_none(&to->recv_cq);
	}
}

/* `how`: as of run_operation; bit 2 = the peer may WRITE. */
static void run_traffic(unsigned hca_side, uint32_t after, unsigned how)
{
	const bool writes = how & 4;
	static struct bed bed;

	open_traffic(&bed, hca_side, how & 1, writes);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		post_message(&bed, 0, i, writes);
		post_message(&bed, 1, i, writes);
		run_for(&bed, 1000);
		if (i != after)
			continue;
		take_over(&bed, hca_side);
		if (how & 2)
			move(&bed, hca_side);
	}
	settle(&bed);
	expect_traffic(&bed, writes);
	bed_close(&bed);
}

static void test_take_over_amid_traffic_loses_nothing(void **state)
{
	(void)state;
	for (uint32_t after = 2; after < MESSAGES; after++)
		for (unsigned how = 0; how < 8; how++)
			run_traffic(after % 2, after, how);
}

/* --- Refusals. The HCA goes on. */

/* The PSNs that a driver returns, instead of those of the HCA. */
static uint32_t told_rq, told_sq;

static void tell(void *qp, struct urxe_qp_attr *attr)
{
	(void)qp;
	attr->rq_psn = told_rq;
	attr->sq_psn = told_sq;
}

static void test_stale_psn_of_the_driver_refuses_a_take_over(void **state)
{
	struct urxe_offload_ops ops = engine_hca_ops;
	struct urxe_offload_refusal refusal;
	static struct bed bed;

	(void)state;
	for (unsigned side = 0; side < 2; side++) {
		const struct conn_attr conn = conn_default(URXE_QPT_RC);

		open_bed(&bed, &(struct bed_attr){1, side ? REMOTE : 0, 0, false, NULL});
		ops.qp_query = tell;
		told_rq = side ? FIRST_PSN + 1 : FIRST_PSN;
		told_sq = side ? conn.psn[1] : conn.psn[1] + 1;
		urxe_offload_set(device(&bed, 1), &ops, &bed.hca[1]);
		assert_int_equal(try_take_over(&bed, 1, &refusal), -EOPNOTSUPP);
		assert_int_equal(refusal.reason, URXE_OFFLOAD_STALE_PSN);
		assert_int_equal(refusal.qpn, bed.e.end[1].qpn);
		prepare_memory(&bed, SEND);
		post_operation(&bed, SEND, 5);
		settle(&bed);
		expect_result(&bed, SEND, 5);
		bed_close(&bed);
	}
}

/* Nothing has moved: drivers that return PSNs of the modification look alike. */
static void test_idle_rc_qp_with_rights_refuses_a_take_over(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_offload_refusal refusal;
	static struct bed bed;

	(void)state;
	for (unsigned rights = 0; rights < 2; rights++) {
		conn.access = rights ? REMOTE : 0;
		bed_open_sides(&bed, false, true, &(struct pair_attr){.seed = 1});
		conn_open(&bed.above, &conn, bed.e.end);
		if (!rights) {
			take_over(&bed, 1);
		} else {
			assert_int_equal(try_take_over(&bed, 1, &refusal), -EOPNOTSUPP);
			assert_int_equal(refusal.reason, URXE_OFFLOAD_UNPROVEN_PSN);
			post_recv(&bed.e.end[1], 1, 0, 100);
			post_send(&bed.e, 0, &(struct post){.opcode = URXE_WR_SEND});
			settle(&bed);
			take_over(&bed, 1);
		}
		bed_close(&bed);
	}
}

/* The HCA has found its next hop itself. The engine would send to the MAC address 0. */
static void test_take_over_without_next_hop_is_refused(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_offload_refusal refusal;
	static struct bed bed;
	uint8_t mac[6];

	(void)state;
	conn.access = 0; /* no other reason to refuse */
	bed_open_sides(&bed, false, true, &(struct pair_attr){.seed = 1});
	memcpy(mac, bed.e.a->mac, sizeof(mac));
	memset(bed.e.a->mac, 0, sizeof(mac));
	conn_open(&bed.above, &conn, bed.e.end);
	memcpy(bed.e.a->mac, mac, sizeof(mac));
	assert_int_equal(try_take_over(&bed, 1, &refusal), -EOPNOTSUPP);
	assert_int_equal(refusal.reason, URXE_OFFLOAD_NO_NEXT_HOP);
	assert_int_equal(refusal.qpn, bed.e.end[1].qpn);
	assert_true(urxe_qp_offloaded(bed.e.end[1].qp));
	/* A queue pair without a connection needs no next hop. */
	assert_int_equal(urxe_qp_modify(bed.e.end[1].qp, bed.wire->now,
					&(struct urxe_qp_attr){.state = URXE_QPS_RESET},
					URXE_QP_STATE),
			 0);
	take_over(&bed, 1);
	bed_close(&bed);
}

/* --- Other types, and the way back. */

static void test_uc_and_ud_qps_are_taken_over(void **state)
{
	static const uint8_t types[] = {URXE_QPT_UC, URXE_QPT_UD};
	static struct bed bed;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const struct conn_attr conn = conn_default((enum urxe_qp_type)types[i]);
		struct urxe_path path;

		bed_open_sides(&bed, false, true, &(struct pair_attr){.seed = 1});
		conn_open(&bed.above, &conn, bed.e.end);
		path = conn_path(URXE_NET_IPV4, bed.e.b);
		for (uint64_t id = 0; id < 4; id++) {
			const struct urxe_seg seg = node_seg(bed.e.a, 0, 100);
			const struct urxe_send_wr wr = {.opcode = URXE_WR_SEND,
							.segs = &seg,
							.n_segs = 1,
							.path = &path,
							.remote_qpn = bed.e.end[1].qpn,
							.remote_qkey = conn.qkey};

			post_recv(&bed.e.end[1], id, TO, 1000);
			post_recv(&bed.e.end[1], id + 10, TO, 1000);
			assert_int_equal(urxe_post_send(bed.e.end[0].qp, &wr), 0);
			settle(&bed);
			expect_wc(&bed.e.b->recv_cq, id % 2 * 10 + id / 2, URXE_WC_SUCCESS);
			if (id == 1)
				take_over(&bed, 1);
			if (id == 2)
				move(&bed, 1);
		}
		bed_close(&bed);
	}
}

/* On a host with an HCA a restored queue pair stays in software; a new one is the HCA's. */
static void test_restored_qp_stays_in_software_beside_an_hca(void **state)
{
	static struct bed bed, other;
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct endpoint more[2];

	(void)state;
	open_bed(&bed, &(struct bed_attr){1, REMOTE, 0, false, NULL});
	take_over(&bed, 1);
	move(&bed, 1);
	bed_open_sides(&other, false, true, &(struct pair_attr){.seed = 2});
	bed.hca[1] = (struct engine_hca){.wire = other.wire,
					 .node = other.wire->node[1],
					 .above = bed.e.b->dev,
					 .room = HCA_ROOM};
	urxe_offload_set(bed.e.b->dev, &engine_hca_ops, &bed.hca[1]);
	assert_false(urxe_qp_offloaded(bed.e.end[1].qp));
	post_writes(&bed, 3);
	settle(&bed);
	expect_writes(&bed, 3);
	/* The HCA's first QPN is the one that the restored queue pair has. */
	conn_create(&bed.above, &conn, 1, &more[0]);
	assert_false(urxe_offload_has_qp(more[0].qp));
	urxe_qp_destroy(more[0].qp);
	conn_create(&bed.above, &conn, 1, &more[1]);
	assert_true(urxe_offload_has_qp(more[1].qp));
	assert_false(urxe_offload_has_qp(bed.e.end[1].qp));
	urxe_offload_unset(bed.e.b->dev);
	bed_close(&other);
	bed_close(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take_over_at_each_moment_loses_nothing),
		cmocka_unit_test(test_take_over_at_each_packet_loses_nothing),
		cmocka_unit_test(test_take_over_resumes_a_partly_acknowledged_send),
		cmocka_unit_test(test_take_over_counts_a_message_during_the_transition_to_rtr),
		cmocka_unit_test(test_atomic_is_not_repeated),
		cmocka_unit_test(test_waiting_requests_run_after_a_take_over),
		cmocka_unit_test(test_abandoned_take_over_leaves_requests_to_the_hca),
		cmocka_unit_test(test_request_that_the_hca_refused_moves),
		cmocka_unit_test(test_abandoned_attempt_after_the_stop_runs_in_software),
		cmocka_unit_test(test_new_srq_does_not_end_a_take_over),
		cmocka_unit_test(test_refused_reset_after_the_stop_ends_in_software),
		cmocka_unit_test(test_two_calls_at_one_moment_show_no_pause),
		cmocka_unit_test(test_take_over_waits_for_a_pause_of_the_peer),
		cmocka_unit_test(test_qp_modified_during_a_take_over_is_taken),
		cmocka_unit_test(test_drained_event_comes_once_in_a_take_over),
		cmocka_unit_test(test_take_over_amid_traffic_loses_nothing),
		cmocka_unit_test(test_stale_psn_of_the_driver_refuses_a_take_over),
		cmocka_unit_test(test_idle_rc_qp_with_rights_refuses_a_take_over),
		cmocka_unit_test(test_take_over_without_next_hop_is_refused),
		cmocka_unit_test(test_uc_and_ud_qps_are_taken_over),
		cmocka_unit_test(test_restored_qp_stays_in_software_beside_an_hca),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
