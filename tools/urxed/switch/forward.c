/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/forward.h"

#include <string.h>

#include <netdev/shm.h>
#include <rxe/announcement.h>
#include <vnic/regs.h>

#include "common/clock.h"
#include "urxed/bond/bond_filter.h"
#include "urxed/hostnet/neigh_filter.h"
#include "urxed/switch/announcement.h"
#include "urxed/switch/antispoof.h"
#include "urxed/switch/classify.h"
#include "urxed/switch/deliver.h"
#include "urxed/switch/destination.h"

#define BURST 32

static bool receives_multicast(const struct switch_port *port, const struct switch_port *from)
{
	return port != from && port->dev && vnic_device_wants_multicast(port->dev);
}

static bool receives_announcements(const struct switch_port *port)
{
	return port->dev && vnic_device_wants_broadcast(port->dev);
}

static uint32_t count_copies(const struct vswitch *sw, const struct switch_port *from,
			     const struct switch_dest *dest)
{
	uint32_t n = (uint32_t)__builtin_popcount(dest->out) + !!dest->process + dest->daemon +
		     dest->gsi;
	const struct switch_port *port;

	for (port = dest->listeners ? sw->ports : NULL; port; port = port->next)
		n += receives_multicast(port, from);
	for (port = dest->announced ? sw->ports : NULL; port; port = port->next)
		n += receives_announcements(port);
	return n;
}

static void deliver_to_daemon(struct vswitch *sw, const struct switch_port *from,
			      const struct switch_frame *f)
{
	switch_count_out(sw, &sw->self, f);
	neigh_input(sw->neigh, sw->now, (int)(from - sw->uplink_ports), f->parts[0].iov_base,
		    f->len);
}

static void deliver_to_gsi(struct vswitch *sw, const struct switch_frame *f)
{
	switch_count_out(sw, &sw->self, f);
	sw->gsi(sw->gsi_ctx, sw->now, f->parts[0].iov_base, f->len);
}

/*
 * Gives a multicast frame to each process that has joined any group, because only a process's
 * engine knows which groups. The sender gets none, because its engine has already served its own
 * QPs.
 */
static void deliver_to_listeners(struct vswitch *sw, const struct switch_port *from,
				 const struct switch_frame *f)
{
	struct switch_port *port;

	for (port = sw->ports; port; port = port->next)
		if (receives_multicast(port, from))
			switch_deliver(sw, port, f, NULL);
}

/* Tells each process that the station `mac` has announced itself. All kinds of announcements become
 * the same RARP frame, because engines know no ARP. */
static void deliver_announcement(struct vswitch *sw, const uint8_t mac[ETHER_MAC_LEN])
{
	uint8_t frame[URXE_ANNOUNCEMENT_LEN];
	struct switch_frame announcement;
	struct switch_port *port;

	urxe_announcement_build(frame, mac);
	announcement = switch_frame_whole(frame, sizeof(frame));
	for (port = sw->ports; port; port = port->next)
		if (receives_announcements(port))
			switch_deliver(sw, port, &announcement, NULL);
}

/* Subtracts the copies of a frame from sw->room, the number of frames that processes may still send
 * in this run. A frame without destination takes time, too, and counts as one. */
static void use_room(struct vswitch *sw, uint32_t copies)
{
	uint32_t used = copies ? copies : 1;

	sw->room -= used < sw->room ? used : sw->room;
}

/* Returns the port by which a frame to uplink i leaves. */
static struct switch_port *choose_port(struct vswitch *sw, uint32_t i, const struct switch_frame *f)
{
	const uint8_t *dmac = f->parts[0].iov_base;

	if (!bond_has(&sw->bond, i))
		return &sw->uplink_ports[i];
	return &sw->uplink_ports[ether_is_group(dmac) ? bond_lead(&sw->bond)
						      : bond_choose(&sw->bond, f->bond_flow)];
}

/*
 * Sends a frame to its destinations; if it has none, drops it for `reason`. Returns false if the
 * frame must wait. A frame with several destinations never waits, because the second try would send
 * some copies twice.
 */
