/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registers of the PVRDMA device, its shared region, activation, interrupts and reset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "pvrdma_driver.h"

static int open_guest(void **state)
{
	static struct guest g;

	guest_open(&g, &(struct guest_attr){.id = 1});
	*state = &g;
	return 0;
}

static int close_guest(void **state)
{
	guest_close(*state);
	return 0;
}

static struct pv_shared_region *region(const struct guest *g)
{
	return guest_at(g, g->dsr);
}

static void test_writes_to_read_only_registers_are_ignored(void **state)
{
	struct guest *g = *state;

	assert_int_equal(guest_read(g, PV_REG_VERSION), 20);
	assert_int_equal(guest_read(g, PV_REG_MACL), 0x00000002);
	assert_int_equal(guest_read(g, PV_REG_MACH), 0x0101);
	guest_write(g, PV_REG_VERSION, 7);
	guest_write(g, PV_REG_MACL, 7);
	guest_write(g, PV_REG_ERR, 7);
	guest_write(g, PV_REG_ICR, 7);
	assert_int_equal(guest_read(g, PV_REG_VERSION), 20);
	assert_int_equal(guest_read(g, PV_REG_MACL), 0x00000002);
	assert_int_equal(guest_read(g, PV_REG_ERR), 0);
	assert_int_equal(guest_read(g, PV_REG_ICR), 0);
}

static void test_write_only_registers_read_as_zero(void **state)
{
	struct guest *g = *state;

	for (uint32_t reg = PV_REG_DSRLOW; reg <= PV_REG_REQUEST; reg += 4)
		assert_int_equal(guest_read(g, reg), 0);
}

static void test_accesses_to_missing_registers_return_einval(void **state)
{
	struct guest *g = *state;
	uint32_t value = 1;
	static const struct {
		uint32_t bar, offset;
	} missing[] = {
		{0, 0},           {PV_BAR_REG, 0x28},
		{PV_BAR_REG, 2},  {PV_BAR_REG, UINT32_MAX},
		{3, 0},           {PV_BAR_UAR, 2},
		{PV_BAR_UAR, 12}, {PV_BAR_UAR, PVRDMA_UAR_SIZE},
		{UINT32_MAX, 4},
	};

	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
		assert_int_equal(pvrdma_reg_write(g->dev, 0, missing[i].bar, missing[i].offset, 1),
				 -EINVAL);
	assert_int_equal(pvrdma_reg_read(g->dev, PV_BAR_REG, 0x28, &value), -EINVAL);
	assert_int_equal(value, 0);
	assert_int_equal(pvrdma_reg_read(g->dev, PV_BAR_UAR, PVRDMA_UAR_SIZE, &value), -EINVAL);
	assert_int_equal(pvrdma_reg_read(g->dev, PV_BAR_UAR, 4, &value), 0);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_REGISTER_BAD],
			 sizeof(missing) / sizeof(missing[0]) + 2);
}

static void test_capabilities_fit_linux_driver_limits(void **state)
{
	struct guest *g = *state;
	const struct pv_device_caps *caps;

	guest_prepare(g);
	guest_load(g);
	assert_int_equal(guest_read(g, PV_REG_ERR), 0);
	caps = guest_caps(g);
	assert_int_equal(caps->mode, PV_MODE_ROCE);
	assert_int_equal(caps->gid_types, PV_GID_TYPE_ROCE_V2);
	assert_int_equal(caps->phys_port_cnt, 1);
	assert_true(caps->max_qp >= 4096);
	/* The driver uses 16 bits of a QP's handle, and the provider a table of max_qp & 0xffff. */
	assert_true(caps->max_qp < 0x10000);
	assert_int_equal(caps->max_uar & (caps->max_uar - 1), 0);
	assert_int_equal(caps->max_mr_size, 1 << 30);
	assert_int_equal(caps->atomic_ops, 3);
	assert_int_equal(caps->bmme_flags, 7);
	assert_memory_equal(&caps->node_guid, "\x00\x00\x00\xff\xfe\x00\x01\x01", 8);
}

static void test_roce_v1_device_reports_its_gid_type(void **state)
{
	struct guest g;

	(void)state;
	guest_open(&g, &(struct guest_attr){.id = 1, .roce_v1 = true});
	guest_prepare(&g);
	guest_load(&g);
	assert_int_equal(guest_caps(&g)->gid_types, PV_GID_TYPE_ROCE_V1);
	guest_close(&g);
}

