/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ports on DPDK ethdev devices, with one receive and one transmit queue, for the daemon's uplinks.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include <netdev/packet_port.h>
#include <netdev/vhost.h>

#include "dpdk/dpdk_interrupt.h"
#include "dpdk/driver_call.h"
#include "dpdk/eal.h"
#include "dpdk/pci_driver.h"
#include "dpdk/pool.h"
#include "dpdk/sockets/driver_socket.h"
#include "dpdk/sockets/epoll_pair.h"
#include "dpdk/sockets/packet_filter.h"
#include "dpdk/sockets/packet_socket.h"
#include "dpdk/sockets/qp1_ring.h"
#include "dpdk/spec.h"
#include "error_text.h"
#include "netdev_ops.h"
#include "xdp/arp_nd_socket.h"
#include "xdp/xdp_program.h"

#define BURST 64

/* Descriptors per ring. The pool has buffers for both rings and for the bursts. */
#define DESCRIPTORS 1024
#define BURSTS      (4 * BURST)

/* First and longest pause between attempts to send frames that the kernel left in its ring. */
#define RESEND_NS     50000
#define RESEND_MAX_NS 1000000

/*
 * Silence before the port enables its interrupt, which costs a wake-up and may cost an exit of a
 * virtual machine.
 */
#define ARM_NS 4000000
/*
 * Poll interval in spite of an enabled interrupt. net_vhost returns no frame while DPDK's own
 * thread has the queue, even one from before the enable.
 */
#define FALLBACK_POLL_NS 1000000000
/*
 * The same for a time after a guest has come. net_vhost raises no interrupt for the announcements
 * that it makes for a migrated guest (VHOST_USER_SEND_RARP); QEMU orders the last one 1.05 s after
 * the guest's start.
 */
#define GUEST_POLL_NS 5000000
#define GUEST_NS      1500000000

#define QPN_BLOCKS (1u << (24 - PACKET_PORT_QPN_SHIFT))

/* An Ethernet header and one 802.1Q tag. */
#define FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)

/* virtio writes a header into the buffer, and some devices the FCS. */
#define DRIVER_ROOM 64

#define MTU_DEFAULT RTE_ETHER_MTU
/* A frame and its headroom must fit a packet buffer's 16-bit length. */
#define MTU_MAX 32000u

struct dpdk_port {
	struct netdev netdev;
	uint16_t id;
	uint16_t received_count;
	bool drop_own;        /* the ring contains the host's own frames, too */
	bool wait_taken;      /* netdev_wait_fd was called */
	unsigned int ifindex; /* of the kernel's interface below af_packet and af_xdp */
	int driver_fd;        /* the driver's own descriptor for poll; -1 = none */
	int packet_fd;        /* af_packet: driver_fd, the socket of the driver's rings; else -1 */
	struct {
		uint32_t frames; /* upper bound */
		uint32_t limit;
		uint64_t at;    /* next attempt to send them */
		uint64_t pause; /* from that one to the next, ns */
	} unsent;               /* frames in the transmit ring of the packet socket */
	struct dpdk_interrupt interrupt;
	uint64_t active_at;          /* time of the last received or sent frame */
	uint64_t poll_at;            /* when to poll without an interrupt */
	uint64_t guest_until;        /* end of the time after a vhost guest's arrival */
	struct arp_nd_socket arp_nd; /* af_xdp; else closed */
	struct qp1_ring qp1;         /* af_packet; else closed */
	int wait_fd;          /* epoll set of driver_fd and of the other socket; -1 = not open */
	uint64_t *xdp_blocks; /* af_xdp: xdp_program_map_blocks; else NULL */
	uint32_t mtu;
	uint32_t frame_max;
	struct rte_ether_addr mac;
	bool is_tap;
	bool reports_link; /* a virtual machine's connection, or a cable */
	bool no_mac;       /* all devices of the driver have one address */
	bool filters_vlans;
	bool has_groups;                             /* the driver has a list of multicast MACs */
	struct rte_ether_addr groups[NETDEV_GROUPS]; /* of netdev_add_group */
	uint32_t n_groups;
	struct rte_mempool *pool;
	struct rte_mbuf *received[BURST]; /* frames of the last netdev_rx */
	uint64_t missed;                  /* af_packet: frames lost because the ring was full */
	uint64_t counters[NETDEV_COUNTER_COUNT];
};

