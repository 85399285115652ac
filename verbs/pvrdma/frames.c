/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "frames.h"

#include <stdlib.h>

#include <rxe/announcement.h>

#include "pvrdma_port.h"
#include "queues/pvrdma_qp.h"

#define MAC_LEN   6
#define ETHERTYPE 12 /* offset in a frame */
#define VLAN_TAG  4
#define IPV4      0x0800
#define IPV6      0x86dd
#define VLAN      0x8100
#define IP_UDP    17
/* Fragment offset, and "more fragments", in bytes 6 and 7 of an IPv4 header. */
#define IPV4_FRAGMENT 0x3fff
/* The most calls of urxe_output in one pvrdma_output. All frames of a call may be for the device
 * itself, so without a limit queue pairs of the device could keep the caller for ever. */
#define LOOPBACK_ROUNDS 64
/*
 * Limits of one pv_frames_stage_up_to_ack: STAGED_ROUNDS calls of urxe_output. The first call may
 * build one frame, usually the acknowledgement. Each later call may build STAGED_BURST frames,
 * because a request may go before the acknowledgement.
 */
#define STAGED_BURST  2
#define STAGED_ROUNDS 32
/* The most staged frames of the device: all QPs may be destroyed before frames can leave. */
#define STAGED_MAX (STAGED_BURST * PV_MAX_QP)
/* Bytes; no acknowledgement is longer. Of longer frames the device stages only STAGED_LONG_MAX,
 * because PV_MEMORY_MAX does not include staged frames. */
#define STAGED_LONG     128
#define STAGED_LONG_MAX 64

static uint16_t read16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

/* Whether the UDP header of an IP packet has RoCE's port. */
static bool is_roce_port(const uint8_t *ip, uint32_t len, uint32_t header)
{
	return len >= header + 4 && read16(ip + header + 2) == URXE_UDP_PORT;
}

/*
 * Whether an IPv4 packet is RoCE. A fragment never is, and only a first fragment has a UDP header.
 */
static bool is_roce_ipv4(const uint8_t *ip, uint32_t len)
{
	return len >= 20 && ip[9] == IP_UDP && !(read16(ip + 6) & IPV4_FRAGMENT) &&
	       is_roce_port(ip, len, (ip[0] & 15) * 4u);
}

/* Whether the frame is RoCE by its Ethernet, IP and UDP headers; the engine checks the rest. */
static bool is_roce(const uint8_t *frame, uint32_t len)
{
	uint32_t at = ETHERTYPE;
	const uint8_t *ip;

	if (len >= at + VLAN_TAG + 2 && read16(frame + at) == VLAN)
		at += VLAN_TAG;
	if (len < at + 2)
		return false;
	ip = frame + at + 2;
	len -= at + 2;
	switch (read16(frame + at)) {
	case URXE_ETHERTYPE_ROCEV1: return true;
	case IPV4: return is_roce_ipv4(ip, len);
	case IPV6: return len >= 40 && ip[6] == IP_UDP && is_roce_port(ip, len, 40);
	default: return false;
	}
}

bool pvrdma_wants(const struct pvrdma *dev, const uint8_t *frame, uint32_t len)
{
	return dev->active && !dev->no_master && is_roce(frame, len) && pv_port_has_nic(dev) &&
	       pv_port_has_mac(dev, frame);
}

void pvrdma_input(struct pvrdma *dev, uint64_t now, const struct urxe_frame *frames, uint32_t n)
{
	pv_pass_time(dev, now);
	for (uint32_t i = 0, begin = 0; i <= n; i++) {
		if (i < n && pvrdma_wants(dev, frames[i].data, frames[i].len))
			continue;
		if (i > begin)
			urxe_input(dev->engine, dev->now, frames + begin, i - begin);
		pv_count_n(dev, PVRDMA_RX_FRAMES, i - begin);
		pv_count_n(dev, PVRDMA_RX_UNWANTED, i < n);
		begin = i + 1;
	}
}

void pvrdma_station_returned(struct pvrdma *dev, uint64_t now, const uint8_t mac[6])
{
	uint8_t data[URXE_ANNOUNCEMENT_LEN];
	const struct urxe_frame frame = {.data = data, .len = sizeof(data)};

	pv_pass_time(dev, now);
	if (!dev->active || dev->no_master)
		return;
	urxe_announcement_build(data, mac);
	urxe_input(dev->engine, dev->now, &frame, 1);
}

static void swap_frames(struct urxe_frame *a, struct urxe_frame *b)
{
	struct urxe_frame c = *a;

	*a = *b;
	*b = c;
}

/* Passes the engine a frame that the engine has built for this device itself. The engine has
 * omitted the ICRC if the destination is the device's MAC address, but not if it is the NIC's. */
static void receive_own(struct pvrdma *dev, struct urxe_frame *frame)
{
	struct urxe_frame own = *frame;

	own.without_icrc = !memcmp(frame->data, dev->attr.mac, MAC_LEN);
	own.from_wire = false;
	pv_count(dev, PVRDMA_LOOPBACK);
	urxe_input(dev->engine, dev->now, &own, 1);
}

/*
 * Moves the frames for other stations to the front, and returns their number. Passes those for the
 * device itself to the engine. While the NIC is down, drops the frames for other stations.
 */
