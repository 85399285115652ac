/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "engine/tx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room that urxe_output needs for a frame: Ethernet header, VLAN tag, and the vNIC's MTU. */
#define FRAME_ROOM(mtu) ((uint32_t)(mtu) + 18)

/* Least average length of the frames of a burst, in bytes with referenced payload, at which the
 * burst counts as large (are_large). The engine builds frames of a stream in the peer's inbox while
 * it holds the lock word; the copies that this saves are worth that only for large frames. */
#define STREAM_FRAME 1024

int tx_init(struct tx *tx, struct vnic_driver *nic, struct packet_group *const *uplink,
	    struct peers *peers, const struct vnic_attach_welcome *welcome)
{
	*tx = (struct tx){
		.nic = nic,
		.uplink = uplink,
		.uplink_carriers = &welcome->port.uplink_carriers,
		.peers = peers,
		.mtu = welcome->mtu,
		.process = VNIC_BLOCK(welcome->qpn_first),
		.routes = calloc(VNIC_BLOCKS, sizeof(struct peer_route *)),
		.spares = malloc((size_t)TX_BURST * FRAME_ROOM(welcome->mtu)),
	};
	memcpy(tx->mac, welcome->mac, sizeof(tx->mac));
	if (tx->routes && tx->spares)
		return 0;
	tx_destroy(tx);
	return -ENOMEM;
}

static void close_route(struct tx *tx, uint32_t process)
{
	struct peer_route *route = tx->routes[process];

	tx->routes[process] = NULL;
	if (tx->stream == route)
		tx->stream = NULL;
	peer_route_close(route);
}

void tx_destroy(struct tx *tx)
{
	for (uint32_t i = 0; tx->routes && i < VNIC_BLOCKS; i++)
		if (tx->routes[i])
			close_route(tx, i);
	qpn_processes_free(&tx->processes);
	free(tx->routes);
	free(tx->spares);
	*tx = (struct tx){0};
}

void tx_isolate(const struct tx *tx)
{
	for (uint32_t i = 0; tx->routes && i < VNIC_BLOCKS; i++)
		if (tx->routes[i])
			vnic_outbox_isolate(tx->routes[i]->outbox);
}

void tx_set_nic(struct tx *tx, struct vnic_driver *nic)
{
	tx->nic = nic;
	tx->first = tx->count = 0;
	tx->free = tx->posted = tx->placed = 0;
	tx->full_since = 0;
	tx->switch_stalled = tx->switch_lost = tx->ack_guarded = false;
}

void tx_lose_switch(struct tx *tx)
{
	tx->switch_lost = tx->switch_stalled = true;
	tx->free = 0;
}

/* --- Inboxes of peers. */

/* Returns the number of the process that has the QPN. The result is below VNIC_BLOCKS for any value
 * of qpn: the program may have given a QPN with more than 24 bits. */
static uint32_t process_of(const struct tx *tx, uint32_t qpn)
{
	uint32_t process;

	if (qpn_process_find(&tx->processes, qpn & 0xffffff, &process))
		return process;
	return VNIC_BLOCK(qpn) % VNIC_BLOCKS;
}

static struct peer_route **route_entry(const struct tx *tx, uint32_t qpn)
{
	return &tx->routes[process_of(tx, qpn)];
}

bool tx_has_inbox(const struct tx *tx, const uint8_t mac[6], uint32_t qpn)
{
	const struct peer_route *route = *route_entry(tx, qpn);
	uint32_t process;

	/* False if an HCA may have chosen the QPN: since the table was filled, the HCA may have
	 * given it to another process. */
	return !qpn_process_find(&tx->processes, qpn & 0xffffff, &process) &&
	       peer_route_leads_to(route, mac) && !peer_route_has_ended(route);
}

struct peer *tx_peer(const struct tx *tx, const uint8_t mac[6], uint32_t qpn)
{
	const struct peer_route *route = *route_entry(tx, qpn);

