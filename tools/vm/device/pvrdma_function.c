/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/device/pvrdma_function.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"

#define PCI_DEVICE_PVRDMA       0x0820
#define PCI_CLASS_NETWORK_OTHER 0x028000
#define MSIX_BAR                0

static uint64_t read_register(void *ctx, uint32_t bar, uint32_t offset, uint32_t size)
{
	struct pvrdma_function *f = ctx;
	uint32_t value = 0;

	/* Registers are 32 bits wide; all other addresses read as 0, as on a PCI bus. */
	if (size == sizeof(value) && pvrdma_reg_read(f->dev, bar, offset, &value))
		value = 0;
	return value;
}

static uint64_t counter(const struct pvrdma_function *f, enum pvrdma_counter counter)
{
	return pvrdma_counters(f->dev)[counter];
}

static void write_register(void *ctx, uint32_t bar, uint32_t offset, uint32_t size, uint64_t value)
{
	struct pvrdma_function *f = ctx;
	const uint64_t polls = counter(f, PVRDMA_DOORBELL_POLL);
	const uint64_t commands = counter(f, PVRDMA_COMMANDS), now = now_ns();

	if (bar == PVRDMA_BAR_UAR)
		rest_rung(&f->doorbells, now);
	if (size == sizeof(uint32_t))
		pvrdma_reg_write(f->dev, now, bar, offset, (uint32_t)value);
	if (counter(f, PVRDMA_COMMANDS) != commands)
		f->command_until = now + COMMAND_HOLD_NS;
	if (counter(f, PVRDMA_DOORBELL_POLL) != polls)
		poll_hold_polled(&f->hold, now, counter(f, PVRDMA_COMPLETIONS));
	else
		poll_hold_end_series(&f->hold);
}

static void reset(void *ctx)
{
	struct pvrdma_function *f = ctx;

	pvrdma_reset(f->dev);
}

static void add_memory(void *ctx, uint64_t addr, uint64_t size)
{
	struct pvrdma_function *f = ctx;

	(void)addr;
	(void)size;
	pvrdma_memory_added(f->dev);
}

static void remove_memory(void *ctx, uint64_t addr, uint64_t size)
{
	struct pvrdma_function *f = ctx;

	pvrdma_memory_removed(f->dev, addr, size);
}

/* Whether nothing holds the server's reply: no peer copies to or from the machine's memory, no poll
 * waits (rest.h), and no command waits for the HCA. */
static bool has_settled(void *ctx)
{
	struct pvrdma_function *f = ctx;
	const struct pvrdma_owner *owner = f->device_owner;
	const uint64_t now = now_ns();

	if (poll_hold_waits(&f->hold, now, counter(f, PVRDMA_COMPLETIONS)))
		return false;
	if (pvrdma_command_waits(f->dev) && now < f->command_until)
		return false;
	return !owner->table || owner->copy_ops->settled(owner->copy_ctx);
}

static void set_bus_master(void *ctx, bool on)
{
	pvrdma_set_bus_master(((struct pvrdma_function *)ctx)->dev, on);
}

/* --- Migration */

static void pause_device(void *ctx)
{
	struct pvrdma_function *f = ctx;

	function_pausing(&f->function);
	pvrdma_pause(f->dev, now_ns());
	function_set_paused(&f->function, true);
}

static void resume_device(void *ctx)
{
	struct pvrdma_function *f = ctx;

	function_set_paused(&f->function, false);
	pvrdma_resume(f->dev, now_ns());
}

static int save_device(void *ctx, uint8_t **stream, size_t *length)
{
	struct pvrdma_function *f = ctx;

	function_saving(&f->function);
	return pvrdma_save(f->dev, now_ns(), stream, length);
}

static int restore_device(void *ctx, const uint8_t *stream, size_t length)
{
	return pvrdma_restore(((struct pvrdma_function *)ctx)->dev, now_ns(), stream, length);
}

/* Marks as written all memory that the HCA may write. PVRDMA marks the memory that it writes
 * itself, but an HCA does not tell what it writes. */
static void mark_hca_writes(void *ctx)
{
	pvrdma_report_hca_writes(((struct pvrdma_function *)ctx)->dev);
}

static const struct vnic_vfio_migration_ops migration = {
	.stop = pause_device,
	.start = resume_device,
	.save = save_device,
	.restore = restore_device,
	.refused = function_state_refused,
	.logging = function_set_logging,
	.mark = mark_hca_writes,
};

/* --- Opening */

static int create_device(struct pvrdma_function *f, const struct pvrdma_function_attr *attr)
{
	struct pvrdma_attr a = {
		.memory = f->function.memory,
		.mtu = attr->mtu,
		.roce_v1 = attr->roce_v1,
		.owner = attr->device_owner,
		.uar = f->uar.bytes,
		.interrupt = function_interrupt,
		.ctx = f,
	};

	memcpy(a.mac, attr->mac, sizeof(a.mac));
	if (getrandom(&a.seed, sizeof(a.seed), 0) != sizeof(a.seed))
		return -EIO;
	return pvrdma_create(&a, &f->dev);
}

static int open_uar(struct pvrdma_function *f, const struct pvrdma_function_attr *attr,
		    struct vnic_vfio_function *function)
{
	int rc;

	if (!attr->map_doorbells)
		return 0;
	rc = attr->doorbells ? uar_memory_adopt(&f->uar, attr->doorbells)
			     : uar_memory_open(&f->uar);
	if (rc)
		return rc;
	function->mapped_bar = PVRDMA_BAR_UAR;
	function->mapped_fd = f->uar.fd;
	return 0;
}

int pvrdma_function_open(struct pvrdma_function *f, const struct pvrdma_function_attr *attr,
			 char error[FUNCTION_ERROR])
{
	struct vnic_vfio_attr a = {
		.function = {.vendor = PCI_VENDOR_VMWARE,
			     .device = PCI_DEVICE_PVRDMA,
			     .subsystem_vendor = PCI_VENDOR_VMWARE,
			     .subsystem = PCI_DEVICE_PVRDMA,
			     .class_code = PCI_CLASS_NETWORK_OTHER,
			     .bar_size = {[MSIX_BAR] = MSIX_BAR_SIZE,
					  [PVRDMA_BAR_REG] = PVRDMA_REG_SIZE,
					  [PVRDMA_BAR_UAR] = PVRDMA_UAR_SIZE},
			     .vectors = PVRDMA_VECTORS,
			     .msix_bar = MSIX_BAR,
			     .pba_offset = PBA_OFFSET},
		.ops = {read_register, write_register, reset, add_memory, remove_memory,
			has_settled, function_memory_refused, function_memory_lost, set_bus_master},
		.migration = &migration,
		.ctx = f,
	};
	int rc;

	*f = (struct pvrdma_function){.device_owner = attr->device_owner};
	rc = function_init(&f->function, "pvrdma") ?: open_uar(f, attr, &a.function)
						    ?: create_device(f, attr);
	f->function.owner = attr->owner;
	if (!rc)
		return function_serve(&f->function, attr->path, &a, error);
	snprintf(error, FUNCTION_ERROR, "cannot create the PVRDMA device: %s", strerror(-rc));
	return rc;
}

void pvrdma_function_close(struct pvrdma_function *f)
{
	function_stop(&f->function);
	if (f->dev)
		pvrdma_destroy(f->dev);
	f->dev = NULL;
	uar_memory_close(&f->uar);
	function_close(&f->function);
}
