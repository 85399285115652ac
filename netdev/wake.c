/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet_filter.h"

/*
 * The smallest receive buffer: after a frame or two it is full, and the kernel
 * turns further ones away at once.
 */
static int set_up(int fd, unsigned int ifindex)
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
	int one = 1, err;

	err = packet_filter_roce(fd);
	if (err)
		return err;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &one, sizeof(one)))
		return -errno;
	/*
	 * The interface's own filter passes the groups that the kernel is in, not those of RoCE
	 * and of our addresses' neighbour discovery; the drivers have no call for it.
	 */
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &groups, sizeof(groups)))
		return -errno;
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/* With protocol 0 nothing arrives before the filter stands and bind names the interface. */
int wake_open(unsigned int ifindex)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	err = set_up(fd, ifindex);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/*
 * An error such as ENETDOWN counts as a frame: it made the socket readable, and
 * taking it makes it quiet. The receive buffer holds far fewer than the limit.
 */
bool wake_drain(int fd)
{
	char byte;
	int i;

	for (i = 0; i < 64; i++)
		if (recv(fd, &byte, sizeof(byte), 0) < 0 && errno == EAGAIN)
			break;
	return i > 0;
}
