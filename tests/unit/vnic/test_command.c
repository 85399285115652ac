/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that a driver makes by registers: commands, revisions, filters, statistics, link,
 * interrupts.
 */
#include "guest.h"

#include <errno.h>

#define CMD(name) ((uint32_t)VMXNET3_CMD_##name)

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t station[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
static const uint8_t stranger[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x66};
static const uint8_t group[6] = {0x01, 0x00, 0x5e, 1, 2, 3};
static const uint8_t other_group[6] = {0x33, 0x33, 0, 0, 0, 1};

static int create(void **state)
{
	struct guest *g = guest_create(2, 2);

	for (uint32_t i = 0; i < GUEST_RING - 1; i++)
		for (uint32_t j = 0; j < 2; j++)
			guest_post_rx(g, &g->rx[j], 0, 256);
	*state = g;
	return 0;
}

static int destroy(void **state)
{
	guest_destroy(*state);
	return 0;
}

static const uint64_t *counters(const struct guest *g)
{
	return vnic_device_counters(g->dev);
}

/* --- Revisions */

static void test_revisions_1_to_9_can_be_selected(void **state)
{
	struct guest *g = *state;

	assert_int_equal(guest_read(g, VMXNET3_REG_VRRS), 0x1ff);
	for (uint32_t bit = 0; bit < 9; bit++)
		guest_write(g, VMXNET3_REG_VRRS, 1u << bit);
	assert_int_equal(guest_read(g, VMXNET3_REG_VRRS), 0x1ff);
	assert_int_equal(vnic_device_reg_write(g->dev, 1, VMXNET3_REG_VRRS, 0), -EINVAL);
	assert_int_equal(vnic_device_reg_write(g->dev, 1, VMXNET3_REG_VRRS, 3), -EINVAL);
	assert_int_equal(vnic_device_reg_write(g->dev, 1, VMXNET3_REG_VRRS, 0x200), -EINVAL);
	assert_int_equal(guest_read(g, VMXNET3_REG_UVRS), 1);
	guest_write(g, VMXNET3_REG_UVRS, 1);
}

/* A driver cannot use commands that are newer than the revision that it selected. Without a
 * selection it can use all. */
static void test_commands_need_revision_3(void **state)
{
	struct guest *g = *state;

	assert_int_equal(guest_activate(g), 0);
	assert_int_equal(guest_command(g, CMD(GET_TXDATA_DESC_SIZE)), 128 << 16 | 128);
	guest_write(g, VMXNET3_REG_VRRS, VMXNET3_REV_2);
	assert_int_equal(guest_command(g, CMD(GET_TXDATA_DESC_SIZE)), 1);
	assert_int_equal(guest_command(g, CMD(GET_COALESCE)), 1);
	assert_int_equal(guest_command(g, CMD(SET_COALESCE)), 1);
	guest_write(g, VMXNET3_REG_VRRS, VMXNET3_REV_3);
	/* Linux' struct Vmxnet3_TxDataDesc has 128 bytes, and its memcpy warns of more. */
	assert_int_equal(guest_command(g, CMD(GET_TXDATA_DESC_SIZE)), 128);
	/* From revision 9 on the driver takes the size for received frames from the upper half. */
	guest_write(g, VMXNET3_REG_VRRS, 1u << 7);
	assert_int_equal(guest_command(g, CMD(GET_TXDATA_DESC_SIZE)), 128);
	guest_write(g, VMXNET3_REG_VRRS, VMXNET3_REV_9);
	assert_int_equal(guest_command(g, CMD(GET_TXDATA_DESC_SIZE)), 128 << 16 | 128);
}

/* Each command of a revision fails in the revision before. */
static void test_commands_fail_before_their_revision(void **state)
{
	static const struct {
		uint32_t cmd, revision, result;
	} commands[] = {
		{CMD(REGISTER_MEMREGS), 4, 0},
		{CMD(SET_RSS_FIELDS), 4, 0},
		{CMD(GET_RSS_FIELDS), 4, 0x3c},
		{CMD(GET_MAX_QUEUES_CONF), 6, 0x1008},
		{CMD(SET_RING_BUFFER_SIZE), 7, 0},
		{CMD(GET_DCR0_REG), 7, 0},
		{CMD(GET_TSRING_DESC_SIZE), 9, 0},
		{CMD(GET_DISABLED_OFFLOADS), 9, VMXNET3_OFFLOAD_LRO},
	};
	struct guest *g = *state;

	assert_int_equal(guest_activate(g), 0);
	g->shared->rss_fields = 0xfffffffc; /* unknown fields are left out */
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		guest_write(g, VMXNET3_REG_VRRS, 1u << (commands[i].revision - 2));
		assert_int_equal(guest_command(g, commands[i].cmd), 1);
		guest_write(g, VMXNET3_REG_VRRS, 1u << (commands[i].revision - 1));
		assert_int_equal(guest_command(g, commands[i].cmd), commands[i].result);
	}
	/* A reset sets the default. */
	guest_command(g, CMD(RESET_DEV));
	assert_int_equal(guest_command(g, CMD(GET_RSS_FIELDS)), 3);
	assert_int_equal(guest_command(g, CMD(SET_RSS_FIELDS)), 1);
}

