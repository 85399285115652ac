/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An Ethernet interface of this network namespace's kernel, as a port's specification names it. */
#ifndef URXE_NETDEV_INTERFACE_H
#define URXE_NETDEV_INTERFACE_H

#include <net/if.h>
#include <stdint.h>

struct interface {
	char name[IF_NAMESIZE];
	unsigned int ifindex;
	uint32_t mtu;
	uint8_t mac[6];
};

/* Each returns 0 or a negative errno value, and `why` gets a sentence that begins with `text`. */

/* Takes a name that an interface can have. */
int interface_name(const char *text, const char *name, char taken[IF_NAMESIZE], char *why,
		   uint32_t why_size);
/* One that is there. `needs` is what packet sockets want, for a process that may have none. */
int interface_find(const char *text, const char *name, const char *needs, struct interface *iface,
		   char *why, uint32_t why_size);

#endif
