/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens DPDK ports: starts the EAL, and finds, probes and configures the device. */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <netdev/vhost.h>

#include "dpdk/dpdk_port.h"
#include "dpdk/driver_call.h"
#include "dpdk/eal.h"
#include "dpdk/pci_driver.h"
#include "dpdk/pool.h"
#include "dpdk/spec.h"
#include "dpdk/vhost_ring.h"
#include "error_text.h"
#include "packet/packet_socket.h"
#include "xdp/xdp_program.h"

/* Descriptors per ring. The pool has a buffer for each descriptor of both rings, and BURSTS for the
 * frames between the driver and the daemon. */
#define DESCRIPTORS 1024
#define BURSTS      (4 * DPDK_BURST)

/* An Ethernet header and one 802.1Q tag. */
#define FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)

/* Bytes that a driver may need in a buffer beside the frame: a header of virtio, or the FCS. */
#define DRIVER_ROOM 64

#define MTU_DEFAULT RTE_ETHER_MTU
/* With this MTU a frame and its headroom fit the 16-bit length of a packet buffer. */
#define MTU_MAX 32000u

/* Sets the MTU of a tap's interface, which the kernel creates with the default one. Returns 0 or a
 * negative errno value. */
static int set_iface_mtu(const char *iface, uint32_t mtu)
{
	struct ifreq ifr = {.ifr_mtu = (int)mtu};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	memcpy(ifr.ifr_name, iface, IF_NAMESIZE);
	if (ioctl(fd, SIOCSIFMTU, &ifr))
		err = -errno;
	close(fd);
	return err;
}

/*
 * The largest MTU that the port may have. net_tap has the default one, because it sends no longer
 * frames, whatever the interface's MTU is. If the caller asks for no MTU, devices of dpdk: have the
 * default one at most.
 */
static uint32_t device_mtu(const struct dpdk_spec *spec, const struct rte_eth_dev_info *info,
			   uint32_t asked)
{
	if (spec->iface_mtu)
		return spec->iface_mtu;
	if (spec->kind == DPDK_TAP)
		return MTU_DEFAULT;
	if (spec->kind == DPDK_OTHER && !asked)
		return RTE_MIN(MTU_DEFAULT, info->max_mtu);
	if (spec->kind == DPDK_OTHER && info->max_rx_pktlen > FRAME_OVERHEAD)
		return RTE_MIN(info->max_mtu, info->max_rx_pktlen - FRAME_OVERHEAD);
	return asked ? asked : MTU_DEFAULT;
}

static enum dpdk_pool_use pool_use(const struct dpdk_spec *spec)
{
	switch (spec->kind) {
	case DPDK_AF_XDP: return DPDK_POOL_XDP;
	case DPDK_OTHER: return DPDK_POOL_DEVICE;
	default: return DPDK_POOL_COPIED;
	}
}

static int create_pool(struct dpdk_port *port, const struct dpdk_spec *spec)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t room = RTE_MAX(port->frame_max + DRIVER_ROOM, RTE_MAX(spec->buffer, 2048u));
	uint32_t held = spec->kind == DPDK_AF_PACKET ? 0 : 2 * DESCRIPTORS;
	int socket = rte_eth_dev_socket_id(port->id);

	snprintf(name, sizeof(name), "urxe_port_%u", port->id);
	port->pool =
		spec->memory
			? dpdk_pool_create_in(name, spec->memory, spec->memory_size, room, socket)
			: dpdk_pool_create(name, held + BURSTS, room, pool_use(spec), socket);
	return port->pool ? 0 : -rte_errno;
}

/* Configures and starts the device; returns 0 or DPDK's error. Sets the MTU of devices that DPDK
 * owns; others have the MTU of a kernel's interface. */