/* A driver gets what the device has of the capabilities that it requests, also after a reset. */
static void test_driver_gets_only_offered_capabilities(void **state)
{
	struct guest *g = *state;
	uint32_t offered = guest_read(g, VMXNET3_REG_DCR);

	guest_write(g, VMXNET3_REG_VRRS, VMXNET3_REV_7);
	guest_write(g, VMXNET3_REG_DCR, UINT32_MAX);
	assert_int_equal(guest_command(g, CMD(GET_DCR0_REG)), offered);
	assert_int_equal(guest_read(g, VMXNET3_REG_DCR), offered);
	guest_write(g, VMXNET3_REG_DCR, VMXNET3_CAP_VXLAN_TSO | VMXNET3_CAP_LARGE_BAR);
	guest_command(g, CMD(RESET_DEV));
	assert_int_equal(guest_command(g, CMD(GET_DCR0_REG)), VMXNET3_CAP_VXLAN_TSO);
	/* The next driver begins with none. */
	guest_write(g, VMXNET3_REG_VRRS, VMXNET3_REV_7);
	assert_int_equal(guest_command(g, CMD(GET_DCR0_REG)), 0);
	assert_int_equal(vnic_device_reg_write(g->dev, 1, VMXNET3_REG_PTCR, 1), -EINVAL);
}

/* A virtual machine that restarts may run another driver, which requests no capabilities. */
static void test_power_on_leaves_nothing_of_the_former_driver(void **state)
{
	struct guest *g = *state;
	uint32_t value;

	guest_write(g, VMXNET3_REG_DCR, UINT32_MAX);
	assert_int_not_equal(guest_command(g, CMD(GET_DCR0_REG)), 0);
	assert_int_equal(vnic_device_reg_write(g->dev, 0, VMXNET3_REG_TXPROD, 7), 0);
	assert_int_equal(vnic_device_reg_write(g->dev, 0, VMXNET3_REG_RXPROD2, 7), 0);
	vnic_device_power_on(g->dev);
	assert_int_equal(guest_read(g, VMXNET3_REG_CMD), 0);
	assert_int_equal(guest_command(g, CMD(GET_DCR0_REG)), 0);
	assert_int_equal(vnic_device_reg_read(g->dev, 0, VMXNET3_REG_TXPROD, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(vnic_device_reg_read(g->dev, 0, VMXNET3_REG_RXPROD2, &value), 0);
	assert_int_equal(value, 0);
}

static void test_coalescing_schemes_are_checked(void **state)
{
	struct guest *g = *state;
	uint64_t addr = guest_alloc(g, GUEST_IN_HIGH, sizeof(struct vmxnet3_coalesce_scheme));
	struct vmxnet3_coalesce_scheme *scheme = guest_at(g, addr);
	struct vmxnet3_variable_conf *info = &g->shared->command_info;
	const struct vmxnet3_coalesce_scheme good[] = {
		{VMXNET3_COALESCE_ADAPT, {0}},
		{VMXNET3_COALESCE_RBC, {VMXNET3_COAL_RBC_MIN_RATE}},
		{VMXNET3_COALESCE_RBC, {VMXNET3_COAL_RBC_MAX_RATE}},
		{VMXNET3_COALESCE_STATIC, {128, 128, 128}},
		{VMXNET3_COALESCE_DISABLED, {0}},
		{VMXNET3_COALESCE_STATIC, {64, 32, 16}},
	};
	const struct vmxnet3_coalesce_scheme bad[] = {
		{4, {0}},
		{VMXNET3_COALESCE_RBC, {VMXNET3_COAL_RBC_MIN_RATE - 1}},
		{VMXNET3_COALESCE_RBC, {VMXNET3_COAL_RBC_MAX_RATE + 1}},
		{VMXNET3_COALESCE_STATIC, {129, 0, 0}},
		{VMXNET3_COALESCE_STATIC, {0, 129, 0}},
		{VMXNET3_COALESCE_STATIC, {0, 0, 129}},
	};

	*info = (struct vmxnet3_variable_conf){.version = 1, .len = sizeof(*scheme), .addr = addr};
	guest_write(g, VMXNET3_REG_VRRS, VMXNET3_REV_3);
	assert_int_equal(guest_command(g, CMD(GET_COALESCE)), 1); /* not active yet */
	assert_int_equal(guest_activate(g), 0);
	scheme->mode = 77;
	assert_int_equal(guest_command(g, CMD(GET_COALESCE)), 0);
	assert_int_equal(scheme->mode, VMXNET3_COALESCE_DISABLED);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		*scheme = good[i];
		assert_int_equal(guest_command(g, CMD(SET_COALESCE)), 0);
		memset(scheme, 0xff, sizeof(*scheme));
		assert_int_equal(guest_command(g, CMD(GET_COALESCE)), 0);
		assert_memory_equal(scheme, &good[i], sizeof(*scheme));
	}
	/* A refused command changes nothing. */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		*scheme = bad[i];
		assert_int_equal(guest_command(g, CMD(SET_COALESCE)), 1);
	}
	assert_int_equal(guest_command(g, CMD(GET_COALESCE)), 0);
	assert_int_equal(scheme->para[1], 32);
	info->len = sizeof(*scheme) - 1;
	assert_int_equal(guest_command(g, CMD(GET_COALESCE)), 1);
	info->len = sizeof(*scheme);
	for (size_t i = 0; i < 3; i++) {
		const uint64_t outside[] = {GUEST_HIGHER + GUEST_REGION - 12, addr + 2, 0};

		info->addr = outside[i];
		assert_int_equal(guest_command(g, CMD(SET_COALESCE)), 1);
		assert_int_equal(guest_command(g, CMD(GET_COALESCE)), 1);
	}
	/* A reset drops the setting. */
	guest_command(g, CMD(RESET_DEV));
	info->addr = addr;
	assert_int_equal(guest_activate(g), 0);
	assert_int_equal(guest_command(g, CMD(GET_COALESCE)), 0);
	assert_int_equal(scheme->mode, VMXNET3_COALESCE_DISABLED);
}

