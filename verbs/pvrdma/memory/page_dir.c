/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/page_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

/* The part of the guest's memory in which find_page() has found the last page, and looks first for
 * the next one. */
struct known_part {
	uint64_t addr;
	uint64_t size; /* 0: none */
	uint8_t *bytes;
};

struct walk {
	const struct pv_page_dir *dir;
	struct known_part known;
	bool in_other_part; /* the last page is in another part than the page before */
	uint64_t tables[PV_DIR_ENTRIES];
	uint64_t table[PV_DIR_ENTRIES]; /* the table of the last page */
};

/* The address of the guest's page in this process. NULL: the guest has no page there. */
static uint8_t *find_page(struct walk *walk, uint64_t addr)
{
	struct known_part *known = &walk->known;

	if (addr & (PV_PAGE - 1))
		return NULL;
	walk->in_other_part = false;
	if (addr - known->addr >= known->size || known->size - (addr - known->addr) < PV_PAGE) {
		*known = (struct known_part){.addr = addr, .size = UINT64_MAX};
		walk->in_other_part = true;
		known->bytes = vnic_guest_memory_at(walk->dir->memory, addr, &known->size,
						    walk->dir->write);
		if (!known->bytes || known->size < PV_PAGE) {
			known->size = 0;
			return NULL;
		}
	}
	return known->bytes + (addr - known->addr);
}

static bool copy_table(const struct walk *walk, uint64_t addr, uint64_t *copy)
{
	const void *bytes = addr & (PV_PAGE - 1) ? NULL
						 : vnic_guest_memory_range(walk->dir->memory, addr,
									   PV_PAGE, false);

	if (!bytes)
		return false;
	memcpy(copy, bytes, PV_PAGE);
	return true;
}

static int begin_walk(struct walk *walk, const struct pv_page_dir *dir)
{
	walk->dir = dir;
	walk->known = (struct known_part){0};
	walk->in_other_part = false;
	if (!dir->n_pages || dir->n_pages > PV_DIR_PAGES)
		return -EINVAL;
	return copy_table(walk, dir->addr, walk->tables) ? 0 : -EFAULT;
}

/* The page with that index in the directory; indices come in ascending order. NULL: the guest has
 * no page at an address. */
static uint8_t *walk_page(struct walk *walk, uint32_t index)
{
	uint32_t entry = index % PV_DIR_ENTRIES;

	if (!entry && !copy_table(walk, walk->tables[index / PV_DIR_ENTRIES], walk->table))
		return NULL;
	return find_page(walk, walk->table[entry]);
}

int pv_pages_open(struct pv_pages *pages, const struct vnic_guest_memory *memory, uint64_t addr,
		  uint32_t n, uint32_t given)
{
	const struct pv_page_dir dir = {memory, addr, n, .write = true};
	struct walk walk;
	uint8_t **list;
	int rc = n > given ? -EINVAL : begin_walk(&walk, &dir);

	if (rc)
		return rc;
	list = malloc(n * sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		list[i] = walk_page(&walk, i);
		if (!list[i]) {
			free(list);
			return -EFAULT;
		}
	}
	*pages = (struct pv_pages){list, n};
	return 0;
}

/*
 * Appends bytes to the last extent, or as a new one. An extent lies in one region of the guest's
 * memory: regions side by side in this process may be mappings of two files.
 */
static void add_bytes(const struct walk *walk, struct urxe_extent *extents, uint32_t *n,
		      uint8_t *bytes, uint64_t length)
{
	struct urxe_extent *last = extents + *n - 1;

	if (*n && !walk->in_other_part && (uint8_t *)last->addr + last->length == bytes)
		last->length += length;
	else
		extents[(*n)++] = (struct urxe_extent){bytes, length};
}

int pv_page_dir_extents(const struct pv_page_dir *dir, uint64_t offset, uint64_t length,
			struct urxe_extent *extents, uint32_t *n_extents)
{
	struct walk walk;
	int rc = begin_walk(&walk, dir);

	*n_extents = 0;
	for (uint32_t i = 0; !rc && length && i < dir->n_pages; i++, offset = 0) {
		uint8_t *page = walk_page(&walk, i);
		uint64_t part = PV_PAGE - offset < length ? PV_PAGE - offset : length;

		if (!page)
			return -EFAULT;
		add_bytes(&walk, extents, n_extents, page + offset, part);
		length -= part;
	}
	if (!rc && length)
		rc = -EINVAL;
	return rc;
}
