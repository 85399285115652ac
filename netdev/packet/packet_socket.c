/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "packet/packet_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>

/* With protocol 0 the socket receives nothing before bind. */
int packet_socket_create(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	packet_socket_set(fd, PACKET_IGNORE_OUTGOING, 1);
	return fd;
}

int packet_socket_set(int fd, int option, int value)
{
	return setsockopt(fd, SOL_PACKET, option, &value, sizeof(value)) ? -errno : 0;
}

int packet_socket_bind(int fd, unsigned int ifindex)
{
	const struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)ifindex,
	};

	return bind(fd, (const struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

int packet_socket_widen_queue(int fd, int bytes)
{
	if (!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		return 0;
	return setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) ? -errno : 0;
}

static int set_membership(int fd, int option, const struct packet_mreq *membership)
{
	return setsockopt(fd, SOL_PACKET, option, membership, sizeof(*membership)) ? -errno : 0;
}

/*
 * Makes the interface receive all multicast while the socket is open. The interface's filter passes
 * the kernel's groups only, not those of RoCE and of neighbour discovery for urxed's addresses.
 * net_af_packet and net_af_xdp do not support rte_eth_allmulticast_enable().
 */
int packet_socket_add_allmulti(int fd, unsigned int ifindex)
{
	const struct packet_mreq groups = {
		.mr_ifindex = (int)ifindex,
		.mr_type = PACKET_MR_ALLMULTI,
	};

	return set_membership(fd, PACKET_ADD_MEMBERSHIP, &groups);
}

int packet_socket_set_promiscuous(int fd, unsigned int ifindex, bool on)
{
	const struct packet_mreq all = {
		.mr_ifindex = (int)ifindex,
		.mr_type = PACKET_MR_PROMISC,
	};

	return set_membership(fd, on ? PACKET_ADD_MEMBERSHIP : PACKET_DROP_MEMBERSHIP, &all);
}

int packet_socket_add_mac(int fd, unsigned int ifindex, const uint8_t mac[6])
{
	struct packet_mreq address = {
		.mr_ifindex = (int)ifindex,
		.mr_type = PACKET_MR_UNICAST,
		.mr_alen = ETH_ALEN,
	};

	memcpy(address.mr_address, mac, ETH_ALEN);
	return set_membership(fd, PACKET_ADD_MEMBERSHIP, &address);
}

bool packet_socket_find_tag(struct msghdr *message, uint16_t *tci)
{
	struct tpacket_auxdata aux;
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
		if (cmsg->cmsg_level != SOL_PACKET || cmsg->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(cmsg), sizeof(aux));
		*tci = aux.tp_vlan_tci;
		return aux.tp_status & TP_STATUS_VLAN_VALID;
	}
	return false;
}

uint32_t packet_socket_read_drops(int fd)
{
	struct tpacket_stats stats = {0};
	socklen_t length = sizeof(stats);

	return getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) ? 0 : stats.tp_drops;
}

void packet_socket_clear_error(int fd)
{
	int error;
	socklen_t length = sizeof(error);

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
}

int packet_socket_send_ring(int fd, uint64_t *bytes)
{
	ssize_t n;

	*bytes = 0;
	while ((n = sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0)) > 0)
		*bytes += (uint64_t)n;
	if (n == 0)
		return 0;
	/* The queueing discipline dropped one frame; the frames behind it remain in the ring. */
	return errno == ENOBUFS ? -EAGAIN : -errno;
}
