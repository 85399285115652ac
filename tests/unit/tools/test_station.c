/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two stations of urxe bench, connected by a netdev_mem pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include <netdev/netdev.h>
#include <rxe/rxe.h>

#include "bench/station.h"
#include "mem_port.h"

#define LENGTH 2

static struct station *listener, *client;
static int refused_rtr; /* the number, from 1, of the next transition to RTR that fails; 0: none */

int __real_urxe_qp_modify(struct urxe_qp *qp, uint64_t now, const struct urxe_qp_attr *attr,
			  uint32_t mask);
int __wrap_urxe_qp_modify(struct urxe_qp *qp, uint64_t now, const struct urxe_qp_attr *attr,
			  uint32_t mask);

int __wrap_urxe_qp_modify(struct urxe_qp *qp, uint64_t now, const struct urxe_qp_attr *attr,
			  uint32_t mask)
{
	if (attr->state == URXE_QPS_RTR && refused_rtr && !--refused_rtr)
		return -ENOSPC;
	return __real_urxe_qp_modify(qp, now, attr, mask);
}

static void create_ends(uint32_t depth)
{
	struct netdev *ends[2];

	assert_int_equal(netdev_mem_pair(depth, ends), 0);
	assert_int_equal(station_create(ends[0], true, &listener), 0);
	assert_int_equal(station_create(ends[1], false, &client), 0);
	station_greet(client);
}

static void meet(uint32_t depth)
{
	create_ends(depth);
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

/* The client learns that a peer answers, although it cannot connect to the peer. */
static void refused_connection_differs_from_no_answer(void **state)
{
	(void)state;
	create_ends(8);
	refused_rtr = 2; /* the client's: the listener's is the first */
	while (refused_rtr) {
		assert_int_equal(station_connect_error(client), 0);
		station_turn(listener);
		station_turn(client);
	}
	assert_int_equal(station_connect_error(client), ENOSPC);
	assert_false(station_connected(client));
	station_greet(client);
	while (!station_connected(client)) {
		station_turn(client);
		station_turn(listener);
	}
	assert_int_equal(station_connect_error(client), 0);
	part();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_connection_differs_from_no_answer),
		cmocka_unit_test(send_is_outstanding_until_its_acknowledgement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
