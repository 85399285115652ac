/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An ethdev port with one receive and one transmit queue. */
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

#include "dpdk/arp_nd_socket.h"
#include "dpdk/driver_socket.h"
#include "dpdk/eal.h"
#include "dpdk/interrupt.h"
#include "dpdk/packet_filter.h"
#include "dpdk/packet_socket.h"
#include "dpdk/pci_driver.h"
#include "dpdk/pool.h"
#include "dpdk/spec.h"
#include "error_text.h"
#include "port.h"
#include "xdp/xdp_program.h"

#define BURST 64

/* What a device may hold of each ring; the pool has enough for both and for the bursts. */
#define DESCRIPTORS 1024
#define BURSTS      (4 * BURST)

/* When to see about frames that the kernel does not take: at first, and at most. */
#define REST_NS     50000
#define REST_MAX_NS 1000000

/*
 * How long a port has to be quiet before its interrupt is worth its price, of waking up and of the
 * exit of a virtual machine.
 */
#define ARM_NS 4000000
/*
 * Who relies on the interrupt looks nevertheless: net_vhost gives no frame while DPDK's thread has
 * the queue, be it one that came before the interrupt was on, and interrupts for none that it makes
 * up itself, as after a migration.
 */
#define UNTOLD_NS 1000000000

/* An 802.1Q tag may come on top of the header. */
#define FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)

/* virtio puts a header of its own into a buffer, FCS comes with some. */
#define DRIVER_ROOM 64

#define MTU_DEFAULT RTE_ETHER_MTU
/* Keeps a frame and its headroom within a packet buffer's 16-bit length. */
#define MTU_MAX 32000u

struct dpdk_port {
	struct netdev netdev;
	uint16_t id;
	uint16_t lent_count;
	bool drop_own;   /* the host's own frames come back to us */
	bool wait_taken; /* somebody sleeps on a descriptor of this port's */
	int driver_fd;   /* the driver's own descriptor to sleep on, -1 = none */
	int packet_fd;   /* the packet socket of the driver's rings, -1 = none; it is driver_fd */
	struct {
		uint32_t frames; /* that its ring may hold and nobody sends, at most */
		uint32_t limit;  /* of them */
		uint64_t at;     /* when to see about them, ns */
		uint64_t pause;  /* how long after that to do so again, ns */
	} rest;
	struct dpdk_interrupt interrupt;
	uint64_t moved_at; /* when a frame last came or went, ns */
	uint64_t look_at;  /* when to look for frames of which no interrupt has told, ns */
	struct dpdk_resolution resolution;
	uint32_t mtu;
	uint32_t frame_max;
	struct rte_ether_addr mac; /* of the interface */
	bool far_end;
	bool no_mac; /* all devices of the driver have the same */
	bool filters_vlans;
	struct rte_mempool *pool;
	struct rte_mbuf *lent[BURST];
	uint64_t counters[NETDEV_COUNTER_COUNT];
};

/* By DPDK's port number: the EAL itself lets a device be opened twice. */
static bool is_open[RTE_MAX_ETHPORTS];

static struct dpdk_port *to_dpdk(struct netdev *port)
{
	return (struct dpdk_port *)port;
}

/* --- Receiving */

static bool keep(struct dpdk_port *port, struct rte_mbuf *mbuf)
{
	const struct rte_ether_hdr *ether;

	if (mbuf->nb_segs > 1 && rte_pktmbuf_linearize(mbuf)) {
		port->counters[NETDEV_RX_BAD]++;
		return false;
	}
	ether = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	if (port->drop_own && mbuf->data_len >= sizeof(*ether) &&
	    rte_is_same_ether_addr(&ether->src_addr, &port->mac)) {
		port->counters[NETDEV_RX_OWN]++;
		return false;
	}
	port->counters[NETDEV_RX_FRAMES]++;
	port->counters[NETDEV_RX_BYTES] += mbuf->data_len;
	return true;
}

static void give_back(struct dpdk_port *port)
{
	if (port->lent_count)
		rte_pktmbuf_free_bulk(port->lent, port->lent_count);
	port->lent_count = 0;
}

/*
 * The driver asks the kernel to send once for all frames that it put into its ring. The kernel
 * stops where the socket's send buffer is full (by default with some 45 frames of 4 KiB under way)
 * or the queueing discipline refuses one, and the driver counts the others as sent: they would stay
 * until there is something else to send. Nothing but a system call tells: it is made when there is
 * nothing to receive, so not for each frame of many.
 */