	if (!peer_route_leads_to(route, mac) || !vnic_driver_bypass_allowed(tx->nic) ||
	    peer_route_has_ended(route))
		return NULL;
	return route->peer;
}

/* Frees the memory of inboxes whose processes have ended. */
static void close_ended(struct tx *tx)
{
	for (uint32_t i = 0; i < VNIC_BLOCKS; i++)
		if (tx->routes[i] && peer_route_has_ended(tx->routes[i]))
			close_route(tx, i);
}

int tx_add_inbox(struct tx *tx, const uint8_t mac[6], uint32_t qpn, bool of_hca,
		 const int fds[VNIC_INBOX_FDS])
{
	uint32_t process = VNIC_BLOCK(qpn) % VNIC_BLOCKS, before;
	struct vnic_outbox *outbox;
	int rc = vnic_outbox_open(fds, tx->mtu, tx->process, &outbox);

	close_ended(tx);
	if (rc)
		return rc;
	if (of_hca || qpn_process_find(&tx->processes, qpn & 0xffffff, &before)) {
		process = peer_published_process(vnic_outbox_published(outbox));
		rc = qpn_process_set(&tx->processes, qpn & 0xffffff, process);
		/* peer_route_leads_to(): the adapter already has the inbox, for another queue pair
		 * of the same process. */
		if (rc || peer_route_leads_to(tx->routes[process], mac)) {
			vnic_outbox_close(outbox);
			return rc;
		}
	}
	if (tx->routes[process])
		close_route(tx, process);
	tx->routes[process] = peer_route_open(tx->peers, outbox, mac, process);
	return tx->routes[process] ? 0 : -ENOMEM;
}

void tx_forget_qpn(struct tx *tx, uint32_t qpn)
{
	uint32_t process;

	if (qpn_process_find(&tx->processes, qpn & 0xffffff, &process))
		qpn_process_entry(&tx->processes, qpn & 0xffffff)->process =
			VNIC_BLOCK(qpn) % VNIC_BLOCKS;
}

/* Whether a frame goes to this device's MAC address, so that the engine has given it no ICRC. */
static bool is_for_own_mac(const struct tx *tx, const uint8_t *frame)
{
	return memcmp(frame, tx->mac, sizeof(tx->mac)) == 0;
}

/* The inbox for the slot's frame. NULL: the frame goes by the direct uplink or the switch. */
static struct peer_route *route_for_slot(struct tx *tx, uint64_t now, uint32_t slot)
{
	struct peer_route *route = *route_entry(tx, tx->qpns[slot]);

	/* The MAC is compared, because the QPN of a multicast packet names no process. */
	if (!peer_route_leads_to(route, tx->slots[slot].data))
		return NULL;
	if (!vnic_driver_bypass_allowed(tx->nic)) {
		tx_count(tx, VNIC_BYPASS_OFF, 1);
		return NULL;
	}
	if (now < route->detour_until) {
		tx_count(tx, route->detour_reason, 1);
		return NULL;
	}
	return route;
}

/* --- Frames. */

/* Returns for how many nanoseconds a state has lasted that began at *since. If *since is 0, the
 * state begins now, so sets *since to `now`. Does so also if `now` precedes *since: this thread
 * took the time, and then waited for the lock while another thread set *since. */
static uint64_t measure_duration(uint64_t *since, uint64_t now)
{
	if (!*since || now < *since)
		*since = now;
	return now - *since;
}

static uint32_t use_spare_slots(struct tx *tx, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		tx->slots[i] = (struct vnic_frame){
			.data = tx->spares + (size_t)i * FRAME_ROOM(tx->mtu),
			.room = FRAME_ROOM(tx->mtu),
		};
	return n;
}

