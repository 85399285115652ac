/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/frames.h"

#include <errno.h>

#include "common/clock.h"

#define BURST STATION_LINK_BURST
/* How long frames wait for the driver's receive buffers; urxed drops what waits longer. */
#define BLOCKED_NS (10 * NS_PER_MS)

/* --- From the guest */

static bool send_queue(struct frames *f, uint32_t queue)
{
	struct vnic_tx_frame frames[BURST];
	uint32_t room = station_link_room(f->link), n;

	n = vnic_device_tx(f->nic->dev, queue, frames, room < BURST ? room : BURST);
	for (uint32_t i = 0; i < n; i++)
		station_link_send(f->link, frames[i].data, frames[i].len);
	vnic_device_tx_done(f->nic->dev, queue, n);
	return n;
}

static bool send_frames(struct frames *f)
{
	bool moved = false;

	for (uint32_t i = 0; i < vnic_device_tx_queues(f->nic->dev); i++)
		moved |= send_queue(f, i);
	station_link_flush(f->link);
	return moved;
}

/* --- To the guest */

/* Returns whether the frame is done with: false, it waits for a receive buffer. */
static bool deliver(struct frames *f, uint64_t now, const struct netdev_frame *frame)
{
	if (vnic_device_rx(f->nic->dev, 0, frame->data, frame->len) != -ENOBUFS) {
		f->blocked_since = 0;
		return true;
	}
	if (!f->blocked_since)
		f->blocked_since = now;
	if (now - f->blocked_since < BLOCKED_NS)
		return false;
	f->dropped++;
	return true;
}

static bool receive_frames(struct frames *f, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t n = station_link_receive(f->link, frames, BURST), done = 0;

	while (done < n && deliver(f, now, &frames[done]))
		done++;
	station_link_release(f->link, done);
	return done;
}

bool frames_run(struct frames *f, uint64_t now)
{
	bool moved = send_frames(f);

	moved |= receive_frames(f, now);
	vnic_device_flush(f->nic->dev);
	return moved;
}

uint64_t frames_deadline(const struct frames *f)
{
	return f->blocked_since ? f->blocked_since + BLOCKED_NS : UINT64_MAX;
}

bool frames_arm(struct frames *f)
{
	/* A driver that posts buffers writes to a register, which is an event. */
	return !f->blocked_since && station_link_arm(f->link);
}
