/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/guest_ring.h"

uint32_t pv_ring_pages(uint32_t slots, uint32_t slot_size)
{
	return (uint32_t)(((uint64_t)slots * slot_size + PV_PAGE - 1) >> PV_PAGE_SHIFT);
}

void pv_ring_init(struct pv_ring *ring, struct vnic_guest_memory *memory,
		  struct pv_ring_indices *indices, uint8_t *const *pages, uint32_t slots,
		  uint32_t slot_size)
{
	*ring = (struct pv_ring){.memory = memory,
				 .log = vnic_guest_memory_log(memory),
				 .indices = indices,
				 .pages = pages,
				 .slots = slots,
				 .slot_size = slot_size};
}

/* Copies one of the guest's indices. False: its page is lost. */
static bool read_index(const struct pv_ring *ring, const uint32_t *index, uint32_t *copy)
{
	*copy = __atomic_load_n(index, __ATOMIC_ACQUIRE);
	return vnic_guest_memory_is_intact(ring->memory, index, sizeof(*index));
}

/* Sets *n to the number of slots from index `from` to index `to`. False: an index is out of range,
 * or *n exceeds the ring, so the guest has broken the protocol of rings. */
static bool distance(const struct pv_ring *ring, uint32_t from, uint32_t to, uint32_t *n)
{
	const uint32_t mask = 2 * ring->slots - 1;

	*n = (to - from) & mask;
	return from <= mask && to <= mask && *n <= ring->slots;
}

static uint32_t next_index(const struct pv_ring *ring)
{
	return (ring->index + 1) & (2 * ring->slots - 1);
}

bool pv_ring_filled(const struct pv_ring *ring, uint32_t *n)
{
	uint32_t tail;

	return read_index(ring, &ring->indices->prod_tail, &tail) &&
	       distance(ring, ring->index, tail, n);
}

static void mark_indices(const struct pv_ring *ring)
{
	vnic_dirty_mark(ring->log, ring->indices, sizeof(*ring->indices));
}

void pv_ring_consume(struct pv_ring *ring)
{
	ring->index = next_index(ring);
	__atomic_store_n(&ring->indices->cons_head, ring->index, __ATOMIC_RELEASE);
	mark_indices(ring);
}

bool pv_ring_unread(const struct pv_ring *ring, uint32_t *n)
{
	uint32_t head;

	return read_index(ring, &ring->indices->cons_head, &head) &&
	       distance(ring, head, ring->index, n);
}

void pv_ring_produce(struct pv_ring *ring)
{
	vnic_dirty_mark(ring->log, pv_ring_slot(ring, ring->index), ring->slot_size);
	ring->index = next_index(ring);
	__atomic_store_n(&ring->indices->prod_tail, ring->index, __ATOMIC_RELEASE);
	mark_indices(ring);
}

void pv_ring_reset(struct pv_ring *ring)
{
	ring->index = 0;
	__atomic_store_n(&ring->indices->prod_tail, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->indices->cons_head, 0, __ATOMIC_RELEASE);
	mark_indices(ring);
}
