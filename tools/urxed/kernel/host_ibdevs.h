/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shows the kernel's own RDMA devices to programs beside urxe0: links each device into the sys/
 * tree of the run directory (sysfs_tree.h), because libibverbs reads only that tree. daemon_start.c
 * and daemon_run.c call this.
 *
 * The kernel's uevents (netlink(7), NETLINK_KOBJECT_UEVENT) only tell urxed when to read sysfs
 * again.
 */
#ifndef URXE_URXED_KERNEL_HOST_IBDEVS_H
#define URXE_URXED_KERNEL_HOST_IBDEVS_H

#include <stdbool.h>

struct mnl_socket;

struct host_ibdevs {
	struct mnl_socket *events; /* NULL: not open */
};

/* Subscribes to uevents. Returns 0 or a negative errno value. */
int host_ibdevs_open(struct host_ibdevs *b);
/* Accepts a zeroed structure. */
void host_ibdevs_close(struct host_ibdevs *b);

/* Returns a descriptor that is readable when host_ibdevs_changed has uevents to read; -1 = not
 * open. */
int host_ibdevs_fd(const struct host_ibdevs *b);
/* Reads all uevents. Returns true if RDMA devices may have appeared or vanished. Never blocks. */
bool host_ibdevs_changed(struct host_ibdevs *b);

/*
 * Links the devices in `sys`, the mount point of the kernel's sysfs, into the tree of run_dir,
 * which exists; removes links to devices that have gone. Omits a device with the name of urxe's own
 * device. Returns 0 or a negative errno value.
 */
int host_ibdevs_link(const char *run_dir, const char *sys);

#endif
