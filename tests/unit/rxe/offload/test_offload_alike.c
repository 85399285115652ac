/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program cannot tell whether the engine or an HCA executes its queue pairs: each scenario runs
 * with the engine on both sides, with an HCA on both, and with one of each, and must give the same
 * completions, events, states and memory contents.
 */
#include <stdio.h>
#include <stdlib.h>

#include "hca_bed.h"

/* --- What the program sees. */

#define LOG(bed, ...)                                                  \
	((bed)->logged += (size_t)snprintf((bed)->log + (bed)->logged, \
					   sizeof((bed)->log) - (bed)->logged, __VA_ARGS__))

static void log_cq(struct bed *bed, const char *name, struct node_cq *cq)
{
	struct urxe_wc wc;

	while (node_poll(cq, &wc)) {
		LOG(bed, "%s %u %u", name, (unsigned)wc.wr_id, wc.status);
		if (wc.status == URXE_WC_SUCCESS)
			LOG(bed, " opcode %u length %u flags %u imm %u src %u", wc.opcode,
			    wc.byte_len, wc.flags, wc.imm, wc.src_qpn != 0);
		LOG(bed, "\n");
	}
	LOG(bed, "%s events %u\n", name, cq->events);
}

static uint32_t memory_sum(const struct node *node)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < node->mem_size; i++)
		sum = sum * 31 + node->mem[i];
	return sum;
}

static void observe(struct bed *bed)
{
	static const enum urxe_async seen[] = {
		URXE_ASYNC_CQ_ERR,
		URXE_ASYNC_QP_FATAL,
		URXE_ASYNC_QP_REQ_ERR,
		URXE_ASYNC_QP_ACCESS_ERR,
		URXE_ASYNC_COMM_EST,
		URXE_ASYNC_SQ_DRAINED,
		URXE_ASYNC_SRQ_ERR,
		URXE_ASYNC_SRQ_LIMIT_REACHED,
		URXE_ASYNC_QP_LAST_WQE_REACHED,
	};

	settle(bed);
	for (unsigned side = 0; side < 2; side++) {
		struct node *node = bed->above.node[side];

		LOG(bed, "side %u\n", side);
		log_cq(bed, "send", &node->send_cq);
		log_cq(bed, "recv", &node->recv_cq);
		for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
			LOG(bed, "%u ", node->async[seen[i]]);
		LOG(bed, "memory %x", memory_sum(node));
		if (bed->e.end[side].qp) {
			const struct endpoint *end = &bed->e.end[side];

			LOG(bed, " state %u retired %u", qp_state((struct endpoint *)end),
			    urxe_sq_retired(end->qp));
			/* A HCA takes the requests of a shared queue earlier. */
			if (urxe_qp_rq(end->qp))
				LOG(bed, " %u", urxe_rq_retired(end->rq));
		}
		LOG(bed, "\n");
	}
	assert_true(bed->logged < sizeof(bed->log));
}

/* --- Scenarios. */

static void fill(struct node *node)
{
	for (uint32_t i = 0; i < node->mem_size; i++)
		node->mem[i] = (uint8_t)(i * 7 + node->id);
}

static void connect_type(struct bed *bed, enum urxe_qp_type type)
{
	struct conn_attr conn = conn_default(type);

	conn.sq_sig_all = false;
	fill(bed->e.a);
	fill(bed->e.b);
	conn_open(&bed->above, &conn, bed->e.end);
}

static void post(struct bed *bed, uint64_t id, uint32_t opcode, uint32_t length)
{
	post_send(&bed->e, 0,
		  &(struct post){.wr_id = id,
				 .opcode = opcode,
				 .flags = id % 3 ? URXE_SEND_SIGNALED : 0,
				 .offset = (uint32_t)id * 8192,
				 .length = length,
				 .remote = id * 8192 + 512,
				 .imm = (uint32_t)id,
				 .compare_add = 1,
				 .swap = id});
}

static void post_receives(struct bed *bed, uint32_t n, uint32_t length)
{
	for (uint32_t i = 0; i < n; i++)
		post_recv(&bed->e.end[1], 100 + i, i * 8192, length);
}

static void change(struct bed *bed, unsigned side, uint8_t to, uint32_t mask)
{
	const struct urxe_qp_attr attr = {
		.state = to, .cur_state = URXE_QPS_SQE, .en_sqd_async_notify = true};

	assert_int_equal(
		urxe_qp_modify(bed->e.end[side].qp, bed->above.now, &attr, URXE_QP_STATE | mask),
		0);
}

