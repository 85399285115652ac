/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a poll that wakes the daemon means for the detection of replies; time and engine are fake.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "objects/uverbs_file.h"
#include "poll/polling.h"

#define US 1000u

static struct {
	uint64_t time;      /* ns */
	uint32_t doorbells; /* of the NIC so far */
	bool acks;          /* the engine sends an ACK, for which the daemon is woken, */
	uint64_t preempted; /* and which takes the thread's processor for so long */
} w;

uint64_t __wrap_clock_read_kernel(void);
void __wrap_engine_run(uint64_t now);
void __wrap_engine_wake_for_work(void);
void __wrap_engine_wake_for_grant(uint64_t now);
bool __wrap_vnic_driver_tx_due(const struct vnic_driver *nic);
uint32_t __wrap_vnic_driver_tx_doorbells(const struct vnic_driver *nic);
void *__wrap_handle_find(const struct handle_table *handles, enum object_type type,
			 uint32_t handle);

uint64_t __wrap_clock_read_kernel(void)
{
	return w.time;
}

void __wrap_engine_run(uint64_t now)
{
	(void)now;
	w.doorbells += w.acks;
	w.time += w.preempted;
}

void __wrap_engine_wake_for_work(void)
{
}

void __wrap_engine_wake_for_grant(uint64_t now)
{
	(void)now;
}

bool __wrap_vnic_driver_tx_due(const struct vnic_driver *nic)
{
	(void)nic;
	return false;
}

uint32_t __wrap_vnic_driver_tx_doorbells(const struct vnic_driver *nic)
{
	(void)nic;
	return w.doorbells;
}

void *__wrap_handle_find(const struct handle_table *handles, enum object_type type, uint32_t handle)
{
	(void)handles;
	(void)type;
	(void)handle;
	return NULL;
}

/* The program takes a message, and posts its reply after so long. */
static void take_and_reply(uint64_t after)
{
	static const struct uverbs_file file;
	uint64_t now = clock_now();

	assert_true(polling_empty(&file, 1, &now));
	polling_found(now);
	w.time += after;
	polling_posted(polling_entered(clock_now()));
}

static int start(void **state)
{
	static int dev;

	(void)state;
	w.time = 1000000000u;
	w.acks = true;
	w.preempted = 50 * US;
	adapter.dev = (struct urxe_dev *)&dev;
	reply_detect_missed(&adapter_polling.reply, false);
	return 0;
}

static void wake_up_of_the_daemon_is_no_time_of_the_program(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < REPLY_DETECT_FIRST; i++) {
		assert_false(reply_detect_expected(&adapter_polling.reply));
		take_and_reply(1 * US);
	}
	assert_true(reply_detect_expected(&adapter_polling.reply));
}

static void slow_program_does_not_reply_at_once(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2 * REPLY_DETECT_FIRST; i++)
		take_and_reply(2 * REPLY_DETECT_NS);
	assert_false(reply_detect_expected(&adapter_polling.reply));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(wake_up_of_the_daemon_is_no_time_of_the_program, start),
		cmocka_unit_test_setup(slow_program_does_not_reply_at_once, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
