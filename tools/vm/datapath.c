/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/datapath.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/ether.h"
#include "urxed/uplink/vm_port_protocol.h"

#define BURST SWITCH_LINK_BURST
/* How long a frame waits for a receive buffer of the driver before it is dropped. */
#define BLOCKED_NS (10 * NS_PER_MS)
/* The pause before the next look at a full ring or inbox, whose reader sends no notice of room. */
#define FULL_NS 50000
/* After so many rounds that sent frames of the driver, since the last sleep, the process tells the
 * driver to ring no doorbells. */
#define POLLING_ROUNDS 2
/* From the end of `polling` to the last look at the rings: longer than a processor keeps a store in
 * its store buffer, so the look finds each frame that the driver added meanwhile. */
#define LOOK_AGAIN_NS 200000
#define ROOM          (VM_PORT_MTU + 14u + 4u) /* of a frame's buffer */

int datapath_init(struct datapath *f, struct switch_link *link, struct vmxnet3_function *nic,
		  struct pvrdma_function *rdma, struct machine_peers *peers)
{
	*f = (struct datapath){.link = link, .nic = nic, .rdma = rdma, .peers = peers};
	f->buffers = malloc((size_t)BURST * ROOM);
	return f->buffers ? 0 : -ENOMEM;
}

void datapath_free(struct datapath *f)
{
	free(f->buffers);
	f->buffers = NULL;
}

/* --- From the guest */

/* The number of frames that the link takes now, BURST at most. If it takes none, sets link_full. */
static uint32_t burst_room(struct datapath *f)
{
	const uint32_t room = switch_link_room(f->link);

	f->link_full |= !room;
	return room < BURST ? room : BURST;
}

static bool send_queue(struct datapath *f, uint32_t queue)
{
	struct vnic_tx_frame frames[BURST];
	uint32_t n = vnic_device_tx(f->nic->dev, queue, frames, burst_room(f));

	for (uint32_t i = 0; i < n; i++) {
		pvrdma_nic_sent(f->rdma->dev, frames[i].data, frames[i].len);
		switch_link_send(f->link, frames[i].data, frames[i].len);
	}
	vnic_device_tx_done(f->nic->dev, queue, n);
	return n;
}

static uint8_t *own_buffer(const struct datapath *f, uint32_t i)
{
	return f->buffers + (size_t)i * ROOM;
}

/* Moves each frame that lies in the ring buffer meant for another frame to a buffer of the process:
 * pvrdma_output exchanges buffers when PVRDMA sends a frame to itself. */
static void move_permuted(const struct datapath *f, struct urxe_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (frames[i].data == switch_link_buffer(f->link, i))
			continue;
		memmove(own_buffer(f, i), frames[i].data, urxe_frame_bytes(&frames[i]));
		frames[i].data = own_buffer(f, i);
	}
}

/* Sends a frame to the switch. False: the ring has no room. A frame with a payload reference, which
 * the switch cannot carry, is dropped: PVRDMA then sends the payload in packets. */
static bool send_by_switch(struct datapath *f, const struct urxe_frame *frame)
{
	if (!switch_link_room(f->link))
		return false;
	if (frame->reference.length)
		f->peers->counters[VNIC_BYPASS_LOST]++;
	else
		switch_link_send(f->link, frame->data, frame->len);
	return true;
}

/* Sends the kept frames in order, until one has to wait for room. All later frames wait behind it,
 * even if it is for an inbox and they are for the switch. */
static void send_kept(struct datapath *f, uint64_t now)
{
	bool waits = false;

	while (f->first < f->count && !waits) {
		uint32_t n = machine_peers_send(f->peers, now, &f->kept[f->first],
						f->count - f->first, &waits);

		if (!n && !waits) {
			n = send_by_switch(f, &f->kept[f->first]);
			waits = !n;
		}
		f->first += n;
	}
	f->link_full |= waits;
}

