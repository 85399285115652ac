/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The copy transport: the end of rights, and the effect on a requester that has had them. */
#include "copy_pair.h"

#include <errno.h>

static void dereg(void *arg)
{
	struct copy_pair *d = arg;

	if (d->mr[1])
		assert_int_equal(urxe_mr_dereg(d->mr[1]), 0);
	d->mr[1] = NULL;
}

/* The peer withdraws the rights after the requester has read the table and before it copies. */
static void test_withdrawal_before_the_copy_prevents_it(void **state)
{
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	memset(d.e.b->mem + 8192, 0xee, 100);
	d.way[0].before = dereg;
	d.way[0].arg = &d;
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	run(&d, &post, URXE_WC_REM_ACCESS_ERR);
	assert_int_equal(d.way[0].copies, 0);
	assert_int_equal(d.way[1].withdrawals,
			 2); /* one for the region's key, then one for the QP in the error state */
	for (int i = 0; i < 100; i++)
		assert_int_equal(d.e.b->mem[8192 + i], 0xee);
	copy_pair_close(&d);
}

static void withdraw_all(void *arg)
{
	urxe_copy_rights_withdraw(((struct copy_pair *)arg)->e.b->dev);
}

/* The copy that has read the rights before does nothing, and the message goes in packets. */
static void test_withdrawn_rights_end_all_copies(void **state)
{
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	fill(d.e.a->mem + 4096, 100, 8);
	d.way[0].before = withdraw_all;
	d.way[0].arg = &d;
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	run(&d, &post, URXE_WC_SUCCESS);
	assert_memory_equal(d.e.b->mem + 8192, d.e.a->mem + 4096, 100);
	assert_true(d.way[1].withdrawals > 0);
	d.way[0].before = NULL;
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d.way[0].copies, 0);
	copy_pair_close(&d);
}

static void test_reregistered_key_leads_to_new_memory(void **state)
{
	struct copy_pair d;
	struct urxe_extent extent;
	struct urxe_mr_attr attr;
	struct post post;

	(void)state;
	setup_proven(&d);
	extent = (struct urxe_extent){d.e.b->mem + 30000, REGION};
	attr = (struct urxe_mr_attr){
		.pd = NODE_PD,
		.access = NODE_ACCESS,
		.iova = d.e.b->iova,
		.length = REGION,
		.extents = &extent,
		.n_extents = 1,
	};
	/*
	 * Whether reregistration succeeded or not: the key leads to the memory that it names now.
	 */
	if (urxe_mr_rereg(&d.mr[1], &attr))
		extent.addr = d.e.b->mem;
	fill(d.e.a->mem + 4096, 100, 8);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	run(&d, &post, URXE_WC_SUCCESS);
	assert_memory_equal((uint8_t *)extent.addr + 8192, d.e.a->mem + 4096, 100);
	assert_int_equal(d.way[0].copies, 1);
	copy_pair_close(&d);
}

/*
 * The program has unmapped a page: requests to the rest of the region are copied, when the call has
 * ended, and those to the page are refused by the peer.
 */
static void test_hole_is_not_copied(void **state)
{
	struct copy_pair d;
	struct urxe_extent page;
	struct post post;
	int rc;

	(void)state;
	setup_proven(&d);
	page = (struct urxe_extent){d.e.b->mem + 8192, 4096};
	memset(page.addr, 0xee, page.length);
	rc = urxe_mr_unmap(d.mr[1], &page);
	assert_true(!rc || rc == -ENOMEM);
	if (rc)
		urxe_mr_unmap_all(d.mr[1]);
	assert_int_equal(d.way[1].withdrawals, 1);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	post.remote = 16384;
	for (uint32_t i = 0; !rc && i < 2; i++) {
		run(&d, &post, URXE_WC_SUCCESS);
		assert_int_equal(d.way[0].copies, i);
		urxe_mr_unmapped(d.mr[1], &page, true);
	}
	post.remote = 8192 - 50;
	run(&d, &post, URXE_WC_REM_ACCESS_ERR);
	assert_int_equal(d.way[0].copies, rc ? 0 : 1);
	for (int i = 0; i < 100; i++)
		assert_int_equal(d.e.b->mem[8192 + i], 0xee);
	copy_pair_close(&d);
}

/* The call to unmap failed: the rights come back. */
static void test_failed_unmap_restores_rights(void **state)
{
	struct copy_pair d;
	struct urxe_extent page;
	struct post post;

	(void)state;
	setup_proven(&d);
	page = (struct urxe_extent){d.e.b->mem + 8192, 4096};
	if (!urxe_mr_unmap(d.mr[1], &page)) {
		assert_int_equal(d.way[1].withdrawals, 1);
		urxe_mr_unmapped(d.mr[1], &page, false);
		post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
		run(&d, &post, URXE_WC_SUCCESS);
		assert_int_equal(d.way[0].copies, 1);
	}
	copy_pair_close(&d);
}

