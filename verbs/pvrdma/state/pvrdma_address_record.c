/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdlib.h>

#include "state/pvrdma_records.h"

void pv_source_record(struct pv_state *st)
{
	struct state_stream *s = &st->stream;
	const struct vnic_guest_region *regions;
	uint32_t count;

	regions = vnic_guest_memory_regions(st->dev->attr.memory, &count);
	if (!s->restoring)
		memcpy(st->source, regions, count * sizeof(*regions));
	st->n_source = count;
	state_u32_max(s, &st->n_source, VNIC_GUEST_REGIONS);
	for (uint32_t i = 0; i < st->n_source; i++) {
		struct vnic_guest_region *region = &st->source[i];
		uint64_t memory = (uintptr_t)region->memory;

		state_u64s(s, &region->addr, &region->size, &memory);
		state_require(s, region->size && region->size - 1 <= UINT64_MAX - region->addr &&
					 region->size - 1 <= UINT64_MAX - memory);
		region->memory = (void *)(uintptr_t)memory; /* of another process, if restoring */
	}
}

/* The region of st->source that has the address of the saving process; NULL: none. */
static const struct vnic_guest_region *find_source(struct pv_state *st, uint64_t at)
{
	for (uint32_t i = 0; i < st->n_source; i++) {
		const uint32_t index = (st->last + i) % st->n_source;
		const struct vnic_guest_region *region = &st->source[index];

		if (at - (uintptr_t)region->memory < region->size) {
			st->last = index;
			return region;
		}
	}
	return NULL;
}

void pv_page_record(struct pv_state *st, uint8_t **page)
{
	struct state_stream *s = &st->stream;
	const struct vnic_guest_region *region;
	uint64_t addr = 0;

	if (!s->restoring) {
		region = find_source(st, (uintptr_t)*page);
		state_require(s, region);
		if (region)
			addr = region->addr + ((uintptr_t)*page - (uintptr_t)region->memory);
	}
	state_u64(s, &addr);
	if (!s->restoring || s->error)
		return;
	state_require(s, addr % PV_PAGE == 0);
	*page = vnic_guest_memory_range(st->dev->attr.memory, addr, PV_PAGE, true);
	if (!*page)
		state_fail(s, -EFAULT);
}

static int add_extent(struct pv_state *st, void *addr, uint64_t length)
{
	struct urxe_extent *last = st->n_extents ? &st->extents[st->n_extents - 1] : NULL;
	struct urxe_extent *grown;
	uint32_t room;

	if (last &&
	    (addr ? last->addr && (uint8_t *)last->addr + last->length == addr : !last->addr)) {
		last->length += length;
		return 0;
	}
	if (st->n_extents == PV_DIR_PAGES) /* a region has no more pages */
		return -EBADMSG;
	if (st->n_extents == st->room) {
		room = st->room ? 2 * st->room : 64;
		grown = realloc(st->extents, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		st->extents = grown;
		st->room = room;
	}
	st->extents[st->n_extents++] = (struct urxe_extent){addr, length};
	return 0;
}

/* Adds the guest's bytes of an extent of the saving process. They may lie in several regions there
 * and here. 0; -EBADMSG: st->source lacks them, or too many extents; -EFAULT: the guest lacks that
 * memory here; -ENOMEM. */
static int translate_extent(struct pv_state *st, const struct urxe_extent *from, bool write)
{
	uint64_t at = (uintptr_t)from->addr, left = from->length, part;
	int rc = from->addr ? 0 : add_extent(st, NULL, left);

	if (!from->addr)
		return rc;
	for (; left && !rc; left -= part, at += part) {
		const struct vnic_guest_region *region = find_source(st, at);
		uint64_t offset;
		void *bytes;

		if (!region)
			return -EBADMSG;
		offset = at - (uintptr_t)region->memory;
		part = left < region->size - offset ? left : region->size - offset;
		bytes = vnic_guest_memory_at(st->dev->attr.memory, region->addr + offset, &part,
					     write);
		rc = bytes ? add_extent(st, bytes, part) : -EFAULT;
	}
	return rc;
}

int pv_translate_region(void *arg, struct urxe_state_region *region)
{
	static const uint32_t writes =
		URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_ATOMIC;
	struct pv_state *st = arg;

	st->n_extents = 0;
	for (uint32_t i = 0; i < region->n_extents; i++) {
		int rc = translate_extent(st, &region->extents[i], region->access & writes);

		if (rc)
			return rc;
	}
	region->extents = st->extents;
	region->n_extents = st->n_extents;
	return 0;
}
