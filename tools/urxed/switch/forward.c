/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/forward.h"

#include <string.h>

#include <vnic/regs.h>

#include "urxed/switch/antispoof.h"
#include "urxed/switch/classify.h"
#include "urxed/switch/deliver.h"
#include "urxed/switch/destination.h"

#define BURST 32

static bool hears(const struct switch_port *port, const struct switch_port *from)
{
	return port != from && port->dev && vnic_device_hears_multicast(port->dev);
}

static uint32_t count_copies(const struct vswitch *sw, const struct switch_port *from,
			     const struct switch_dest *way)
{
	uint32_t n =
		(uint32_t)__builtin_popcount(way->out) + !!way->process + way->daemon + way->gsi;
	const struct switch_port *port;

	for (port = way->listeners ? sw->ports : NULL; port; port = port->next)
		n += hears(port, from);
	return n;
}

static void to_daemon(struct vswitch *sw, const struct switch_port *from,
		      const struct switch_frame *f)
{
	int uplink = from->kind == SWITCH_VM ? NEIGH_VM : (int)(from - sw->uplink_ports);

	switch_count_out(sw, &sw->self, f);
	neigh_input(sw->neigh, sw->now, uplink, f->parts[0].iov_base, f->len);
}

static void to_gsi(struct vswitch *sw, const struct switch_frame *f)
{
	switch_count_out(sw, &sw->self, f);
	sw->gsi(sw->gsi_ctx, sw->now, f->parts[0].iov_base, f->len);
}

/*
 * A process that is in any group gets each frame to a group, since only its engine knows which
 * ones; but not the sender, whose engine serves its own queue pairs.
 */
static void to_listeners(struct vswitch *sw, const struct switch_port *from,
			 const struct switch_frame *f)
{
	struct switch_port *port;

	for (port = sw->ports; port; port = port->next)
		if (hears(port, from))
			switch_deliver(sw, port, f, false);
}

/*
 * Sends a frame by its way; where that leads nowhere, it is dropped for `reason`. False: it
 * has to wait. What goes to several does not wait: a second try would bring second copies.
 */
static bool forward(struct vswitch *sw, struct switch_port *from, const struct switch_frame *f,
		    const struct switch_dest *way, enum switch_drop reason)
{
	uint32_t copies = count_copies(sw, from, way), i;
	bool can_wait = from->kind == SWITCH_PROCESS && copies == 1, done = true;

	switch_count_in(sw, from, f, copies ? SWITCH_NO_DROP : reason);
	if (copies > 1)
		from->stats.counters[SWITCH_COPIES] += copies - 1;
	for (i = 0; i < sw->n_uplinks; i++)
		if (way->out & 1u << i)
			done = switch_enqueue(sw, &sw->uplink_ports[i], f, can_wait);
	if (way->process) {
		switch_introduce(sw, from, way->process, f->flow);
		done = switch_deliver(sw, way->process, f, can_wait);
	}
	if (way->listeners)
		to_listeners(sw, from, f);
	if (way->daemon)
		to_daemon(sw, from, f);
	if (way->gsi)
		to_gsi(sw, f);
	return done;
}

void switch_send(struct vswitch *sw, int uplink, const uint8_t *frame, uint32_t len)
{
	const struct switch_frame f = switch_frame_whole(frame, len);
	struct switch_dest way;
	struct frame_class s;

	classify_frame(&s, frame, len);
	switch_dest_from_urxed(sw, uplink, &s, &way);
	forward(sw, &sw->self, &f, &way, SWITCH_DROP_NO_UPLINK);
}

void switch_send_gsi(struct vswitch *sw, const uint8_t *frame, uint32_t len)
{
	struct switch_frame f = switch_frame_whole(frame, len);
	struct switch_dest way;
	struct frame_class s;

	classify_frame(&s, frame, len);
	f.from_host = true;
	switch_dest_from_gsi(sw, &s, &way);
	forward(sw, &sw->self, &f, &way, SWITCH_DROP_NO_UPLINK);
}

/* --- From a process */

/* False: the frame has to wait. */
static bool from_process(struct vswitch *sw, struct switch_port *from,
			 const struct vnic_tx_frame *tx)
{
	const struct antispoof_rules rules = {sw->host, &sw->leases, &sw->remotes};
	enum switch_drop reason;
	struct switch_dest way = {0};
	struct switch_frame f;
	struct frame_class s;

	classify_frame(&s, tx->data, tx->len);
	f = switch_frame_of_process(&s, tx);
	reason = antispoof_check(&rules, from, &s);
	if (reason == SWITCH_NO_DROP)
		reason = switch_dest_from_process(sw, from, &s, &way);
	return forward(sw, from, &f, &way, reason);
}

