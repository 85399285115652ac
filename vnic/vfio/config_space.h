/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The PCI configuration space of a function: a type 0 header and an MSI-X capability. */
#ifndef URXE_VNIC_VFIO_CONFIG_SPACE_H
#define URXE_VNIC_VFIO_CONFIG_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <vnic/vfio_server.h>

#define CONFIG_SPACE_SIZE 256u

struct config_space {
	uint8_t bytes[CONFIG_SPACE_SIZE];
	uint8_t writable[CONFIG_SPACE_SIZE]; /* bits that the client can change */
};

bool config_space_function_valid(const struct vnic_vfio_function *function);
/* Sets the values after power-on. */
void config_space_reset(struct config_space *space, const struct vnic_vfio_function *function);
/* Whether the driver lets the function access memory (bus master bit of the command register). */
bool config_space_is_master(const struct config_space *space);
/*
 * Whether a write asks for the size of a BAR, as an operating system does before it uses a
 * function. offset + size: CONFIG_SPACE_SIZE at most.
 */
bool config_space_sizes_bar(uint32_t offset, const uint8_t *data, uint32_t size);
/* Writes the bits that the client can change. offset + size: CONFIG_SPACE_SIZE at most. */
void config_space_write(struct config_space *space, uint32_t offset, const uint8_t *data,
			uint32_t size);

#endif