static int start_device(struct dpdk_port *port, const struct dpdk_spec *spec, bool interrupt)
{
	struct rte_eth_conf conf = {
		.rxmode.mtu = spec->kind == DPDK_OTHER ? port->mtu : 0,
		.rxmode.offloads = port->filters_vlans ? RTE_ETH_RX_OFFLOAD_VLAN_FILTER : 0,
		.intr_conf.rxq = interrupt,
	};
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
	int socket = rte_eth_dev_socket_id(port->id);

	return rte_eth_dev_configure(port->id, 1, 1, &conf)
		      ?: (spec->kind == DPDK_VHOST ? vhost_ring_offer_one_pair(spec->socket) : 0)
		      ?: rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx, &tx)
		      ?: rte_eth_rx_queue_setup(port->id, 0, rx, socket, NULL, port->pool)
		      ?: rte_eth_tx_queue_setup(port->id, 0, tx, socket, NULL)
		      ?: (spec->kind == DPDK_AF_PACKET || spec->kind == DPDK_AF_XDP
				  ? dpdk_start_keeping_interface(port->id)
				  : rte_eth_dev_start(port->id));
}

/* Whether to request the device's receive interrupt. uio devices have none per queue, and
 * net_virtio then fails if one is requested. */
static bool wants_interrupt(const struct dpdk_spec *spec)
{
	return spec->kind == DPDK_VHOST ||
	       (spec->kind == DPDK_OTHER && (!spec->pci || pci_driver_is_vfio(spec->devargs)));
}

static int configure_device(struct dpdk_port *port, const struct dpdk_spec *spec)
{
	const bool wanted = wants_interrupt(spec);
	int err = start_device(port, spec, wanted || spec->kind == DPDK_TAP);

	if (err && wanted)
		err = start_device(port, spec, false);
	else if (!err && wanted)
		dpdk_interrupt_open(&port->interrupt, port->id, !spec->pci);
	if (err)
		return err;
	/* A tag with VLAN ID 0 has a priority only, so its frame is in no VLAN. Linux makes NICs
	 * pass such frames, too. */
	if (port->filters_vlans)
		rte_eth_dev_vlan_filter(port->id, 0, 1);
	port->has_groups = !rte_eth_dev_set_mc_addr_list(port->id, NULL, 0);
	/* The groups of neighbour discovery need all multicast. net_af_packet lacks this function,
	 * so use_packet_socket() sets the mode there. */
	if (!port->has_groups)
		rte_eth_allmulticast_enable(port->id);
	return rte_eth_macaddr_get(port->id, &port->mac);
}

/* Whether the device filters VLANs without a request: virtio devices do, others do not. */
static bool filters_vlans_by_default(const struct rte_eth_dev_info *info)
{
	return !strcmp(info->driver_name, "net_virtio") &&
	       info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
}

static int start_port(struct dpdk_port *port, const struct dpdk_spec *spec, uint32_t asked)
{
	struct rte_eth_dev_info info;
	int err;

	err = rte_eth_dev_info_get(port->id, &info);
	if (err)
		return err;
	port->mtu = device_mtu(spec, &info, asked);
	if (asked && asked < port->mtu)
		port->mtu = asked;
	port->mtu = RTE_MIN(port->mtu, MTU_MAX);
	port->frame_max = port->mtu + FRAME_OVERHEAD;
	port->filters_vlans = filters_vlans_by_default(&info);
	err = create_pool(port, spec) ?: configure_device(port, spec);
	if (!err && spec->kind == DPDK_TAP) {
		port->driver_fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port->id, 0);
		err = set_iface_mtu(spec->iface, port->mtu);
	}
	return err;
}

static bool find_device(const char *devargs, uint16_t *id)
{
	struct rte_dev_iterator iterator;

	if (rte_eth_iterator_init(&iterator, devargs))
		return false;
	*id = rte_eth_iterator_next(&iterator);
	if (*id == RTE_MAX_ETHPORTS)
		return false;
	rte_eth_iterator_cleanup(&iterator);
	return true;
}

/*
 * If RLIMIT_MEMLOCK is less than this, the limit may be why a port does not open, and the error
 * text gets a hint. The ring of an AF_PACKET socket and the packet buffers of an AF_XDP socket
 * count as locked memory, unless the process has CAP_IPC_LOCK. The driver's message does not name
 * the cause, so the hint says "may".
 */
#define LOCKED_BYTES (32u << 20)

static const char *locked_memory_hint(const char *reason)
{
	struct rlimit limit;

	if (!strstr(reason, "mmap failed on AF_PACKET") && !strstr(reason, "create umem"))
		return "";
	return !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur < LOCKED_BYTES
		       ? "; a larger limit of locked memory (ulimit -l) may help"
		       : "";
}

