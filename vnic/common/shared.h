/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Words that another process may change at any time: each is loaded once, into
 * a copy that is then checked and used.
 */
#ifndef URXE_VNIC_SHARED_H
#define URXE_VNIC_SHARED_H

#include <stdint.h>

#define vnic_load(p)            __atomic_load_n(p, __ATOMIC_RELAXED)
#define vnic_store(p, value)    __atomic_store_n(p, value, __ATOMIC_RELAXED)
#define vnic_exchange(p, value) __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL)
/* A generation bit seen with acquire brings what was written before it was published. */
#define vnic_acquire(p)        __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define vnic_publish(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)

/*
 * Between "I published work" and "do you sleep?" on one side, and "I sleep" and
 * "is there work?" on the other. Only a full fence on both sides makes at least
 * one of them see the other's store; release and acquire do not.
 */
static inline void vnic_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* The same behind an atomic read-modify-write, which on x86-64 is a full fence itself. */
static inline void vnic_fence_after_atomic(void)
{
#if defined(__x86_64__)
	__asm__ volatile("" : : : "memory");
#else
	vnic_fence();
#endif
}

/*
 * Asks for a cache line that is to be written, and does not wait for it. On x86-64 compilers make
 * a prefetch for reading of the builtin, unless they are told that all processors have the
 * instruction; one that has not does nothing.
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
