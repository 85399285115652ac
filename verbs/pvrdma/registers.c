/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The guest's accesses to the registers in BAR1 and the doorbells in BAR2, and the device's
 * interrupts. */
#include <errno.h>

#include "activate.h"
#include "commands/pvrdma_command.h"
#include "doorbell.h"
#include "pvrdma_device.h"
#include "pvrdma_hca.h"
#include "pvrdma_port.h"
#include "queues/pvrdma_cq.h"
#include "queues/pvrdma_qp.h"
#include "shared_region.h"

void pv_raise(struct pvrdma *dev, enum pv_vector vector)
{
	const uint32_t cause = 1u << vector;

	if (dev->no_master || dev->imr & cause) {
		dev->masked_causes |= cause;
		return;
	}
	dev->icr |= cause;
	pv_count(dev, PVRDMA_INTERRUPTS);
	dev->attr.interrupt(dev->attr.ctx, vector);
}

static void raise_causes(struct pvrdma *dev, uint32_t causes)
{
	for (unsigned vector = 0; vector < PV_VECTORS; vector++)
		if (causes & 1u << vector)
			pv_raise(dev, vector);
}

void pv_raise_unread(struct pvrdma *dev)
{
	raise_causes(dev, dev->icr);
}

static void set_mask(struct pvrdma *dev, uint32_t mask)
{
	const uint32_t due = dev->masked_causes & ~mask;

	dev->imr = mask;
	dev->masked_causes &= mask;
	raise_causes(dev, due);
}

void pvrdma_set_bus_master(struct pvrdma *dev, bool on)
{
	if (dev->no_master == !on)
		return;
	/* Detaches the HCA while the device still may write memory, because flushed requests
	 * complete. */
	if (!on)
		pv_hca_detach(dev);
	dev->no_master = !on;
	if (on) {
		dev->polls_all = true;
		set_mask(dev, dev->imr);
		pv_qp_fail_due(dev);
		pv_hca_attach(dev);
		pv_port_report_link(dev);
		/* Not after a restoration: the guest's memory may still be missing, and the
		 * engine's saved state tells which CQs are armed. */
		if (!dev->paused)
			pv_cq_arm_all(dev);
	} else if (dev->active) {
		urxe_copy_rights_withdraw(dev->engine);
	}
}

/* Resets the device, and loads the shared region at a guest address: the driver may load a region
 * again without a reset, after kexec for example. 0 or a negative errno value. */
static int load_region(struct pvrdma *dev, uint64_t addr)
{
	pvrdma_reset(dev);
	return pv_shared_region_load(dev, addr);
}

/*
 * The driver writes UNQUIESCE when it has set up the NIC, and then tells its users that the port is
 * active. If the link is down, the device sends PORT_ERR after that. ERR gets no error for a link
 * that is down: the driver takes no lock here, so another thread's command could read that error as
 * its own. -EINVAL: the device is not active.
 */
static int unquiesce(struct pvrdma *dev)
{
	if (!dev->active)
		return -EINVAL;
	dev->believed_down = false;
	pv_port_delay_report(dev);
	return 0;
}

static int control(struct pvrdma *dev, uint32_t value)
{
	switch (value) {
	case PV_CTL_ACTIVATE: return pv_activate(dev);
	case PV_CTL_UNQUIESCE: return unquiesce(dev);
	case PV_CTL_RESET: pvrdma_reset(dev); return 0;
	default: return -EINVAL;
	}
}

/* Sets the register ERR, a positive errno value, from a result of 0 or a negative one. */
static void set_error(struct pvrdma *dev, int rc)
{
	dev->err = (uint32_t)-rc;
}

static int load_region_at(struct pvrdma *dev, uint32_t high)
{
	return dev->no_master ? -EIO : load_region(dev, (uint64_t)high << 32 | dev->dsr_low);
}

static int write_register(struct pvrdma *dev, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case PV_REG_DSRLOW:
		dev->dsr_low = value;
		set_error(dev, 0);
		return 0;
	case PV_REG_DSRHIGH: set_error(dev, load_region_at(dev, value)); return 0;
	case PV_REG_CTL: set_error(dev, control(dev, value)); return 0;
	case PV_REG_REQUEST: set_error(dev, pv_command_execute(dev)); return 0;
	case PV_REG_IMR: set_mask(dev, value); return 0;
	case PV_REG_VERSION:
	case PV_REG_ERR:
	case PV_REG_ICR:
	case PV_REG_MACL:
	case PV_REG_MACH: return 0;
	default: return -EINVAL;
	}
}

int pvrdma_reg_write(struct pvrdma *dev, uint64_t now, uint32_t bar, uint32_t offset,
		     uint32_t value)
{
	int rc = -EINVAL;

	pv_pass_time(dev, now);
	if (bar == PV_BAR_REG)
		rc = write_register(dev, offset, value);
	else if (bar == PV_BAR_UAR)
		rc = pv_doorbell(dev, offset, value);
	if (rc)
		pv_count(dev, PVRDMA_REGISTER_BAD);
	return rc;
}

static uint32_t mac_bytes(const struct pvrdma *dev, unsigned from, unsigned n)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint32_t)dev->attr.mac[from + i] << 8 * i;
	return value;
}

static int read_register(struct pvrdma *dev, uint32_t offset, uint32_t *value)
{
	switch (offset) {
	case PV_REG_VERSION: *value = PV_VERSION; return 0;
	case PV_REG_ERR: *value = dev->err; return 0;
	case PV_REG_ICR:
		*value = dev->icr;
		dev->icr = 0;
		return 0;
	case PV_REG_IMR: *value = dev->imr; return 0;
	case PV_REG_MACL: *value = mac_bytes(dev, 0, 4); return 0;
	case PV_REG_MACH: *value = mac_bytes(dev, 4, 2); return 0;
	case PV_REG_DSRLOW:
	case PV_REG_DSRHIGH:
	case PV_REG_CTL:
	case PV_REG_REQUEST: return 0;
	default: return -EINVAL;
	}
}

int pvrdma_reg_read(struct pvrdma *dev, uint32_t bar, uint32_t offset, uint32_t *value)
{
	int rc = -EINVAL;

	*value = 0;
	if (bar == PV_BAR_REG)
		rc = read_register(dev, offset, value);
	else if (bar == PV_BAR_UAR && offset % 4 == 0 && offset < PVRDMA_UAR_SIZE)
		rc = 0;
	if (rc)
		pv_count(dev, PVRDMA_REGISTER_BAD);
	return rc;
}