static bool forward_frame(struct vswitch *sw, struct switch_port *from,
			  const struct switch_frame *f, const struct switch_dest *dest,
			  enum switch_drop reason)
{
	uint32_t copies = count_copies(sw, from, dest), i;
	bool can_wait = from->kind == SWITCH_PROCESS && !from->ending && copies == 1, done = true;
	struct switch_port *sender = can_wait ? from : NULL;

	switch_count_in(sw, from, f, copies ? SWITCH_NO_DROP : reason);
	if (copies > 1)
		from->stats.counters[SWITCH_COPIES] += copies - 1;
	for (i = 0; i < sw->n_uplinks; i++)
		if (dest->out & 1u << i)
			done = switch_enqueue(sw, choose_port(sw, i, f), f, sender);
	if (dest->process) {
		switch_introduce(sw, from, dest->process, f->flow);
		done = switch_deliver(sw, dest->process, f, sender);
	}
	if (dest->listeners)
		deliver_to_listeners(sw, from, f);
	if (dest->announced)
		deliver_announcement(sw, (const uint8_t *)f->parts[0].iov_base + ETHER_MAC_LEN);
	if (dest->daemon)
		deliver_to_daemon(sw, from, f);
	if (dest->gsi)
		deliver_to_gsi(sw, f);
	/* A frame that waits does not count: otherwise many such frames, of the first processes in
	 * `turns`, would end each run before the other processes' turn. */
	if (done && from->kind == SWITCH_PROCESS)
		use_room(sw, copies);
	return done;
}

/* Sets f->bond_flow, by which a bond chooses the member for the frame. */
static void set_bond_flow(const struct vswitch *sw, const struct frame_class *s,
			  struct switch_frame *f)
{
	if (sw->bond.mode != BOND_NONE)
		f->bond_flow = bond_filter_flow(s);
}

/* Tells the bond if this is a RoCE frame of this host that leaves by the bond. */
static void note_bond_frame(struct vswitch *sw, const struct frame_class *s,
			    const struct switch_dest *dest)
{
	if (s->kind == FRAME_ROCE && dest->out & sw->bond.mask)
		bond_filter_note_sent(sw, s);
}

void switch_send(struct vswitch *sw, int uplink, const uint8_t *frame, uint32_t len)
{
	struct switch_frame f = switch_frame_whole(frame, len);
	struct switch_dest dest;
	struct frame_class s;

	classify_frame(&s, frame, len);
	set_bond_flow(sw, &s, &f);
	switch_dest_from_urxed(sw, uplink, &s, &dest);
	forward_frame(sw, &sw->self, &f, &dest, SWITCH_DROP_NO_UPLINK);
}

void switch_send_by(struct vswitch *sw, uint32_t uplink, const uint8_t *frame, uint32_t len)
{
	const struct switch_frame f = switch_frame_whole(frame, len);

	switch_count_in(sw, &sw->self, &f, SWITCH_NO_DROP);
	switch_enqueue(sw, &sw->uplink_ports[uplink], &f, NULL);
}

/*
 * Ignores the ports of virtual machines: a machine that takes no frames must not stop the daemon.
 */
bool switch_has_room(struct vswitch *sw, uint32_t n)
{
	for (uint32_t i = 0; i < sw->n_uplinks; i++) {
		struct switch_port *port = &sw->uplink_ports[i];

		if (port->kind != SWITCH_UPLINK || !port->uplink ||
		    uplink_has_room(port->uplink, n))
			continue;
		switch_flush(sw, port);
		if (!uplink_has_room(port->uplink, n))
			return false;
	}
	return true;
}

void switch_send_gsi(struct vswitch *sw, const uint8_t *frame, uint32_t len)
{
	struct switch_frame f = switch_frame_whole(frame, len);
	struct switch_dest dest;
	struct frame_class s;

	classify_frame(&s, frame, len);
	f.from_host = true;
	set_bond_flow(sw, &s, &f);
	switch_dest_from_gsi(sw, &s, &dest);
	note_bond_frame(sw, &s, &dest);
	forward_frame(sw, &sw->self, &f, &dest, SWITCH_DROP_NO_UPLINK);
}

