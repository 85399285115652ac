/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * urxed's commands on DPDK's telemetry socket (dpdk-telemetry.py -f PREFIX), filled from the report
 * (report.h):
 *
 *   /urxe/host         pid, uptime_s, mtu, clients, ... (GIDs and P_Keys: see urxe show)
 *   /urxe/ports,N      the numbers of at most 256 ports of the switch, without the first N
 *   /urxe/port,N       one port: name, kind, state, and its counters, drop_NAME and device_NAME
 *   /urxe/counters     the rows of `counters`, as OF_NAME: switch_NAME, drop_NAME, ...
 *   /urxe/leases,N     the first QPNs of at most 256 leases, without the first N leases
 *   /urxe/lease,QPN    one lease: port, process, pid, uid, qpn_first, qpn_count, ...
 */
#ifndef URXE_URXED_REPORT_TELEMETRY_H
#define URXE_URXED_REPORT_TELEMETRY_H

#define TELEMETRY_DIR "dpdk" /* in the run directory: DPDK's own files and its socket */

/* Makes DPDK keep its files in run_dir, unless the path of its socket would be too long. Removes
 * the files of an earlier daemon. Call it before DPDK's start. */
void telemetry_prepare(const char *run_dir);
/*
 * Registers the commands; the control socket must listen. Returns 0 or a negative errno value.
 */
int telemetry_start(void);

#endif
