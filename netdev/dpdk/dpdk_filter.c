/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which frames a DPDK port receives: modes of the device, MACs, VLANs, and blocks of QPNs. */
#include "dpdk/dpdk_port.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_log.h>

#include <netdev/packet_port.h>

#include "dpdk/sockets/packet_filter.h"
#include "packet/packet_socket.h"
#include "xdp/xdp_program.h"

#define QPN_BLOCKS (1u << (24 - PACKET_PORT_QPN_SHIFT))

static_assert(1 + NETDEV_MACS <= XDP_OWN_MACS, "the XDP program has a place for each MAC");

/* Returns `err`, but 0 for -ENOTSUP: a device that cannot change the mode receives all frames. */
static int accept_missing_mode(int err)
{
	return err == -ENOTSUP ? 0 : err;
}

int dpdk_port_set_allmulticast(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);

	/* Others receive all multicast since configure_device(), unless they refused that. */
	return port->has_groups ? rte_eth_allmulticast_enable(port->id) : 0;
}

void dpdk_port_set_qp1_ring(const struct dpdk_port *port, bool use_ring)
{
	if (!use_ring)
		xdp_program_pass_qp1(port->xdp, false);
	if (port->qp1.port && !qp1_ring_enable(&port->qp1, use_ring))
		xdp_program_pass_qp1(port->xdp, use_ring);
}

int dpdk_port_receive_roce(const struct dpdk_port *port, const uint16_t *blocks, uint32_t n)
{
	bool apart = port->qp1.port && !qp1_ring_enable(&port->qp1, true);

	if (port->promiscuous)
		return packet_filter_own_roce(port->packet_fd, !apart, &port->host);
	return packet_filter_roce(port->packet_fd, !apart, blocks, n);
}

/* The socket by which the port has memberships (packet(7)) of the interface; -1 = none. */
static int membership_socket(const struct dpdk_port *port)
{
	return port->packet_fd >= 0 ? port->packet_fd : port->arp_nd.fd;
}

/*
 * Sets promiscuous mode: of a kernel's interface by a membership of the port's socket. The kernel
 * counts memberships, and ends those of a closed socket. The functions of DPDK's drivers would
 * change IFF_PROMISC itself, and so undo what an administrator has set.
 */
static int set_promiscuous_mode(struct dpdk_port *port, bool on)
{
	int fd = membership_socket(port), err;

	if (on == port->promiscuous)
		return 0;
	if (fd >= 0)
		err = packet_socket_set_promiscuous(fd, port->ifindex, on);
	else
		err = accept_missing_mode(on ? rte_eth_promiscuous_enable(port->id)
					     : rte_eth_promiscuous_disable(port->id));
	if (!err)
		port->promiscuous = on;
	return err;
}

/*
 * On a veth interface, whose program was moved to the kernel's own hook, makes the XDP program
 * leave RoCE to virtual machines to the kernel. At that hook packets may be joined (GRO, GSO), and
 * the AF_XDP socket would drop joined packets.
 */
static void pass_roce_of_machines(const struct dpdk_port *port, bool on)
{
	uint8_t own[1 + NETDEV_MACS][6];

	memcpy(own[0], port->mac.addr_bytes, sizeof(own[0]));
	memcpy(own[1], port->host.macs, sizeof(port->host.macs));
	xdp_program_pass_other_macs(port->xdp, own,
				    on && port->xdp_program >= 0 ? 1 + port->host.n : 0);
}

static void set_xdp_filters(struct dpdk_port *port, bool promiscuous)
{
	if (!port->xdp)
		return;
	xdp_program_pass_blocks(port->xdp, NULL, 0);
	dpdk_port_set_qp1_ring(port, !promiscuous);
	pass_roce_of_machines(port, promiscuous);
}

/* Disables the socket for machines first, so that no frame comes by this socket and the ring. */
static int set_wide_filters(struct dpdk_port *port)
{
	int err = set_promiscuous_mode(port, true);

	/* Some devices apply promiscuous mode to unicast frames only. */
	if (!err)
		err = accept_missing_mode(dpdk_port_set_allmulticast(&port->netdev));
	if (!err)
		err = machine_socket_disable(&port->machines);
	if (!err && port->packet_fd >= 0)
		err = dpdk_port_receive_roce(port, NULL, 0);
	if (!err)
		err = machine_socket_enable(&port->machines, port->ifindex, port->packet_fd < 0,
					    &port->host);
	if (!err)
		set_xdp_filters(port, true);
	return err;
}

/* Sets all filters that it can. Returns 0 or the first error. */
static int set_usual_filters(struct dpdk_port *port)
{
	const int mode = set_promiscuous_mode(port, false);
	const int machines = machine_socket_disable(&port->machines);
	const int roce = port->packet_fd >= 0 ? dpdk_port_receive_roce(port, NULL, 0) : 0;

	set_xdp_filters(port, false);
	return mode ?: machines ?: roce;
}

/* The port's user does not undo a call that has failed, so dpdk_port_set_promiscuous does. */
static void restore_usual_filters(struct dpdk_port *port)
{
	const int err = set_usual_filters(port);
	char name[RTE_ETH_NAME_MAX_LEN] = "";

	if (!err)
		return;
	rte_eth_dev_get_name_by_port(port->id, name);
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1,
		"%s: cannot set all of the port's usual filters again (%s): parts of other "
		"filters may stay\n",
		name, strerror(-err));
}