/*
 * QEMU makes a machine's driver announce the machine five times in 0.9 s after a migration. The
 * first announcement repairs connections. The others would only make busy peers repeat packets that
 * arrive.
 */
#define RETURN_NS (2 * NS_PER_SEC)

bool switch_host_returned(struct vswitch *sw, uint64_t now)
{
	const struct switch_dest dest = {.announced = true};
	uint8_t frame[URXE_ANNOUNCEMENT_LEN];
	struct switch_frame f;

	if (sw->returned_at && now - sw->returned_at < RETURN_NS)
		return false;
	sw->returned_at = now;
	urxe_announcement_build(frame, sw->host->mac);
	f = switch_frame_whole(frame, sizeof(frame));
	forward_frame(sw, &sw->self, &f, &dest, SWITCH_DROP_UNHEARD);
	return true;
}

/* --- From a process */

/* Sends a frame of a process, or drops it. Returns false if the frame must wait. */
static bool forward_from_process(struct vswitch *sw, struct switch_port *from,
				 const struct vnic_tx_frame *tx)
{
	const struct antispoof_rules rules = {sw->host, &sw->leases, &sw->remotes};
	enum switch_drop reason;
	struct switch_dest dest = {0};
	struct switch_frame f;
	struct frame_class s;

	classify_frame(&s, tx->data, tx->len);
	f = switch_frame_of_process(&s, tx);
	set_bond_flow(sw, &s, &f);
	reason = antispoof_check(&rules, from, &s);
	if (reason == SWITCH_NO_DROP)
		reason = switch_dest_from_process(sw, from, &s, &dest);
	note_bond_frame(sw, &s, &dest);
	return forward_frame(sw, from, &f, &dest, reason);
}

static bool forward_queue(struct vswitch *sw, struct switch_port *port, uint32_t queue)
{
	struct vnic_tx_frame frames[BURST];
	const uint32_t bit = 1u << queue;
	uint32_t n, taken;

	n = vnic_device_tx(port->dev, queue, frames, BURST);
	port->held = port->waiting & bit;
	for (taken = 0; taken < n && sw->room; taken++) {
		port->waiting &= ~bit;
		if (!forward_from_process(sw, port, &frames[taken])) {
			port->waiting |= bit;
			break;
		}
		port->held = false;
	}
	if (!taken)
		return false;
	vnic_device_tx_done(port->dev, queue, taken);
	port->dirty = true;
	return true;
}

static bool forward_port(struct vswitch *sw, struct switch_port *port)
{
	bool moved = false;

	switch_settle(sw, port);
	/* Queues are independent: if a frame of one queue waits for its receiver, the other queues
	 * go on. */
	for (uint32_t i = 0; port->dev && i < vnic_device_tx_queues(port->dev); i++)
		moved |= forward_queue(sw, port, i);
	return moved;
}

/* Sends the transmit queues of all uplinks and VMs. Returns whether a queue has become shorter. */
static bool flush_uplinks(struct vswitch *sw)
{
	bool any = false;

	for (uint32_t i = 0; i < sw->n_uplinks; i++) {
		const struct uplink *u = sw->uplink_ports[i].uplink;
		const uint32_t before = u ? u->queued : 0;

		if (u)
			switch_flush(sw, &sw->uplink_ports[i]);
		any |= u && u->queued < before;
	}
	return any;
}

uint32_t switch_drain(struct vswitch *sw, uint64_t now, struct switch_port *port)
{
	sw->now = now;
	sw->room = SWITCH_RUN_FRAMES;
	do {
		while (forward_port(sw, port))
			;
	} while (port->waiting && sw->room && flush_uplinks(sw));
	return SWITCH_RUN_FRAMES - sw->room;
}

void switch_send_last(struct vswitch *sw, uint64_t now, struct switch_port *port)
{
	struct vnic_tx_frame frame;

	sw->now = now;
	sw->room = SWITCH_RUN_FRAMES;
	port->held = false;
	port->ending = true;
	if (!port->dev || !vnic_device_last_frame(port->dev, &frame))
		return;
	flush_uplinks(sw);
	forward_from_process(sw, port, &frame);
}

