/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A port on a DPDK ethdev device, with one receive and one transmit queue, for the daemon's
 * uplinks: what its files share. A port belongs to one thread.
 */
#ifndef URXE_NETDEV_DPDK_DPDK_PORT_H
#define URXE_NETDEV_DPDK_DPDK_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include <netdev/netdev.h>

#include "dpdk/dpdk_interrupt.h"
#include "dpdk/sockets/driver_fds.h"
#include "dpdk/sockets/machine_socket.h"
#include "dpdk/sockets/qp1_ring.h"
#include "netdev_ops.h"
#include "xdp/arp_nd_socket.h"

/* Most frames of one call of the driver. */
#define DPDK_BURST 64

struct dpdk_port {
	struct netdev netdev;
	uint16_t id;
	uint16_t received_count;
	bool drop_own;        /* drop frames from the port's own MAC: a bridge sent them back */
	bool wait_taken;      /* netdev_wait_fd was called */
	unsigned int ifindex; /* of the kernel's interface below af_packet and af_xdp */
	int driver_fd;        /* the driver's own descriptor for poll(2); -1 = none */
	int packet_fd;        /* af_packet: the same descriptor, the socket of its rings; else -1 */
	/* af_packet: frames that the kernel may have left in the transmit ring. Times in ns. */
	struct {
		uint32_t frames;     /* frames that the kernel may have left in the ring, at most */
		uint32_t limit;      /* maximum of `frames` */
		uint64_t sent_bytes; /* that the kernel has sent of these frames, mod frame_max */
		uint64_t at;         /* time of the next attempt to send these frames */
		uint64_t pause;      /* from that attempt to the next one */
		bool down;           /* the last attempt found the interface down */
	} backlog;
	struct dpdk_interrupt interrupt;
	/* Times, ns. */
	uint64_t active_at;   /* when the port last received or sent a frame */
	uint64_t errors_at;   /* the port does not read the sockets' errors before this time */
	uint64_t poll_at;     /* when the port polls next, if no interrupt comes */
	uint64_t guest_until; /* until then the port polls each GUEST_POLL_NS, because a vhost
				 guest or its queues have just come or gone, and the first frames
				 may cause no interrupt */
	struct arp_nd_socket arp_nd;    /* af_xdp; else closed */
	struct qp1_ring qp1;            /* af_packet, and af_xdp with urxe's program; else closed */
	struct machine_socket machines; /* af_packet, and af_xdp; else closed */
	int wait_fd;            /* epoll set of driver_fd and of the other sockets; -1 = not open */
	struct xdp_passed *xdp; /* af_xdp: xdp_program_map_passed; else NULL */
	int xdp_program;        /* xdp_program_leave_veth; -1 = none */
	uint32_t mtu;
	uint32_t frame_max;
	struct rte_ether_addr mac;
	bool is_tap;
	bool lost;         /* tap: the kernel has removed the interface */
	bool reports_link; /* the driver reports a virtual machine's connection, or a carrier */
	bool promiscuous;  /* netdev_set_promiscuous */
	bool is_vhost;     /* the peer is a guest; all such devices have one MAC */
	bool filters_vlans;
	bool has_groups;                             /* the driver has a list of multicast MACs */
	struct rte_ether_addr groups[NETDEV_GROUPS]; /* the MACs of netdev_add_group */
	uint32_t n_groups;
	struct packet_filter_macs host; /* the MACs of netdev_add_mac */
	struct rte_mempool *pool;
	struct rte_mbuf *received[DPDK_BURST]; /* frames of the last netdev_rx */
	uint64_t missed; /* af_packet: frames lost because the ring was full */
	uint64_t counters[NETDEV_COUNTER_COUNT];
	struct driver_fds driver_fds; /* that the driver opened when it started */
};

static inline struct dpdk_port *to_dpdk(struct netdev *port)
{
	return (struct dpdk_port *)port;
}

extern const struct netdev_ops dpdk_port_ops;

/* --- Frames: dpdk_rx.c and dpdk_tx.c. */

uint32_t dpdk_port_rx(struct netdev *netdev, uint64_t now, struct netdev_frame *frames, uint32_t n);
/* Frees the frames of the last dpdk_port_rx. */
void dpdk_port_free_received(struct dpdk_port *port);

uint32_t dpdk_port_tx(struct netdev *netdev, uint64_t now, const struct netdev_frame *frames,
		      uint32_t n);
/* Makes the driver send frames that the kernel left in its ring, and take back the buffers of sent
 * frames. net_af_xdp does both only when it sends, so a port without traffic would keep them. */
void dpdk_port_reclaim(struct dpdk_port *port);
/* Makes the kernel send frames that it left in the transmit ring of the packet socket. */
void dpdk_port_send_ring(struct dpdk_port *port, uint64_t now);
void dpdk_port_link_returned(struct netdev *netdev);

/* --- Which frames the port receives: dpdk_filter.c. 0, or a negative errno value. */

/*
 * Sets the filters of the port's ring and of the ring for QP1. n blocks: the rings receive all
 * RoCE, except to queue pairs of the blocks. Of a promiscuous port n is 0, and the rings leave out
 * the RoCE that the socket for machines receives. While one filter is set and the other is not yet,
 * a packet to QP1 may come to both rings; its receiver recognizes the duplicate by the transaction
 * ID. 0, or a negative errno value.
 */
int dpdk_port_receive_roce(const struct dpdk_port *port, const uint16_t *blocks, uint32_t n);
/*
 * Sets where packets to QP1 come: to the ring for QP1 if `use_ring`, else to the AF_XDP socket. If
 * the ring is not open or cannot be enabled, they come to the AF_XDP socket. Only for an af_xdp
 * port with urxe's XDP program.
 */
void dpdk_port_set_qp1_ring(const struct dpdk_port *port, bool use_ring);

/* Each does what netdev.h says of the function whose name has netdev_ instead of dpdk_port_. */
int dpdk_port_set_allmulticast(struct netdev *netdev);
int dpdk_port_set_promiscuous(struct netdev *netdev, bool on);
bool dpdk_port_can_exclude_qpns(struct netdev *netdev);
int dpdk_port_exclude_qpns(struct netdev *netdev, const uint16_t *blocks, uint32_t n);
int dpdk_port_admit_qpns(struct netdev *netdev, const uint16_t *blocks, uint32_t n);
int dpdk_port_add_mac(struct netdev *netdev, const uint8_t mac[6]);
int dpdk_port_add_group(struct netdev *netdev, const uint8_t mac[6]);
int dpdk_port_add_vlan(struct netdev *netdev, uint16_t vlan);

/* --- Closing: dpdk_port.c. */

/* Closes the sockets beside the driver's own, and their epoll set. */
void dpdk_port_close_sockets(struct dpdk_port *port);
/* Closes the device and the descriptors that its driver left open, and removes the device from
 * DPDK, so that the name of a virtual one is free again. */
void dpdk_port_close_device(struct dpdk_port *port);
/* Whether this process has a port with DPDK's number `id`. The EAL does not refuse a second one. */
bool dpdk_port_is_open(uint16_t id);
void dpdk_port_set_open(uint16_t id, bool open);

#endif
