/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What GET_STATS tells: each queue's frames, by the kind of their destination. */
#include "nic.h"
#include "shared.h"

/* Both kinds of queues have the same places for what is counted here. */
static_assert((int)UPT1_TX_UCAST == (int)UPT1_RX_UCAST, "");
static_assert((int)UPT1_TX_MCAST == (int)UPT1_RX_MCAST, "");
static_assert((int)UPT1_TX_BCAST == (int)UPT1_RX_BCAST, "");

static bool broadcast(const uint8_t *mac)
{
	return (mac[0] & mac[1] & mac[2] & mac[3] & mac[4] & mac[5]) == 0xff;
}

void vnic_device_count(uint64_t stats[], const uint8_t *data, uint32_t len)
{
	uint32_t kind = UPT1_TX_UCAST;

	if (data[0] & 1)
		kind = broadcast(data) ? UPT1_TX_BCAST : UPT1_TX_MCAST;
	stats[kind]++;
	stats[kind + 1] += len;
}

void vnic_device_write_stats(struct vnic_device *dev)
{
	for (uint32_t i = 0; i < dev->tx_queues; i++)
		for (uint32_t j = 0; j < UPT1_TX_STATS; j++)
			vnic_store(&dev->tx[i].shared->stats[j], dev->tx[i].stats[j]);
	for (uint32_t i = 0; i < dev->rx_queues; i++)
		for (uint32_t j = 0; j < UPT1_RX_STATS; j++)
			vnic_store(&dev->rx[i].shared->stats[j], dev->rx[i].stats[j]);
}
