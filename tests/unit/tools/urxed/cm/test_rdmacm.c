/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's rdma_cm with switch and neighbours. Requests of stations to QP1 of a host with an
 * HCA: those from the network of the HCA are for the kernel's connection manager, which receives
 * them by the HCA. Requests of programs: their path MTU.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <cm/ip.h>

#include "craft.h"
#include "lan.h"
#include "urxed/cm/rdmacm.h"
#include "urxed/hca/hca_monitor.h"
#include "urxed/hostnet/arp_frame.h"

#define DEPTH     64
#define MS        1000000ull
#define QP1_QKEY  0x80010000u
#define UD_SEND   0x64
#define SOME_PORT 7174 /* no program listens there */

enum { WIRE, OTHER_WIRE, VM, STATIONS };

static struct lan *w;
static struct rdmacm rdmacm;
static struct sessions sessions;
static struct direct_uplink direct;
static struct hca_monitor hca;
static uint32_t requests; /* sent so far */
static char dir[] = "/tmp/urxe-test-rdmacm-XXXXXX";

static void set_hca(enum hca_state port)
{
	hca.list.ports[0].state = port;
	hca_monitor_fill(&hca, &w->host.hca);
}

static int setup(void **state)
{
	static const char *const specs[] = {"mem:wire", "mem:other", "qemu:/vm"};
	static const char *const addresses[] = {"10.0.0.1/24", "10.0.0.7/24"};
	const struct lan_attr attr = {.n_stations = STATIONS,
				      .first_vm = VM,
				      .specs = specs,
				      .depth = DEPTH,
				      .addresses = addresses,
				      .n_addresses = 2};
	char error[RDMACM_ERROR];

	(void)state;
	w = lan_open(&attr);
	w->host.addresses[0].kernel = true;
	assert_int_equal(host_add_pkey(&w->host, "0xffff"), 0);
	hca = (struct hca_monitor){.list = {.n = 1}, .verdicts = {{.uplink = WIRE}}};
	strcpy(hca.list.ports[0].device, "rxe0");
	set_hca(HCA_ACTIVE);
	direct = (struct direct_uplink){.host = &w->host, .hca = &hca};
	sessions = (struct sessions){.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
				     .host = &w->host,
				     .sw = &w->sw,
				     .neigh = &w->neigh,
				     .direct_uplink = &direct};
	assert_non_null(mkdtemp(dir));
	assert_int_equal(rdmacm_open(&rdmacm, dir, 0, w->now, &sessions, error), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rdmacm_close(&rdmacm);
	close(sessions.epoll_fd);
	lan_close(w);
	assert_int_equal(rmdir(dir), 0);
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	return 0;
}

static uint8_t gid_of_station(uint32_t station)
{
	return (uint8_t)(20 + station);
}

static void send_mad(uint32_t station, uint8_t host, struct cm_mad *mad)
{
	const uint8_t smac[6] = {4, 0, 0, 0, 0, (uint8_t)station};
	struct urxe_packet p = {.net = URXE_NET_IPV4,
				.opcode = UD_SEND,
				.pkey = 0xffff,
				.hop_limit = 64,
				.dest_qpn = URXE_QPN_GSI,
				.deth = {.qkey = QP1_QKEY, .src_qpn = URXE_QPN_GSI},
				.sgid = craft_gid(URXE_NET_IPV4, gid_of_station(station)),
				.dgid = craft_gid(URXE_NET_IPV4, host),
				.payload_len = CM_MAD_LEN};
	struct cm_ip_hdr hdr = {.src_port = 9};
	uint8_t bytes[CM_MAD_LEN], frame[CRAFT_MAX];

	memcpy(hdr.src, p.sgid.raw, 16);
	memcpy(hdr.dst, p.dgid.raw, 16);
	if (mad->attr == CM_REQ)
		cm_ip_build(&hdr, mad->private_data);
	cm_mad_build(mad, bytes);
	p.payload = bytes;
	memcpy(p.smac, smac, 6);
	memcpy(p.dmac, lan_macs[station == OTHER_WIRE ? OTHER_WIRE : WIRE], 6);
	lan_send(w, station, frame, craft_frame(frame, &p));
}

/* A station sends a REQ to the host's address 10.0.0.`host`. */
static void send_request(uint32_t station, uint8_t host)
{
	struct cm_mad mad = {.attr = CM_REQ,
			     .tid = ++requests,
			     .req = {.local_id = requests,
				     .ca_guid = station,
				     .qpn = requests,
				     .service_id = cm_service_id(CM_PS_TCP, SOME_PORT),
				     .pkey = 0xffff,
				     .mtu = 3}};
	send_mad(station, host, &mad);
}

/* A station sends a DREQ of a connection that urxed does not have. */
static void send_disconnection(uint32_t station, uint8_t host)
{
	struct cm_mad mad = {
		.attr = CM_DREQ, .tid = ++requests, .pair = {.local_id = requests, .remote_id = 7}};

	send_mad(station, host, &mad);
}

static bool is_answered(uint32_t station)
{
	struct netdev_frame frame;

	for (int i = 0; i < 200; i++) {
		w->now += 10 * MS;
		switch_run(&w->sw, w->now);
		rdmacm_tick(&rdmacm, w->now);
		switch_run(&w->sw, w->now);
	}
	return netdev_rx(w->far[station], w->now, &frame, 1) == 1;
}

/* Whether urxed refuses the request, as it does without a listener. */
static bool is_refused(uint32_t station, uint8_t host)
{
	send_request(station, host);
	return is_answered(station);
}

static void request_from_the_hcas_network_is_the_hcas(void **state)
{
	(void)state;
	assert_false(is_refused(WIRE, 1));
	assert_int_equal(rdmacm.gsi.drops[GSI_DROP_HCA], 1);
	set_hca(HCA_DOWN);
	assert_true(is_refused(WIRE, 1));
	hca.chosen = -1;
	set_hca(HCA_ACTIVE);
	assert_true(is_refused(WIRE, 1));
}

static void request_that_the_hca_does_not_receive_is_answered(void **state)
{
	(void)state;
	/* The HCA has only addresses of the kernel. */
	assert_true(is_refused(WIRE, 7));
	assert_true(is_refused(VM, 1));
	w->host.addresses[0].uplink = OTHER_WIRE;
	assert_true(is_refused(OTHER_WIRE, 1));
	assert_int_equal(rdmacm.gsi.drops[GSI_DROP_HCA], 0);
}

/* An answer of urxed would end the peer's repetitions, which the kernel's program may need. */
static void disconnection_from_the_hcas_network_is_the_hcas(void **state)
{
	(void)state;
	send_disconnection(WIRE, 1);
	assert_false(is_answered(WIRE));
	send_disconnection(VM, 1);
	assert_true(is_answered(VM));
}

/* --- Requests of programs */

/* The station has answered an ARP request of the host now. */
static void learn_station(uint32_t station)
{
	struct arp a = {.smac = {4, 0, 0, 0, 0, (uint8_t)station}};
	const struct urxe_gid ip = craft_gid(URXE_NET_IPV4, gid_of_station(station));
	struct neigh_waiter waiter;
	struct vnic_next_hop hop;
	uint8_t frame[ARP_FRAME_LEN];

	memcpy(a.sip, ip.raw, 16);
	memcpy(a.tip, w->host.addresses[0].ip, 16);
	arp_build(frame, &a, w->host.mac);
	assert_int_equal(neigh_resolve(&w->neigh, w->now, 0, 0, ip.raw, &waiter, &hop),
			 -EINPROGRESS);
	neigh_cancel(&w->neigh, &waiter);
	lan_send(w, station, frame, sizeof(frame));
	switch_run(&w->sw, w->now);
}

/* A program's ID, whose events it does not get. */
static struct cma_id *create_id(void)
{
	struct ucma_ctx *ctx = ucma_ctx_new(ucma_file_new(&rdmacm.ucma), 0);

	rdmacm.ucma.cma.now = w->now;
	assert_int_equal(cma_create_id(&rdmacm.ucma.cma, 0, CM_PS_TCP, CMA_RC, ctx, &ctx->id), 0);
	return ctx->id;
}

static void path_mtu_fits_a_machine_whose_neighbour_entry_expires(void **state)
{
	const struct urxe_gid ip = craft_gid(URXE_NET_IPV4, gid_of_station(VM));
	struct cma_addr dst = {.family = AF_INET, .port = SOME_PORT};
	const struct cma_param param = {.qpn = 1};
	struct cma_id *id;

	(void)state;
	w->host.mtu = 4200;
	w->uplinks[VM].nic_mtu = 1500;
	memcpy(dst.ip, ip.raw, sizeof(dst.ip));
	learn_station(VM);
	id = create_id();
	assert_int_equal(cma_resolve_addr(id, NULL, &dst, 1000), 0);
	assert_int_equal(cma_resolve_route(id), 0);
	assert_int_equal(cma_path_mtu(id), 3);
	w->now += NEIGH_LIFE_NS;
	rdmacm.ucma.cma.now = w->now;
	assert_int_equal(cma_connect(id, &param), 0);
	assert_int_equal(cm_channel(id->conn)->mtu, 3);
	ucma_file_forget(((struct ucma_ctx *)id->ctx)->file);
}

/* The network may carry less in the VLAN than beside it. Linux takes the interface's MTU, too. */
static void path_mtu_fits_the_vlan_interface(void **state)
{
	const struct urxe_gid ip = craft_gid(URXE_NET_IPV4, gid_of_station(VM));
	struct cma_addr dst = {.family = AF_INET, .port = SOME_PORT};
	struct cma_id *id;

	(void)state;
	w->host.mtu = 4200;
	memcpy(dst.ip, ip.raw, sizeof(dst.ip));
	learn_station(VM);
	id = create_id();
	assert_int_equal(cma_resolve_addr(id, NULL, &dst, 1000), 0);
	assert_int_equal(cma_path_mtu(id), 5);
	w->host.addresses[0].vlan_mtu = 9000;
	assert_int_equal(cma_path_mtu(id), 5);
	w->host.addresses[0].vlan_mtu = 1500;
	assert_int_equal(cma_path_mtu(id), 3);
	ucma_file_forget(((struct ucma_ctx *)id->ctx)->file);
}

static bool may_name_qpn(uint32_t qpn)
{
	return rdmacm.ucma.ops->may_name_qpn(rdmacm.ucma.ctx, 1, 1000, qpn);
}

/* Another urxed, whose HCA the device is, may have leased the number. */
static void device_as_hca_lets_programs_name_numbers_that_no_process_may_have(void **state)
{
	static struct lease_past past[LEASE_BLOCKS];
	static bool claimable[LEASE_BLOCKS];
	const uint32_t qpn = 7 * LEASE_QPNS + 1;

	(void)state;
	assert_false(may_name_qpn(qpn));
	strcpy(w->host.device, "hca0");
	assert_true(may_name_qpn(qpn));
	w->sw.leases.claimable = claimable;
	w->sw.leases.past = past;
	assert_true(may_name_qpn(qpn));
	claimable[7] = true;
	assert_false(may_name_qpn(qpn));
	claimable[7] = false;
	past[7] = (struct lease_past){.user = 1 + 1001, .began_at = 1, .ended_at = 2};
	assert_false(may_name_qpn(qpn));
	past[7].user = 1 + 1000;
	assert_true(may_name_qpn(qpn));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_from_the_hcas_network_is_the_hcas),
		TEST(disconnection_from_the_hcas_network_is_the_hcas),
		TEST(request_that_the_hca_does_not_receive_is_answered),
		TEST(device_as_hca_lets_programs_name_numbers_that_no_process_may_have),
		TEST(path_mtu_fits_a_machine_whose_neighbour_entry_expires),
		TEST(path_mtu_fits_the_vlan_interface),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
