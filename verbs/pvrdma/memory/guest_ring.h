/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rings in guest memory. A ring has 2^n slots of 2^m bytes in a list of pages, so no slot crosses a
 * page. Its two indices, modulo twice the number of slots, lie in a header page: the side that
 * fills slots writes prod_tail, the other side cons_head. The device keeps a copy of its own index,
 * and reads only the guest's index from the page.
 */
#ifndef URXE_PVRDMA_GUEST_RING_H
#define URXE_PVRDMA_GUEST_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <vnic/dirty_log.h>
#include <vnic/guest_memory.h>

#include "abi.h"

/* Copies bytes that the guest may change meanwhile; the compiler must not read them again. */
static inline void pv_copy_once(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
	__asm__ volatile("" : : : "memory");
}

/* The pages of a ring or of the two rings of a QP, as pointers in this process. The first one is
 * the header page. */
struct pv_pages {
	uint8_t **page; /* NULL: none; to be freed with free(3) */
	uint32_t n;
};

/* The header page, which begins with the indices of the rings. */
static inline struct pv_ring_state *pv_pages_header(const struct pv_pages *pages)
{
	return (struct pv_ring_state *)pages->page[0];
}

struct pv_ring {
	struct vnic_guest_memory *memory; /* the guest memory in which the ring is */
	struct vnic_dirty_log *log;       /* the log of changed pages of that memory */
	struct pv_ring_indices
		*indices; /* in the header page; NULL: no ring, or its memory is gone */
	uint8_t *const *pages;
	uint32_t slots;
	uint32_t slot_size;
	uint32_t index; /* the device's own index, modulo twice `slots` */
};

/* The number of pages that the slots need, without the header page. */
uint32_t pv_ring_pages(uint32_t slots, uint32_t slot_size);
/* Sets *ring for a new ring of these pages; `pages` must live as long. The device's index is 0, as
 * the driver's. Does not access guest memory. */
void pv_ring_init(struct pv_ring *ring, struct vnic_guest_memory *memory,
		  struct pv_ring_indices *indices, uint8_t *const *pages, uint32_t slots,
		  uint32_t slot_size);

/* The slot of an index. */
static inline uint8_t *pv_ring_slot(const struct pv_ring *ring, uint32_t index)
{
	uint64_t offset = (uint64_t)(index & (ring->slots - 1)) * ring->slot_size;

	return ring->pages[offset >> PV_PAGE_SHIFT] + (offset & (PV_PAGE - 1));
}

/* Call it after an access to a slot. False: the slot's page is lost (vnic/guest_memory.h), and the
 * access may have read zeros. */
static inline bool pv_ring_slot_is_intact(const struct pv_ring *ring, const uint8_t *slot)
{
	return vnic_guest_memory_is_intact(ring->memory, slot, ring->slot_size);
}

/* Of a ring that the device reads: sets *n to the number of slots that the guest has filled and the
 * device has not consumed. False: the guest's index is invalid, or its page is lost. */
bool pv_ring_filled(const struct pv_ring *ring, uint32_t *n);
/* Gives the slot at the device's index back to the guest. */
void pv_ring_consume(struct pv_ring *ring);

/* Of a ring that the device writes: sets *n to the number of filled slots that the guest has not
 * read. False: the guest's index is invalid, or its page is lost. */
bool pv_ring_unread(const struct pv_ring *ring, uint32_t *n);
/* Gives the slot at the device's index, which is filled, to the guest. */
void pv_ring_produce(struct pv_ring *ring);

/* Empties the ring: sets all indices to 0, also the guest's, as its driver does after a reset. */
void pv_ring_reset(struct pv_ring *ring);

#endif
