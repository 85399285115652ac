/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of every kind and length on a network without loss. */
#include <errno.h>
#include <string.h>

#include "engine.h"

#define SRC 0
#define DST 300000u

static void fill(struct node *node, uint32_t offset, uint32_t length, uint64_t seed)
{
	struct rand r = {seed};

	rand_fill(&r, node->mem + offset, length);
}

static const uint32_t lengths[] = {0,    1,    3,    4,    255,  256,  257,  1023,
				   1024, 1025, 2047, 2048, 4095, 4096, 4097, 100001};

static void send_one(struct engine *e, uint32_t opcode, uint32_t length)
{
	bool imm = opcode == URXE_WR_SEND_IMM;
	struct urxe_wc wc;

	fill(e->a, SRC, length, length);
	memset(e->b->mem + DST, 0, length + 1);
	post_recv(&e->end[1], 9, DST, length);
	post_send(
		e, 0,
		&(struct post){.wr_id = 5, .opcode = opcode, .length = length, .imm = 0x0a0b0c0d});
	pair_settle(e->pair);
	wc = expect_wc(&e->b->recv_cq, 9, URXE_WC_SUCCESS);
	assert_int_equal(wc.opcode, URXE_WC_RECV);
	assert_int_equal(wc.byte_len, length);
	assert_int_equal(wc.qpn, e->end[1].qpn);
	assert_int_equal(wc.flags, imm ? URXE_WC_WITH_IMM : 0);
	if (imm)
		assert_int_equal(wc.imm, 0x0a0b0c0d);
	assert_memory_equal(e->b->mem + DST, e->a->mem + SRC, length);
	assert_int_equal(e->b->mem[DST + length], 0);
	wc = expect_wc(&e->a->send_cq, 5, URXE_WC_SUCCESS);
	assert_int_equal(wc.opcode, URXE_WC_SEND);
	assert_int_equal(wc.qpn, e->end[0].qpn);
}

static void test_sends_of_all_lengths(void **state)
{
	(void)state;
	for (int type = URXE_QPT_RC; type <= URXE_QPT_UC; type++)
		for (int net = URXE_NET_ROCEV1; net <= URXE_NET_IPV6; net++)
			for (int mtu = URXE_MTU_256; mtu <= URXE_MTU_4096; mtu++) {
				struct conn_attr conn = conn_default(type);
				struct engine e;

				conn.net = net;
				conn.path_mtu = mtu;
				engine_open(&e, &conn);
				for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
					send_one(&e, URXE_WR_SEND, lengths[i]);
					send_one(&e, URXE_WR_SEND_IMM, lengths[i]);
				}
				assert_int_equal(all_drops(e.a) + all_drops(e.b), 0);
				engine_close(&e);
			}
}

static void write_one(struct engine *e, uint32_t length, bool imm)
{
	struct urxe_wc wc;

	fill(e->a, SRC, length, length + 1);
	memset(e->b->mem + DST - 1, 0, length + 2);
	if (imm)
		post_recv(&e->end[1], 7, 0, 0);
	post_send(e, 0,
		  &(struct post){.wr_id = 6,
				 .opcode = imm ? URXE_WR_RDMA_WRITE_IMM : URXE_WR_RDMA_WRITE,
				 .length = length,
				 .remote = DST,
				 .imm = 77});
	pair_settle(e->pair);
	assert_memory_equal(e->b->mem + DST, e->a->mem + SRC, length);
	assert_int_equal(e->b->mem[DST - 1] | e->b->mem[DST + length], 0);
	wc = expect_wc(&e->a->send_cq, 6, URXE_WC_SUCCESS);
	assert_int_equal(wc.opcode, URXE_WC_RDMA_WRITE);
	if (imm) {
		wc = expect_wc(&e->b->recv_cq, 7, URXE_WC_SUCCESS);
		assert_int_equal(wc.opcode, URXE_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.flags, URXE_WC_WITH_IMM);
		assert_int_equal(wc.byte_len, length);
		assert_int_equal(wc.imm, 77);
	}
	expect_none(&e->b->recv_cq);
}

static void test_writes_of_all_lengths(void **state)
{
	(void)state;
	for (int type = URXE_QPT_RC; type <= URXE_QPT_UC; type++) {
		struct conn_attr conn = conn_default(type);
		struct engine e;

		engine_open(&e, &conn);
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			write_one(&e, lengths[i], false);
			write_one(&e, lengths[i], true);
		}
		assert_int_equal(all_drops(e.a) + all_drops(e.b), 0);
		engine_close(&e);
	}
}

