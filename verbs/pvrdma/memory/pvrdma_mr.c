/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/pvrdma_mr.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/page_dir.h"
#include "object.h"
#include "pvrdma_hca.h"

/* Access rights with the same values in PVRDMA and in the engine. */
#define RIGHTS                                                                                     \
	((uint32_t)(URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | \
		    URXE_ACCESS_REMOTE_ATOMIC))
#define WRITES \
	((uint32_t)(URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_ATOMIC))

/* Bytes that each extent of a region takes: the engine keeps the list of the registration, and a
 * second one after a removal of memory. */
#define EXTENT_BYTES (2 * sizeof(struct urxe_extent))

/* An extent for each region of guest memory, and one for the hole before it. */
#define DMA_EXTENTS (2 * VNIC_GUEST_REGIONS)

uint32_t pv_mr_access(uint32_t flags)
{
	return flags & RIGHTS;
}

/* Pages of the bytes [start, start + length). */
static uint64_t count_pages(uint64_t start, uint64_t length)
{
	return ((start & (PV_PAGE - 1)) + length + PV_PAGE - 1) >> PV_PAGE_SHIFT;
}

/* Registers the pages with the engine, and so with the HCA. -ENOMEM also if the HCA may not pin so
 * much: pv_hca_has_room() refuses, or the kernel does (RLIMIT_MEMLOCK of the device process). */
static int register_pages(struct pvrdma *dev, const struct urxe_mr_attr *attr, struct urxe_mr **mr)
{
	int rc = -ENOMEM;

	if (pv_hca_has_room(dev, attr->length))
		rc = urxe_mr_reg(dev->engine, attr, mr);
	if (rc == -ENOMEM && dev->hca_attached)
		pv_count(dev, PVRDMA_HCA_MEMORY_FULL);
	return rc;
}

static int open_pages(struct pvrdma *dev, const struct pv_cmd_create_mr *request,
		      struct urxe_mr_attr *attr, struct pv_mr *mr)
{
	struct pv_page_dir dir = {
		.memory = dev->attr.memory,
		.addr = request->pdir_dma,
		.write = attr->access & WRITES,
	};
	struct urxe_extent *extents;
	int rc;

	if (!request->length || request->length > PV_MAX_MR_LENGTH ||
	    request->nchunks > PV_DIR_PAGES ||
	    request->nchunks < count_pages(request->start, request->length))
		return -EINVAL;
	dir.n_pages = (uint32_t)count_pages(request->start, request->length);
	extents = malloc(dir.n_pages * sizeof(*extents));
	if (!extents)
		return -ENOMEM;
	rc = pv_page_dir_extents(&dir, request->start & (PV_PAGE - 1), request->length, extents,
				 &attr->n_extents);
	if (rc == -EFAULT)
		pv_count(dev, PVRDMA_PAGE_DIR_BAD);
	attr->iova = request->start;
	attr->length = request->length;
	attr->extents = extents;
	if (!rc && attr->n_extents * EXTENT_BYTES > PV_MEMORY_MAX - dev->bytes)
		rc = -ENOMEM;
	if (!rc)
		rc = register_pages(dev, attr, &mr->mr);
	free(extents);
	return rc;
}

/* Lists the guest's memory for a DMA region: from guest address 0 to the end of the last region.
 * Holes, and read-only memory if the region permits writes, become extents without an address. */
static void list_all_memory(const struct pvrdma *dev, struct urxe_extent *extents,
			    struct urxe_mr_attr *attr)
{
	const struct vnic_guest_region *regions;
	uint32_t count;

	regions = vnic_guest_memory_regions(dev->attr.memory, &count);
	attr->extents = extents;
	attr->n_extents = 0;
	attr->iova = attr->length = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct vnic_guest_region *region = &regions[i];
		bool usable = region->writable || !(attr->access & WRITES);

		extents[attr->n_extents++] =
			(struct urxe_extent){NULL, region->addr - attr->length};
		extents[attr->n_extents++] =
			(struct urxe_extent){usable ? region->memory : NULL, region->size};
		attr->length = region->addr + region->size;
	}
}

static int open_dma(struct pvrdma *dev, struct urxe_mr_attr *attr, struct pv_mr *mr)
{
	struct urxe_extent extents[DMA_EXTENTS];
	int rc;

	list_all_memory(dev, extents, attr);
	mr->is_dma = true;
	rc = urxe_mr_reg(dev->engine, attr, &mr->mr);
	/* For the caller's count of bytes: the longest list that the region may get when memory is
	 * added. */
	attr->n_extents = DMA_EXTENTS;
	return rc;
}

