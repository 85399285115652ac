/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens, replaces and closes the adapter's packet sockets on the direct uplink, one for each
 * interface. Callers hold adapter.lock.
 */
#ifndef URXE_VERBS_DAEMON_ADAPTER_UPLINK_H
#define URXE_VERBS_DAEMON_ADAPTER_UPLINK_H

#include <stdbool.h>

/* Whether the adapter's packet sockets are not on the daemon's present uplink. */
bool adapter_uplink_stale(void);
/*
 * Asks the daemon for packet sockets on its uplink, and replaces the adapter's. Blocks, and
 * releases the lock meanwhile. In the engine thread, or before it starts.
 */
void adapter_renew_uplink(void);
/* The adapter has leased QPNs: the packet sockets receive their packets, too. */
void adapter_accept_uplink(void);
void adapter_close_uplink(void);

#endif
