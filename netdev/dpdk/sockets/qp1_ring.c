/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/sockets/qp1_ring.h"

#include <stddef.h>

#include <netdev/packet_port.h>

#include "dpdk/sockets/packet_filter.h"

/*
 * A MAD of 256 bytes with all headers is shorter than 384 bytes, so each place is short, and the
 * ring has 6,848 places. The ring needs no UDP GSO packets. With their virtio-net headers it could
 * stop: at a packet that such a header cannot describe (UFO), which a virtual machine on the same
 * bridge can send.
 */
#define PAYLOAD 512

int qp1_ring_open(struct qp1_ring *ring, unsigned int ifindex)
{
	struct packet_port_ring layout;
	int fd = packet_port_create_without_gso(ifindex, PAYLOAD, &layout);

	*ring = (struct qp1_ring){0};
	return fd < 0 ? fd : packet_port_open(fd, &layout, &ring->port);
}

void qp1_ring_close(struct qp1_ring *ring)
{
	packet_port_close(ring->port);
	ring->port = NULL;
}

int qp1_ring_enable(const struct qp1_ring *ring, bool on)
{
	if (!ring->port)
		return 0;
	return on ? packet_filter_qp1(packet_port_fd(ring->port))
		  : packet_port_accept(packet_port_fd(ring->port), NULL, 0);
}

uint32_t qp1_ring_rx(struct qp1_ring *ring, struct netdev_frame *frames, uint32_t n)
{
	struct packet_port_frame received[QP1_RING_BURST];
	uint32_t count;

	if (!ring->port)
		return 0;
	count = packet_port_rx(ring->port, received, n < QP1_RING_BURST ? n : QP1_RING_BURST);
	for (uint32_t i = 0; i < count; i++)
		frames[i] = (struct netdev_frame){
			.data = received[i].data,
			.len = received[i].len,
			.wire_len = received[i].len,
		};
	return count;
}

void qp1_ring_release(struct qp1_ring *ring)
{
	if (ring->port)
		packet_port_release(ring->port);
}

int qp1_ring_fd(const struct qp1_ring *ring)
{
	return ring->port ? packet_port_fd(ring->port) : -1;
}

uint64_t qp1_ring_missed(struct qp1_ring *ring)
{
	if (ring->port)
		ring->missed += packet_port_read_drops(ring->port);
	return ring->missed;
}
