/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Monitors the RDMA devices of sysfs, and chooses the HCA that backs urxe0 (hca_select.h).
 * daemon_start.c and daemon_run.c run it, and others ask it for the chosen port.
 *
 * The kernel sends a uevent for each RDMA device that comes or goes: host_ibdevs.c receives it, and
 * daemon_run.c calls hca_monitor_report. The state of a RoCE port and its GIDs follow the port's
 * network interface, whose changes rtnetlink reports. After a report hca_monitor.c scans sysfs
 * twice, 50 ms later and a second after that, because drivers update sysfs after the report.
 * Before the first RDMA device exists, hca_monitor.c has neither socket nor timer, unless --hca
 * names a device.
 *
 * A daemon within another urxed's `urxe run` sees that urxed's tree instead of sysfs. No uevents
 * report changes of the tree, so hca_monitor.c scans it twice a second. It scans as often while a
 * device that --hca names does not exist.
 */
#ifndef URXE_URXED_HCA_HCA_MONITOR_H
#define URXE_URXED_HCA_HCA_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/hca/hca_select.h"
#include "urxed/hostnet/host.h"
#include "urxed/kernel/netlink.h"

/* Time from a report to the first scan. It collects the reports of one change, which come in
 * bursts. */
#define HCA_SCAN_NS 50000000ull
/* Time from the first scan after a report to the second one. */
#define HCA_SETTLE_NS 1000000000ull
/* Time between scans of another urxed's tree, or while the device that --hca names is missing. */
#define HCA_POLL_NS 500000000ull

struct hca_monitor {
	struct hca_wish wish;
	struct hca_list list;                   /* of the last scan */
	struct hca_verdict verdicts[HCA_PORTS]; /* of the last choice */
	int chosen;                             /* index in list; -1 = no HCA */
	uint32_t generation;                    /* incremented when another port, or none, serves */
	bool started;
	/* Scans every HCA_POLL_NS, because no uevents report changes of another urxed's tree, or
	 * because the device that --hca names is missing. */
	bool polls;
	int epoll_fd;           /* watches the netlink socket, with this structure as data */
	struct netlink netlink; /* opened when the first RDMA device exists, then kept */
	uint64_t scan_at;       /* ns; UINT64_MAX = no scan is due */
	bool settling;          /* the scan at scan_at is the second one after a report */
	bool doubted;           /* the last scan found no uplink on the chosen port's interface */
};

/* Scans once, but chooses nothing yet. The caller keeps `sys` (where sysfs is mounted) and `device`
 * (the name of urxe's own device) valid. */
void hca_monitor_open(struct hca_monitor *h, const struct hca_choice *choice, const char *sys,
		      const char *device);
/* Accepts a zeroed structure. */
void hca_monitor_close(struct hca_monitor *h);

/*
 * Scans sysfs: does a RoCE port belong to the interface, or to one below it? xdp: an XDP program
 * takes the RoCE packets of the interface. The result is then false if rdma_rxe has one of these
 * ports, or a port of an interface above, or if the scan lacks descriptors. Always false with
 * HCA_OFF; false if memory for the scan is lacking.
 */
bool hca_monitor_has_interface(const struct hca_monitor *h, const char *ifname, bool xdp);

/*
 * Tells the monitor the name of the kernel's interface of uplink i ("" = the uplink has none), and
 * whether an XDP program takes the interface's RoCE packets. The next scan uses both. No effect if
 * i is HCA_UPLINKS or more.
 */
void hca_monitor_set_uplink(struct hca_monitor *h, uint32_t i, const char *ifname, bool xdp);
/* Makes the first choice, and logs it. */
void hca_monitor_start(struct hca_monitor *h);
/* Adds the netlink socket to epoll_fd, with `h` as data of its events: call hca_monitor_report for
 * each. */
void hca_monitor_watch(struct hca_monitor *h, int epoll_fd, uint64_t now);

/* Call it when sysfs may have changed: plans a scan within 50 ms. Also reads the reports that wait
 * on the netlink socket. */
void hca_monitor_report(struct hca_monitor *h, uint64_t now);
/*
 * Scans and chooses again if a scan is due, and logs changes. Returns whether another port is
 * chosen, or the properties of the chosen one have changed. Gives a port up for want of an uplink
 * only if two successive scans find no uplink. A scan that lacks descriptors or memory changes
 * nothing; another one follows after HCA_SETTLE_NS.
 */
bool hca_monitor_update(struct hca_monitor *h, uint64_t now);
/*
 * Returns when hca_monitor_update is due, ns; UINT64_MAX: not before a call of hca_monitor_report.
 */
static inline uint64_t hca_monitor_deadline(const struct hca_monitor *h)
{
	return h->scan_at;
}

/* Returns the chosen port, valid until the next hca_monitor_update. NULL: no HCA backs urxe0. */
const struct hca_port *hca_monitor_chosen(const struct hca_monitor *h);
/*
 * Fills the message to attached processes with the chosen port; an empty name: no HCA backs urxe0.
 */
void hca_monitor_fill(const struct hca_monitor *h, struct vnic_attach_hca *out);
/* Copies GUID, P_Keys and GIDs of the chosen port; all zero if there is none. */
void hca_monitor_fill_table(const struct hca_monitor *h, struct hca_table *out);
/* The rate of the chosen port; width 0 = unknown, or no HCA. */
struct port_rate hca_monitor_rate(const struct hca_monitor *h);

#endif