static void test_reads_of_all_lengths(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct urxe_wc wc;

		fill(e.b, DST, lengths[i], i);
		memset(e.a->mem, 0, lengths[i] + 1);
		post_send(&e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = URXE_WR_RDMA_READ,
					 .length = lengths[i],
					 .remote = DST});
		pair_settle(e.pair);
		wc = expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
		assert_int_equal(wc.opcode, URXE_WC_RDMA_READ);
		assert_int_equal(wc.byte_len, lengths[i]);
		assert_memory_equal(e.a->mem, e.b->mem + DST, lengths[i]);
		assert_int_equal(e.a->mem[lengths[i]], 0);
	}
	assert_int_equal(all_drops(e.a) + all_drops(e.b), 0);
	engine_close(&e);
}

static uint64_t atomic(struct engine *e, uint32_t opcode, uint64_t compare_add, uint64_t swap)
{
	uint64_t original;
	struct urxe_wc wc;

	post_send(e, 0,
		  &(struct post){.wr_id = 1,
				 .opcode = opcode,
				 .offset = 64,
				 .length = 8,
				 .remote = DST,
				 .compare_add = compare_add,
				 .swap = swap});
	pair_settle(e->pair);
	wc = expect_wc(&e->a->send_cq, 1, URXE_WC_SUCCESS);
	assert_int_equal(wc.opcode,
			 opcode == URXE_WR_FETCH_ADD ? URXE_WC_FETCH_ADD : URXE_WC_COMPARE_SWAP);
	assert_int_equal(wc.byte_len, 8);
	memcpy(&original, e->a->mem + 64, 8);
	return original;
}

static void test_atomics_return_the_old_value(void **state)
{
	const uint64_t big = 0xfedcba9876543210;
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;
	uint64_t word = 41;

	(void)state;
	engine_open(&e, &conn);
	memcpy(e.b->mem + DST, &word, 8);
	assert_true(atomic(&e, URXE_WR_FETCH_ADD, 1, 0) == 41);
	assert_true(atomic(&e, URXE_WR_FETCH_ADD, (uint64_t)-2, 0) == 42);
	assert_true(atomic(&e, URXE_WR_COMPARE_SWAP, 41, big) == 40); /* differs: no swap */
	assert_true(atomic(&e, URXE_WR_COMPARE_SWAP, 40, big) == 40);
	assert_true(atomic(&e, URXE_WR_FETCH_ADD, 0, 0) == big);
	memcpy(&word, e.b->mem + DST, 8);
	assert_true(word == big);
	engine_close(&e);
}

/* Both ends gather and scatter over segments; some are empty, none is aligned. */
static void test_segments_are_gathered_and_scattered(void **state)
{
	static const uint32_t gather[] = {0, 1, 1000, 0, 24, 1, 2074, 0};
	static const uint32_t scatter[] = {7, 0, 0, 1017, 5, 2000, 71, 0};
	const uint32_t total = 3100;
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_seg from[8], to[8];
	struct urxe_send_wr wr = {.opcode = URXE_WR_SEND, .segs = from, .n_segs = 8};
	struct urxe_recv_wr recv = {.segs = to, .n_segs = 8};
	uint8_t sent[3100], got[3100];
	struct engine e;
	uint32_t at = 0;

	(void)state;
	engine_open(&e, &conn);
	fill(e.a, 0, 10000, 4);
	for (unsigned i = 0, offset = 3; i < 8; i++, offset += 1 + gather[i - 1]) {
		from[i] = node_seg(e.a, offset, gather[i]);
		memcpy(sent + at, e.a->mem + offset, gather[i]);
		at += gather[i];
	}
	assert_int_equal(at, total);
	for (unsigned i = 0, offset = 9001; i < 8; i++, offset += 3 + scatter[i - 1])
		to[i] = node_seg(e.b, offset, scatter[i]);
	assert_int_equal(urxe_post_recv(e.end[1].rq, &recv), 0);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	memset(from, 0xff, sizeof(from)); /* the engine has copied the segment list */
	pair_settle(e.pair);
	assert_int_equal(expect_wc(&e.b->recv_cq, 0, URXE_WC_SUCCESS).byte_len, total);
	for (unsigned i = 0, done = 0; i < 8; done += scatter[i++])
		memcpy(got + done, e.b->mem + (to[i].addr - e.b->iova), scatter[i]);
	assert_memory_equal(got, sent, total);
	for (unsigned i = 0; i < 8; i++) /* the bytes between the segments did not change */
		assert_int_equal(e.b->mem[to[i].addr - e.b->iova + scatter[i]], 0);
	engine_close(&e);
}

