/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rings of a vhost device's guest. */
#ifndef URXE_NETDEV_DPDK_VHOST_RING_H
#define URXE_NETDEV_DPDK_VHOST_RING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether the guest of the port has posted a buffer in its ring, which alone must hold the next
 * frame. False also if a frame may take several buffers, if no guest is connected, and for packed
 * rings, of which DPDK does not tell the number of buffers. The caller holds enable_lock
 * (dpdk_interrupt.h), so that DPDK cannot unmap the ring meanwhile.
 */
bool vhost_ring_has_buffer(uint16_t port);

/*
 * Offers one pair of rings to the guest of the QEMU that connects to the socket, because the port
 * reads no more. DPDK would offer 128 pairs, and the guest would send into rings that nobody reads.
 * QEMU itself may still ask for more (queues=2), which a guest without VIRTIO_NET_F_MQ leaves
 * unused. Call right after the device's configuration, which opens the socket. Returns 0 or DPDK's
 * error.
 */
int vhost_ring_offer_one_pair(const char *path);

#endif
