/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/arp_nd_socket.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_ether.h>

#include "dpdk/packet_filter.h"
#include "dpdk/packet_socket.h"

static int listen_on(struct dpdk_resolution *resolution, unsigned int ifindex)
{
	int one = 1;

	resolution->fd = packet_socket_open(ifindex, packet_filter_resolution);
	if (resolution->fd < 0)
		return resolution->fd;
	if (setsockopt(resolution->fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)))
		return -errno;
	return 0;
}

int dpdk_resolution_open(struct dpdk_resolution *resolution, unsigned int ifindex)
{
	int err;

	*resolution = DPDK_RESOLUTION_CLOSED;
	err = listen_on(resolution, ifindex);
	if (err)
		dpdk_resolution_close(resolution);
	return err;
}

static bool add(int set, int fd)
{
	struct epoll_event readable = {.events = EPOLLIN};

	return fd < 0 || !epoll_ctl(set, EPOLL_CTL_ADD, fd, &readable);
}

void dpdk_resolution_watch(struct dpdk_resolution *resolution, int driver_fd)
{
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set >= 0 && add(set, resolution->fd) && add(set, driver_fd))
		resolution->wait_fd = set;
	else if (set >= 0)
		close(set);
}

void dpdk_resolution_close(struct dpdk_resolution *resolution)
{
	if (resolution->fd >= 0)
		close(resolution->fd);
	if (resolution->wait_fd >= 0)
		close(resolution->wait_fd);
	*resolution = DPDK_RESOLUTION_CLOSED;
}

/* The kernel has taken the tag out of the frame, and says so beside it. */
static bool find_tag(struct msghdr *msg, uint16_t *tci)
{
	struct tpacket_auxdata aux;
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_PACKET || cmsg->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(cmsg), sizeof(aux));
		*tci = aux.tp_vlan_tci;
		return aux.tp_status & TP_STATUS_VLAN_VALID;
	}
	return false;
}

/* What is longer than a buffer is no such frame: it comes cut, and the host's parser drops it. */
static bool receive(int fd, struct rte_mbuf **mbuf)
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
	return !find_tag(&msg, &(*mbuf)->vlan_tci) || !rte_vlan_insert(mbuf);
}

struct rte_mbuf *dpdk_resolution_recv(const struct dpdk_resolution *resolution,
				      struct rte_mempool *pool)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	if (!mbuf || receive(resolution->fd, &mbuf))
		return mbuf;
	rte_pktmbuf_free(mbuf);
	return NULL;
}
