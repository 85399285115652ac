/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Changes of the port's GIDs: which of them the program and the HCA get. Attempts to open the HCA.
 * The test plays the daemon and the clock; a provider double plays the HCA.
 */
#include "daemon/port_attributes.h"
#include "engine/clock.h"
#include "hca_program.h"
#include "poll/polling.h"
#include "poll/thread_sleep.h"

#define MTU       1500
#define INTERFACE 3u
#define MS        UINT64_C(1000000)

static struct vnic_loop *loop;
static struct vnic_attach_port port; /* as the daemon sends it next */

static uint64_t now;

uint64_t __wrap_clock_read_kernel(void);

uint64_t __wrap_clock_read_kernel(void)
{
	return now;
}

static int setup(void **state)
{
	(void)state;
	now = 1000 * MS;
	fake_hca_init();
	fake_hca.ifindex = INTERFACE;
	loop = open_with_hca(MTU);
	port = adapter.welcome.port;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_with_hca(loop);
	return 0;
}

static void change_port(void)
{
	adapter_lock();
	port_changed(&port);
	adapter_unlock();
}

/* 0: the program has got no event. */
static uint32_t next_event(void)
{
	struct ib_uverbs_async_event_desc event = {0};

	fcntl(events, F_SETFL, O_NONBLOCK);
	return read(events, &event, sizeof(event)) > 0 ? event.event_type : 0;
}

/* A later urxed tells it, or the interface was made anew. */
static void another_interface_of_a_gid_changes_no_gid(void **state)
{
	(void)state;
	assert_true(hca_has_gid(adapter.hca.hca, 0));
	port.gids[0].ifindex = INTERFACE + 1;
	change_port();
	assert_int_equal(next_event(), 0);
	assert_false(hca_has_gid(adapter.hca.hca, 0));
	port.gids[0].ifindex = INTERFACE;
	change_port();
	assert_int_equal(next_event(), 0);
	assert_true(hca_has_gid(adapter.hca.hca, 0));
}

static void another_gid_is_an_event(void **state)
{
	(void)state;
	port.gids[0].raw[15]++;
	change_port();
	assert_int_equal(next_event(), IBV_EVENT_GID_CHANGE);
	assert_false(hca_has_gid(adapter.hca.hca, 0));
}

/* --- Attempts to open the HCA. */

/* The daemon names the HCA anew, as after a failure of the port with URXE_HCA_GONE=engine. */
static void return_without(int error)
{
	fake_hca.opens_to = FAKE_HCA_OPEN_DEVICE;
	fake_hca.open_error = error;
	set_hca("fake0");
	assert_null(adapter.hca.hca);
}

/* As the engine thread in each of its rounds. */
static void run_round(void)
{
	adapter_lock();
	if (adapter_hca_stale())
		adapter_hca_renew();
	adapter_unlock();
}

static void an_hca_that_could_not_be_opened_for_a_moment_is_opened_later(void **state)
{
	static const int errors[] = {EMFILE, ENFILE, ENOMEM};

	(void)state;
	return_without(EMFILE);
	for (uint32_t i = 0; i < 3; i++) {
		fake_hca.open_error = errors[i];
		now += (20 * MS << i) - 1;
		assert_false(adapter_hca_stale());
		now++;
		assert_true(adapter_hca_stale());
		run_round();
		assert_null(adapter.hca.hca);
	}
	fake_hca.opens_to = FAKE_HCA_OPEN_ALL;
	now += 160 * MS;
	run_round();
	assert_non_null(adapter.hca.hca);
	assert_true(hca_has_gid(adapter.hca.hca, 0));
	now += 3600 * 1000 * MS;
	assert_false(adapter_hca_stale());
}

static void an_hca_that_refuses_the_process_is_not_opened_again(void **state)
{
	(void)state;
	return_without(EACCES);
	now += 3600 * 1000 * MS;
	assert_false(adapter_hca_stale());
}

/* Not while the daemon names no HCA. */
static void an_hca_that_has_gone_is_not_opened_again(void **state)
{
	(void)state;
	return_without(EMFILE);
	set_hca("");
	now += 3600 * 1000 * MS;
	assert_false(adapter_hca_stale());
}

static void the_engine_thread_wakes_for_the_next_attempt(void **state)
{
	struct thread_sleep sleep = {0};

	(void)state;
	return_without(EMFILE);
	adapter_lock();
	thread_sleep_prepare(&sleep, now, true);
	adapter_unlock();
	assert_int_equal(sleep.until, now + 20 * MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(another_interface_of_a_gid_changes_no_gid),
		TEST(another_gid_is_an_event),
		TEST(an_hca_that_could_not_be_opened_for_a_moment_is_opened_later),
		TEST(an_hca_that_refuses_the_process_is_not_opened_again),
		TEST(an_hca_that_has_gone_is_not_opened_again),
		TEST(the_engine_thread_wakes_for_the_next_attempt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