/* --- Answers about the device */

static void test_query_commands_have_their_answers(void **state)
{
	struct guest *g = *state;

	assert_int_equal(guest_command(g, CMD(GET_PERM_MAC_LO)), 0x33221102);
	assert_int_equal(guest_command(g, CMD(GET_PERM_MAC_HI)), 0x5544);
	assert_int_equal(guest_command(g, CMD(GET_DID_LO)), 0x07b0);
	assert_int_equal(guest_command(g, CMD(GET_DID_HI)), 1);
	assert_int_equal(guest_command(g, CMD(GET_LINK)), 10000u << 16 | 1);
	assert_int_equal(guest_command(g, CMD(GET_CONF_INTR)), 3);
	assert_int_equal(guest_command(g, CMD(GET_DEV_EXTRA_INFO)), 0);
	assert_int_equal(guest_command(g, CMD(GET_ADAPTIVE_RING_INFO)), 1);
	assert_int_equal(guest_command(g, CMD(GET_QUEUE_STATUS)), 0);
	assert_int_equal(guest_command(g, CMD(GET_STATS)), 0);
	assert_int_equal(guest_command(g, CMD(UPDATE_PMCFG)), 0);
	/* The device has no RSS hash: it chooses queues by flow. */
	assert_int_equal(guest_command(g, CMD(UPDATE_RSSIDT)), 1);
	assert_int_equal(guest_read(g, VMXNET3_REG_ICR), 0);
	assert_int_equal(guest_read(g, VMXNET3_REG_ECR), 0);
}

static void test_unknown_commands_fail(void **state)
{
	static const uint32_t unknown[] = {
		0,
		1,
		0xcafebabe,
		0xcafdffff,
		CMD(FIRST_SET) + 10,
		CMD(FIRST_SET) + 17,
		0xf00cffff,
		UINT32_MAX,
	};
	struct guest *g = *state;

	guest_write(g, VMXNET3_REG_VRRS, VMXNET3_REV_3);
	assert_int_equal(guest_activate(g), 0);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_int_equal(guest_command(g, unknown[i]), 1);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_ACTIVE);
}

/* Commands that read the shared area fail without one. */
static void test_shared_area_commands_fail_while_down(void **state)
{
	static const uint32_t updates[] = {CMD(UPDATE_RX_MODE),      CMD(UPDATE_MAC_FILTERS),
					   CMD(UPDATE_VLAN_FILTERS), CMD(UPDATE_IML),
					   CMD(UPDATE_FEATURE),      CMD(SET_COALESCE)};
	struct guest *g = *state;

	guest_write(g, VMXNET3_REG_VRRS, VMXNET3_REV_3);
	for (size_t i = 0; i < sizeof(updates) / sizeof(updates[0]); i++)
		assert_int_equal(guest_command(g, updates[i]), 1);
	assert_int_equal(guest_activate(g), 0);
	for (size_t i = 0; i < sizeof(updates) / sizeof(updates[0]) - 1; i++)
		assert_int_equal(guest_command(g, updates[i]), 0);
}

/* --- Filters */

static uint64_t heard(const struct guest *g)
{
	return counters(g)[VNIC_RX_FRAMES];
}

/* Whether the driver receives a frame to the MAC, with a VLAN tag unless vlan is negative. */
static bool hears_vlan(struct guest *g, const uint8_t mac[6], int vlan)
{
	uint64_t before = heard(g), filtered = counters(g)[VNIC_RX_FILTERED];
	uint8_t data[64] = {0};

	memcpy(data, mac, 6);
	if (vlan >= 0) {
		data[12] = 0x81;
		data[14] = (uint8_t)(0xe0 | vlan >> 8); /* with a priority */
		data[15] = (uint8_t)vlan;
	}
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), 0);
	assert_int_equal(heard(g) - before + counters(g)[VNIC_RX_FILTERED] - filtered, 1);
	return heard(g) > before;
}

