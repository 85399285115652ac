/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of a virtual machine's memory: regions in the order of their addresses. */
#include <vnic/guest_memory.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vnic/dirty_log.h>

#include "dirty_pages.h"
#include "guest_mapping.h"

struct vnic_guest_memory {
	uint64_t page; /* bytes of a page of the kernel */
	bool lost;     /* some pages are lost, and perhaps still in the table */
	uint32_t count;
	struct vnic_guest_region regions[VNIC_GUEST_REGIONS];
	struct vnic_dirty_log log;
	struct dirty_pages written; /* pages written while log.on */
};

/* Adds the pages of these bytes, which may lie in several regions side by side. */
static void add_written(struct vnic_dirty_log *log, const void *bytes, uint64_t size)
{
	struct vnic_guest_memory *memory =
		(struct vnic_guest_memory *)((uint8_t *)log -
					     offsetof(struct vnic_guest_memory, log));

	for (uint32_t i = 0; size && i < memory->count; i++) {
		const struct vnic_guest_region *region = &memory->regions[i];
		const uint64_t offset = (uintptr_t)bytes - (uintptr_t)region->memory;
		uint64_t part;

		if (offset >= region->size)
			continue;
		part = size < region->size - offset ? size : region->size - offset;
		dirty_pages_add(&memory->written, region->addr + offset, part);
		/* The rest may lie in a region that is mapped behind this one. */
		bytes = (const uint8_t *)bytes + part;
		size -= part;
		i = UINT32_MAX;
	}
}

int vnic_guest_memory_create(struct vnic_guest_memory **memory)
{
	struct vnic_guest_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->page = (uint64_t)sysconf(_SC_PAGESIZE);
	m->log.add = add_written;
	*memory = m;
	return 0;
}

void vnic_guest_memory_destroy(struct vnic_guest_memory *memory)
{
	if (!memory)
		return;
	vnic_guest_memory_unmap_all(memory);
	dirty_pages_clear(&memory->written);
	free(memory);
}