/* --- From an uplink or a VM */

/* Returns the index of the port at which the switch learns a sender's MAC; all members of a bond
 * count as one port. */
static uint32_t station_port(const struct vswitch *sw, const struct switch_port *from)
{
	return bond_port_of(&sw->bond, (uint32_t)(from - sw->uplink_ports));
}

static struct fdb_key source_key(const struct frame_class *s)
{
	struct fdb_key key = {.vlan = s->vlan};

	memcpy(key.mac, s->smac, ETHER_MAC_LEN);
	return key;
}

/*
 * Whether a frame that came from outside has an address of the host as its source. The switch drops
 * such a frame, as IP stacks do (RFC 1812, 5.3.7), because with it a neighbour could inject packets
 * into connections between processes of this host. On an uplink, another host may have the same
 * address in another VLAN.
 */
static bool spoofs_host_ip(const struct vswitch *sw, const struct switch_port *from,
			   const struct frame_class *s)
{
	return from->kind == SWITCH_VM ? host_find_address(sw->host, s->sip) != NULL
				       : host_find_in_vlan(sw->host, s->sip, s->vlan) != NULL;
}

/*
 * Whether a station uses an address that is pinned to another MAC, in RoCE, or in ARP and ND, by
 * which the station would get the packets of others. Reads all other frames for ARP and ND, because
 * receivers find these also in frames that are neither FRAME_ARP nor FRAME_ND.
 */
static bool spoofs_pinned_ip(const struct vswitch *sw, const struct frame_class *s,
			     const uint8_t *frame, uint32_t len)
{
	const struct address_pins *pins = &sw->neigh->pins;

	if (!pins->n)
		return false;
	if (s->kind == FRAME_ROCE)
		return !address_pins_allow(pins, s->sip, s->vlan, s->smac);
	return !neigh_claim_allowed(sw->neigh, frame, len);
}

/* Whether a virtual machine claims an address of the host in ARP or ND. The machine would then get
 * the host's packets from other machines and from the network. */
static bool claims_host_ip(const struct vswitch *sw, const struct switch_port *from,
			   const struct frame_class *s, const struct netdev_frame *rx)
{
	return from->kind == SWITCH_VM && s->kind != FRAME_ROCE &&
	       neigh_claims_host(sw->neigh, rx->data, rx->len);
}

/*
 * Handles a frame whose source MAC may not send at this port. A machine may have got the MAC
 * because the MAC's station on this uplink was silent; the frame now shows that the station has not
 * moved. Only a frame to this host, or to a machine of it, shows that: the network may also send
 * back frames that the machine itself has sent to others.
 */
static void note_spoofed_mac(struct vswitch *sw, const struct switch_port *from,
			     const struct frame_class *s)
{
	const struct fdb_key key = source_key(s);
	struct fdb_key to = {.vlan = s->vlan};
	int port;

	memcpy(to.mac, s->dmac, ETHER_MAC_LEN);
	if (!switch_is_host_mac(sw, s->dmac, s->vlan)) {
		port = fdb_find(&sw->fdb, sw->now, &to);
		if (port < 0 || !(sw->vm_mask >> port & 1))
			return;
	}
	port = fdb_give_back(&sw->fdb, sw->now, &key, station_port(sw, from));
	if (port >= 0)
		sw->displaced |= 1u << port;
}

/* Returns the reason to drop a station's frame, or SWITCH_NO_DROP. */
static enum switch_drop check_station(const struct vswitch *sw, const struct switch_port *from,
				      const struct frame_class *s, const struct netdev_frame *rx)
{
	uint32_t index = station_port(sw, from);
	const struct fdb_key key = source_key(s);

	if (s->kind == FRAME_RUNT)
		return SWITCH_DROP_RUNT;
	if (switch_is_host_mac(sw, s->smac, s->vlan) || !fdb_may_send(&sw->fdb, &key, index))
		return SWITCH_DROP_SPOOFED_MAC;
	if (s->kind == FRAME_ROCE && spoofs_host_ip(sw, from, s))
		return SWITCH_DROP_SPOOFED_IP;
	if (claims_host_ip(sw, from, s, rx))
		return SWITCH_DROP_SPOOFED_IP;
	if (spoofs_pinned_ip(sw, s, rx->data, rx->len))
		return SWITCH_DROP_SPOOFED_IP;
	return SWITCH_NO_DROP;
}

