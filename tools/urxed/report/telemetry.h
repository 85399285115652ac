/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What urxed tells on DPDK's telemetry socket (dpdk-telemetry.py -f PREFIX), from its report:
 *
 *   /urxe/host         name and addresses are left to urxe show: pid, uptime_s, mtu, clients, ...
 *   /urxe/ports        the numbers of the switch's ports
 *   /urxe/port,N       one port: name, kind, state, and its counters, drop_NAME and device_NAME
 *   /urxe/counters     sums: switch_NAME, drop_NAME, vnic_NAME
 *   /urxe/leases       the first queue pair number of each lease
 *   /urxe/lease,QPN    one lease: port, process, pid, uid, qpn_first, qpn_count
 */
#ifndef URXE_URXED_REPORT_TELEMETRY_H
#define URXE_URXED_REPORT_TELEMETRY_H

#define TELEMETRY_DIR "dpdk" /* in the run directory: DPDK's own files, its socket among them */

/*
 * Has DPDK keep its files below run_dir, where the path of its socket fits; before it is started.
 * Removes what a daemon before has left there.
 */
void telemetry_prepare(const char *run_dir);
/* Registers the commands, once the control socket listens. 0 or a negative errno value. */
int telemetry_start(void);

#endif