/* Index of the first region that ends behind `addr`; the count if none does. */
static uint32_t first_region_behind(const struct vnic_guest_memory *memory, uint64_t addr)
{
	uint32_t low = 0, high = memory->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct vnic_guest_region *region = &memory->regions[middle];

		if (region->addr + (region->size - 1) < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool range_valid(const struct vnic_guest_memory *memory, uint64_t addr, uint64_t size)
{
	return size != 0 && addr % memory->page == 0 && size % memory->page == 0 &&
	       addr + (size - 1) >= addr;
}

static void insert_region(struct vnic_guest_memory *memory, uint32_t index,
			  const struct vnic_guest_region *region)
{
	memmove(&memory->regions[index + 1], &memory->regions[index],
		(memory->count - index) * sizeof(*region));
	memory->regions[index] = *region;
	memory->count++;
}

static void remove_region(struct vnic_guest_memory *memory, uint32_t index)
{
	memory->count--;
	memmove(&memory->regions[index], &memory->regions[index + 1],
		(memory->count - index) * sizeof(memory->regions[0]));
}

int vnic_guest_memory_map(struct vnic_guest_memory *memory, uint64_t addr, uint64_t size, int fd,
			  uint64_t offset, bool writable)
{
	struct vnic_guest_region region = {.addr = addr, .size = size, .writable = writable};
	const struct guest_file file = {fd, offset, size, writable};
	struct guest_mapping *mapping;
	uint32_t index;
	int error;

	if (!range_valid(memory, addr, size) || offset % memory->page != 0 ||
	    offset > (uint64_t)INT64_MAX - size)
		return -EINVAL;
	index = first_region_behind(memory, addr);
	if (index < memory->count && memory->regions[index].addr <= addr + (size - 1))
		return -EEXIST;
	if (memory->count == VNIC_GUEST_REGIONS)
		return -ENOSPC;
	error = guest_mapping_open(&file, &memory->lost, &mapping, &region.memory);
	if (error)
		return error;
	mapping->regions++;
	insert_region(memory, index, &region);
	return 0;
}

/*
 * Removes the part of a region that lies in [first, last] from the table; `discard`: gives up its
 * pages, too. Returns whether a rest of the region stays at `index`.
 */
static bool cut_region(struct vnic_guest_memory *memory, uint32_t index, uint64_t first,
		       uint64_t last, bool discard)
{
	struct vnic_guest_region *region = &memory->regions[index];
	struct guest_mapping *mapping = guest_mapping_find(region->memory);
	uint64_t end = region->addr + (region->size - 1);
	uint64_t from = first > region->addr ? first : region->addr;
	uint64_t to = last < end ? last : end;
	uint8_t *bytes = region->memory;

	if (discard)
		guest_mapping_discard(mapping, bytes + (from - region->addr), to - from + 1);
	if (to < end) {
		struct vnic_guest_region rest = *region;

		rest.addr = to + 1;
		rest.size = end - to;
		rest.memory = bytes + (rest.addr - region->addr);
		if (from == region->addr) {
			*region = rest;
			return true;
		}
		insert_region(memory, index + 1, &rest);
		mapping->regions++;
	}
	region->size = from - region->addr;
	if (region->size)
		return true;
	mapping->regions--;
	remove_region(memory, index);
	return false;
}

/* Whether the removal of [addr, last] leaves a rest of the region on both sides. */
static bool splits(const struct vnic_guest_region *region, uint64_t addr, uint64_t last)
{
	return region->addr < addr && region->addr + (region->size - 1) > last;
}

int vnic_guest_memory_check_unmap(const struct vnic_guest_memory *memory, uint64_t addr,
				  uint64_t size)
{
	const uint64_t last = addr + (size - 1);
	uint32_t index;

	if (!range_valid(memory, addr, size))
		return -EINVAL;
	index = first_region_behind(memory, addr);
	if (index == memory->count || memory->regions[index].addr > last)
		return -ENOENT;
	return splits(&memory->regions[index], addr, last) && memory->count == VNIC_GUEST_REGIONS
		       ? -ENOSPC
		       : 0;
}

int vnic_guest_memory_unmap(struct vnic_guest_memory *memory, uint64_t addr, uint64_t size)
{
	const int rc = vnic_guest_memory_check_unmap(memory, addr, size);
	const uint64_t last = addr + (size - 1);
	uint32_t index = first_region_behind(memory, addr);

	if (rc && rc != -ENOENT)
		return rc;
	while (index < memory->count && memory->regions[index].addr <= last)
		if (cut_region(memory, index, addr, last, true))
			index++;
	/* Also closes mappings whose regions vnic_guest_memory_forget has removed. */
	guest_mapping_close_unused(&memory->lost, false);
	return rc;
}

void vnic_guest_memory_unmap_all(struct vnic_guest_memory *memory)
{
	memory->count = 0;
	memory->lost = false;
	guest_mapping_close_unused(&memory->lost, true);
}

/* --- Lost pages */

int vnic_guest_memory_catch_faults(void (*losing)(void *ctx), void *ctx)
{
	return guest_mapping_catch_faults(losing, ctx);
}

bool vnic_guest_memory_is_intact(const struct vnic_guest_memory *memory, const void *bytes,
				 uint64_t size)
{
	/* The handler of SIGBUS may have set `lost` since this thread last read it. */
	return !__atomic_load_n(&memory->lost, __ATOMIC_RELAXED) ||
	       guest_mapping_is_intact(bytes, size);
}

static bool find_lost(const struct vnic_guest_memory *memory, uint64_t *addr, uint64_t *size)
{
	for (uint32_t i = 0; i < memory->count; i++) {
		const struct vnic_guest_region *region = &memory->regions[i];
		void *bytes = region->memory;

		*size = region->size;
		if (!guest_mapping_find_lost(guest_mapping_find(bytes), &bytes, size))
			continue;
		*addr = region->addr + (uint64_t)((uint8_t *)bytes - (uint8_t *)region->memory);
		if (memory->count == VNIC_GUEST_REGIONS &&
		    splits(region, *addr, *addr + (*size - 1))) {
			*addr = region->addr;
			*size = region->size;
		}
		return true;
	}
	return false;
}

bool vnic_guest_memory_find_lost(struct vnic_guest_memory *memory, uint64_t *addr, uint64_t *size)
{
	if (!__atomic_load_n(&memory->lost, __ATOMIC_RELAXED))
		return false;
	if (find_lost(memory, addr, size))
		return true;
	memory->lost = false;
	return false;
}

void vnic_guest_memory_forget(struct vnic_guest_memory *memory, uint64_t addr, uint64_t size)
{
	cut_region(memory, first_region_behind(memory, addr), addr, addr + (size - 1), false);
}

/* --- Addresses */

void *vnic_guest_memory_at(const struct vnic_guest_memory *memory, uint64_t addr, uint64_t *size,
			   bool write)
{
	uint32_t index = first_region_behind(memory, addr);
	const struct vnic_guest_region *region = &memory->regions[index];
	uint64_t offset;

	if (index == memory->count || region->addr > addr || (write && !region->writable))
		return NULL;
	offset = addr - region->addr;
	if (*size > region->size - offset)
		*size = region->size - offset;
	return (uint8_t *)region->memory + offset;
}

void *vnic_guest_memory_range(const struct vnic_guest_memory *memory, uint64_t addr, uint64_t size,
			      bool write)
{
	uint64_t part = size;
	void *bytes = vnic_guest_memory_at(memory, addr, &part, write);

	return part == size ? bytes : NULL;
}

const struct vnic_guest_region *vnic_guest_memory_regions(const struct vnic_guest_memory *memory,
							  uint32_t *count)
{
	*count = memory->count;
	return memory->regions;
}

int vnic_guest_memory_file(const struct vnic_guest_region *region, uint64_t *offset)
{
	const struct guest_mapping *mapping = guest_mapping_find(region->memory);

	*offset = mapping->offset + (uint64_t)((uint8_t *)region->memory - mapping->start);
	return mapping->fd;
}

/* --- The log of written pages */

struct vnic_dirty_log *vnic_guest_memory_log(struct vnic_guest_memory *memory)
{
	return &memory->log;
}

void vnic_guest_memory_start_log(struct vnic_guest_memory *memory)
{
	dirty_pages_clear(&memory->written);
	memory->log.on = true;
}

void vnic_guest_memory_stop_log(struct vnic_guest_memory *memory)
{
	memory->log.on = false;
	dirty_pages_clear(&memory->written);
}

void vnic_guest_memory_take_log(struct vnic_guest_memory *memory, uint64_t addr, uint64_t size,
				uint64_t page_size, uint64_t *bitmap)
{
	dirty_pages_take(&memory->written, addr, size, page_size, bitmap);
}
