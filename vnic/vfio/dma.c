/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* DMA_MAP and DMA_UNMAP: the hypervisor adds and removes memory of the guest. */
#include <errno.h>
#include <linux/vfio.h>

#include "vfio_server_private.h"

#define MAP_FLAGS (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)
/* The flag's name in linux/vfio.h, of Debian 12 for example; the protocol defines the same bit. */
#define UNMAP_ALL VFIO_DMA_UNMAP_FLAG_ALL

int dma_map(struct vnic_vfio_server *server, const struct vfio_user_dma_map *map, int fd)
{
	const struct vnic_vfio_attr *attr = &server->attr;
	int rc;

	if (map->argsz < sizeof(*map) || !map->flags || map->flags & ~MAP_FLAGS || !map->size ||
	    map->addr + (map->size - 1) < map->addr)
		return -EINVAL;
	/* The hypervisor passes no descriptor for memory that only it can reach, such as a ROM. */
	if (fd < 0)
		return 0;
	rc = vnic_guest_memory_map(attr->memory, map->addr, map->size, fd, map->offset,
				   map->flags & VFIO_DMA_MAP_FLAG_WRITE);
	if (!rc)
		attr->ops.memory_added(attr->ctx, map->addr, map->size);
	else if (attr->ops.memory_refused)
		attr->ops.memory_refused(attr->ctx, map->addr, map->size, rc);
	return rc;
}

int dma_unmap(struct vnic_vfio_server *server, const struct vfio_user_dma_unmap *unmap)
{
	const struct vnic_vfio_attr *attr = &server->attr;
	int rc;

	if (unmap->argsz < sizeof(*unmap) || unmap->flags & ~UNMAP_ALL)
		return -EINVAL;
	if (unmap->flags & UNMAP_ALL) {
		dma_remove_all(server);
		return 0;
	}
	/* Memory that came without a descriptor was never mapped. */
	rc = vnic_guest_memory_check_unmap(attr->memory, unmap->addr, unmap->size);
	if (rc && rc != -ENOENT)
		return rc;
	attr->ops.memory_removed(attr->ctx, unmap->addr, unmap->size);
	server->removal =
		(struct dma_removal){.pending = true, .addr = unmap->addr, .size = unmap->size};
	return 0;
}

/* Removes all memory by one call of the model: with a call for each region, the model could still
 * use the regions that follow. */
static void remove_all(struct vnic_vfio_server *server)
{
	server->attr.ops.memory_removed(server->attr.ctx, 0, UINT64_MAX);
}

void dma_remove_all(struct vnic_vfio_server *server)
{
	uint32_t count;

	vnic_guest_memory_regions(server->attr.memory, &count);
	if (count)
		remove_all(server);
	/* Pending also if no region is left: mappings of lost pages may still exist. */
	server->removal = (struct dma_removal){.pending = true};
}

void dma_remove_again(struct vnic_vfio_server *server)
{
	const struct vnic_vfio_attr *attr = &server->attr;

	if (server->removal.size)
		attr->ops.memory_removed(attr->ctx, server->removal.addr, server->removal.size);
	else
		remove_all(server);
}

int dma_finish_unmap(struct vnic_vfio_server *server)
{
	const struct dma_removal removal = server->removal;
	int rc = 0;

	server->removal = (struct dma_removal){0};
	if (!removal.pending)
		return 0;
	if (removal.size)
		rc = vnic_guest_memory_unmap(server->attr.memory, removal.addr, removal.size);
	else
		vnic_guest_memory_unmap_all(server->attr.memory);
	return rc == -ENOENT ? 0 : rc;
}

void vnic_vfio_server_check_memory(struct vnic_vfio_server *server)
{
	const struct vnic_vfio_attr *attr = &server->attr;
	uint64_t addr, size;

	while (vnic_guest_memory_find_lost(attr->memory, &addr, &size)) {
		attr->ops.memory_removed(attr->ctx, addr, size);
		vnic_guest_memory_forget(attr->memory, addr, size);
		if (attr->ops.memory_lost)
			attr->ops.memory_lost(attr->ctx, addr, size);
	}
}