int dpdk_port_set_promiscuous(struct netdev *netdev, bool on)
{
	struct dpdk_port *port = to_dpdk(netdev);
	int err;

	if (on && membership_socket(port) >= 0 && port->machines.fd < 0)
		return -EOPNOTSUPP;
	if (!on)
		return set_usual_filters(port);
	err = set_wide_filters(port);
	if (err)
		restore_usual_filters(port);
	return err;
}

bool dpdk_port_can_exclude_qpns(struct netdev *netdev)
{
	const struct dpdk_port *port = to_dpdk(netdev);

	return (port->packet_fd >= 0 || port->xdp) && !port->promiscuous;
}

int dpdk_port_exclude_qpns(struct netdev *netdev, const uint16_t *blocks, uint32_t n)
{
	struct dpdk_port *port = to_dpdk(netdev);

	if (!dpdk_port_can_exclude_qpns(netdev))
		return -ENOTSUP;
	if (!port->xdp)
		return dpdk_port_receive_roce(port, blocks, n);
	xdp_program_pass_blocks(port->xdp, blocks, n);
	dpdk_port_set_qp1_ring(port, true);
	return 0;
}

/* Sets `all` to the blocks of the 24-bit QPNs that are not among the n in `blocks`; returns their
 * number. */
static uint32_t complement_blocks(uint16_t all[QPN_BLOCKS], const uint16_t *blocks, uint32_t n)
{
	bool admitted[QPN_BLOCKS] = {false};
	uint32_t others = 0;

	for (uint32_t i = 0; i < n; i++)
		admitted[blocks[i] % QPN_BLOCKS] = true;
	for (uint32_t i = 0; i < QPN_BLOCKS; i++)
		if (!admitted[i])
			all[others++] = (uint16_t)i;
	return others;
}

/*
 * The kernel counts the old filter and the new one together against net.core.optmem_max, 20 KiB
 * before Linux 6.7. If the new filter does not fit, it may fit after a short one has replaced the
 * old. With this short filter the port receives all RoCE packets.
 */
static int admit_roce(const struct dpdk_port *port, const uint16_t *blocks, uint32_t n)
{
	int err = packet_filter_admitted(port->packet_fd, blocks, n);

	if (err == -ENOMEM && !dpdk_port_receive_roce(port, NULL, 0))
		err = packet_filter_admitted(port->packet_fd, blocks, n);
	return err;
}

int dpdk_port_admit_qpns(struct netdev *netdev, const uint16_t *blocks, uint32_t n)
{
	struct dpdk_port *port = to_dpdk(netdev);
	uint16_t others[QPN_BLOCKS];

	if (!dpdk_port_can_exclude_qpns(netdev))
		return -ENOTSUP;
	if (!port->xdp)
		return admit_roce(port, blocks, n) ?: qp1_ring_enable(&port->qp1, false);
	dpdk_port_set_qp1_ring(port, true);
	xdp_program_pass_blocks(port->xdp, others, complement_blocks(others, blocks, n));
	return 0;
}

/*
 * The drivers af_packet and af_xdp have no function for MACs: their ports add a membership to a
 * socket of the kernel's interface. If the port also receives frames to machines, its filters tell
 * frames to the host from those to machines.
 */
static int add_mac_to_interface(struct dpdk_port *port, int fd, const uint8_t mac[6])
{
	int err = packet_socket_add_mac(fd, port->ifindex, mac);

	if (err)
		return err;
	memcpy(port->host.macs[port->host.n++], mac, 6);
	return port->promiscuous ? set_wide_filters(port) : 0;
}

int dpdk_port_add_mac(struct netdev *netdev, const uint8_t mac[6])
{
	struct dpdk_port *port = to_dpdk(netdev);
	int fd = membership_socket(port), err;
	struct rte_ether_addr address;

	if (port->host.n == NETDEV_MACS)
		return -ENOSPC;
	if (fd >= 0)
		return add_mac_to_interface(port, fd, mac);
	memcpy(address.addr_bytes, mac, RTE_ETHER_ADDR_LEN);
	err = rte_eth_dev_mac_addr_add(port->id, &address, 0);
	return err ? accept_missing_mode(rte_eth_promiscuous_enable(port->id)) : 0;
}

/* Passes the MACs of all groups, because the driver replaces its list by the one that it gets. */
int dpdk_port_add_group(struct netdev *netdev, const uint8_t mac[6])
{
	struct dpdk_port *port = to_dpdk(netdev);

	if (!port->has_groups)
		return 0;
	if (port->n_groups == NETDEV_GROUPS)
		return -ENOSPC;
	memcpy(port->groups[port->n_groups++].addr_bytes, mac, RTE_ETHER_ADDR_LEN);
	return rte_eth_dev_set_mc_addr_list(port->id, port->groups, port->n_groups);
}

int dpdk_port_add_vlan(struct netdev *netdev, uint16_t vlan)
{
	struct dpdk_port *port = to_dpdk(netdev);

	return port->filters_vlans ? rte_eth_dev_vlan_filter(port->id, vlan, 1) : 0;
}
