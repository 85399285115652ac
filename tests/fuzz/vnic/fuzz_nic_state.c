/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The stream of a vmxnet3 device that a hostile hypervisor has changed: a device that accepts it
 * serves a hostile guest, as in fuzz_nic_device, and must work with an honest driver after a reset.
 */
#include <stddef.h>
#include <stdlib.h>

#include "nic_guest.h"
#include "require.h"
#include "state_patch.h"

#define MAX_STEP 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nic_guest g = {.in = {data, size}};
	const uint8_t first = script_get8(&g.in);
	uint8_t *stream, *again;
	size_t length;

	nic_guest_open(&g, first & 1);
	nic_guest_start(&g, first);
	for (uint32_t i = first % 16; i && g.in.left; i--)
		nic_guest_step(&g);
	vnic_device_pause(g.dev);
	require(!vnic_device_save(g.dev, &stream, &length));
	state_patch(&g.in, stream, length);
	if (!vnic_device_restore(g.dev, stream, length)) {
		require(!vnic_device_save(g.dev, &again, &length));
		require(!vnic_device_restore(g.dev, again, length));
		free(again);
		vnic_device_resume(g.dev);
	} else {
		require(vnic_device_state(g.dev) == VNIC_DEVICE_DOWN);
	}
	free(stream);
	for (uint32_t i = 0; i < MAX_STEP && g.in.left; i++)
		nic_guest_step(&g);
	nic_guest_recover(&g);
	nic_guest_close(&g);
	return 0;
}
