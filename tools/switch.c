/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "switch.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include <rxe/packet.h>
#include <vnic/regs.h>

#include "source.h"
#include "steer.h"

#define BURST 32

/* Numbers of ports: the daemon's is 0, then uplinks, then processes by their block of QPNs. */
#define FIRST_UPLINK  1u
#define FIRST_PROCESS (FIRST_UPLINK + SWITCH_UPLINKS)

static void init_uplink_port(struct vswitch *sw, uint32_t index)
{
	struct switch_port *port = &sw->uplink_ports[index];

	port->kind = sw->uplinks[index].kind == UPLINK_VM ? SWITCH_VM : SWITCH_UPLINK;
	*(port->kind == SWITCH_VM ? &sw->vms : &sw->wires) |= 1u << index;
	port->number = FIRST_UPLINK + index;
	port->uplink = &sw->uplinks[index];
	snprintf(port->name, sizeof(port->name), "%s", port->uplink->spec);
}

int switch_init(struct vswitch *sw, const struct host *host, struct neigh *neigh,
		struct uplink *uplinks, uint32_t n_uplinks)
{
	uint32_t i;
	int rc;

	memset(sw, 0, sizeof(*sw));
	sw->host = host;
	sw->neigh = neigh;
	sw->uplinks = uplinks;
	sw->n_uplinks = n_uplinks;
	sw->retry_at = UINT64_MAX;
	sw->self = (struct switch_port){.kind = SWITCH_URXED, .name = "urxed"};
	for (i = 0; i < n_uplinks; i++)
		init_uplink_port(sw, i);
	rc = remote_open(&sw->remotes);
	if (!rc)
		rc = fdb_open(&sw->fdb);
	if (rc)
		switch_fini(sw);
	return rc;
}

void switch_fini(struct vswitch *sw)
{
	remote_close(&sw->remotes);
	fdb_close(&sw->fdb);
}

/* One of the host's own MACs, of which each uplink may have its own. */
static bool is_ours(const struct vswitch *sw, const uint8_t mac[ETHER_MAC_LEN])
{
	uint32_t i;

	for (i = 0; i < sw->n_uplinks; i++)
		if (ether_same(mac, sw->uplinks[i].mac))
			return true;
	return ether_same(mac, sw->host->mac);
}

/* By its number, or by its specification up to the first comma. */
static bool is_port(const struct switch_port *port, const char *name)
{
	const char *spec = port->uplink->spec;
	size_t len = strlen(name);
	char number[16];

	snprintf(number, sizeof(number), "%u", port->number);
	return !strcmp(name, number) ||
	       (!strncmp(spec, name, len) && (!spec[len] || spec[len] == ','));
}

int switch_pin(struct vswitch *sw, const char *text, char why[SWITCH_WHY])
{
	struct fdb_key key;
	const char *name;
	uint32_t i = 0;
	int rc;

	if (fdb_parse(text, &key, &name)) {
		snprintf(why, SWITCH_WHY, "fdb %s is not MAC=PORT or MAC@VLAN=PORT", text);
		return -EINVAL;
	}
	while (i < sw->n_uplinks && !is_port(&sw->uplink_ports[i], name))
		i++;
	if (i == sw->n_uplinks) {
		snprintf(why, SWITCH_WHY, "fdb %s: no uplink is called %s", text, name);
		return -EINVAL;
	}
	rc = is_ours(sw, key.mac) ? -EEXIST : fdb_pin(&sw->fdb, &key, i);
	if (rc)
		snprintf(why, SWITCH_WHY, "fdb %s: %s", text,
			 rc == -EEXIST ? "the MAC is another port's or the host's"
				       : "the port has its share of MACs");
	return rc;
}

int switch_join(struct vswitch *sw, struct switch_port *port, uint32_t *qpn)
{
	int rc = *qpn ? lease_claim(&sw->leases, port, *qpn) : lease_take(&sw->leases, port, qpn);

	if (rc)
		return rc;
	port->kind = SWITCH_PROCESS;
	port->number = FIRST_PROCESS + (*qpn >> LEASE_SHIFT);
	port->next = sw->ports;
	sw->ports = port;
	return 0;
}

/* The next process with that number is another one. */
static void forget(struct vswitch *sw, uint32_t process)
{
	struct switch_port *port;

	for (port = sw->ports; port; port = port->next)
		port->met[process / 64] &= ~(UINT64_C(1) << process % 64);
}