/* A request without segments is a message of 0 bytes, whatever the receive request has. */
static void test_request_without_segments_is_empty(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_send_wr wr = {.wr_id = 3, .opcode = URXE_WR_SEND};
	struct urxe_recv_wr recv = {.wr_id = 4};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	assert_int_equal(urxe_post_recv(e.end[1].rq, &recv), 0);
	assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
	pair_settle(e.pair);
	assert_int_equal(expect_wc(&e.b->recv_cq, 4, URXE_WC_SUCCESS).byte_len, 0);
	expect_wc(&e.a->send_cq, 3, URXE_WC_SUCCESS);
	engine_close(&e);
}

static void test_inline_data_is_copied(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	uint8_t data[300], copy[300];
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	for (uint32_t length = 0; length <= conn.cap.max_inline; length += 64) {
		struct urxe_send_wr wr = {
			.opcode = URXE_WR_RDMA_WRITE,
			.flags = URXE_SEND_INLINE,
			.inline_data = length ? data : NULL,
			.inline_len = length,
			.remote_addr = e.b->iova + DST,
			.rkey = e.b->key,
		};

		rand_fill(&(struct rand){length}, data, sizeof(data));
		memcpy(copy, data, sizeof(copy));
		assert_int_equal(urxe_post_send(e.end[0].qp, &wr), 0);
		memset(data, 0,
		       sizeof(data)); /* the buffer belongs to the caller again (IBA 11.4.1.1) */
		pair_settle(e.pair);
		expect_wc(&e.a->send_cq, 0, URXE_WC_SUCCESS);
		assert_memory_equal(e.b->mem + DST, copy, length);
	}
	engine_close(&e);
}

/* Posts 8 WRITEs, of which the fourth is signaled. */
static void write_eight(struct engine *e)
{
	for (unsigned i = 0; i < 8; i++)
		post_send(e, 0,
			  &(struct post){.wr_id = i,
					 .opcode = URXE_WR_RDMA_WRITE,
					 .length = 10,
					 .remote = DST,
					 .flags = i == 3 ? URXE_SEND_SIGNALED : 0});
	pair_settle(e->pair);
	expect_wc(&e->a->send_cq, 3, URXE_WC_SUCCESS);
	expect_none(&e->a->send_cq);
}

/*
 * Only signaled requests create a completion, unless the QP signals all. The owner hears of the
 * others once, until it asks how many have retired.
 */
static void test_only_signaled_requests_complete(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;

	(void)state;
	conn.sq_sig_all = false;
	engine_open(&e, &conn);
	for (uint32_t round = 1; round < 4; round++) {
		write_eight(&e);
		assert_int_equal(e.end[0].queue.retired, round);
		assert_int_equal(urxe_sq_retired(e.end[0].qp), 8 * round);
	}
	engine_close(&e);
}

/* The engine refuses a request that does not fit the QP when it is posted. */
static void test_unfit_requests_are_refused(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	const struct urxe_qp_attr reset = {.state = URXE_QPS_RESET};
	struct urxe_seg segs[9] = {0};
	uint8_t data[300] = {0};
	struct urxe_send_wr many = {.opcode = URXE_WR_SEND, .segs = segs, .n_segs = 9};
	struct urxe_send_wr big = {.opcode = URXE_WR_SEND,
				   .flags = URXE_SEND_INLINE,
				   .inline_data = data,
				   .inline_len = 257};
	struct urxe_send_wr inline_read = {.opcode = URXE_WR_RDMA_READ,
					   .flags = URXE_SEND_INLINE,
					   .inline_data = data,
					   .inline_len = 8};
	struct urxe_recv_wr many_recv = {.segs = segs, .n_segs = 9};
	struct engine e;

	(void)state;
	engine_open(&e, &conn);
	assert_int_equal(urxe_post_send(e.end[0].qp, &many), -EINVAL);
	assert_int_equal(urxe_post_send(e.end[0].qp, &big), -EINVAL);
	assert_int_equal(urxe_post_send(e.end[0].qp, &inline_read), -EINVAL);
	assert_int_equal(try_post(&e, 0, &(struct post){.opcode = 10}), -EINVAL);
	assert_int_equal(try_post(&e, 0, &(struct post){.opcode = 255}), -EINVAL);
	assert_int_equal(try_post(&e, 0, &(struct post){.opcode = URXE_WR_FETCH_ADD, .length = 4}),
			 -EINVAL);
	segs[0].length = segs[1].length = 0x80000000; /* 2^32 bytes */
	many.n_segs = 2;
	assert_int_equal(urxe_post_send(e.end[0].qp, &many), -EMSGSIZE);
	segs[1].length = 1; /* one byte more than a message may have */
	assert_int_equal(urxe_post_send(e.end[0].qp, &many), -EMSGSIZE);
	assert_int_equal(urxe_post_recv(e.end[0].rq, &many_recv), -EINVAL);
	assert_int_equal(urxe_qp_modify(e.end[0].qp, e.pair->now, &reset, URXE_QP_STATE), 0);
	assert_int_equal(try_post(&e, 0, &(struct post){.opcode = URXE_WR_SEND}), -EINVAL);
	pair_settle(e.pair);
	expect_none(&e.a->send_cq);
	engine_close(&e);
}

