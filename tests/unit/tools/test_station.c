/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two stations of urxe bench, connected by a netdev_mem pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netdev/netdev.h>

#include "bench/station.h"

#define LENGTH 2

static struct station *listener, *client;

static void meet(uint32_t depth)
{
	struct netdev *ends[2];

	assert_int_equal(netdev_mem_pair(depth, ends), 0);
	assert_int_equal(station_create(ends[0], true, &listener), 0);
	assert_int_equal(station_create(ends[1], false, &client), 0);
	station_greet(client);
	while (!station_connected(client)) {
		station_turn(client);
		station_turn(listener);
	}
}

static void part(void)
{
	station_destroy(client);
	station_destroy(listener);
}

/*
 * With one frame at a time on the link, the echo of a SEND arrives before the acknowledgement. The
 * SEND counts as outstanding until the acknowledgement arrives.
 */
static void send_is_outstanding_until_its_acknowledgement(void **state)
{
	(void)state;
	meet(1);
	assert_int_equal(station_send(client, LENGTH), 0);
	while (!station_received(client)) {
		station_turn(client);
		station_turn(listener);
	}
	assert_int_equal(station_outstanding(client), 1);
	for (uint64_t i = 1; i < STATION_SENDS; i++)
		assert_int_equal(station_write(client, LENGTH), 0);
	assert_int_equal(station_outstanding(client), STATION_SENDS);
	assert_true(station_write(client, LENGTH) < 0);
	while (station_outstanding(client)) {
		station_turn(client);
		station_turn(listener);
	}
	assert_int_equal(station_completed(client), STATION_SENDS);
	assert_int_equal(station_failed(client), 0);
	part();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_is_outstanding_until_its_acknowledgement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
