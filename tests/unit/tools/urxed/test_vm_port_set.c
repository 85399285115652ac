/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Stations: the test is the device process of a virtual machine; the daemon is called between. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <netdev/shm.h>

#include "common/unix_packet.h"
#include "descriptor_limit.h"
#include "lan.h"
#include "mem_port.h"
#include "urxed/switch/destination.h"
#include "urxed/switch/forward.h"
#include "urxed/uplink/vm_port_protocol.h"
#include "urxed/uplink/vm_port_set.h"

#define T0 UINT64_C(1000000000)

struct world {
	uint64_t later; /* ns since T0 */
	char dir[32];
	struct host host;
	struct neigh neigh;
	struct uplink uplinks[SWITCH_SLOTS];
	struct netdev *station; /* of the cable at uplink 0; NULL: the host has no uplink */
	struct vswitch sw;
	struct user_list trusted;
	struct vm_port_set ports;
	uint32_t changes;
	uint32_t answers; /* of address resolution */
	bool has_machine; /* at the last change */
};

/* A device process. */
struct process {
	int socket;
	struct netdev_shm_fds fds;
	struct netdev_shm_peer *peer;
};

/* The user whom the kernel names as the peer; -1: the true one. */
static uid_t peer_user = (uid_t)-1;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int rc = __real_getsockopt(fd, level, name, value, len);

	if (!rc && level == SOL_SOCKET && name == SO_PEERCRED && peer_user != (uid_t)-1)
		((struct ucred *)value)->uid = peer_user;
	return rc;
}

static void note_change(void *ctx)
{
	struct world *w = ctx;

	w->changes++;
	w->has_machine = vm_port_set_has_machine(&w->ports);
	w->neigh.vm_mask = w->sw.vm_mask;
}

static void send_of_neigh(void *ctx, int uplink, const uint8_t *frame, uint32_t len)
{
	switch_send(&((struct world *)ctx)->sw, uplink, frame, len);
}

static const uint8_t *mac_of_neigh(void *ctx, int uplink)
{
	(void)uplink;
	return ((struct world *)ctx)->host.mac;
}

static void count_answer(void *ctx, struct neigh_waiter *waiter, int status,
			 const struct vnic_next_hop *hop)
{
	(void)waiter;
	assert_int_equal(status, 0);
	assert_non_null(hop);
	((struct world *)ctx)->answers++;
}

static const struct neigh_ops neigh_ops = {
	.send = send_of_neigh, .mac = mac_of_neigh, .answer = count_answer};

static void open_wire(struct world *w)
{
	static const uint8_t mac[ETHER_MAC_LEN] = {2, 2, 0, 0, 0, 1};
	struct netdev *ends[2];

	assert_int_equal(netdev_mem_pair(64, ends), 0);
	w->uplinks[0] = (struct uplink){.spec = "wire", .port = ends[0], .up = true, .mtu = 1500};
	memcpy(w->uplinks[0].mac, mac, sizeof(mac));
	assert_int_equal(uplink_make_queue(&w->uplinks[0]), 0);
	w->station = ends[1];
}