static bool hears(struct guest *g, const uint8_t mac[6])
{
	return hears_vlan(g, mac, -1);
}

static void set_mode(struct guest *g, uint32_t mode)
{
	g->shared->rx_filter.mode = mode;
	assert_int_equal(guest_command(g, CMD(UPDATE_RX_MODE)), 0);
}

static void test_receive_mode_selects_frames(void **state)
{
	static const struct {
		uint32_t mode;
		bool station, stranger, group, broadcast;
	} cases[] = {
		{0, false, false, false, false},
		{VMXNET3_RXM_UCAST, true, false, false, false},
		{VMXNET3_RXM_BCAST, false, false, false, true},
		{VMXNET3_RXM_MCAST, false, false, false, false}, /* the multicast table is empty */
		{VMXNET3_RXM_ALL_MULTI, false, false, true, false},
		{VMXNET3_RXM_UCAST | VMXNET3_RXM_BCAST, true, false, false, true},
		{VMXNET3_RXM_PROMISC, true, true, true, true},
	};
	struct guest *g = *state;

	/* A driver sets its mode last: at first it receives nothing. */
	g->shared->rx_filter.mode = 0;
	assert_int_equal(guest_activate(g), 0);
	assert_false(hears(g, station));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_mode(g, cases[i].mode);
		assert_int_equal(hears(g, station), cases[i].station);
		assert_int_equal(hears(g, stranger), cases[i].stranger);
		assert_int_equal(hears(g, group), cases[i].group);
		assert_int_equal(hears(g, broadcast), cases[i].broadcast);
	}
	/* A change takes effect only with its command. */
	g->shared->rx_filter.mode = 0;
	assert_true(hears(g, stranger));
}

static void test_asks_for_multicast(void **state)
{
	struct guest *g = *state;

	assert_false(vnic_device_wants_multicast(g->dev));
	assert_int_equal(guest_activate(g), 0);
	assert_true(vnic_device_wants_multicast(g->dev)); /* promiscuous */
	set_mode(g, VMXNET3_RXM_UCAST | VMXNET3_RXM_BCAST);
	assert_false(vnic_device_wants_multicast(g->dev));
	set_mode(g, VMXNET3_RXM_MCAST);
	assert_true(vnic_device_wants_multicast(g->dev));
	set_mode(g, VMXNET3_RXM_ALL_MULTI);
	assert_true(vnic_device_wants_multicast(g->dev));
	guest_command(g, CMD(QUIESCE_DEV));
	assert_false(vnic_device_wants_multicast(g->dev));
}

static void test_multicast_table_selects_groups(void **state)
{
	struct guest *g = *state;
	uint64_t addr = guest_alloc(g, GUEST_IN_HIGH, 0xffff);
	struct vmxnet3_rx_filter_conf *filter = &g->shared->rx_filter;

	assert_int_equal(guest_activate(g), 0);
	set_mode(g, VMXNET3_RXM_MCAST);
	memcpy(guest_at(g, addr), station, 6);
	memcpy(guest_at(g, addr + 6), group, 6);
	filter->multicast_addr = addr;
	filter->multicast_len = 12;
	assert_false(hears(g, group));
	assert_int_equal(guest_command(g, CMD(UPDATE_MAC_FILTERS)), 0);
	assert_true(hears(g, group));
	assert_false(hears(g, other_group));
	assert_false(hears(g, station)); /* a table of multicast addresses */
	/* The driver may free its table after the command. */
	memcpy(guest_at(g, addr + 6), other_group, 6);
	assert_true(hears(g, group));
	assert_false(hears(g, other_group));

	/* More addresses than the device stores: it receives all multicast frames. */
	filter->multicast_len = 0xffff / 6 * 6;
	assert_int_equal(guest_command(g, CMD(UPDATE_MAC_FILTERS)), 0);
	assert_true(hears(g, group));
	filter->multicast_len = 0;
	filter->multicast_addr = 0;
	assert_int_equal(guest_command(g, CMD(UPDATE_MAC_FILTERS)), 0);
	assert_false(hears(g, group));
	/* A table across two memory regions; then a table outside all regions. */
	filter->multicast_addr = GUEST_HIGHER - 9;
	filter->multicast_len = 12;
	memcpy(guest_at(g, GUEST_HIGHER - 9), station, 6);
	memcpy(guest_at(g, GUEST_HIGHER - 3), group, 3);
	memcpy(guest_at(g, GUEST_HIGHER), group + 3, 3);
	assert_int_equal(guest_command(g, CMD(UPDATE_MAC_FILTERS)), 0);
	assert_true(hears(g, group));
	filter->multicast_addr = GUEST_HIGHER + GUEST_REGION - 9;
	assert_int_equal(guest_command(g, CMD(UPDATE_MAC_FILTERS)), 1);
	assert_true(hears(g, group));
	/* A NIC cannot be activated with such a table, either. */
	assert_int_equal(guest_activate(g), 1);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_DOWN);
}

