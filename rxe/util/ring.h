/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_RING_H
#define URXE_RING_H

#include <stdint.h>

/* Slots of a ring with free-running indices that holds n entries: a power of two. */
static inline uint32_t ring_slots(uint32_t n)
{
	uint32_t slots = 1;

	while (slots < n)
		slots *= 2;
	return slots;
}

#endif