void switch_leave(struct vswitch *sw, struct switch_port *port)
{
	struct switch_port **link;

	lease_drop(&sw->leases, port);
	remote_put_all(&sw->remotes, &port->remotes);
	forget(sw, port->number - FIRST_PROCESS);
	for (link = &sw->ports; *link; link = &(*link)->next) {
		if (*link == port) {
			*link = port->next;
			switch_stats_add(&sw->left, &port->stats);
			return;
		}
	}
}

static struct remote_key remote_key(const uint8_t gid[16], uint32_t qpn)
{
	struct remote_key key = {.qpn = qpn};

	memcpy(key.gid, gid, sizeof(key.gid));
	return key;
}

int switch_register(struct vswitch *sw, struct switch_port *port, const uint8_t gid[16],
		    uint32_t qpn)
{
	const struct remote_key key = remote_key(gid, qpn);

	/* To management QPs and groups nobody is connected. */
	if (qpn <= URXE_QPN_GSI || qpn >= URXE_QPN_MULTICAST)
		return -EINVAL;
	return remote_take(&sw->remotes, &port->remotes, &key);
}

int switch_unregister(struct vswitch *sw, struct switch_port *port, const uint8_t gid[16],
		      uint32_t qpn)
{
	const struct remote_key key = remote_key(gid, qpn);

	return remote_put(&sw->remotes, &port->remotes, &key);
}

const struct switch_port *switch_next_port(const struct vswitch *sw, const struct switch_port *port)
{
	uint32_t uplink = 0;

	if (!port)
		return &sw->self;
	if (port->kind == SWITCH_PROCESS)
		return port->next;
	if (port->kind != SWITCH_URXED)
		uplink = (uint32_t)(port - sw->uplink_ports) + 1;
	return uplink < sw->n_uplinks ? &sw->uplink_ports[uplink] : sw->ports;
}

void switch_totals(const struct vswitch *sw, struct switch_stats *sums)
{
	const struct switch_port *port = NULL;

	*sums = sw->left;
	while ((port = switch_next_port(sw, port)))
		switch_stats_add(sums, &port->stats);
}

/* --- A frame on its way */

/*
 * The head is a copy, which was checked. The rest may lie in memory that a process
 * writes to, so it may be another thing each time that it is read.
 */
struct frame {
	struct iovec parts[2];
	uint32_t n;
	uint32_t len;
	uint32_t flow;  /* for the receiver's queues: the destination QPN; 0 = none */
	bool from_host; /* its source MAC is that of the uplink by which it leaves */
};

static struct frame whole_frame(const uint8_t *data, uint32_t len)
{
	return (struct frame){.parts = {{(void *)(uintptr_t)data, len}}, .n = 1, .len = len};
}

static struct frame frame_of_process(const struct steer *s, const struct vnic_tx_frame *f)
{
	const uint8_t *rest = f->data + s->head_len;

	return (struct frame){
		.parts = {{(void *)(uintptr_t)s->head, s->head_len},
			  {(void *)(uintptr_t)rest, f->len - s->head_len}},
		.n = f->len > s->head_len ? 2 : 1,
		.len = f->len,
		.flow = s->kind == STEER_ROCE ? s->dest_qpn : 0,
		.from_host = true,
	};
}

static void copy_frame(uint8_t *to, const struct frame *f)
{
	uint32_t i;

	for (i = 0; i < f->n; i++) {
		memcpy(to, f->parts[i].iov_base, f->parts[i].iov_len);
		to += f->parts[i].iov_len;
	}
}

/* --- Counting and showing */

#define NO_DROP SWITCH_DROP_COUNT

static void show(struct vswitch *sw, const struct switch_port *port, enum switch_direction dir,
		 const struct frame *f, enum switch_drop why)
{
	const uint8_t *data = f->parts[0].iov_base;

	if (!sw->tap)
		return;
	/* Only frames of processes are in parts, and none of those is longer. */
	if (f->n > 1) {
		copy_frame(sw->tap_frame, f);
		data = sw->tap_frame;
	}
	sw->tap(sw->tap_ctx, port, dir, data, f->len, why);
}

/*
 * A frame has come from a port, and if `why` says so, goes no further. One that
 * had to wait has come before.
 */
