/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/uplink/vm_port_set.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netdev/shm.h>
#include <vnic/peer_socket.h>

#include "common/clock.h"
#include "common/rundir.h"
#include "common/unix_packet.h"
#include "urxed/privilege/fd_guard.h"
#include "urxed/session/quota.h"
#include "urxed/switch/forward.h"
#include "urxed/uplink/vm_port_protocol.h"

#define BACKLOG  16
#define EVENTS   8
#define LISTENER UINT32_MAX /* data of the listening socket's events; others have the slot */
/* The probable MTU of a machine's NIC, which is the drivers' default: the machine chooses its MTU,
 * and the daemon does not learn it. */
#define NIC_MTU 1500
/* Time for which stations on the uplink may be silent after its link has come or gone, ns. */
#define CARRIER_SETTLE_NS 5000000000ull

void vm_port_set_init(struct vm_port_set *all, struct vswitch *sw, const struct user_list *trusted,
		      void (*changed)(void *ctx), void *ctx)
{
	*all = (struct vm_port_set){.sw = sw,
				    .trusted = trusted,
				    .changed = changed,
				    .ctx = ctx,
				    .epoll_fd = -1,
				    .listen_fd = -1};
	for (uint32_t i = 0; i < SWITCH_SLOTS; i++)
		all->at[i].socket = -1;
	mac_store_init(&all->macs);
}

/* Returns the bit mask of the uplinks that have a link now. */
static uint32_t find_carriers(const struct vm_port_set *all)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < all->first; i++)
		mask |= (uint32_t)all->sw->uplinks[i].up << i;
	return mask;
}

static void note_carriers(struct vm_port_set *all, uint64_t now)
{
	const uint32_t carriers = find_carriers(all), changed = carriers ^ all->carriers;

	all->carriers = carriers;
	for (uint32_t i = 0; i < all->first; i++)
		if (changed >> i & 1)
			all->carrier_changed_at[i] = now;
}

/*
 * Returns the bit mask of the uplinks at which silence does not mean that a station has left: those
 * without a link, and those whose link has come or gone lately. In a bond one member with a link
 * suffices.
 */
static uint32_t find_unsettled(const struct vm_port_set *all, uint64_t now)
{
	const uint32_t carriers = find_carriers(all);
	uint32_t up = 0, changed = 0;

	for (uint32_t i = 0; i < all->first; i++) {
		const uint32_t bit = 1u << bond_port_of(&all->sw->bond, i);
		const uint64_t at = all->carrier_changed_at[i];

		if (carriers >> i & 1)
			up |= bit;
		if (at && now - at < CARRIER_SETTLE_NS)
			changed |= bit;
	}
	return all->sw->wire_mask & (changed | ~up);
}

static int watch_socket(const struct vm_port_set *all, int fd, uint32_t data)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = data};

	return epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int vm_port_set_open(struct vm_port_set *all, const char *run_dir, gid_t group,
		     char error[VM_PORT_SET_ERROR])
{
	int rc = mac_store_open(&all->macs, run_dir);

	if (rc) {
		snprintf(error, VM_PORT_SET_ERROR, "cannot use " MAC_STORE_NAME " in %s: %s",
			 run_dir, strerror(-rc));
		return rc;
	}
	all->run_dir = run_dir;
	all->first = all->sw->n_uplinks;
	all->carriers = find_carriers(all);
	/* The switch must know the MACs of stations, because confined machines, which may join
	 * later, must not take them (confine). */
	all->sw->learns_alone = all->trusted->n_users || all->trusted->n_groups;
	all->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rc = all->epoll_fd < 0 ? -errno : unix_packet_listen(run_dir, VM_PORT_SOCKET_NAME, BACKLOG);
	if (rc >= 0) {
		all->listen_fd = rc;
		all->pause =
			(struct accept_pause){.epoll_fd = all->epoll_fd,
					      .fd = all->listen_fd,
					      .watch = {.events = EPOLLIN, .data.u32 = LISTENER}};
		rc = watch_socket(all, all->listen_fd, LISTENER);
	}
	if (rc < 0) {
		snprintf(error, VM_PORT_SET_ERROR, "cannot listen in %s: %s", run_dir,
			 strerror(-rc));
		return rc;
	}
	return group ? rundir_grant_group(run_dir, VM_PORT_SOCKET_NAME, group, error) : 0;
}