static uint32_t keep_foreign(struct pvrdma *dev, struct urxe_frame *frames, uint32_t n)
{
	const bool down = !pv_port_has_nic(dev);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (pv_port_has_mac(dev, frames[i].data)) {
			receive_own(dev, &frames[i]);
			continue;
		}
		if (down) {
			pv_count(dev, PVRDMA_TX_DOWN);
			continue;
		}
		if (i != kept)
			swap_frames(&frames[i], &frames[kept]);
		kept++;
	}
	return kept;
}

/* Fills up to max frames for other devices, and returns their number. Fewer than max: the engine
 * has nothing more to send now, or the LOOPBACK_ROUNDS are used up. */
static uint32_t fill_frames(struct pvrdma *dev, struct urxe_frame *frames, uint32_t max)
{
	uint32_t n = 0;

	for (unsigned round = 0; round < LOOPBACK_ROUNDS && n < max; round++) {
		uint32_t made, kept;

		pv_qp_post_waiting(dev);
		made = urxe_output(dev->engine, dev->now, frames + n, max - n);
		kept = keep_foreign(dev, frames + n, made);
		n += kept;
		/*
		 * The engine has more to send only after it received frames of the device itself,
		 * or when requests found room. Room also comes without a frame, when a QP fails
		 * and flushes its requests.
		 */
		if (!made && !pv_qp_post_waiting(dev))
			return n;
		if (made && kept == made && n < max && TAILQ_EMPTY(&dev->waiting_qps))
			return n;
	}
	return n;
}

static bool is_long(const struct urxe_frame *frame)
{
	return urxe_frame_bytes(frame) > STAGED_LONG;
}

static void stage(struct pvrdma *dev, const struct urxe_frame *frame)
{
	const uint32_t bytes = urxe_frame_bytes(frame);
	struct pv_staged *staged;

	if (is_long(frame) && dev->n_staged_long == STAGED_LONG_MAX)
		return;
	staged = malloc(sizeof(*staged) + bytes);
	if (!staged)
		return;
	staged->frame = *frame;
	staged->frame.data = memcpy(staged->data, frame->data, bytes);
	STAILQ_INSERT_TAIL(&dev->staged, staged, link);
	dev->n_staged++;
	dev->n_staged_long += is_long(frame);
}

static uint32_t frame_room(const struct pvrdma *dev)
{
	return dev->attr.mtu + 18;
}

/* Builds up to max frames, and stages those for other devices. False: no frame was the QP's. */
static bool stage_burst(struct pvrdma *dev, const struct urxe_qp *qp, uint8_t *bytes, uint32_t max)
{
	const uint64_t *sent = &urxe_qp_counters(qp)->event[URXE_EVENT_TX_PACKETS], before = *sent;
	const uint32_t room = frame_room(dev);
	struct urxe_frame frames[STAGED_BURST];
	uint32_t n;

	for (uint32_t i = 0; i < max; i++)
		frames[i] = (struct urxe_frame){.data = bytes + i * room, .room = room};
	n = keep_foreign(dev, frames, urxe_output(dev->engine, dev->now, frames, max));
	for (uint32_t i = 0; i < n; i++)
		stage(dev, &frames[i]);
	return *sent > before;
}

void pv_frames_stage_up_to_ack(struct pvrdma *dev, struct urxe_qp *qp)
{
	/* Without access to memory nothing is built: a READ response would contain bytes of guest
	 * memory. */
	uint8_t *bytes = dev->no_master ? NULL : malloc(STAGED_BURST * (size_t)frame_room(dev));
	uint32_t rounds = bytes ? STAGED_ROUNDS : 0, max = 1;

	while (rounds-- && dev->n_staged < STAGED_MAX && urxe_qp_flush_acks(qp) &&
	       stage_burst(dev, qp, bytes, max))
		max = STAGED_BURST;
	free(bytes);
}

static void drop_first_staged(struct pvrdma *dev)
{
	struct pv_staged *staged = STAILQ_FIRST(&dev->staged);

	STAILQ_REMOVE_HEAD(&dev->staged, link);
	dev->n_staged--;
	dev->n_staged_long -= is_long(&staged->frame);
	free(staged);
}

void pv_frames_drop(struct pvrdma *dev)
{
	while (dev->n_staged)
		drop_first_staged(dev);
}

/* Moves up to max staged frames to the caller's buffers, and returns their number. Drops a frame
 * that exceeds its buffer, as the network may drop one. */
static uint32_t take_staged(struct pvrdma *dev, struct urxe_frame *frames, uint32_t max)
{
	uint32_t n = 0;

	for (; dev->n_staged && n < max; drop_first_staged(dev)) {
		const struct pv_staged *staged = STAILQ_FIRST(&dev->staged);
		struct urxe_frame *frame = &frames[n];

		uint8_t *data = frame->data;
		const uint32_t room = frame->room, bytes = urxe_frame_bytes(&staged->frame);

		if (bytes > room)
			continue;
		memcpy(data, staged->data, bytes);
		*frame = staged->frame;
		frame->data = data;
		frame->room = room;
		n++;
	}
	return n;
}

uint32_t pvrdma_output(struct pvrdma *dev, uint64_t now, struct urxe_frame *frames, uint32_t max)
{
	uint32_t n;

	pv_pass_time(dev, now);
	if (!pv_port_has_nic(dev))
		pv_frames_drop(dev);
	n = take_staged(dev, frames, max);
	if (dev->active && !dev->no_master && n < max)
		n += fill_frames(dev, frames + n, max - n);
	pv_count_n(dev, PVRDMA_TX_FRAMES, n);
	return n;
}
