/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One message of each operation. Its requester, its responder or both move at each moment of it,
 * on a good cable and on one that loses packets; the message still ends as it should.
 */
#include <errno.h>
#include <string.h>

#include <rxe/opcode.h>

#include "lossy.h"
#include "move.h"

#define LENGTH 20000u
#define TO     500000u
/* The word that atomics find. */
#define ORIGINAL 40u
/* Packets arrive each microsecond. */
#define STEP  250u
#define STEPS 60u

struct operation {
	uint32_t opcode;
	uint32_t length;
	bool receive; /* it uses up a receive request */
};

static const struct operation operations[] = {
	{URXE_WR_SEND, LENGTH, true},        {URXE_WR_SEND_IMM, LENGTH, true},
	{URXE_WR_RDMA_WRITE, LENGTH, false}, {URXE_WR_RDMA_WRITE_IMM, LENGTH, true},
	{URXE_WR_RDMA_READ, LENGTH, false},  {URXE_WR_FETCH_ADD, 8, false},
	{URXE_WR_COMPARE_SWAP, 8, false},    {URXE_WR_ATOMIC_WRITE, 8, false},
	{URXE_WR_FLUSH, 0, false},
};

static uint8_t pattern(uint32_t i)
{
	return (uint8_t)(i * 7 + i / 256);
}

static void open_world(struct engine *e, const struct operation *op, double loss)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.access |= URXE_ACCESS_FLUSH_GLOBAL;
	e->pair = pair_create(&(struct pair_attr){.seed = 1, .max_packets = 8});
	e->a = e->pair->node[0];
	e->b = e->pair->node[1];
	for (unsigned i = 0; i < 2; i++)
		e->pair->link[i].faults = (struct link_faults){.drop = loss, .max_losses = 2};
	conn_open(e->pair, &conn, e->end);
	for (uint32_t i = 0; i < LENGTH; i++) {
		e->a->mem[i] = op->opcode == URXE_WR_RDMA_READ ? 0 : pattern(i);
		e->b->mem[TO + i] = op->opcode == URXE_WR_RDMA_READ ? pattern(i) : 0;
	}
	if (op->length == 8)
		memcpy(e->b->mem + TO, &(uint64_t){ORIGINAL}, 8);
	if (op->receive)
		post_recv(&e->end[1], 77, TO, LENGTH);
}

static void post_operation(struct engine *e, const struct operation *op)
{
	const struct urxe_mr_attr flushed = {
		.pd = NODE_PD,
		.access = NODE_ACCESS | URXE_ACCESS_FLUSH_GLOBAL,
		.iova = 0x1000,
		.length = 100,
		.extents = &(struct urxe_extent){e->b->mem, 100},
		.n_extents = 1,
	};
	struct urxe_seg seg = node_seg(e->a, 0, op->length);
	struct urxe_send_wr wr = {
		.wr_id = 5,
		.opcode = op->opcode,
		.segs = &seg,
		.n_segs = op->length ? 1 : 0,
		.remote_addr = e->b->iova + TO,
		.rkey = e->b->key,
		.compare_add = 3,
		.swap = 4,
		.flush = {.placement = URXE_FLUSH_GLOBAL, .length = 100},
	};
	struct urxe_mr *mr;

	if (op->opcode == URXE_WR_FLUSH) {
		assert_int_equal(urxe_mr_reg(e->b->dev, &flushed, &mr), 0);
		wr.rkey = urxe_mr_key(mr);
		wr.remote_addr = flushed.iova;
	}
	assert_int_equal(urxe_post_send(e->end[0].qp, &wr), 0);
}

static void move_side(struct engine *e, unsigned side)
{
	struct endpoint *end = &e->end[side];

	move_node(e->pair, side, &end, 1);
}

static uint64_t word_at(const struct node *node, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, node->mem + offset, sizeof(word));
	return word;
}