static int setup_host(void **state, bool has_wire)
{
	struct world *w = calloc(1, sizeof(*w));
	char error[VM_PORT_SET_ERROR];

	peer_user = (uid_t)-1;
	if (has_wire)
		open_wire(w);
	strcpy(w->dir, "/tmp/urxe-test-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	host_init(&w->host);
	assert_int_equal(host_add_text(&w->host, "10.0.0.1/24", has_wire ? 0 : HOST_NO_UPLINK), 0);
	neigh_init(&w->neigh, &w->host, &neigh_ops, w);
	assert_int_equal(switch_init(&w->sw, &w->host, &w->neigh, w->uplinks, has_wire), 0);
	vm_port_set_init(&w->ports, &w->sw, &w->trusted, note_change, w);
	assert_int_equal(vm_port_set_open(&w->ports, w->dir, 0, error), 0);
	*state = w;
	return 0;
}

static int setup(void **state)
{
	return setup_host(state, false);
}

static int setup_with_wire(void **state)
{
	return setup_host(state, true);
}

static int teardown(void **state)
{
	struct world *w = *state;

	vm_port_set_close(&w->ports);
	assert_int_equal(w->sw.vm_mask, 0);
	assert_int_equal(w->sw.n_uplinks, w->station ? 1 : 0);
	switch_fini(&w->sw);
	neigh_fini(&w->neigh);
	if (w->station) {
		netdev_close(w->station);
		netdev_close(w->uplinks[0].port);
		uplink_free_queue(&w->uplinks[0]);
	}
	/* The files are gone. */
	assert_int_equal(rmdir(w->dir), 0);
	free(w);
	return 0;
}

/* The device processes see the end of their connections. */
static void restart(struct world *w)
{
	char error[VM_PORT_SET_ERROR];

	vm_port_set_close(&w->ports);
	vm_port_set_init(&w->ports, &w->sw, &w->trusted, note_change, w);
	assert_int_equal(vm_port_set_open(&w->ports, w->dir, 0, error), 0);
	vm_port_set_tick(&w->ports, T0 + w->later);
}

static int connect_to(const struct world *w)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(unix_packet_address(&address, w->dir, VM_PORT_SOCKET_NAME), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Accepts, then answers. */
static void serve(struct world *w)
{
	for (int i = 0; i < 3; i++)
		vm_port_set_event(&w->ports, T0 + w->later);
}

static struct vm_port_request request_of(const char *name)
{
	static uint8_t number;
	struct vm_port_request request = {.version = VM_PORT_VERSION,
					  .mac = {2, 1, 0, 0, 0, ++number}};

	snprintf(request.name, sizeof(request.name), "%s", name);
	return request;
}

/* Returns the status of the reply. */
static int ask(struct world *w, struct process *p, const void *request, uint32_t len)
{
	struct unix_packet_extras extras;
	struct vm_port_reply reply;

	*p = (struct process){.socket = connect_to(w)};
	/* A user who may not connect gets the answer before the request. */
	serve(w);
	unix_packet_send(p->socket, request, len, NULL, 0);
	serve(w);
	assert_int_equal(unix_packet_recv(p->socket, &reply, sizeof(reply), &extras),
			 sizeof(reply));
	assert_int_equal(reply.version, VM_PORT_VERSION);
	if (reply.status) {
		assert_int_equal(extras.fds[0], -1);
		close(p->socket);
		return reply.status;
	}
	p->fds.memory = extras.fds[0];
	p->fds.wake = extras.fds[1];
	assert_int_equal(unix_packet_recv(p->socket, &reply, sizeof(reply), &extras),
			 sizeof(reply));
	p->fds.kick = extras.fds[0];
	assert_int_equal(netdev_shm_attach(&p->fds, &p->peer), 0);
	netdev_shm_set_ready(p->peer);
	return 0;
}

static int join(struct world *w, struct process *p, const char *name)
{
	const struct vm_port_request request = request_of(name);

	return ask(w, p, &request, sizeof(request));
}

static void end_process(struct world *w, struct process *p)
{
	netdev_shm_detach(p->peer);
	close(p->fds.memory);
	close(p->fds.wake);
	close(p->fds.kick);
	close(p->socket);
	serve(w);
}

/* Puts n equal frames into the ring of the process's port. */
static void put_frames(struct process *p, const uint8_t to, const uint8_t from, uint32_t n)
{
	const uint8_t frame[60] = {2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5};
	size_t size;
	uint8_t *buffer = netdev_shm_buffers(p->peer, &size);
	const struct netdev_frame f = {buffer, sizeof(frame), sizeof(frame), 0};

	memcpy(buffer, frame, sizeof(frame));
	while (n--)
		netdev_shm_send(p->peer, &f, 1);
}

static void send_frame(struct world *w, struct process *p, const uint8_t to, const uint8_t from)
{
	put_frames(p, to, from, 1);
	switch_run(&w->sw, T0);
	switch_run(&w->sw, T0);
}

static uint32_t count_received(struct process *p)
{
	struct netdev_frame frames[NETDEV_SHM_DEPTH];
	uint32_t n = netdev_shm_receive(p->peer, frames, NETDEV_SHM_DEPTH);

	netdev_shm_release(p->peer, n);
	return n;
}

/* --- Tests */

static const struct switch_port *find_port(const struct world *w, const char *name)
{
	const struct switch_port *port = NULL;

	while ((port = switch_next_port(&w->sw, port)) && strcmp(port->name, name))
		;
	return port;
}

static void frames_pass_between_machines(void **state)
{
	struct world *w = *state;
	struct process a, b, c;

	assert_int_equal(join(w, &a, "a"), 0);
	assert_int_equal(join(w, &b, "b"), 0);
	assert_int_equal(join(w, &c, "c"), 0);
	assert_int_equal(w->changes, 3);
	assert_int_equal(find_port(w, "vm:a")->kind, SWITCH_VM);
	send_frame(w, &a, 2, 1);
	/* Nobody knows where MAC 2 is. */
	assert_int_equal(count_received(&b), 1);
	assert_int_equal(count_received(&c), 1);
	send_frame(w, &b, 1, 2);
	assert_int_equal(count_received(&a), 1);
	assert_int_equal(count_received(&c), 0);
	/* The one in the middle leaves: its MAC is forgotten, and the others go on. */
	end_process(w, &b);
	assert_int_equal(w->changes, 4);
	assert_null(find_port(w, "vm:b"));
	assert_non_null(find_port(w, "vm:c"));
	send_frame(w, &a, 2, 1);
	assert_int_equal(count_received(&c), 1);
	send_frame(w, &c, 1, 3);
	assert_int_equal(count_received(&a), 1);
	/* The next one takes the free slot. */
	assert_int_equal(join(w, &b, "b"), 0);
	assert_int_equal(find_port(w, "vm:b")->number, 2);
	assert_int_equal(find_port(w, "vm:b")->stats.counters[SWITCH_IN_FRAMES], 0);
	end_process(w, &a);
	end_process(w, &b);
	end_process(w, &c);
}

/* A machine that stops sends its last frames and gives its port back before the switch runs. */
static void last_frames_of_a_process_arrive(void **state)
{
	struct world *w = *state;
	struct process a, b;

	assert_int_equal(join(w, &a, "a"), 0);
	assert_int_equal(join(w, &b, "b"), 0);
	put_frames(&a, 2, 1, 3);
	end_process(w, &a);
	assert_null(find_port(w, "vm:a"));
	switch_run(&w->sw, T0);
	assert_int_equal(count_received(&b), 3);
	/* A full ring. */
	assert_int_equal(join(w, &a, "a"), 0);
	put_frames(&a, 2, 1, NETDEV_SHM_DEPTH);
	end_process(w, &a);
	switch_run(&w->sw, T0);
	assert_int_equal(count_received(&b), NETDEV_SHM_DEPTH);
	end_process(w, &b);
}

static uint16_t mtu_to(const struct world *w, uint8_t last)
{
	return switch_mtu_to(&w->sw, &(struct fdb_key){.mac = {2, 0, 0, 0, 0, last}});
}

/* The MTU of a machine's NIC is not known, so it counts as 1500, alone and beside other ports. */
static void mtu_to_a_machine_is_that_of_a_nic(void **state)
{
	struct world *w = *state;
	struct fdb_key host = {.vlan = 0};
	struct process a, b;

	memcpy(host.mac, w->host.mac, sizeof(host.mac));
	assert_int_equal(mtu_to(w, 1), 4200);
	assert_int_equal(join(w, &a, "a"), 0);
	assert_int_equal(mtu_to(w, 1), 1500);
	assert_int_equal(switch_mtu_to(&w->sw, &host), 4200);
	assert_int_equal(join(w, &b, "b"), 0);
	send_frame(w, &a, 2, 1);
	assert_int_equal(mtu_to(w, 1), 1500);
	assert_int_equal(switch_mtu_to(&w->sw, &host), 4200);
	/* No port is known to lead there: it may be a machine's. */
	assert_int_equal(mtu_to(w, 3), 1500);
	w->host.mtu = 1280;
	assert_int_equal(mtu_to(w, 1), 1280);
	end_process(w, &b);
	end_process(w, &a);
}

static int join_with_mac(struct world *w, struct process *p, const char *name, uint8_t last)
{
	struct vm_port_request request = request_of(name);

	memcpy(request.mac, (uint8_t[]){2, 0, 0, 0, 0, last}, sizeof(request.mac));
	return ask(w, p, &request, sizeof(request));
}

/* Who is first after a restart cannot take the MAC of another user's machine. */
static void macs_are_kept_over_a_restart(void **state)
{
	const uid_t one = 1234567, two = 1234568;
	struct world *w = *state;
	struct process a, b, c;

	w->trusted = (struct user_list){.n_users = 2, .users = {one, two}};
	assert_int_equal(join_with_mac(w, &a, "a", 1), 0); /* root's */
	peer_user = one;
	assert_int_equal(join_with_mac(w, &b, "b", 2), 0);
	restart(w);
	end_process(w, &a);
	end_process(w, &b);
	peer_user = two;
	w->later += MAC_STORE_KEEP_NS / 2;
	assert_int_equal(join_with_mac(w, &c, "c", 1), -EADDRINUSE);
	assert_int_equal(join_with_mac(w, &c, "c", 2), -EADDRINUSE);
	assert_int_equal(join_with_mac(w, &c, "c", 3), 0);
	peer_user = one;
	assert_int_equal(join_with_mac(w, &b, "b", 2), 0);
	/* A second restart: root's machine has not come yet. */
	restart(w);
	end_process(w, &b);
	end_process(w, &c);
	vm_port_set_tick(&w->ports, T0 + w->later + MAC_STORE_KEEP_NS - 1);
	assert_int_equal(join_with_mac(w, &c, "c", 1), -EADDRINUSE);
	assert_int_equal(join_with_mac(w, &c, "c", 3), -EADDRINUSE);
	vm_port_set_tick(&w->ports, T0 + w->later + MAC_STORE_KEEP_NS);
	assert_int_equal(join_with_mac(w, &c, "c", 1), 0);
	end_process(w, &c);
}

/* Users whom --vm-user names cannot take the frames of other machines. */
static void machine_of_another_user_has_one_mac(void **state)
{
	struct world *w = *state;
	struct process a, b, c, d;

	/* The MACs of their requests, and those that they send from. */
	assert_int_equal(join_with_mac(w, &a, "a", 1), 0);
	assert_int_equal(join_with_mac(w, &d, "d", 4), 0);
	send_frame(w, &a, 9, 5);
	peer_user = 1234567;
	w->trusted = (struct user_list){.n_users = 1, .users = {peer_user}};
	assert_int_equal(join_with_mac(w, &b, "b", 1), -EADDRINUSE);
	assert_int_equal(join_with_mac(w, &b, "b", 5), -EADDRINUSE);
	assert_null(find_port(w, "vm:b"));
	assert_int_equal(join_with_mac(w, &b, "b", 2), 0);
	assert_int_equal(join_with_mac(w, &c, "c", 2), -EADDRINUSE);
	send_frame(w, &b, 9, 2);
	assert_int_equal(count_received(&a), 1);
	send_frame(w, &b, 9, 1);
	send_frame(w, &b, 9, 3);
	assert_int_equal(count_received(&a), 0);
	assert_int_equal(find_port(w, "vm:b")->stats.drops[SWITCH_DROP_SPOOFED_MAC], 2);
	/* The MAC is free after the machine's end. */
	end_process(w, &b);
	assert_int_equal(join_with_mac(w, &c, "c", 2), 0);
	end_process(w, &c);
	/* Nothing has sent from this MAC for long. */
	w->later = FDB_AGE_NS - 1;
	assert_int_equal(join_with_mac(w, &c, "c", 5), -EADDRINUSE);
	w->later = FDB_AGE_NS;
	assert_int_equal(join_with_mac(w, &c, "c", 5), 0);
	end_process(w, &c);
	end_process(w, &d);
	end_process(w, &a);
}

static void trust_another_user(struct world *w)
{
	peer_user = 1234567;
	w->trusted = (struct user_list){.n_users = 1, .users = {peer_user}};
	restart(w);
}

/* A MAC is pinned in all VLANs, so the host's own in one VLAN is not free. */
static void machine_of_another_user_takes_no_mac_of_a_vlan_interface(void **state)
{
	struct host_address a = {.prefix_len = 128, .vlan = 20, .mac = {2, 0, 0, 0, 0, 5}};
	struct world *w = *state;
	struct process p;

	trust_another_user(w);
	ip_from_v4(a.ip, (const uint8_t[]){10, 0, 20, 1});
	host_set_kernel_addresses(&w->host, &a, 1);
	assert_int_equal(join_with_mac(w, &p, "p", 5), -EADDRINUSE);
	assert_int_equal(join_with_mac(w, &p, "p", 6), 0);
	end_process(w, &p);
}

/* The station on the cable sends a frame. */
static void send_by_wire(struct world *w, const uint8_t *data, uint32_t len)
{
	const struct netdev_frame f = {data, len, len, 0};

	assert_int_equal(netdev_tx(w->station, T0 + w->later, &f, 1), 1);
	switch_run(&w->sw, T0 + w->later);
}

static void send_from(struct world *w, uint8_t from)
{
	const uint8_t frame[60] = {2, 0, 0, 0, 0, 0x77, 2, 0, 0, 0, 0, from, 0x88, 0xb5};

	send_by_wire(w, frame, sizeof(frame));
}

/* The station 10.0.0.9 answers a solicitation. */
static void send_arp_reply(struct world *w, uint8_t from)
{
	const uint8_t frame[60] = {2,  2, 0, 0, 0, 1, 2, 0, 0, 0, 0,  from, 8, 6,
				   0,  1, 8, 0, 6, 4, 0, 2, 2, 0, 0,  0,    0, from,
				   10, 0, 0, 9, 2, 0, 0, 0, 0, 0, 10, 0,    0, 1};

	send_by_wire(w, frame, sizeof(frame));
}

/*
 * A machine of a user whom --vm-user names cannot take the MAC of a station on the cable, also if
 * it is the first one. If it comes from there by a migration, it waits for a second.
 */
static void machine_of_another_user_takes_no_mac_of_the_cable(void **state)
{
	struct world *w = *state;
	struct process a;

	trust_another_user(w);
	send_from(w, 5);
	assert_int_equal(join_with_mac(w, &a, "a", 5), -EADDRINUSE);
	w->later = FDB_MOVED_NS - 1;
	assert_int_equal(join_with_mac(w, &a, "a", 5), -EADDRINUSE);
	w->later = FDB_MOVED_NS;
	assert_int_equal(join_with_mac(w, &a, "a", 5), 0);
	/* The machine's frames pass, those of a station with its MAC do not. */
	send_frame(w, &a, 9, 5);
	assert_int_equal(find_port(w, "vm:a")->stats.counters[SWITCH_IN_FRAMES], 1);
	assert_int_equal(find_port(w, "vm:a")->stats.drops[SWITCH_DROP_SPOOFED_MAC], 0);
	send_from(w, 5);
	assert_int_equal(find_port(w, "wire")->stats.drops[SWITCH_DROP_SPOOFED_MAC], 1);
	end_process(w, &a);
}

/*
 * A silent station loses its MAC to a machine, and gets it back with its first frame to the host.
 * Then its silence no longer counts.
 */
static void station_that_has_not_moved_gets_its_mac_back(void **state)
{
	const uint8_t to_host[60] = {2, 2, 0, 0, 0, 1, 2, 0, 0, 0, 0, 5, 0x88, 0xb5};
	struct world *w = *state;
	struct process a;

	trust_another_user(w);
	send_from(w, 5);
	w->later = FDB_MOVED_NS;
	assert_int_equal(join_with_mac(w, &a, "a", 5), 0);
	/* The network may send back the machine's own frames to others. */
	send_from(w, 5);
	vm_port_set_tick(&w->ports, T0 + w->later);
	assert_non_null(find_port(w, "vm:a"));
	send_by_wire(w, to_host, sizeof(to_host));
	/* The machine's port is of no use any more, also before it is removed. */
	send_frame(w, &a, 9, 5);
	send_frame(w, &a, 9, 6);
	assert_int_equal(find_port(w, "vm:a")->stats.drops[SWITCH_DROP_SPOOFED_MAC], 2);
	vm_port_set_tick(&w->ports, T0 + w->later);
	assert_null(find_port(w, "vm:a"));
	end_process(w, &a);
	w->later += 2 * FDB_MOVED_NS;
	assert_int_equal(join_with_mac(w, &a, "a", 5), -EADDRINUSE);
	send_by_wire(w, to_host, sizeof(to_host));
	assert_int_equal(find_port(w, "wire")->stats.drops[SWITCH_DROP_SPOOFED_MAC], 2);
	w->later += FDB_AGE_NS;
	assert_int_equal(join_with_mac(w, &a, "a", 5), 0);
	/* The machine lives here, so the frame is forged. */
	w->later += FDB_AGE_NS;
	send_by_wire(w, to_host, sizeof(to_host));
	vm_port_set_tick(&w->ports, T0 + w->later);
	assert_non_null(find_port(w, "vm:a"));
	end_process(w, &a);
}

/* The host's programs resolve the address of a station with this MAC. */
static void meet_neighbour(struct world *w, uint8_t mac)
{
	const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 9};
	struct neigh_waiter waiter;
	struct vnic_next_hop hop;

	assert_int_equal(neigh_resolve(&w->neigh, T0, 0, 0, gid, &waiter, &hop), -EINPROGRESS);
	send_arp_reply(w, mac);
	assert_int_equal(w->answers, 1);
}

/* A silent neighbour of the host's programs is asked, and keeps its MAC if it answers. */
static void machine_of_another_user_takes_no_mac_of_a_neighbour(void **state)
{
	struct world *w = *state;
	struct process a;

	trust_another_user(w);
	meet_neighbour(w, 5);
	w->later = 10 * FDB_MOVED_NS;
	assert_int_equal(join_with_mac(w, &a, "a", 5), -EADDRINUSE);
	send_arp_reply(w, 5);
	w->later += NEIGH_PROBES * NEIGH_PROBE_NS;
	neigh_tick(&w->neigh, T0 + w->later);
	assert_int_equal(join_with_mac(w, &a, "a", 5), -EADDRINUSE);
	/* It has left, and answers no more. */
	w->later += FDB_MOVED_NS;
	assert_int_equal(join_with_mac(w, &a, "a", 5), -EADDRINUSE);
	for (int i = 0; i < NEIGH_PROBES; i++) {
		w->later += NEIGH_PROBE_NS;
		neigh_tick(&w->neigh, T0 + w->later);
	}
	assert_int_equal(join_with_mac(w, &a, "a", 5), 0);
	end_process(w, &a);
}

static void set_carrier(struct world *w, bool up)
{
	w->uplinks[0].up = up;
	vm_port_set_tick(&w->ports, T0 + w->later);
}

/* While the cable is out, and shortly after, silence does not show that a station has left. */
static void silence_without_a_carrier_gives_no_mac_away(void **state)
{
	struct world *w = *state;
	struct process a;

	trust_another_user(w);
	meet_neighbour(w, 5);
	send_from(w, 6);
	w->later = FDB_MOVED_NS;
	set_carrier(w, false);
	assert_int_equal(join_with_mac(w, &a, "a", 5), -EADDRINUSE);
	assert_int_equal(join_with_mac(w, &a, "a", 6), -EADDRINUSE);
	for (int i = 0; i < 2 * NEIGH_PROBES; i++) {
		w->later += NEIGH_PROBE_NS;
		neigh_tick(&w->neigh, T0 + w->later);
		assert_int_equal(join_with_mac(w, &a, "a", 5), -EADDRINUSE);
	}
	set_carrier(w, true);
	w->later += 4999999999;
	assert_int_equal(join_with_mac(w, &a, "a", 5), -EADDRINUSE);
	assert_int_equal(join_with_mac(w, &a, "a", 6), -EADDRINUSE);
	w->later++;
	/* The neighbour is asked now, and silent. */
	assert_int_equal(join_with_mac(w, &a, "a", 5), -EADDRINUSE);
	assert_int_equal(join_with_mac(w, &a, "a", 6), 0);
	end_process(w, &a);
}

static void port_names_are_unique_and_printable(void **state)
{
	struct world *w = *state;
	struct process a, b;
	char text[32];

	assert_int_equal(join(w, &a, ""), 0);
	snprintf(text, sizeof(text), "vm:%d", (int)getpid());
	assert_non_null(find_port(w, text));
	assert_int_equal(join(w, &b, ""), -EEXIST);
	assert_int_equal(join(w, &b, "a b"), -EINVAL);
	assert_int_equal(join(w, &b, "\033[2J"), -EINVAL);
	assert_int_equal(w->ports.n, 1);
	end_process(w, &a);
}

static void malformed_requests_are_refused(void **state)
{
	struct world *w = *state;
	struct vm_port_request request = request_of("a");
	struct process p;

	assert_int_equal(ask(w, &p, &request, sizeof(request) - 1), -EPROTO);
	request.version++;
	assert_int_equal(ask(w, &p, &request, sizeof(request)), -EPROTO);
	request = request_of("a");
	memset(request.name, 'a', sizeof(request.name));
	assert_int_equal(ask(w, &p, &request, sizeof(request)), -EPROTO);
	assert_int_equal(w->ports.n, 0);
	assert_int_equal(w->changes, 0);
	/* One that only connects, and ends. */
	p.socket = connect_to(w);
	serve(w);
	assert_int_equal(w->ports.n, 1);
	close(p.socket);
	serve(w);
	assert_int_equal(w->ports.n, 0);
	/* A second request ends the port. */
	assert_int_equal(join(w, &p, "a"), 0);
	unix_packet_send(p.socket, &request, sizeof(request), NULL, 0);
	serve(w);
	assert_null(find_port(w, "vm:a"));
	end_process(w, &p);
}

static void other_users_need_a_name_in_the_list(void **state)
{
	struct world *w = *state;
	struct process p;

	peer_user = 1234567;
	assert_int_equal(join(w, &p, "a"), -EPERM);
	w->trusted = (struct user_list){.n_users = 1, .users = {peer_user}};
	assert_int_equal(join(w, &p, "a"), 0);
	end_process(w, &p);
}

static void user_gets_half_of_the_ports(void **state)
{
	struct world *w = *state;
	struct process many[VM_PORTS], p;
	uint32_t n = 0;
	char name[16];
	int rc = 0;

	peer_user = 1234567;
	w->trusted = (struct user_list){.n_users = 2, .users = {peer_user, peer_user + 1}};
	while (!rc) {
		snprintf(name, sizeof(name), "m%u", n);
		rc = join(w, n < VM_PORTS ? &many[n] : &p, name);
		n += !rc;
	}
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(n, VM_PORTS / 2);
	peer_user++;
	assert_int_equal(join(w, &p, "other"), 0);
	end_process(w, &p);
	/* Root takes the rest, and no more. */
	peer_user = 0;
	for (; n < VM_PORTS; n++) {
		snprintf(name, sizeof(name), "m%u", n);
		assert_int_equal(join(w, &many[n], name), 0);
	}
	assert_int_equal(join(w, &p, "more"), -ENOSPC);
	while (n--)
		end_process(w, &many[n]);
}

/* The memory of the port is a header with ring positions: the process overwrites all of it. */
static void a_process_that_breaks_its_rings_is_removed(void **state)
{
	struct world *w = *state;
	struct process a, b;
	size_t size;
	uint8_t *end;

	assert_int_equal(join(w, &a, "a"), 0);
	assert_int_equal(join(w, &b, "b"), 0);
	end = netdev_shm_buffers(a.peer, &size);
	lseek(a.fds.memory, 0, SEEK_SET);
	for (int i = 0; i < 4096; i += 4)
		assert_int_equal(pwrite(a.fds.memory, "\xde\xad\xbe\xef", 4, 24 + i), 4);
	assert_non_null(end);
	switch_run(&w->sw, T0);
	vm_port_set_tick(&w->ports, T0);
	assert_null(find_port(w, "vm:a"));
	send_frame(w, &b, 1, 2);
	assert_int_equal(find_port(w, "vm:b")->stats.counters[SWITCH_IN_FRAMES], 1);
	end_process(w, &a);
	end_process(w, &b);
}

/* The host has no uplink: machines find its addresses, and its processes find machines. */
static void the_host_answers_machines(void **state)
{
	static const uint8_t arp[60] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0,  0, 0, 0, 1, 8, 6, 0, 1, 8, 0,  6, 4, 0,
		1,    2,    0,    0,    0,    0,    1, 10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1};
	struct world *w = *state;
	struct netdev_frame got;
	struct neigh_waiter waiter;
	struct vnic_next_hop hop;
	struct netdev_frame f;
	struct process a;
	size_t size;
	const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 9};

	assert_int_equal(neigh_resolve(&w->neigh, T0, 0, 0, gid, &waiter, &hop), -ENETUNREACH);
	assert_int_equal(join(w, &a, "a"), 0);
	switch_run(&w->sw, T0);
	f = (struct netdev_frame){netdev_shm_buffers(a.peer, &size), sizeof(arp), sizeof(arp), 0};
	memcpy((void *)(uintptr_t)f.data, arp, sizeof(arp));
	netdev_shm_send(a.peer, &f, 1);
	switch_run(&w->sw, T0);
	assert_int_equal(netdev_shm_receive(a.peer, &got, 1), 1);
	assert_memory_equal(got.data + 6, w->host.mac, 6);
	assert_int_equal(got.data[21], 2);
	netdev_shm_release(a.peer, 1);
	/* The process's question reaches the machine. */
	assert_int_equal(neigh_resolve(&w->neigh, T0, 0, 0, gid, &waiter, &hop), -EINPROGRESS);
	switch_run(&w->sw, T0);
	assert_int_equal(netdev_shm_receive(a.peer, &got, 1), 1);
	assert_int_equal(got.data[21], 1);
	neigh_cancel(&w->neigh, &waiter);
	end_process(w, &a);
}

