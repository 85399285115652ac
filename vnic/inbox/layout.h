/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shared memory of an inbox, for receiver, senders and daemon. Every word may change at any
 * time.
 */
#ifndef URXE_VNIC_INBOX_LAYOUT_H
#define URXE_VNIC_INBOX_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/inbox.h>
#include <vnic/regs.h>

#define CACHE_LINE 64

static_assert((VNIC_INBOX_FRAMES & (VNIC_INBOX_FRAMES - 1)) == 0, "positions wrap");

/*
 * The lock word: 0, the number of the process that holds the lock, or CLOSED. It is no mutex of
 * libc: a robust mutex keeps a list of pointers in the shared memory, which a peer could forge and
 * glibc would follow.
 */
#define INBOX_FREE   0u
#define INBOX_CLOSED UINT32_MAX

/*
 * The mask word: bit 0 masks the interrupt, the other bits count unmaskings. A sender first writes
 * to the eventfd and then masks, by compare-and-exchange. So a sender that dies between the two has
 * masked nothing, and a sender that was stopped there cannot mask an interrupt that the receiver
 * has unmasked since.
 */
#define INBOX_MASKED        1u
#define INBOX_UNMASKINGS_AT 1

struct inbox_memory {
	_Alignas(CACHE_LINE) uint32_t lock;
	/*
	 * The number of frames so far: the place and the generation of the next frame. Written
	 * under the lock, after the completion that it counts. A sender that dies in between leaves
	 * a published frame that is not counted; the next sender counts it.
	 */
	uint32_t position;
	_Alignas(CACHE_LINE) uint32_t mask;
	/* Written by the receiver: senders may put frames before this position. */
	_Alignas(CACHE_LINE) uint32_t room;
	_Alignas(4096) uint8_t slots[];
};

/*
 * A frame, with its completion in front of it: a short frame and its completion come to the
 * receiver in one cache line. Two bytes and an Ethernet header align the rest of the frame.
 */
struct inbox_slot {
	uint16_t completion; /* length of the frame, and INBOX_GEN in every other lap */
	uint8_t frame[];
};

#define INBOX_GEN 0x8000u
#define INBOX_REFERENCE                                                                         \
	0x4000u /* pieces, if any, and their struct vnic_reference follow the frame; the length \
		   includes them */
#define INBOX_LEN 0x3fffu

static_assert(VNIC_FRAME_MAX(VMXNET3_MAX_MTU) <= INBOX_LEN, "lengths fit");

static inline uint32_t inbox_index(uint32_t position)
{
	return position % VNIC_INBOX_FRAMES;
}

static inline uint32_t inbox_gen(uint32_t position)
{
	return position / VNIC_INBOX_FRAMES % 2 ? 0 : INBOX_GEN;
}

/* Whether a frame of len bytes and its completion are in the first line of their slot. */
static inline bool inbox_one_line(uint32_t len)
{
	return sizeof(struct inbox_slot) + len <= CACHE_LINE;
}

/* The distance of two slots; a slot starts on a cache line. */
static inline uint32_t inbox_stride(uint16_t mtu)
{
	return ((uint32_t)sizeof(struct inbox_slot) + VNIC_FRAME_MAX(mtu) + CACHE_LINE - 1) /
	       CACHE_LINE * CACHE_LINE;
}

static inline struct inbox_slot *inbox_slot(struct inbox_memory *memory, uint32_t stride,
					    uint32_t position)
{
	return (struct inbox_slot *)(memory->slots + (uint64_t)inbox_index(position) * stride);
}

static inline uint64_t inbox_size(uint16_t mtu)
{
	return sizeof(struct inbox_memory) + (uint64_t)VNIC_INBOX_FRAMES * inbox_stride(mtu);
}

/*
 * Whether a frame is at a position; *completion is then its completion without the generation bit.
 * Acquire: the sender wrote the frame before.
 */
static inline bool inbox_completed(const struct inbox_slot *slot, uint32_t position,
				   uint32_t *completion)
{
	uint32_t seen = __atomic_load_n(&slot->completion, __ATOMIC_ACQUIRE);

	*completion = seen & ~INBOX_GEN;
	return (seen & INBOX_GEN) == inbox_gen(position);
}

#endif
