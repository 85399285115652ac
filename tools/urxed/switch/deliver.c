/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/switch/deliver.h"

#include <errno.h>
#include <string.h>

static void show_to_tap(struct vswitch *sw, const struct switch_port *port,
			enum switch_direction dir, const struct switch_frame *f,
			enum switch_drop reason)
{
	const uint8_t *data = f->parts[0].iov_base;

	if (!sw->tap)
		return;
	/* Joins the parts for the tap. Only frames of processes have two parts, and tap_frame holds
	 * the longest of these. */
	if (f->n > 1) {
		switch_frame_copy(sw->tap_frame, f);
		data = sw->tap_frame;
	}
	sw->tap(sw->tap_ctx, port, dir, data, f->len, reason);
}

void switch_count_in(struct vswitch *sw, struct switch_port *port, const struct switch_frame *f,
		     enum switch_drop reason)
{
	if (!port->held) {
		port->stats.counters[SWITCH_IN_FRAMES]++;
		port->stats.counters[SWITCH_IN_BYTES] += f->len;
	}
	if (reason != SWITCH_NO_DROP)
		port->stats.drops[reason]++;
	if (!port->held || reason != SWITCH_NO_DROP)
		show_to_tap(sw, port, SWITCH_IN, f, reason);
}

void switch_count_out(struct vswitch *sw, struct switch_port *port, const struct switch_frame *f)
{
	port->stats.counters[SWITCH_OUT_FRAMES]++;
	port->stats.counters[SWITCH_OUT_BYTES] += f->len;
	show_to_tap(sw, port, SWITCH_OUT, f, SWITCH_NO_DROP);
}

/* Counts a frame that a port did not get. Returns true, as for a delivered frame, because the frame
 * must not wait. */
static bool drop_frame(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		       enum switch_drop reason)
{
	to->stats.drops[reason]++;
	show_to_tap(sw, to, SWITCH_OUT, f, reason);
	return true;
}

/*
 * Makes switch_deadline no later than `when`. Returns false, the result for a frame that must wait.
 */
static bool retry_at(struct vswitch *sw, uint64_t when)
{
	if (when < sw->retry_at)
		sw->retry_at = when;
	return false;
}

/* --- The sender's budget */

static void give_back(struct switch_port *from, uint64_t ns)
{
	from->waited -= ns < from->waited ? ns : from->waited;
}

/*
 * Charges a wait to the budget. A wait may end late, because the daemon was busy; the excess is
 * charged, too, so that waits take no greater part of the time. But waits never cost more than two
 * budgets, because the sender is not to blame for the daemon's own pauses.
 */
void switch_settle(const struct vswitch *sw, struct switch_port *from)
{
	uint64_t elapsed;

	if (!(from->waited | from->held_up))
		return;
	elapsed = sw->now - from->settled_at;
	from->settled_at = sw->now;
	if (!from->held_up) {
		give_back(from, elapsed / SWITCH_STALL_REST);
		return;
	}
	from->held_up = false;
	from->waited += elapsed;
	if (from->waited > 2 * SWITCH_STALL_NS)
		from->waited = 2 * SWITCH_STALL_NS;
}

/* Begins a wait of a frame of the process for a receiver without room. Returns false if the frame
 * may not wait. */
static bool begin_wait(const struct vswitch *sw, struct switch_port *from)
{
	if (from->waited >= SWITCH_STALL_NS)
		return false;
	from->held_up = true;
	from->settled_at = sw->now;
	return true;
}

/* Call it when a receiver or an uplink has taken a frame of the process: gives back a part of the
 * budget. */
static void count_taken(struct switch_port *from)
{
	give_back(from, SWITCH_STALL_NS / SWITCH_STALL_FRAMES);
}

/* --- To a process */

static uint64_t count_received(const struct switch_port *to)
{
	return vnic_device_counters(to->dev)[VNIC_RX_FRAMES];
}

bool switch_deliver(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		    struct switch_port *sender)
{
	const bool has_waited = sender && sender->waited;
	const uint64_t before = has_waited && to->dev ? count_received(to) : 0;

	switch (to->dev ? vnic_device_rxv(to->dev, f->flow, f->parts, f->n) : -ENETDOWN) {
	case 0:
		/* A frame that the receiver's filters refuse takes no buffer, so it gives nothing
		 * back. */
		if (has_waited && count_received(to) != before)
			count_taken(sender);
		to->dirty = true;
		switch_count_out(sw, to, f);
		return true;
	case -ENOBUFS: break;
	case -EMSGSIZE: return drop_frame(sw, to, f, SWITCH_DROP_TOO_LONG);
	default: return drop_frame(sw, to, f, SWITCH_DROP_RX_DOWN);
	}
	if (sender && begin_wait(sw, sender))
		return retry_at(sw, sw->now + SWITCH_STALL_NS - sender->waited);
	vnic_device_rx_give_up(to->dev, false);
	return drop_frame(sw, to, f, sender ? SWITCH_DROP_RX_STALLED : SWITCH_DROP_RX_FULL);
}

/* --- To an uplink or a VM */

