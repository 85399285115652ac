/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/ring_slab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory/uaccess.h"

#define SLAB_SIZE_MIN ((uint64_t)4 << 20)
#define PAGE_SIZE_MIN 4096u

struct slab_ring {
	uint64_t offset, size;
	const uint8_t *start; /* where the program has mapped it; NULL: no such mmap() was seen */
	bool live;
	/* The ring is destroyed; munmap() of librxe did nothing, so it is still mapped at start. */
	bool mapping_kept;
};

struct ring_slab {
	uint64_t end;         /* offset of its end in the memfd */
	uint8_t *end_address; /* address of its end in this library's mapping */
	uint32_t live;
	uint32_t n, room;
	struct slab_ring *rings; /* sorted by descending offset */
};

/* --- Slabs and rings by offset. */

/* The slab that contains the offset; sets *index to its place in space->slabs. NULL: none. */
static struct ring_slab *find_slab(const struct ring_space *space, uint64_t offset, uint32_t *index)
{
	uint32_t low = 0, high = space->n;

	/* The last slab whose end lies behind the offset. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (space->slabs[middle]->end > offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	*index = low - 1;
	return space->slabs[low - 1];
}

/* The ring that contains the offset; NULL: none. */
static struct slab_ring *ring_at(const struct ring_slab *slab, uint64_t offset)
{
	uint32_t low = 0, high = slab->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (slab->rings[middle].offset > offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < slab->n ? &slab->rings[low] : NULL;
}

/* The ring that begins at the offset; NULL: none. */
static struct slab_ring *find_ring(const struct ring_slab *slab, uint64_t offset)
{
	struct slab_ring *ring = ring_at(slab, offset);

