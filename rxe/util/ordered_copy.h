/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A copy into memory that a program may poll. */
#ifndef URXE_UTIL_ORDERED_COPY_H
#define URXE_UTIL_ORDERED_COPY_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* Size of the longest aligned word, 1 to 8 bytes, that ends at `end` and is within the n bytes. */
static inline uint64_t last_word_size(const uint8_t *end, uint64_t n)
{
	uint64_t size = 8;

	while (size > n || (uintptr_t)end % size)
		size /= 2;
	return size;
}

/* Copies a word of 1, 2, 4 or 8 bytes by one store: a memcpy of a variable length may store the
 * last byte before the first. */
static inline void store_word(uint8_t *dst, const uint8_t *src, uint64_t size)
{
	switch (size) {
	case 8: memcpy(dst, src, 8); break;
	case 4: memcpy(dst, src, 4); break;
	case 2: memcpy(dst, src, 2); break;
	default: *dst = *src; break;
	}
}

/*
 * Copies n bytes, at least 1. Programs poll the last byte or the last word of a message, but the
 * stores of one memcpy may become visible in any order. So this function stores the last 8 bytes
 * after all earlier stores of this thread, also those of earlier messages. Of these 8 bytes it
 * stores the last word last.
 */
static inline void copy_last_bytes_last(uint8_t *dst, const uint8_t *src, uint64_t n)
{
	const uint64_t word = n - last_word_size(dst + n, n);
	const uint64_t tail = n > 8 ? n - 8 : 0;

	if (tail)
		memcpy(dst, src, tail);
	atomic_thread_fence(memory_order_release);
	if (word > tail) {
		memcpy(dst + tail, src + tail, word - tail);
		atomic_thread_fence(memory_order_release);
	}
	store_word(dst + word, src + word, n - word);
}

#endif