/* A connection without a request stays when the last machine leaves. */
static void a_connection_is_no_machine(void **state)
{
	struct world *w = *state;
	struct process a;
	int fd;

	assert_int_equal(join(w, &a, "a"), 0);
	assert_true(w->has_machine);
	fd = connect_to(w);
	serve(w);
	assert_int_equal(w->ports.n, 2);
	end_process(w, &a);
	assert_false(w->has_machine);
	close(fd);
	serve(w);
}

static void descriptors_end_the_connection(void **state)
{
	struct world *w = *state;
	struct vm_port_request request = request_of("a");
	int fd = connect_to(w), null = 0;

	serve(w);
	/* From Linux 6.16 on the sender gets EPERM. */
	if (!unix_packet_send(fd, &request, sizeof(request), &null, 1)) {
		serve(w);
		assert_int_equal(w->ports.n, 0);
	}
	close(fd);
	serve(w);
	assert_null(find_port(w, "vm:a"));
}

/* A connection that cannot be accepted without descriptors wakes the daemon again after a pause. */
static void connection_without_descriptors_is_accepted_later(void **state)
{
	struct world *w = *state;
	struct pollfd pfd = {.fd = w->ports.epoll_fd, .events = POLLIN};
	struct rlimit limit;
	uint64_t due;
	int fd = connect_to(w);

	limit = descriptor_limit_reach();
	vm_port_set_event(&w->ports, T0);
	descriptor_limit_restore(&limit);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	due = vm_port_set_tick(&w->ports, T0);
	assert_in_range(due, T0 + 1, T0 + 1000000000);
	assert_int_equal(vm_port_set_tick(&w->ports, due), UINT64_MAX);
	vm_port_set_event(&w->ports, due);
	assert_int_equal(w->ports.n, 1);
	close(fd);
	serve(w);
}