/* By DPDK's port number, since the EAL would open a device twice. */
static bool is_open[RTE_MAX_ETHPORTS];

static struct dpdk_port *to_dpdk(struct netdev *port)
{
	return (struct dpdk_port *)port;
}

/* --- Receiving */

/* Counts a frame that a bridge or the interface has sent back. */
static bool is_own(struct dpdk_port *port, const uint8_t *frame, uint32_t length)
{
	const struct rte_ether_hdr *ether = (const void *)frame;

	if (!port->drop_own || length < sizeof(*ether) ||
	    !rte_is_same_ether_addr(&ether->src_addr, &port->mac))
		return false;
	port->counters[NETDEV_RX_OWN]++;
	return true;
}

static void count_received(struct dpdk_port *port, uint32_t length)
{
	port->counters[NETDEV_RX_FRAMES]++;
	port->counters[NETDEV_RX_BYTES] += length;
}

static bool keep_frame(struct dpdk_port *port, struct rte_mbuf *mbuf)
{
	if (mbuf->nb_segs > 1 && rte_pktmbuf_linearize(mbuf)) {
		port->counters[NETDEV_RX_BAD]++;
		return false;
	}
	if (is_own(port, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len))
		return false;
	count_received(port, mbuf->data_len);
	return true;
}

static void free_received(struct dpdk_port *port)
{
	if (port->received_count)
		rte_pktmbuf_free_bulk(port->received, port->received_count);
	port->received_count = 0;
	qp1_ring_release(&port->qp1);
}

/*
 * net_af_packet makes one system call for the frames that it puts into the ring. The kernel stops
 * if the socket's send buffer is full (by default at 45 frames of 4 KiB) or the queueing discipline
 * refuses a frame, and the driver counts the rest as sent: without another call they would stay
 * until the next transmission. Only a system call shows whether frames are left. The port makes it
 * when it has nothing to receive, so not for each frame under load.
 */
static void send_ring(struct dpdk_port *port, uint64_t now)
{
	uint64_t bytes;
	int rc = packet_socket_send_ring(port->packet_fd, &bytes);

	if (rc != -EAGAIN)
		port->unsent.frames = 0;
	else
		port->unsent.frames -= RTE_MIN(bytes / port->frame_max, port->unsent.frames - 1ull);
	port->unsent.at = now + port->unsent.pause;
	port->unsent.pause = RTE_MIN(2 * port->unsent.pause, RESEND_MAX_NS);
}

/*
 * How many frames the driver may get now. With a full ring it would wait for a free slot, without
 * end if the interface is down, and block the daemon's loop.
 */
static uint32_t ring_room(struct dpdk_port *port, uint64_t now)
{
	if (port->packet_fd < 0)
		return UINT32_MAX;
	if (port->unsent.frames >= port->unsent.limit)
		send_ring(port, now);
	return port->unsent.limit - port->unsent.frames;
}

/*
 * A short silence is polled, as on a port without a descriptor, and so is a device whose interrupt
 * has not come for a frame yet, since it may not work. Frames from before the enable are received
 * here.
 */
static uint16_t prepare_sleep(struct dpdk_port *port, uint64_t now, struct rte_mbuf **mbufs,
			      uint16_t n)
{
	uint64_t quiet = now - port->active_at;
	uint16_t count = 0;

	if (quiet < ARM_NS)
		dpdk_interrupt_reset(&port->interrupt);
	else if (dpdk_interrupt_arm(&port->interrupt))
		count = rte_eth_rx_burst(port->id, 0, mbufs, n);
	if (dpdk_interrupt_take_change(&port->interrupt))
		port->guest_until = now + GUEST_NS;
	port->poll_at = now + (dpdk_interrupt_is_reliable(&port->interrupt)
				       ? FALLBACK_POLL_NS
				       : netdev_poll_interval_ns(quiet));
	if (now < port->guest_until && port->poll_at > now + GUEST_POLL_NS)
		port->poll_at = now + GUEST_POLL_NS;
	return count;
}

