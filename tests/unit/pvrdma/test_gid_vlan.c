/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The PVRDMA device learns the VLANs of GIDs from packets of the machine's NIC. Two guests exchange
 * messages only if both devices use the same VLAN.
 */
#include "pair.h"

#define VLAN 7

struct nic_frame {
	uint8_t data[100];
	uint32_t len;
};

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* The header of a frame in the VLAN; 0: without a tag. */
static uint8_t *put_ethernet(struct nic_frame *f, uint16_t vlan, uint16_t type)
{
	uint8_t *at = f->data + 12;

	memset(f, 0, sizeof(*f));
	if (vlan) {
		put16(at, 0x8100);
		put16(at + 2, (uint16_t)(0x6000 | vlan)); /* with a priority */
		at += 4;
	}
	put16(at, type);
	return at + 2;
}

static void send_arp(struct guest *g, const uint8_t sender[4], uint16_t vlan)
{
	struct nic_frame f;
	uint8_t *arp = put_ethernet(&f, vlan, 0x0806);

	memcpy(arp + 14, sender, 4);
	f.len = (uint32_t)(arp + 28 - f.data);
	pvrdma_nic_sent(g->dev, f.data, f.len - 1); /* too short */
	pvrdma_nic_sent(g->dev, f.data, f.len);
}

static void send_neighbour(struct guest *g, const uint8_t sender[16], uint8_t type, uint16_t vlan)
{
	struct nic_frame f;
	uint8_t *ip = put_ethernet(&f, vlan, 0x86dd);

	ip[6] = 58;
	memcpy(ip + 8, sender, 16);
	ip[40] = type;
	f.len = (uint32_t)(ip + 64 - f.data);
	pvrdma_nic_sent(g->dev, f.data, f.len);
}

/* The guest uses its own address in a VLAN. */
static void use_address(struct guest *g, uint16_t vlan)
{
	struct urxe_gid gid;

	guest_gid(g, &gid);
	send_arp(g, gid.raw + 12, vlan);
}

static void bind_again(struct guest *g)
{
	union pv_request request = {.destroy_bind = {.index = 0}};
	union pv_response response;
	struct urxe_gid gid;

	guest_gid(g, &gid);
	assert_int_equal(guest_command(g, PV_CMD_DESTROY_BIND, &request, &response), 0);
	assert_int_equal(guest_bind(g, 0, &gid, PV_NO_VLAN), 0);
}

static uint16_t vlan_of(struct guest *g)
{
	return urxe_gid_vlan(pvrdma_engine(g->dev), 0);
}

static void open_guests(struct pair *p)
{
	*p = (struct pair){0};
	pair_open_guests(p, URXE_NET_IPV4);
}

/* Writes between new queue pairs, which take the VLANs of their GIDs. */
static void expect_write(struct pair *p, uint32_t status)
{
	struct pvrdma_sq_wqe_hdr header;

	pair_open_queues(p, &(struct pair_attr){.type = PV_QPT_RC});
	header = rdma_header(p, PVRDMA_WR_RDMA_WRITE, 0);
	execute(p, &header, 0, 100);
	expect_cqe(p, 0, header.wr_id, status, PVRDMA_WC_RDMA_WRITE);
}

static void test_gids_in_one_vlan_connect(void **state)
{
	struct pair p;

	(void)state;
	open_guests(&p);
	for (int side = 0; side < 2; side++) {
		use_address(&p.guest[side], VLAN);
		assert_int_equal(vlan_of(&p.guest[side]), VLAN);
	}
	expect_write(&p, PVRDMA_WC_SUCCESS);
	pair_close(&p);
}

static void test_gid_in_a_vlan_does_not_reach_one_without(void **state)
{
	struct pair p;

	(void)state;
	open_guests(&p);
	use_address(&p.guest[0], VLAN);
	expect_write(&p, PVRDMA_WC_RETRY_EXC_ERR);
	pair_close(&p);
}

/* The NIC is set up before the driver of PVRDMA is loaded, or loaded again. */
static void test_vlan_is_learned_before_the_driver_binds(void **state)
{
	struct guest *g = &((struct pair *)*state)->guest[0];

	use_address(g, VLAN);
	bind_again(g);
	assert_int_equal(vlan_of(g), VLAN);
	pvrdma_reset(g->dev);
	guest_start(g);
	assert_int_equal(vlan_of(g), VLAN);
}

/* Linux answers ARP for an address of another interface, too. */
static void test_last_vlan_of_an_unused_gid_counts(void **state)
{
	struct guest *g = &((struct pair *)*state)->guest[0];

	use_address(g, VLAN);
	use_address(g, 0);
	assert_int_equal(vlan_of(g), 0);
	use_address(g, VLAN);
	assert_int_equal(vlan_of(g), VLAN);
}