/* Tells the table of remote QPs that a packet for a connected QP has come, which shows to which
 * process the sender's QP is connected. */
static void note_connection(struct vswitch *sw, const struct frame_class *s,
			    const struct switch_dest *dest)
{
	if (dest->process && s->whole && (s->service == FRAME_RC || s->service == FRAME_UC))
		remote_qp_acl_heard(&sw->remotes, s->dest_qpn, s->sip,
				    s->service == FRAME_RC ? REMOTE_QP_RC : REMOTE_QP_UC);
}

static void learn_source(struct vswitch *sw, struct switch_port *from, const struct frame_class *s)
{
	const struct fdb_key key = source_key(s);

	if ((sw->n_uplinks > 1 || sw->learns_alone) &&
	    fdb_learn(&sw->fdb, sw->now, &key, station_port(sw, from)))
		from->stats.counters[SWITCH_UNLEARNED]++;
}

/* Whether processes get an announcement of the frame's sender now. Limits their number, because
 * announcements to a thousand processes must not keep the daemon from other work. */
static bool is_announced(struct vswitch *sw, const struct frame_class *s)
{
	return is_announcement(s) && announcement_permit(&sw->announced, s->smac, sw->now);
}

/*
 * Whether the process's own packet socket also receives the frame, so that the switch must not
 * deliver it. A socket receives only packets to leased QPNs. Packets to a QPN that an HCA has
 * chosen come through the switch.
 */
static bool comes_by_socket(const struct vswitch *sw, const struct switch_port *from,
			    const struct frame_class *s, const struct switch_port *process)
{
	const uint32_t closing = sw->now < process->closing_until ? process->closing_sockets : 0;
	const uint32_t sockets = process->sockets | closing;

	return from->kind == SWITCH_UPLINK && sockets >> (from - sw->uplink_ports) & 1 &&
	       sw->leases.owner[lease_block(s->dest_qpn)] == process;
}

/* Sets the destinations of a station's frame. Returns the reason to drop the frame if there are
 * none. */
static enum switch_drop set_station_dest(struct vswitch *sw, struct switch_port *from,
					 const struct frame_class *s, const struct netdev_frame *rx,
					 struct switch_dest *dest)
{
	enum switch_drop reason = check_station(sw, from, s, rx);

	if (reason == SWITCH_DROP_SPOOFED_MAC)
		note_spoofed_mac(sw, from, s);
	if (reason != SWITCH_NO_DROP)
		return reason;
	learn_source(sw, from, s);
	reason = switch_dest_from_station(sw, from, s, dest);
	dest->announced = is_announced(sw, s);
	note_connection(sw, s, dest);
	if (!dest->process || !comes_by_socket(sw, from, s, dest->process))
		return reason;
	dest->process = NULL;
	return SWITCH_DROP_SOCKET_COPY;
}

/* As set_station_dest, for a frame from a member of a bond. Drops copies, and gives some frames to
 * the daemon only (bond_filter.h). */
static enum switch_drop set_member_dest(struct vswitch *sw, struct switch_port *from,
					const struct frame_class *s, const struct netdev_frame *rx,
					struct switch_dest *dest)
{
	const uint32_t uplink = (uint32_t)(from - sw->uplink_ports);
	enum switch_drop reason;

	switch (bond_filter_check(sw, uplink, s)) {
	case BOND_DROP: return SWITCH_DROP_BOND_COPY;
	case BOND_ACCEPT: return set_station_dest(sw, from, s, rx, dest);
	case BOND_PROBE_REPLY: bond_note_answer(&sw->bond, sw->now, uplink); break;
	case BOND_DAEMON_ONLY: break;
	}
	reason = check_station(sw, from, s, rx);
	dest->daemon = reason == SWITCH_NO_DROP;
	return reason;
}

