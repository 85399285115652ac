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
 * When the time is over, or the daemon refuses the lease, the device dies.
 *
 * Functions need the lock of the adapter, unless their comment says otherwise.
 */
#ifndef URXE_VERBS_DAEMON_RECONNECT_H
#define URXE_VERBS_DAEMON_RECONNECT_H

#include <stdint.h>

/* Nanoseconds until the process gives up. adapter.lock may be held or not. */
uint64_t reconnect_timeout(void);
/* The daemon has ended, or the NIC cannot be trusted. Any thread. */
void adapter_disconnected(void);
/* Tries once to attach to another daemon; the lock is free meanwhile. In the engine thread. */
void reconnect_try(void);
/*
 * Declares the device dead: each context gets the event, and outstanding requests complete in
 * error. `reason` is for the log.
 */
void adapter_fail(const char *reason);

#endif