static void all_rc_operations_complete_alike(struct bed *bed)
{
	static const uint32_t opcodes[] = {URXE_WR_SEND, URXE_WR_RDMA_WRITE, URXE_WR_SEND_IMM,
					   URXE_WR_RDMA_READ, URXE_WR_RDMA_WRITE_IMM};

	connect_type(bed, URXE_QPT_RC);
	post_receives(bed, 16, 8000);
	for (uint32_t i = 0; i < 20; i++)
		post(bed, i, opcodes[i % 5], i * 400);
	post(bed, 20, URXE_WR_FETCH_ADD, 8);
	post(bed, 21, URXE_WR_COMPARE_SWAP, 8);
	observe(bed);
}

static void uc_operations_complete_alike(struct bed *bed)
{
	connect_type(bed, URXE_QPT_UC);
	post_receives(bed, 4, 8000);
	for (uint32_t i = 1; i < 9; i++)
		post(bed, i, i % 2 ? URXE_WR_SEND : URXE_WR_RDMA_WRITE, i * 700);
	observe(bed);
}

/* The second of eight WRITEs has another key; 0 = the right one. */
static void post_writes(struct bed *bed, uint32_t rkey, uint32_t lkey)
{
	connect_type(bed, URXE_QPT_RC);
	post(bed, 1, URXE_WR_RDMA_WRITE, 100);
	post_send(&bed->e, 0,
		  &(struct post){.wr_id = 2,
				 .opcode = URXE_WR_RDMA_WRITE,
				 .length = 100,
				 .rkey = rkey,
				 .lkey = lkey});
	for (uint32_t i = 3; i < 9; i++)
		post(bed, i, URXE_WR_RDMA_WRITE, 100);
}

static void bad_rkeys_complete_alike(struct bed *bed)
{
	post_writes(bed, 0xdead, 0);
	post_receives(bed, 3, 100);
	observe(bed);
}

static void bad_lkeys_complete_alike(struct bed *bed)
{
	post_writes(bed, 0, 0xdead);
	observe(bed);
}

static void malformed_requests_complete_alike(struct bed *bed)
{
	connect_type(bed, URXE_QPT_RC);
	for (uint32_t i = 1; i < 5; i++)
		post(bed, i, URXE_WR_RDMA_WRITE, 5000);
	assert_int_equal(urxe_post_malformed(bed->e.end[0].qp, 5, URXE_WC_LOC_QP_OP_ERR), 0);
	for (uint32_t i = 6; i < 9; i++)
		post(bed, i, URXE_WR_RDMA_WRITE, 5000);
	observe(bed);
}

static void too_short_receives_complete_alike(struct bed *bed)
{
	connect_type(bed, URXE_QPT_RC);
	post_receives(bed, 2, 100);
	for (uint32_t i = 1; i < 5; i++)
		post(bed, i, URXE_WR_SEND, 50 * i * i);
	observe(bed);
}

static void rnr_retries_are_exhausted_alike(struct bed *bed)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	conn.rnr_retry = 2;
	conn_open(&bed->above, &conn, bed->e.end);
	for (uint32_t i = 1; i < 7; i++)
		post(bed, i, URXE_WR_SEND, 100);
	observe(bed);
	/* The peer has lost nothing. */
	post_receives(bed, 2, 100);
	observe(bed);
}

static bool lose(void *arg, uint64_t now, uint8_t *data, uint32_t len)
{
	(void)arg, (void)now, (void)data, (void)len;
	return false;
}

static void retries_are_exhausted_alike(struct bed *bed)
{
	connect_type(bed, URXE_QPT_RC);
	bed->wire->link[0].filter = lose;
	for (uint32_t i = 1; i < 7; i++)
		post(bed, i, URXE_WR_RDMA_WRITE, 100);
	observe(bed);
}

static void requests_are_flushed_alike(struct bed *bed)
{
	connect_type(bed, URXE_QPT_RC);
	post_receives(bed, 4, 100);
	bed->wire->link[0].filter = lose;
	for (uint32_t i = 1; i < 7; i++)
		post(bed, i, URXE_WR_SEND, 100);
	for (unsigned side = 0; side < 2; side++)
		change(bed, side, URXE_QPS_ERR, 0);
	observe(bed);
	post(bed, 9, URXE_WR_SEND, 100);
	post_recv(&bed->e.end[1], 109, 0, 100);
	observe(bed);
}

