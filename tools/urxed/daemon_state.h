/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The state of the daemon: daemon_start.c makes and ends it, daemon_run.c has the event loop. */
#ifndef URXE_URXED_DAEMON_STATE_H
#define URXE_URXED_DAEMON_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "urxed/cm/rdmacm.h"
#include "urxed/daemon.h"
#include "urxed/device_files.h"
#include "urxed/hca/hca_monitor.h"
#include "urxed/kernel/host_ibdevs.h"
#include "urxed/kernel/kernel_sync.h"
#include "urxed/report/monitor.h"
#include "urxed/session/listener.h"
#include "urxed/session/session.h"
#include "urxed/uplink/uplink_set.h"
#include "urxed/uplink/vm_port_set.h"

struct daemon {
	struct daemon_options options;
	int lock_fd;
	bool own_dir; /* daemon_stop removes the run directory */
	bool made_sysfs;
	int epoll_fd;
	int signal_fd;
	struct listener listener;
	struct monitor monitor;
	bool checks_inboxes; /* only its address is used, as the epoll data of fd_guard_fd() */
	bool stop;
	bool hears_multicast; /* uplinks receive all groups: a program has joined one */
	uint64_t looked_at;   /* when the daemon last looked for events, ns */
	bool idle;            /* no client is connected */
	uint64_t idle_since;  /* ns; valid if idle */
	struct host host;
	struct device_files files;
	struct kernel_sync kernel;
	struct host_ibdevs ibdevs;
	struct hca_monitor hca;
	struct neigh neigh;
	struct vswitch sw;
	struct lease_store lease_store;
	struct sessions sessions;
	struct rdmacm rdmacm;
	struct uplink_set uplinks;
	struct direct_uplink direct_uplink;
	struct vm_port_set vm_ports;
};

/*
 * Links the kernel's RDMA devices into the run directory, as they are now. Only logs an error,
 * because urxe0 works without these devices.
 */
void daemon_link_ibdevs(struct daemon *d);
/* Tells the HCA monitor the present names of the uplinks' interfaces. */
void daemon_name_uplinks(struct daemon *d);
/* Gives the host the addresses of the HCA's port: for a daemon without uplinks. */
void daemon_take_hca_addresses(struct daemon *d, const struct hca_port *p);

#endif
