/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When urxe vm starts a recording of the PVRDMA's engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rxe/record.h>

#include "pvrdma_driver.h"
#include "vm/host/engine_recording.h"

#define NOW 1000000000u /* ns */

/* The linker puts this function in the place of vnic_driver_bypass_allowed: a capture runs. */
bool __wrap_vnic_driver_bypass_allowed(const struct vnic_driver *driver);

bool __wrap_vnic_driver_bypass_allowed(const struct vnic_driver *driver)
{
	(void)driver;
	return false;
}

static struct {
	struct guest g;
	struct engine_recording recording;
	uint8_t nic; /* its address stands for the session's vNIC */
} f;

static int setup(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};

	(void)state;
	memset(&f, 0, sizeof(f));
	guest_open(&f.g, &(struct guest_attr){.id = 1});
	guest_start(&f.g);
	engine_recording_request(&f.recording, mac, vnic_record_create(), f.g.dev);
	assert_non_null(f.recording.ring.ring);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	engine_recording_close(&f.recording, f.g.dev);
	guest_close(&f.g);
	return 0;
}

static uint64_t tick(void)
{
	return engine_recording_tick(&f.recording, NOW, f.g.dev,
				     (const struct vnic_driver *)(const void *)&f.nic);
}

static bool is_recorded(void)
{
	return urxe_recording(pvrdma_engine(f.g.dev));
}

static void expect_waits(void)
{
	/* For an event: a machine may be paused for hours. */
	assert_true(tick() == UINT64_MAX);
	assert_false(f.recording.answered);
	assert_false(is_recorded());
}

static void expect_starts(void)
{
	assert_true(tick() == UINT64_MAX);
	assert_true(f.recording.answered);
	assert_true(is_recorded());
}

/* The end of the start gives peers their rights to copy back, which such a device must not have. */
static void a_device_without_bus_mastering_is_recorded_later(void **state)
{
	(void)state;
	pvrdma_set_bus_master(f.g.dev, false);
	expect_waits();
	pvrdma_set_bus_master(f.g.dev, true);
	expect_starts();
}

static void a_paused_device_is_recorded_later(void **state)
{
	(void)state;
	pvrdma_pause(f.g.dev, NOW);
	expect_waits();
	pvrdma_resume(f.g.dev, NOW);
	expect_starts();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_device_without_bus_mastering_is_recorded_later),
		TEST(a_paused_device_is_recorded_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