/* Another station asks for the address without a tag, and the machine answers. */
static void test_arp_in_another_vlan_leaves_a_connection_alone(void **state)
{
	struct pvrdma_sq_wqe_hdr header;
	struct pair p;

	(void)state;
	open_guests(&p);
	for (int side = 0; side < 2; side++)
		use_address(&p.guest[side], VLAN);
	expect_write(&p, PVRDMA_WC_SUCCESS);
	use_address(&p.guest[1], 0);
	assert_int_equal(vlan_of(&p.guest[1]), VLAN);
	header = rdma_header(&p, PVRDMA_WR_RDMA_WRITE, 0);
	execute(&p, &header, 0, 100);
	expect_cqe(&p, 0, header.wr_id, PVRDMA_WC_SUCCESS, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(qp_to(&p.guest[1], &p.qp[1], URXE_QPS_ERR), 0);
	use_address(&p.guest[1], 0);
	assert_int_equal(vlan_of(&p.guest[1]), 0);
	pair_close(&p);
}

/* The machine forwards ARP of many addresses, as a bridge does. */
static void test_other_addresses_do_not_displace_those_of_gids(void **state)
{
	struct guest *g = &((struct pair *)*state)->guest[0];

	use_address(g, VLAN);
	for (uint8_t i = 0; i < 100; i++)
		send_arp(g, (uint8_t[]){198, 51, 100, i}, 0);
	bind_again(g);
	assert_int_equal(vlan_of(g), VLAN);
}

static void test_arp_of_other_addresses_leaves_the_gid_untagged(void **state)
{
	static const uint8_t other[4] = {198, 51, 100, 77}, none[4];
	struct guest *g = &((struct pair *)*state)->guest[0];

	for (uint8_t i = 0; i < 100; i++)
		send_arp(g, (uint8_t[]){198, 51, 100, i}, VLAN);
	send_arp(g, other, VLAN);
	send_arp(g, none, VLAN);
	assert_int_equal(vlan_of(g), 0);
	use_address(g, 4095); /* no VLAN has this ID */
	assert_int_equal(vlan_of(g), 0);
	use_address(g, 4094);
	assert_int_equal(vlan_of(g), 4094);
}

/* Interfaces in VLANs have the link-local address of the interface below. */
static void test_link_local_gid_gets_no_vlan(void **state)
{
	static const struct urxe_gid gid = {.raw = {0xfe, 0x80, [15] = 1}};
	struct guest *g = &((struct pair *)*state)->guest[0];

	assert_int_equal(guest_bind(g, 0, &gid, PV_NO_VLAN), 0);
	send_neighbour(g, gid.raw, 136, VLAN);
	assert_int_equal(vlan_of(g), 0);
}

static void test_only_neighbour_discovery_tells_the_vlan_of_ipv6(void **state)
{
	static const struct urxe_gid gid = {.raw = {0xfd, [15] = 1}};
	struct guest *g = &((struct pair *)*state)->guest[0];

	assert_int_equal(guest_bind(g, 0, &gid, PV_NO_VLAN), 0);
	send_neighbour(g, gid.raw, 128, VLAN);
	assert_int_equal(vlan_of(g), 0);
	send_neighbour(g, gid.raw, 136, VLAN);
	assert_int_equal(vlan_of(g), VLAN);
}

static void test_learned_vlan_moves_with_the_machine(void **state)
{
	struct pair p;

	(void)state;
	open_guests(&p);
	use_address(&p.guest[0], VLAN);
	for (int side = 0; side < 2; side++)
		assert_int_equal(guest_migrate(&p.guest[side]), 0);
	assert_int_equal(vlan_of(&p.guest[0]), VLAN);
	assert_int_equal(vlan_of(&p.guest[1]), 0);
	bind_again(&p.guest[0]);
	assert_int_equal(vlan_of(&p.guest[0]), VLAN);
	use_address(&p.guest[1], VLAN);
	assert_int_equal(vlan_of(&p.guest[1]), VLAN);
	for (int side = 0; side < 2; side++)
		guest_close(&p.guest[side]);
}

static int setup(void **state)
{
	static struct pair p;

	open_guests(&p);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	for (int side = 0; side < 2; side++)
		guest_close(&p->guest[side]);
	return 0;
}

/* Two guests without queue pairs. */
#define GUESTS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gids_in_one_vlan_connect),
		cmocka_unit_test(test_gid_in_a_vlan_does_not_reach_one_without),
		GUESTS_TEST(test_vlan_is_learned_before_the_driver_binds),
		GUESTS_TEST(test_last_vlan_of_an_unused_gid_counts),
		cmocka_unit_test(test_arp_in_another_vlan_leaves_a_connection_alone),
		GUESTS_TEST(test_other_addresses_do_not_displace_those_of_gids),
		GUESTS_TEST(test_arp_of_other_addresses_leaves_the_gid_untagged),
		GUESTS_TEST(test_link_local_gid_gets_no_vlan),
		GUESTS_TEST(test_only_neighbour_discovery_tells_the_vlan_of_ipv6),
		cmocka_unit_test(test_learned_vlan_moves_with_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
