/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The shared region (DSR) in guest memory: in it the driver writes where the command slot, the
 * response slot and the event rings are, and the device writes its capabilities. */
#ifndef URXE_PVRDMA_SHARED_REGION_H
#define URXE_PVRDMA_SHARED_REGION_H

#include <stdint.h>

struct pvrdma;

/* Reads the region at a guest address once, opens the rings, and writes the capabilities. 0;
 * -EINVAL: a member is out of range, or the driver is older than PV_VERSION; -EFAULT: an address is
 * no memory; -ENOMEM. After an error no ring is open. */
int pv_shared_region_load(struct pvrdma *dev, uint64_t addr);
/* Closes the rings, and forgets the region. */
void pv_shared_region_unload(struct pvrdma *dev);

#endif
