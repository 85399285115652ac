/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory for a context's rings, in its memfd, from the end downwards. Offsets of removed slabs are
 * used again. For queues/librxe_ring.c.
 *
 * A process may have more rings than mappings (vm.max_map_count). So this library maps rings by
 * slabs of at least 4 MiB, or less if the memfd has no such gap. librxe maps each ring once more,
 * at descending offsets; where the kernel places mappings top-down, it merges these into one. If
 * each destroyed ring were unmapped, the merged mappings would break into pieces. So both kinds of
 * mappings stay until the last ring of the slab is destroyed. The pages of a ring are freed at
 * once.
 *
 * With the lock of the adapter. A restored process has rings without a slab (checkpoint/rebuild.c),
 * which are unmapped one by one.
 */
#ifndef URXE_VERBS_MEMORY_RING_SLAB_H
#define URXE_VERBS_MEMORY_RING_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_slab;

struct ring_space {
	/* New rings lie below this offset in the memfd: below the memfd's end; in a restored
	 * process below all restored rings. */
	uint64_t top;
	struct ring_slab *filling; /* the slab that gets the next ring; NULL: a new slab */
	/* The next three are valid only while `filling` is not NULL, and in a restored process: */
	uint64_t offset; /* of the newest ring in the memfd; the room for further rings ends here */
	uint64_t mapped; /* start in the memfd of that room; <= offset */
	uint8_t *base;   /* address of that room's start */

	struct ring_slab **slabs; /* sorted by descending offset */
	uint32_t n, room;         /* number of slabs, and of elements that the array has room for */
};

/* Returns memory for a ring of `size` bytes, a multiple of the page size, and sets space->offset to
 * its place in the memfd. NULL: no memory, or no room in the memfd. */
void *ring_space_take(struct ring_space *space, int memfd, uint64_t size);
/* The ring at `ring` and `offset` is destroyed: clears it, which frees its memory unless the
 * pages are locked. Its addresses stay mapped, if it is in a slab. Remembers for
 * ring_take_destroyed() that librxe will unmap the ring now, in this thread. */
void ring_space_release(struct ring_space *space, uint64_t offset, void *ring, uint64_t size);
/* Unmaps the room for further rings; the next ring goes to a new slab. */
void ring_space_unmap_room(struct ring_space *space);
/* The lowest offset of all rings; space->top: no ring. Only after ring_space_unmap_room(). */
uint64_t ring_space_lowest(const struct ring_space *space);
/* The context is closed, and its rings are destroyed: unmaps all that is left. */
void ring_space_close(struct ring_space *space);

/* Notes that the program has mapped, at `start`, the ring that begins at the offset. No such ring:
 * no effect. */
void ring_space_mapped(struct ring_space *space, uint64_t offset, const void *start, size_t length);

/* A ring that a thread has destroyed. */
struct destroyed_ring {
	struct ring_space *space;
	uint64_t offset;
	const void *start; /* where the program has mapped it */
	size_t length;
};

/* For munmap() of the program. True: this thread has destroyed a ring that is mapped exactly at
 * [start, start + length). Then sets *ring, and forgets the ring: true at most once for each, and
 * only for the last two rings that the thread has destroyed. Any thread; needs no adapter.lock. */
bool ring_take_destroyed(const void *start, size_t length, struct destroyed_ring *ring);
/*
 * Call it when ring_take_destroyed() has returned true to munmap(). True: the ring's slab keeps the
 * mapping, and unmaps it later. False: munmap() has to unmap it.
 */
bool ring_space_keep(const struct destroyed_ring *ring);
/* For a checkpoint, which leaves such memory out: whether `address` is mapped only because a slab
 * keeps it. The address shows the part of the memfd at `offset`, whose ring is destroyed. *length:
 * bytes from the offset on for which the answer is the same; UINT64_MAX: all. */
bool ring_space_is_left(const struct ring_space *space, uint64_t offset, uint64_t address,
			uint64_t *length);

#endif