/* Removes the XDP program of a killed process from the interface. A packet socket works with any
 * program, so only af_xdp needs success. Returns 0 or a negative errno value. */
static int clear_xdp_program(const char *text, const struct dpdk_spec *spec, char *error,
			     uint32_t error_size)
{
	int err;

	if (spec->kind != DPDK_AF_XDP && spec->kind != DPDK_AF_PACKET)
		return 0;
	err = xdp_program_clear(text, spec->ifindex, error, error_size);
	return spec->kind == DPDK_AF_XDP ? err : 0;
}

/* Finds or probes the device and sets port->id; returns 0 or a negative errno value. Devices that
 * are open are probed already, and so is the PCI device of the port that started the EAL. */
static int probe_device(const char *text, struct dpdk_port *port, const struct dpdk_spec *spec,
			char *error, uint32_t error_size)
{
	char hint[128];
	int err;

	if (find_device(spec->devargs, &port->id))
		return dpdk_port_is_open(port->id)
			       ? error_text_set(error, error_size, -EEXIST,
						"%s: this process has opened it already", text)
			       : 0;
	err = clear_xdp_program(text, spec, error, error_size);
	if (err)
		return err;
	err = spec->kind == DPDK_AF_PACKET ? dpdk_probe_without_fanout(spec->devargs)
					   : rte_dev_probe(spec->devargs);
	if (err && spec->pci) {
		pci_driver_hint(spec->devargs, rte_eal_has_hugepages(), hint, sizeof(hint));
		return error_text_set(error, error_size, err,
				      "%s: DPDK cannot open the device: %s (%s)", text, hint,
				      dpdk_log_reason());
	}
	if (err)
		return error_text_set(error, error_size, err,
				      "%s: DPDK cannot open the device: %s%s", text,
				      dpdk_log_reason(), locked_memory_hint(dpdk_log_reason()));
	if (!find_device(spec->devargs, &port->id))
		return error_text_set(error, error_size, -ENODEV, "%s: not an Ethernet device",
				      text);
	return 0;
}

/*
 * Sets the filter of the driver's packet socket, and opens the ring for QP1. Without the filter,
 * all of the host's traffic would pass through the ring and wake the port. The port works all the
 * same, so a filter that the kernel refuses is no error; nor is a missing ring for QP1.
 */
static int use_packet_socket(struct dpdk_port *port, const struct dpdk_spec *spec, int fd)
{
	port->driver_fd = port->packet_fd = fd;
	/* Half of the slots stay for frames that the kernel has not finished sending. */
	port->backlog.limit = spec->ring / 2;
	if (fd < 0)
		return 0;
	qp1_ring_open(&port->qp1, spec->ifindex);
	packet_socket_set(fd, PACKET_IGNORE_OUTGOING, 1);
	dpdk_port_receive_roce(port, NULL, 0);
	return packet_socket_add_allmulti(fd, spec->ifindex);
}

/*
 * Ends the busy polling of the driver's AF_XDP socket, which would disable the interrupts that a
 * sleeping port needs. The driver is started with a budget for it all the same (busy_budget=1,
 * spec.c): without one it may wait in rte_eth_rx_burst. Linux before 5.11 lacks these socket
 * options, and the driver sets no budget there.
 */
static void end_busy_polling(int fd)
{
	const int off = 0;

	setsockopt(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &off, sizeof(off));
	setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &off, sizeof(off));
}

/* Opens the sockets that a port of a kernel's interface needs; returns 0 or a negative errno value.
 * `fd`: the driver's own socket, -1 = none. */
static int use_driver_socket(struct dpdk_port *port, const struct dpdk_spec *spec, int fd)
{
	if (spec->kind != DPDK_AF_PACKET && spec->kind != DPDK_AF_XDP)
		return 0;
	/* Ignores a failure: only a host with virtual machines needs this socket, and there
	 * netdev_set_promiscuous() reports that it is missing. */
	machine_socket_open(&port->machines);
	if (spec->kind == DPDK_AF_PACKET)
		return use_packet_socket(port, spec, fd);
	port->driver_fd = fd;
	if (!spec->busy_polling)
		end_busy_polling(fd);
	port->xdp = xdp_program_map_passed(spec->ifindex);
	/* A missing ring for QP1 is no error. */
	if (port->xdp && !qp1_ring_open(&port->qp1, spec->ifindex))
		dpdk_port_set_qp1_ring(port, true);
	return arp_nd_socket_open(&port->arp_nd, spec->ifindex);
}

