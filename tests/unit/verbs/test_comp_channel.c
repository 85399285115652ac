/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Channels of events, as the program reads them. */
#include "objects/comp_channel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapter/adapter.h"

#define EVENTS 64 /* more than the socket holds */

/* The socket has the older events, and a list the newer ones. */
static void a_withdrawal_keeps_the_order_of_other_events(void **state)
{
	struct comp_channel_event event = {0};
	struct comp_channel *channel;
	int fd;

	(void)state;
	fd_set_owner();
	assert_int_equal(comp_channel_create(sizeof(event), true, &channel, &fd), 0);
	adapter_lock();
	for (event.element = 1; event.element <= EVENTS; event.element++)
		comp_channel_send(channel, &event);
	assert_true(channel->n_waiting);
	assert_int_equal(comp_channel_withdraw(channel, 2, 1), 0);
	for (uint64_t i = 1; i <= EVENTS; i++) {
		if (i == 2)
			continue;
		assert_int_equal(recv(fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
		assert_int_equal(event.element, i);
		comp_channel_flush(channel);
	}
	assert_int_equal(recv(fd, &event, sizeof(event), MSG_DONTWAIT), -1);
	adapter_unlock();
	fd_remove(fd);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_withdrawal_keeps_the_order_of_other_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