/* poll(2) also returns for a pending error of a packet socket, such as an interface that is down.
 */
static void clear_errors(const struct dpdk_port *port)
{
	packet_socket_clear_error(port->packet_fd);
	if (qp1_ring_fd(&port->qp1) >= 0)
		packet_socket_clear_error(qp1_ring_fd(&port->qp1));
}

static uint16_t receive_burst(struct dpdk_port *port, uint64_t now, struct rte_mbuf **mbufs,
			      uint16_t n)
{
	uint16_t count = rte_eth_rx_burst(port->id, 0, mbufs, n);

	if (!count && port->wait_taken && port->packet_fd >= 0)
		clear_errors(port);
	/* ARP and ND frames are few: one recvmsg per empty ring. */
	if (!count && port->arp_nd.fd >= 0) {
		mbufs[0] = arp_nd_socket_recv(&port->arp_nd, port->pool);
		count = mbufs[0] != NULL;
	}
	if (!count && port->wait_taken && port->interrupt.fd >= 0)
		count = prepare_sleep(port, now, mbufs, n);
	if (count) {
		port->active_at = now;
		dpdk_interrupt_disarm(&port->interrupt);
	}
	return count;
}

/* Receives further bursts while all frames are dropped: no frames must mean an empty ring. */
static void receive_kept(struct dpdk_port *port, uint64_t now, uint32_t n)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t count, i;

	while (n && !port->received_count) {
		count = receive_burst(port, now, mbufs, n < BURST ? n : BURST);
		if (!count)
			break;
		for (i = 0; i < count; i++) {
			if (keep_frame(port, mbufs[i]))
				port->received[port->received_count++] = mbufs[i];
			else
				rte_pktmbuf_free(mbufs[i]);
		}
	}
}

/* Returns how many of the frames are left, at the start of the array. */
static uint32_t keep_qp1_frames(struct dpdk_port *port, struct netdev_frame *frames, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (is_own(port, frames[i].data, frames[i].len))
			continue;
		count_received(port, frames[i].len);
		frames[kept++] = frames[i];
	}
	return kept;
}

/* As receive_kept: no frames must mean an empty ring. */
static uint32_t receive_qp1(struct dpdk_port *port, struct netdev_frame *frames, uint32_t n)
{
	uint32_t received, kept = 0;

	while (!kept && (received = qp1_ring_rx(&port->qp1, frames, n))) {
		kept = keep_qp1_frames(port, frames, received);
		if (!kept)
			qp1_ring_release(&port->qp1);
	}
	return kept;
}

/* At most half of the frames are for QP1, so that these keep no data waiting. */
static uint32_t dpdk_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames,
			uint32_t n)
{
	struct dpdk_port *port = to_dpdk(netdev);
	uint32_t first;

	free_received(port);
	first = receive_qp1(port, frames, (n + 1) / 2);
	frames += first;
	receive_kept(port, now, n - first);
	if (port->unsent.frames && (!port->received_count || now >= port->unsent.at))
		send_ring(port, now);
	for (uint16_t i = 0; i < port->received_count; i++)
		frames[i] = (struct netdev_frame){
			.data = rte_pktmbuf_mtod(port->received[i], const uint8_t *),
			.len = port->received[i]->data_len,
			.wire_len = port->received[i]->data_len,
		};
	return first + port->received_count;
}

/* --- Sending */