/* Starts the device, then its sockets; returns 0 or a negative errno value. */
static int start_port_and_sockets(const char *text, const struct dpdk_spec *spec,
				  struct dpdk_port *port, uint32_t mtu, char *error,
				  uint32_t error_size)
{
	int err = start_port(port, spec, mtu);

	driver_fds_find(&port->driver_fds);
	err = err ?: use_driver_socket(port, spec, driver_fds_socket(&port->driver_fds));
	if (err)
		return error_text_set(
			error, error_size, err, "%s: DPDK cannot start the device: %s (%s)%s", text,
			strerror(-err), dpdk_log_reason(), locked_memory_hint(dpdk_log_reason()));
	if (spec->kind != DPDK_AF_XDP)
		return 0;
	return xdp_program_leave_veth(text, spec->ifindex, spec->xdp_program, &port->xdp_program,
				      error, error_size);
}

static int open_device(const char *text, const struct dpdk_spec *spec, struct dpdk_port *port,
		       uint32_t mtu, char *error, uint32_t error_size)
{
	int err;

	err = dpdk_eal_start(spec, error, error_size);
	if (err)
		return err;
	port->drop_own = spec->kind == DPDK_AF_PACKET;
	port->is_tap = spec->kind == DPDK_TAP;
	port->ifindex = spec->ifindex;
	port->is_vhost = spec->kind == DPDK_VHOST;
	port->reports_link = spec->kind == DPDK_VHOST || spec->kind == DPDK_OTHER;
	driver_fds_list(&port->driver_fds, spec->kind == DPDK_AF_XDP ? AF_XDP : AF_PACKET);
	err = probe_device(text, port, spec, error, error_size);
	if (err)
		return err;
	err = start_port_and_sockets(text, spec, port, mtu, error, error_size);
	if (!err) {
		dpdk_port_set_open(port->id, true);
		return 0;
	}
	dpdk_interrupt_close(&port->interrupt);
	dpdk_port_close_device(port);
	rte_mempool_free(port->pool);
	return err;
}

static int open_port(const char *text, const struct dpdk_spec *spec, uint32_t mtu,
		     struct netdev **port, char *error, uint32_t error_size)
{
	struct dpdk_port *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return error_text_set(error, error_size, -ENOMEM, "out of memory");
	new->netdev.ops = &dpdk_port_ops;
	new->driver_fd = new->packet_fd = new->wait_fd = new->xdp_program = -1;
	new->interrupt = DPDK_INTERRUPT_NONE;
	new->arp_nd = ARP_ND_SOCKET_CLOSED;
	new->machines = MACHINE_SOCKET_CLOSED;
	dpdk_log_hold();
	err = open_device(text, spec, new, mtu, error, error_size);
	dpdk_log_release();
	if (!err) {
		*port = &new->netdev;
		return 0;
	}
	dpdk_port_close_sockets(new);
	xdp_program_detach(new->ifindex, new->xdp_program);
	xdp_program_unmap_passed(new->xdp);
	free(new);
	return err;
}

int netdev_dpdk_open(const char *text, uint32_t mtu, struct netdev **port, char *error,
		     uint32_t error_size)
{
	struct dpdk_spec spec;

	return dpdk_spec_parse(text, &spec, error, error_size)
		       ?: open_port(text, &spec, mtu, port, error, error_size);
}

int netdev_vhost_open(const struct netdev_vhost_spec *vhost, uint32_t mtu, void *memory,
		      size_t size, struct netdev **port, char *error, uint32_t error_size)
{
	struct dpdk_spec spec;
	int err = dpdk_spec_vhost(vhost, &spec, error, error_size);

	spec.memory = memory;
	spec.memory_size = size;
	return err ?: open_port(vhost->path, &spec, mtu, port, error, error_size);
}
