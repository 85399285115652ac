/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/bond/bond_host.h"

#include <string.h>

#include "common/clock.h"
#include "urxed/bond/bond_probe.h"
#include "urxed/kernel/frame_count.h"
#include "urxed/switch/forward.h"

/*
 * The bond counts as busy if within BUSY_NS its members carried this number of frames that the
 * switch did not. An idle kernel sends and receives fewer, so they may be frames of processes'
 * packet sockets.
 */
#define BUSY_FRAMES 64
#define BUSY_NS     NS_PER_SEC

/* Interval of reads of the kernel's counts, short enough that at least one read falls into each
 * round of probes. */
#define COUNT_NS (BOND_ROUND_NS / 2)

/*
 * Lists the stations to probe: first the receiver of a unicast RoCE frame that left by the bond
 * lately (bond_filter_note_sent), then the neighbours that the host used last. Returns their
 * number.
 */
static uint32_t list_targets(const struct vswitch *sw, struct bond_target *list)
{
	uint32_t n = 0;

	if (sw->bond_target_at && bond_target_is_on_link(sw->host, &sw->bond_target))
		list[n++] = sw->bond_target;
	return n + bond_targets_list(sw->neigh, list + n, BOND_TARGETS - n);
}

static bool send_probes(void *ctx, uint32_t uplink)
{
	struct vswitch *sw = ctx;
	struct bond_target list[BOND_TARGETS];
	uint32_t n = list_targets(sw, list);
	uint8_t frame[NEIGH_FRAME_ROOM];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = bond_probe_build(frame, &list[i], sw->uplinks[uplink].probe_mac);

		switch_send_by(sw, uplink, frame, len);
	}
	return n;
}

static void announce_addresses(void *ctx, uint32_t uplink)
{
	struct vswitch *sw = ctx;
	const struct host_address *a = sw->host->addresses;
	uint8_t frame[NEIGH_FRAME_ROOM];

	for (; a < sw->host->addresses + HOST_ADDRESSES; a++)
		if (a->valid && a->uplink == (int)sw->bond.port)
			switch_send_by(sw, uplink, frame,
				       bond_announcement_build(frame, a, sw->host->mac));
}

static const struct bond_ops ops = {send_probes, announce_addresses};

static bool has_link(const struct uplink *u)
{
	return u->up && u->port && netdev_is_up(u->port);
}

void bond_host_start(struct vswitch *sw, uint64_t now, enum bond_mode mode)
{
	const char *names[SWITCH_UPLINKS] = {NULL};
	bool links[SWITCH_UPLINKS] = {false};

	if (mode == BOND_NONE)
		return;
	for (uint32_t i = 0; i < sw->n_uplinks; i++) {
		names[i] = sw->uplinks[i].spec;
		links[i] = has_link(&sw->uplinks[i]);
	}
	bond_init(&sw->bond, now, mode, sw->wire_mask, names, links, &ops, sw);
	/* The switch forwards to the bond as to a single port, that of its first member. */
	sw->neigh->bond_mask = sw->wire_mask;
	sw->wire_mask = 1u << sw->bond.port;
}

uint64_t bond_host_tick(struct vswitch *sw, uint64_t now)
{
	for (uint32_t i = 0; i < sw->n_uplinks; i++)
		if (bond_has(&sw->bond, i))
			bond_set_link(&sw->bond, now, i, has_link(&sw->uplinks[i]));
	return bond_tick(&sw->bond, now);
}

/*
 * Tells the bond if the member's interface has received frames since the last call. Returns the
 * number of frames, sent and received, that the kernel has counted on the interface and the switch
 * has not: those of the kernel itself and of processes' packet sockets. The bond's probes and their
 * answers pass the switch, so they are not in the result.
 */
static uint64_t count_member_frames(struct vswitch *sw, uint64_t now, uint32_t uplink)
{
	const struct frame_count count = frame_count_read(sw->uplinks[uplink].ifname);
	const uint64_t *of_switch = sw->uplink_ports[uplink].stats.counters;

	if (count.received != sw->bond_received[uplink])
		bond_note_heard(&sw->bond, now, uplink);
	sw->bond_received[uplink] = count.received;
	return count.received + count.sent - of_switch[SWITCH_IN_FRAMES] -
	       of_switch[SWITCH_OUT_FRAMES];
}

/*
 * Compares with a sign, because after a change of carriers the sum may be lower than the last one.
 */
void bond_host_count_frames(struct vswitch *sw, uint64_t now)
{
	uint64_t frames = 0;

	if (sw->bond.mode == BOND_NONE || now - sw->bond_counted_at < COUNT_NS)
		return;
	sw->bond_counted_at = now;
	for (uint32_t i = 0; i < sw->n_uplinks; i++)
		if (bond_has(&sw->bond, i) && bond_carries(&sw->bond, i))
			frames += count_member_frames(sw, now, i);
	if ((int64_t)(frames - sw->bond_frames) >= BUSY_FRAMES)
		bond_note_sent(&sw->bond, now);
	else if (now - sw->bond_frames_at < BUSY_NS)
		return;
	sw->bond_frames = frames;
	sw->bond_frames_at = now;
}

void bond_host_answer(struct vswitch *sw, uint32_t uplink, const uint8_t *frame, uint32_t len)
{
	uint8_t copy[NEIGH_FRAME_ROOM];

	memcpy(copy, frame, len);
	if (!bond_carries(&sw->bond, uplink))
		memcpy(copy + ETHER_MAC_LEN, sw->uplinks[uplink].probe_mac, ETHER_MAC_LEN);
	switch_send_by(sw, uplink, copy, len);
}
