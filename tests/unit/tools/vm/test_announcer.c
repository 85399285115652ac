/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A machine announces itself as soon as it has a port, and only the first frame tells its device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vm/host/announcer.h"
#include "vm/host/switch_link.h"

#define T0 UINT64_C(1000000000)

static unsigned sent;
static uint32_t room = 1;

uint32_t __wrap_switch_link_room(const struct switch_link *link);
void __wrap_switch_link_send(struct switch_link *link, const uint8_t *data, uint32_t len);
void __wrap_switch_link_flush(struct switch_link *link);

uint32_t __wrap_switch_link_room(const struct switch_link *link)
{
	(void)link;
	return room;
}

void __wrap_switch_link_send(struct switch_link *link, const uint8_t *data, uint32_t len)
{
	assert_memory_equal(data + 6, link->mac, 6);
	assert_int_equal(len, 60);
	sent++;
}

void __wrap_switch_link_flush(struct switch_link *link)
{
	(void)link;
}

static void test_announcement_begins_with_the_port(void **state)
{
	struct switch_link link = {.mac = {2, 0, 0, 0, 0, 1}};
	struct announcer a;
	bool began;

	(void)state;
	announcer_begin(&a, T0);
	assert_int_equal(announcer_tick(&a, &link, T0, &began), UINT64_MAX);
	assert_false(began);
	assert_int_equal(sent, 0);
	link.peer = (struct netdev_shm_peer *)&link; /* a daemon has come */
	for (uint64_t now = T0 + 1; now != UINT64_MAX;) {
		now = announcer_tick(&a, &link, now, &began);
		assert_int_equal(began, sent == 1);
	}
	assert_int_equal(sent, 5);
}

/* A frame for which the ring to urxed has no room goes out later. */
static void test_full_ring_costs_no_announcement(void **state)
{
	struct switch_link link = {.mac = {2, 0, 0, 0, 0, 1}};
	uint64_t now = T0;
	struct announcer a;
	bool began;

	(void)state;
	link.peer = (struct netdev_shm_peer *)&link;
	announcer_begin(&a, now);
	sent = room = 0;
	for (int i = 0; i < 10; i++) {
		uint64_t next = announcer_tick(&a, &link, now, &began);

		assert_false(began);
		assert_true(next > now && next - now <= 1000000);
		now = next;
	}
	assert_int_equal(sent, 0);
	room = 1;
	while (now != UINT64_MAX) {
		now = announcer_tick(&a, &link, now, &began);
		assert_int_equal(began, sent == 1);
	}
	assert_int_equal(sent, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_announcement_begins_with_the_port),
		cmocka_unit_test(test_full_ring_costs_no_announcement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
