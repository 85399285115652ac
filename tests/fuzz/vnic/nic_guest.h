/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For fuzz targets: a vmxnet3 device with an honest driver's queues, and the actions of a hostile
 * guest and of its host, which the bytes of the input choose.
 */
#ifndef URXE_FUZZ_NIC_GUEST_H
#define URXE_FUZZ_NIC_GUEST_H

#include <stdbool.h>

#include <vnic/device.h>

#include "script.h"

#define NIC_QUEUES 3
#define NIC_REGION 0xa000u /* bytes of each region of memory */

struct nic_ring {
	uint64_t addr;
	uint32_t next;
	bool gen;
};

struct nic_guest {
	struct script in;
	struct vnic_region regions[3];
	uint8_t *bars;
	struct vnic_device *dev;
	struct nic_ring tx[NIC_QUEUES], rx[NIC_QUEUES][2];
	uint64_t interrupts;
	bool meddling; /* the guest acts during interrupts */
};

/* Makes the memory, of exactly the size that the device knows, and the device. */
void nic_guest_open(struct nic_guest *g, bool shared_mac);
/* The driver resets and activates the device. `choice` has its revision, features and mode. */
void nic_guest_start(struct nic_guest *g, uint8_t choice);
void nic_guest_step(struct nic_guest *g);
/* After a reset the device must work with an honest driver. */
void nic_guest_recover(struct nic_guest *g);
void nic_guest_close(struct nic_guest *g);

#endif