static uint32_t reserve_slots(struct tx *tx, uint64_t now, uint32_t n)
{
	tx->free = tx->switch_lost ? 0 : vnic_driver_tx_reserve(tx->nic, tx->slots, n);
	if (tx->free)
		tx->full_since = 0;
	tx->switch_stalled =
		tx->switch_lost ||
		(!tx->free && measure_duration(&tx->full_since, now) >= TX_SWITCH_FULL_NS);
	return tx->switch_stalled && !tx->n_aside ? use_spare_slots(tx, n) : tx->free;
}

/*
 * Reserves up to n buffers of the inbox into which the engine is to write the next burst
 * (tx.stream), and returns their number. 0: there is no such inbox; n is more than 1, and the last
 * frames were not large; bypass is forbidden; frames to the inbox go by the switch
 * (detour_until); the peer has ended; or the inbox takes no frames now.
 */
static uint32_t reserve_stream_slots(struct tx *tx, uint64_t now, uint32_t n)
{
	struct peer_route *route = tx->stream;

	if (!route || (n > 1 && !tx->stream_large) || now < route->detour_until ||
	    !vnic_driver_bypass_allowed(tx->nic) || peer_route_has_ended(route))
		return 0;
	return vnic_outbox_reserve(route->outbox, tx->stream_slots, n);
}

uint32_t tx_reserve(struct tx *tx, uint64_t now, struct urxe_frame *frames, uint32_t n)
{
	const struct vnic_frame *from = tx->slots;

	tx->now = now;
	/* Reserves none while n of the last buffers are free: their frames went to inboxes. */
	if (tx->free < n)
		n = reserve_slots(tx, now, n);
	tx->n_stream_slots = reserve_stream_slots(tx, now, n);
	if (tx->n_stream_slots) {
		from = tx->stream_slots;
		n = tx->n_stream_slots;
	}
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct urxe_frame){.data = from[i].data, .room = from[i].room};
	tx->reserved = frames;
	return n;
}

/* Whether a frame goes to the inbox of that process of this host. */
static bool goes_to(const struct tx *tx, const struct urxe_frame *frame, uint32_t process)
{
	return process_of(tx, frame->dest_qpn) == process &&
	       peer_route_leads_to(tx->routes[process], frame->data);
}

bool tx_may_reference(const struct tx *tx, const uint8_t mac[6], uint32_t qpn)
{
	const struct peer *peer = tx_peer(tx, mac, qpn);

	/* Not if the frame may go by the switch, which carries no references. */
	return peer && !tx->hurries && (*route_entry(tx, qpn))->detour_until <= tx->now &&
	       peer_pulls(peer);
}

/*
 * Sets length and reference of *to. The length of a frame to this device's MAC or to an inbox
 * leaves out the ICRC: inboxes carry none, so that a slot of one cache line holds 8 bytes of
 * payload. Of frames to the own MAC the engine has only left room for it
 * (urxe_dev_attr.omit_local_icrc); of frames to virtual machines it has computed it. append_icrc()
 * restores the length if the frame goes by the switch after all.
 */
static void fill_inbox_frame(struct tx *tx, struct vnic_frame *to, const struct urxe_frame *frame)
{
	const bool cut = is_for_own_mac(tx, frame->data) ||
			 goes_to(tx, frame, process_of(tx, frame->dest_qpn));

	to->len = frame->len - (cut ? URXE_ICRC_LEN : 0);
	to->reference = peer_route_reference(frame);
	if (frame->reference.length)
		tx_count(tx, VNIC_BYPASS_REFERRED, 1);
}

/* Moves a frame that is not for the stream's inbox out of that inbox, into a buffer of the NIC. */
static void move_to_slot(struct tx *tx, uint32_t slot, struct urxe_frame *frame)
{
	memcpy(tx->slots[slot].data, frame->data, urxe_frame_bytes(frame));
	frame->data = tx->slots[slot].data;
}

/* Sets length and reference of buffer `at` of the stream's inbox for the frame. First moves the
 * frame there, if frames for other receivers before it have left a gap. */
