/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Source addresses, path MTUs and address handles of queue pairs that an HCA executes. */
#include <errno.h>

#include "hca_queues.h"

static void a_path_without_the_source_address_is_the_engines(void **state)
{
	(void)state;
	hca_set_gid(f->hca, 0, &fake_gid, true, 0);
	hca_read_gids(f->hca);
	assert_false(hca_has_gid(f->hca, 0));
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	assert_false(urxe_qp_offloaded(f->qp));
}

static uint8_t gid_index_of(uint32_t ifindex)
{
	hca_set_gid(f->hca, 0, &fake_gid, false, ifindex);
	hca_read_gids(f->hca);
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	assert_int_equal(urxe_qp_offloaded(f->qp), hca_has_gid(f->hca, 0));
	return fake_hca.last_qp->attr.ah_attr.grh.sgid_index;
}

/* No memory for the table, or no descriptor where libibverbs reads it from sysfs. */
static void a_gid_table_that_cannot_be_read_stays_as_it_was(void **state)
{
	(void)state;
	fake_hca.gid_table_error = -ENOMEM;
	hca_set_gid(f->hca, 0, &fake_gid, false, 0);
	hca_set_gid(f->hca, 1, &fake_gid, false, 0);
	hca_read_gids(f->hca);
	assert_true(hca_has_gid(f->hca, 0));
	assert_false(hca_has_gid(f->hca, 1));
	hca_set_gid(f->hca, 0, &fake_gid, false, 7);
	assert_false(hca_has_gid(f->hca, 0));
	/* The next look reads it. */
	fake_hca.gid_table_error = 0;
	assert_true(hca_has_gid(f->hca, 1));
	assert_true(hca_has_gid(f->hca, 0));
}

/* Linux gives an interface and its VLAN interfaces the same link-local address. */
static void a_source_address_is_that_of_its_interface(void **state)
{
	(void)state;
	fake_hca.ifindex = 2;
	fake_hca.vlan_ifindex = 7;
	assert_int_equal(gid_index_of(2), 3);
	assert_int_equal(gid_index_of(7), 4);
	assert_int_equal(gid_index_of(0), 3);
	gid_index_of(9);
	assert_false(hca_has_gid(f->hca, 0));
}

/* The host may set another MTU while the HCA is open. */
static void a_path_with_a_larger_mtu_is_the_engines(void **state)
{
	struct hca_limits limits;

	(void)state;
	fake_hca.mtu = IBV_MTU_512;
	hca_read_mtu(f->hca);
	hca_limits(f->hca, &limits);
	assert_int_equal(limits.mtu, URXE_MTU_512);
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	assert_false(urxe_qp_offloaded(f->qp));
	fake_hca.mtu = IBV_MTU_1024;
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	assert_true(urxe_qp_offloaded(f->qp));
	hca_limits(f->hca, &limits);
	assert_int_equal(limits.mtu, URXE_MTU_1024);
}

/* An address handle has 8 bits for the index. */
static void an_address_with_a_large_index_is_not_used(void **state)
{
	(void)state;
	fake_hca.gid_index = 256;
	hca_read_gids(f->hca);
	assert_false(hca_has_gid(f->hca, 0));
	make_qp(URXE_QPT_RC, 0, NULL);
	offloaded_connect_rc();
	assert_false(urxe_qp_offloaded(f->qp));
}

static void datagrams_share_an_address_handle(void **state)
{
	(void)state;
	make_qp(URXE_QPT_UD, 0, NULL);
	offloaded_connect_ud();
	assert_true(urxe_qp_offloaded(f->qp));
	send_some(3, 0);
	assert_int_equal(fake_hca.last_qp->n_sends, 3);
	assert_int_equal(fake_hca.ahs, 1);
	assert_int_equal(fake_hca.last_ah.grh.sgid_index, 3);
	assert_int_equal(fake_hca.last_ah.grh.hop_limit, 64);
	assert_int_equal(fake_hca.last_qp->sends[2].wr.ud.remote_qpn, 0x55);
}

/* The source address has got another place in the HCA's GID table. */
static void a_new_gid_index_needs_a_new_address_handle(void **state)
{
	(void)state;
	make_qp(URXE_QPT_UD, 0, NULL);
	offloaded_connect_ud();
	send_some(1, 0);
	fake_hca.gid_index = 4;
	hca_read_gids(f->hca);
	send_some(1, 0);
	assert_int_equal(fake_hca.ahs, 2);
	assert_int_equal(fake_hca.last_ah.grh.sgid_index, 4);
}

static void a_datagram_without_address_handle_fails(void **state)
{
	(void)state;
	fake_hca.no_ahs = true;
	make_qp(URXE_QPT_UD, 0, NULL);
	offloaded_connect_ud();
	send_some(1, 0);
	assert_int_equal(fake_hca.last_qp->n_sends, 0);
	assert_int_equal(f->n, 1);
	assert_int_equal(f->wcs[0].status, URXE_WC_LOC_QP_OP_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_path_without_the_source_address_is_the_engines),
		TEST(a_gid_table_that_cannot_be_read_stays_as_it_was),
		TEST(a_source_address_is_that_of_its_interface),
		TEST(a_path_with_a_larger_mtu_is_the_engines),
		TEST(an_address_with_a_large_index_is_not_used),
		TEST(datagrams_share_an_address_handle),
		TEST(a_new_gid_index_needs_a_new_address_handle),
		TEST(a_datagram_without_address_handle_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
