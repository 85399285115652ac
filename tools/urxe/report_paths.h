/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which way the frames of connected queue pairs go, from what the daemon and the processes tell. */
#ifndef URXE_URXE_REPORT_PATHS_H
#define URXE_URXE_REPORT_PATHS_H

#include <jansson.h>

/*
 * Gives each element of the report's qps a `path`, null where it has no peer, and adds
 *
 *   transports  [{process, pid, peer, peer_pid, path, why, qps, memory}]
 *     path      "direct": from the sender's thread into the receiver's ring; "switch": by way
 *               of urxed; "uplink": to another host
 *     peer      "PROGRAM-PID", or the address of another host; peer_pid is null there
 *     qps       how many queue pairs of the process have that peer and go that way
 *     memory    of how many of them WRITEs and READs go from memory to memory
 */
void report_paths_add(json_t *report);

#endif
