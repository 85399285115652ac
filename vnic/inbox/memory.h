/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What receiver, senders and daemon share of an inbox. All of it may change at any time. */
#ifndef URXE_VNIC_INBOX_MEMORY_H
#define URXE_VNIC_INBOX_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/inbox.h>
#include <vnic/regs.h>

#define CACHE_LINE 64

static_assert((VNIC_INBOX_FRAMES & (VNIC_INBOX_FRAMES - 1)) == 0, "positions wrap");

/*
 * The lock word: 0, or who sends now, or CLOSED. It is no mutex of libc: a robust
 * one keeps a list of pointers in the shared memory, which a peer could forge, and
 * glibc would follow them.
 */
#define INBOX_FREE   0u
#define INBOX_CLOSED UINT32_MAX

/*
 * The mask word: bit 0 masks the interrupt, the rest counts unmaskings. A sender
 * first wakes and then masks, with compare-and-exchange: so one that dies between
 * the two has masked nothing, and one that was stopped there for long cannot mask
 * what the receiver has unmasked since.
 */
#define INBOX_MASKED 1u

struct inbox_memory {
	_Alignas(CACHE_LINE) uint32_t lock;
	/*
	 * Frames put in so far, modulo two laps: the place and the generation of the
	 * next one. Under the lock; written after the completion that it counts, so a
	 * sender that died in between leaves one that is published and not counted.
	 */
	uint32_t position;
	_Alignas(CACHE_LINE) uint32_t mask;
	/* Both rings have one entry a buffer, so that one position serves both. */
	_Alignas(CACHE_LINE) struct vmxnet3_rx_desc ring[VNIC_INBOX_FRAMES];
	struct vmxnet3_rx_comp comp[VNIC_INBOX_FRAMES];
	_Alignas(4096) uint8_t shared[VNIC_INBOX_SHARED_SIZE];
	_Alignas(4096) uint8_t buffers[];
};

#define INBOX_LAPS (2u * VNIC_INBOX_FRAMES)

static inline uint32_t inbox_index(uint32_t position)
{
	return position % VNIC_INBOX_FRAMES;
}

static inline bool inbox_gen(uint32_t position)
{
	return position / VNIC_INBOX_FRAMES % 2 == 0 ? VMXNET3_INIT_GEN : !VMXNET3_INIT_GEN;
}

static inline uint32_t inbox_next(uint32_t position)
{
	return (position + 1) % INBOX_LAPS;
}

/* From one buffer to the next; a buffer starts on a cache line. */
static inline uint32_t inbox_stride(uint16_t mtu)
{
	return (VNIC_FRAME_MAX(mtu) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static inline uint64_t inbox_size(uint16_t mtu)
{
	return sizeof(struct inbox_memory) + (uint64_t)VNIC_INBOX_FRAMES * inbox_stride(mtu);
}

/* Whether the completion at a position is of this lap. Acquire: its frame was written before. */
static inline bool inbox_completed(const struct inbox_memory *memory, uint32_t position)
{
	uint32_t gen = __atomic_load_n(&memory->comp[inbox_index(position)].gen, __ATOMIC_ACQUIRE);

	return !!(gen & VMXNET3_CD_GEN) == inbox_gen(position);
}

#endif