static void send_rest(struct dpdk_port *port, uint64_t now)
{
	uint64_t bytes;
	int rc = packet_socket_send_ring(port->packet_fd, &bytes);

	if (rc != -EAGAIN)
		port->rest.frames = 0;
	else
		port->rest.frames -= RTE_MIN(bytes / port->frame_max, port->rest.frames - 1ull);
	port->rest.at = now + port->rest.pause;
	port->rest.pause = RTE_MIN(2 * port->rest.pause, REST_MAX_NS);
}

/*
 * How many frames the driver may have now. It would wait for a free slot of a full ring, without
 * end where the interface sends nothing, and with it all that the caller does beside.
 */
static uint32_t ring_room(struct dpdk_port *port, uint64_t now)
{
	if (port->packet_fd < 0)
		return UINT32_MAX;
	if (port->rest.frames >= port->rest.limit)
		send_rest(port, now);
	return port->rest.limit - port->rest.frames;
}

/*
 * What is quiet for a moment only is looked at, as a port without a descriptor is, and so is one
 * whose interrupt has not come for a frame yet: nobody but the device knows that it works. What
 * came before the interrupt was on is received now.
 */
static uint16_t before_sleep(struct dpdk_port *port, uint64_t now, struct rte_mbuf **mbufs,
			     uint16_t n)
{
	uint64_t quiet = now - port->moved_at;
	uint16_t count = 0;

	if (quiet < ARM_NS)
		dpdk_interrupt_take(&port->interrupt);
	else if (dpdk_interrupt_arm(&port->interrupt))
		count = rte_eth_rx_burst(port->id, 0, mbufs, n);
	port->look_at =
		now + (dpdk_interrupt_tells(&port->interrupt) ? UNTOLD_NS : netdev_idle_ns(quiet));
	return count;
}

/*
 * A packet socket is readable as long as there is something in its ring, and where it has an error
 * to tell, such as that the interface is down.
 */
static uint16_t burst(struct dpdk_port *port, uint64_t now, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t count = rte_eth_rx_burst(port->id, 0, mbufs, n);

	if (!count && port->wait_taken && port->packet_fd >= 0)
		packet_socket_take_error(port->packet_fd);
	/* A call for each time that the ring is found empty; there is no ring for these few. */
	if (!count && port->resolution.fd >= 0) {
		mbufs[0] = dpdk_resolution_recv(&port->resolution, port->pool);
		count = mbufs[0] != NULL;
	}
	if (!count && port->wait_taken && port->interrupt.fd >= 0)
		count = before_sleep(port, now, mbufs, n);
	if (count) {
		port->moved_at = now;
		dpdk_interrupt_disarm(&port->interrupt);
	}
	return count;
}

/* Goes on while all of a burst was dropped: an empty answer must mean an empty ring. */
static uint32_t dpdk_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames,
			uint32_t n)
{
	struct dpdk_port *port = to_dpdk(netdev);
	struct rte_mbuf *mbufs[BURST];
	uint16_t count, i;

	give_back(port);
	while (n && !port->lent_count) {
		count = burst(port, now, mbufs, n < BURST ? n : BURST);
		if (!count)
			break;
		for (i = 0; i < count; i++) {
			if (keep(port, mbufs[i]))
				port->lent[port->lent_count++] = mbufs[i];
			else
				rte_pktmbuf_free(mbufs[i]);
		}
	}
	if (port->rest.frames && (!port->lent_count || now >= port->rest.at))
		send_rest(port, now);
	for (i = 0; i < port->lent_count; i++)
		frames[i] = (struct netdev_frame){
			.data = rte_pktmbuf_mtod(port->lent[i], const uint8_t *),
			.len = port->lent[i]->data_len,
			.wire_len = port->lent[i]->data_len,
		};
	return port->lent_count;
}

/* --- Sending */

/* Up to BURST frames, none too long; returns how many the device took. */
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

static uint16_t fitting(const struct dpdk_port *port, const struct netdev_frame *frames, uint32_t n)
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
		uint16_t count = fitting(port, frames + done, may - done);
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
		port->moved_at = now;
	if (port->packet_fd >= 0 && done) {
		port->rest.frames += done;
		port->rest.at = now + REST_NS;
		port->rest.pause = REST_NS;
	}
	return done;
}

