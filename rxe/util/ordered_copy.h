/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A copy into memory that a program may poll. */
#ifndef URXE_UTIL_ORDERED_COPY_H
#define URXE_UTIL_ORDERED_COPY_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/*
 * Programs poll the last byte of a message. Stores of one memcpy may become visible in any order,
 * so the last 8 bytes are stored after the rest.
 */
static inline void copy_last_bytes_last(uint8_t *dst, const uint8_t *src, uint64_t n)
{
	if (n > 8) {
		memcpy(dst, src, n - 8);
		atomic_thread_fence(memory_order_release);
		memcpy(dst + n - 8, src + n - 8, 8);
	} else {
		memcpy(dst, src, n);
	}
}

#endif