/* Whether Linux would refuse to send the frame: it sends a frame above the MTU only if the excess
 * is an 802.1Q tag of 4 bytes. */
static bool is_too_long(const struct switch_frame *f, uint16_t mtu)
{
	const uint32_t most = ETHER_HDR_LEN + mtu;
	const uint8_t *head = f->parts[0].iov_base;

	return f->len > most && (f->len > most + ETHER_VLAN_LEN ||
				 ether_get16(head + 2 * ETHER_MAC_LEN) != ETHERTYPE_ID_VLAN);
}

/* Returns the source MAC for the host's frames on an uplink: that of the VLAN interface on the
 * uplink if there is one, else the uplink's MAC. */
static const uint8_t *source_mac(const struct vswitch *sw, const struct switch_port *to,
				 const uint8_t *frame)
{
	const uint8_t *tag = frame + 2 * ETHER_MAC_LEN, *of_vlan = NULL;

	if (ether_get16(tag) == ETHERTYPE_ID_VLAN)
		of_vlan = host_vlan_mac(sw->host, (uint32_t)(to - sw->uplink_ports),
					ether_get16(tag + 2) & ETHER_VLAN_ID);
	return of_vlan ? of_vlan : to->uplink->mac;
}

/*
 * Begins a wait of a frame for room in the queue. Returns false if the frame may not wait. A VM's
 * queue may be full only because one run of the switch moved more frames than fit; the port takes
 * them after the run, so the wait costs the sender no budget.
 */
static bool begin_wait_for_room(const struct vswitch *sw, const struct switch_port *to,
				struct switch_port *sender)
{
	return to->kind == SWITCH_UPLINK || !to->uplink->full_since || begin_wait(sw, sender);
}

/*
 * Returns a buffer of the queue for a frame that would be lost otherwise; NULL: the port takes no
 * frames. Tries to send the queue first, which may be full only because one run of the switch moved
 * more frames than fit. Does not try a port again that has refused frames in this run, because a
 * try may take a system call.
 */
static uint8_t *make_room(struct vswitch *sw, struct switch_port *to)
{
	if (to->uplink->refused_at == sw->now)
		return NULL;
	switch_flush(sw, to);
	return uplink_reserve(to->uplink);
}

bool switch_enqueue(struct vswitch *sw, struct switch_port *to, const struct switch_frame *f,
		    struct switch_port *sender)
{
	struct uplink *u = to->uplink;
	uint8_t *room;

	if (!u->port)
		return drop_frame(sw, to, f, SWITCH_DROP_UPLINK_GONE);
	/* The frame is dropped, because the kernel would keep it and send it late, when the
	 * interface is up again. */
	if (u->kernel && !u->up)
		return drop_frame(sw, to, f, SWITCH_DROP_UPLINK_DOWN);
	if (is_too_long(f, u->mtu))
		return drop_frame(sw, to, f, SWITCH_DROP_TOO_LONG);
	room = uplink_reserve(u);
	if (!room && sender && begin_wait_for_room(sw, to, sender))
		return retry_at(sw, sw->now + SWITCH_RETRY_NS);
	if (!room)
		room = make_room(sw, to);
	if (!room)
		return drop_frame(sw, to, f, SWITCH_DROP_UPLINK_FULL);
	switch_frame_copy(room, f);
	/* Only on an uplink outside a bond the source MAC changes: VMs, and the Ethernet behind a
	 * bond, know the host by one MAC. */
	if (f->from_host && to->kind == SWITCH_UPLINK &&
	    !bond_has(&sw->bond, (uint32_t)(to - sw->uplink_ports)))
		memcpy(room + ETHER_MAC_LEN, source_mac(sw, to, room), ETHER_MAC_LEN);
	uplink_commit(u, f->len);
	if (sender && to->taken) {
		to->taken--;
		count_taken(sender);
	}
	return true;
}

static struct switch_frame queued_frame(const struct uplink *u, uint32_t i)
{
	return switch_frame_whole(u->queue[i].data, u->queue[i].len);
}

void switch_count_lost(struct switch_port *port)
{
	port->stats.drops[SWITCH_DROP_UPLINK_GONE] += port->uplink->lost;
	port->uplink->lost = 0;
}

void switch_flush(struct vswitch *sw, struct switch_port *port)
{
	struct uplink *u = port->uplink;
	uint32_t i, sent = uplink_send(u, sw->now);
	struct switch_frame f;

	switch_count_lost(port);
	if (sent)
		port->moved_at = sw->now;
	for (i = 0; i < sent; i++) {
		f = queued_frame(u, i);
		switch_count_out(sw, port, &f);
	}
	uplink_release(u, sent);
	port->taken = port->taken + sent < UPLINK_QUEUE ? port->taken + sent : UPLINK_QUEUE;
	if (!u->queued)
		return;
	if (sw->now - u->full_since < SWITCH_UPLINK_STALL_NS) {
		retry_at(sw, sw->now + SWITCH_RETRY_NS);
		return;
	}
	for (i = 0; i < u->queued; i++) {
		f = queued_frame(u, i);
		drop_frame(sw, port, &f, SWITCH_DROP_UPLINK_FULL);
	}
	uplink_purge(u);
}