static void test_mtu_below_the_smallest_is_refused(void **state)
{
	const struct pvrdma_attr attr = {.memory = ((struct guest *)*state)->memory, .mtu = 100};
	struct pvrdma *dev;

	assert_int_equal(pvrdma_create(&attr, &dev), -EINVAL);
}

/* Each row makes one member of the shared region bad: the device writes no capabilities. */
static void test_bad_shared_region_gets_no_capabilities(void **state)
{
	struct guest *g = *state;
	enum {
		OLD_DRIVER,
		NO_ASYNC_PAGES,
		MANY_ASYNC_PAGES,
		BAD_ASYNC_DIR,
		ODD_CQ_DIR,
		BAD_PAGE,
		BAD_TABLE,
		ONE_CQ_PAGE,
		ROWS
	};

	for (int row = 0; row < ROWS; row++) {
		struct pv_shared_region *r;
		uint64_t *table;

		guest_prepare(g);
		r = region(g);
		table = guest_at(g, *(uint64_t *)guest_at(g, g->cq_notify.dir));
		switch (row) {
		case OLD_DRIVER: r->driver_version = 19; break;
		case NO_ASYNC_PAGES: r->async_ring_pages.num_pages = 0; break;
		case MANY_ASYNC_PAGES: r->async_ring_pages.num_pages = 1000000; break;
		case BAD_ASYNC_DIR: r->async_ring_pages.pdir_dma = UINT64_C(0xfff) << 40; break;
		case ODD_CQ_DIR: r->cq_ring_pages.pdir_dma += 8; break;
		case BAD_PAGE: table[2] = GUEST_EXTRA; break;
		case BAD_TABLE: *(uint64_t *)guest_at(g, g->cq_notify.dir) = UINT64_MAX; break;
		case ONE_CQ_PAGE: r->cq_ring_pages.num_pages = 1; break;
		default: break;
		}
		guest_load(g);
		assert_int_not_equal(guest_read(g, PV_REG_ERR), 0);
		assert_int_equal(guest_caps(g)->max_qp, 0);
		guest_activate(g);
		assert_int_equal(guest_read(g, PV_REG_ERR), EINVAL);
		assert_false(pvrdma_active(g->dev));
	}
}

static void test_shared_region_outside_memory_sets_efault(void **state)
{
	struct guest *g = *state;
	static const uint64_t addresses[] = {GUEST_EXTRA, GUEST_LOW_SIZE - 100, UINT64_MAX - 100,
					     UINT64_MAX};

	guest_prepare(g);
	for (unsigned i = 0; i < 4; i++) {
		g->dsr = addresses[i];
		guest_load(g);
		assert_int_equal(guest_read(g, PV_REG_ERR), EFAULT);
	}
}

static void test_device_activates_only_with_a_loaded_region(void **state)
{
	struct guest *g = *state;

	guest_activate(g);
	assert_int_equal(guest_read(g, PV_REG_ERR), EINVAL);
	guest_write(g, PV_REG_CTL, PV_CTL_UNQUIESCE);
	assert_int_equal(guest_read(g, PV_REG_ERR), EINVAL);
	guest_prepare(g);
	guest_load(g);
	assert_false(pvrdma_active(g->dev));
	guest_activate(g);
	assert_int_equal(guest_read(g, PV_REG_ERR), 0);
	assert_true(pvrdma_active(g->dev));
	guest_activate(g);
	assert_int_equal(guest_read(g, PV_REG_ERR), 0);
	guest_write(g, PV_REG_CTL, PV_CTL_UNQUIESCE);
	assert_int_equal(guest_read(g, PV_REG_ERR), 0);
	guest_write(g, PV_REG_CTL, 99);
	assert_int_equal(guest_read(g, PV_REG_ERR), EINVAL);
	guest_write(g, PV_REG_CTL, PV_CTL_RESET);
	assert_int_equal(guest_read(g, PV_REG_ERR), 0);
	assert_false(pvrdma_active(g->dev));
	guest_activate(g);
	assert_int_equal(guest_read(g, PV_REG_ERR), EINVAL);
}

