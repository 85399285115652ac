/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "flat_memory.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rxe/rxe.h>

static uint64_t in_page(const void *addr, uint64_t page)
{
	return (uintptr_t)addr & (page - 1);
}

/* Whether each piece but the first begins, and each piece but the last ends, at a page boundary,
 * and no piece is a hole or empty. */
static bool is_list_of_pages(const struct urxe_mr_attr *attr, uint64_t page)
{
	for (uint32_t i = 0; i < attr->n_extents; i++) {
		const struct urxe_extent *piece = &attr->extents[i];
		const uint64_t end = in_page(piece->addr, page) + piece->length;

		if (!piece->addr || !piece->length)
			return false;
		if ((i && in_page(piece->addr, page)) ||
		    (i + 1 < attr->n_extents && end & (page - 1)))
			return false;
	}
	return true;
}

/* Whether the pieces lie side by side already. */
static bool is_one_range(const struct urxe_mr_attr *attr)
{
	for (uint32_t i = 1; i < attr->n_extents; i++) {
		const struct urxe_extent *before = &attr->extents[i - 1];

		if ((uint8_t *)before->addr + before->length != attr->extents[i].addr)
			return false;
	}
	return true;
}

/*
 * Maps the pages of a piece a second time, at `to`. False: Linux refuses. With an old size of 0,
 * mremap(2) maps pages of a shared mapping again, and leaves the first mapping as it is. For a
 * piece that exceeds that mapping it would map the file's next pages.
 */
static bool map_again(uint8_t *to, const struct urxe_extent *piece, uint64_t page)
{
	const uint64_t offset = in_page(piece->addr, page);

	return mremap((uint8_t *)piece->addr - offset, 0, offset + piece->length,
		      MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

static bool map_pieces(const struct flat_memory *memory, const struct urxe_mr_attr *attr,
		       uint64_t page)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < attr->n_extents; i++) {
		const struct urxe_extent *piece = &attr->extents[i];

		if (!map_again((uint8_t *)memory->mapping + at, piece, page))
			return false;
		at += in_page(piece->addr, page) + piece->length;
	}
	return true;
}

static int map_region(struct flat_memory *memory, const struct urxe_mr_attr *attr, uint64_t page)
{
	const uint64_t offset = in_page(attr->extents[0].addr, page);

	memory->mapped = (offset + attr->length + page - 1) & ~(page - 1);
	memory->mapping = mmap(NULL, memory->mapped, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory->mapping == MAP_FAILED)
		return -EOPNOTSUPP;
	if (!map_pieces(memory, attr, page)) {
		flat_memory_unmap(memory);
		return -EOPNOTSUPP;
	}
	memory->addr = (uint8_t *)memory->mapping + offset;
	memory->n_pieces = attr->n_extents;
	return 0;
}

int flat_memory_open(struct flat_memory *memory, const struct urxe_mr_attr *attr, uint32_t room)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	*memory = (struct flat_memory){0};
	if (attr->n_extents == 1) {
		memory->addr = attr->extents[0].addr;
		return memory->addr ? 0 : -EOPNOTSUPP;
	}
	if (!attr->n_extents || !is_list_of_pages(attr, page))
		return -EOPNOTSUPP;
	if (is_one_range(attr)) {
		memory->addr = attr->extents[0].addr;
		return 0;
	}
	return attr->n_extents > room ? -EOPNOTSUPP : map_region(memory, attr, page);
}

void flat_memory_unmap(const struct flat_memory *memory)
{
	if (memory->mapping)
		munmap(memory->mapping, memory->mapped);
}