/* Sends up to BURST frames; returns how many the device accepted. */
static uint16_t send_burst(struct dpdk_port *port, const struct netdev_frame *frames, uint16_t n)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t sent, i;

	if (rte_pktmbuf_alloc_bulk(port->pool, mbufs, n))
		return 0;
	for (i = 0; i < n; i++)
		memcpy(rte_pktmbuf_append(mbufs[i], frames[i].len), frames[i].data, frames[i].len);
	sent = rte_eth_tx_burst(port->id, 0, mbufs, n);
	if (sent < n)
		rte_pktmbuf_free_bulk(mbufs + sent, n - sent);
	for (i = 0; i < sent; i++)
		port->counters[NETDEV_TX_BYTES] += frames[i].len;
	port->counters[NETDEV_TX_FRAMES] += sent;
	return sent;
}

static uint16_t count_fitting(const struct dpdk_port *port, const struct netdev_frame *frames,
			      uint32_t n)
{
	uint16_t count = 0;

	while (count < n && count < BURST && frames[count].len <= port->frame_max)
		count++;
	return count;
}

static uint32_t dpdk_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
			uint32_t n)
{
	struct dpdk_port *port = to_dpdk(netdev);
	uint32_t room = ring_room(port, now), may = n < room ? n : room, done = 0;

	while (done < may) {
		uint16_t count = count_fitting(port, frames + done, may - done);
		uint16_t sent;

		if (!count) {
			port->counters[NETDEV_TX_TOO_LONG]++;
			done++;
			continue;
		}
		sent = send_burst(port, frames + done, count);
		done += sent;
		if (sent < count)
			break;
	}
	port->counters[NETDEV_TX_REFUSED] += n - done;
	if (done)
		port->active_at = now;
	if (port->packet_fd >= 0 && done) {
		port->unsent.frames += done;
		port->unsent.at = now + RESEND_NS;
		port->unsent.pause = RESEND_NS;
	}
	return done;
}

static uint64_t dpdk_next_deadline(struct netdev *netdev)
{
	const struct dpdk_port *port = to_dpdk(netdev);

	if (port->unsent.frames)
		return port->unsent.at;
	return port->wait_taken && port->interrupt.fd >= 0 ? port->poll_at : UINT64_MAX;
}

/* --- Waiting and closing */

static int dpdk_wait_fd(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);
	int other = port->arp_nd.fd >= 0 ? port->arp_nd.fd : qp1_ring_fd(&port->qp1);

	if (!port->wait_taken && other >= 0)
		port->wait_fd = epoll_pair_open(other, port->driver_fd);
	port->wait_taken = true;
	if (port->interrupt.fd >= 0)
		return port->interrupt.fd;
	return other >= 0 ? port->wait_fd : port->driver_fd;
}

static void close_other_sockets(struct dpdk_port *port)
{
	if (port->wait_fd >= 0)
		close(port->wait_fd);
	arp_nd_socket_close(&port->arp_nd);
	qp1_ring_close(&port->qp1);
}

/* Removes a virtual device, too, so that its name is free again. */
static void close_device(uint16_t id)
{
	struct rte_eth_dev_info info;
	int err = rte_eth_dev_info_get(id, &info);

	rte_eth_dev_stop(id);
	rte_eth_dev_close(id);
	if (!err)
		rte_dev_remove(info.device);
}

static void dpdk_close(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);

	free_received(port);
	is_open[port->id] = false;
	dpdk_interrupt_close(&port->interrupt);
	close_device(port->id);
	close_other_sockets(port);
	xdp_program_unmap_blocks(port->xdp_blocks);
	rte_mempool_free(port->pool);
	free(port);
}

/* --- Properties */

static bool dpdk_mac(const struct netdev *netdev, uint8_t mac[6])
{
	const struct dpdk_port *port = (const struct dpdk_port *)netdev;

	memcpy(mac, port->mac.addr_bytes, RTE_ETHER_ADDR_LEN);
	mac[5] ^= port->is_tap;
	return !port->no_mac;
}

static uint32_t dpdk_mtu(const struct netdev *netdev)
{
	return ((const struct dpdk_port *)netdev)->mtu;
}

/*
 * net_vhost's link is up while a virtual machine is connected. The links of the kernel's interfaces
 * are known to the kernel, which tells the caller.
 */