static void note_in(struct vswitch *sw, struct switch_port *port, const struct frame *f,
		    enum switch_drop why)
{
	if (!port->held) {
		port->stats.counters[SWITCH_IN_FRAMES]++;
		port->stats.counters[SWITCH_IN_BYTES] += f->len;
	}
	if (why != NO_DROP)
		port->stats.drops[why]++;
	if (!port->held || why != NO_DROP)
		show(sw, port, SWITCH_IN, f, why);
}

static void note_out(struct vswitch *sw, struct switch_port *port, const struct frame *f)
{
	port->stats.counters[SWITCH_OUT_FRAMES]++;
	port->stats.counters[SWITCH_OUT_BYTES] += f->len;
	show(sw, port, SWITCH_OUT, f, NO_DROP);
}

/* A port did not get a frame that was for it. True: there is no use in waiting. */
static bool drop(struct vswitch *sw, struct switch_port *to, const struct frame *f,
		 enum switch_drop why)
{
	to->stats.drops[why]++;
	show(sw, to, SWITCH_OUT, f, why);
	return true;
}

static bool retry(struct vswitch *sw, uint64_t when)
{
	if (when < sw->retry_at)
		sw->retry_at = when;
	return false;
}

/* --- To a process */

/* False: the frame has to wait, which only frames that can may do. */
static bool deliver(struct vswitch *sw, uint64_t now, struct switch_port *to, const struct frame *f,
		    bool can_wait)
{
	switch (to->dev ? vnic_device_rxv(to->dev, f->flow, f->parts, f->n) : -ENETDOWN) {
	case 0:
		to->full_since = 0;
		to->dirty = true;
		note_out(sw, to, f);
		return true;
	case -ENOBUFS: break;
	case -EMSGSIZE: return drop(sw, to, f, SWITCH_DROP_TOO_LONG);
	default: return drop(sw, to, f, SWITCH_DROP_RX_DOWN);
	}
	if (!can_wait)
		return drop(sw, to, f, SWITCH_DROP_RX_FULL);
	if (!to->full_since)
		to->full_since = now;
	if (now - to->full_since >= SWITCH_STALL_NS)
		return drop(sw, to, f, SWITCH_DROP_RX_STALLED);
	return retry(sw, to->full_since + SWITCH_STALL_NS);
}

/* --- To an uplink or a VM */

/* Copies a frame into an uplink's queue. False: it has to wait, which only frames that can may do.
 */
static bool enqueue(struct vswitch *sw, struct switch_port *to, const struct frame *f,
		    bool can_wait)
{
	struct uplink *u = to->uplink;
	uint8_t *room;

	if (!u->port)
		return drop(sw, to, f, SWITCH_DROP_UPLINK_GONE);
	if (f->len > (uint32_t)(ETHER_HDR_LEN + ETHER_VLAN_LEN + u->mtu))
		return drop(sw, to, f, SWITCH_DROP_TOO_LONG);
	room = uplink_reserve(u);
	if (!room && can_wait)
		return retry(sw, sw->now + SWITCH_RETRY_NS);
	if (!room)
		return drop(sw, to, f, SWITCH_DROP_UPLINK_FULL);
	copy_frame(room, f);
	/* VMs know the host by one MAC; what an uplink leads to, by that uplink's. */
	if (f->from_host && to->kind == SWITCH_UPLINK)
		memcpy(room + ETHER_MAC_LEN, u->mac, ETHER_MAC_LEN);
	uplink_commit(u, f->len);
	return true;
}

static struct frame queued_frame(const struct uplink *u, uint32_t i)
{
	return whole_frame(u->queue[i].data, u->queue[i].len);
}

static void flush_uplink(struct vswitch *sw, uint64_t now, struct switch_port *port)
{
	struct uplink *u = port->uplink;
	uint32_t i, sent = uplink_send(u, now);
	struct frame f;

	for (i = 0; i < sent; i++) {
		f = queued_frame(u, i);
		note_out(sw, port, &f);
	}
	uplink_release(u, sent);
	if (!u->queued)
		return;
	if (now - u->full_since < SWITCH_UPLINK_STALL_NS) {
		retry(sw, now + SWITCH_RETRY_NS);
		return;
	}
	for (i = 0; i < u->queued; i++) {
		f = queued_frame(u, i);
		drop(sw, port, &f, SWITCH_DROP_UPLINK_FULL);
	}
	uplink_purge(u);
}

/* --- Ways through the switch */

/* Where the copies of a frame go. */
struct way {
	uint32_t out;                /* bits of uplinks and VMs */
	struct switch_port *process; /* or NULL */
	bool listeners;              /* all processes that hear multicast */
	bool daemon;
};

