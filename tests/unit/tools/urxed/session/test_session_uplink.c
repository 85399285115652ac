/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which packets the filter of the uplink excludes, when processes ask for sockets, decline them,
 * end, and survive a daemon. The functions of netdev/ are replaced: there is no interface.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/driver.h>

#include "accepted_user.h"
#include "common/clock.h"
#include "lan.h"
#include "server.h"
#include "urxed/hca/hca_monitor.h"
#include "urxed/session/session_uplink.h"

#define T0 1000000000ull

struct world {
	struct server server;
	struct direct_uplink direct;
	struct uplink_set uplinks;
	struct bond bond;
	struct address_pins pins;
	struct server_process process;
	uint32_t excluded;               /* blocks that the filter excludes */
	uint16_t first;                  /* the first of them */
	uint32_t changes;                /* of the filter */
	const struct netdev *filtered;   /* the port whose filter changed last */
	const struct netdev *unfiltered; /* the port whose filter was emptied last */
	uint32_t admitted;               /* blocks that alone the filter admits; UINT32_MAX = all */
	struct hca_monitor hca;
	const struct netdev *failing; /* the port that takes no filter; NULL = none */
	bool refuses_admission;       /* all ports refuse a filter that admits blocks alone */
	uint32_t excluded_at[2];      /* blocks that each port's filter excludes */
	bool other_mac;               /* the last socket also receives frames to another MAC */
	int next_socket;              /* that the daemon gives away; 0 = a new one */
};

static struct world *w;

int __wrap_packet_port_create(unsigned int ifindex, uint32_t mtu, const uint8_t *mac,
			      struct packet_port_ring *ring);
int __wrap_netdev_exclude_qpns(struct netdev *port, const uint16_t *blocks, uint32_t n);

int __wrap_packet_port_create(unsigned int ifindex, uint32_t mtu, const uint8_t *mac,
			      struct packet_port_ring *ring)
{
	(void)ifindex;
	w->other_mac = mac;
	*ring = (struct packet_port_ring){mtu, 1};
	if (!w->next_socket)
		return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return w->next_socket;
}

int __wrap_netdev_exclude_qpns(struct netdev *port, const uint16_t *blocks, uint32_t n)
{
	w->changes++;
	if (n && port == w->failing)
		return -ENOMEM;
	w->excluded_at[port == w->uplinks.at[1].port] = n;
	*(n ? &w->filtered : &w->unfiltered) = port;
	w->excluded = n;
	w->admitted = UINT32_MAX;
	w->first = n ? blocks[0] : 0;
	return 0;
}

int __wrap_netdev_admit_qpns(struct netdev *port, const uint16_t *blocks, uint32_t n);
bool __wrap_netdev_can_exclude_qpns(struct netdev *port);

int __wrap_netdev_admit_qpns(struct netdev *port, const uint16_t *blocks, uint32_t n)
{
	(void)port;
	if (w->refuses_admission)
		return -ENOMEM;
	w->admitted = n;
	w->first = n ? blocks[n - 1] : 0; /* the last one */
	w->changes++;
	return 0;
}

bool __wrap_netdev_can_exclude_qpns(struct netdev *port)
{
	(void)port;
	return true;
}

static void take_events(void)
{
	server_take_events(&w->server, T0);
	sessions_tick(&w->server.sessions, T0);
}

static void *ask_thread(void *arg)
{
	struct server_process *p = arg;
	struct vnic_attach_uplink answer;
	int fds[VNIC_UPLINK_SOCKETS];

	p->status = vnic_driver_uplink(p->driver, &answer, fds);
	for (int i = 0; i < p->status; i++)
		close(fds[i]);
	atomic_store(&p->done, true);
	return NULL;
}

static void *decline_thread(void *arg)
{
	struct server_process *p = arg;

	vnic_driver_decline_uplink(p->driver, -ENOMEM);
	atomic_store(&p->done, true);
	return NULL;
}

#define HCA_QPN 0x900123u

static uint32_t flags; /* for set_thread */

