/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "packet_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

int packet_socket_bind(int fd, unsigned int ifindex, int (*filter)(int fd))
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)ifindex,
	};
	const struct packet_mreq groups = {
		.mr_ifindex = (int)ifindex,
		.mr_type = PACKET_MR_ALLMULTI,
	};
	const int on = 1;
	int err;

	err = filter(fd);
	if (err)
		return err;
	/* What the host itself sends is nothing that came. */
	if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)))
		return -errno;
	/*
	 * The interface's own filter passes the groups that the kernel is in, not those of RoCE
	 * and of our addresses' neighbour discovery; DPDK's drivers have no call for it.
	 */
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &groups, sizeof(groups)))
		return -errno;
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/* With protocol 0 nothing arrives before the filter stands and bind names the interface. */
int packet_socket(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int packet_socket_open(unsigned int ifindex, int (*filter)(int fd))
{
	int fd = packet_socket(), err;

	if (fd < 0)
		return fd;
	err = packet_socket_bind(fd, ifindex, filter);
	if (!err)
		return fd;
	close(fd);
	return err;
}
