/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A packet socket of an af_packet or af_xdp port for frames that the switch bridges to virtual
 * machines: RoCE, TCP and the rest, but not those that the port receives in other ways
 * (packet_filter_other_macs). The kernel may leave the checksum of such a frame unfinished (a
 * sender on this machine), and may have joined several frames (GRO and GSO). The socket returns the
 * frames that a NIC would have sent. DPDK's driver of af_packet would truncate a joined packet to
 * the frame size of its ring, and could not tell a short joined packet from a single frame.
 */
#ifndef URXE_NETDEV_DPDK_SOCKETS_MACHINE_SOCKET_H
#define URXE_NETDEV_DPDK_SOCKETS_MACHINE_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/netdev.h>
#include <netdev/segmenter.h>

#include "dpdk/sockets/packet_filter.h"

struct machine_packets; /* received packets, and the frames of the last call */

struct machine_socket {
	int fd;                          /* -1 = not open */
	bool on;                         /* it receives frames */
	bool drained;                    /* it is off, and its last packet was returned */
	struct machine_packets *packets; /* NULL: not enabled yet */
	uint64_t bad;    /* packets dropped: too long, or no virtio-net header describes them */
	uint64_t missed; /* packets lost because the socket's queue was full */
};

#define MACHINE_SOCKET_CLOSED ((struct machine_socket){.fd = -1})

/* The socket receives nothing before machine_socket_enable. 0, or a negative errno value. */
int machine_socket_open(struct machine_socket *socket);
void machine_socket_close(struct machine_socket *socket);
/*
 * From now on the socket receives the interface's frames to virtual machines
 * (packet_filter_other_macs). xdp: the port is af_xdp, so the socket also receives the RoCE frames
 * that the XDP program leaves to the kernel. 0, also if the socket is not open, or a negative errno
 * value.
 */
int machine_socket_enable(struct machine_socket *socket, unsigned int ifindex, bool xdp,
			  const struct packet_filter_macs *host);
/* The socket receives no further frames; those in its queue stay. Errors as of
 * machine_socket_enable. */
int machine_socket_disable(struct machine_socket *socket);
/*
 * Returns up to n frames, which stay valid until the next call. Takes one system call for 16
 * packets, and none once the socket is off and its queue is empty. The port calls this also while
 * its own ring has frames, so that these do not delay frames to machines.
 */
uint32_t machine_socket_rx(struct machine_socket *socket, struct netdev_frame *frames, uint32_t n);
uint64_t machine_socket_missed(struct machine_socket *socket);

#endif