/* A message without an answer, and a request. */
static void *set_thread(void *arg)
{
	struct server_process *p = arg;
	const uint8_t gid[16] = {0};

	p->status = vnic_driver_set_qpn(p->driver, HCA_QPN, flags);
	if (!p->status)
		p->status = vnic_driver_query_qpn(p->driver, gid, HCA_QPN);
	atomic_store(&p->done, true);
	return NULL;
}

static void *remove_thread(void *arg)
{
	struct server_process *p = arg;

	p->status = vnic_driver_remove_qpn(p->driver, HCA_QPN);
	atomic_store(&p->done, true);
	return NULL;
}

static const struct switch_port *port_of_process(void)
{
	return lease_owner(&w->server.sw.leases, w->process.who.qpn_first);
}

static void serve(void *(*call)(void *))
{
	server_call(call, &w->process, take_events);
}

static void set_flags(uint32_t new_flags)
{
	flags = new_flags;
	serve(set_thread);
	assert_int_equal(w->process.status, -ENOENT);
}

static void begin(void)
{
	server_begin(&w->server, T0);
	w->server.sessions.direct_uplink = &w->direct;
	w->excluded = 0;
	sessions_update_uplink(&w->server.sessions);
}

static void ask(void)
{
	serve(ask_thread);
	assert_true(w->process.status > 0);
}

static void expect_own_block_excluded(void)
{
	assert_int_equal(w->excluded, 1);
	assert_int_equal(w->first, lease_block(w->process.who.qpn_first));
}