static void test_commands_before_activation_return_einval(void **state)
{
	struct guest *g = *state;
	union pv_request request = {.query_port = {.port_num = 1}};
	union pv_response response;

	guest_write(g, PV_REG_REQUEST, 0);
	assert_int_equal(guest_read(g, PV_REG_ERR), EINVAL);
	guest_prepare(g);
	guest_load(g);
	assert_int_equal(guest_command(g, PV_CMD_QUERY_PORT, &request, &response), -EINVAL);
}

static void test_mask_delays_interrupts(void **state)
{
	struct guest *g = *state;

	guest_start(g);
	guest_write(g, PV_REG_ICR, 0);
	guest_read(g, PV_REG_ICR);
	guest_write(g, PV_REG_IMR, UINT32_MAX);
	pvrdma_set_link(g->dev, false);
	pvrdma_flush(g->dev);
	pvrdma_flush(g->dev);
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], 0);
	assert_int_equal(guest_read(g, PV_REG_ICR), 0);
	guest_write(g, PV_REG_IMR, ~(1u << PV_VECTOR_ASYNC));
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], 1);
	assert_int_equal(guest_read(g, PV_REG_ICR), 1 << PV_VECTOR_ASYNC);
	assert_int_equal(guest_read(g, PV_REG_ICR), 0);
	assert_int_equal(guest_read(g, PV_REG_IMR), ~(1u << PV_VECTOR_ASYNC));
	guest_write(g, PV_REG_IMR, 0);
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], 1);
}

static void test_link_change_raises_one_port_event(void **state)
{
	struct guest *g = *state;
	union pv_request request = {.query_port = {.port_num = 1}};
	union pv_response response;
	struct pv_eqe eqe;

	guest_start(g);
	pvrdma_set_link(g->dev, false);
	pvrdma_set_link(g->dev, false);
	pvrdma_flush(g->dev);
	assert_true(guest_event(g, &eqe));
	assert_int_equal(eqe.type, 10);
	assert_int_equal(eqe.info, 1);
	assert_false(guest_event(g, &eqe));
	assert_int_equal(guest_command(g, PV_CMD_QUERY_PORT, &request, &response), 0);
	assert_int_equal(response.query_port.attrs.state, 1);
	pvrdma_set_link(g->dev, true);
	pvrdma_flush(g->dev);
	assert_true(guest_event(g, &eqe));
	assert_int_equal(eqe.type, 9);
	assert_int_equal(guest_command(g, PV_CMD_QUERY_PORT, &request, &response), 0);
	assert_int_equal(response.query_port.attrs.state, 4);
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], 2);
}

/* The driver forbids accesses to memory, as before kexec. */
static void test_link_event_waits_for_bus_mastering(void **state)
{
	struct guest *g = *state;
	struct pv_eqe eqe;

	guest_start(g);
	pvrdma_set_bus_master(g->dev, false);
	pvrdma_set_link(g->dev, false);
	pvrdma_flush(g->dev);
	assert_false(guest_event(g, &eqe));
	pvrdma_set_bus_master(g->dev, true);
	pvrdma_flush(g->dev);
	assert_true(guest_event(g, &eqe));
	assert_int_equal(eqe.type, 10);
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], 1);
	pvrdma_set_bus_master(g->dev, false);
	pvrdma_set_link(g->dev, true);
	assert_false(guest_event(g, &eqe));
	pvrdma_set_bus_master(g->dev, true);
	assert_true(guest_event(g, &eqe));
	assert_int_equal(eqe.type, 9);
	assert_false(guest_event(g, &eqe));
}

static void test_reset_gives_no_right_to_access_memory(void **state)
{
	struct guest *g = *state;

	pvrdma_set_bus_master(g->dev, false);
	guest_write(g, PV_REG_CTL, PV_CTL_RESET);
	guest_write(g, PV_REG_DSRHIGH, 0);
	assert_int_equal(guest_read(g, PV_REG_ERR), EIO);
	pvrdma_set_bus_master(g->dev, true);
	guest_start(g);
}

/* The contents of memory are copied to another host meanwhile, or the driver's processor has
 * stopped just before the driver tells its users that the port is active. */
