/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a poll that wakes the daemon means for the detection of replies, how long the poll grant
 * lasts, that no poll waits for the lock, and which polls look at the HCA; time and engine are
 * fake.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "objects/uverbs_file.h"
#include "poll/engine_wake.h"
#include "poll/polling.h"

#define US 1000u

static struct {
	uint64_t time;      /* ns */
	uint32_t doorbells; /* of the NIC so far */
	bool acks;          /* the engine sends an ACK, for which the daemon is woken, */
	uint64_t preempted; /* and which takes the thread's processor for so long */
	bool hca_has_all;   /* the HCA executes all queue pairs */
	uint32_t hca_polls; /* looks at the HCA */
} w;

uint64_t __wrap_clock_read_kernel(void);
void __wrap_engine_run(uint64_t now);
void __wrap_engine_wake_for_work(void);
void __wrap_engine_wake_for_grant(uint64_t now);
bool __wrap_vnic_driver_tx_due(const struct vnic_driver *nic);
uint32_t __wrap_vnic_driver_tx_doorbells(const struct vnic_driver *nic);
void *__wrap_handle_find(const struct handle_table *handles, enum object_type type,
			 uint32_t handle);
bool __wrap_urxe_offload_all(const struct urxe_dev *dev);
void __wrap_engine_poll_hca(uint64_t now);

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

bool __wrap_urxe_offload_all(const struct urxe_dev *dev)
{
	(void)dev;
	return w.hca_has_all;
}

void __wrap_engine_poll_hca(uint64_t now)
{
	(void)now;
	w.hca_polls++;
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
	w.hca_has_all = false;
	w.hca_polls = 0;
	adapter.dev = (struct urxe_dev *)&dev;
	adapter.hca.hca = NULL;
	adapter.hca_open = false;
	adapter.hca.unhooked = false;
	delayed_ack_missed(&adapter_polling.delayed_ack, false);
	return 0;
}

static void wake_up_of_the_daemon_is_no_time_of_the_program(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < DELAYED_ACK_FIRST; i++) {
		assert_false(delayed_ack_allowed(&adapter_polling.delayed_ack));
		take_and_reply(1 * US);
	}
	assert_true(delayed_ack_allowed(&adapter_polling.delayed_ack));
}

static void slow_program_does_not_reply_at_once(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2 * DELAYED_ACK_FIRST; i++)
		take_and_reply(2 * DELAYED_ACK_REPLY_NS);
	assert_false(delayed_ack_allowed(&adapter_polling.delayed_ack));
}

/* The nanoseconds of the poll grant that an empty poll gives. */
static uint64_t grant_of_a_poll(void)
{
	static const struct uverbs_file file;
	uint64_t now = clock_now();

	polling_empty(&file, 1, &now);
	return adapter_polling.grant_until - w.time;
}

/* The engine thread's wake-ups are slow, so that it looks at the grant each 8 ms. */
static void only_an_hca_with_all_queue_pairs_makes_the_grant_longer(void **state)
{
	static int hca;

	(void)state;
	w.acks = false;
	w.preempted = 0;
	adapter_thread.look = 8000 * US;
	assert_int_equal(grant_of_a_poll(), POLL_GRANT_NS);
	adapter.hca.hca = (struct hca *)&hca;
	adapter.hca_open = true;
	assert_int_equal(grant_of_a_poll(), POLL_GRANT_NS);
	w.hca_has_all = true;
	assert_int_equal(grant_of_a_poll(), 8000 * US);
	polling_shorten_grant(w.time);
	assert_int_equal(adapter_polling.grant_until - w.time, POLL_GRANT_NS);
	adapter.hca.unhooked = true;
	assert_int_equal(grant_of_a_poll(), POLL_GRANT_NS);
}

/* The program will be away for long, and another thread has the lock: the grant is not returned. */
static void poll_that_found_completions_does_not_wait(void **state)
{
	(void)state;
	atomic_store(&adapter_polling.detect.score, POLL_DETECT_FORGET_LOST);
	adapter_lock();
	polling_found(w.time);
	adapter_unlock();
	atomic_store(&adapter_polling.detect.score, 0);
}

/* Each post of the program completes at once, so that no poll finds the CQ empty. The HCA has
 * completions of another queue pair. */
static void polls_that_find_completions_look_at_the_hca(void **state)
{
	static int hca;

	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		polling_found(w.time);
	assert_int_equal(w.hca_polls, 0);
	adapter.hca.hca = (struct hca *)&hca;
	adapter.hca_open = true;
	for (unsigned int i = 0; i < 100; i++)
		polling_found(w.time);
	assert_in_range(w.hca_polls, 2, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(wake_up_of_the_daemon_is_no_time_of_the_program, start),
		cmocka_unit_test_setup(slow_program_does_not_reply_at_once, start),
		cmocka_unit_test_setup(poll_that_found_completions_does_not_wait, start),
		cmocka_unit_test_setup(only_an_hca_with_all_queue_pairs_makes_the_grant_longer,
				       start),
		cmocka_unit_test_setup(polls_that_find_completions_look_at_the_hca, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
