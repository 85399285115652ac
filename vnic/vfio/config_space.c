/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "config_space.h"

#include <linux/pci_regs.h>
#include <string.h>

#define MSIX_AT      0x40 /* offset of the capability */
#define BAR_SIZE_MIN 4096u
#define BAR_SIZE_MAX (UINT32_C(1) << 30)
#define COMMAND_WRITABLE \
	(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE)

static bool bar_size_valid(uint32_t size)
{
	return !size || (size >= BAR_SIZE_MIN && size <= BAR_SIZE_MAX && !(size & (size - 1)));
}

static bool msix_valid(const struct vnic_vfio_function *function)
{
	const uint32_t table = function->vectors * PCI_MSIX_ENTRY_SIZE,
		       pba = (function->vectors + 63) / 64 * 8;
	uint32_t size;

	if (!function->vectors || function->vectors > VNIC_VFIO_VECTORS ||
	    function->msix_bar >= VNIC_VFIO_BARS)
		return false;
	size = function->bar_size[function->msix_bar];
	return function->pba_offset % 8 == 0 && function->pba_offset >= table &&
	       function->pba_offset <= size && size - function->pba_offset >= pba;
}

bool config_space_function_valid(const struct vnic_vfio_function *function)
{
	for (uint32_t i = 0; i < VNIC_VFIO_BARS; i++)
		if (!bar_size_valid(function->bar_size[i]))
			return false;
	return msix_valid(function) && function->class_code < 1u << 24;
}

/* Little-endian, as all numbers of the configuration space. */
static void put(uint8_t *to, uint32_t value, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static void reset_header(struct config_space *space, const struct vnic_vfio_function *function)
{
	uint8_t *b = space->bytes, *w = space->writable;

	put(b + PCI_VENDOR_ID, function->vendor, 2);
	put(b + PCI_DEVICE_ID, function->device, 2);
	put(w + PCI_COMMAND, COMMAND_WRITABLE, 2);
	put(b + PCI_STATUS, PCI_STATUS_CAP_LIST, 2);
	b[PCI_REVISION_ID] = function->revision;
	put(b + PCI_CLASS_PROG, function->class_code, 3);
	w[PCI_CACHE_LINE_SIZE] = w[PCI_LATENCY_TIMER] = 0xff;
	b[PCI_HEADER_TYPE] = function->multifunction ? 0x80 : 0;
	for (uint32_t i = 0; i < VNIC_VFIO_BARS; i++)
		if (function->bar_size[i])
			put(w + PCI_BASE_ADDRESS_0 + 4 * i, ~(function->bar_size[i] - 1), 4);
	put(b + PCI_SUBSYSTEM_VENDOR_ID, function->subsystem_vendor, 2);
	put(b + PCI_SUBSYSTEM_ID, function->subsystem, 2);
	b[PCI_CAPABILITY_LIST] = MSIX_AT;
	w[PCI_INTERRUPT_LINE] = 0xff;
}

static void reset_msix(struct config_space *space, const struct vnic_vfio_function *function)
{
	uint8_t *b = space->bytes + MSIX_AT, *w = space->writable + MSIX_AT;

	b[PCI_CAP_LIST_ID] = PCI_CAP_ID_MSIX;
	put(b + PCI_MSIX_FLAGS, function->vectors - 1, 2);
	put(w + PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL, 2);
	put(b + PCI_MSIX_TABLE, function->msix_bar, 4);
	put(b + PCI_MSIX_PBA, function->pba_offset | function->msix_bar, 4);
}

void config_space_reset(struct config_space *space, const struct vnic_vfio_function *function)
{
	memset(space, 0, sizeof(*space));
	reset_header(space, function);
	reset_msix(space, function);
}

bool config_space_is_master(const struct config_space *space)
{
	return space->bytes[PCI_COMMAND] & PCI_COMMAND_MASTER;
}

bool config_space_sizes_bar(uint32_t offset, const uint8_t *data, uint32_t size)
{
	static const uint8_t ones[4] = {0xff, 0xff, 0xff, 0xff};

	return size == sizeof(ones) && offset >= PCI_BASE_ADDRESS_0 &&
	       offset <= PCI_BASE_ADDRESS_5 && !memcmp(data, ones, sizeof(ones));
}

void config_space_write(struct config_space *space, uint32_t offset, const uint8_t *data,
			uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		const uint8_t mask = space->writable[offset + i];
		uint8_t *byte = &space->bytes[offset + i];

		*byte = (uint8_t)((*byte & ~mask) | (data[i] & mask));
	}
}