static void test_link_event_waits_until_10_ms_after_a_pause(void **state)
{
	struct guest *g = *state;
	struct pv_eqe eqe;

	guest_start(g);
	pvrdma_pause(g->dev, g->now);
	pvrdma_set_link(g->dev, false);
	assert_false(guest_event(g, &eqe));
	g->now += 50000000;
	pvrdma_resume(g->dev, g->now);
	assert_false(guest_event(g, &eqe));
	g->now += 9999999;
	assert_false(pvrdma_poll(g->dev, g->now));
	assert_int_equal(pvrdma_next_deadline(g->dev), ++g->now);
	assert_true(pvrdma_poll(g->dev, g->now));
	assert_true(guest_event(g, &eqe));
	assert_int_equal(eqe.type, 10);
	assert_false(guest_event(g, &eqe));
}

/* --- The port follows the machine's NIC */

/* A guest whose device asks for the state of `nic`, with an MTU of 4200. */
static void open_with_nic(struct guest *g, struct pvrdma_owner *owner, struct pvrdma_nic *nic)
{
	guest_open(g, &(struct guest_attr){.id = 1, .mtu = 4200});
	guest_give_nic(g, owner, nic);
	guest_start(g);
}

static struct pv_port_attr query_port(struct guest *g)
{
	union pv_request request = {.query_port = {.port_num = 1}};
	union pv_response response;

	assert_int_equal(guest_command(g, PV_CMD_QUERY_PORT, &request, &response), 0);
	return response.query_port.attrs;
}

/* What Linux' driver does when the NIC is set up: then it tells its users that the port is active.
 */
static uint32_t unquiesce(struct guest *g)
{
	guest_write(g, PV_REG_CTL, PV_CTL_UNQUIESCE);
	return guest_read(g, PV_REG_ERR);
}

static void test_port_follows_the_nic(void **state)
{
	struct pvrdma_nic nic = {.active = true, .mtu = 1500};
	struct pvrdma_owner owner;
	struct guest g;
	struct pv_eqe eqe;

	(void)state;
	open_with_nic(&g, &owner, &nic);
	assert_int_equal(query_port(&g).state, 4);
	assert_int_equal(query_port(&g).phys_state, 5);
	nic.active = false;
	assert_int_equal(query_port(&g).state, 1);
	assert_int_equal(query_port(&g).phys_state, 3);
	assert_int_equal(unquiesce(&g), 0);
	/* The link changes while the NIC is down: the port does not change. */
	pvrdma_set_link(g.dev, false);
	pvrdma_set_link(g.dev, true);
	pvrdma_set_link(g.dev, false);
	nic.active = true;
	assert_int_equal(query_port(&g).state, 1);
	assert_int_equal(unquiesce(&g), 0);
	assert_false(guest_event(&g, &eqe));
	/* The NIC is up now, and the link follows: as the driver has told its users. */
	pvrdma_set_link(g.dev, true);
	assert_int_equal(query_port(&g).state, 4);
	assert_false(guest_event(&g, &eqe));
	guest_close(&g);
}

/* The link changes while the NIC's driver changes the MTU, which causes no event of the NIC. */
static void test_port_event_waits_until_the_nic_is_active(void **state)
{
	struct pvrdma_nic nic = {.active = true, .mtu = 1500};
	struct pvrdma_owner owner;
	struct guest g;
	struct pv_eqe eqe;

	(void)state;
	open_with_nic(&g, &owner, &nic);
	pvrdma_set_link(g.dev, false);
	assert_true(guest_event(&g, &eqe));
	assert_int_equal(eqe.type, 10);
	nic.active = false;
	pvrdma_set_link(g.dev, true);
	assert_false(pvrdma_poll(g.dev, g.now));
	assert_false(guest_event(&g, &eqe));
	nic.active = true;
	assert_true(pvrdma_poll(g.dev, g.now));
	assert_true(guest_event(&g, &eqe));
	assert_int_equal(eqe.type, 9);
	assert_false(pvrdma_poll(g.dev, g.now));
	assert_false(guest_event(&g, &eqe));
	nic.active = false;
	pvrdma_set_link(g.dev, false);
	nic.active = true;
	assert_true(pvrdma_poll(g.dev, g.now));
	assert_true(guest_event(&g, &eqe));
	assert_int_equal(eqe.type, 10);
	guest_close(&g);
}

