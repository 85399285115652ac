/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What urxed knows, as one JSON document:
 *
 *   host      {device, version, pid, uptime_s, run_dir, netns, private, mac, mtu, up, interface,
 *              gids: [{index, gid, type, vlan}], pkeys: [n], clients, captures}
 *     type        "rocev2" or "rocev1"; vlan is 0 where there is none
 *     clients     connections, also of programs that have not opened the device
 *   ports     [{number, name, kind, pid, state, page_size, counters: {name: n},
 *              drops: {name: n}, device}]
 *     kind        "urxed", "uplink", "vm" or "process" (switch_port.h); pid is null but for a
 *                 process
 *     page_size   in bytes, of the memory that packet buffers lie in; null where there are none
 *     state       "down", "active" or "broken" (vnic/device.h)
 *     counters    and drops, as the switch counts them: names of switch_port.h
 *     device      {name: n}, as the device counts itself: names of vnic/device.h or
 *                 netdev/netdev.h; null for urxed
 *   leases    [{qpn_first, qpn_count, port, process, pid, uid, asked}], one for each block
 *     port           its number; a process with several blocks has one
 *     process     the port's name
 *     asked       whether the process was asked what it has
 *   ids       [{process, pid, id, space, type, state, cm, src, dst, qpn, peer_qpn, events}], those
 * of rdma_cm id          as the program knows it space       "TCP", "UDP", "IB" or "IPOIB": of
 * ports type        "RC", "UC" or "UD" state       "idle", "bound", "listen", "address asked",
 * "address resolved", "route resolved", "connect" or "disconnect" cm          state of the
 * connection, or of the question for a service, as IBA volume 1, chapter 12 names it; null: there
 * is none src, dst    address and port; null: none yet events      that the program has not fetched
 * yet counters  [{of, name, value, meaning}], sums since the daemon started of          "switch",
 * "drop": frames that the switch dropped, "vnic": of all processes' NICs, "cm": the connection
 * manager's messages, "gsi": those that QP1 dropped
 */
#ifndef URXE_URXED_REPORT_REPORT_H
#define URXE_URXED_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/cm/rdmacm.h"
#include "urxed/session/session.h"

struct report {
	const char *run_dir;
	bool private;
	uint64_t uptime_ns;
	uint32_t captures;               /* that run */
	const struct sessions *sessions; /* and through them host and switch */
	const struct rdmacm *rdmacm;
};

/* A snapshot (snapshot.h) of the document; a descriptor or a negative errno value. */
int report_make(const struct report *r);

#endif
