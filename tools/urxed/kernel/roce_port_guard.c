/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/kernel/roce_port_guard.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netdev/packet_port.h>
#include <rxe/packet.h>

void roce_port_guard_init(struct roce_port_guard *h)
{
	h->fds[0] = h->fds[1] = -1;
}

static int bind_roce_port(int family, const char *ifname)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = {1, &drop};
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(URXE_UDP_PORT)};
	struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(URXE_UDP_PORT)};
	const void *any = family == AF_INET ? (const void *)&any4 : &any6;
	socklen_t len = family == AF_INET ? sizeof(any4) : sizeof(any6);
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, err;

	if (fd < 0)
		return -errno;
	/*
	 * With UDP_GRO, the kernel's GRO joins packets to this UDP port, which speeds up programs
	 * with a direct uplink (the case gro of direct_uplink.py). Without UDP_GRO, the kernel
	 * would also split UDP GSO packets before this socket drops them. Not on a kernel that
	 * passes no joined packets to packet sockets: programs and virtual machines would lose
	 * them.
	 */
	if (packet_port_kernel_has_gso())
		(void)setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
	if (!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, ifname, (socklen_t)strlen(ifname)) &&
	    (family == AF_INET || !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on))) &&
	    !bind(fd, any, len))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int roce_port_guard_open(struct roce_port_guard *h, const char *ifname,
			 char error[ROCE_PORT_GUARD_ERROR])
{
	static const int families[2] = {AF_INET, AF_INET6};
	int rc = 0;

	roce_port_guard_init(h);
	for (uint32_t i = 0; i < 2 && !rc; i++) {
		int fd = bind_roce_port(families[i], ifname);

		/* A kernel without IPv6 does not answer over IPv6 either, so the missing socket
		 * does no harm. */
		if (fd >= 0)
			h->fds[i] = fd;
		else if (fd != -EAFNOSUPPORT || families[i] != AF_INET6)
			rc = fd;
	}
	if (!rc)
		return 0;
	snprintf(error, ROCE_PORT_GUARD_ERROR, "cannot hold UDP port %d of %s: %s%s", URXE_UDP_PORT,
		 ifname, strerror(-rc),
		 rc == -EADDRINUSE
			 ? " (rdma_rxe is loaded, another urxed has the interface, or two uplinks "
			   "name it)"
			 : "");
	roce_port_guard_close(h);
	return rc;
}

void roce_port_guard_close(struct roce_port_guard *h)
{
	for (uint32_t i = 0; i < 2; i++)
		if (h->fds[i] >= 0)
			close(h->fds[i]);
	roce_port_guard_init(h);
}
