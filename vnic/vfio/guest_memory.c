/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of a virtual machine's memory: regions in the order of their addresses. */
#include <vnic/guest_memory.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct vnic_guest_memory {
	uint64_t page; /* bytes */
	uint32_t count;
	struct vnic_guest_region regions[VNIC_GUEST_REGIONS];
};

int vnic_guest_memory_create(struct vnic_guest_memory **memory)
{
	struct vnic_guest_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->page = (uint64_t)sysconf(_SC_PAGESIZE);
	*memory = m;
	return 0;
}

void vnic_guest_memory_destroy(struct vnic_guest_memory *memory)
{
	if (!memory)
		return;
	for (uint32_t i = 0; i < memory->count; i++)
		munmap(memory->regions[i].memory, memory->regions[i].size);
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

/* Does the file contain these bytes? A descriptor without a size, as of a device, may. */
static int check_file(int fd, uint64_t offset, uint64_t size)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return 0;
	return size <= (uint64_t)status.st_size && offset <= (uint64_t)status.st_size - size
		       ? 0
		       : -EFBIG;
}

int vnic_guest_memory_map(struct vnic_guest_memory *memory, uint64_t addr, uint64_t size, int fd,
			  uint64_t offset, bool writable)
{
	struct vnic_guest_region region = {.addr = addr, .size = size, .writable = writable};
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
	error = check_file(fd, offset, size);
	if (error)
		return error;
	region.memory = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd,
			     (off_t)offset);
	if (region.memory == MAP_FAILED)
		return -errno;
	madvise(region.memory, size, MADV_DONTDUMP);
	insert_region(memory, index, &region);
	return 0;
}

/* Unmaps the part of a region that lies in [first, last]. Returns whether the region is left. */
static bool cut_region(struct vnic_guest_memory *memory, uint32_t index, uint64_t first,
		       uint64_t last)
{
	struct vnic_guest_region *region = &memory->regions[index];
	uint64_t end = region->addr + (region->size - 1);
	uint64_t from = first > region->addr ? first : region->addr;
	uint64_t to = last < end ? last : end;
	uint8_t *bytes = region->memory;

	munmap(bytes + (from - region->addr), to - from + 1);
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
	}
	region->size = from - region->addr;
	if (region->size)
		return true;
	remove_region(memory, index);
	return false;
}

int vnic_guest_memory_unmap(struct vnic_guest_memory *memory, uint64_t addr, uint64_t size)
{
	uint64_t last = addr + (size - 1);
	const struct vnic_guest_region *region;
	uint32_t index;

	if (!range_valid(memory, addr, size))
		return -EINVAL;
	index = first_region_behind(memory, addr);
	region = &memory->regions[index];
	if (index == memory->count || region->addr > last)
		return -ENOENT;
	if (region->addr < addr && region->addr + (region->size - 1) > last &&
	    memory->count == VNIC_GUEST_REGIONS)
		return -ENOSPC;
	while (index < memory->count && memory->regions[index].addr <= last)
		if (cut_region(memory, index, addr, last))
			index++;
	return 0;
}

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
