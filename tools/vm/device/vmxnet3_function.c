/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/device/vmxnet3_function.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/regs.h>

#define PCI_CLASS_ETHERNET 0x020000
#define MSIX_BAR           2

static uint64_t read_register(void *ctx, uint32_t bar, uint32_t offset, uint32_t size)
{
	struct vmxnet3_function *f = ctx;
	uint32_t value = 0;

	/* Registers are 32 bits wide; all other addresses read as 0, as on a PCI bus. */
	if (size == sizeof(value) && vnic_device_reg_read(f->dev, bar, offset, &value))
		value = 0;
	return value;
}

static void write_register(void *ctx, uint32_t bar, uint32_t offset, uint32_t size, uint64_t value)
{
	struct vmxnet3_function *f = ctx;

	if (size == sizeof(uint32_t))
		vnic_device_reg_write(f->dev, bar, offset, (uint32_t)value);
}

static void reset(void *ctx)
{
	struct vmxnet3_function *f = ctx;

	vnic_device_power_on(f->dev);
}

static void set_bus_master(void *ctx, bool on)
{
	vnic_device_set_bus_master(((struct vmxnet3_function *)ctx)->dev, on);
}

/* --- The guest's memory */

/* Appends a region; an empty one is left out. */
static void append_region(struct vnic_region *table, uint32_t *n, uint64_t addr, uint64_t end,
			  const struct vnic_guest_region *of)
{
	if (addr < end && *n < VNIC_REGIONS)
		table[(*n)++] = (struct vnic_region){addr, end - addr,
						     (uint8_t *)of->memory + (addr - of->addr)};
}

/* Gives the device all writable memory except [addr, addr + size). A region that ends at 2^64 loses
 * its last page, so that no region's end wraps: no machine has memory there. */
static void set_regions(struct vmxnet3_function *f, uint64_t addr, uint64_t size)
{
	struct vnic_region table[VNIC_REGIONS];
	const struct vnic_guest_region *regions;
	uint32_t count, n = 0;

	regions = vnic_guest_memory_regions(f->function.memory, &count);
	for (uint32_t i = 0; i < count; i++) {
		const struct vnic_guest_region *r = &regions[i];
		uint64_t end = r->addr + r->size < r->addr ? UINT64_MAX - 4095 : r->addr + r->size;

		if (!r->writable)
			continue;
		if (!size || addr >= end || addr + (size - 1) < r->addr) {
			append_region(table, &n, r->addr, end, r);
			continue;
		}
		append_region(table, &n, r->addr, addr, r);
		if (addr + (size - 1) < end - 1)
			append_region(table, &n, addr + size, end, r);
	}
	/* Without memory for the table the device loses all guest memory, which is safe. */
	if (vnic_device_set_regions(f->dev, table, n))
		vnic_device_set_regions(f->dev, NULL, 0);
}

static void add_memory(void *ctx, uint64_t addr, uint64_t size)
{
	(void)addr, (void)size;
	set_regions(ctx, 0, 0);
}

static void remove_memory(void *ctx, uint64_t addr, uint64_t size)
{
	set_regions(ctx, addr, size);
}

/* --- Migration */

static void pause_device(void *ctx)
{
	struct vmxnet3_function *f = ctx;

	function_pausing(&f->function);
	vnic_device_pause(f->dev);
	function_set_paused(&f->function, true);
}

static void resume_device(void *ctx)
{
	struct vmxnet3_function *f = ctx;

	function_set_paused(&f->function, false);
	vnic_device_resume(f->dev);
}

static int save_device(void *ctx, uint8_t **stream, size_t *length)
{
	struct vmxnet3_function *f = ctx;

	function_saving(&f->function);
	return vnic_device_save(f->dev, stream, length);
}

static int restore_device(void *ctx, const uint8_t *stream, size_t length)
{
	return vnic_device_restore(((struct vmxnet3_function *)ctx)->dev, stream, length);
}

static void mark_memory(void *ctx)
{
	vnic_device_mark_rings(((struct vmxnet3_function *)ctx)->dev);
}

static const struct vnic_vfio_migration_ops migration = {
	.stop = pause_device,
	.start = resume_device,
	.save = save_device,
	.restore = restore_device,
	.refused = function_state_refused,
	.logging = function_set_logging,
	.mark = mark_memory,
};

/* --- Opening */

static int create_device(struct vmxnet3_function *f, const uint8_t mac[6], uint16_t mtu)
{
	struct vnic_device_attr attr = {.mtu = mtu,
					.log = vnic_guest_memory_log(f->function.memory),
					.interrupt = function_interrupt,
					.ctx = f};

	f->bars = aligned_alloc(4096, VNIC_BAR_SIZE);
	if (!f->bars)
		return -ENOMEM;
	memset(f->bars, 0, VNIC_BAR_SIZE);
	attr.bars = f->bars;
	memcpy(attr.mac, mac, sizeof(attr.mac));
	return vnic_device_create(&attr, &f->dev);
}

int vmxnet3_function_open(struct vmxnet3_function *f, const char *path, const uint8_t mac[6],
			  uint16_t mtu, const struct function_owner *owner,
			  char error[FUNCTION_ERROR])
{
	struct vnic_vfio_attr attr = {
		.function = {.vendor = PCI_VENDOR_VMWARE,
			     .device = VMXNET3_PCI_DEVICE_ID,
			     .subsystem_vendor = PCI_VENDOR_VMWARE,
			     .subsystem = VMXNET3_PCI_DEVICE_ID,
			     .revision = VMXNET3_PCI_REVISION,
			     .class_code = PCI_CLASS_ETHERNET,
			     .multifunction = true,
			     .bar_size = {VNIC_BAR0_SIZE, VNIC_BAR1_SIZE, MSIX_BAR_SIZE},
			     .vectors = VMXNET3_MAX_INTRS,
			     .msix_bar = MSIX_BAR,
			     .pba_offset = PBA_OFFSET},
		.ops = {read_register, write_register, reset, add_memory, remove_memory, NULL,
			function_memory_refused, function_memory_lost, set_bus_master},
		.migration = &migration,
		.ctx = f,
	};
	int rc;

	*f = (struct vmxnet3_function){0};
	rc = function_init(&f->function, "vmxnet3") ?: create_device(f, mac, mtu);
	f->function.owner = owner;
	if (!rc)
		return function_serve(&f->function, path, &attr, error);
	snprintf(error, FUNCTION_ERROR, "cannot create the vmxnet3 device: %s", strerror(-rc));
	return rc;
}

void vmxnet3_function_close(struct vmxnet3_function *f)
{
	function_stop(&f->function);
	vnic_device_destroy(f->dev);
	free(f->bars);
	f->dev = NULL;
	f->bars = NULL;
	function_close(&f->function);
}