/* Another processor of the guest reads ERR for its command after the UNQUIESCE. */
static void test_unquiesce_with_the_link_down_fails_no_command(void **state)
{
	struct guest *g = *state;
	union pv_request request = {
		.query_port = {.hdr = {.cmd = PV_CMD_QUERY_PORT}, .port_num = 1}};

	guest_start(g);
	pvrdma_set_link(g->dev, false);
	memcpy(guest_at(g, g->request), &request, sizeof(request));
	guest_write(g, PV_REG_REQUEST, 0);
	guest_write(g, PV_REG_CTL, PV_CTL_UNQUIESCE);
	assert_int_equal(guest_read(g, PV_REG_ERR), 0);
}

/* The driver tells its users first that the port is active. */
static void test_link_down_at_unquiesce_is_reported_10_ms_later(void **state)
{
	struct guest *g = *state;
	struct pv_eqe eqe;

	guest_start(g);
	pvrdma_set_link(g->dev, false);
	assert_true(guest_event(g, &eqe));
	assert_int_equal(unquiesce(g), 0);
	g->now += 9999999;
	assert_false(pvrdma_poll(g->dev, g->now));
	assert_false(guest_event(g, &eqe));
	assert_int_equal(pvrdma_next_deadline(g->dev), ++g->now);
	assert_true(pvrdma_poll(g->dev, g->now));
	assert_true(guest_event(g, &eqe));
	assert_int_equal(eqe.type, 10);
	assert_true(pvrdma_next_deadline(g->dev) == URXE_NEVER);
	pvrdma_set_link(g->dev, true);
	assert_true(guest_event(g, &eqe));
	assert_int_equal(eqe.type, 9);
	assert_false(guest_event(g, &eqe));
}

/* The driver has asked for the port's state while the link was down. */
static void test_return_of_a_link_down_at_activation_is_reported(void **state)
{
	struct guest *g = *state;
	struct pv_eqe eqe;

	pvrdma_set_link(g->dev, false);
	guest_start(g);
	assert_int_equal(query_port(g).state, 1);
	pvrdma_set_bus_master(g->dev, false);
	pvrdma_set_link(g->dev, true);
	pvrdma_set_bus_master(g->dev, true);
	assert_true(guest_event(g, &eqe));
	assert_int_equal(eqe.type, 9);
	assert_false(guest_event(g, &eqe));
}

static void test_active_mtu_follows_the_nic(void **state)
{
	static const struct {
		uint32_t mtu, active;
	} rows[] = {{1500, URXE_MTU_1024}, {4200, URXE_MTU_4096}, {9000, URXE_MTU_4096},
		    {2500, URXE_MTU_2048}, {576, URXE_MTU_256},   {68, URXE_MTU_256}};
	struct pvrdma_nic nic = {.active = true};
	struct pvrdma_owner owner;
	struct guest g;

	(void)state;
	open_with_nic(&g, &owner, &nic);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		nic.mtu = rows[i].mtu;
		assert_int_equal(query_port(&g).active_mtu, rows[i].active);
	}
	nic = (struct pvrdma_nic){0};
	assert_int_equal(query_port(&g).active_mtu, URXE_MTU_4096);
	guest_close(&g);
}

/* As on a wire: a path MTU above the port's is an invalid attribute, whatever the device allows. */
static void test_path_mtu_above_the_active_one_is_refused(void **state)
{
	const uint32_t mask = URXE_QP_STATE | URXE_QP_AV | URXE_QP_PATH_MTU | URXE_QP_DEST_QPN |
			      URXE_QP_RQ_PSN | URXE_QP_MAX_DEST_RD_ATOMIC | URXE_QP_MIN_RNR_TIMER;
	struct pv_qp_attr attrs = {.qp_state = URXE_QPS_INIT, .port_num = 1};
	struct pvrdma_nic nic = {.active = true, .mtu = 1500};
	struct pvrdma_owner owner;
	struct guest g;
	struct cq cq;
	struct qp qp;

	(void)state;
	open_with_nic(&g, &owner, &nic);
	cq_open(&g, &cq, 16);
	qp_open(&g, &qp, &(struct qp_attr){.type = PV_QPT_RC, .send_cq = &cq, .recv_cq = &cq});
	assert_int_equal(
		qp_modify(&g, &qp, &attrs,
			  URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT | URXE_QP_ACCESS_FLAGS),
		0);
	attrs.qp_state = URXE_QPS_RTR;
	attrs.ah_attr = (struct pv_ah_attr){.dgid = {[10] = 0xff, 0xff, 10, 0, 0, 2},
					    .ah_flags = 1,
					    .port_num = 1,
					    .hop_limit = 64};
	for (attrs.path_mtu = URXE_MTU_2048; attrs.path_mtu < 40; attrs.path_mtu++)
		assert_int_equal(qp_modify(&g, &qp, &attrs, mask), -EINVAL);
	nic.mtu = 4200;
	attrs.path_mtu = URXE_MTU_4096;
	assert_int_equal(qp_modify(&g, &qp, &attrs, mask), 0);
	qp_close(&g, &qp);
	cq_close(&g, &cq);
	guest_close(&g);
}