static void test_full_queue_refuses_requests(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct urxe_recv_wr recv = {0};
	struct engine e;
	unsigned posted = 0;

	(void)state;
	engine_open(&e, &conn);
	while (posted < 1000 &&
	       !try_post(&e, 0,
			 &(struct post){
				 .wr_id = posted, .opcode = URXE_WR_RDMA_WRITE, .remote = DST}))
		posted++;
	assert_in_range(posted, conn.cap.max_send_wr, 999);
	assert_int_equal(try_post(&e, 0, &(struct post){.opcode = URXE_WR_SEND}), -ENOMEM);
	pair_settle(e.pair);
	for (unsigned i = 0; i < posted; i++)
		expect_wc(&e.a->send_cq, i, URXE_WC_SUCCESS);
	post_send(&e, 0, &(struct post){.opcode = URXE_WR_RDMA_WRITE, .remote = DST});
	for (posted = 0; posted < 1000 && !urxe_post_recv(e.end[0].rq, &recv); posted++)
		;
	assert_in_range(posted, conn.cap.max_recv_wr, 999);
	assert_int_equal(urxe_post_recv(e.end[0].rq, &recv), -ENOMEM);
	engine_close(&e);
}

static bool saw_solicited(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	struct urxe_packet p;

	(void)now;
	assert_int_equal(urxe_packet_parse(&p, data, len), URXE_DROP_NONE);
	*(bool *)arg = p.solicited;
	return true;
}

/*
 * The solicited bit is set on packets that create a completion at the peer, and is clear on others
 * (IBA 9.2.3).
 */
static void test_solicited_bit_marks_completing_packets(void **state)
{
	static const struct {
		uint32_t opcode;
		bool solicited;
	} rows[] = {{URXE_WR_SEND, true},
		    {URXE_WR_RDMA_WRITE_IMM, true},
		    {URXE_WR_RDMA_WRITE, false},
		    {URXE_WR_RDMA_READ, false},
		    {URXE_WR_FETCH_ADD, false}};
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct engine e;
	bool solicited;

	(void)state;
	engine_open(&e, &conn);
	e.pair->link[0].filter = saw_solicited;
	e.pair->link[0].filter_arg = &solicited;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		post_recv(&e.end[1], i, 0, 64);
		post_send(&e, 0,
			  &(struct post){.opcode = rows[i].opcode,
					 .flags = URXE_SEND_SOLICITED,
					 .length = 8});
		pair_settle(e.pair);
		assert_int_equal(solicited, rows[i].solicited);
	}
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sends_of_all_lengths),
		cmocka_unit_test(test_writes_of_all_lengths),
		cmocka_unit_test(test_reads_of_all_lengths),
		cmocka_unit_test(test_atomics_return_the_old_value),
		cmocka_unit_test(test_segments_are_gathered_and_scattered),
		cmocka_unit_test(test_request_without_segments_is_empty),
		cmocka_unit_test(test_inline_data_is_copied),
		cmocka_unit_test(test_only_signaled_requests_complete),
		cmocka_unit_test(test_unfit_requests_are_refused),
		cmocka_unit_test(test_full_queue_refuses_requests),
		cmocka_unit_test(test_solicited_bit_marks_completing_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