static bool dpdk_is_up(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);
	struct rte_eth_link link;

	return !port->reports_link ||
	       (!rte_eth_link_get_nowait(port->id, &link) && link.link_status == RTE_ETH_LINK_UP);
}

static int dpdk_set_allmulticast(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);

	/* Other devices do so since they were started, or cannot: see configure_device(). */
	return port->has_groups ? rte_eth_allmulticast_enable(port->id) : 0;
}

/*
 * Sets the filters of the port's ring and of the ring for QP1. Packets to QP1 may come to both
 * rings in between, which their receiver knows by their transaction IDs.
 */
static int receive_roce(const struct dpdk_port *port, const uint16_t *blocks, uint32_t n)
{
	bool apart = port->qp1.port && !qp1_ring_enable(&port->qp1, true);

	return packet_filter_roce(port->packet_fd, !apart, blocks, n);
}

/* The port's ring has a filter that passes packets to QP1, too; rc: the result of setting it. */
static int receive_all(const struct dpdk_port *port, int rc)
{
	return rc ?: qp1_ring_enable(&port->qp1, false);
}

static int dpdk_set_promiscuous(struct netdev *netdev, bool on)
{
	struct dpdk_port *port = to_dpdk(netdev);
	int err = on ? rte_eth_promiscuous_enable(port->id) : rte_eth_promiscuous_disable(port->id);

	/* Some devices have this mode for unicast frames only. */
	if (!err && on)
		err = dpdk_set_allmulticast(netdev);
	if (!err && port->packet_fd >= 0)
		err = on ? receive_all(port, packet_filter_incoming(port->packet_fd))
			 : receive_roce(port, NULL, 0);
	if (!err && port->xdp_blocks)
		xdp_program_set_blocks(port->xdp_blocks, NULL, 0);
	/* A device without this mode receives all frames. */
	return err == -ENOTSUP ? 0 : err;
}

static bool dpdk_can_exclude_qpns(struct netdev *netdev)
{
	const struct dpdk_port *port = to_dpdk(netdev);

	return (port->packet_fd >= 0 || port->xdp_blocks) && rte_eth_promiscuous_get(port->id) != 1;
}

static int dpdk_exclude_qpns(struct netdev *netdev, const uint16_t *blocks, uint32_t n)
{
	struct dpdk_port *port = to_dpdk(netdev);

	if (!dpdk_can_exclude_qpns(netdev))
		return -ENOTSUP;
	if (!port->xdp_blocks)
		return receive_roce(port, blocks, n);
	xdp_program_set_blocks(port->xdp_blocks, blocks, n);
	return 0;
}

/* All other blocks of the 24-bit QPNs; returns their number. */
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

static int dpdk_admit_qpns(struct netdev *netdev, const uint16_t *blocks, uint32_t n)
{
	struct dpdk_port *port = to_dpdk(netdev);
	uint16_t others[QPN_BLOCKS];

	if (!dpdk_can_exclude_qpns(netdev))
		return -ENOTSUP;
	if (!port->xdp_blocks)
		return receive_all(port, packet_filter_admitted(port->packet_fd, blocks, n));
	xdp_program_set_blocks(port->xdp_blocks, others, complement_blocks(others, blocks, n));
	return 0;
}

/* The drivers of af_packet and af_xdp have no function for MACs. */
static int dpdk_add_mac(struct netdev *netdev, const uint8_t mac[6])
{
	struct dpdk_port *port = to_dpdk(netdev);
	int fd = port->packet_fd >= 0 ? port->packet_fd : port->arp_nd.fd, err;
	struct rte_ether_addr address;

	if (fd >= 0)
		return packet_socket_add_mac(fd, port->ifindex, mac);
	memcpy(address.addr_bytes, mac, RTE_ETHER_ADDR_LEN);
	err = rte_eth_dev_mac_addr_add(port->id, &address, 0);
	if (err)
		err = rte_eth_promiscuous_enable(port->id);
	/* A device without this mode receives all frames. */
	return err == -ENOTSUP ? 0 : err;
}