static void expect_result(struct engine *e, const struct operation *op)
{
	const bool read = op->opcode == URXE_WR_RDMA_READ;
	const uint8_t *at = read ? e->a->mem : e->b->mem + TO;

	expect_wc(&e->a->send_cq, 5, URXE_WC_SUCCESS);
	expect_none(&e->a->send_cq);
	if (op->receive)
		expect_wc(&e->b->recv_cq, 77, URXE_WC_SUCCESS);
	expect_none(&e->b->recv_cq);
	if (op->opcode == URXE_WR_FETCH_ADD) /* executed once */
		assert_int_equal(word_at(e->b, TO), ORIGINAL + 3);
	else if (op->opcode == URXE_WR_COMPARE_SWAP)
		assert_int_equal(word_at(e->b, TO), ORIGINAL);
	if (op->opcode == URXE_WR_FETCH_ADD || op->opcode == URXE_WR_COMPARE_SWAP)
		assert_int_equal(word_at(e->a, 0), ORIGINAL);
	else
		for (uint32_t i = 0; i < op->length; i++)
			assert_int_equal(at[i], pattern(i));
}

/* Moves the sides, bits of `sides`, after `step` steps. False: the message has ended before. */
static bool run(const struct operation *op, unsigned sides, uint32_t step, double loss)
{
	struct engine e;
	bool busy;

	open_world(&e, op, loss);
	post_operation(&e, op);
	pair_run(e.pair, e.pair->now + step * STEP);
	busy = e.a->send_cq.head == e.a->send_cq.tail;
	for (unsigned side = 0; side < 2; side++)
		if (sides & 1 << side)
			move_side(&e, side);
	pair_settle(e.pair);
	expect_result(&e, op);
	engine_close(&e);
	return busy;
}

static void test_move_at_each_moment_loses_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		for (unsigned sides = 1; sides < 4; sides++)
			for (uint32_t step = 0; step < STEPS; step++)
				if (!run(&operations[i], sides, step, 0))
					break;
}

static void test_moves_on_a_lossy_wire_lose_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		for (unsigned sides = 1; sides < 4; sides++)
			for (uint32_t step = 0; step < STEPS; step++)
				run(&operations[i], sides, 3 * step, 0.2);
}

/* The response to an atomic is lost; the moved responder answers the duplicate as before. */
static bool lose_all(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return false;
}

static void test_atomic_is_not_repeated(void **state)
{
	const struct operation *op = &operations[5];
	struct engine e;

	(void)state;
	open_world(&e, op, 0);
	e.pair->link[1].filter = lose_all;
	post_operation(&e, op);
	pair_run(e.pair, e.pair->now + 2000);
	assert_int_equal(word_at(e.b, TO), ORIGINAL + 3);
	move_side(&e, 1);
	e.pair->link[1].filter = NULL;
	pair_settle(e.pair);
	expect_result(&e, op);
	assert_int_equal(events(e.b, URXE_EVENT_DUP_REQUEST), 1);
	engine_close(&e);
}

/* A rate limit keeps responses of a READ due, at each moment of it. */
static void test_move_of_a_paced_read_repeats_nothing(void **state)
{
	const struct operation *op = &operations[4];
	const struct urxe_qp_attr limit = {.rate_limit = 1000000};
	uint32_t busy = 0;

	(void)state;
	for (uint32_t step = 1; step < 200; step += 7) {
		struct engine e;

		open_world(&e, op, 0);
		assert_int_equal(
			urxe_qp_modify(e.end[1].qp, e.pair->now, &limit, URXE_QP_RATE_LIMIT), 0);
		post_operation(&e, op);
		pair_run(e.pair, e.pair->now + step * 1000);
		busy += e.a->send_cq.head == e.a->send_cq.tail;
		move_side(&e, 1);
		pair_settle(e.pair);
		expect_result(&e, op);
		assert_int_equal(events(e.a, URXE_EVENT_RETRANSMIT), 0);
		engine_close(&e);
	}
	assert_true(busy > 5);
}

/* Frames that arrive while nobody is there are lost, and the peer goes on by its timers. */
static void test_frames_lost_during_a_move_are_repeated(void **state)
{
	const struct operation *op = &operations[0];
	struct engine e;

	(void)state;
	for (unsigned side = 0; side < 2; side++) {
		open_world(&e, op, 0);
		post_operation(&e, op);
		pair_run(e.pair, e.pair->now + 3000);
		move_side(&e, side);
		e.pair->link[!side].filter = lose_all;
		pair_run(e.pair, e.pair->now + 2000000);
		e.pair->link[!side].filter = NULL;
		pair_settle(e.pair);
		expect_result(&e, op);
		engine_close(&e);
	}
}

