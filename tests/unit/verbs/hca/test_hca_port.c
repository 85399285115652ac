/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Changes of the port's GIDs: which of them the program and the HCA get. The test plays the daemon;
 * a provider double plays the HCA.
 */
#include "daemon/port_attributes.h"
#include "hca_program.h"

#define MTU       1500
#define INTERFACE 3u

static struct vnic_loop *loop;
static struct vnic_attach_port port; /* as the daemon sends it next */

static int setup(void **state)
{
	(void)state;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(another_interface_of_a_gid_changes_no_gid),
		TEST(another_gid_is_an_event),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
