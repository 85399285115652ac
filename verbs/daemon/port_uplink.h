/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens, replaces and closes the port's packet sockets on the direct uplink, one for each
 * interface. Callers hold port.lock.
 */
#ifndef URXE_VERBS_DAEMON_PORT_UPLINK_H
#define URXE_VERBS_DAEMON_PORT_UPLINK_H

#include <stdbool.h>

/* The daemon's uplink is another one than that of the port's packet sockets, or none. */
bool port_uplink_stale(void);
/*
 * Asks the daemon for packet sockets on its uplink, and replaces the port's. Blocks, and releases
 * the lock meanwhile. In the engine thread, or before it starts.
 */
void port_renew_uplink(void);
/* The port has leased QPNs: the packet sockets receive their packets, too. */
void port_accept_uplink(void);
void port_close_uplink(void);

#endif
