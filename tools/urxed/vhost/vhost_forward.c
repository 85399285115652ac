/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/vhost/vhost_forward.h"

#include <poll.h>
#include <time.h>

#include <netdev/shm.h>
#include <netdev/vhost.h>

#include "common/clock.h"

#define BURST 64u

/* Time to the next look at a full ring, ns: the ring's reader does not tell when it makes room. */
#define RETRY_NS 50000
/* If a machine has taken no frame for this time, drops the frames that wait for the machine. */
#define STALL_NS (NS_PER_SEC / 10)
/* Time between two updates of the counters that urxed shows. */
#define COUNTERS_NS (NS_PER_SEC / 100)

struct vhost_forward {
	struct netdev *machine;
	struct netdev_shm_peer *daemon;
	int kick_fd;
	/* Packet buffers of the frames that urxed has not released yet, by position in the ring to
	 * urxed. */
	void *held[NETDEV_SHM_DEPTH];
	uint32_t sent, freed; /* frames sent to urxed; those of them whose buffers are free again */
	bool daemon_full;     /* the ring to urxed has no room */
	uint64_t full_since;  /* ns since when the machine refuses frames; 0 = it takes them */
	bool connected;
	uint64_t peers, no_peer; /* number of connections; frames dropped without a machine */
	uint64_t stalled;        /* frames dropped because the machine took none */
	bool moved;              /* frames have moved since the last update of the counters */
	uint64_t counters_at;    /* time of the next update, ns */
};

/* --- To urxed */

static void free_released(struct vhost_forward *f)
{
	uint32_t n = netdev_shm_released(f->daemon) - f->freed;

	while (n) {
		const uint32_t at = f->freed % NETDEV_SHM_DEPTH, whole = NETDEV_SHM_DEPTH - at;
		const uint32_t part = n < whole ? n : whole;

		netdev_vhost_free(&f->held[at], part);
		f->freed += part;
		n -= part;
	}
}

/* Receives frames from the machine and sends them to urxed. Returns whether there were any. The
 * frames already lie in the shared memory, so this process sends only their positions. */
static bool forward_to_daemon(struct vhost_forward *f, uint64_t now)
{
	struct netdev_frame frames[BURST];
	void *buffers[BURST];
	uint32_t room, n;

	free_released(f);
	/* Counts the free places of held[], not those of the ring: urxed may have released more
	 * frames since free_released. */
	room = NETDEV_SHM_DEPTH - (f->sent - f->freed);
	f->daemon_full = !room;
	n = room ? netdev_rx(f->machine, now, frames, room < BURST ? room : BURST) : 0;
	if (!n)
		return false;
	netdev_vhost_hold(f->machine, buffers);
	for (uint32_t i = 0; i < n; i++)
		f->held[f->sent++ % NETDEV_SHM_DEPTH] = buffers[i];
	netdev_shm_send(f->daemon, frames, n);
	return true;
}

/* --- To the machine */

/* Shows urxed whether a machine is connected, as the port's link state, and counts connections.
 * Returns whether a machine is connected. */
static bool update_link(struct vhost_forward *f)
{
	const bool connected = netdev_is_up(f->machine);

	f->peers += connected && !f->connected;
	f->connected = connected;
	netdev_shm_set_link(f->daemon, connected);
	return connected;
}

/* Call it when the machine refuses frames. Returns whether it has refused them for STALL_NS. */
static bool note_refusal(struct vhost_forward *f, uint64_t now)
{
	if (!f->full_since)
		f->full_since = now;
	return now - f->full_since >= STALL_NS;
}

static bool forward_to_machine(struct vhost_forward *f, uint64_t now)
{
	struct netdev_frame frames[BURST];
	uint32_t n = netdev_shm_receive(f->daemon, frames, BURST), sent;

	if (!n)
		return false;
	if (!update_link(f)) {
		f->no_peer += n;
		sent = n;
	} else {
		sent = netdev_tx(f->machine, now, frames, n);
		if (!sent && note_refusal(f, now)) {
			f->stalled += n;
			sent = n;
		}
	}
	netdev_shm_release(f->daemon, sent);
	if (sent)
		f->full_since = 0;
	return sent > 0;
}

/* --- The loop */

static void update_counters(struct vhost_forward *f, uint64_t now)
{
	uint64_t counters[NETDEV_COUNTER_COUNT];

	if (now < f->counters_at)
		return;
	update_link(f);
	netdev_counters(f->machine, counters);
	counters[NETDEV_PEERS] += f->peers;
	counters[NETDEV_TX_NO_PEER] += f->no_peer;
	/*
	 * Counts as errors only the frames that this process dropped because the machine took none:
	 * urxed's port has counted them as sent. Does not use the count of DPDK's driver: some
	 * versions count each refusal of a frame as an error, but this process sends refused frames
	 * again.
	 */
	counters[NETDEV_TX_ERRORS] = f->stalled;
	netdev_shm_set_counters(f->daemon, counters);
	f->moved = false;
	f->counters_at = now + COUNTERS_NS;
}

/* While the ring to urxed is full, this process does not read the machine's port, so it ignores the
 * port's deadline and event. */
static uint64_t sleep_deadline(const struct vhost_forward *f, uint64_t now)
{
	uint64_t next = f->daemon_full ? UINT64_MAX : netdev_next_deadline(f->machine);

	if ((f->daemon_full || f->full_since) && now + RETRY_NS < next)
		next = now + RETRY_NS;
	if (f->moved && f->counters_at < next)
		next = f->counters_at;
	return next;
}

/* Sleeps until urxed or the machine has frames, or a timer expires. Returns false if urxed has
 * ended. */
static bool sleep_until_work(struct vhost_forward *f, uint64_t now)
{
	const int machine_fd = f->daemon_full ? -1 : netdev_wait_fd(f->machine);
	struct pollfd fds[] = {{f->kick_fd, POLLIN, 0}, {machine_fd, POLLIN, 0}};
	uint64_t next = sleep_deadline(f, now), ns = next > now ? next - now : 0;
	const struct timespec ts = {(time_t)(ns / NS_PER_SEC), (long)(ns % NS_PER_SEC)};

	/* While urxed's frames wait for room in the machine's ring, further frames of urxed need
	 * not wake this process. */
	if (!f->full_since && netdev_shm_arm(f->daemon))
		return true;
	ppoll(fds, 2, next == UINT64_MAX ? NULL : &ts, NULL);
	/* Updates the counters at once when a machine connects or disconnects. */
	f->moved |= fds[1].revents != 0;
	return !fds[0].revents || netdev_shm_reset(f->daemon);
}

void vhost_forward_run(struct netdev *machine, struct netdev_shm_peer *daemon, int kick_fd)
{
	static struct vhost_forward f;
	bool moved, running = true;
	uint64_t now;

	f = (struct vhost_forward){.machine = machine, .daemon = daemon, .kick_fd = kick_fd};
	/* After this call the port arms its interrupt whenever it has no frames. */
	netdev_wait_fd(machine);
	while (running) {
		now = now_ns();
		moved = forward_to_daemon(&f, now);
		moved |= forward_to_machine(&f, now);
		f.moved |= moved;
		update_counters(&f, now);
		if (!moved)
			running = sleep_until_work(&f, now);
	}
}