static void modify(struct endpoint *end, uint8_t to)
{
	const struct urxe_qp_attr attr = {.state = to};

	assert_int_equal(urxe_qp_modify(end->qp, 0, &attr, URXE_QP_STATE), 0);
}

static void test_peer_in_the_error_state_withdraws_its_rights(void **state)
{
	struct copy_pair d;
	struct post post;
	uint32_t withdrawals;

	(void)state;
	setup_proven(&d);
	withdrawals = d.way[1].withdrawals;
	modify(&d.e.end[1], URXE_QPS_ERR);
	assert_int_equal(d.way[1].withdrawals, withdrawals + 1);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	run(&d, &post, URXE_WC_RETRY_EXC_ERR);
	assert_int_equal(d.way[0].copies, 0);
	copy_pair_close(&d);
}

/* A new connection of the peer's QP needs a new first answer, also if nothing was copied by the
 * earlier one. */
static void test_reconnected_peer_must_prove_itself_again(void **state)
{
	(void)state;
	for (unsigned requests = 0; requests < 4; requests++) {
		struct conn_attr conn = conn_default(URXE_QPT_RC);
		struct copy_pair d;
		struct post post;
		uint32_t copies;

		copy_pair_open(&d, &conn);
		post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
		for (unsigned i = 0; i < requests; i++)
			run(&d, &post, URXE_WC_SUCCESS);
		copies = d.way[0].copies;
		modify(&d.e.end[1], URXE_QPS_RESET);
		conn.psn[0] += 1000; /* node a's QP does not know the new PSN */
		conn_bring_up(d.e.pair, &conn, 1, &d.e.end[1], &d.e.end[0]);
		run(&d, &post, URXE_WC_RETRY_EXC_ERR);
		assert_int_equal(d.way[0].copies, copies);
		copy_pair_close(&d);
	}
}

/* New addresses may break the path of packets, so copies need a new first answer. */
static void test_proof_is_given_anew(void **state)
{
	struct copy_pair d;
	struct urxe_gid gid = craft_gid(URXE_NET_IPV4, 200);
	struct post post;

	(void)state;
	setup_proven(&d);
	assert_int_equal(urxe_gid_set(d.e.a->dev, 20, &gid, false), 0);
	prove(&d);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d.way[0].copies, 1);
	copy_pair_close(&d);
}

static void expect_no_copy(struct copy_pair *d, uint32_t status)
{
	struct post post = a_post(d, URXE_WR_RDMA_WRITE, 3);
	uint32_t before = d->way[0].copies;

	run(d, &post, status);
	assert_int_equal(d->way[0].copies, before);
}

static void setup_copied(struct copy_pair *d)
{
	const struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct post post;

	copy_pair_open(d, &conn);
	for (int i = 0; i < 2; i++)
		assert_int_equal(urxe_pkey_set(d->e.pair->node[i]->dev, 1, 0x8002), 0);
	prove(d);
	post = a_post(d, URXE_WR_RDMA_WRITE, 2);
	run(d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d->way[0].copies, 1);
}

/* Packets of another partition than the peer's do not arrive. */
static void test_qp_in_another_partition_is_not_copied(void **state)
{
	const struct urxe_qp_attr attr = {.state = URXE_QPS_SQD, .pkey_index = 1};
	struct copy_pair d;

	(void)state;
	for (int side = 0; side < 2; side++) {
		setup_copied(&d);
		modify(&d.e.end[side], URXE_QPS_SQD);
		assert_int_equal(urxe_qp_modify(d.e.end[side].qp, 0, &attr,
						URXE_QP_STATE | URXE_QP_PKEY_INDEX),
				 0);
		modify(&d.e.end[side], URXE_QPS_RTS);
		expect_no_copy(&d, URXE_WC_RETRY_EXC_ERR);
		copy_pair_close(&d);
	}
}

/* The peer's device loses the address, or the partition, that its packets have. */
static void test_peer_without_its_address_or_partition_is_not_copied(void **state)
{
	struct copy_pair d;

	(void)state;
	setup_copied(&d);
	for (uint32_t i = 0; i < URXE_MAX_GIDS; i++)
		assert_int_equal(urxe_gid_set(d.e.b->dev, i, NULL, false), 0);
	expect_no_copy(&d, URXE_WC_RETRY_EXC_ERR);
	copy_pair_close(&d);
	setup_copied(&d);
	assert_int_equal(urxe_pkey_set(d.e.b->dev, 0, 0x8002), 0);
	expect_no_copy(&d, URXE_WC_RETRY_EXC_ERR);
	copy_pair_close(&d);
}