static uint64_t dpdk_next_deadline(struct netdev *netdev)
{
	const struct dpdk_port *port = to_dpdk(netdev);

	if (port->rest.frames)
		return port->rest.at;
	return port->wait_taken && port->interrupt.fd >= 0 ? port->look_at : UINT64_MAX;
}

/* --- Waiting and closing */

static int dpdk_wait_fd(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);

	if (!port->wait_taken && port->resolution.fd >= 0)
		dpdk_resolution_watch(&port->resolution, port->driver_fd);
	port->wait_taken = true;
	if (port->interrupt.fd >= 0)
		return port->interrupt.fd;
	return port->resolution.fd >= 0 ? port->resolution.wait_fd : port->driver_fd;
}

/* A virtual device goes with its port, so that its name is free again. */
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

	give_back(port);
	is_open[port->id] = false;
	dpdk_interrupt_close(&port->interrupt);
	close_device(port->id);
	dpdk_resolution_close(&port->resolution);
	rte_mempool_free(port->pool);
	free(port);
}

/* --- Asking */

static bool dpdk_mac(const struct netdev *netdev, uint8_t mac[6])
{
	const struct dpdk_port *port = (const struct dpdk_port *)netdev;

	memcpy(mac, port->mac.addr_bytes, RTE_ETHER_ADDR_LEN);
	mac[5] ^= port->far_end;
	return !port->no_mac;
}

static uint32_t dpdk_mtu(const struct netdev *netdev)
{
	return ((const struct dpdk_port *)netdev)->mtu;
}

static int dpdk_hear_all(struct netdev *netdev)
{
	struct dpdk_port *port = to_dpdk(netdev);
	int err = rte_eth_promiscuous_enable(port->id);

	if (!err && port->packet_fd >= 0)
		err = packet_filter_incoming(port->packet_fd);
	/* What has no such mode hears all that there is. */
	return err == -ENOTSUP ? 0 : err;
}

static int dpdk_hear_vlan(struct netdev *netdev, uint16_t vlan)
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

	if (!rte_eth_stats_get(port->id, &stats)) {
		port->counters[NETDEV_RX_MISSED] = stats.imissed + stats.rx_nombuf;
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
	.hear_all = dpdk_hear_all,
	.hear_vlan = dpdk_hear_vlan,
	.page_size = dpdk_page_size,
	.counters = dpdk_counters,
	.close = dpdk_close,
};

/* --- Opening: each step undoes itself where it fails */

/* The interface at the other end of a tap is made with the default MTU. */
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
 * What the device can do; a driver that does not say has 65535. net_tap sends nothing
 * longer than the default, whatever its interface was set to.
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
	port->pool = dpdk_pool_create(name, held + BURSTS, room, pool_use(spec), socket);
	return port->pool ? 0 : -rte_errno;
}

/* Only a device of DPDK's own takes the MTU from here: the others' is that of an interface. */
static int start(struct dpdk_port *port, const struct dpdk_spec *spec, bool interrupt)
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
		      ?: rte_eth_dev_start(port->id);
}

/* uio has no interrupt for each queue, and net_virtio refuses what it could not give. */
static bool wants_interrupt(const struct dpdk_spec *spec)
{
	return spec->kind == DPDK_VHOST ||
	       (spec->kind == DPDK_OTHER && (!spec->pci || pci_driver_is_vfio(spec->devargs)));
}

static int configure(struct dpdk_port *port, const struct dpdk_spec *spec)
{
	const bool wanted = wants_interrupt(spec);
	int err = start(port, spec, wanted || spec->kind == DPDK_TAP);

	if (err && wanted)
		err = start(port, spec, false);
	else if (!err && wanted)
		dpdk_interrupt_open(&port->interrupt, port->id, !spec->pci);
	if (err)
		return err;
	/* Neighbour discovery comes by multicast; net_af_packet lacks the call, see use_packets. */
	rte_eth_allmulticast_enable(port->id);
	return rte_eth_macaddr_get(port->id, &port->mac);
}

/* Other drivers let all VLANs in unless they are asked to filter. */
static bool filters_unasked(const struct rte_eth_dev_info *info)
{
	return !strcmp(info->driver_name, "net_virtio") &&
	       info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
}