static void test_vlan_table_selects_tagged_frames(void **state)
{
	struct guest *g = *state;
	uint32_t *table = g->shared->rx_filter.vlan;

	table[0] = 1;
	assert_int_equal(guest_activate(g), 0);
	set_mode(g, VMXNET3_RXM_UCAST | VMXNET3_RXM_BCAST);
	assert_true(hears(g, station));
	assert_true(hears_vlan(g, station, 0)); /* a priority tag with VLAN ID 0 */
	assert_false(hears_vlan(g, station, 7));
	assert_false(hears_vlan(g, broadcast, 4094));
	table[0] |= 1u << 7;
	table[4094 / 32] |= 1u << 4094 % 32;
	assert_false(hears_vlan(g, station, 7));
	assert_int_equal(guest_command(g, CMD(UPDATE_VLAN_FILTERS)), 0);
	assert_true(hears_vlan(g, station, 7));
	assert_false(hears_vlan(g, stranger, 7));
	assert_false(hears_vlan(g, station, 8));
	assert_true(hears_vlan(g, broadcast, 4094));
	/* In promiscuous mode Linux clears the table. */
	memset(table, 0, VMXNET3_VFT_SIZE * sizeof(*table));
	assert_int_equal(guest_command(g, CMD(UPDATE_VLAN_FILTERS)), 0);
	set_mode(g, VMXNET3_RXM_PROMISC);
	assert_true(hears_vlan(g, stranger, 9));
}

static void test_new_mac_selects_received_frames(void **state)
{
	struct guest *g = *state;

	assert_int_equal(guest_activate(g), 0);
	set_mode(g, VMXNET3_RXM_UCAST);
	guest_write(g, VMXNET3_REG_MACL, 0x33221102);
	assert_true(hears(g, station)); /* not before both halves of the address are written */
	guest_write(g, VMXNET3_REG_MACH, 0x6644);
	assert_int_equal(guest_read(g, VMXNET3_REG_MACL), 0x33221102);
	assert_int_equal(guest_read(g, VMXNET3_REG_MACH), 0x6644);
	assert_false(hears(g, station));
	assert_true(hears(g, stranger));
	assert_int_equal(guest_command(g, CMD(GET_PERM_MAC_HI)), 0x5544);
	/* No station's. */
	guest_write(g, VMXNET3_REG_MACL, 0x005e0001);
	guest_write(g, VMXNET3_REG_MACH, 0x0101);
	assert_int_equal(guest_read(g, VMXNET3_REG_MACL), 0x33221102);
	guest_command(g, CMD(RESET_DEV));
	assert_int_equal(guest_read(g, VMXNET3_REG_MACH), 0x5544);
}

/* --- Statistics */

static void receive(struct guest *g, uint32_t flow, const uint8_t mac[6], uint32_t len)
{
	uint8_t data[GUEST_BUFFER] = {0};

	memcpy(data, mac, 6);
	assert_int_equal(vnic_device_rx(g->dev, flow, data, len), 0);
}

static void transmit(struct guest *g, uint32_t queue, const uint8_t mac[6], uint32_t len)
{
	uint64_t addr = guest_alloc(g, GUEST_IN_LOW, len);
	struct vnic_tx_frame frame;

	memcpy(guest_at(g, addr), mac, 6);
	guest_post_tx(&g->tx[queue], addr, len, VMXNET3_TXD_EOP | VMXNET3_TXD_CQ);
	assert_int_equal(vnic_device_tx(g->dev, queue, &frame, 1), 1);
	vnic_device_tx_done(g->dev, queue, 1);
}