/* Moves waiting frames out of the ring's buffers, because the next frames will be written there. */
static void keep_rest(struct datapath *f)
{
	for (uint32_t i = f->first; i < f->count; i++) {
		if (f->kept[i].data != own_buffer(f, i))
			memcpy(own_buffer(f, i), f->kept[i].data, urxe_frame_bytes(&f->kept[i]));
		f->kept[i].data = own_buffer(f, i);
	}
}

static bool send_rdma(struct datapath *f, uint64_t now)
{
	const uint32_t limit = machine_peers_frame_max(f->peers);
	uint32_t room;

	send_kept(f, now);
	if (f->first < f->count)
		return false;
	room = burst_room(f);
	for (uint32_t i = 0; i < room; i++)
		f->kept[i] = (struct urxe_frame){.data = switch_link_buffer(f->link, i)
								 ?: own_buffer(f, i),
						 .room = limit < ROOM ? limit : ROOM};
	f->first = 0;
	f->count = room ? pvrdma_output(f->rdma->dev, now, f->kept, room) : 0;
	/* Without a link all frames lie in buffers of the process, and stay there. */
	if (switch_link_is_up(f->link))
		move_permuted(f, f->kept, f->count);
	send_kept(f, now);
	if (switch_link_is_up(f->link))
		keep_rest(f);
	return f->first;
}

static void set_polling(struct datapath *f, bool polling)
{
	f->polling = polling;
	vnic_device_set_polling(f->nic->dev, polling);
}

static bool send_frames(struct datapath *f, uint64_t now)
{
	bool moved = false;

	f->link_full = false;
	for (uint32_t i = 0; i < vnic_device_tx_queues(f->nic->dev); i++)
		moved |= send_queue(f, i);
	if (moved && ++f->tx_rounds == POLLING_ROUNDS)
		set_polling(f, true);
	f->rdma_moved |= send_rdma(f, now);
	switch_link_flush(f->link);
	return moved;
}

/* --- To the guest */

/*
 * Gives the vmxnet3 a frame. False: the frame waits for a receive buffer. If there is no buffer and
 * the receive queue is stalled or PVRDMA is active, drops the frame at once instead, so that it
 * does not hold up the frames behind it.
 */
static bool deliver(struct datapath *f, uint64_t now, const struct netdev_frame *frame)
{
	struct vnic_device *dev = f->nic->dev;

	if (vnic_device_rx(dev, 0, frame->data, frame->len) == -ENOBUFS) {
		const uint64_t since = f->blocked_since ?: now;
		const bool late = now - since >= BLOCKED_NS;

		if (!late && !pvrdma_active(f->rdma->dev) && !vnic_device_rx_is_stalled(dev)) {
			f->blocked_since = since;
			return false;
		}
		vnic_device_rx_give_up(dev, late);
	}
	f->blocked_since = 0;
	return true;
}

/* Tells PVRDMA of a station that announces itself by RARP; the frame itself goes to the vmxnet3.
 * Ignores a RARP frame with the machine's own MAC, which any station can send. */
static void hear_announcement(struct datapath *f, uint64_t now, const struct netdev_frame *frame)
{
	const uint8_t *mac = (const uint8_t *)frame->data + ETHER_MAC_LEN;

	if (frame->len < ETHER_HDR_LEN || ether_get16(mac + ETHER_MAC_LEN) != ETHERTYPE_ID_RARP ||
	    ether_same(mac, f->link->mac) || !announcement_permit(&f->announced, mac, now))
		return;
	pvrdma_station_returned(f->rdma->dev, now, mac);
	f->rdma_moved = true;
}