/* The driver's arithmetic on a number of slots that is no power of two, over several rounds. */
static void test_event_ring_wraps(void **state)
{
	struct guest *g = *state;
	struct pv_eqe eqe;

	guest_start(g);
	for (unsigned i = 0; i < 5000; i++) {
		pvrdma_set_link(g->dev, i % 2);
		assert_true(guest_event(g, &eqe));
		assert_int_equal(eqe.type, i % 2 ? 9 : 10);
		assert_false(guest_event(g, &eqe));
	}
}

static void test_full_event_ring_counts_lost_events(void **state)
{
	struct guest *g = *state;
	struct pv_eqe eqe;
	unsigned n = 0;

	guest_start(g);
	for (unsigned i = 0; i < 600; i++)
		pvrdma_set_link(g->dev, i % 2);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_EVENTS], 512);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_EVENTS_LOST], 88);
	while (guest_event(g, &eqe))
		assert_int_equal(eqe.type, n++ % 2 ? 9 : 10);
	assert_int_equal(n, 512);
	pvrdma_set_link(g->dev, false);
	assert_true(guest_event(g, &eqe));
}

static void test_garbage_event_index_loses_events_only(void **state)
{
	struct guest *g = *state;
	struct pv_ring_state *ring;

	guest_start(g);
	ring = guest_at(g, g->async.addr[0]);
	ring->rx.cons_head = 0xdeadbeef;
	pvrdma_set_link(g->dev, false);
	pvrdma_flush(g->dev);
	assert_int_equal(ring->rx.prod_tail, 0);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_EVENTS_LOST], 1);
	assert_int_equal(g->interrupts[PV_VECTOR_ASYNC], 0);
	ring->rx.cons_head = 0;
	pvrdma_set_link(g->dev, true);
	assert_int_equal(ring->rx.prod_tail, 1);
}

static void test_reset_forgets_objects(void **state)
{
	struct guest *g = *state;
	struct cq cq;
	struct qp qp;

	for (unsigned round = 0; round < 3; round++) {
		guest_start(g);
		cq_open(g, &cq, 16);
		qp_open(g, &qp,
			&(struct qp_attr){.type = PV_QPT_RC, .send_cq = &cq, .recv_cq = &cq});
		guest_write(g, PV_REG_CTL, PV_CTL_RESET);
		assert_int_equal(guest_read(g, PV_REG_IMR), UINT32_MAX);
		assert_true(pvrdma_next_deadline(g->dev) == URXE_NEVER);
		guest_pages_free(&cq.pages);
		guest_pages_free(&qp.pages);
	}
}

/* A new kernel loads its region without a reset (kexec). */
static void test_region_is_loaded_again(void **state)
{
	struct guest *g = *state;
	struct cq cq;

	guest_start(g);
	cq_open(g, &cq, 16);
	guest_prepare(g);
	guest_load(g);
	assert_int_equal(guest_read(g, PV_REG_ERR), 0);
	assert_false(pvrdma_active(g->dev));
	guest_activate(g);
	assert_int_equal(guest_handle_command(g, PV_CMD_DESTROY_CQ, cq.handle), -ENOENT);
	guest_pages_free(&cq.pages);
}

