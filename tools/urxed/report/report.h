/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon's state as one JSON document, for the control socket. monitor.c calls this. Keys:
 *
 * host      {device, version, pid, uptime_s, run_dir, netns, pidns, private, mac, mtu, up,
 *            interface, gids: [{index, gid, type, vlan}], pkeys: [n], clients, captures}
 *           - type: "rocev2" or "rocev1"
 *           - vlan: 0 = none
 *           - clients: connections of processes, also of those that have no vNIC yet
 * ports     [{number, name, kind, pid, state, failovers, page_size, counters: {name: n},
 *             drops: {name: n}, device}]
 *           - kind: "urxed", "uplink", "vm" or "process" (switch/switch_port.h)
 *           - pid: null unless the kind is "process"
 *           - page_size: bytes a page of the memory with the packet buffers; null: no buffers
 *           - state: "down", "active" or "broken" (vnic/device.h); for a bond's uplink also its
 *             state in the bond (bond/bond.h)
 *           - failovers: how often other uplinks of the bond took over from this one; null: no bond
 *           - counters, drops: the switch's counters (switch/switch_port.h)
 *           - device: {name: n}, the counters of vnic/device.h or netdev/netdev.h; null for urxed,
 *             and for a port without a vNIC or an open uplink
 * hca       [{device, port, kind, driver, firmware, state, mtu, speed_gbps, interface, uplink,
 *             roce, used, reason}], the ports of the host's RDMA devices
 *           - kind: "RoCE", "InfiniBand", "iWARP" or "other"
 *           - state: "active", "down" or "unknown"
 *           - mtu: largest path MTU, bytes
 *           - interface: that of the port's first GID
 *           - uplink: interface of the uplink whose frames leave by the port's interface
 *           - roce: "v1", "v2" or "v1, v2"
 *           - used: the port backs the device; reason: why it does not
 *           - a value is null if it is unknown or there is none
 * leases    [{qpn_first, qpn_count, added_qpns, port, process, pid, uid, mac, asked,
 *             direct_uplinks}], one row a block of QPNs
 *           - added_qpns: number of QPNs that the process has told the daemon itself
 *             (VNIC_ATTACH_QPN_ADD), most of them chosen by an HCA; the same for all of its blocks
 *           - port: number of the process' port, the same for all of its blocks
 *           - process: name of that port
 *           - mac: source MAC of the process' packets: the host's, or its virtual machine's
 *           - asked: the daemon has asked the process for its state
 *           - direct_uplinks: names of the ports on whose interfaces the process has sockets, in
 *             their order
 * ids       [{process, pid, id, space, type, state, cm, src, dst, qpn, peer_qpn, events}], rdma_cm
 *           - id: the number by which the program names the ID
 *           - space: port space, "TCP", "UDP", "IB" or "IPOIB"
 *           - type: "RC", "UC" or "UD"
 *           - state: "idle", "bound", "listen", "address query", "address resolved",
 *             "route resolved", "connect" or "disconnect", as Linux' enum rdma_cm_state names
 *             them; "address query": the resolution of dst's address has not ended
 *           - cm: state of the connection or SIDR exchange (IBA volume 1, chapter 12); null: none
 *           - src, dst: address and port; null: none
 *           - events: number of events that the program has not fetched
 * counters  [{of, name, value, meaning}], sums since the daemon started
 *           - of: "switch"; "drop": frames that the switch dropped; "vnic": sums of all processes'
 *             vNICs; "cm": messages of the connection manager; "gsi": MADs that QP1 dropped;
 *             "neigh": address resolution; "bond": failovers of bonds; "daemon": connections that
 *             the daemon ended
 */
#ifndef URXE_URXED_REPORT_REPORT_H
#define URXE_URXED_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/cm/rdmacm.h"
#include "urxed/hca/hca_monitor.h"
#include "urxed/session/session.h"

struct report {
	const char *run_dir;
	bool private;
	uint64_t uptime_ns;
	uint32_t captures;               /* number of running captures */
	const struct sessions *sessions; /* these have pointers to host and switch */
	const struct rdmacm *rdmacm;
	const struct hca_monitor *hca;
};

/* Returns a memfd with the document (sealed_text.h), or a negative errno value. */
int report_make(const struct report *r);

#endif
