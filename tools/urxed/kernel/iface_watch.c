/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/kernel/iface_watch.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

void iface_watch_init(struct iface_watch *w)
{
	*w = (struct iface_watch){.fd = -1};
}

/* Binds without a protocol, so that the socket receives no frames, which would cost time. */
static int bind_without_protocol(int fd, int ifindex)
{
	const struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_ifindex = ifindex};

	return bind(fd, (const struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

int iface_watch_open(struct iface_watch *w, const char *ifname)
{
	int rc;

	iface_watch_init(w);
	w->ifindex = (int)if_nametoindex(ifname);
	if (!w->ifindex)
		return -errno;
	w->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (w->fd < 0)
		return -errno;
	rc = bind_without_protocol(w->fd, w->ifindex);
	if (rc)
		iface_watch_close(w);
	return rc;
}

/* The kernel sets the ifindex of a packet socket to -1 when the socket's interface is deleted or
 * moved. */
bool iface_watch_has_gone(const struct iface_watch *w)
{
	struct sockaddr_ll address = {0};
	socklen_t length = sizeof(address);

	return w->fd >= 0 && !getsockname(w->fd, (struct sockaddr *)&address, &length) &&
	       address.sll_ifindex != w->ifindex;
}

void iface_watch_close(struct iface_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	iface_watch_init(w);
}
