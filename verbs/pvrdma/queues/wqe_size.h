/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The size of a work request in a ring: driver, provider and device compute it by the same rule. */
#ifndef URXE_PVRDMA_WQE_SIZE_H
#define URXE_PVRDMA_WQE_SIZE_H

#include <stdint.h>

#include <rxe/types.h>

#include "abi.h"

_Static_assert(sizeof(struct pvrdma_sge) == sizeof(struct urxe_seg),
	       "segments are copied as a whole");

/*
 * The bytes of header and segments, rounded up to a power of two. The caller has checked that
 * max_sge is at most URXE_MAX_SGE, so the result is less than a page.
 */
static inline uint32_t pv_wqe_size(uint32_t header, uint32_t max_sge)
{
	uint32_t size = header + max_sge * (uint32_t)sizeof(struct pvrdma_sge), power = 1;

	while (power < size)
		power *= 2;
	return power;
}

/* Whether a queue may have so many slots: a power of two, at most URXE_MAX_WR. */
static inline int pv_is_queue_size(uint32_t slots)
{
	return slots && slots <= URXE_MAX_WR && !(slots & (slots - 1));
}

#endif