static void test_statistics_are_written_on_command(void **state)
{
	struct guest *g = *state;
	const uint64_t *rx = g->rx[1].conf->stats, *tx = g->tx[1].conf->stats;

	assert_int_equal(guest_activate(g), 0);
	receive(g, 1, station, 100);
	receive(g, 1, station, 60);
	receive(g, 1, group, 70);
	receive(g, 1, broadcast, 80);
	receive(g, 0, broadcast, 80);
	assert_int_equal(vnic_device_rx(g->dev, 1, (uint8_t[1000]){0}, 1000), -EMSGSIZE);
	transmit(g, 1, station, 61);
	transmit(g, 1, group, 62);
	transmit(g, 1, broadcast, 63);
	assert_int_equal(rx[UPT1_RX_UCAST], 0); /* not before the driver's command */
	assert_int_equal(guest_command(g, CMD(GET_STATS)), 0);
	assert_int_equal(rx[UPT1_RX_UCAST], 2);
	assert_int_equal(rx[UPT1_RX_UCAST_BYTES], 160);
	assert_int_equal(rx[UPT1_RX_MCAST], 1);
	assert_int_equal(rx[UPT1_RX_MCAST_BYTES], 70);
	assert_int_equal(rx[UPT1_RX_BCAST], 1);
	assert_int_equal(rx[UPT1_RX_BCAST_BYTES], 80);
	assert_int_equal(rx[UPT1_RX_ERROR], 1);
	assert_int_equal(tx[UPT1_TX_UCAST_BYTES], 61);
	assert_int_equal(tx[UPT1_TX_MCAST_BYTES], 62);
	assert_int_equal(tx[UPT1_TX_BCAST], 1);
	assert_int_equal(tx[UPT1_TX_BCAST_BYTES], 63);
	assert_int_equal(g->rx[0].conf->stats[UPT1_RX_BCAST], 1);
	assert_int_equal(g->tx[0].conf->stats[UPT1_TX_UCAST], 0);
	for (uint32_t i = heard(g); i < 2 * (GUEST_RING - 1) + 10; i++)
		if (vnic_device_rx(g->dev, 1, (uint8_t[60]){0}, 60) == -ENOBUFS)
			vnic_device_rx_give_up(g->dev, false);
	guest_command(g, CMD(GET_STATS));
	assert_true(rx[UPT1_RX_OUT_OF_BUF] > 0);
	/* Each activation starts at zero. */
	assert_int_equal(guest_activate(g), 0);
	guest_command(g, CMD(GET_STATS));
	assert_int_equal(rx[UPT1_RX_UCAST], 0);
}

/* Linux and DPDK read them after QUIESCE_DEV, too; DPDK adds them up before the next activation. */
static void test_statistics_are_readable_when_the_device_has_stopped(void **state)
{
	struct guest *g = *state;
	const uint64_t *rx = g->rx[1].conf->stats, *tx = g->tx[1].conf->stats;

	assert_int_equal(guest_activate(g), 0);
	receive(g, 1, station, 100);
	transmit(g, 1, station, 61);
	transmit(g, 1, station, 61);
	guest_command(g, CMD(QUIESCE_DEV));
	guest_command(g, CMD(RESET_DEV));
	assert_int_equal(guest_command(g, CMD(GET_STATS)), 0);
	assert_int_equal(rx[UPT1_RX_UCAST], 1);
	assert_int_equal(tx[UPT1_TX_UCAST], 2);
	assert_int_equal(tx[UPT1_TX_UCAST_BYTES], 122);
}

static void test_statistics_tell_of_the_frames_before_an_error(void **state)
{
	struct guest *g = *state;
	struct vnic_tx_frame frame;

	assert_int_equal(guest_activate(g), 0);
	transmit(g, 1, station, 61);
	guest_post_tx(&g->tx[0], 0, 60, VMXNET3_TXD_EOP); /* no memory of the driver */
	assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 0);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_BROKEN);
	assert_int_equal(guest_command(g, CMD(GET_STATS)), 0);
	assert_int_equal(g->tx[1].conf->stats[UPT1_TX_UCAST], 1);
}

static void test_statistics_are_not_written_without_bus_mastering(void **state)
{
	struct guest *g = *state;

	assert_int_equal(guest_activate(g), 0);
	transmit(g, 1, station, 61);
	vnic_device_set_bus_master(g->dev, false);
	guest_command(g, CMD(QUIESCE_DEV));
	assert_int_equal(g->tx[1].conf->stats[UPT1_TX_UCAST], 0);
}

/* --- Link */

static void test_link_down_stops_frames_and_raises_event(void **state)
{
	struct guest *g = *state;
	uint32_t event_vector = g->shared->intr.event_vector;
	struct vnic_tx_frame frame;
	uint8_t data[60] = {0};

	vnic_device_set_link(g->dev, 40000); /* no driver to tell yet */
	assert_int_equal(guest_activate(g), 0);
	assert_int_equal(g->shared->ecr, 0);
	assert_int_equal(guest_command(g, CMD(GET_LINK)), 40000u << 16 | 1);
	vnic_device_set_link(g->dev, 0);
	assert_int_equal(g->shared->ecr, VMXNET3_ECR_LINK);
	assert_int_equal(guest_read(g, VMXNET3_REG_ECR), VMXNET3_ECR_LINK);
	assert_int_equal(g->interrupts[event_vector], 1);
	guest_write(g, VMXNET3_REG_ECR, VMXNET3_ECR_LINK);
	assert_int_equal(g->shared->ecr, 0);
	assert_int_equal(guest_command(g, CMD(GET_LINK)), 0);

	/* No frame is received; frames sent are completed and dropped. */
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), -ENETDOWN);
	for (uint32_t i = 0; i < 100; i++) {
		guest_post_tx(&g->tx[0], GUEST_LOW, 60, VMXNET3_TXD_EOP | VMXNET3_TXD_CQ);
		assert_int_equal(vnic_device_tx(g->dev, 0, &frame, 1), 0);
		assert_int_equal(guest_tx_completed(&g->tx[0]), i % GUEST_RING);
	}
	assert_int_equal(counters(g)[VNIC_LINK_DOWN], 101);
	guest_command(g, CMD(GET_STATS));
	assert_int_equal(g->tx[0].conf->stats[UPT1_TX_DISCARD], 100);
	vnic_device_set_link(g->dev, 10000);
	vnic_device_set_link(g->dev, 10000);
	assert_int_equal(g->shared->ecr, VMXNET3_ECR_LINK);
	/* The vector has masked itself; when unmasked, it raises the pending interrupt. */
	assert_int_equal(g->interrupts[event_vector], 1);
	guest_mask(g, event_vector, 0);
	assert_int_equal(g->interrupts[event_vector], 2);
	assert_int_equal(vnic_device_rx(g->dev, 0, data, sizeof(data)), 0);
}

