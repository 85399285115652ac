/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's own RDMA devices, which programs on urxe0 have beside it: the sys/ tree of the run
 * directory has a link to each (sysfs.h), since libibverbs walks that tree alone.
 *
 * What the kernel tells of its devices (netlink(7), NETLINK_KOBJECT_UEVENT) only says when to look.
 */
#ifndef URXE_URXED_HOST_IBDEVS_H
#define URXE_URXED_HOST_IBDEVS_H

#include <stdbool.h>

struct mnl_socket;

struct host_ibdevs {
	struct mnl_socket *events; /* NULL: not open */
};

/* From now on the kernel's devices can be followed. A negative errno value where it tells nothing.
 */
int host_ibdevs_open(struct host_ibdevs *b);
/* Also one that is zeroed. */
void host_ibdevs_close(struct host_ibdevs *b);

/* Readable when host_ibdevs_changed has something to take; -1 = it never has. */
int host_ibdevs_fd(const struct host_ibdevs *b);
/* Takes what has come; true: there may be other devices than before. Never blocks. */
bool host_ibdevs_changed(struct host_ibdevs *b);

/*
 * Makes the links of a tree that is there those of the devices in `sys`, where the kernel's sysfs
 * is mounted. A device that is called as ours is left out. 0, or a negative errno value.
 */
int host_ibdevs_link(const char *run_dir, const char *sys);

#endif
