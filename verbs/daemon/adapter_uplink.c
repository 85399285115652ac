/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/adapter_uplink.h"

#include <errno.h>
#include <string.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "poll/polling.h"
#include "poll/receiving_member.h"
#include "process/log.h"
#include "process/run_dir.h"

/* Longest pause between two attempts to get packet sockets from the daemon, ns. Each attempt costs
 * the daemon time. */
#define RETRY_MAX_NS (60 * UINT64_C(1000000000))

/*
 * Time from one check whether a receive ring of the direct uplink has stopped to the next, ns.
 * BUSY: frames come, the program polls, or the engine waits for answers. It is less than the time
 * of all retries of a requester (8 timeouts of 67 ms). QUIET: the process is idle.
 */
#define LOOK_BUSY_NS  (100 * UINT64_C(1000000))
#define LOOK_QUIET_NS (1000 * UINT64_C(1000000))

/* If a ring stops within this time, in ns, after the pause for the last stop, the process pauses
 * the direct uplink, for a longer time after each such stop. */
#define STOP_AGAIN_NS (10 * UINT64_C(1000000000))

static int accept_leased_qpns(const struct packet_group *uplink)
{
	uint16_t blocks[VNIC_LEASES_MAX];

	for (uint32_t i = 0; i < adapter.leases.n; i++)
		blocks[i] =
			(uint16_t)(adapter.leases.blocks[i]->qpn_first >> PACKET_PORT_QPN_SHIFT);
	return packet_group_accept(uplink, blocks, adapter.leases.n);
}

void adapter_accept_uplink(void)
{
	int rc = adapter.uplink ? accept_leased_qpns(adapter.uplink) : 0;

	if (rc)
		log_error("cannot set the filter of the direct uplink: %s", strerror(-rc));
}

void adapter_count_missed(void)
{
	if (adapter.uplink)
		tx_count(&adapter.tx, VNIC_BYPASS_UPLINK_MISSED,
			 packet_group_read_drops(adapter.uplink));
}

/* Replaces the packet sockets of the adapter by `uplink`; NULL: by none. The old sockets stop
 * before the new ones start, so that no frame comes twice. Frames that arrive in between are lost;
 * those in the old rings go to the engine. */
static void replace_uplink(struct packet_group *uplink)
{
	struct packet_group *old = adapter.uplink;

	if (old) {
		tx_send_ack(&adapter.tx);
		packet_group_accept(old, NULL, 0);
		engine_receive_uplink(clock_now());
		adapter_count_missed();
	}
	adapter.uplink = uplink;
	adapter.uplink_look_at = uplink ? clock_now() + LOOK_BUSY_NS : 0;
	receiving_member_forget();
	adapter_accept_uplink();
	packet_group_close(old);
	if (uplink && adapter_polling.irq_on && packet_group_irq_unmask(uplink))
		engine_wake();
}

static int open_uplink(struct vnic_driver *nic, struct packet_group **uplink)
{
	struct vnic_attach_uplink answer;
	int fds[VNIC_UPLINK_SOCKETS], n = vnic_driver_uplink(nic, &answer, fds);
	const struct packet_port_ring ring = {answer.frame_size, answer.blocks};

	return n < 0 ? n : packet_group_open(fds, (uint32_t)n, &ring, uplink);
}

/* Whether the error says that the connection to the daemon has ended: the daemon has closed it, or
 * this process has, because an answer did not come in time. */
static bool is_connection_lost(int rc)
{
	return rc == -ECONNRESET || rc == -EPIPE || rc == -ETIMEDOUT;
}

/* Does open_uplink() without adapter.lock, because the kernel takes up to 100 ms for a ring.
 * Meanwhile frames leave by the switch: an old socket's interface may carry no frames any more,
 * such as a former member of a bond. 0 or a negative errno value. */
static int open_uplink_unlocked(struct packet_group **uplink)
{
	struct vnic_driver *nic = adapter.nic;
	int rc;

	tx_pause_uplink(&adapter.tx, true);
	adapter_unlock();
	rc = open_uplink(nic, uplink);
	adapter_claim();
	tx_pause_uplink(&adapter.tx, false);
	return rc;
}

/* Whether the error is a lack of descriptors or memory, of which there may be enough later. */
static bool is_temporary(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOBUFS;
}

/* Sets the time of the next attempt (adapter.uplink_retry_at). *pause: ns of the last pause, which
 * this function doubles; 0: there was none, so the next pause is short. */
static void retry_later(uint64_t *pause)
{
	const uint64_t longer = 2 * *pause;

	*pause = longer < RETRY_MAX_NS ? longer : RETRY_MAX_NS;
	if (!longer)
		*pause = RECONNECT_INTERVAL_NS;
	adapter.uplink_retry_at = clock_now() + *pause;
}