/* The driver replaces its list by the one that it is given. */
static int dpdk_add_group(struct netdev *netdev, const uint8_t mac[6])
{
	struct dpdk_port *port = to_dpdk(netdev);

	if (!port->has_groups)
		return 0;
	if (port->n_groups == NETDEV_GROUPS)
		return -ENOSPC;
	memcpy(port->groups[port->n_groups++].addr_bytes, mac, RTE_ETHER_ADDR_LEN);
	return rte_eth_dev_set_mc_addr_list(port->id, port->groups, port->n_groups);
}

static int dpdk_add_vlan(struct netdev *netdev, uint16_t vlan)
{
	struct dpdk_port *port = to_dpdk(netdev);

	return port->filters_vlans ? rte_eth_dev_vlan_filter(port->id, vlan, 1) : 0;
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
		port->counters[NETDEV_RX_MISSED] = stats.imissed + stats.rx_nombuf + port->missed;
		port->counters[NETDEV_TX_ERRORS] = stats.oerrors;
	}
	memcpy(counters, port->counters, sizeof(port->counters));
}

static const struct netdev_ops dpdk_ops = {
	.rx = dpdk_rx,
	.tx = dpdk_tx,
	.next_deadline = dpdk_next_deadline,
	.wait_fd = dpdk_wait_fd,
	.mac = dpdk_mac,
	.mtu = dpdk_mtu,
	.set_promiscuous = dpdk_set_promiscuous,
	.add_mac = dpdk_add_mac,
	.add_group = dpdk_add_group,
	.set_allmulticast = dpdk_set_allmulticast,
	.add_vlan = dpdk_add_vlan,
	.exclude_qpns = dpdk_exclude_qpns,
	.admit_qpns = dpdk_admit_qpns,
	.can_exclude_qpns = dpdk_can_exclude_qpns,
	.is_up = dpdk_is_up,
	.page_size = dpdk_page_size,
	.counters = dpdk_counters,
	.close = dpdk_close,
};

/* --- Opening */

/* The kernel creates the tap's interface with the default MTU. */
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
 * The device's largest MTU; 65535 for a driver that reports none. net_tap sends no longer frames
 * than the default, whatever the interface's MTU is.
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

/* Sets the MTU of devices that DPDK owns; others have the MTU of a kernel's interface. */
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
		      ?: rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx, &tx)
		      ?: rte_eth_rx_queue_setup(port->id, 0, rx, socket, NULL, port->pool)
		      ?: rte_eth_tx_queue_setup(port->id, 0, tx, socket, NULL)
		      ?: (spec->kind == DPDK_AF_PACKET ? dpdk_start_keeping_mac(port->id)
						       : rte_eth_dev_start(port->id));
}

/* uio devices have no interrupt per queue, and net_virtio then fails if one is requested. */
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
	port->has_groups = !rte_eth_dev_set_mc_addr_list(port->id, NULL, 0);
	/* For neighbor discovery; net_af_packet lacks this function: see use_packet_socket(). */
	if (!port->has_groups)
		rte_eth_allmulticast_enable(port->id);
	return rte_eth_macaddr_get(port->id, &port->mac);
}

/* virtio devices filter VLANs by default; other devices only on request. */
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

/* The EAL has probed the PCI device of its start already, as well as devices that are open. */
static int probe_device(const char *text, struct dpdk_port *port, const struct dpdk_spec *spec,
			char *error, uint32_t error_size)
{
	char hint[128];
	int err;

	if (find_device(spec->devargs, &port->id))
		return is_open[port->id]
			       ? error_text_set(error, error_size, -EEXIST,
						"%s: this process has opened it already", text)
			       : 0;
	err = spec->kind == DPDK_AF_XDP ? xdp_program_clear(text, spec->ifindex, error, error_size)
					: 0;
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
		return error_text_set(error, error_size, err, "%s: DPDK cannot open the device: %s",
				      text, dpdk_log_reason());
	if (!find_device(spec->devargs, &port->id))
		return error_text_set(error, error_size, -ENODEV, "%s: not an Ethernet device",
				      text);
	return 0;
}