static bool run_queue(struct vswitch *sw, struct switch_port *port, uint32_t queue)
{
	struct vnic_tx_frame frames[BURST];
	const uint32_t bit = 1u << queue;
	uint32_t n, taken;

	n = vnic_device_tx(port->dev, queue, frames, BURST);
	port->held = port->waiting & bit;
	for (taken = 0; taken < n; taken++) {
		port->waiting &= ~bit;
		if (!from_process(sw, port, &frames[taken])) {
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

static bool run_port(struct vswitch *sw, struct switch_port *port)
{
	bool moved = false;

	/* Each queue by itself: one that waits for its receiver holds up no other. */
	for (uint32_t i = 0; port->dev && i < vnic_device_tx_queues(port->dev); i++)
		moved |= run_queue(sw, port, i);
	return moved;
}

void switch_drain(struct vswitch *sw, uint64_t now, struct switch_port *port)
{
	uint32_t bursts = 0;

	sw->now = now;
	/* No more than a ring holds: its owner may go on posting. */
	while (bursts++ < VMXNET3_RING_MAX_SIZE / BURST && run_port(sw, port))
		;
}

/* --- From an uplink or a VM */

static struct fdb_key source_key(const struct frame_class *s)
{
	struct fdb_key key = {.vlan = s->vlan};

	memcpy(key.mac, s->smac, ETHER_MAC_LEN);
	return key;
}

/*
 * What comes from one of the host's own addresses has not left the host, so as IP stacks do
 * (RFC 1812, 5.3.7) it is taken for a lie: with it, a neighbour would be heard in connections
 * between processes of this host. Another VLAN of an uplink may have another host of that address.
 */
static bool poses_as_host(const struct vswitch *sw, const struct switch_port *from,
			  const struct frame_class *s)
{
	return from->kind == SWITCH_VM ? host_find_address(sw->host, s->sip) != NULL
				       : host_has_address(sw->host, s->sip, s->vlan);
}

/* Why a station may not send this, SWITCH_NO_DROP where it may. */
static enum switch_drop check_station(const struct vswitch *sw, const struct switch_port *from,
				      const struct frame_class *s)
{
	uint32_t index = (uint32_t)(from - sw->uplink_ports);
	const struct fdb_key key = source_key(s);

	if (s->kind == FRAME_RUNT)
		return SWITCH_DROP_RUNT;
	if (switch_is_host_mac(sw, s->smac) || !fdb_may_send(&sw->fdb, &key, index))
		return SWITCH_DROP_SPOOFED_MAC;
	if (s->kind == FRAME_ROCE && poses_as_host(sw, from, s))
		return SWITCH_DROP_SPOOFED_IP;
	return SWITCH_NO_DROP;
}

static void learn(struct vswitch *sw, struct switch_port *from, const struct frame_class *s)
{
	const struct fdb_key key = source_key(s);

	if (sw->n_uplinks > 1 &&
	    fdb_learn(&sw->fdb, sw->now, &key, (uint32_t)(from - sw->uplink_ports)))
		from->stats.counters[SWITCH_UNLEARNED]++;
}

static void from_station(struct vswitch *sw, struct switch_port *from,
			 const struct netdev_frame *rx)
{
	struct switch_frame f = switch_frame_whole(rx->data, rx->len);
	enum switch_drop reason;
	struct switch_dest way = {0};
	struct frame_class s;

	classify_frame(&s, rx->data, rx->len);
	if (s.kind == FRAME_ROCE)
		f.flow = s.dest_qpn;
	reason = check_station(sw, from, &s);
	if (reason == SWITCH_NO_DROP) {
		learn(sw, from, &s);
		reason = switch_dest_from_station(sw, from, &s, &way);
	}
	forward(sw, from, &f, &way, reason);
}

static bool run_uplink(struct vswitch *sw, uint32_t index)
{
	struct netdev *port = sw->uplinks[index].port;
	struct netdev_frame frames[BURST];
	uint32_t i, n = port ? netdev_rx(port, sw->now, frames, BURST) : 0;

	if (n)
		sw->uplink_ports[index].moved_at = sw->now;
	for (i = 0; i < n; i++)
		from_station(sw, &sw->uplink_ports[index], &frames[i]);
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
		moved |= run_uplink(sw, i);
	for (port = sw->ports; port; port = port->next)
		moved |= run_port(sw, port);
	for (i = 0; i < sw->n_uplinks; i++)
		switch_flush(sw, &sw->uplink_ports[i]);
	for (port = sw->ports; port; port = port->next) {
		if (port->dirty)
			vnic_device_flush(port->dev);
		port->dirty = false;
	}
	return moved;
}

/* An uplink without a descriptor to wait on has to be asked. */
static uint64_t uplink_deadline(const struct switch_port *port, uint64_t now)
{
	struct netdev *netdev = port->uplink->port;
	uint64_t next, look;

	if (!netdev)
		return UINT64_MAX;
	next = netdev_next_deadline(netdev);
	if (netdev_wait_fd(netdev) >= 0)
		return next;
	look = now + netdev_idle_ns(now - port->moved_at);
	return look < next ? look : next;
}

uint64_t switch_deadline(const struct vswitch *sw, uint64_t now)
{
	uint64_t next = sw->retry_at, due;
	uint32_t i;

	for (i = 0; i < sw->n_uplinks; i++) {
		due = uplink_deadline(&sw->uplink_ports[i], now);
		if (due < next)
			next = due;
	}
	return next;
}

void switch_set_sleeping(struct vswitch *sw, bool asleep)
{
	struct switch_port *port;

	for (port = sw->ports; port; port = port->next)
		if (port->dev)
			vnic_device_sleeping(port->dev, asleep);
}