/* A frame of node b, which is lost. */
static void lose_output(struct engine *e)
{
	static uint8_t data[4300];
	struct urxe_frame frame = {.data = data, .room = sizeof(data)};

	assert_int_equal(urxe_output(e->b->dev, e->pair->now, &frame, 1), 1);
}

/* Leaves the device where it is. */
static void save_side(struct engine *e, unsigned side)
{
	const struct urxe_state_save how = {0};
	uint8_t *stream;
	size_t length;

	assert_int_equal(
		urxe_state_save(e->pair->node[side]->dev, e->pair->now, &how, &stream, &length), 0);
	urxe_state_free(stream);
}

/*
 * Node b repeats a READ that the peer has refused, and that reaches beyond the packets to repeat.
 * The peer announces itself later: the saved device and the restored one repeat all packets.
 */
static void test_saved_device_goes_on_as_the_restored_one_after_a_repeated_read(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	void (*const leave[])(struct engine *, unsigned) = {save_side, move_side};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct engine e;
		struct urxe_packet nak;

		engine_open(&e, &conn);
		post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = LENGTH});
		post_send(&e, 1, &(struct post){.opcode = URXE_WR_SEND, .length = 100});
		lose_output(&e);
		lose_output(&e);
		nak = from_peer(&e, &conn, URXE_OP_ACKNOWLEDGE);
		nak.psn = conn.psn[1];
		nak.aeth.syndrome = 0x60; /* NAK: PSN sequence error */
		inject(&e, &nak);
		lose_output(&e);
		leave[i](&e, 1);
		e.pair->now += 1000000;
		announce_to(e.b, e.pair->now, e.a->mac, URXE_ANNOUNCEMENT_LEN);
		assert_int_equal(events(e.b, URXE_EVENT_PROBE), 1);
		engine_close(&e);
	}
}

/* Packet i of a WRITE of three packets. */
static void inject_begun_write(struct engine *e, const struct conn_attr *conn, uint32_t i,
			       bool ack_req)
{
	struct urxe_packet p = from_peer(e, conn, i ? 0x07 : 0x06);

	p.psn = (p.psn + i) & 0xffffff;
	p.reth.length = 3 * PAYLOAD;
	p.payload_len = PAYLOAD;
	p.ack_req = ack_req;
	inject(e, &p);
}

/* An ACK follows the repetition, unless the packet that came again is the last one; the restored
 * responder knows whether it is. */
static void test_moved_responder_knows_of_a_packet_that_came_again(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	(void)state;
	conn.path_mtu = URXE_MTU_1024;
	for (unsigned again = 0; again < 2; again++) {
		struct engine e;

		engine_open(&e, &conn);
		inject_begun_write(&e, &conn, 0, false);
		inject_begun_write(&e, &conn, 0, false);
		inject_begun_write(&e, &conn, 1, false);
		if (again)
			inject_begun_write(&e, &conn, 0, false);
		expect_quiet(&e);
		move_side(&e, 1);
		e.pair->now += 20000000;
		assert_int_equal(answers(&e).n, !again);
		engine_close(&e);
	}
}

/* After its absence the responder asks for the newest packet, unless it has acknowledged it. */
static void test_moved_responder_knows_what_it_has_acknowledged(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	(void)state;
	conn.path_mtu = URXE_MTU_1024;
	for (unsigned ack_req = 0; ack_req < 2; ack_req++) {
		struct answers got;
		struct engine e;

		engine_open(&e, &conn);
		inject_begun_write(&e, &conn, 0, false);
		inject_begun_write(&e, &conn, 1, ack_req);
		assert_int_equal(answers(&e).n, ack_req);
		move_side(&e, 1);
		announce_to(e.b, e.pair->now, e.b->mac, URXE_ANNOUNCEMENT_LEN);
		e.pair->now += 5000000;
		got = answers(&e);
		assert_int_equal(got.n, 2);
		assert_int_equal(got.syndrome, 0x60);
		assert_int_equal(got.psn, conn.psn[0] + 1 + ack_req);
		engine_close(&e);
	}
}