/* --- The port of a machine */

bool vm_port_set_has_machine(const struct vm_port_set *all)
{
	return all->sw->vm_mask >> all->first;
}

static const struct uplink_impair no_impairments;

static int open_port(struct vm_port_set *all, uint32_t slot, struct netdev_shm_fds *fds)
{
	struct uplink *u = &all->sw->uplinks[slot];
	struct netdev *port;
	int rc = netdev_shm_create(VM_PORT_MTU, &port);

	if (rc)
		return rc;
	*u = (struct uplink){
		.spec = all->at[slot].name,
		.kind = UPLINK_VM,
		.impair = &no_impairments,
		.port = port,
		.claim = -1,
		.up = true,
		.mtu = VM_PORT_MTU,
		.mtu_max = VM_PORT_MTU,
		.nic_mtu = NIC_MTU,
	};
	roce_port_guard_init(&u->port_guard);
	iface_watch_init(&u->watch);
	/* Machines know the host by one MAC, whichever port they are at. */
	memcpy(u->mac, all->sw->host->mac, ETHER_MAC_LEN);
	rc = netdev_shm_connect(port, fds) ?: uplink_make_queue(u);
	if (rc) {
		netdev_close(port);
		u->port = NULL;
	}
	return rc;
}

static void close_port(struct vm_port_set *all, uint32_t slot)
{
	struct uplink *u = &all->sw->uplinks[slot];

	netdev_close(u->port);
	u->port = NULL;
	uplink_free_queue(u);
	switch_remove_vm_port(all->sw, slot);
}

/* --- Requests */

static bool name_valid(const char *name)
{
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("-_.", *name))
			return false;
	return true;
}

static bool name_taken(const struct vm_port_set *all, const char *name)
{
	const struct switch_port *port = NULL;

	while ((port = switch_next_port(all->sw, port)))
		if (!strcmp(port->name, name))
			return true;
	return false;
}

/* Sets the name of the port. Returns 0, -EINVAL or -EEXIST (vm_port_reply). Each name begins with
 * "vm:", so that a machine cannot take the name of another kind of port. */
static int choose_name(struct vm_port_set *all, struct vm_port *s, const char *asked)
{
	if (!name_valid(asked))
		return -EINVAL;
	if (*asked)
		snprintf(s->name, sizeof(s->name), "vm:%s", asked);
	else
		snprintf(s->name, sizeof(s->name), "vm:%d", (int)s->pid);
	return name_taken(all, s->name) ? -EEXIST : 0;
}

static bool mac_taken(const struct vm_port_set *all, const uint8_t mac[ETHER_MAC_LEN], uid_t user)
{
	/* The machine that had the MAC under the earlier daemon may not have come back yet. */
	if (mac_store_is_kept(&all->macs, mac, user))
		return true;
	for (uint32_t i = 0; i < SWITCH_SLOTS; i++)
		if (all->at[i].joined && ether_same(all->at[i].mac, mac))
			return true;
	return switch_is_host_mac(all->sw, mac, 0) || host_has_interface_mac(all->sw->host, mac);
}

/*
 * Pins the MAC of a confined machine to its port; does nothing for other machines. Returns 0, or an
 * error of vm_port_reply. It is -EADDRINUSE if the MAC is in use, because the machine must not get
 * frames of others. If the MAC is a neighbour's, the daemon probes the neighbour, and the MAC
 * becomes free if the neighbour is silent. So a machine that has migrated to this host can join
 * soon.
 */