/* The hypervisor may be copying the driver's memory. */
static void test_link_event_waits_while_the_device_is_paused(void **state)
{
	struct guest *g = *state;
	const uint32_t event_vector = g->shared->intr.event_vector;

	vnic_device_set_link(g->dev, 10000);
	assert_int_equal(guest_activate(g), 0);
	vnic_device_pause(g->dev);
	vnic_device_set_link(g->dev, 0);
	vnic_device_set_bus_master(g->dev, false);
	vnic_device_set_bus_master(g->dev, true);
	assert_int_equal(g->shared->ecr, 0);
	assert_int_equal(g->interrupts[event_vector], 0);
	vnic_device_resume(g->dev);
	assert_int_equal(g->shared->ecr, VMXNET3_ECR_LINK);
	assert_int_equal(g->interrupts[event_vector], 1);
	guest_write(g, VMXNET3_REG_ECR, VMXNET3_ECR_LINK);

	/* The driver has no change to learn of. */
	vnic_device_pause(g->dev);
	vnic_device_set_link(g->dev, 10000);
	vnic_device_set_link(g->dev, 0);
	vnic_device_resume(g->dev);
	assert_int_equal(g->shared->ecr, 0);
}

/* The hypervisor takes the rings from a paused NIC, which another device then replaces. */
static void test_error_of_a_paused_device_moves(void **state)
{
	struct guest *g = *state;
	const struct vnic_region rest[2] = {g->regions[GUEST_IN_LOW], g->regions[GUEST_IN_HIGHER]};
	uint8_t *stream;
	size_t length;

	assert_int_equal(guest_activate(g), 0);
	vnic_device_pause(g->dev);
	assert_int_equal(vnic_device_set_regions(g->dev, rest, 2), 0);
	assert_int_equal(g->shared->ecr, 0);
	guest_save(g, &stream, &length);
	guest_restore(g, stream, length);
	free(stream);
	assert_int_equal(vnic_device_state(g->dev), VNIC_DEVICE_BROKEN);
	assert_int_equal(g->shared->ecr, VMXNET3_ECR_TQERR);
	assert_int_equal(g->tx[0].conf->status.stopped, 1);
	assert_int_equal(g->interrupts[g->shared->intr.event_vector], 1);
}

/* --- Interrupts */

/*
 * A stock driver does not look again after it has unmasked: the device remembers missed interrupts.
 */
static void test_unmasking_raises_a_missed_interrupt(void **state)
{
	struct guest *g = *state;
	uint32_t vector = g->rx[0].conf->vector;

	assert_int_equal(guest_activate(g), 0);
	for (uint32_t i = 0; i < 3; i++) {
		receive(g, 0, station, 60);
		vnic_device_flush(g->dev);
	}
	assert_int_equal(g->interrupts[vector], 1);
	guest_mask(g, vector, 0);
	assert_int_equal(g->interrupts[vector], 2);
	/* That interrupt masked the vector again; no event followed. */
	guest_mask(g, vector, 0);
	assert_int_equal(g->interrupts[vector], 2);
	guest_mask(g, vector, 1);
	receive(g, 0, station, 60);
	vnic_device_flush(g->dev);
	guest_command(g, CMD(RESET_DEV));
	guest_mask(g, vector, 0);
	assert_int_equal(g->interrupts[vector], 2);
}

/* In active mode the driver masks: the device interrupts until then. */
static void test_active_mode_interrupts_until_masked(void **state)
{
	struct guest *g = *state;
	uint32_t vector = g->rx[0].conf->vector;

	g->shared->intr.auto_mask = 0;
	assert_int_equal(guest_activate(g), 0);
	for (uint32_t i = 0; i < 3; i++) {
		receive(g, 0, station, 60);
		vnic_device_flush(g->dev);
	}
	assert_int_equal(g->interrupts[vector], 3);
	guest_mask(g, vector, 1);
	receive(g, 0, station, 60);
	vnic_device_flush(g->dev);
	assert_int_equal(g->interrupts[vector], 3);
	guest_mask(g, vector, 0);
	assert_int_equal(g->interrupts[vector], 4);
}

