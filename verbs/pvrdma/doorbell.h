/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Doorbells (UAR): writes by which the driver or a program tells the device that it has added
 * requests to a queue, or waits for a completion. */
#ifndef URXE_PVRDMA_DOORBELL_H
#define URXE_PVRDMA_DOORBELL_H

#include <stdint.h>

struct pvrdma;

/*
 * Handles a write of `value` at that byte offset in BAR2. A page reaches only the objects of its
 * context; the device counts and ignores a write for another object, and ignores all while the
 * driver permits no access to memory. 0, or -EINVAL: no doorbell is at the offset.
 */
int pv_doorbell(struct pvrdma *dev, uint32_t offset, uint32_t value);

#endif