static bool hears(const struct switch_port *port, const struct switch_port *from)
{
	return port != from && port->dev && vnic_device_hears_multicast(port->dev);
}

static uint32_t count_copies(const struct vswitch *sw, const struct switch_port *from,
			     const struct way *way)
{
	uint32_t n = (uint32_t)__builtin_popcount(way->out) + !!way->process + way->daemon;
	const struct switch_port *port;

	for (port = way->listeners ? sw->ports : NULL; port; port = port->next)
		n += hears(port, from);
	return n;
}

static void to_daemon(struct vswitch *sw, uint64_t now, const struct switch_port *from,
		      const struct frame *f)
{
	int uplink = from->kind == SWITCH_VM ? NEIGH_VM : (int)(from - sw->uplink_ports);

	note_out(sw, &sw->self, f);
	neigh_input(sw->neigh, now, uplink, f->parts[0].iov_base, f->len);
}

/*
 * A process that is in any group gets each frame to a group, since only its engine knows which
 * ones; but not the sender, whose engine serves its own queue pairs.
 */
static void to_listeners(struct vswitch *sw, uint64_t now, const struct switch_port *from,
			 const struct frame *f)
{
	struct switch_port *port;

	for (port = sw->ports; port; port = port->next)
		if (hears(port, from))
			deliver(sw, now, port, f, false);
}

/* Two processes that did not ask for each other, as datagrams do not, get to know each other. */
static void introduce(struct vswitch *sw, struct switch_port *from, struct switch_port *to,
		      uint32_t qpn)
{
	uint32_t process = to->number - FIRST_PROCESS;
	uint64_t *word = &from->met[process / 64], bit = UINT64_C(1) << process % 64;

	if (!sw->meet || from->kind != SWITCH_PROCESS || *word & bit)
		return;
	*word |= bit;
	sw->meet(from, to, qpn);
}

/*
 * Sends a frame by its way; where that leads nowhere, it is dropped for `why`. False: it
 * has to wait. What goes to several does not wait: a second try would bring second copies.
 */
static bool forward(struct vswitch *sw, uint64_t now, struct switch_port *from,
		    const struct frame *f, const struct way *way, enum switch_drop why)
{
	uint32_t copies = count_copies(sw, from, way), i;
	bool can_wait = from->kind == SWITCH_PROCESS && copies == 1, done = true;

	note_in(sw, from, f, copies ? NO_DROP : why);
	if (copies > 1)
		from->stats.counters[SWITCH_COPIES] += copies - 1;
	for (i = 0; i < sw->n_uplinks; i++)
		if (way->out & 1u << i)
			done = enqueue(sw, &sw->uplink_ports[i], f, can_wait);
	if (way->process) {
		introduce(sw, from, way->process, f->flow);
		done = deliver(sw, now, way->process, f, can_wait);
	}
	if (way->listeners)
		to_listeners(sw, now, from, f);
	if (way->daemon)
		to_daemon(sw, now, from, f);
	return done;
}

/* Which uplinks and VMs a frame may go to at all: uplinks are not bridged to each other. */
static uint32_t reach(const struct vswitch *sw, const struct switch_port *from)
{
	uint32_t all = sw->wires | sw->vms;

	switch (from->kind) {
	case SWITCH_UPLINK: return sw->vms;
	case SWITCH_VM: return all & ~(1u << (from - sw->uplink_ports));
	default: return all;
	}
}

/* Ports with MACs of their own have no others, so what is for nobody known is not for them. */
static uint32_t reach_unknown(const struct vswitch *sw, uint32_t out)
{
	uint32_t i;

	for (i = 0; i < sw->n_uplinks; i++)
		if (sw->fdb.pinned[i])
			out &= ~(1u << i);
	return out;
}

/* Of the ports in `out`, those by which a frame to another station leaves. */
static uint32_t way_out(const struct vswitch *sw, const struct steer *s, uint32_t out)
{
	struct fdb_key key = {.vlan = s->vlan};
	int port;

	/* One port alone may lead anywhere: nothing is learned then. */
	if (ether_is_group(s->dmac) || sw->n_uplinks < 2)
		return out;
	memcpy(key.mac, s->dmac, ETHER_MAC_LEN);
	port = fdb_find(&sw->fdb, sw->now, &key);
	return port < 0 ? reach_unknown(sw, out) : out & 1u << port;
}

