/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes each queue's statistics to the driver's memory: frames, by their kind of destination. */
#include "nic.h"
#include "shared.h"

void vnic_device_write_stats(struct vnic_device *dev)
{
	if (dev->no_master)
		return;
	for (uint32_t i = 0; i < dev->tx_queues; i++)
		for (uint32_t j = 0; j < UPT1_TX_STATS; j++)
			vnic_store(&dev->tx[i].shared->stats[j], dev->tx[i].stats[j]);
	for (uint32_t i = 0; i < dev->rx_queues; i++)
		for (uint32_t j = 0; j < UPT1_RX_STATS; j++)
			vnic_store(&dev->rx[i].shared->stats[j], dev->rx[i].stats[j]);
}