static int confine(struct vm_port_set *all, uint32_t slot, uint64_t now,
		   const uint8_t mac[ETHER_MAC_LEN])
{
	const uint32_t unsettled = find_unsettled(all, now);
	struct vswitch *sw = all->sw;
	int rc;

	if (!all->at[slot].confined)
		return 0;
	rc = mac_taken(all, mac, all->at[slot].user) ||
			     neigh_probe_station(sw->neigh, now, sw->wire_mask, unsettled, mac)
		     ? -EEXIST
		     : fdb_pin_unknown(&sw->fdb, now, sw->wire_mask & ~unsettled, mac, slot);
	return rc == -EEXIST ? -EADDRINUSE : rc;
}

static int join(struct vm_port_set *all, uint32_t slot, uint64_t now,
		const struct vm_port_request *request, int len, struct netdev_shm_fds *fds)
{
	struct vm_port *s = &all->at[slot];
	int rc;

	if (len != sizeof(*request) || request->version != VM_PORT_VERSION ||
	    request->name[VM_PORT_NAME - 1])
		return -EPROTO;
	rc = choose_name(all, s, request->name) ?: open_port(all, slot, fds);
	if (rc)
		return rc;
	switch_add_vm_port(all->sw, slot);
	rc = confine(all, slot, now, request->mac);
	if (rc) {
		close_port(all, slot);
		return rc;
	}
	s->joined = true;
	memcpy(s->mac, request->mac, sizeof(s->mac));
	s->mac_slot = mac_store_add(&all->macs, s->mac, s->user);
	return 0;
}

/* Sends the replies to a request, or the one with an error status. Never blocks, because the socket
 * has room for its first packets. */
static int send_replies(const struct vm_port_set *all, const struct vm_port *s, int status,
			const struct netdev_shm_fds *fds)
{
	const struct vm_port_reply reply = {
		.version = VM_PORT_VERSION, .status = status, .mtu = all->sw->host->mtu};
	const int first[] = {fds->memory, fds->wake};
	int rc = unix_packet_send(s->socket, &reply, sizeof(reply), first, status ? 0 : 2);

	return rc || status ? rc
			    : unix_packet_send(s->socket, &reply, sizeof(reply), &fds->kick, 1);
}

/* --- Connections */

/*
 * Takes the socket of a device process out of the epoll set and closes it. fd_guard's helper
 * process may hold a copy for some time, during which epoll would report the socket again and
 * again.
 */
static void close_socket(struct vm_port_set *all, int fd)
{
	epoll_ctl(all->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	fd_guard_close(fd);
}

static void remove_port(struct vm_port_set *all, uint32_t slot, uint64_t now, const char *why)
{
	struct vm_port *s = &all->at[slot];
	const bool joined = s->joined;

	if (joined) {
		mac_store_remove(&all->macs, s->mac_slot);
		close_port(all, slot);
		log_ratelimited(&all->log, now, "%s left: %s", s->name, why);
	}
	close_socket(all, s->socket);
	*s = (struct vm_port){.socket = -1};
	all->n--;
	if (joined)
		all->changed(all->ctx);
}

/*
 * Removes the port of a process that has ended, or whose machine stands still. Forwards the port's
 * last frames first: peers wait for the acknowledgements among them, which the machine does not
 * repeat.
 */
static void end_port(struct vm_port_set *all, uint32_t slot, uint64_t now)
{
	if (all->at[slot].joined)
		switch_drain_vm_port(all->sw, now, slot);
	remove_port(all, slot, now, "its process ended");
}

static void handle_packet(struct vm_port_set *all, uint32_t slot, uint64_t now)
{
	struct vm_port *s = &all->at[slot];
	struct vm_port_request request;
	struct netdev_shm_fds fds = {-1, -1, -1};
	int n = vnic_peer_recv(s->socket, &request, sizeof(request)), status;

	if (n == -EAGAIN)
		return;
	if (s->joined || (n <= 0 && n != -EPROTO)) {
		if (n > 0 || n == -EPROTO || n == -EPERM)
			remove_port(all, slot, now, "its process sent an unexpected packet");
		else
			end_port(all, slot, now);
		return;
	}
	status = join(all, slot, now, &request, n, &fds);
	if (send_replies(all, s, status, &fds) || status) {
		remove_port(all, slot, now, "its process ended");
		return;
	}
	log_ratelimited(&all->log, now, "%s joined, process %d of user %u", s->name, (int)s->pid,
			s->user);
	all->changed(all->ctx);
}

/* Returns the index of a free slot; -1: none is free. */
static int find_slot(const struct vm_port_set *all)
{
	for (uint32_t i = all->first; i < all->first + VM_PORTS; i++)
		if (all->at[i].socket < 0)
			return (int)i;
	return -1;
}

static uint32_t count_connections(const struct vm_port_set *all, uid_t user)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SWITCH_SLOTS; i++)
		n += all->at[i].socket >= 0 && all->at[i].user == user;
	return n;
}

