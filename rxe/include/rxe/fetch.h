/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_FETCH_H
#define URXE_FETCH_H

#include <stddef.h>
#include <stdint.h>

#define URXE_CACHE_LINE 64

/*
 * Has `size` bytes brought to the caches, and waits for none of them. To fetch does no harm
 * whatever the address: it is not accessed, and there need not be anything.
 */
static inline void urxe_fetch(const void *from, size_t size)
{
	uintptr_t line = (uintptr_t)from & ~(uintptr_t)(URXE_CACHE_LINE - 1);

	for (; line < (uintptr_t)from + size; line += URXE_CACHE_LINE)
		__builtin_prefetch((const void *)line);
}

#endif