static void forward_from_station(struct vswitch *sw, struct switch_port *from,
				 const struct netdev_frame *rx)
{
	struct switch_frame f = switch_frame_whole(rx->data, rx->len);
	enum switch_drop reason;
	struct switch_dest dest = {0};
	struct frame_class s;

	classify_frame(&s, rx->data, rx->len);
	if (s.kind == FRAME_ROCE)
		f.flow = s.dest_qpn;
	set_bond_flow(sw, &s, &f);
	if (bond_has(&sw->bond, (uint32_t)(from - sw->uplink_ports)))
		reason = set_member_dest(sw, from, &s, rx, &dest);
	else
		reason = set_station_dest(sw, from, &s, rx, &dest);
	forward_frame(sw, from, &f, &dest, reason);
}

static bool forward_uplink(struct vswitch *sw, uint32_t index)
{
	struct netdev *port = sw->uplink_ports[index].uplink ? sw->uplinks[index].port : NULL;
	struct netdev_frame frames[BURST];
	uint32_t i, n = port ? netdev_rx(port, sw->now, frames, BURST) : 0;

	if (n)
		sw->uplink_ports[index].moved_at = sw->now;
	for (i = 0; i < n; i++)
		forward_from_station(sw, &sw->uplink_ports[index], &frames[i]);
	return n > 0;
}

void switch_drain_vm_port(struct vswitch *sw, uint64_t now, uint32_t index)
{
	sw->now = now;
	for (uint32_t n = 0; n < NETDEV_SHM_DEPTH && forward_uplink(sw, index); n += BURST)
		flush_uplinks(sw);
}

/*
 * Moves frames of processes, until the run has no room left. A process that has sent goes to the
 * end of `turns`. So a frame that waits for a place in a full ring gets it before frames of
 * processes that have got one since, and the next run continues where this one ends. Returns
 * whether a frame was moved.
 */
static bool forward_processes(struct vswitch *sw)
{
	struct switch_port *port = TAILQ_FIRST(&sw->turns), *next;
	const struct switch_port *last = TAILQ_LAST(&sw->turns, switch_port_list);
	bool moved = false;

	sw->room = SWITCH_RUN_FRAMES;
	for (; port && sw->room; port = next) {
		next = port == last ? NULL : TAILQ_NEXT(port, turn);
		if (!forward_port(sw, port))
			continue;
		moved = true;
		TAILQ_REMOVE(&sw->turns, port, turn);
		TAILQ_INSERT_TAIL(&sw->turns, port, turn);
	}
	return moved;
}

bool switch_run(struct vswitch *sw, uint64_t now)
{
	struct switch_port *port;
	bool moved = false;
	uint32_t i;

	sw->retry_at = UINT64_MAX;
	sw->now = now;
	for (i = 0; i < sw->n_uplinks; i++)
		moved |= forward_uplink(sw, i);
	moved |= forward_processes(sw);
	flush_uplinks(sw);
	for (port = sw->ports; port; port = port->next) {
		if (port->dirty)
			vnic_device_flush(port->dev);
		port->dirty = false;
	}
	return moved;
}

/* Returns when switch_run must look at the port again, in ns. An uplink without a descriptor to
 * wait on is polled, and the longer no frame has moved, the less often. */
static uint64_t next_uplink_poll(const struct switch_port *port, uint64_t now)
{
	struct netdev *netdev = port->uplink ? port->uplink->port : NULL;
	uint64_t next;

	if (!netdev)
		return UINT64_MAX;
	next = netdev_next_deadline(netdev);
	if (netdev_wait_fd(netdev) >= 0)
		return next;
	return earlier(next, now + netdev_poll_interval_ns(now - port->moved_at));
}

uint64_t switch_deadline(const struct vswitch *sw, uint64_t now)
{
	uint64_t next = sw->retry_at;

	for (uint32_t i = 0; i < sw->n_uplinks; i++)
		next = earlier(next, next_uplink_poll(&sw->uplink_ports[i], now));
	return next;
}

void switch_set_sleeping(struct vswitch *sw, bool asleep)
{
	struct switch_port *port;

	for (port = sw->ports; port; port = port->next)
		if (port->dev)
			vnic_device_set_asleep(port->dev, asleep);
}
