/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Derives the paths of frames between connected queue pairs from the report, for cmd_show.c. */
#ifndef URXE_URXE_SHOW_REPORT_PATHS_H
#define URXE_URXE_SHOW_REPORT_PATHS_H

#include <jansson.h>

/*
 * Adds to each of the report's qps
 *
 *   path         null if the queue pair is not connected, unless an HCA executes it
 *   sends_by, receives_by
 *                for the path "direct-uplink", names of uplinks: the uplink by which the queue
 *                pair sends now, and the uplink whose socket received the last packet. null:
 *                another path, not known, or no socket has received a packet. Both replace the
 *                numbers of sockets (verbs/session/state_document.h)
 *
 * and adds
 *
 *   transports  [{process, pid, peer, peer_pid, path, why, qps, memory}]
 *     path      "direct": from the sender's thread into the receiver's inbox; "switch": through
 *               urxed; "uplink": to another host, through urxed; "direct-uplink": to another
 *               host, by the process's own packet socket; "hca": by the HCA, which executes the
 *               queue pair
 *     peer      "PROGRAM-PID"; or the peer's address, and peer_pid is null, if the peer is on
 *               another host or in no known process
 *     qps       number of queue pairs of the process with that peer and path
 *     memory    number of these queue pairs whose WRITEs and READs are copied between memories
 */
void report_paths_add(json_t *report);

#endif