static void compact_stream_slot(struct tx *tx, uint32_t at, const struct urxe_frame *frame)
{
	struct vnic_frame *slot = &tx->stream_slots[at];

	if (frame->data != slot->data)
		memcpy(slot->data, frame->data, urxe_frame_bytes(frame));
	fill_inbox_frame(tx, slot, frame);
}

/*
 * Sends the frames that are for the stream's inbox, and sets their `data` to NULL. Moves the other
 * frames to buffers of the NIC, and returns their number.
 */
static uint32_t send_stream(struct tx *tx, struct urxe_frame *frames, uint32_t n)
{
	uint32_t sent = 0, moved = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (goes_to(tx, &frames[i], tx->stream_process)) {
			compact_stream_slot(tx, sent++, &frames[i]);
			frames[i].data = NULL;
		} else {
			move_to_slot(tx, moved++, &frames[i]);
		}
	}
	vnic_outbox_commit(tx->stream->outbox, tx->stream_slots, sent);
	tx->n_stream_slots = 0;
	tx_count(tx, VNIC_BYPASS_SENT, sent);
	if (sent)
		tx->stream->stuck_since = 0;
	return moved;
}

/* Sends the frames that the engine has built since tx_reserve. A frame that the engine has not
 * built yet has length 0. */
void tx_unlock_inbox(struct tx *tx)
{
	struct urxe_frame *frames = tx->reserved;
	uint32_t n = tx->n_stream_slots, made = 0, slot;

	if (!n)
		return;
	while (made < n && frames[made].len)
		made++;
	slot = send_stream(tx, frames, made);
	for (uint32_t i = made; i < n; i++, slot++) {
		frames[i].data = tx->slots[slot].data;
		frames[i].room = tx->slots[slot].room;
	}
	tx->stream = NULL;
}

/* Returns the length with ICRC of the frame in a slot. For a frame to this device's MAC, computes
 * the ICRC. Behind any other frame stands the ICRC that the engine has computed, even if `len`
 * leaves it out (`cut`). */
static uint32_t append_icrc(const struct tx *tx, uint32_t slot)
{
	const struct vnic_frame *frame = &tx->slots[slot];
	uint32_t len = frame->len + (tx->cut[slot] ? URXE_ICRC_LEN : 0);

	if (is_for_own_mac(tx, frame->data))
		urxe_frame_add_icrc(frame->data, len);
	return len;
}

/* Moves the next waiting frame down to the NIC's next buffer, if frames before it went to inboxes
 * and left a gap. Drops a frame with a reference, and each frame while the switch is stalled. */
static void place_nic_frame(struct tx *tx)
{
	struct vnic_frame *from = &tx->slots[tx->first++], *to;

	if (tx->switch_stalled || from->reference.length) {
		tx_count(tx, VNIC_BYPASS_LOST, 1);
		return;
	}
	from->len = append_icrc(tx, tx->first - 1);
	to = &tx->slots[tx->placed++];
	if (from == to)
		return;
	memcpy(to->data, from->data, from->len);
	to->len = from->len;
}

static void post_nic_frames(struct tx *tx)
{
	if (tx->posted == tx->placed)
		return;
	tx->free = 0;
	vnic_driver_tx_commit(tx->nic, &tx->slots[tx->posted], tx->placed - tx->posted);
	tx->posted = tx->placed;
}

static enum vnic_bypass_counter stall_reason(enum vnic_outbox_status status)
{
	return status == VNIC_OUTBOX_BUSY ? VNIC_BYPASS_BUSY : VNIC_BYPASS_FULL;
}

/*
 * Call it when the inbox has refused a frame. True: the inbox is stalled, so the frames to it go by
 * the switch for PEER_ROUTE_DETOUR_NS. False: the frame waits, and tx tries the inbox again at
 * tx->retry_at.
 */
