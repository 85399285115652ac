/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Accesses to memory that another process may change at any time: the reader loads each word once,
 * checks the copy, and uses the copy.
 */
#ifndef URXE_VNIC_SHARED_H
#define URXE_VNIC_SHARED_H

#include <stdint.h>

#define vnic_load(p)            __atomic_load_n(p, __ATOMIC_RELAXED)
#define vnic_store(p, value)    __atomic_store_n(p, value, __ATOMIC_RELAXED)
#define vnic_exchange(p, value) __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL)
/* An acquire load of a generation bit makes everything visible that was written before the bit. */
#define vnic_acquire(p)        __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define vnic_publish(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)

/*
 * One side publishes work, then reads whether the other sleeps; the other side publishes its sleep,
 * then looks for work. Only a full fence between the two steps on both sides guarantees that at
 * least one side sees the other's store; release and acquire do not.
 */
static inline void vnic_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* As vnic_fence, for use right after an atomic read-modify-write. On x86-64 it does nothing,
 * because the read-modify-write is a full fence itself. */
static inline void vnic_fence_after_atomic(void)
{
#if defined(__x86_64__)
	__asm__ volatile("" : : : "memory");
#else
	vnic_fence();
#endif
}

/*
 * Requests a cache line for writing, without a wait. On x86-64 compilers turn the builtin into a
 * prefetch for reading unless they may assume PREFETCHW; processors without PREFETCHW ignore the
 * instruction.
 */
static inline void vnic_prefetch_write(const void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* A register of a BAR that both sides map. */
static inline uint32_t *vnic_reg(void *bar, uint32_t offset)
{
	return (uint32_t *)((uint8_t *)bar + offset);
}

#endif
