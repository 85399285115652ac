/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "switch.h"

#include <errno.h>
#include <stddef.h>

#include <rxe/packet.h>
#include <vnic/regs.h>

#include "steer.h"

#define BURST 32

static const char *const drop_names[SWITCH_DROP_COUNT] = {
#define DROP_NAME(id, name, text) [SWITCH_DROP_##id] = name,
	SWITCH_DROP_LIST(DROP_NAME)
#undef DROP_NAME
};

const char *switch_drop_name(enum switch_drop drop)
{
	return drop < SWITCH_DROP_COUNT ? drop_names[drop] : NULL;
}

void switch_init(struct vswitch *sw, const struct host *host, struct neigh *neigh,
		 struct uplink *uplinks, uint32_t n_uplinks)
{
	memset(sw, 0, sizeof(*sw));
	sw->host = host;
	sw->neigh = neigh;
	sw->uplinks = uplinks;
	sw->n_uplinks = n_uplinks;
	sw->retry_at = UINT64_MAX;
}

int switch_join(struct vswitch *sw, struct switch_port *port, uint32_t *qpn)
{
	int rc = lease_take(&sw->leases, port, qpn);

	if (rc)
		return rc;
	port->next = sw->ports;
	sw->ports = port;
	return 0;
}

void switch_leave(struct vswitch *sw, struct switch_port *port)
{
	struct switch_port **link;

	lease_drop(&sw->leases, port);
	for (link = &sw->ports; *link; link = &(*link)->next) {
		if (*link == port) {
			*link = port->next;
			return;
		}
	}
}

static bool drop(struct vswitch *sw, enum switch_drop why)
{
	sw->drops[why]++;
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
static bool deliver_to(struct vswitch *sw, uint64_t now, struct switch_port *to,
		       const uint8_t *data, uint32_t len, bool can_wait)
{
	switch (to->dev ? vnic_device_rx(to->dev, data, len) : -ENETDOWN) {
	case 0:
		to->full_since = 0;
		to->dirty = true;
		return true;
	case -ENOBUFS: break;
	case -EMSGSIZE: return drop(sw, SWITCH_DROP_TOO_LONG);
	default: return drop(sw, SWITCH_DROP_RX_DOWN);
	}
	if (!can_wait)
		return drop(sw, SWITCH_DROP_RX_FULL);
	if (!to->full_since)
		to->full_since = now;
	if (now - to->full_since >= SWITCH_STALL_NS)
		return drop(sw, SWITCH_DROP_RX_STALLED);
	return retry(sw, to->full_since + SWITCH_STALL_NS);
}

static bool deliver(struct vswitch *sw, uint64_t now, uint32_t qpn, const uint8_t *data,
		    uint32_t len, bool can_wait)
{
	struct switch_port *to = lease_owner(&sw->leases, qpn);

	return to ? deliver_to(sw, now, to, data, len, can_wait) : drop(sw, SWITCH_DROP_NO_QP);
}

/*
 * To every process that is in any group, which ones only its engine knows, but the
 * sender, whose engine serves its own queue pairs. Nothing waits: a second try
 * would bring second copies.
 */
static void deliver_to_group(struct vswitch *sw, uint64_t now, const struct switch_port *from,
			     const uint8_t *data, uint32_t len)
{
	struct switch_port *port;

	for (port = sw->ports; port; port = port->next)
		if (port != from && port->dev && vnic_device_hears_multicast(port->dev))
			deliver_to(sw, now, port, data, len, false);
}

/* --- To an uplink */

/* Copies a frame into an uplink's queue, under the uplink's own MAC. */
static bool enqueue(struct vswitch *sw, struct uplink *u, uint64_t now, const uint8_t *data,
		    uint32_t len)
{
	struct steer s;
	uint8_t *room;

	if (len > u->stride)
		return drop(sw, SWITCH_DROP_TOO_LONG);
	room = uplink_reserve(u);
	if (!room)
		return retry(sw, now + SWITCH_RETRY_NS);
	/* Checked once more, now that the process can change it no longer. */
	memcpy(room, data, len);
	steer_peek(&s, room, len);
	if (s.kind != STEER_ROCE)
		return drop(sw, SWITCH_DROP_NOT_ROCE);
	memcpy(room + ETHER_MAC_LEN, u->mac, ETHER_MAC_LEN);
	uplink_commit(u, len);
	return true;
}

/* Nothing waits: waiting for one uplink would send twice by another. */
static void send_out_by_all(struct vswitch *sw, uint64_t now, const uint8_t *data, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < sw->n_uplinks; i++)
		if (!enqueue(sw, &sw->uplinks[i], now, data, len))
			drop(sw, SWITCH_DROP_UPLINK_FULL);
}

