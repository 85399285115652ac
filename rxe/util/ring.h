/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Size of rings with free-running indices. */
#ifndef URXE_UTIL_RING_H
#define URXE_UTIL_RING_H

#include <stdint.h>

/* The smallest power of two that is at least n. */
static inline uint32_t ring_slots(uint32_t n)
{
	uint32_t slots = 1;

	while (slots < n)
		slots *= 2;
	return slots;
}

#endif