static bool detour_if_stalled(struct tx *tx, struct peer_route *route, uint64_t now,
			      enum vnic_outbox_status status)
{
	if (peer_route_stalls(route, now)) {
		route->detour_reason = stall_reason(status);
		return true;
	}
	tx->retry_at = now + TX_RETRY_NS;
	return false;
}

/* Number of waiting frames, from the first one on without a gap, that go to the same inbox. */
static uint32_t run_length(const struct tx *tx)
{
	uint32_t first = tx->first, n = 1;

	while (first + n < tx->count &&
	       process_of(tx, tx->qpns[first + n]) == process_of(tx, tx->qpns[first]) &&
	       peer_route_leads_to(*route_entry(tx, tx->qpns[first]), tx->slots[first + n].data))
		n++;
	return n;
}

/*
 * The inbox does not take the next frame now, and no frame may wait (tx_hurry). A frame without a
 * reference goes by the switch; it is lost if the switch is stalled, too (switch_stalled). A frame
 * with a reference, which only an inbox can carry, is put aside: it moves from its slot to
 * `spares`, and tx_hurry(false) makes it wait for the inbox again. False: the frame stays in its
 * slot, because `aside` is full, or the slots are `spares` already (switch_stalled).
 */
static bool pass_inbox(struct tx *tx, enum vnic_outbox_status status)
{
	const struct vnic_frame *from = &tx->slots[tx->first];
	struct vnic_frame *to = &tx->aside[tx->n_aside];

	if (!from->reference.length) {
		tx_count(tx, stall_reason(status), 1);
		place_nic_frame(tx);
		return true;
	}
	if (tx->switch_stalled || tx->n_aside == TX_BURST)
		return false;
	*to = *from;
	to->data = tx->spares + (size_t)tx->n_aside * FRAME_ROOM(tx->mtu);
	to->room = FRAME_ROOM(tx->mtu);
	memcpy(to->data, from->data, vnic_frame_bytes(from));
	tx->aside_qpns[tx->n_aside++] = tx->qpns[tx->first++];
	return true;
}

/* Moves the frames that pass_inbox() put aside back to `slots`, where they wait for their inbox.
 * Their data stays in `spares`, so no slot is a buffer of the NIC, as while the switch is stalled.
 */
static void take_aside(struct tx *tx)
{
	if (!tx->n_aside)
		return;
	tx->free = tx->first = tx->posted = tx->placed = 0;
	tx->switch_stalled = true;
	tx->count = tx->n_aside;
	tx->n_aside = 0;
	for (uint32_t i = 0; i < tx->count; i++) {
		tx->slots[i] = tx->aside[i];
		tx->qpns[i] = tx->aside_qpns[i];
		tx->cut[i] = true;
		tx->continues[i] = tx->acknowledges[i] = false;
	}
	tx->retry_at = tx->now + TX_RETRY_NS;
}

/* Sends the next frames to their inbox. False: the next frame has to wait. */
static bool send_to_inbox(struct tx *tx, struct peer_route *route, uint64_t now)
{
	enum vnic_outbox_status status = VNIC_OUTBOX_CLOSED;
	uint32_t n = run_length(tx), sent = 0;

	if (!peer_route_has_ended(route))
		sent = vnic_outbox_send(route->outbox, &tx->slots[tx->first], n, &status);
	tx_count(tx, VNIC_BYPASS_SENT, sent);
	if (status == VNIC_OUTBOX_CLOSED) {
		tx_count(tx, VNIC_BYPASS_CLOSED, 1);
		close_route(tx, process_of(tx, tx->qpns[tx->first]));
		return true;
	}
	tx->first += sent;
	if (sent)
		route->stuck_since = 0;
	if (status == VNIC_OUTBOX_OK || detour_if_stalled(tx, route, now, status))
		return true;
	return tx->hurries && pass_inbox(tx, status);
}

/* --- Frames to other hosts. */