/* Restores the node beside itself, on a link with the MTU. */
static int restore_with_mtu(struct node *node, uint64_t now, uint32_t mtu)
{
	const struct urxe_state_save save = {0};
	const struct urxe_state_restore restore = {.memory = urxe_state_same_memory};
	struct urxe_state_attr saved;
	struct urxe_dev *dev;
	uint8_t *stream;
	size_t length;
	int rc;

	assert_int_equal(urxe_state_save(node->dev, now, &save, &stream, &length), 0);
	assert_int_equal(urxe_state_read_attr(stream, length, &saved), 0);
	saved.attr.ops = node->ops;
	saved.attr.mtu = mtu;
	rc = urxe_state_restore(&saved.attr, 0, &restore, stream, length, &dev);
	urxe_state_free(stream);
	if (!rc)
		urxe_dev_destroy(dev);
	return rc;
}

/* A READ of the peer is kept for duplicates. */
static void test_failed_connection_may_move_to_a_shorter_mtu(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	const struct urxe_qp_attr error = {.state = URXE_QPS_ERR};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_READ, .length = LENGTH});
	pair_settle(e.pair);
	assert_int_equal(restore_with_mtu(e.a, e.pair->now, 600), -EINVAL);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, 0, &error, URXE_QP_STATE), 0);
	assert_int_equal(restore_with_mtu(e.a, e.pair->now, 600), 0);
	engine_close(&e);
}

/* Node b has executed a READ or a WRITE when its own request fails: it still sends the answer, and
 * may move when it has. */
static void test_failed_connection_with_an_answer_due_keeps_its_mtu(void **state)
{
	static const uint8_t opcodes[] = {URXE_OP_READ_REQUEST, URXE_OP_WRITE_ONLY};
	const struct conn_attr conn = conn_default(URXE_QPT_RC);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct urxe_packet p;
		struct engine e;

		engine_open(&e, &conn);
		post_send(&e, 1, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .length = 8});
		lose_output(&e);
		p = from_peer(&e, &conn, opcodes[i]);
		p.reth.length = 8;
		p.payload_len = i ? 8 : 0;
		p.ack_req = true;
		inject(&e, &p);
		p = from_peer(&e, &conn, URXE_OP_ACKNOWLEDGE);
		p.psn = conn.psn[1];
		p.aeth.syndrome = 0x62; /* NAK: remote access error */
		inject(&e, &p);
		assert_int_equal(qp_state(&e.end[1]), URXE_QPS_ERR);
		assert_true(urxe_qp_has_answers(e.end[1].qp));
		assert_int_equal(restore_with_mtu(e.b, e.pair->now, 600), -EINVAL);
		lose_output(&e);
		assert_false(urxe_qp_has_answers(e.end[1].qp));
		assert_int_equal(restore_with_mtu(e.b, e.pair->now, 600), 0);
		engine_close(&e);
	}
}

static void test_waiting_datagram_may_be_too_long_for_a_shorter_mtu(void **state)
{
	const struct conn_attr conn = conn_default(URXE_QPT_UD);
	struct urxe_path path;
	struct urxe_seg seg;
	struct urxe_send_wr wr = {.opcode = URXE_WR_SEND, .segs = &seg, .n_segs = 1, .path = &path};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	path = conn_path(URXE_NET_IPV4, e.b);
	wr.remote_qpn = e.end[1].qpn;
	seg = node_seg(e.a, 0, 1000);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	assert_int_equal(restore_with_mtu(e.a, e.pair->now, 600), -EINVAL);
	assert_int_equal(restore_with_mtu(e.a, e.pair->now, 1500), 0);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_move_at_each_moment_loses_nothing),
		cmocka_unit_test(test_moves_on_a_lossy_wire_lose_nothing),
		cmocka_unit_test(test_atomic_is_not_repeated),
		cmocka_unit_test(test_move_of_a_paced_read_repeats_nothing),
		cmocka_unit_test(test_frames_lost_during_a_move_are_repeated),
		cmocka_unit_test(test_moved_responder_knows_of_a_packet_that_came_again),
		cmocka_unit_test(test_moved_responder_knows_what_it_has_acknowledged),
		cmocka_unit_test(
			test_saved_device_goes_on_as_the_restored_one_after_a_repeated_read),
		cmocka_unit_test(test_failed_connection_may_move_to_a_shorter_mtu),
		cmocka_unit_test(test_failed_connection_with_an_answer_due_keeps_its_mtu),
		cmocka_unit_test(test_waiting_datagram_may_be_too_long_for_a_shorter_mtu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