static int setup(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->uplinks.n = 1;
	w->uplinks.at[0].spec = "af_packet:lo";
	strcpy(w->uplinks.at[0].ifname, "lo");
	w->uplinks.at[0].port = (struct netdev *)w; /* the wrapped function ignores it */
	w->direct =
		(struct direct_uplink){.host = &w->server.host,
				       .uplinks = &w->uplinks,
				       .pins = &w->pins,
				       .trust = {.named = {.n_users = 1, .users = {geteuid()}}}};
	server_open(&w->server);
	memcpy(w->uplinks.at[0].mac, w->server.host.mac, ETHER_MAC_LEN);
	w->server.host.mtu = 1500;
	begin();
	serve(server_attach_thread);
	assert_int_equal(w->process.status, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (w->process.driver)
		vnic_driver_abandon(w->process.driver);
	server_end(&w->server);
	server_close(&w->server);
	free(w);
	return 0;
}

static void end_process(void)
{
	vnic_driver_abandon(w->process.driver);
	w->process.driver = NULL;
	take_events();
	assert_true(sessions_reap(&w->server.sessions));
}

static void packets_come_by_the_socket_until_the_process_ends(void **state)
{
	(void)state;
	assert_int_equal(w->excluded, 0);
	ask();
	expect_own_block_excluded();
	end_process();
	assert_int_equal(w->excluded, 0);
}

static void packets_of_a_process_that_declines_come_by_the_switch(void **state)
{
	(void)state;
	ask();
	expect_own_block_excluded();
	serve(decline_thread);
	assert_int_equal(w->excluded, 0);
	ask();
	expect_own_block_excluded();
}

static void a_survivor_that_ends_before_it_asks_excludes_nothing(void **state)
{
	(void)state;
	ask();
	server_end(&w->server);
	begin();
	expect_own_block_excluded();
	vnic_driver_abandon(w->process.driver);
	serve(server_claim_thread);
	assert_int_equal(w->process.status, 0);
	expect_own_block_excluded();
	end_process();
	assert_int_equal(w->excluded, 0);
}

/* The old socket may be on the same interface. */
static void an_uplink_that_is_opened_again_leaves_packets_to_old_sockets(void **state)
{
	uint32_t before;

	(void)state;
	ask();
	w->uplinks.at[0].generation++;
	w->excluded = 0;
	before = w->changes;
	sessions_update_uplink(&w->server.sessions);
	assert_int_equal(w->changes, before + 1);
	expect_own_block_excluded();
	ask();
	expect_own_block_excluded();
}

static int ask_status(void)
{
	serve(ask_thread);
	return w->process.status;
}

/* A machine is an uplink more; it makes the uplink receive all frames, which ends its filter. */
static void sockets_come_back_when_the_last_machine_leaves(void **state)
{
	struct uplink *u = &w->uplinks.at[0];

	(void)state;
	ask();
	expect_own_block_excluded();
	w->uplinks.n = 2;
	u->hears_all = true;
	sessions_update_uplink(&w->server.sessions);
	assert_false(port_of_process()->sockets);
	assert_int_equal(ask_status(), -ENODEV);
	/* It has left, but the uplink cannot change back. */
	w->uplinks.n = 1;
	assert_int_equal(ask_status(), -ENODEV);
	/* As uplink_hear_own does. */
	u->hears_all = false;
	u->generation++;
	w->excluded = 0;
	ask();
	expect_own_block_excluded();
	assert_true(port_of_process()->sockets);
}

/* Its sockets receive the packets of an af_packet: uplink until it has closed them. */
static void packets_come_by_the_switch_when_the_process_has_closed_its_sockets(void **state)
{
	struct uplink *u = &w->uplinks.at[0];
	const uint64_t before = now_ns();

	(void)state;
	for (int xdp = 0; xdp <= 1; xdp++) {
		u->spec = xdp ? "af_xdp:lo" : "af_packet:lo";
		ask();
		assert_int_equal(port_of_process()->closing_sockets, 0);
		u->hears_all = true;
		for (int i = 0; i < 2; i++)
			sessions_update_uplink(&w->server.sessions);
		assert_int_equal(port_of_process()->closing_sockets, xdp ? 0 : 1);
		assert_in_range(port_of_process()->closing_until, before + 1,
				now_ns() + NS_PER_SEC);
		/* A refusal, before the process has closed them. */
		assert_int_equal(ask_status(), -ENODEV);
		assert_int_equal(port_of_process()->closing_sockets, xdp ? 0 : 1);
		serve(decline_thread);
		assert_int_equal(port_of_process()->closing_sockets, 0);
		u->hears_all = false;
	}
}

/* A process that asks for new sockets closes its old ones only after the answer. */
static void a_refused_process_has_its_old_sockets_for_a_while(void **state)
{
	(void)state;
	w->uplinks.at[0].spec = "af_packet:lo";
	ask();
	expect_own_block_excluded();
	w->direct.trust.named.n_users = 0;
	w->direct.trust.none = true;
	assert_int_equal(ask_status(), -EPERM);
	assert_int_equal(port_of_process()->closing_sockets, 1);
	assert_int_equal(w->excluded, 0);
	serve(decline_thread);
	assert_int_equal(port_of_process()->closing_sockets, 0);
}

/* The sockets on an interface that has gone receive nothing. */
static void packets_come_by_the_switch_after_the_interface_has_gone(void **state)
{
	struct uplink *u = &w->uplinks.at[0];
	struct netdev *port = u->port;

	(void)state;
	ask();
	u->port = NULL;
	sessions_update_uplink(&w->server.sessions);
	assert_int_equal(port_of_process()->closing_sockets, 0);
	u->port = port;
}

/* Two uplinks as a bond whose first member carries the frames. */
static void make_bond(enum bond_mode mode)
{
	struct uplink *second = &w->uplinks.at[1];

	w->uplinks.n = 2;
	*second = w->uplinks.at[0];
	second->port = (struct netdev *)second;
	second->mac[5] ^= 1;
	w->bond = (struct bond){.mode = mode, .n = 2, .n_carriers = 1, .mask = 3};
	w->bond.members[1].uplink = 1;
	w->direct.bond = &w->bond;
}

static void sockets_follow_the_active_member_of_a_bond(void **state)
{
	uint32_t before;

	(void)state;
	make_bond(BOND_ACTIVE_BACKUP);
	ask();
	expect_own_block_excluded();
	assert_ptr_equal(w->filtered, w->uplinks.at[0].port);
	assert_false(w->other_mac);
	before = direct_uplink_generation(&w->direct);
	w->bond.carriers[0] = 1;
	w->bond.moves++;
	assert_int_not_equal(direct_uplink_generation(&w->direct), before);
	sessions_update_uplink(&w->server.sessions);
	/* The process's socket does not receive what arrives here. */
	assert_int_equal(w->excluded, 0);
	assert_false(port_of_process()->sockets);
	assert_ptr_equal(w->unfiltered, w->uplinks.at[1].port);
	/* The interface of this member has another MAC than the bond. */
	ask();
	assert_true(w->other_mac);
	expect_own_block_excluded();
	assert_int_equal(port_of_process()->sockets, 2);
	assert_ptr_equal(w->filtered, w->uplinks.at[1].port);
}

/* A process that was stopped over a weekend reads the newest generation only. */
static void no_number_of_moves_is_overlooked(void **state)
{
	uint32_t before;

	(void)state;
	make_bond(BOND_ACTIVE_BACKUP);
	direct_uplink_fill(&w->direct, &w->server.host);
	before = w->server.host.uplink_generation;
	for (uint32_t i = 0; i < 1u << 17; i++) {
		w->bond.moves++;
		assert_true(direct_uplink_fill(&w->direct, &w->server.host));
		assert_int_not_equal(w->server.host.uplink_generation, before);
	}
}

/* The engine's frames have the host's MAC; the switch gives them that of the uplink. */
static void an_uplink_with_a_new_mac_has_no_sockets(void **state)
{
	struct uplink *u = &w->uplinks.at[0];

	(void)state;
	ask();
	u->mac[5] ^= 1;
	sessions_update_uplink(&w->server.sessions);
	assert_false(port_of_process()->sockets);
	assert_int_equal(w->excluded, 0);
	assert_int_equal(ask_status(), -ENODEV);
	u->mac[5] ^= 1;
	ask();
	expect_own_block_excluded();
	assert_true(port_of_process()->sockets);
	/* A member of a bond hears the bond's MAC beside its own. */
	make_bond(BOND_ACTIVE_BACKUP);
	u->mac[5] ^= 1;
	u->generation++;
	ask();
	assert_true(w->other_mac);
}

/* A process gets a socket on each member, and hears which of them carry frames. */
static void members_that_share_the_load_have_a_socket_each(void **state)
{
	uint32_t generation;
	uint32_t changes;

	(void)state;
	make_bond(BOND_BALANCE);
	w->bond.n_carriers = 2;
	w->bond.carriers[1] = 1;
	changes = w->changes;
	assert_int_equal(ask_status(), 2);
	assert_true(w->other_mac); /* that of the bond, at the second member */
	expect_own_block_excluded();
	assert_int_equal(w->changes, changes + 2);
	assert_int_equal(port_of_process()->sockets, 3);
	generation = direct_uplink_generation(&w->direct);
	assert_true(direct_uplink_fill(&w->direct, &w->server.host));
	assert_int_equal(w->server.host.uplink_carriers, 3);

	/* The first member fails: the sockets stay, and so do the filters. */
	w->bond.n_carriers = 1;
	w->bond.carriers[0] = 1;
	w->bond.moves++;
	assert_true(direct_uplink_fill(&w->direct, &w->server.host));
	assert_int_equal(w->server.host.uplink_carriers, 2);
	assert_int_equal(w->server.host.uplink_generation, generation);
	changes = w->changes;
	sessions_update_uplink(&w->server.sessions);
	assert_int_equal(w->changes, changes);
	assert_int_equal(port_of_process()->sockets, 3);
	assert_false(direct_uplink_fill(&w->direct, &w->server.host));
}

/* Without a port on one member, the switch carries all frames. */
static void members_that_share_the_load_need_all_ports(void **state)
{
	(void)state;
	make_bond(BOND_BALANCE);
	w->uplinks.at[1].port = NULL;
	assert_int_equal(ask_status(), -ENODEV);
	w->uplinks.at[1].port = (struct netdev *)&w->uplinks.at[1];
	w->uplinks.at[1].spec = "af_xdp:eth1";
	assert_int_equal(ask_status(), -ENODEV);
	w->uplinks.at[0].spec = "af_xdp:eth0";
	assert_int_equal(ask_status(), 2);
}

/* If one member takes no filter, the switch receives all frames of both. */
static void members_that_share_the_load_exclude_the_same(void **state)
{
	const uint16_t block = 1;

	(void)state;
	make_bond(BOND_BALANCE);
	w->failing = w->uplinks.at[1].port;
	assert_int_equal(direct_uplink_exclude(&w->direct, &block, 1), -ENOMEM);
	assert_ptr_equal(w->filtered, w->uplinks.at[0].port);
	assert_int_equal(w->excluded_at[0], 0);
	assert_int_equal(w->excluded_at[1], 0);
	w->failing = NULL;
	assert_int_equal(direct_uplink_exclude(&w->direct, &block, 1), 0);
	assert_int_equal(w->excluded_at[0], 1);
	assert_int_equal(w->excluded_at[1], 1);
}

/* A machine beside the members: the switch must see the frames between it and the programs. */
static void a_bond_with_a_machine_has_no_sockets(void **state)
{
	(void)state;
	make_bond(BOND_ACTIVE_BACKUP);
	w->uplinks.n = 3;
	assert_int_equal(ask_status(), -ENODEV);
}

/* A program can keep the kernel's lock of its socket, and the daemon would wait for it. */
static void the_daemon_keeps_no_copy_of_a_socket(void **state)
{
	struct pollfd pfd = {.events = POLLIN};
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pfd.fd = pair[0];
	w->next_socket = pair[1];
	ask();
	assert_int_equal(poll(&pfd, 1, 0), 1);
	assert_true(pfd.revents & POLLHUP);
	close(pair[0]);
}

static void packets_pass_the_switch_while_it_wants_to_see_them(void **state)
{
	(void)state;
	ask();
	sessions_allow_bypass(&w->server.sessions, false);
	assert_int_equal(w->excluded, 0);
	assert_true(port_of_process()->sockets);
	sessions_allow_bypass(&w->server.sessions, true);
	expect_own_block_excluded();
	serve(decline_thread);
	assert_false(port_of_process()->sockets);
}

static void its_connections_to_other_hosts_are_its_own(void **state)
{
	(void)state;
	ask();
	assert_true(port_of_process()->remotes.always_heard);
}

/* Neither root nor the user who runs the test: both have no quota. */
static void sockets_per_user_are_limited(void **state)
{
	struct session copies[DIRECT_UPLINK_SOCKETS / 2] = {0}, *s;

	(void)state;
	end_process();
	accepted_uid = geteuid() + 1000;
	w->direct.trust =
		(struct direct_uplink_trust){.named = {.n_users = 1, .users = {accepted_uid}}};
	serve(server_attach_thread);
	s = w->server.sessions.list;
	/* These stand for other processes of the user. */
	for (uint32_t i = 0; i < DIRECT_UPLINK_SOCKETS / 2; i++) {
		copies[i] = (struct session){.next = s->next,
					     .conn = s->conn,
					     .has_uplink_socket = true,
					     .closed = true};
		s->next = &copies[i];
	}
	serve(ask_thread);
	assert_int_equal(w->process.status, -ENOSPC);
	copies[0].has_uplink_socket = false;
	ask();
	s->next = NULL;
	accepted_uid = 0;
}

static void refused_requests_do_not_set_the_filter(void **state)
{
	uint32_t before = w->changes;

	(void)state;
	w->direct.trust.none = true;
	for (int i = 0; i < 10; i++) {
		serve(ask_thread);
		assert_int_equal(w->process.status, -EPERM);
	}
	assert_int_equal(w->changes, before);
}

static void choose_hca(int chosen)
{
	w->hca.list.n = 1;
	strcpy(w->hca.list.ports[0].device, "rxe0");
	w->hca.list.ports[0].state = HCA_ACTIVE;
	w->hca.chosen = chosen;
	w->direct.hca = &w->hca;
	hca_monitor_fill(&w->hca, &w->server.host.hca);
	sessions_update_uplink(&w->server.sessions);
}

/* The process reads only the newest generation, which may be that of its refused request. */
static void refused_process_asks_again_when_the_hca_goes(void **state)
{
	const uint32_t before = direct_uplink_generation(&w->direct);

	(void)state;
	choose_hca(0);
	assert_int_equal(ask_status(), -ENODEV);
	choose_hca(-1);
	assert_int_not_equal(direct_uplink_generation(&w->direct), 0);
	assert_int_not_equal(direct_uplink_generation(&w->direct), before);
	ask();
	expect_own_block_excluded();
}

/* The process closes its socket while an HCA backs the device, and asks again afterwards. */
static void sockets_come_back_when_the_hca_goes(void **state)
{
	const uint32_t before = direct_uplink_generation(&w->direct);

	(void)state;
	ask();
	choose_hca(0);
	assert_int_equal(direct_uplink_generation(&w->direct), 0);
	assert_false(sessions_have_sockets(&w->server.sessions));
	choose_hca(-1);
	/* By the generation the process learns this, even if it has not seen the HCA. */
	assert_int_not_equal(direct_uplink_generation(&w->direct), 0);
	assert_int_not_equal(direct_uplink_generation(&w->direct), before);
	assert_int_equal(w->excluded, 0);
	assert_false(port_of_process()->sockets);
	ask();
	expect_own_block_excluded();
	assert_true(port_of_process()->sockets);
}

/* The HCA is on another interface, so it leaves the uplink without a filter of its own. */
static void packets_come_by_the_switch_beside_an_hca_without_an_uplink(void **state)
{
	(void)state;
	ask();
	expect_own_block_excluded();
	w->hca.verdicts[0].uplink = -1;
	choose_hca(0);
	assert_int_equal(direct_uplink_generation(&w->direct), 0);
	assert_int_equal(w->excluded, 0);
	assert_int_equal(w->admitted, UINT32_MAX);
}

/* As after two changes in a row: the process read the first, and has sockets for the second. */
static void a_process_that_has_sockets_may_ask_again(void **state)
{
	(void)state;
	ask();
	ask();
	expect_own_block_excluded();
	assert_true(port_of_process()->sockets);
}

/* The old filter would drop packets to queue pairs of the engine in blocks that it lacks. */
static void uplink_without_room_for_the_filter_receives_all_packets(void **state)
{
	struct switch_port *port = lease_owner(&w->server.sw.leases, w->process.who.qpn_first);

	(void)state;
	choose_hca(0);
	assert_int_equal(w->admitted, 1);
	w->refuses_admission = true;
	assert_int_equal(switch_add_qpn(&w->server.sw, port, HCA_QPN, VNIC_QPN_UPLINK), 0);
	sessions_update_uplink(&w->server.sessions);
	assert_int_equal(w->admitted, UINT32_MAX);
	assert_int_equal(w->excluded, 0);
	/* It has room again. */
	w->refuses_admission = false;
	sessions_update_uplink(&w->server.sessions);
	assert_int_equal(w->admitted, 2);
	w->refuses_admission = true;
	end_process();
	assert_int_equal(w->admitted, UINT32_MAX);
	choose_hca(-1);
	assert_int_equal(w->admitted, UINT32_MAX);
}

/* The processes go on with their sockets, and no switch takes their packets. */
static void expect_end_leaves_the_filter(void)
{
	const uint32_t before = w->changes;

	server_end(&w->server);
	assert_int_equal(w->changes, before);
	begin();
}

static void the_end_of_the_daemon_leaves_the_filter(void **state)
{
	(void)state;
	ask();
	expect_own_block_excluded();
	expect_end_leaves_the_filter();
}

static void the_end_of_the_daemon_leaves_the_filter_of_the_hca(void **state)
{
	(void)state;
	choose_hca(0);
	assert_int_equal(w->admitted, 1);
	expect_end_leaves_the_filter();
}

/* Of an HCA's packets the uplink receives those to queue pairs of the engine only. */
static void hca_gets_its_packets_alone(void **state)
{
	struct vnic_attach_hca *backs = &w->server.host.hca;
	struct switch_port *port = lease_owner(&w->server.sw.leases, w->process.who.qpn_first);
	const uint8_t gid[16] = {0xfe, 0x80, [15] = 9};
	uint32_t changes;

	(void)state;
	ask();
	expect_own_block_excluded();
	w->hca.list.n = 1;
	strcpy(w->hca.list.ports[0].device, "rxe0");
	w->hca.list.ports[0].state = HCA_ACTIVE;
	hca_monitor_fill(&w->hca, backs);
	w->direct.hca = &w->hca;
	assert_int_equal(direct_uplink_generation(&w->direct), 0);
	sessions_update_uplink(&w->server.sessions);
	assert_int_equal(w->admitted, 1);
	assert_int_equal(w->first, lease_block(w->process.who.qpn_first));
	/* Also while its port is down: it needs its packets as soon as the link is back. */
	w->hca.list.ports[0].state = HCA_DOWN;
	hca_monitor_fill(&w->hca, backs);
	assert_true(backs->down);
	assert_int_equal(direct_uplink_generation(&w->direct), 0);
	changes = w->changes;
	sessions_update_uplink(&w->server.sessions);
	assert_int_equal(w->changes, changes);
	/* The HCA executes a connection. */
	assert_int_equal(switch_add_qpn(&w->server.sw, port, HCA_QPN, VNIC_QPN_REACHABLE), 0);
	assert_int_equal(switch_add_remote(&w->server.sw, port, HCA_QPN, gid, 0x77), 0);
	sessions_update_uplink(&w->server.sessions);
	assert_int_equal(w->admitted, 1);
	/* The engine takes the connection over, and the HCA gets the QPN again. */
	set_flags(VNIC_QPN_UPLINK);
	assert_int_equal(w->admitted, 2);
	assert_int_equal(w->first, lease_block(HCA_QPN));
	set_flags(VNIC_QPN_REACHABLE);
	assert_int_equal(w->admitted, 1);
	/* The queue pair ends in the engine. */
	set_flags(VNIC_QPN_UPLINK);
	serve(remove_thread);
	assert_int_equal(w->process.status, 0);
	assert_int_equal(w->admitted, 1);
	/* The process ends. */
	assert_int_equal(switch_add_qpn(&w->server.sw, port, HCA_QPN, VNIC_QPN_UPLINK), 0);
	sessions_update_uplink(&w->server.sessions);
	assert_int_equal(w->admitted, 2);
	end_process();
	assert_int_equal(w->admitted, 0);
	/* The HCA goes away. */
	w->hca.chosen = -1;
	hca_monitor_fill(&w->hca, backs);
	sessions_update_uplink(&w->server.sessions);
	assert_int_equal(w->admitted, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sockets_come_back_when_the_last_machine_leaves,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_refused_process_has_its_old_sockets_for_a_while,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			packets_come_by_the_switch_when_the_process_has_closed_its_sockets, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			packets_come_by_the_switch_after_the_interface_has_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(an_uplink_with_a_new_mac_has_no_sockets, setup,
						teardown),
		cmocka_unit_test_setup_teardown(sockets_follow_the_active_member_of_a_bond, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_number_of_moves_is_overlooked, setup, teardown),
		cmocka_unit_test_setup_teardown(members_that_share_the_load_have_a_socket_each,
						setup, teardown),
		cmocka_unit_test_setup_teardown(members_that_share_the_load_exclude_the_same, setup,
						teardown),
		cmocka_unit_test_setup_teardown(members_that_share_the_load_need_all_ports, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_bond_with_a_machine_has_no_sockets, setup,
						teardown),
		cmocka_unit_test_setup_teardown(packets_come_by_the_socket_until_the_process_ends,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			packets_of_a_process_that_declines_come_by_the_switch, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_survivor_that_ends_before_it_asks_excludes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_uplink_that_is_opened_again_leaves_packets_to_old_sockets, setup,
			teardown),
		cmocka_unit_test_setup_teardown(the_daemon_keeps_no_copy_of_a_socket, setup,
						teardown),
		cmocka_unit_test_setup_teardown(packets_pass_the_switch_while_it_wants_to_see_them,
						setup, teardown),
		cmocka_unit_test_setup_teardown(its_connections_to_other_hosts_are_its_own, setup,
						teardown),
		cmocka_unit_test_setup_teardown(sockets_per_user_are_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_requests_do_not_set_the_filter, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_process_that_has_sockets_may_ask_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(refused_process_asks_again_when_the_hca_goes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(sockets_come_back_when_the_hca_goes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			packets_come_by_the_switch_beside_an_hca_without_an_uplink, setup,
			teardown),
		cmocka_unit_test_setup_teardown(hca_gets_its_packets_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			uplink_without_room_for_the_filter_receives_all_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(the_end_of_the_daemon_leaves_the_filter, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_end_of_the_daemon_leaves_the_filter_of_the_hca,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
