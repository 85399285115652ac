/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reconnection: the time from a daemon's end to the start of the next one.
 *
 * The process looks for another daemon in the same run directory for URXE_RECONNECT_S seconds
 * (default 5), and claims its lease from it. Meanwhile its queue pairs stay as they are, and the
 * program can post requests. Frames in flight at the daemon are lost, as on a cable. Requests to
 * the daemon wait (requests/daemon_requests.h).
 *
 * Without a direct uplink, the engine's time stands still, and no frame is sent or received. With
 * one, the engine goes on: frames pass to other hosts and to inboxes, and frames for the switch are
 * lost.
 *
 * When the time is over, or the next daemon refuses the lease, has another MAC or MTU for this
 * host, or is of another version, the device dies: programs get IBV_EVENT_DEVICE_FATAL, and all
 * outstanding requests end in errors.
 *
 * Functions need the lock of the adapter, unless their comment says otherwise.
 */
#ifndef URXE_VERBS_DAEMON_RECONNECT_H
#define URXE_VERBS_DAEMON_RECONNECT_H

/*
 * Call it when the daemon has ended: begins the reconnection. If instead the NIC has broken its
 * protocol (vnic_driver_broken), the device dies at once. Any thread.
 */
void adapter_disconnected(void);
/*
 * Tries at most once to attach to another daemon, and does nothing within RECONNECT_INTERVAL_NS / 2
 * (process/run_dir.h) after the last attempt. Success, a final error or the end of the time ends
 * the reconnection (adapter.reconnecting). Releases adapter.lock during the attempt. In the engine
 * thread.
 */
void reconnect_try(void);

#endif