bool tx_has_gso(const struct tx *tx)
{
	return *tx->uplink && packet_group_gso(*tx->uplink) && vnic_driver_bypass_allowed(tx->nic);
}

bool tx_by_uplink(const struct tx *tx, const uint8_t mac[6])
{
	return *tx->uplink && !tx->uplink_paused && !(mac[0] & 1) && !is_for_own_mac(tx, mac) &&
	       vnic_driver_bypass_allowed(tx->nic);
}

/* Whether the slot's frame goes by the direct uplink. A frame for an inbox (`cut`) does not: if the
 * inbox is stalled, the frame goes by the switch. */
static bool is_for_uplink(const struct tx *tx, uint32_t slot)
{
	return !tx->cut[slot] && tx_by_uplink(tx, tx->slots[slot].data);
}

static uint32_t read_be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Offsets, in the IP header or GRH, of the last 4 bytes of source and destination address. */
#define IPV4_SOURCE      12
#define IPV4_DESTINATION 16
#define IPV6_SOURCE      20 /* also of a GRH */
#define IPV6_DESTINATION 36

/* Returns the index of the direct uplink's socket for a connection: that of the interface by which
 * the daemon's switch would send the same packets. `source`, `destination`: the last 4 bytes of the
 * addresses. */
static uint32_t choose_by_addresses(const struct tx *tx, uint32_t qpn, const uint8_t source[4],
				    const uint8_t destination[4])
{
	const uint32_t n = packet_group_size(*tx->uplink);

	return packet_group_choose(
		packet_group_flow(qpn & 0xffffff, read_be32(source), read_be32(destination)), n,
		*tx->uplink_carriers & ((1u << n) - 1));
}

/* Returns the index of the member (socket) of the direct uplink by which a frame of the engine
 * leaves. */
static uint32_t choose_member(const struct tx *tx, const uint8_t *frame, uint32_t qpn)
{
	const bool tagged = frame[12] == 0x81 && frame[13] == 0;
	const uint8_t *network = frame + (tagged ? 18 : 14);
	const bool v4 = network[-2] == 0x08;

	if (packet_group_size(*tx->uplink) == 1)
		return 0;
	return choose_by_addresses(tx, qpn, network + (v4 ? IPV4_SOURCE : IPV6_SOURCE),
				   network + (v4 ? IPV4_DESTINATION : IPV6_DESTINATION));
}

uint32_t tx_uplink_member(const struct tx *tx, uint32_t dest_qpn, const struct urxe_gid *source,
			  const struct urxe_gid *destination)
{
	return choose_by_addresses(tx, dest_qpn, source->raw + 12, destination->raw + 12);
}

static uint32_t member_of_slot(const struct tx *tx, uint32_t slot)
{
	return choose_member(tx, tx->slots[slot].data, tx->qpns[slot]);
}

/* Lists in `frames` the waiting frames, from the first one on without a gap, that go by that member
 * of the direct uplink. Returns their number. */
static uint32_t find_uplink_frames(const struct tx *tx, uint32_t member,
				   struct packet_port_frame frames[TX_BURST])
{
	uint32_t n = 0;

	while (tx->first + n < tx->count && is_for_uplink(tx, tx->first + n) &&
	       member_of_slot(tx, tx->first + n) == member) {
		const struct vnic_frame *slot = &tx->slots[tx->first + n];

		frames[n] = (struct packet_port_frame){slot->data, slot->len,
						       tx->continues[tx->first + n]};
		n++;
	}
	return n;
}

/* Describes the kept ACK in *frame. Returns the number of kept ACKs: 0 or 1. */
static uint32_t kept_ack(struct tx *tx, struct packet_port_frame *frame)
{
	*frame = (struct packet_port_frame){.data = tx->ack, .len = tx->ack_len};
	return tx->ack_len != 0;
}