/* A frame of the daemon's: not for another uplink, where it would have another source. */
void switch_send(struct vswitch *sw, int uplink, const uint8_t *frame, uint32_t len)
{
	const struct frame f = whole_frame(frame, len);
	struct way way = {0};
	struct steer s;

	steer_peek(&s, frame, len);
	way.out = way_out(sw, &s, sw->vms | 1u << uplink);
	forward(sw, sw->now, &sw->self, &f, &way, SWITCH_DROP_NO_UPLINK);
}

/* --- From a process */

/* Sets the way of what a process may send; returns why it goes nowhere, if it does. */
static enum switch_drop find_way(const struct vswitch *sw, const struct switch_port *from,
				 const struct steer *s, struct way *way)
{
	*way = (struct way){0};
	if (ether_same(s->dmac, sw->host->mac)) {
		way->process = lease_owner(&sw->leases, s->dest_qpn);
		return SWITCH_DROP_NO_QP;
	}
	if (ether_is_group(s->dmac) && s->dest_qpn != URXE_QPN_MULTICAST)
		return SWITCH_DROP_MULTICAST;
	way->listeners = ether_is_group(s->dmac);
	way->out = way_out(sw, s, reach(sw, from));
	return way->listeners ? SWITCH_DROP_UNHEARD : SWITCH_DROP_NO_UPLINK;
}

/* False: the frame has to wait. */
static bool from_process(struct vswitch *sw, uint64_t now, struct switch_port *from,
			 const struct vnic_tx_frame *tx)
{
	const struct source_rules rules = {sw->host, &sw->leases, &sw->remotes};
	enum switch_drop why;
	struct way way = {0};
	struct frame f;
	struct steer s;

	steer_peek(&s, tx->data, tx->len);
	f = frame_of_process(&s, tx);
	why = source_check(&rules, from, &s);
	if (why == NO_DROP)
		why = find_way(sw, from, &s, &way);
	return forward(sw, now, from, &f, &way, why);
}