/* Two keys share a place in the table: requests by the second key go in packets. */
static void test_colliding_rkey_goes_in_packets(void **state)
{
	struct copy_pair d;
	struct urxe_extent extent;
	struct urxe_mr_attr attr;
	struct urxe_mr *mr;
	struct post post;

	(void)state;
	setup_proven(&d);
	extent = (struct urxe_extent){d.e.b->mem, REGION};
	attr = (struct urxe_mr_attr){
		.pd = NODE_PD,
		.access = NODE_ACCESS,
		.iova = d.e.b->iova,
		.length = REGION,
		.extents = &extent,
		.n_extents = 1,
		.key = d.key[1] + (URXE_COPY_GRANTS << 8),
	};
	if (urxe_mr_reg(d.e.b->dev, &attr, &mr) == 0) {
		post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
		post.rkey = attr.key;
		run(&d, &post, URXE_WC_SUCCESS);
		assert_int_equal(d.way[0].copies, 0);
		assert_int_equal(urxe_mr_dereg(mr), 0);
	}
	post = a_post(&d, URXE_WR_RDMA_WRITE, 3);
	run(&d, &post, URXE_WC_SUCCESS);
	assert_int_equal(d.way[0].copies, 1);
	copy_pair_close(&d);
}

static void move_to_next_block(const struct copy_pair *d, struct conn_attr *conn)
{
	for (int side = 0; side < 2; side++)
		conn->qpn[side] = d->e.end[side].qpn + NODE_STEP * 0x1000;
}

/*
 * QPNs of a few blocks have their own places in the table, even if the blocks are far apart; QPNs
 * of further blocks go in packets.
 */
static void test_qpns_of_many_blocks_fall_back_to_packets(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	for (uint32_t i = 1; i <= URXE_COPY_CHUNKS; i++) {
		move_to_next_block(&d, &conn);
		conn_open(d.e.pair, &conn, d.e.end);
		prove(&d);
		fill(d.e.a->mem + 4096, 100, (uint8_t)i);
		post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
		run(&d, &post, URXE_WC_SUCCESS);
		assert_memory_equal(d.e.b->mem + 8192, d.e.a->mem + 4096, 100);
		assert_int_equal(d.way[0].copies, i < URXE_COPY_CHUNKS ? i : i - 1);
	}
	copy_pair_close(&d);
}

/* As with an HCA, which gives the few queue pairs of a program ever new numbers. */
static void test_block_without_qps_gives_its_chunk_to_another(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC);
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	for (uint32_t i = 1; i <= 2 * URXE_COPY_CHUNKS; i++) {
		for (int side = 0; side < 2; side++)
			modify(&d.e.end[side], URXE_QPS_RESET);
		move_to_next_block(&d, &conn);
		conn_open(d.e.pair, &conn, d.e.end);
		prove(&d);
		post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
		run(&d, &post, URXE_WC_SUCCESS);
		assert_int_equal(d.way[0].copies, i);
	}
	copy_pair_close(&d);
}

/* The number is published as it was, but in another chunk. */
static void test_proof_does_not_hold_for_a_qp_in_another_chunk(void **state)
{
	struct conn_attr conn = conn_default(URXE_QPT_RC), other = conn;
	struct endpoint ends[2];
	struct copy_pair d;
	struct post post;

	(void)state;
	setup_proven(&d);
	modify(&d.e.end[1], URXE_QPS_RESET);
	move_to_next_block(&d, &other);
	conn_open(d.e.pair, &other, ends);
	conn.psn[0] += 1000; /* node a's QP does not know the new PSN */
	conn_bring_up(d.e.pair, &conn, 1, &d.e.end[1], &d.e.end[0]);
	post = a_post(&d, URXE_WR_RDMA_WRITE, 2);
	run(&d, &post, URXE_WC_RETRY_EXC_ERR);
	assert_int_equal(d.way[0].copies, 0);
	copy_pair_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_withdrawal_before_the_copy_prevents_it),
		cmocka_unit_test(test_withdrawn_rights_end_all_copies),
		cmocka_unit_test(test_reregistered_key_leads_to_new_memory),
		cmocka_unit_test(test_hole_is_not_copied),
		cmocka_unit_test(test_failed_unmap_restores_rights),
		cmocka_unit_test(test_peer_in_the_error_state_withdraws_its_rights),
		cmocka_unit_test(test_reconnected_peer_must_prove_itself_again),
		cmocka_unit_test(test_proof_is_given_anew),
		cmocka_unit_test(test_qp_in_another_partition_is_not_copied),
		cmocka_unit_test(test_peer_without_its_address_or_partition_is_not_copied),
		cmocka_unit_test(test_colliding_rkey_goes_in_packets),
		cmocka_unit_test(test_qpns_of_many_blocks_fall_back_to_packets),
		cmocka_unit_test(test_block_without_qps_gives_its_chunk_to_another),
		cmocka_unit_test(test_proof_does_not_hold_for_a_qp_in_another_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
