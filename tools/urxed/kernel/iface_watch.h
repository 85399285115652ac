/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells whether a kernel interface was deleted, or moved to another network namespace, since the
 * watch was opened. The interface may return with the same ifindex; the packet sockets that the
 * uplink's port had on it stay dead. The kernel's report (RTM_DELLINK) would tell too, but urxed
 * may miss reports.
 */
#ifndef URXE_URXED_KERNEL_IFACE_WATCH_H
#define URXE_URXED_KERNEL_IFACE_WATCH_H

#include <stdbool.h>

struct iface_watch {
	int fd;      /* a packet socket on the interface, which receives nothing; -1 = none */
	int ifindex; /* of the interface */
};

/* Makes an object that watches nothing and may be closed. */
void iface_watch_init(struct iface_watch *w);
/* Watches the interface from now on. 0, or a negative errno value: then it watches nothing. */
int iface_watch_open(struct iface_watch *w, const char *ifname);
/* Whether the interface has gone since iface_watch_open. False if the object watches nothing. */
bool iface_watch_has_gone(const struct iface_watch *w);
void iface_watch_close(struct iface_watch *w);

#endif