/* Moderation levels from none to adaptive, and undefined ones; the device need not follow them. */
static void test_every_moderation_level_is_accepted(void **state)
{
	struct guest *g = *state;

	for (uint8_t level = 0; level <= 9; level++) {
		memset(g->shared->intr.moderation, level, sizeof(g->shared->intr.moderation));
		assert_int_equal(guest_activate(g), 0);
		assert_int_equal(guest_command(g, CMD(UPDATE_IML)), 0);
	}
	receive(g, 0, station, 60);
	receive(g, 0, station, 60);
	vnic_device_flush(g->dev);
	assert_int_equal(g->interrupts[g->rx[0].conf->vector], 1);
}

/* A stopped queue starts with a clear status, whatever the driver left in it. */
static void test_activation_clears_the_queue_status(void **state)
{
	struct guest *g = *state;

	g->tx[1].conf->status = (struct vmxnet3_queue_status){.stopped = 1, .error = 5};
	g->rx[1].conf->status = (struct vmxnet3_queue_status){.stopped = 1, .error = 5};
	assert_int_equal(guest_activate(g), 0);
	assert_int_equal(g->tx[1].conf->status.stopped, 0);
	assert_int_equal(g->rx[1].conf->status.stopped, 0);
	assert_int_equal(g->rx[1].conf->status.error, 0);
}

/* A reset while frames are shown, completed and waiting in the ring. */
static void test_reset_in_traffic_leaves_a_working_nic(void **state)
{
	struct guest *g = *state;
	struct vnic_tx_frame frames[8];

	assert_int_equal(guest_activate(g), 0);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 20; i++)
			guest_post_tx(&g->tx[0], GUEST_LOW, 60, VMXNET3_TXD_EOP | VMXNET3_TXD_CQ);
		receive(g, 0, station, 60);
		assert_int_equal(vnic_device_tx(g->dev, 0, frames, 8), 8);
		vnic_device_tx_done(g->dev, 0, 3);
		assert_int_equal(guest_command(g, CMD(RESET_DEV)), 0);
		/* A completion after the reset finds no active NIC. */
		vnic_device_tx_done(g->dev, 0, 5);
		vnic_device_flush(g->dev);
		assert_int_equal(vnic_device_rx(g->dev, 0, (uint8_t[60]){0}, 60), -ENETDOWN);
		assert_int_equal(guest_read(g, VMXNET3_REG_DSAL), 0);
		assert_int_equal(guest_command(g, CMD(ACTIVATE_DEV)), 1);

		guest_ring_reset(&g->tx[0].ring);
		guest_ring_reset(&g->tx[0].comp);
		for (uint32_t i = 0; i < 2; i++) {
			guest_ring_reset(&g->rx[i].ring[0]);
			guest_ring_reset(&g->rx[i].comp);
			guest_post_rx(g, &g->rx[i], 0, 256);
		}
		assert_int_equal(guest_activate(g), 0);
		assert_int_equal(vnic_device_tx(g->dev, 0, frames, 8), 0);
		transmit(g, 0, station, 60);
		assert_int_equal(guest_tx_completed(&g->tx[0]), 0);
		receive(g, 1, station, 60);
		assert_non_null(guest_received(&g->rx[1]));
	}
}

#define GUEST_TEST(f) cmocka_unit_test_setup_teardown(f, create, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GUEST_TEST(test_revisions_1_to_9_can_be_selected),
		GUEST_TEST(test_commands_need_revision_3),
		GUEST_TEST(test_commands_fail_before_their_revision),
		GUEST_TEST(test_driver_gets_only_offered_capabilities),
		GUEST_TEST(test_power_on_leaves_nothing_of_the_former_driver),
		GUEST_TEST(test_coalescing_schemes_are_checked),
		GUEST_TEST(test_query_commands_have_their_answers),
		GUEST_TEST(test_unknown_commands_fail),
		GUEST_TEST(test_shared_area_commands_fail_while_down),
		GUEST_TEST(test_receive_mode_selects_frames),
		GUEST_TEST(test_asks_for_multicast),
		GUEST_TEST(test_multicast_table_selects_groups),
		GUEST_TEST(test_vlan_table_selects_tagged_frames),
		GUEST_TEST(test_new_mac_selects_received_frames),
		GUEST_TEST(test_statistics_are_written_on_command),
		GUEST_TEST(test_statistics_are_readable_when_the_device_has_stopped),
		GUEST_TEST(test_statistics_tell_of_the_frames_before_an_error),
		GUEST_TEST(test_statistics_are_not_written_without_bus_mastering),
		GUEST_TEST(test_link_down_stops_frames_and_raises_event),
		GUEST_TEST(test_link_event_waits_while_the_device_is_paused),
		GUEST_TEST(test_error_of_a_paused_device_moves),
		GUEST_TEST(test_unmasking_raises_a_missed_interrupt),
		GUEST_TEST(test_active_mode_interrupts_until_masked),
		GUEST_TEST(test_every_moderation_level_is_accepted),
		GUEST_TEST(test_activation_clears_the_queue_status),
		GUEST_TEST(test_reset_in_traffic_leaves_a_working_nic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
