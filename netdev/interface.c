/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "interface.h"

#include <errno.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "why.h"

int interface_name(const char *text, const char *name, char taken[IF_NAMESIZE], char *why,
		   uint32_t why_size)
{
	if (!name[0])
		return netdev_why(why, why_size, -EINVAL, "%s: the name of an interface is missing",
				  text);
	if (strlen(name) >= IF_NAMESIZE || strpbrk(name, "/[]{} \t"))
		return netdev_why(why, why_size, -EINVAL,
				  "%s: '%s' cannot be the name of an interface", text, name);
	memcpy(taken, name, strlen(name) + 1);
	return 0;
}

static int query(const char *text, int fd, struct interface *iface, char *why, uint32_t why_size)
{
	struct ifreq ifr = {0};

	memcpy(ifr.ifr_name, iface->name, sizeof(iface->name));
	if (ioctl(fd, SIOCGIFHWADDR, &ifr))
		return netdev_why(why, why_size, -errno, "%s: cannot read the address of %s: %m",
				  text, iface->name);
	if (ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return netdev_why(why, why_size, -EINVAL, "%s: %s is no Ethernet interface", text,
				  iface->name);
	memcpy(iface->mac, ifr.ifr_hwaddr.sa_data, sizeof(iface->mac));
	if (ioctl(fd, SIOCGIFMTU, &ifr))
		return netdev_why(why, why_size, -errno, "%s: cannot read the MTU of %s: %m", text,
				  iface->name);
	iface->mtu = (uint32_t)ifr.ifr_mtu;
	return 0;
}

int interface_find(const char *text, const char *name, const char *needs, struct interface *iface,
		   char *why, uint32_t why_size)
{
	int fd, err = interface_name(text, name, iface->name, why, why_size);

	if (err)
		return err;
	iface->ifindex = if_nametoindex(iface->name);
	if (!iface->ifindex)
		return netdev_why(why, why_size, -ENODEV,
				  "%s: this network namespace has no interface %s", text,
				  iface->name);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0 && errno == EPERM)
		return netdev_why(why, why_size, -EPERM, "%s: needs %s", text, needs);
	if (fd < 0)
		return netdev_why(why, why_size, -errno, "%s: cannot open a packet socket: %m",
				  text);
	err = query(text, fd, iface, why, why_size);
	close(fd);
	return err;
}
