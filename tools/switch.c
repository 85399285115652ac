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

	port->kind = SWITCH_UPLINK;
	port->number = FIRST_UPLINK + index;
	port->uplink = &sw->uplinks[index];
	snprintf(port->name, sizeof(port->name), "%s", port->uplink->spec);
}

int switch_init(struct vswitch *sw, const struct host *host, struct neigh *neigh,
		struct uplink *uplinks, uint32_t n_uplinks)
{
	uint32_t i;

	memset(sw, 0, sizeof(*sw));
	sw->host = host;
	sw->neigh = neigh;
	sw->uplinks = uplinks;
	sw->n_uplinks = n_uplinks;
	sw->retry_at = UINT64_MAX;
	sw->self = (struct switch_port){.kind = SWITCH_URXED, .name = "urxed"};
	for (i = 0; i < n_uplinks; i++)
		init_uplink_port(sw, i);
	return remote_open(&sw->remotes);
}

void switch_fini(struct vswitch *sw)
{
	remote_close(&sw->remotes);
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

void switch_leave(struct vswitch *sw, struct switch_port *port)
{
	struct switch_port **link;

	lease_drop(&sw->leases, port);
	remote_put_all(&sw->remotes, &port->remotes);
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
	if (port->kind == SWITCH_UPLINK)
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
	uint32_t flow; /* for the receiver's queues: the destination QPN; 0 = none */
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

/* --- Which uplink leads to a MAC */

static struct switch_fdb_entry *fdb_entry(struct vswitch *sw, const uint8_t mac[ETHER_MAC_LEN])
{
	return &sw->fdb[(mac[3] * 31u + mac[4] * 7u + mac[5]) % SWITCH_FDB];
}

static void fdb_learn(struct vswitch *sw, const uint8_t mac[ETHER_MAC_LEN], uint32_t uplink)
{
	struct switch_fdb_entry *e = fdb_entry(sw, mac);

	if (sw->n_uplinks < 2 || ether_is_group(mac))
		return;
	memcpy(e->mac, mac, ETHER_MAC_LEN);
	e->uplink = (uint8_t)uplink;
	e->known = true;
}

/* -1: not known, or for all of them. */
static int fdb_find(struct vswitch *sw, const uint8_t mac[ETHER_MAC_LEN])
{
	const struct switch_fdb_entry *e = fdb_entry(sw, mac);

	if (sw->n_uplinks == 1)
		return 0;
	return e->known && ether_same(e->mac, mac) ? e->uplink : -1;
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

/* --- To an uplink */

/* Copies a frame into an uplink's queue, under the uplink's own MAC. False: it is full. */
static bool enqueue(struct vswitch *sw, struct switch_port *to, uint64_t now, const struct frame *f)
{
	struct uplink *u = to->uplink;
	uint8_t *room;

	if (!u->port)
		return drop(sw, to, f, SWITCH_DROP_UPLINK_GONE);
	if (f->len > (uint32_t)(ETHER_HDR_LEN + ETHER_VLAN_LEN + u->mtu))
		return drop(sw, to, f, SWITCH_DROP_TOO_LONG);
	room = uplink_reserve(u);
	if (!room)
		return retry(sw, now + SWITCH_RETRY_NS);
	copy_frame(room, f);
	memcpy(room + ETHER_MAC_LEN, u->mac, ETHER_MAC_LEN);
	uplink_commit(u, f->len);
	return true;
}

void switch_send(struct vswitch *sw, int uplink, const uint8_t *frame, uint32_t len)
{
	struct switch_port *to = &sw->uplink_ports[uplink];
	uint8_t *room = len <= to->uplink->stride ? uplink_reserve(to->uplink) : NULL;
	const struct frame f = whole_frame(frame, len);

	note_in(sw, &sw->self, &f, NO_DROP);
	if (!room) {
		drop(sw, to, &f, SWITCH_DROP_UPLINK_FULL);
		return;
	}
	copy_frame(room, &f);
	uplink_commit(to->uplink, len);
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

/* --- To several */

static bool hears_group(const struct switch_port *port)
{
	return port->dev && vnic_device_hears_multicast(port->dev);
}

/*
 * To every process that is in any group, which ones only its engine knows, but the
 * sender, whose engine serves its own queue pairs; and from a process out by all
 * uplinks. Nothing waits: a second try would bring second copies.
 */
static void deliver_to_group(struct vswitch *sw, uint64_t now, struct switch_port *from,
			     const struct frame *f)
{
	uint32_t i, copies = from->kind == SWITCH_PROCESS ? sw->n_uplinks : 0, uplinks = copies;
	struct switch_port *port;

	for (port = sw->ports; port; port = port->next)
		copies += port != from && hears_group(port);
	note_in(sw, from, f, copies ? NO_DROP : SWITCH_DROP_UNHEARD);
	if (copies)
		from->stats.counters[SWITCH_COPIES] += copies - 1;
	for (port = sw->ports; port; port = port->next)
		if (port != from && hears_group(port))
			deliver(sw, now, port, f, false);
	for (i = 0; i < uplinks; i++)
		if (!enqueue(sw, &sw->uplink_ports[i], now, f))
			drop(sw, &sw->uplink_ports[i], f, SWITCH_DROP_UPLINK_FULL);
}

/* Where nobody knows which uplink leads to a MAC: all may. Nothing waits here either. */
static void send_out_by_all(struct vswitch *sw, uint64_t now, struct switch_port *from,
			    const struct frame *f)
{
	uint32_t i;

	note_in(sw, from, f, NO_DROP);
	from->stats.counters[SWITCH_COPIES] += sw->n_uplinks - 1;
	for (i = 0; i < sw->n_uplinks; i++)
		if (!enqueue(sw, &sw->uplink_ports[i], now, f))
			drop(sw, &sw->uplink_ports[i], f, SWITCH_DROP_UPLINK_FULL);
}

/* --- From a process */

/* Why a frame that a process may send goes nowhere. */
static enum switch_drop check_way(const struct vswitch *sw, const struct steer *s)
{
	if (ether_is_group(s->dmac))
		return s->dest_qpn == URXE_QPN_MULTICAST ? NO_DROP : SWITCH_DROP_MULTICAST;
	if (ether_same(s->dmac, sw->host->mac))
		return lease_owner(&sw->leases, s->dest_qpn) ? NO_DROP : SWITCH_DROP_NO_QP;
	return sw->n_uplinks ? NO_DROP : SWITCH_DROP_NO_UPLINK;
}

/* False: the frame has to wait. */
static bool from_process(struct vswitch *sw, uint64_t now, struct switch_port *from,
			 const struct vnic_tx_frame *tx)
{
	const struct source_rules rules = {sw->host, &sw->leases, &sw->remotes};
	enum switch_drop why;
	struct frame f;
	struct steer s;
	int uplink;

	steer_peek(&s, tx->data, tx->len);
	f = frame_of_process(&s, tx);
	why = source_check(&rules, from, &s);
	if (why == NO_DROP)
		why = check_way(sw, &s);
	if (why == NO_DROP && ether_is_group(s.dmac)) {
		deliver_to_group(sw, now, from, &f);
		return true;
	}
	uplink = why == NO_DROP ? fdb_find(sw, s.dmac) : 0;
	if (uplink < 0 && !ether_same(s.dmac, sw->host->mac)) {
		send_out_by_all(sw, now, from, &f);
		return true;
	}
	note_in(sw, from, &f, why);
	if (why != NO_DROP)
		return true;
	if (ether_same(s.dmac, sw->host->mac))
		return deliver(sw, now, lease_owner(&sw->leases, s.dest_qpn), &f, true);
	return enqueue(sw, &sw->uplink_ports[uplink], now, &f);
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

	/* No more than a ring holds: its owner may go on posting. */
	while (bursts++ < VMXNET3_RING_MAX_SIZE / BURST && run_port(sw, now, port))
		;
}

/* --- From an uplink */

/* Why a frame from an uplink is for none of us, NO_DROP where it may be. */
static enum switch_drop check_uplink(const struct vswitch *sw, const struct switch_port *from,
				     const struct steer *s)
{
	if (s->kind == STEER_RUNT)
		return SWITCH_DROP_RUNT;
	if (s->kind == STEER_ARP || s->kind == STEER_ND)
		return NO_DROP;
	if (s->kind != STEER_ROCE)
		return SWITCH_DROP_NOT_ROCE;
	if (ether_is_group(s->dmac))
		return s->dest_qpn == URXE_QPN_MULTICAST ? NO_DROP : SWITCH_DROP_MULTICAST;
	if (!ether_same(s->dmac, from->uplink->mac))
		return SWITCH_DROP_NOT_OURS;
	return lease_owner(&sw->leases, s->dest_qpn) ? NO_DROP : SWITCH_DROP_NO_QP;
}

static void from_uplink(struct vswitch *sw, uint64_t now, uint32_t index,
			const struct netdev_frame *rx)
{
	struct switch_port *from = &sw->uplink_ports[index];
	enum switch_drop why;
	struct frame f = whole_frame(rx->data, rx->len);
	struct steer s;

	steer_peek(&s, rx->data, rx->len);
	if (s.kind == STEER_ROCE)
		f.flow = s.dest_qpn;
	if (s.kind != STEER_RUNT)
		fdb_learn(sw, s.smac, index);
	why = check_uplink(sw, from, &s);
	if (why == NO_DROP && s.kind == STEER_ROCE && ether_is_group(s.dmac)) {
		deliver_to_group(sw, now, from, &f);
		return;
	}
	note_in(sw, from, &f, why);
	if (why != NO_DROP)
		return;
	if (s.kind == STEER_ROCE) {
		deliver(sw, now, lease_owner(&sw->leases, s.dest_qpn), &f, false);
		return;
	}
	note_out(sw, &sw->self, &f);
	neigh_input(sw->neigh, now, (int)index, rx->data, rx->len);
}

static bool run_uplink(struct vswitch *sw, uint64_t now, uint32_t index)
{
	struct netdev *port = sw->uplinks[index].port;
	struct netdev_frame frames[BURST];
	uint32_t i, n = port ? netdev_rx(port, now, frames, BURST) : 0;

	for (i = 0; i < n; i++)
		from_uplink(sw, now, index, &frames[i]);
	return n > 0;
}

bool switch_run(struct vswitch *sw, uint64_t now)
{
	struct switch_port *port;
	bool moved = false;
	uint32_t i;

	sw->retry_at = UINT64_MAX;
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