static void qps_are_reset_alike(struct bed *bed)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);

	connect_type(bed, URXE_QPT_RC);
	post_receives(bed, 4, 100);
	bed->wire->link[0].filter = lose;
	for (uint32_t i = 1; i < 7; i++)
		post(bed, i, URXE_WR_SEND, 100);
	for (unsigned side = 0; side < 2; side++)
		change(bed, side, URXE_QPS_RESET, 0);
	bed->wire->link[0].filter = NULL;
	observe(bed);
	for (unsigned side = 0; side < 2; side++)
		conn_bring_up(&bed->above, &conn, side, &bed->e.end[side], &bed->e.end[!side]);
	post_receives(bed, 1, 100);
	post(bed, 10, URXE_WR_SEND, 100);
	observe(bed);
}

static void sqd_drains_alike(struct bed *bed)
{
	connect_type(bed, URXE_QPT_RC);
	change(bed, 0, URXE_QPS_SQD, URXE_QP_EN_SQD_ASYNC_NOTIFY);
	for (uint32_t i = 1; i < 7; i++)
		post(bed, i, URXE_WR_RDMA_WRITE, 100);
	observe(bed);
	change(bed, 0, URXE_QPS_RTS, 0);
	observe(bed);
}

static void srq_receives_complete_alike(struct bed *bed)
{
	static struct node_queue queue;
	const struct urxe_rq_attr attr = {.ctx = &queue, .pd = NODE_PD, .max_wr = 8, .max_sge = 2};
	struct conn_attr conn = conn_default(URXE_QPT_RC);

	queue = (struct node_queue){.node = bed->e.b};
	assert_int_equal(urxe_srq_create(bed->e.b->dev, &attr, &conn.srq[1]), 0);
	conn_open(&bed->above, &conn, bed->e.end);
	post_receives(bed, 5, 100);
	assert_int_equal(urxe_srq_set_limit(conn.srq[1], 3), 0);
	for (uint32_t i = 1; i < 5; i++)
		post(bed, i, URXE_WR_SEND, 10 * i);
	observe(bed);
}

static void post_datagram(struct bed *bed, unsigned side, uint32_t i)
{
	const struct urxe_path path = conn_path(URXE_NET_IPV4, bed->above.node[!side]);
	const struct urxe_seg seg = node_seg(bed->above.node[side], i * 64, 100 * i);
	const struct urxe_send_wr wr = {.wr_id = i,
					.opcode = i % 2 ? URXE_WR_SEND : URXE_WR_SEND_IMM,
					.flags = URXE_SEND_SIGNALED,
					.imm = i,
					.segs = &seg,
					.n_segs = 1,
					.path = &path,
					.remote_qpn = bed->e.end[!side].qpn,
					.remote_qkey = conn_default(URXE_QPT_UD).qkey};

	assert_int_equal(urxe_post_send(bed->e.end[side].qp, &wr), 0);
}

static void datagrams_complete_alike(struct bed *bed)
{
	connect_type(bed, URXE_QPT_UD);
	post_receives(bed, 4, 1000 + URXE_GRH_LEN);
	for (uint32_t i = 0; i < 5; i++)
		post_datagram(bed, 0, i);
	observe(bed);
}

/* IBA 9.9.2.4: the receive queue goes on, and the program can repair the send queue. */
static void refuse_unreliable(struct bed *bed, enum urxe_qp_type type)
{
	connect_type(bed, type);
	for (uint32_t i = 0; i < 2; i++)
		post_recv(&bed->e.end[0], 50 + i, i * 8192, 1000);
	for (uint32_t i = 1; i < 3; i++)
		assert_int_equal(urxe_post_malformed(bed->e.end[0].qp, i, URXE_WC_LOC_LEN_ERR), 0);
	observe(bed);
}

static void repair(struct bed *bed)
{
	change(bed, 0, URXE_QPS_RTS, URXE_QP_CUR_STATE);
	post_receives(bed, 1, 1000);
}

static void malformed_datagrams_complete_alike(struct bed *bed)
{
	refuse_unreliable(bed, URXE_QPT_UD);
	post_datagram(bed, 1, 3);
	observe(bed);
	repair(bed);
	post_datagram(bed, 0, 4);
	observe(bed);
}

