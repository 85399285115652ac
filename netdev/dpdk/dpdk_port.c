/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The operations of a DPDK port, its properties and counters, and its end. */
#include "dpdk/dpdk_port.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include <netdev/vhost.h>

#include "dpdk/pool.h"
#include "dpdk/sockets/epoll_set.h"
#include "packet/packet_socket.h"
#include "xdp/xdp_program.h"

static bool is_open[RTE_MAX_ETHPORTS];

bool dpdk_port_is_open(uint16_t id)
{
	return is_open[id];
}

void dpdk_port_set_open(uint16_t id, bool open)
{
	is_open[id] = open;
}

/* --- Waiting and closing. */

static uint64_t dpdk_next_deadline(struct netdev *netdev)
{
	const struct dpdk_port *port = to_dpdk(netdev);

	if (port->backlog.frames)
		return port->backlog.at;
	return port->wait_taken && port->interrupt.fd >= 0 ? port->poll_at : UINT64_MAX;
}

static int dpdk_wait_fd(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);
	const int fds[] = {port->arp_nd.fd, port->machines.fd, qp1_ring_fd(&port->qp1),
			   port->driver_fd};
	const bool several = fds[0] >= 0 || fds[1] >= 0 || fds[2] >= 0;

	if (!port->wait_taken && several)
		port->wait_fd = epoll_set_open(fds, sizeof(fds) / sizeof(fds[0]));
	port->wait_taken = true;
	if (port->interrupt.fd >= 0)
		return port->interrupt.fd;
	return several ? port->wait_fd : port->driver_fd;
}

void dpdk_port_close_sockets(struct dpdk_port *port)
{
	if (port->wait_fd >= 0)
		close(port->wait_fd);
	arp_nd_socket_close(&port->arp_nd);
	machine_socket_close(&port->machines);
	qp1_ring_close(&port->qp1);
}

void dpdk_port_close_device(struct dpdk_port *port)
{
	struct rte_eth_dev_info info;
	int err = rte_eth_dev_info_get(port->id, &info);

	rte_eth_dev_stop(port->id);
	rte_eth_dev_close(port->id);
	driver_fds_close(&port->driver_fds);
	if (!err)
		rte_dev_remove(info.device);
}

static void dpdk_close(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);

	dpdk_port_free_received(port);
	dpdk_port_set_open(port->id, false);
	dpdk_interrupt_close(&port->interrupt);
	dpdk_port_close_device(port);
	dpdk_port_close_sockets(port);
	xdp_program_detach(port->ifindex, port->xdp_program);
	xdp_program_unmap_passed(port->xdp);
	rte_mempool_free(port->pool);
	free(port);
}

/* --- Properties. */

static bool dpdk_mac(const struct netdev *netdev, uint8_t mac[6])
{
	const struct dpdk_port *port = (const struct dpdk_port *)netdev;

	memcpy(mac, port->mac.addr_bytes, RTE_ETHER_ADDR_LEN);
	mac[5] ^= port->is_tap;
	return !port->is_vhost;
}

static uint32_t dpdk_mtu(const struct netdev *netdev)
{
	return ((const struct dpdk_port *)netdev)->mtu;
}

/*
 * Whether the link is up. If the driver reports its link, asks the driver: net_vhost's link is up
 * while a virtual machine is connected, a physical NIC's while it has a carrier. Other ports count
 * as up, and a tap until the kernel has removed its interface: the daemon learns the links of
 * kernel interfaces from the kernel.
 */
static bool dpdk_is_up(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);
	struct rte_eth_link link;

	if (!port->reports_link)
		return !port->lost;
	return !rte_eth_link_get_nowait(port->id, &link) && link.link_status == RTE_ETH_LINK_UP;
}

static uint64_t dpdk_page_size(const struct netdev *netdev)
{
	return dpdk_pool_page_size(((const struct dpdk_port *)netdev)->pool);
}

static void dpdk_counters(struct netdev *netdev, uint64_t counters[NETDEV_COUNTER_COUNT])
{
	struct dpdk_port *port = to_dpdk(netdev);
	struct rte_eth_stats stats;

	if (port->packet_fd >= 0)
		port->missed += packet_socket_read_drops(port->packet_fd);
	port->counters[NETDEV_RX_QP1_MISSED] = qp1_ring_missed(&port->qp1);
	if (!rte_eth_stats_get(port->id, &stats)) {
		port->counters[NETDEV_RX_MISSED] = stats.imissed + stats.rx_nombuf + port->missed +
						   machine_socket_missed(&port->machines);
		port->counters[NETDEV_TX_ERRORS] = stats.oerrors;
	}
	memcpy(counters, port->counters, sizeof(port->counters));
	counters[NETDEV_RX_BAD] += port->machines.bad;
}

const struct netdev_ops dpdk_port_ops = {
	.rx = dpdk_port_rx,
	.tx = dpdk_port_tx,
	.next_deadline = dpdk_next_deadline,
	.wait_fd = dpdk_wait_fd,
	.mac = dpdk_mac,
	.mtu = dpdk_mtu,
	.set_promiscuous = dpdk_port_set_promiscuous,
	.add_mac = dpdk_port_add_mac,
	.add_group = dpdk_port_add_group,
	.set_allmulticast = dpdk_port_set_allmulticast,
	.add_vlan = dpdk_port_add_vlan,
	.exclude_qpns = dpdk_port_exclude_qpns,
	.admit_qpns = dpdk_port_admit_qpns,
	.can_exclude_qpns = dpdk_port_can_exclude_qpns,
	.is_up = dpdk_is_up,
	.link_returned = dpdk_port_link_returned,
	.page_size = dpdk_page_size,
	.counters = dpdk_counters,
	.close = dpdk_close,
};

/* --- The port of a vhost-user process. */

void netdev_vhost_hold(struct netdev *netdev, void **buffers)
{
	struct dpdk_port *port = to_dpdk(netdev);

	memcpy(buffers, port->received, port->received_count * sizeof(*buffers));
	port->received_count = 0;
}

void netdev_vhost_free(void **buffers, uint32_t n)
{
	rte_pktmbuf_free_bulk((struct rte_mbuf **)buffers, n);
}