/* Call it when the kept ACK was sent or discarded: this process and the daemon forget the ACK. If
 * the process is killed after the send and before the daemon forgets, the daemon sends the ACK once
 * more, which does no harm. */
static void forget_ack(struct tx *tx)
{
	tx->ack_len = 0;
	vnic_driver_clear_last_frame(tx->nic);
}

static void count_uplink(struct tx *tx, uint32_t sent, uint32_t lost)
{
	tx_count(tx, VNIC_BYPASS_UPLINK_SENT, sent);
	tx_count(tx, VNIC_BYPASS_UPLINK_LOST, lost);
}

bool tx_keep_ack(struct tx *tx, const struct urxe_frame *frame)
{
	if (!frame->acknowledges || frame->len > sizeof(tx->ack) || tx->ack_len ||
	    tx->switch_lost || !tx_by_uplink(tx, frame->data) ||
	    goes_to(tx, frame, process_of(tx, frame->dest_qpn)))
		return false;
	tx->ack_len = frame->len;
	tx->ack_qpn = frame->dest_qpn;
	memcpy(tx->ack, frame->data, frame->len);
	vnic_driver_set_last_frame(tx->nic, tx->ack, tx->ack_len);
	return true;
}

void tx_send_ack(struct tx *tx)
{
	struct packet_port_frame frame;
	uint32_t done = 0, lost = 0;

	vnic_driver_tx_wake(tx->nic);
	if (!kept_ack(tx, &frame))
		return;
	if (*tx->uplink) {
		done = packet_group_tx(*tx->uplink, choose_member(tx, tx->ack, tx->ack_qpn), &frame,
				       1, &lost);
		if (!done)
			return; /* the socket is full: the next call tries again */
	}
	count_uplink(tx, done - lost, 1 - (done - lost));
	forget_ack(tx);
}

void tx_pause_uplink(struct tx *tx, bool pause)
{
	tx_send_ack(tx);
	tx->uplink_paused = pause;
}

/*
 * Sends the next frames by the direct uplink, and behind them the ACK that is kept for the same
 * member: the peer handles the first frame while the kernel sends the next. Drops the frames if the
 * socket has refused all for TX_UPLINK_FULL_NS. False: the next frame has to wait.
 */
static bool send_to_uplink(struct tx *tx, uint64_t now)
{
	struct packet_port_frame frames[TX_BURST + 1];
	uint32_t member = member_of_slot(tx, tx->first);
	uint32_t n = find_uplink_frames(tx, member, frames), lost;
	uint32_t acks = kept_ack(tx, &frames[n]);
	uint32_t done;

	if (acks && choose_member(tx, tx->ack, tx->ack_qpn) != member)
		acks = 0;
	done = packet_group_tx(*tx->uplink, member, frames, n + acks, &lost);

	if (done)
		tx->uplink_full_since = 0;
	else if (measure_duration(&tx->uplink_full_since, now) >= TX_UPLINK_FULL_NS)
		done = lost = n;
	count_uplink(tx, done - lost, lost);
	/* If the socket had no room for the kept ACK, the ACK goes with the next frames. */
	if (done > n) {
		forget_ack(tx);
		done = n;
	}
	tx->first += done;
	if (done < n)
		tx->retry_at = now + TX_RETRY_NS;
	return done == n;
}

/* The number of the first waiting frame that is an ACK; tx->count: none. */
static uint32_t find_waiting_ack(const struct tx *tx)
{
	uint32_t slot = tx->first;

	while (slot < tx->count && !tx->acknowledges[slot])
		slot++;
	return slot;
}

/*
 * Gives the daemon a copy of the first waiting ACK, in case this process ends first: the program
 * may already have seen the completion of the acknowledged message. Withdraws the earlier copy if
 * no ACK waits any more. Gives no copy of an ACK that is too long, none after the daemon's end, and
 * none while an ACK is kept, whose copy the daemon has instead.
 */