	return ring && ring->offset == offset ? ring : NULL;
}

static uint8_t *address_of(const struct ring_slab *slab, uint64_t offset)
{
	return slab->end_address - (slab->end - offset);
}

static uint64_t lowest_offset(const struct ring_slab *slab)
{
	return slab->rings[slab->n - 1].offset;
}

/*
 * Clears a destroyed ring, because the next ring in that memory must be empty. MADV_REMOVE also
 * frees the pages. It fails with EINVAL for locked pages (mlock), and with EOPNOTSUPP in qemu-user.
 */
static void clear_ring(void *address, uint64_t size)
{
	if (madvise(address, size, MADV_REMOVE) && (errno == EINVAL || errno == EOPNOTSUPP))
		memset(address, 0, size);
}

/* --- The end of a slab. */

/*
 * Writes a mark to each page of the destroyed ring by this library's mapping, reads the mark at
 * ring->start, and clears the ring. True: the whole ring is still mapped at ring->start. False: the
 * program has unmapped it in another way, or mapped other memory over it (MAP_FIXED).
 */
static bool probe_mapping(const struct ring_slab *slab, const struct slab_ring *ring)
{
	uint8_t *ours = address_of(slab, ring->offset);
	static uint64_t mark = 0x7572786572696e67;
	uint64_t theirs = 0;
	bool same = true;

	for (uint64_t at = 0; same && at < ring->size; at += PAGE_SIZE_MIN) {
		*(uint64_t *)(void *)(ours + at) = ++mark;
		same = !uaccess_read(&theirs, (uintptr_t)ring->start + at, sizeof(theirs)) &&
		       theirs == mark;
	}
	clear_ring(ours, ring->size);
	return same;
}

/* Unmaps the mappings of librxe that the slab kept (ring_space_keep). Unmaps adjacent rings
 * by one call: call by call, their merged mapping would be in several pieces for a time. */
static void unmap_kept(const struct ring_slab *slab)
{
	const uint8_t *start = NULL, *end = NULL;

	for (uint32_t i = 0; i < slab->n; i++) {
		const struct slab_ring *ring = &slab->rings[i];

		if (!ring->mapping_kept || !probe_mapping(slab, ring))
			continue;
		if (start && ring->start + ring->size == start) {
			start = ring->start;
		} else if (start && ring->start == end) {
			end = ring->start + ring->size;
		} else {
			if (start)
				munmap((void *)(uintptr_t)start, (size_t)(end - start));
			start = ring->start;
			end = start + ring->size;
		}
	}
	if (start)
		munmap((void *)(uintptr_t)start, (size_t)(end - start));
}

static void remove_slab(struct ring_space *space, uint32_t index)
{
	struct ring_slab *slab = space->slabs[index];

	unmap_kept(slab);
	if (slab->n) {
		uint64_t lowest = lowest_offset(slab);

		munmap(address_of(slab, lowest), slab->end - lowest);
	}
	memmove(&space->slabs[index], &space->slabs[index + 1],
		(--space->n - index) * sizeof(struct ring_slab *));
	if (space->filling == slab)
		space->filling = NULL;
	free(slab->rings);
	free(slab);
}

void ring_space_unmap_room(struct ring_space *space)
{
	struct ring_slab *slab = space->filling;
	uint32_t index;

	if (space->mapped < space->offset)
		munmap(space->base, space->offset - space->mapped);
	space->mapped = space->offset;
	space->filling = NULL;
	if (slab && !slab->live && find_slab(space, slab->end - 1, &index))
		remove_slab(space, index);
}

void ring_space_close(struct ring_space *space)
{
	ring_space_unmap_room(space);
	free(space->slabs);
	space->slabs = NULL;
	space->room = 0;
}

/* --- Creation. */

/* Makes room for one more element in the array of slabs. False: no memory. */
static bool make_room_for_slab(struct ring_space *space)
{
	uint32_t room = space->room ? 2 * space->room : 16;
	struct ring_slab **slabs;

	if (space->n < space->room)
		return true;
	slabs = realloc(space->slabs, room * sizeof(struct ring_slab *));
	if (!slabs)
		return false;
	space->slabs = slabs;
	space->room = room;
	return true;
}

uint64_t ring_space_lowest(const struct ring_space *space)
{
	return space->n ? lowest_offset(space->slabs[space->n - 1]) : space->top;
}

/* Finds the highest gap between slabs of at least `size` bytes in the memfd. The gap ends at *end,
 * and the slab below it has the place *index. False: there is none. Call it after
 * ring_space_unmap_room(), when no slab has room for further rings. */
static bool find_gap(const struct ring_space *space, uint64_t size, uint32_t *index, uint64_t *end)
{
	*end = space->top;
	for (*index = 0; *index < space->n; ++*index) {
		const struct ring_slab *slab = space->slabs[*index];

		if (*end - slab->end >= size)
			return true;
		*end = lowest_offset(slab);
	}
	return *end >= size;
}

/* Adds a slab of at least `size` bytes: maps it, and makes it space->filling. False: the memfd has
 * no such gap, or memory is lacking. */
static bool add_slab(struct ring_space *space, int memfd, uint64_t size)
{
	uint64_t length = size > SLAB_SIZE_MIN ? size : SLAB_SIZE_MIN, end;
	struct ring_slab *slab;
	uint32_t index;
	void *base;

	ring_space_unmap_room(space);
	if (!find_gap(space, length, &index, &end) && !find_gap(space, length = size, &index, &end))
		return false;
	slab = make_room_for_slab(space) ? calloc(1, sizeof(*slab)) : NULL;
	if (!slab)
		return false;
	base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, (off_t)(end - length));
	if (base == MAP_FAILED) {
		free(slab);
		return false;
	}
	slab->end = end;
	slab->end_address = (uint8_t *)base + length;
	memmove(&space->slabs[index + 1], &space->slabs[index],
		(space->n++ - index) * sizeof(struct ring_slab *));
	space->slabs[index] = space->filling = slab;
	space->base = base;
	space->offset = end;
	space->mapped = end - length;
	return true;
}

static bool add_ring(struct ring_slab *slab, uint64_t offset, uint64_t size)
{
	if (slab->n == slab->room) {
		uint32_t room = slab->room ? 2 * slab->room : 4;
		struct slab_ring *rings = realloc(slab->rings, room * sizeof(*rings));

		if (!rings)
			return false;
		slab->rings = rings;
		slab->room = room;
	}
	slab->rings[slab->n++] = (struct slab_ring){.offset = offset, .size = size, .live = true};
	slab->live++;
	return true;
}

void *ring_space_take(struct ring_space *space, int memfd, uint64_t size)
{
	if ((!space->filling || size > space->offset - space->mapped) &&
	    !add_slab(space, memfd, size))
		return NULL;
	if (!add_ring(space->filling, space->offset - size, size))
		return NULL;
	space->offset -= size;
	return space->base + (space->offset - space->mapped);
}

/* --- Destruction. A QP has two rings, so each thread remembers the last two that it destroyed. */

static __thread __attribute__((tls_model("initial-exec"))) struct destroyed_ring destroyed[2];

static void remember(struct ring_space *space, const struct slab_ring *ring)
{
	destroyed[1] = destroyed[0];
	destroyed[0] =
		(struct destroyed_ring){space, ring->offset, ring->start, (size_t)ring->size};
}

void ring_space_release(struct ring_space *space, uint64_t offset, void *address, uint64_t size)
{
	uint32_t index;
	struct ring_slab *slab = find_slab(space, offset, &index);
	struct slab_ring *ring = slab ? find_ring(slab, offset) : NULL;

	clear_ring(address, size);
	if (!ring) {
		munmap(address, size);
		return;
	}
	ring->live = false;
	slab->live--;
	if (ring->start)
		remember(space, ring);
	if (!slab->live && (slab != space->filling || space->mapped == space->offset))
		remove_slab(space, index);
}

void ring_space_mapped(struct ring_space *space, uint64_t offset, const void *start, size_t length)
{
	uint32_t index;
	struct ring_slab *slab = find_slab(space, offset, &index);
	struct slab_ring *ring = slab ? find_ring(slab, offset) : NULL;

	if (ring && ring->live && ring->size == length)
		ring->start = start;
}

bool ring_take_destroyed(const void *start, size_t length, struct destroyed_ring *ring)
{
	for (int i = 0; i < 2; i++) {
		if (!start || destroyed[i].start != start || destroyed[i].length != length)
			continue;
		*ring = destroyed[i];
		destroyed[i].start = NULL;
		return true;
	}
	return false;
}

bool ring_space_keep(const struct destroyed_ring *destroyed_one)
{
	uint32_t index;
	struct ring_slab *slab = find_slab(destroyed_one->space, destroyed_one->offset, &index);
	struct slab_ring *ring = slab ? find_ring(slab, destroyed_one->offset) : NULL;

	if (!ring || ring->live || ring->mapping_kept || ring->start != destroyed_one->start ||
	    !probe_mapping(slab, ring))
		return false;
	ring->mapping_kept = true;
	return true;
}

bool ring_space_is_left(const struct ring_space *space, uint64_t offset, uint64_t address,
			uint64_t *length)
{
	uint32_t index;
	const struct ring_slab *slab = find_slab(space, offset, &index);
	const struct slab_ring *ring = slab ? ring_at(slab, offset) : NULL;

	*length = ring ? ring->offset + ring->size - offset : UINT64_MAX;
	if (!ring || ring->live)
		return false;
	return address == (uintptr_t)address_of(slab, offset) ||
	       (ring->mapping_kept && address == (uintptr_t)ring->start + (offset - ring->offset));
}
