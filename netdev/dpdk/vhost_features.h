/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The virtio features of a vhost device's guest. */
#ifndef URXE_NETDEV_DPDK_VHOST_FEATURES_H
#define URXE_NETDEV_DPDK_VHOST_FEATURES_H

#include <stdint.h>

/*
 * Returns the length of the longest frame that each receive buffer of the port's guest must hold
 * (virtio 1.2, 5.1.6.3.1), or UINT32_MAX: a frame may take several buffers, or no guest is
 * connected. The caller has enable_lock (dpdk_interrupt.h), so that the guest cannot leave
 * meanwhile.
 */
uint32_t vhost_frame_max(uint16_t port);

#endif