static void guard_waiting_ack(struct tx *tx)
{
	uint32_t slot = find_waiting_ack(tx), len;

	if (tx->ack_guarded)
		vnic_driver_clear_last_frame(tx->nic);
	tx->ack_guarded = false;
	if (slot == tx->count || tx->ack_len || tx->switch_lost)
		return;
	len = append_icrc(tx, slot);
	if (len > VNIC_LAST_FRAME_MAX)
		return;
	vnic_driver_set_last_frame(tx->nic, tx->slots[slot].data, len);
	tx->ack_guarded = true;
}

/* Sends the next frames. False: the next frame has to wait. */
static bool send_next(struct tx *tx, uint64_t now)
{
	struct peer_route *route = route_for_slot(tx, now, tx->first);

	if (route)
		return send_to_inbox(tx, route, now);
	if (is_for_uplink(tx, tx->first)) {
		if (send_to_uplink(tx, now))
			return true;
		if (!tx->hurries)
			return false;
	}
	place_nic_frame(tx);
	return true;
}

bool tx_flush(struct tx *tx, uint64_t now)
{
	bool waits = false;

	while (tx->first < tx->count && !waits)
		waits = !send_next(tx, now);
	post_nic_frames(tx);
	if (waits || tx->ack_guarded)
		guard_waiting_ack(tx);
	return !waits;
}

void tx_hurry(struct tx *tx, bool hurry)
{
	tx->hurries = hurry;
	if (!hurry)
		take_aside(tx);
}

static bool are_large(const struct urxe_frame *frames, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += frames[i].len + frames[i].reference.length;
	return bytes >= (uint64_t)n * STREAM_FRAME;
}

/*
 * Returns the inbox into which the engine is to write the next burst, because the next frames
 * probably go there; NULL: none. Returns the inbox of `process` if all frames of this burst go
 * there, and they are large, or they are one frame and the last burst's first frame went there,
 * too.
 */
static struct peer_route *detect_stream(const struct tx *tx, const struct urxe_frame *frames,
					uint32_t n, uint32_t process, bool large)
{
	if (!large && (n > 1 || process != tx->stream_process))
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		if (frames[i].data && !goes_to(tx, &frames[i], process))
			return NULL;
	return tx->routes[process];
}

bool tx_send(struct tx *tx, uint64_t now, struct urxe_frame *frames, uint32_t n)
{
	uint32_t process = n ? process_of(tx, frames[0].dest_qpn) : tx->stream_process;
	bool large = n ? are_large(frames, n) : tx->stream_large;
	/* Reads the frames now: after send_stream() their memory belongs to the receiver. */
	struct peer_route *next = n ? detect_stream(tx, frames, n, process, large) : tx->stream;

	if (tx->n_stream_slots)
		send_stream(tx, frames, n);
	tx->stream = next;
	tx->stream_process = process;
	tx->stream_large = large;
	tx->count = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!frames[i].data)
			continue;
		fill_inbox_frame(tx, &tx->slots[tx->count], &frames[i]);
		tx->cut[tx->count] = tx->slots[tx->count].len != frames[i].len;
		tx->continues[tx->count] = frames[i].continues;
		tx->acknowledges[tx->count] = frames[i].acknowledges;
		tx->qpns[tx->count++] = frames[i].dest_qpn;
	}
	tx->first = tx->posted = tx->placed = 0;
	return !tx->count || tx_flush(tx, now);
}

uint64_t tx_deadline(const struct tx *tx)
{
	return tx->first < tx->count ? tx->retry_at : URXE_NEVER;
}

bool tx_convert_received(const struct tx *tx, const struct vnic_frame *buffer, bool from_inbox,
			 struct urxe_frame *frame)
{
	const struct vnic_reference *reference = &buffer->reference;

	return peer_route_convert(reference->length ? *route_entry(tx, reference->qpn) : NULL,
				  buffer, from_inbox, frame);
}