#define TEST(f)           cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TEST_WITH_WIRE(f) cmocka_unit_test_setup_teardown(f, setup_with_wire, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frames_pass_between_machines),
		TEST(last_frames_of_a_process_arrive),
		TEST(mtu_to_a_machine_is_that_of_a_nic),
		TEST(machine_of_another_user_has_one_mac),
		TEST(machine_of_another_user_takes_no_mac_of_a_vlan_interface),
		TEST_WITH_WIRE(machine_of_another_user_takes_no_mac_of_the_cable),
		TEST_WITH_WIRE(station_that_has_not_moved_gets_its_mac_back),
		TEST_WITH_WIRE(machine_of_another_user_takes_no_mac_of_a_neighbour),
		TEST_WITH_WIRE(silence_without_a_carrier_gives_no_mac_away),
		TEST(macs_are_kept_over_a_restart),
		TEST(port_names_are_unique_and_printable),
		TEST(malformed_requests_are_refused),
		TEST(other_users_need_a_name_in_the_list),
		TEST(user_gets_half_of_the_ports),
		TEST(a_process_that_breaks_its_rings_is_removed),
		TEST(the_host_answers_machines),
		TEST(a_connection_is_no_machine),
		TEST(descriptors_end_the_connection),
		TEST(connection_without_descriptors_is_accepted_later),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