static int admit(const struct vm_port_set *all, int fd, const struct ucred *peer)
{
	if (!unix_packet_peer_is_trusted(fd) && !user_list_has_peer(all->trusted, fd))
		return -EPERM;
	return find_slot(all) >= 0 && quota_allows(peer->uid, count_connections(all, peer->uid),
						   all->n, VM_PORTS)
		       ? 0
		       : -ENOSPC;
}

static void accept_connection(struct vm_port_set *all, uint64_t now)
{
	const struct netdev_shm_fds none = {-1, -1, -1};
	struct vm_port s = {
		.socket = accept4(all->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)};
	struct ucred peer;
	int rc, slot;

	if (s.socket < 0) {
		accept_pause_begin(&all->pause, now, errno);
		return;
	}
	rc = unix_packet_peer(s.socket, &peer) ? -EPERM : admit(all, s.socket, &peer);
	slot = find_slot(all);
	if (rc || watch_socket(all, s.socket, (uint32_t)slot)) {
		send_replies(all, &s, rc ?: -ENOSPC, &none);
		fd_guard_close(s.socket);
		return;
	}
	s.user = peer.uid;
	s.pid = peer.pid;
	s.confined = !unix_packet_peer_is_trusted(s.socket);
	all->at[slot] = s;
	all->n++;
}

void vm_port_set_event(struct vm_port_set *all, uint64_t now)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(all->epoll_fd, events, EVENTS, 0);
	bool connection = false;

	for (int i = 0; i < n; i++) {
		if (events[i].data.u32 == LISTENER)
			connection = true;
		else if (all->at[events[i].data.u32].socket >= 0)
			handle_packet(all, events[i].data.u32, now);
	}
	/* After all other events, because accept_connection may fill a slot that an event of this
	 * batch has freed, and a later event still means the old connection. */
	if (connection)
		accept_connection(all, now);
}

uint64_t vm_port_set_tick(struct vm_port_set *all, uint64_t now)
{
	const uint64_t next = mac_store_tick(&all->macs, now);

	note_carriers(all, now);
	for (uint32_t i = 0; i < SWITCH_SLOTS && all->n; i++) {
		if (!all->at[i].joined)
			continue;
		if (all->sw->displaced >> i & 1)
			remove_port(all, i, now, "a station on the cable has its MAC");
		else if (netdev_shm_state(all->sw->uplinks[i].port) == NETDEV_SHM_BROKEN)
			remove_port(all, i, now, "its process broke the rings of its port");
	}
	return earlier(next, accept_pause_tick(&all->pause, now));
}

static bool has_joined(const struct vm_port_set *all)
{
	for (uint32_t i = 0; i < SWITCH_SLOTS; i++)
		if (all->at[i].joined)
			return true;
	return false;
}

void vm_port_set_close(struct vm_port_set *all)
{
	/* Before remove_port, which would remove the MACs from the file. */
	mac_store_close(&all->macs, all->run_dir, has_joined(all));
	for (uint32_t i = 0; i < SWITCH_SLOTS; i++)
		if (all->at[i].socket >= 0)
			remove_port(all, i, 0, "the daemon ends");
	if (all->listen_fd >= 0) {
		rundir_remove(all->run_dir, VM_PORT_SOCKET_NAME);
		fd_guard_close_listener(all->listen_fd);
	}
	if (all->epoll_fd >= 0)
		close(all->epoll_fd);
	all->listen_fd = all->epoll_fd = -1;
}
