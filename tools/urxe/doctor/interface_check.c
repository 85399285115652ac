/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxe/doctor/check.h"

#include <net/if.h>
#include <net/if_arp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rxe/rxe.h>

#define FULL_PATH 4096 /* the largest path MTU of RoCE, in bytes of payload */

/* Asks the kernel for an attribute (SIOCGIF*) of the interface in this network namespace; /sys may
 * show the interfaces of another namespace. False: the kernel does not tell. */
static bool ask_interface(int socket, struct ifreq *request, unsigned long attribute,
			  const char *name)
{
	memset(request, 0, sizeof(*request));
	strncpy(request->ifr_name, name, IFNAMSIZ - 1);
	return !ioctl(socket, attribute, request);
}

static bool is_ethernet_up(int socket, const char *name)
{
	struct ifreq request;

	return ask_interface(socket, &request, SIOCGIFHWADDR, name) &&
	       request.ifr_hwaddr.sa_family == ARPHRD_ETHER &&
	       ask_interface(socket, &request, SIOCGIFFLAGS, name) &&
	       (request.ifr_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP;
}

static void check_interface(struct findings *f, const char *name, uint32_t mtu)
{
	uint32_t path = urxe_max_path_mtu(mtu);
	char remedy[64 + IFNAMSIZ];

	snprintf(remedy, sizeof(remedy), "ip link set dev %s mtu 4200", name);
	if (path >= FULL_PATH)
		finding_add(f, "MTU", FINDING_OK, NULL, "%s carries packets of %u bytes", name,
			    path);
	else
		finding_add(f, "MTU", FINDING_NOTE, remedy,
			    "%s has an MTU of %u: packets carry %u bytes, and with 4200 at both "
			    "ends 4096",
			    name, mtu, path);
}

void check_interfaces(struct findings *f)
{
	const int any_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct if_nameindex *all = if_nameindex();
	struct ifreq request;
	bool any = false;

	for (const struct if_nameindex *i = all; i && i->if_index; i++) {
		if (!is_ethernet_up(any_socket, i->if_name) ||
		    !ask_interface(any_socket, &request, SIOCGIFMTU, i->if_name))
			continue;
		check_interface(f, i->if_name, (uint32_t)request.ifr_mtu);
		any = true;
	}
	if (all)
		if_freenameindex(all);
	close(any_socket);
	if (!any)
		finding_add(f, "MTU", FINDING_OK, NULL,
			    "no Ethernet interface is up: the device reaches this host only");
}
