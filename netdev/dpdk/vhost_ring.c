/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dpdk/vhost_ring.h"

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include <rte_eth_vhost.h>
#include <rte_vhost.h>

#define RECEIVE_RING 0
#define EXCLUDED     (RTE_BIT64(VIRTIO_NET_F_MRG_RXBUF) | RTE_BIT64(VIRTIO_F_RING_PACKED))

bool vhost_ring_has_buffer(uint16_t port)
{
	int vid = rte_eth_vhost_get_vid_from_port_id(port);
	uint64_t features;

	return vid >= 0 && !rte_vhost_get_negotiated_features(vid, &features) &&
	       !(features & EXCLUDED) && rte_vhost_avail_entries(vid, RECEIVE_RING);
}

int vhost_ring_offer_one_pair(const char *path)
{
	return rte_vhost_driver_disable_features(path, RTE_BIT64(VIRTIO_NET_F_MQ));
}
