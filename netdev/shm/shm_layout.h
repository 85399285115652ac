/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory that a shared-memory port and its peer map: a header with two rings, slots for frames
 * to the peer, and the peer's own packet buffers for frames to the port.
 *
 * A ring position counts entries and wraps at 2^32. The producer alone writes `head`, the consumer
 * alone `tail`. The consumer sets `waiting` to 1 before it sleeps; a producer that finds 1 sets it
 * to 0 and wakes the consumer.
 */
#ifndef URXE_NETDEV_SHM_SHM_LAYOUT_H
#define URXE_NETDEV_SHM_SHM_LAYOUT_H

#include <netdev/shm.h>
#include <stdalign.h>

#define SHM_LINE  64u /* bytes of a cache line */
#define SHM_MASK  (NETDEV_SHM_DEPTH - 1)
#define SHM_BURST 64u /* frames that one call moves, at most */

/* An Ethernet header and one 802.1Q tag. */
#define SHM_FRAME_OVERHEAD (14u + 4u)
/* Bytes of the peer's packet buffer besides the frame: DPDK's headers and alignment. */
#define SHM_BUFFER_OVERHEAD 640u
/* DPDK's drivers want buffers of at least so many bytes. */
#define SHM_BUFFER_LEAST 2048u

struct shm_entry {
	uint32_t offset; /* of the frame, from the start of the memory */
	uint32_t len;
};

struct shm_ring {
	alignas(SHM_LINE) uint32_t head;
	alignas(SHM_LINE) uint32_t tail;
	alignas(SHM_LINE) uint32_t waiting;
	alignas(SHM_LINE) struct shm_entry entries[NETDEV_SHM_DEPTH];
};

struct shm_memory {
	uint32_t size; /* bytes of the memory; the port writes `size` to `buffers` once */
	uint32_t mtu;
	uint32_t stride;  /* bytes of a slot */
	uint32_t slots;   /* offset of the slots for frames to the peer */
	uint32_t buffers; /* offset of the peer's packet buffers, up to the end of the memory */
	uint32_t ready;   /* the peer sets it to 1 */
	uint64_t counters[NETDEV_COUNTER_COUNT]; /* the peer writes them */
	struct shm_ring to_port, to_peer;
	uint32_t link_down; /* the peer sets it to 1 while its device has no link */
};

static inline uint32_t shm_round(uint32_t n, uint32_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static inline uint32_t shm_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void shm_store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline void shm_write_entry(struct shm_ring *ring, uint32_t at, uint32_t offset,
				   uint32_t len)
{
	__atomic_store_n(&ring->entries[at & SHM_MASK].offset, offset, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->entries[at & SHM_MASK].len, len, __ATOMIC_RELAXED);
}

/* Returns a copy of the entry, by one read of each word: the other side may write at any time. */
static inline struct shm_entry shm_read_entry(const struct shm_ring *ring, uint32_t at)
{
	return (struct shm_entry){
		__atomic_load_n(&ring->entries[at & SHM_MASK].offset, __ATOMIC_RELAXED),
		__atomic_load_n(&ring->entries[at & SHM_MASK].len, __ATOMIC_RELAXED),
	};
}

/*
 * Called after the producer has published entries. True: the producer has to wake the consumer. The
 * fence orders the store of `head` before the load of `waiting`; shm_set_waiting orders the store
 * of `waiting` before the consumer's load of `head`.
 */
static inline bool shm_take_waiting(struct shm_ring *ring)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&ring->waiting, __ATOMIC_RELAXED))
		return false;
	return __atomic_exchange_n(&ring->waiting, 0, __ATOMIC_RELAXED) == 1;
}

/* Called before the consumer sleeps. The consumer then looks at `head` once more: a producer that
 * stored it before `waiting` was set does not wake the consumer. */
static inline void shm_set_waiting(struct shm_ring *ring)
{
	__atomic_store_n(&ring->waiting, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
