/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Access to driver memory across the border of two regions. */
#include <string.h>

#include "nic.h"

/*
 * Returns the first *part of `size` bytes at `addr` that lie in one region; NULL: addr is in no
 * region.
 */
static uint8_t *first_piece(const struct vnic_device *dev, uint64_t addr, uint64_t size,
			    uint64_t *part)
{
	uint64_t offset;
	const struct vnic_region *region = vnic_region_find(dev, addr, &offset);

	*part = 0;
	if (!region)
		return NULL;
	*part = size < region->size - offset ? size : region->size - offset;
	return (uint8_t *)region->memory + offset;
}

bool vnic_region_covers(const struct vnic_device *dev, uint64_t addr, uint64_t size)
{
	uint64_t part;

	/* No region ends beyond 2^64 - 1, so addr + part does not wrap. */
	for (; size; addr += part, size -= part)
		if (!first_piece(dev, addr, size, &part))
			return false;
	return true;
}

void vnic_region_read(const struct vnic_device *dev, uint64_t addr, uint8_t *to, uint64_t size)
{
	uint64_t part;

	for (; size; addr += part, to += part, size -= part) {
		const uint8_t *from = first_piece(dev, addr, size, &part);

		memcpy(to, from, part);
	}
}

void vnic_region_write(const struct vnic_device *dev, uint64_t addr, const uint8_t *from,
		       uint64_t size)
{
	uint64_t part;

	for (; size; addr += part, from += part, size -= part) {
		uint8_t *to = first_piece(dev, addr, size, &part);

		/* A driver may send from a receive buffer: the overlap harms only its own data. */
		memmove(to, from, part);
		vnic_dirty_mark(dev->attr.log, to, part);
	}
}
