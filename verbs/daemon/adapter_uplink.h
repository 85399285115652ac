/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens, replaces and closes the adapter's packet sockets on the direct uplink, one for each
 * interface. Callers hold adapter.lock.
 */
#ifndef URXE_VERBS_DAEMON_ADAPTER_UPLINK_H
#define URXE_VERBS_DAEMON_ADAPTER_UPLINK_H

#include <stdbool.h>

/*
 * Whether the adapter has to ask for packet sockets again: the daemon's uplink has changed, an
 * earlier daemon opened the present ones, it is time for another attempt, or a receive ring has or
 * may have stopped. Checks the rings each 100 ms; each second if no frames come, the program does
 * not poll, and the engine waits for nothing.
 */
bool adapter_uplink_stale(void);
/*
 * Asks the daemon for packet sockets on its uplink, and replaces those of the adapter. If the
 * daemon ends meanwhile, the old ones stay. After another error there are none; if descriptors or
 * memory were lacking, the next attempt comes after 20 ms, then after twice as long each time, up
 * to 1 min. The same pauses follow if a receive ring stops again within 10 s. Releases
 * adapter.lock for the request and the rings. In the engine thread, or before that thread starts.
 */
void adapter_renew_uplink(void);
/* Call it when the process has leased another block of QPNs: the packet sockets receive packets to
 * all leased QPNs from now on. No direct uplink: no effect. */
void adapter_accept_uplink(void);
/*
 * Adds the frames that the receive rings have lost since the last call to the counter
 * uplink_missed. adapter_renew_uplink does so before it closes the old sockets.
 */
void adapter_count_missed(void);
/* Closes the packet sockets; the adapter has no direct uplink then. */
void adapter_close_uplink(void);

#endif