static void note_failure(int rc)
{
	/* Repeated attempts are not logged. */
	if (rc && !adapter.uplink_retry_ns)
		log_info("frames to other hosts go by the switch: %s", strerror(-rc));
	if (is_temporary(rc))
		retry_later(&adapter.uplink_retry_ns);
	else
		adapter.uplink_retry_ns = 0;
}

/* Tells the daemon, with a negative errno value, that the process has closed its sockets, so that
 * the switch delivers all packets. Releases adapter.lock meanwhile. */
static void report_closed(int reason)
{
	struct vnic_driver *nic = adapter.nic;

	adapter_unlock();
	vnic_driver_decline_uplink(nic, reason);
	adapter_claim();
}

/* Notes the time of a stop of a receive ring. True: the stop before was not long ago. */
static bool note_stop(uint64_t now)
{
	const uint64_t last = adapter.uplink_stopped_at;

	adapter.uplink_stopped_at = now;
	if (!last)
		log_warning("a packet of another station has stopped the ring of the direct "
			    "uplink, which lost frames");
	if (last && now - last < adapter.uplink_stop_ns + STOP_AGAIN_NS)
		return true;
	adapter.uplink_stop_ns = 0;
	return false;
}

/* Closes the direct uplink for a while, so that frames come by the switch: each new ring costs the
 * daemon time, and the ring of the switch's own socket does not stop. */
static void pause_uplink(void)
{
	replace_uplink(NULL);
	retry_later(&adapter.uplink_stop_ns);
	report_closed(-EAGAIN);
}

void adapter_renew_uplink(void)
{
	const bool had_uplink = adapter.uplink;
	struct packet_group *uplink = NULL;
	const uint32_t generation = adapter.welcome.port.uplink_generation;
	int rc;

	adapter.uplink_generation = generation;
	adapter.uplink_inherited = false;
	adapter.uplink_retry_at = 0;
	if (adapter.uplink_stopped) {
		adapter.uplink_stopped = false;
		if (note_stop(clock_now())) {
			pause_uplink();
			return;
		}
	}
	rc = generation ? open_uplink_unlocked(&uplink) : 0;
	/* The process uses the old sockets until it asks the next daemon. */
	if (is_connection_lost(rc))
		return;
	note_failure(rc);
	replace_uplink(uplink);
	/* Reports also sockets that the daemon has sent and this process could not take or use. */
	if (!uplink && (had_uplink || rc))
		report_closed(rc ? rc : -ENODEV);
}

/* Returns the time of the next check. A program that polls counts as busy: it may send requests at
 * any time, and the engine thread, which makes the check, does not run the engine meanwhile. */
static uint64_t next_look(uint64_t now)
{
	const bool busy = now - adapter_polling.heard_at < LOOK_QUIET_NS ||
			  adapter_polling.state == POLL_PROGRAM || engine_deadline() != URXE_NEVER;

	return now + (busy ? LOOK_BUSY_NS : LOOK_QUIET_NS);
}

/* Call it when a ring has stopped or was only full. True: the ring has to be replaced, and the time
 * of that is noted: at most once in STOP_AGAIN_NS, because each new ring costs the daemon time.
 * Later drops show whether the ring has stopped. */
static bool note_suspect(uint64_t now)
{
	const uint64_t last = adapter.uplink_suspect_at;

	if (last && now - last < STOP_AGAIN_NS)
		return false;
	adapter.uplink_suspect_at = now;
	return true;
}

/* Checks the receive rings if it is time for that, and sets the time of the next check. True: a
 * packet of another station has stopped a ring, or may have stopped it, so that the ring has to be
 * replaced. */
static bool check_rings(uint64_t now)
{
	enum packet_ring_state state;
	uint64_t next;

	if (!adapter.uplink_look_at)
		return false;
	next = next_look(now);
	if (adapter.uplink_look_at > now) {
		/* The process may have become busy since the last check. */
		if (adapter.uplink_look_at > next)
			adapter.uplink_look_at = next;
		return false;
	}
	adapter.uplink_look_at = next;
	state = packet_group_ring_state(adapter.uplink);
	adapter.uplink_stopped = state == PACKET_RING_STOPPED;
	return adapter.uplink_stopped || (state == PACKET_RING_SUSPECT && note_suspect(now));
}

bool adapter_uplink_stale(void)
{
	const uint64_t now = clock_now();

	return adapter.uplink_inherited ||
	       adapter.uplink_generation != adapter.welcome.port.uplink_generation ||
	       (adapter.uplink_retry_at && adapter.uplink_retry_at <= now) || check_rings(now);
}

void adapter_close_uplink(void)
{
	packet_group_close(adapter.uplink);
	adapter.uplink = NULL;
	adapter.uplink_generation = 0;
	adapter.uplink_inherited = false;
	adapter.uplink_retry_at = adapter.uplink_retry_ns = adapter.uplink_look_at = 0;
	adapter.uplink_stopped_at = adapter.uplink_stop_ns = adapter.uplink_suspect_at = 0;
	adapter.uplink_stopped = false;
}