/*
 * Without the filter, all of the host's traffic would pass through the ring and wake the port. The
 * port works without it, too, so a refused filter is no error; nor is a missing ring for QP1.
 */
static int use_packet_socket(struct dpdk_port *port, const struct dpdk_spec *spec, int fd)
{
	port->driver_fd = port->packet_fd = fd;
	/* The other half of the ring is for frames that the kernel is sending. */
	port->unsent.limit = spec->ring / 2;
	if (fd < 0)
		return 0;
	qp1_ring_open(&port->qp1, spec->ifindex);
	packet_socket_ignore_outgoing(fd);
	receive_roce(port, NULL, 0);
	return packet_socket_add_allmulti(fd, spec->ifindex);
}

/* `fd`: the driver's own socket, -1 = none. */
static int use_driver_socket(struct dpdk_port *port, const struct dpdk_spec *spec, int fd)
{
	if (spec->kind == DPDK_AF_PACKET)
		return use_packet_socket(port, spec, fd);
	if (spec->kind != DPDK_AF_XDP)
		return 0;
	port->driver_fd = fd;
	port->xdp_blocks = xdp_program_map_blocks(spec->ifindex);
	return arp_nd_socket_open(&port->arp_nd, spec->ifindex);
}

static int open_device(const char *text, const struct dpdk_spec *spec, struct dpdk_port *port,
		       uint32_t mtu, char *error, uint32_t error_size)
{
	struct driver_sockets others; /* open before the driver's own */
	int err;

	err = dpdk_eal_start(spec, error, error_size);
	if (err)
		return err;
	port->drop_own = spec->kind == DPDK_AF_PACKET;
	port->is_tap = spec->kind == DPDK_TAP;
	port->ifindex = spec->ifindex;
	port->no_mac = spec->kind == DPDK_VHOST;
	port->reports_link = spec->kind == DPDK_VHOST || spec->kind == DPDK_OTHER;
	driver_socket_list(&others, spec->kind == DPDK_AF_XDP ? AF_XDP : AF_PACKET);
	err = probe_device(text, port, spec, error, error_size);
	if (err)
		return err;
	err = start_port(port, spec, mtu)
		      ?: use_driver_socket(port, spec, driver_socket_find(&others));
	if (!err) {
		is_open[port->id] = true;
		return 0;
	}
	dpdk_interrupt_close(&port->interrupt);
	close_device(port->id);
	rte_mempool_free(port->pool);
	return error_text_set(error, error_size, err, "%s: DPDK cannot start the device: %s (%s)",
			      text, strerror(-err), dpdk_log_reason());
}

static int open_port(const char *text, const struct dpdk_spec *spec, uint32_t mtu,
		     struct netdev **port, char *error, uint32_t error_size)
{
	struct dpdk_port *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return error_text_set(error, error_size, -ENOMEM, "out of memory");
	new->netdev.ops = &dpdk_ops;
	new->driver_fd = new->packet_fd = new->wait_fd = -1;
	new->interrupt = DPDK_INTERRUPT_NONE;
	new->arp_nd = ARP_ND_SOCKET_CLOSED;
	dpdk_log_hold();
	err = open_device(text, spec, new, mtu, error, error_size);
	dpdk_log_release();
	if (!err) {
		*port = &new->netdev;
		return 0;
	}
	close_other_sockets(new);
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

/* --- The port of a vhost-user process */

int netdev_vhost_open(const struct netdev_vhost_spec *vhost, uint32_t mtu, void *memory,
		      size_t size, struct netdev **port, char *error, uint32_t error_size)
{
	struct dpdk_spec spec;
	int err = dpdk_spec_vhost(vhost, &spec, error, error_size);

	spec.memory = memory;
	spec.memory_size = size;
	return err ?: open_port(vhost->path, &spec, mtu, port, error, error_size);
}

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