static bool send_out(struct vswitch *sw, uint64_t now, const struct steer *s, const uint8_t *data,
		     uint32_t len)
{
	int to;

	if (!sw->n_uplinks)
		return drop(sw, SWITCH_DROP_NO_UPLINK);
	to = fdb_find(sw, s->dmac);
	if (to >= 0)
		return enqueue(sw, &sw->uplinks[to], now, data, len);
	send_out_by_all(sw, now, data, len);
	return true;
}

void switch_send(struct vswitch *sw, int uplink, const uint8_t *frame, uint32_t len)
{
	struct uplink *u = &sw->uplinks[uplink];
	uint8_t *room = len <= u->stride ? uplink_reserve(u) : NULL;

	if (!room) {
		drop(sw, SWITCH_DROP_UPLINK_FULL);
		return;
	}
	memcpy(room, frame, len);
	uplink_commit(u, len);
}

static void flush_uplinks(struct vswitch *sw, uint64_t now)
{
	struct uplink *u;

	for (u = sw->uplinks; u < sw->uplinks + sw->n_uplinks; u++) {
		if (uplink_flush(u, now))
			continue;
		if (now - u->full_since >= SWITCH_UPLINK_STALL_NS)
			sw->drops[SWITCH_DROP_UPLINK_FULL] += uplink_purge(u);
		else
			retry(sw, now + SWITCH_RETRY_NS);
	}
}

/* --- From a process */

/*
 * False: the frame has to wait. The frame is in the process's memory: what is
 * looked at here may be another thing once it is copied. To a process that makes
 * no difference, since its engine believes nothing; send_out looks again.
 */
static bool from_port(struct vswitch *sw, uint64_t now, const struct switch_port *from,
		      const struct vnic_tx_frame *f)
{
	struct steer s;

	steer_peek(&s, f->data, f->len);
	if (s.kind == STEER_RUNT)
		return drop(sw, SWITCH_DROP_RUNT);
	if (!ether_same(s.smac, sw->host->mac))
		return drop(sw, SWITCH_DROP_SPOOFED);
	if (s.kind != STEER_ROCE)
		return drop(sw, SWITCH_DROP_NOT_ROCE);
	if (ether_is_group(s.dmac)) {
		if (s.dest_qpn != URXE_QPN_MULTICAST)
			return drop(sw, SWITCH_DROP_MULTICAST);
		deliver_to_group(sw, now, from, f->data, f->len);
		send_out_by_all(sw, now, f->data, f->len);
		return true;
	}
	if (ether_same(s.dmac, sw->host->mac))
		return deliver(sw, now, s.dest_qpn, f->data, f->len, true);
	return send_out(sw, now, &s, f->data, f->len);
}

static bool run_port(struct vswitch *sw, uint64_t now, struct switch_port *port)
{
	struct vnic_tx_frame frames[BURST];
	uint32_t n, taken = 0;

	if (!port->dev)
		return false;
	n = vnic_device_tx(port->dev, frames, BURST);
	while (taken < n && from_port(sw, now, port, &frames[taken]))
		taken++;
	if (!taken)
		return false;
	vnic_device_tx_done(port->dev, taken);
	port->dirty = true;
	return true;
}

void switch_drain(struct vswitch *sw, uint64_t now, struct switch_port *port)
{
	uint32_t bursts = 0;

	/* No more than a ring holds: its owner may go on posting. */
	while (bursts++ < VMXNET3_RING_MAX_SIZE / BURST && run_port(sw, now, port))
		;
}

/* --- From an uplink */

static void from_uplink(struct vswitch *sw, uint64_t now, uint32_t index,
			const struct netdev_frame *f)
{
	struct steer s;

	steer_peek(&s, f->data, f->len);
	if (s.kind == STEER_RUNT) {
		drop(sw, SWITCH_DROP_RUNT);
		return;
	}
	fdb_learn(sw, s.smac, index);
	if (s.kind == STEER_ARP || s.kind == STEER_ND)
		neigh_input(sw->neigh, now, (int)index, f->data, f->len);
	else if (s.kind != STEER_ROCE)
		drop(sw, SWITCH_DROP_NOT_ROCE);
	else if (ether_is_group(s.dmac) && s.dest_qpn != URXE_QPN_MULTICAST)
		drop(sw, SWITCH_DROP_MULTICAST);
	else if (ether_is_group(s.dmac))
		deliver_to_group(sw, now, NULL, f->data, f->len);
	else if (!ether_same(s.dmac, sw->uplinks[index].mac))
		drop(sw, SWITCH_DROP_NOT_OURS);
	else
		deliver(sw, now, s.dest_qpn, f->data, f->len, false);
}

static bool run_uplink(struct vswitch *sw, uint64_t now, uint32_t index)
{
	struct netdev_frame frames[BURST];
	uint32_t i, n = netdev_rx(sw->uplinks[index].port, now, frames, BURST);

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
	flush_uplinks(sw, now);
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
	uint64_t next = netdev_next_deadline(u->port);

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
