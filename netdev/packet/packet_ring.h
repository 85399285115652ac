/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sizes of the receive ring of a packet port, for urxed and the process. */
#ifndef URXE_NETDEV_PACKET_PACKET_RING_H
#define URXE_NETDEV_PACKET_PACKET_RING_H

#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <stdint.h>

#include <netdev/packet_port.h>

/*
 * Offset of the network header in a place, by the kernel's tpacket_rcv(): the kernel's headers, and
 * 16 bytes for a link-layer header, aligned; then a struct virtio_net_hdr.
 */
#define PACKET_RING_NETWORK \
	(TPACKET_ALIGN(TPACKET2_HDRLEN + 16) + (uint32_t)sizeof(struct virtio_net_hdr))
#define PACKET_RING_VLAN 4

static inline uint32_t packet_ring_frame_size(uint32_t mtu)
{
	return TPACKET_ALIGN(PACKET_RING_NETWORK + PACKET_RING_VLAN + mtu);
}

/* Places in one block. */
static inline uint32_t packet_ring_per_block(const struct packet_port_ring *ring)
{
	return PACKET_PORT_RING_BLOCK_SIZE / ring->frame_size;
}

static inline uint32_t packet_ring_frames(const struct packet_port_ring *ring)
{
	return packet_ring_per_block(ring) * ring->blocks;
}

#endif
