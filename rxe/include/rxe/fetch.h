/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Prefetching of memory. */
#ifndef URXE_RXE_FETCH_H
#define URXE_RXE_FETCH_H

#include <stddef.h>
#include <stdint.h>

#define URXE_CACHE_LINE 64

/* Prefetches `size` bytes without waiting. The address need not be valid: a prefetch never faults.
 */
static inline void urxe_fetch(const void *from, size_t size)
{
	uintptr_t line = (uintptr_t)from & ~(uintptr_t)(URXE_CACHE_LINE - 1);

	for (; line < (uintptr_t)from + size; line += URXE_CACHE_LINE)
		__builtin_prefetch((const void *)line);
}

#endif