static bool run_queue(struct vswitch *sw, uint64_t now, struct switch_port *port, uint32_t queue)
{
	struct vnic_tx_frame frames[BURST];
	const uint32_t bit = 1u << queue;
	uint32_t n, taken;

	n = vnic_device_tx(port->dev, queue, frames, BURST);
	port->held = port->waiting & bit;
	for (taken = 0; taken < n; taken++) {
		port->waiting &= ~bit;
		if (!from_process(sw, now, port, &frames[taken])) {
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

static bool run_port(struct vswitch *sw, uint64_t now, struct switch_port *port)
{
	bool moved = false;

	/* Each queue by itself: one that waits for its receiver holds up no other. */
	for (uint32_t i = 0; port->dev && i < vnic_device_tx_queues(port->dev); i++)
		moved |= run_queue(sw, now, port, i);
	return moved;
}

void switch_drain(struct vswitch *sw, uint64_t now, struct switch_port *port)
{
	uint32_t bursts = 0;

	sw->now = now;
	/* No more than a ring holds: its owner may go on posting. */
	while (bursts++ < VMXNET3_RING_MAX_SIZE / BURST && run_port(sw, now, port))
		;
}

/* --- From an uplink or a VM */

static struct fdb_key source_key(const struct steer *s)
{
	struct fdb_key key = {.vlan = s->vlan};

	memcpy(key.mac, s->smac, ETHER_MAC_LEN);
	return key;
}

/* Why a station may not send this, NO_DROP where it may. */
static enum switch_drop check_station(const struct vswitch *sw, const struct switch_port *from,
				      const struct steer *s)
{
	uint32_t index = (uint32_t)(from - sw->uplink_ports);
	const struct fdb_key key = source_key(s);

	if (s->kind == STEER_RUNT)
		return SWITCH_DROP_RUNT;
	if (is_ours(sw, s->smac) || !fdb_may_send(&sw->fdb, &key, index))
		return SWITCH_DROP_SPOOFED_MAC;
	/* On a real Ethernet that is between hosts; a VM must not pass for its own. */
	if (from->kind == SWITCH_VM && s->kind == STEER_ROCE && host_find(sw->host, s->sip))
		return SWITCH_DROP_SPOOFED_IP;
	return NO_DROP;
}

static void learn(struct vswitch *sw, struct switch_port *from, const struct steer *s)
{
	const struct fdb_key key = source_key(s);

	if (sw->n_uplinks > 1 &&
	    fdb_learn(&sw->fdb, sw->now, &key, (uint32_t)(from - sw->uplink_ports)))
		from->stats.counters[SWITCH_UNLEARNED]++;
}

/* What is for this host; returns why it goes nowhere, if it does. */
static enum switch_drop way_in(const struct vswitch *sw, const struct steer *s, struct way *way)
{
	bool group = ether_is_group(s->dmac);

	way->daemon = s->kind == STEER_ARP || s->kind == STEER_ND;
	if (s->kind != STEER_ROCE)
		return SWITCH_DROP_NOT_ROCE;
	way->listeners = group && s->dest_qpn == URXE_QPN_MULTICAST;
	if (group)
		return way->listeners ? SWITCH_DROP_UNHEARD : SWITCH_DROP_MULTICAST;
	way->process = lease_owner(&sw->leases, s->dest_qpn);
	return SWITCH_DROP_NO_QP;
}

/* Sets the way of what a station may send; returns why it goes nowhere, if it does. */
static enum switch_drop find_way_from_station(const struct vswitch *sw,
					      const struct switch_port *from, const struct steer *s,
					      struct way *way)
{
	bool ours = is_ours(sw, s->dmac);

	/* A frame on an uplink to another uplink's MAC came there by mistake. */
	if (ours && from->kind == SWITCH_UPLINK && !ether_same(s->dmac, from->uplink->mac))
		return SWITCH_DROP_NOT_OURS;
	if (!ours)
		way->out = way_out(sw, s, reach(sw, from));
	return ours || ether_is_group(s->dmac) ? way_in(sw, s, way) : SWITCH_DROP_NOT_OURS;
}

static void from_station(struct vswitch *sw, uint64_t now, struct switch_port *from,
			 const struct netdev_frame *rx)
{
	struct frame f = whole_frame(rx->data, rx->len);
	enum switch_drop why;
	struct way way = {0};
	struct steer s;

	steer_peek(&s, rx->data, rx->len);
	if (s.kind == STEER_ROCE)
		f.flow = s.dest_qpn;
	why = check_station(sw, from, &s);
	if (why == NO_DROP) {
		learn(sw, from, &s);
		why = find_way_from_station(sw, from, &s, &way);
	}
	forward(sw, now, from, &f, &way, why);
}

static bool run_uplink(struct vswitch *sw, uint64_t now, uint32_t index)
{
	struct netdev *port = sw->uplinks[index].port;
	struct netdev_frame frames[BURST];
	uint32_t i, n = port ? netdev_rx(port, now, frames, BURST) : 0;

	for (i = 0; i < n; i++)
		from_station(sw, now, &sw->uplink_ports[index], &frames[i]);
	return n > 0;
}

bool switch_run(struct vswitch *sw, uint64_t now)
{
	struct switch_port *port;
	bool moved = false;
	uint32_t i;

	sw->retry_at = UINT64_MAX;
	sw->now = now;
	for (i = 0; i < sw->n_uplinks; i++)
		moved |= run_uplink(sw, now, i);
	for (port = sw->ports; port; port = port->next)
		moved |= run_port(sw, now, port);
	for (i = 0; i < sw->n_uplinks; i++)
		flush_uplink(sw, now, &sw->uplink_ports[i]);
	for (port = sw->ports; port; port = port->next) {
		if (port->dirty)
			vnic_device_flush(port->dev);
		port->dirty = false;
	}
	return moved;
}

/* An uplink without a descriptor to wait on has to be asked. */
static uint64_t uplink_deadline(struct uplink *u, uint64_t now)
{
	uint64_t next;

	if (!u->port)
		return UINT64_MAX;
	next = netdev_next_deadline(u->port);
	if (netdev_wait_fd(u->port) < 0 && now + netdev_idle_ns(u->port) < next)
		next = now + netdev_idle_ns(u->port);
	return next;
}

uint64_t switch_deadline(const struct vswitch *sw, uint64_t now)
{
	uint64_t next = sw->retry_at, due;
	uint32_t i;

	for (i = 0; i < sw->n_uplinks; i++) {
		due = uplink_deadline(&sw->uplinks[i], now);
		if (due < next)
			next = due;
	}
	return next;
}

void switch_sleeping(struct vswitch *sw, bool asleep)
{
	struct switch_port *port;

	for (port = sw->ports; port; port = port->next)
		if (port->dev)
			vnic_device_sleeping(port->dev, asleep);
}
