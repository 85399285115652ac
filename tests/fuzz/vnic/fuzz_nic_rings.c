/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile guest against the rings of a vmxnet3 device, as of fuzz_nic_device. The device lives on
 * between inputs (world.h), and an input is a few steps. Its driver resets it when it has stopped,
 * and now and then. After 4,096 inputs the device must work with an honest driver.
 */
#include "nic_guest.h"
#include "require.h"
#include "world.h"

#define INPUTS 4096
#define BYTES  128
#define STEPS  12
/* Inputs after which the driver looks whether the device has stopped, and resets it anyway. */
#define STOPPED_INPUTS 4
#define DRIVER_INPUTS  32

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct nic_guest guest;

static void open_world(void)
{
	guest = (struct nic_guest){0};
	nic_guest_open(&guest, false);
	nic_guest_start(&guest, 0);
}

static bool wants_start(void)
{
	const uint32_t n = world_inputs();

	return n % DRIVER_INPUTS == 0 ||
	       (n % STOPPED_INPUTS == 0 && vnic_device_state(guest.dev) != VNIC_DEVICE_ACTIVE);
}

static void run_input(const uint8_t *data, size_t size)
{
	guest.in = (struct script){0};
	if (wants_start())
		nic_guest_start(&guest, size ? data[size - 1] : 0);
	guest.in = (struct script){data, size};
	for (unsigned i = 0; i < STEPS && guest.in.left; i++)
		nic_guest_step(&guest);
}

static void close_world(void)
{
	guest.in = (struct script){0};
	nic_guest_recover(&guest);
	nic_guest_close(&guest);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct world world = {INPUTS, BYTES, open_world, run_input, close_world, true};

	world_start(&world, argc, argv);
	return 0;
}
