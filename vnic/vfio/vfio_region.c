/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* REGION_READ and REGION_WRITE: accesses to the BARs and to the configuration space. */
#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <string.h>

#include "vfio_server_private.h"

uint32_t region_size(const struct vnic_vfio_server *server, uint32_t region)
{
	if (region < VNIC_VFIO_BARS)
		return server->attr.function.bar_size[region];
	return region == VFIO_PCI_CONFIG_REGION_INDEX ? CONFIG_SPACE_SIZE : 0;
}

static bool access_valid(const struct vnic_vfio_server *server,
			 const struct vfio_user_access *access)
{
	const uint32_t size = region_size(server, access->region), count = access->count;

	if (!count || count > size || access->offset > size - count)
		return false;
	return access->region == VFIO_PCI_CONFIG_REGION_INDEX ||
	       (count <= 8 && !(count & (count - 1)) && access->offset % count == 0);
}

static bool in_range(uint64_t offset, uint32_t first, uint32_t size)
{
	return offset >= first && offset - first < size;
}

static bool is_msix(const struct vnic_vfio_server *server, const struct vfio_user_access *access)
{
	const struct vnic_vfio_function *f = &server->attr.function;

	return access->region == f->msix_bar &&
	       (access->offset < f->vectors * PCI_MSIX_ENTRY_SIZE ||
		in_range(access->offset, f->pba_offset, sizeof(server->irq.pending)));
}

/* Reads the pending bits; the table, which is the hypervisor's, reads as 0. */
static uint64_t read_msix(const struct vnic_vfio_server *server,
			  const struct vfio_user_access *access)
{
	const uint64_t at = access->offset - server->attr.function.pba_offset;

	return at < sizeof(server->irq.pending) ? server->irq.pending >> 8 * at : 0;
}

int region_read(struct vnic_vfio_server *server, const struct vfio_user_access *access,
		uint8_t *data)
{
	const struct vnic_vfio_attr *attr = &server->attr;
	uint64_t value;

	if (!access_valid(server, access))
		return -EINVAL;
	if (access->region == VFIO_PCI_CONFIG_REGION_INDEX) {
		memcpy(data, server->config.bytes + access->offset, access->count);
		return 0;
	}
	value = is_msix(server, access) ? read_msix(server, access)
					: attr->ops.read(attr->ctx, access->region,
							 (uint32_t)access->offset, access->count);
	memcpy(data, &value, access->count);
	return 0;
}

/*
 * A driver may withdraw the function's right to access memory and grant it again, as Linux does
 * around a suspension: the function keeps its state. After a kexec the next operating system finds
 * the function without the right, and asks for the sizes of the BARs: then the function is reset.
 */
static void write_config(struct vnic_vfio_server *server, const struct vfio_user_access *access,
			 const uint8_t *data)
{
	const struct vnic_vfio_ops *ops = &server->attr.ops;
	const bool was_master = config_space_is_master(&server->config);
	bool is_master;

	config_space_write(&server->config, (uint32_t)access->offset, data, access->count);
	is_master = config_space_is_master(&server->config);
	if (is_master != was_master)
		server_apply_master(server);
	if (!is_master && migration_is_running(server) &&
	    config_space_sizes_bar((uint32_t)access->offset, data, access->count)) {
		ops->reset(server->attr.ctx);
		server->irq.pending = 0;
	}
}

int region_write(struct vnic_vfio_server *server, const struct vfio_user_access *access,
		 const uint8_t *data)
{
	const struct vnic_vfio_attr *attr = &server->attr;
	uint64_t value = 0;

	if (!access_valid(server, access))
		return -EINVAL;
	if (access->region == VFIO_PCI_CONFIG_REGION_INDEX) {
		write_config(server, access, data);
		return 0;
	}
	if (is_msix(server, access))
		return 0;
	/* A migration has stopped the function and the machine's processors: no write may come. */
	if (!migration_is_running(server))
		return -EBUSY;
	memcpy(&value, data, access->count);
	attr->ops.write(attr->ctx, access->region, (uint32_t)access->offset, access->count, value);
	return 0;
}
