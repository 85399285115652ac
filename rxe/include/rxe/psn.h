/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packet sequence numbers: 24-bit serial arithmetic (IBA volume 1, 9.7.1).
 *
 * Half of the space lies ahead of a PSN and half behind it; a difference is
 * therefore a signed 24-bit number.
 */
#ifndef URXE_RXE_PSN_H
#define URXE_RXE_PSN_H

#include <stdint.h>

#define URXE_PSN_MASK 0xffffffu

static inline uint32_t urxe_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & URXE_PSN_MASK;
}

/* a - b, in [-2^23, 2^23): negative if a is before b. */
static inline int32_t urxe_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
