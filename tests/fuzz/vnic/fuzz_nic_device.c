/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile guest against the device side of the NIC. The input is the guest's actions:
 * descriptors, registers, commands, and bytes anywhere in its memory, also between the peek of a
 * frame and its completion, and during an interrupt. The guest's memory has exactly the size that
 * the device knows, so a sanitizer detects accesses outside.
 *
 * Frames must have valid lengths, and must not change until their completion. Refusals must have a
 * known reason. After a reset and with an honest driver the NIC must work again.
 */
#include <stddef.h>

#include "nic_guest.h"

#define MAX_STEP 400

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nic_guest g = {.in = {data, size}};
	const uint8_t first = script_get8(&g.in);

	nic_guest_open(&g, first & 1);
	nic_guest_start(&g, first);
	for (uint32_t i = 0; i < MAX_STEP && g.in.left; i++)
		nic_guest_step(&g);
	nic_guest_recover(&g);
	nic_guest_close(&g);
	return 0;
}
