/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Doorbells (UAR): the driver or a program has added requests to a queue, or waits for a CQ. */
#ifndef URXE_PVRDMA_DOORBELL_H
#define URXE_PVRDMA_DOORBELL_H

#include <stdint.h>

struct pvrdma;

/*
 * A write to BAR2. A page reaches only the objects of its context; the device counts and ignores a
 * write for another object. -EINVAL: no such doorbell.
 */
int pv_doorbell(struct pvrdma *dev, uint32_t offset, uint32_t value);

#endif