static void test_device_wants_rocev1_and_rocev2_frames_only(void **state)
{
	struct guest *g = *state;
	uint8_t v1[60] = {2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 0x89, 0x15};
	uint8_t v2[60] = {2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 0x08, 0x00, 0x45};
	uint8_t vlan[60] = {2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 0x81, 0x00, 0, 5, 0x89, 0x15};

	v2[23] = 17;
	v2[36] = 4791 >> 8;
	v2[37] = 4791 & 0xff;
	assert_false(pvrdma_wants(g->dev, v2, sizeof(v2)));
	guest_start(g);
	assert_true(pvrdma_wants(g->dev, v1, sizeof(v1)));
	assert_true(pvrdma_wants(g->dev, v2, sizeof(v2)));
	assert_true(pvrdma_wants(g->dev, vlan, sizeof(vlan)));
	for (uint32_t len = 0; len < 14; len++)
		assert_false(pvrdma_wants(g->dev, v1, len));
	for (uint32_t len = 0; len < 38; len++)
		assert_false(pvrdma_wants(g->dev, v2, len));
	v2[37]++;
	assert_false(pvrdma_wants(g->dev, v2, sizeof(v2)));
	v2[37]--;
	v2[23] = 6;
	assert_false(pvrdma_wants(g->dev, v2, sizeof(v2)));
	v2[23] = 17;
	v2[21] = 0xb9; /* a later fragment: the payload stands where the first one has ports */
	assert_false(pvrdma_wants(g->dev, v2, sizeof(v2)));
	v2[21] = 0;
	v2[20] = 0x20; /* the first fragment */
	assert_false(pvrdma_wants(g->dev, v2, sizeof(v2)));
	v2[20] = 0x40; /* may not be fragmented */
	assert_true(pvrdma_wants(g->dev, v2, sizeof(v2)));
	v1[5]++;
	assert_false(pvrdma_wants(g->dev, v1, sizeof(v1)));
	v1[0] = 0xff;
	assert_false(pvrdma_wants(g->dev, v1, sizeof(v1)));
	pvrdma_input(g->dev, 0, &(struct urxe_frame){.data = v1, .len = sizeof(v1)}, 1);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_RX_UNWANTED], 1);
	assert_int_equal(pvrdma_counters(g->dev)[PVRDMA_RX_FRAMES], 0);
}

static void test_each_counter_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < PVRDMA_COUNTERS; i++)
		assert_true(strlen(pvrdma_counter_name(i)) > 2);
	assert_string_equal(pvrdma_counter_name(PVRDMA_CQ_OVERFLOWS), "cq_overflows");
}

#define GUEST_TEST(test) cmocka_unit_test_setup_teardown(test, open_guest, close_guest)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GUEST_TEST(test_writes_to_read_only_registers_are_ignored),
		GUEST_TEST(test_write_only_registers_read_as_zero),
		GUEST_TEST(test_accesses_to_missing_registers_return_einval),
		GUEST_TEST(test_capabilities_fit_linux_driver_limits),
		GUEST_TEST(test_roce_v1_device_reports_its_gid_type),
		GUEST_TEST(test_mtu_below_the_smallest_is_refused),
		GUEST_TEST(test_bad_shared_region_gets_no_capabilities),
		GUEST_TEST(test_shared_region_outside_memory_sets_efault),
		GUEST_TEST(test_device_activates_only_with_a_loaded_region),
		GUEST_TEST(test_commands_before_activation_return_einval),
		GUEST_TEST(test_mask_delays_interrupts),
		GUEST_TEST(test_link_change_raises_one_port_event),
		GUEST_TEST(test_link_event_waits_for_bus_mastering),
		GUEST_TEST(test_reset_gives_no_right_to_access_memory),
		GUEST_TEST(test_link_event_waits_until_10_ms_after_a_pause),
		cmocka_unit_test(test_port_follows_the_nic),
		cmocka_unit_test(test_port_event_waits_until_the_nic_is_active),
		GUEST_TEST(test_unquiesce_with_the_link_down_fails_no_command),
		GUEST_TEST(test_link_down_at_unquiesce_is_reported_10_ms_later),
		GUEST_TEST(test_return_of_a_link_down_at_activation_is_reported),
		cmocka_unit_test(test_active_mtu_follows_the_nic),
		cmocka_unit_test(test_path_mtu_above_the_active_one_is_refused),
		GUEST_TEST(test_event_ring_wraps),
		GUEST_TEST(test_full_event_ring_counts_lost_events),
		GUEST_TEST(test_garbage_event_index_loses_events_only),
		GUEST_TEST(test_reset_forgets_objects),
		GUEST_TEST(test_region_is_loaded_again),
		GUEST_TEST(test_device_wants_rocev1_and_rocev2_frames_only),
		GUEST_TEST(test_each_counter_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
