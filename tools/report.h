/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What urxed knows, as one JSON document:
 *
 *   host      {device, version, pid, uptime_s, run_dir, netns, private, mac, mtu, interface,
 *              gids: [{index, gid, type, vlan}], pkeys: [n], clients}
 *     type        "rocev2" or "rocev1"; vlan is 0 where there is none
 *     clients     connections, also of programs that have not opened the device
 *   ports     [{port, kind, pid, state, mtu, counters: {name: n}}]
 *     kind        "process" or "uplink"
 *     port        "process PID" or the uplink's SPEC
 *     pid         of a process, else null
 *     state       "down", "active" or "broken" (vnic/device.h); an uplink is "active"
 *     counters    names of vnic/device.h or netdev/netdev.h; all of them
 *   leases    [{qpn_first, qpn_count, pid, uid, program}]
 *   counters  [{of, name, value, meaning}]
 *     of          "switch": frames that it dropped; "vnic": of all processes' NICs since the
 *                 daemon started
 */
#ifndef URXE_TOOLS_REPORT_H
#define URXE_TOOLS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"

struct report {
	const char *run_dir;
	bool private;
	uint64_t uptime_ns;
	const struct clients *clients; /* and through them host and switch */
};

/* A snapshot (snapshot.h) of the document; a descriptor or a negative errno value. */
int report_make(const struct report *r);

#endif