static void malformed_uc_requests_complete_alike(struct bed *bed)
{
	const struct post message = {.opcode = URXE_WR_SEND, .length = 100};

	refuse_unreliable(bed, URXE_QPT_UC);
	post_send(&bed->e, 1, &message);
	observe(bed);
	repair(bed);
	post_send(&bed->e, 0, &message);
	observe(bed);
}

static void cq_events_are_raised_alike(struct bed *bed)
{
	connect_type(bed, URXE_QPT_RC);
	post_receives(bed, 4, 100);
	urxe_cq_arm(bed->e.a->send_cq.cq, false);
	urxe_cq_arm(bed->e.b->recv_cq.cq, true);
	post(bed, 1, URXE_WR_SEND, 10);
	observe(bed);
	post_send(&bed->e, 0,
		  &(struct post){.wr_id = 2,
				 .opcode = URXE_WR_SEND,
				 .flags = URXE_SEND_SOLICITED | URXE_SEND_SIGNALED});
	observe(bed);
}

static void lossy_wires_are_repaired_alike(struct bed *bed)
{
	static const uint32_t opcodes[] = {URXE_WR_SEND, URXE_WR_RDMA_WRITE, URXE_WR_RDMA_READ};

	connect_type(bed, URXE_QPT_RC);
	for (unsigned side = 0; side < 2; side++)
		bed->wire->link[side].faults = (struct link_faults){
			.drop = 0.05, .duplicate = 0.05, .reorder = 0.05, .max_losses = 3};
	for (uint32_t round = 0; round < 20; round++) {
		post_receives(bed, 7, 8000);
		for (uint32_t i = 0; i < 20; i++)
			post(bed, i, opcodes[i % 3], 1 + (i * round * 97) % 7000);
		observe(bed);
		bed->logged = 0; /* the contents are compared in the last round */
	}
	observe(bed);
}

/* --- The comparison. */

static void compare(void (*play)(struct bed *))
{
	static struct bed first, next;

	bed_open(&first, ENGINE);
	play(&first);
	bed_close(&first);
	for (enum way way = HCA; way < WAYS; way++) {
		bed_open(&next, way);
		play(&next);
		for (unsigned side = 0; side < 2; side++)
			if (next.offloaded[side])
				assert_int_equal(
					events(next.above.node[side], URXE_EVENT_TX_PACKETS), 0);
		bed_close(&next);
		assert_string_equal(next.log, first.log);
	}
}

#define SCENARIO(name)                        \
	static void test_##name(void **state) \
	{                                     \
		(void)state;                  \
		compare(name);                \
	}

SCENARIO(all_rc_operations_complete_alike)
SCENARIO(uc_operations_complete_alike)
SCENARIO(bad_rkeys_complete_alike)
SCENARIO(bad_lkeys_complete_alike)
SCENARIO(malformed_requests_complete_alike)
SCENARIO(too_short_receives_complete_alike)
SCENARIO(rnr_retries_are_exhausted_alike)
SCENARIO(retries_are_exhausted_alike)
SCENARIO(requests_are_flushed_alike)
SCENARIO(qps_are_reset_alike)
SCENARIO(sqd_drains_alike)
SCENARIO(srq_receives_complete_alike)
SCENARIO(datagrams_complete_alike)
SCENARIO(malformed_datagrams_complete_alike)
SCENARIO(malformed_uc_requests_complete_alike)
SCENARIO(cq_events_are_raised_alike)
SCENARIO(lossy_wires_are_repaired_alike)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_rc_operations_complete_alike),
		cmocka_unit_test(test_uc_operations_complete_alike),
		cmocka_unit_test(test_bad_rkeys_complete_alike),
		cmocka_unit_test(test_bad_lkeys_complete_alike),
		cmocka_unit_test(test_malformed_requests_complete_alike),
		cmocka_unit_test(test_too_short_receives_complete_alike),
		cmocka_unit_test(test_rnr_retries_are_exhausted_alike),
		cmocka_unit_test(test_retries_are_exhausted_alike),
		cmocka_unit_test(test_requests_are_flushed_alike),
		cmocka_unit_test(test_qps_are_reset_alike),
		cmocka_unit_test(test_sqd_drains_alike),
		cmocka_unit_test(test_srq_receives_complete_alike),
		cmocka_unit_test(test_datagrams_complete_alike),
		cmocka_unit_test(test_malformed_datagrams_complete_alike),
		cmocka_unit_test(test_malformed_uc_requests_complete_alike),
		cmocka_unit_test(test_cq_events_are_raised_alike),
		cmocka_unit_test(test_lossy_wires_are_repaired_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
