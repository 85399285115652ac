/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxed's part of a packet port: the socket, without its receive ring. */
#include <errno.h>
#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <netdev/packet_port.h>

#include "packet/packet_ring.h"
#include "packet/packet_socket.h"

/* Blocks of a ring: 4 MiB, or 960 frames of an MTU of 4200, that of urxed. */
#define RING_BLOCKS 64

/* Limit of the queue for packets of up to 64 KiB; the kernel doubles it for its own structures. */
#define QUEUE_BYTES (2 << 20)

bool packet_port_kernel_has_gso(void)
{
	unsigned int major, minor;
	struct utsname name;

	return !uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 2));
}

/*
 * Sets the socket's options for UDP GSO packets, if the kernel has them. With virtio-net headers
 * the socket sends and receives such packets (gso_packet.h). Packets that are longer than a place
 * of the ring come to the socket's queue (packet(7), PACKET_COPY_THRESH).
 */
static int allow_gso(int fd)
{
	if (!packet_port_kernel_has_gso())
		return 0;
	return packet_socket_set(fd, PACKET_VNET_HDR, 1)
		       ?: packet_socket_set(fd, PACKET_COPY_THRESH, 1)
		       ?: packet_socket_widen_queue(fd, QUEUE_BYTES);
}

bool packet_port_queue_is_short(int fd)
{
	int bytes = 0;
	socklen_t length = sizeof(bytes);

	return packet_port_kernel_has_gso() &&
	       !getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length) && bytes < 2 * QUEUE_BYTES;
}

/*
 * TPACKET_V2, because it shows each frame at once; V3 shows blocks of frames after a timeout.
 */
static int create_port(unsigned int ifindex, uint32_t mtu, const uint8_t *mac, bool gso,
		       struct packet_port_ring *ring)
{
	int fd = packet_socket_create(), rc;

	if (fd < 0)
		return fd;
	*ring = (struct packet_port_ring){packet_ring_frame_size(mtu), RING_BLOCKS};
	rc = packet_socket_set(fd, PACKET_VERSION, TPACKET_V2)
		     ?: (gso ? allow_gso(fd) : 0)
		     ?: packet_port_accept(fd, NULL, 0)
		     ?: packet_socket_bind(fd, ifindex)
		     ?: (mac ? packet_socket_add_mac(fd, ifindex, mac) : 0);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int packet_port_create(unsigned int ifindex, uint32_t mtu, const uint8_t *mac,
		       struct packet_port_ring *ring)
{
	return create_port(ifindex, mtu, mac, true, ring);
}

int packet_port_create_without_gso(unsigned int ifindex, uint32_t mtu,
				   struct packet_port_ring *ring)
{
	return create_port(ifindex, mtu, NULL, false, ring);
}
