/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ring of receive buffers of a vhost device's guest. */
#ifndef URXE_NETDEV_DPDK_VHOST_RING_H
#define URXE_NETDEV_DPDK_VHOST_RING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether the ring of the port's guest has a buffer, which must hold the next frame alone. False
 * also if a frame may take several buffers, if no guest is connected, and for packed rings, of
 * which DPDK does not tell the number of buffers. The caller has enable_lock (dpdk_interrupt.h), so
 * that the guest cannot leave meanwhile.
 */
bool vhost_ring_has_buffer(uint16_t port);

#endif
