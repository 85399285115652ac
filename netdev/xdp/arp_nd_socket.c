/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "xdp/arp_nd_socket.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_ether.h>

#include "dpdk/sockets/packet_filter.h"
#include "packet/packet_socket.h"

static int open_socket(struct arp_nd_socket *socket, unsigned int ifindex)
{
	socket->fd = packet_socket_create();
	if (socket->fd < 0)
		return socket->fd;
	return packet_filter_resolution(socket->fd)
		       ?: packet_socket_add_allmulti(socket->fd, ifindex)
		       ?: packet_socket_set(socket->fd, PACKET_AUXDATA, 1)
		       ?: packet_socket_bind(socket->fd, ifindex);
}

int arp_nd_socket_open(struct arp_nd_socket *socket, unsigned int ifindex)
{
	int err;

	*socket = ARP_ND_SOCKET_CLOSED;
	err = open_socket(socket, ifindex);
	if (err)
		arp_nd_socket_close(socket);
	return err;
}

void arp_nd_socket_close(struct arp_nd_socket *socket)
{
	if (socket->fd >= 0)
		close(socket->fd);
	*socket = ARP_ND_SOCKET_CLOSED;
}

/*
 * Receives a frame, with its VLAN tag, into *mbuf. False: no frame waits, or the buffer has no room
 * for the tag. ARP and ND frames fit the buffer; a longer frame is truncated, and the daemon's
 * parser drops it.
 */
static bool receive_frame(int fd, struct rte_mbuf **mbuf)
{
	uint8_t control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct iovec room = {rte_pktmbuf_mtod(*mbuf, void *), rte_pktmbuf_tailroom(*mbuf)};
	struct msghdr msg = {.msg_iov = &room,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &msg, 0);

	if (n < RTE_ETHER_HDR_LEN)
		return false;
	rte_pktmbuf_append(*mbuf, (uint16_t)n);
	return !packet_socket_find_tag(&msg, &(*mbuf)->vlan_tci) || !rte_vlan_insert(mbuf);
}

struct rte_mbuf *arp_nd_socket_recv(const struct arp_nd_socket *socket, struct rte_mempool *pool)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	if (!mbuf || receive_frame(socket->fd, &mbuf))
		return mbuf;
	rte_pktmbuf_free(mbuf);
	return NULL;
}
