/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/vhost_features.h"

#include <linux/virtio_net.h>

#include <rte_eth_vhost.h>
#include <rte_ether.h>
#include <rte_vhost.h>

/* With one of these a guest's buffers are long or chained. */
#define LONG_BUFFERS                                                              \
	(RTE_BIT64(VIRTIO_NET_F_MRG_RXBUF) | RTE_BIT64(VIRTIO_NET_F_GUEST_TSO4) | \
	 RTE_BIT64(VIRTIO_NET_F_GUEST_TSO6) | RTE_BIT64(VIRTIO_NET_F_GUEST_UFO))

uint32_t vhost_frame_max(uint16_t port)
{
	int vid = rte_eth_vhost_get_vid_from_port_id(port);
	uint16_t mtu = 0;
	uint64_t features;

	if (vid < 0 || rte_vhost_get_negotiated_features(vid, &features) || features & LONG_BUFFERS)
		return UINT32_MAX;
	rte_vhost_get_mtu(vid, &mtu);
	return RTE_ETHER_HDR_LEN + RTE_MAX(mtu, RTE_ETHER_MTU);
}