static bool receive_frames(struct datapath *f, uint64_t now)
{
	struct netdev_frame frames[BURST];
	struct urxe_frame wanted[BURST];
	uint32_t n = switch_link_receive(f->link, frames, BURST), done, n_wanted = 0;

	for (done = 0; done < n; done++) {
		const struct netdev_frame *frame = &frames[done];

		/* The buffers do not change before their release: only urxed writes to them. */
		if (pvrdma_wants(f->rdma->dev, frame->data, frame->len))
			wanted[n_wanted++] =
				(struct urxe_frame){.data = (uint8_t *)(uintptr_t)frame->data,
						    .len = frame->len,
						    .from_wire = true};
		else if (!deliver(f, now, frame))
			break;
		else
			hear_announcement(f, now, frame);
	}
	if (done == n)
		f->blocked_since = 0;
	if (n_wanted)
		pvrdma_input(f->rdma->dev, now, wanted, n_wanted);
	f->rdma_moved |= n_wanted;
	switch_link_release(f->link, done);
	return done;
}

/*
 * Delivers a peer's frame to a software RoCE in the guest, and adds the ICRC, which frames in
 * inboxes lack. Peers send no payload references to such queue pairs, because urxed knows no
 * process that has them.
 */
static void deliver_from_peer(struct datapath *f, const struct urxe_frame *from)
{
	struct vnic_device *dev = f->nic->dev;
	uint8_t copy[ROOM];

	if (from->reference.length || from->len < URXE_ICRC_LEN || from->len > ROOM)
		return;
	memcpy(copy, from->data, from->len - URXE_ICRC_LEN);
	memset(copy + from->len - URXE_ICRC_LEN, 0, URXE_ICRC_LEN);
	urxe_frame_add_icrc(copy, from->len);
	if (vnic_device_rx(dev, 0, copy, from->len) == -ENOBUFS)
		vnic_device_rx_give_up(dev, false);
}

static bool receive_from_peers(struct datapath *f, uint64_t now)
{
	struct urxe_frame frames[MACHINE_PEERS_BURST];
	uint32_t taken, n = machine_peers_receive(f->peers, frames, MACHINE_PEERS_BURST, &taken);

	/* If the guest does not use vmw_pvrdma, the frames are for a software RoCE in the guest. */
	if (!pvrdma_active(f->rdma->dev))
		for (uint32_t i = 0; i < n; i++)
			deliver_from_peer(f, &frames[i]);
	else if (n)
		pvrdma_input(f->rdma->dev, now, frames, n);
	machine_peers_release(f->peers, taken);
	return taken;
}

bool datapath_run(struct datapath *f, uint64_t now)
{
	bool moved;

	f->rdma_moved = pvrdma_poll(f->rdma->dev, now);
	machine_peers_disarm(f->peers);

	if (now >= f->look_again_at)
		f->look_again_at = 0;
	moved = send_frames(f, now);
	moved |= receive_frames(f, now);
	f->rdma_moved |= receive_from_peers(f, now);
	vnic_device_flush(f->nic->dev);
	pvrdma_flush(f->rdma->dev);
	return moved || f->rdma_moved;
}

uint64_t datapath_deadline(const struct datapath *f, uint64_t now)
{
	uint64_t next = pvrdma_next_deadline(f->rdma->dev);

	if (f->look_again_at && f->look_again_at < next)
		next = f->look_again_at;
	if (f->blocked_since && f->blocked_since + BLOCKED_NS < next)
		next = f->blocked_since + BLOCKED_NS;
	/* While the ring is full PVRDMA cannot send, so the process does not wake for PVRDMA's
	 * overdue deadlines, but looks at the ring again after FULL_NS. */
	if (f->link_full && (next > now + FULL_NS || next <= now))
		next = now + FULL_NS;
	return next;
}

bool datapath_arm(struct datapath *f, uint64_t now)
{
	bool more;

	f->tx_rounds = 0;
	if (f->polling) {
		set_polling(f, false);
		f->look_again_at = now + LOOK_AGAIN_NS;
		return true;
	}
	more = machine_peers_arm(f->peers);
	/*
	 * While a frame waits for a receive buffer, the next frame need not wake the process: a
	 * driver that posts buffers writes to a register, which is an event.
	 */
	return (!f->blocked_since && switch_link_arm(f->link)) || more;
}