static int bring_up(struct dpdk_port *port, const struct dpdk_spec *spec, uint32_t asked)
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
	port->filters_vlans = filters_unasked(&info);
	err = create_pool(port, spec) ?: configure(port, spec);
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

/* A PCI device that started the EAL is there already; so is one that is open. */
static int probe(const char *text, struct dpdk_port *port, const struct dpdk_spec *spec, char *why,
		 uint32_t why_size)
{
	char hint[128];
	int err;

	if (find_device(spec->devargs, &port->id))
		return is_open[port->id] ? netdev_why(why, why_size, -EEXIST,
						      "%s: this process has it open already", text)
					 : 0;
	err = spec->kind == DPDK_AF_XDP ? xdp_program_clear(text, spec->ifindex, why, why_size) : 0;
	if (err)
		return err;
	err = rte_dev_probe(spec->devargs);
	if (err && spec->pci) {
		pci_driver_hint(spec->devargs, rte_eal_has_hugepages(), hint, sizeof(hint));
		return netdev_why(why, why_size, err, "%s: DPDK cannot open it, %s (%s)", text,
				  hint, dpdk_log_reason());
	}
	if (err)
		return netdev_why(why, why_size, err, "%s: DPDK cannot open it: %s", text,
				  dpdk_log_reason());
	if (!find_device(spec->devargs, &port->id))
		return netdev_why(why, why_size, -ENODEV, "%s: is no Ethernet device", text);
	return 0;
}

/*
 * Without the filter all of the host's traffic would go through the ring, both ways, and wake us.
 * Where it is refused, frames are only more.
 */
static int use_packets(struct dpdk_port *port, const struct dpdk_spec *spec, int fd)
{
	port->driver_fd = port->packet_fd = fd;
	/* The other half is for frames under way, which have their slots until they are sent. */
	port->rest.limit = spec->ring / 2;
	if (fd < 0)
		return 0;
	packet_filter_roce(fd);
	return packet_socket_hear_groups(fd, spec->ifindex);
}

/* `fd` is the driver's own socket, where it has one. */
static int use_sockets(struct dpdk_port *port, const struct dpdk_spec *spec, int fd)
{
	if (spec->kind == DPDK_AF_PACKET)
		return use_packets(port, spec, fd);
	if (spec->kind != DPDK_AF_XDP)
		return 0;
	port->driver_fd = fd;
	return dpdk_resolution_open(&port->resolution, spec->ifindex);
}

static int open_device(const char *text, struct dpdk_port *port, uint32_t mtu, char *why,
		       uint32_t why_size)
{
	struct own_sockets others;
	struct dpdk_spec spec;
	int err;

	err = dpdk_spec_parse(text, &spec, why, why_size) ?: dpdk_eal_start(&spec, why, why_size);
	if (err)
		return err;
	port->drop_own = spec.kind == DPDK_AF_PACKET;
	port->far_end = spec.kind == DPDK_TAP;
	port->no_mac = spec.kind == DPDK_VHOST;
	own_sockets_list(&others, spec.kind == DPDK_AF_XDP ? AF_XDP : AF_PACKET);
	err = probe(text, port, &spec, why, why_size);
	if (err)
		return err;
	err = bring_up(port, &spec, mtu) ?: use_sockets(port, &spec, own_sockets_since(&others));
	if (!err) {
		is_open[port->id] = true;
		return 0;
	}
	dpdk_interrupt_close(&port->interrupt);
	close_device(port->id);
	rte_mempool_free(port->pool);
	return netdev_why(why, why_size, err, "%s: DPDK cannot start it: %s (%s)", text,
			  strerror(-err), dpdk_log_reason());
}

int netdev_dpdk_open(const char *text, uint32_t mtu, struct netdev **port, char *why,
		     uint32_t why_size)
{
	struct dpdk_port *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return netdev_why(why, why_size, -ENOMEM, "out of memory");
	new->netdev.ops = &dpdk_ops;
	new->driver_fd = new->packet_fd = -1;
	new->interrupt = DPDK_INTERRUPT_NONE;
	new->resolution = DPDK_RESOLUTION_CLOSED;
	dpdk_log_hold();
	err = open_device(text, new, mtu, why, why_size);
	dpdk_log_release();
	if (!err) {
		*port = &new->netdev;
		return 0;
	}
	dpdk_resolution_close(&new->resolution);
	free(new);
	return err;
}
