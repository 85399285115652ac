/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells whether a kernel interface was deleted, or moved to another network namespace, since the
 * watch was opened. Even if the interface returns with the same ifindex, the packet sockets of the
 * uplink's port on it stay dead. The kernel reports that, too (RTM_DELLINK), but urxed may miss
 * reports.
 */
#ifndef URXE_URXED_KERNEL_IFACE_WATCH_H
#define URXE_URXED_KERNEL_IFACE_WATCH_H

#include <stdbool.h>

struct iface_watch {
	int fd;      /* a packet socket on the interface, which receives nothing; -1 = none */
	int ifindex; /* of the interface */
};

/* Makes a watch that watches nothing and may be closed. */
void iface_watch_init(struct iface_watch *w);
/* Watches the interface from now on. Returns 0, or a negative errno value, after which *w watches
 * nothing. */
int iface_watch_open(struct iface_watch *w, const char *ifname);
/*
 * Whether the interface was deleted or moved since iface_watch_open. False if *w watches nothing.
 */
bool iface_watch_has_gone(const struct iface_watch *w);
void iface_watch_close(struct iface_watch *w);

#endif