static int open_kind(struct pvrdma *dev, const struct pv_cmd_create_mr *request,
		     struct urxe_mr_attr *attr, struct pv_mr *mr)
{
	switch (request->flags) {
	case 0: return open_pages(dev, request, attr, mr);
	case PV_MR_FLAG_DMA: return open_dma(dev, attr, mr);
	case PV_MR_FLAG_FRMR:
		if (!request->nchunks || request->nchunks > PV_MAX_FAST_REG)
			return -EINVAL;
		attr->n_extents = request->nchunks;
		return urxe_fast_mr_alloc(dev->engine, attr->pd, request->nchunks, &mr->fast);
	default: return -EINVAL;
	}
}

static void close_region(struct pv_mr *mr)
{
	if (mr->mr)
		urxe_mr_dereg(mr->mr);
	if (mr->fast)
		urxe_fast_mr_free(mr->fast);
}

int pv_mr_open(struct pvrdma *dev, struct pv_pd *pd, const struct pv_cmd_create_mr *request,
	       struct pv_mr **out)
{
	struct urxe_mr_attr attr = {
		.pd = pd->object.handle,
		.access = pv_mr_access(request->access_flags),
	};
	struct pv_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return -ENOMEM;
	rc = open_kind(dev, request, &attr, mr);
	if (!rc) {
		rc = pv_object_add(dev, &mr->object, PV_MR, pd->object.uar_page,
				   sizeof(*mr) + attr.n_extents * EXTENT_BYTES);
		if (rc)
			close_region(mr);
	}
	if (rc) {
		free(mr);
		return rc;
	}
	mr->pd = pd;
	mr->access = attr.access;
	pd->object.users++;
	*out = mr;
	return 0;
}

void pv_mr_close(struct pv_mr *mr)
{
	close_region(mr);
	mr->pd->object.users--;
	pv_object_remove(&mr->object);
	free(mr);
}

uint32_t pv_mr_key(const struct pv_mr *mr)
{
	return mr->mr ? urxe_mr_key(mr->mr) : urxe_fast_mr_key(mr->fast);
}

struct urxe_mr *pv_mr_region(const struct pv_mr *mr)
{
	return mr->mr ? mr->mr : urxe_fast_mr_region(mr->fast);
}

void pv_mr_memory_removed(struct pv_mr *mr, const struct pv_removed *removed)
{
	struct urxe_mr *region = pv_mr_region(mr);

	if (!region)
		return;
	if (removed->all) {
		pv_hca_withdraw(region, NULL);
		urxe_mr_unmap_all(region);
		return;
	}
	for (uint32_t i = 0; i < removed->n; i++) {
		pv_hca_withdraw(region, &removed->bytes[i]);
		if (urxe_mr_unmap(region, &removed->bytes[i])) {
			urxe_mr_unmap_all(region);
			return;
		}
		urxe_mr_unmapped(region, &removed->bytes[i], true);
	}
}

void pv_mr_memory_added(struct pv_mr *mr)
{
	struct pvrdma *dev = mr->object.dev;
	struct urxe_extent extents[DMA_EXTENTS];
	struct urxe_mr_attr attr = {.pd = mr->pd->object.handle, .access = mr->access};

	if (!mr->is_dma)
		return;
	list_all_memory(dev, extents, &attr);
	/* If no memory is left for the new list, the region keeps its old list. */
	(void)!urxe_mr_rereg(&mr->mr, &attr);
}

bool pv_mr_page_list(void *ctx, const struct urxe_fast_reg *request,
		     const struct urxe_extent **extents, uint32_t *n_extents)
{
	struct pvrdma *dev = ctx;
	const struct pv_page_dir dir = {
		.memory = dev->attr.memory,
		.addr = request->page_list,
		.n_pages = request->n_pages,
		.write = request->access & WRITES,
	};

	if (request->page_shift != PV_PAGE_SHIFT || request->n_pages > PV_MAX_FAST_REG)
		return false;
	*extents = dev->fast_reg_extents;
	if (!pv_page_dir_extents(&dir, request->iova & (PV_PAGE - 1), request->length,
				 dev->fast_reg_extents, n_extents))
		return true;
	pv_count(dev, PVRDMA_PAGE_DIR_BAD);
	return false;
}
