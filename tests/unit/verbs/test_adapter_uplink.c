/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attempts to get the packet sockets of a direct uplink. The test plays daemon, kernel and clock.
 */
#include "daemon/adapter_uplink.h"

#include <errno.h>

#include "engine/clock.h"
#include "loop_adapter.h"
#include "poll/polling.h"
#include "poll/thread_sleep.h"

#define MS UINT64_C(1000000)

static struct vnic_loop *loop;
static uint64_t now;
static int answer;        /* of the daemon: number of sockets, or a negative errno value */
static uint32_t asked;    /* how often the adapter asked the daemon */
static uint32_t closed;   /* groups of sockets */
static uint32_t declined; /* how often the adapter told the daemon that it has no sockets */
static uint32_t looks;    /* whether the ring has stopped */
static enum packet_ring_state ring;
static uint64_t deadline; /* of the engine */
static uint32_t drops;    /* frames that the rings have lost since the last look */

uint64_t __wrap_clock_read_kernel(void);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask);
int __wrap_vnic_driver_uplink(struct vnic_driver *drv, struct vnic_attach_uplink *to,
			      int fds[VNIC_UPLINK_SOCKETS]);
void __wrap_vnic_driver_decline_uplink(struct vnic_driver *drv, int reason);
int __wrap_packet_group_open(const int *fds, uint32_t n, const struct packet_port_ring *sizes,
			     struct packet_group **group);
int __wrap_packet_group_accept(const struct packet_group *group, const uint16_t *blocks,
			       uint32_t n);
void __wrap_packet_group_close(struct packet_group *group);
int __wrap_packet_group_irq_fd(const struct packet_group *group);
uint32_t __wrap_packet_group_rx(struct packet_group *group, struct packet_port_frame *frames,
				uint32_t n);
enum packet_ring_state __wrap_packet_group_ring_state(struct packet_group *group);

uint64_t __wrap_clock_read_kernel(void)
{
	return now;
}

/* The program polls at the end of each sleep. */
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	(void)fds;
	(void)n;
	(void)mask;
	now += (uint64_t)timeout->tv_sec * 1000 * MS + (uint64_t)timeout->tv_nsec;
	adapter_polling.grant_until = now + adapter_polling.grant_ns;
	return 0;
}

int __wrap_vnic_driver_uplink(struct vnic_driver *drv, struct vnic_attach_uplink *to,
			      int fds[VNIC_UPLINK_SOCKETS])
{
	(void)drv;
	*to = (struct vnic_attach_uplink){0};
	fds[0] = -1;
	asked++;
	return answer;
}

void __wrap_vnic_driver_decline_uplink(struct vnic_driver *drv, int reason)
{
	(void)drv;
	assert_true(reason < 0);
	assert_null(adapter.uplink);
	declined++;
}

int __wrap_packet_group_open(const int *fds, uint32_t n, const struct packet_port_ring *sizes,
			     struct packet_group **group)
{
	(void)fds;
	(void)n;
	(void)sizes;
	*group = (struct packet_group *)loop; /* any address */
	return 0;
}

int __wrap_packet_group_accept(const struct packet_group *group, const uint16_t *blocks, uint32_t n)
{
	(void)group;
	(void)blocks;
	(void)n;
	return 0;
}

uint32_t __wrap_packet_group_rx(struct packet_group *group, struct packet_port_frame *frames,
				uint32_t n)
{
	(void)group;
	(void)frames;
	(void)n;
	return 0;
}

int __wrap_packet_group_irq_fd(const struct packet_group *group)
{
	(void)group;
	return -1;
}

void __wrap_packet_group_close(struct packet_group *group)
{
	closed += group != NULL;
}

enum packet_ring_state __wrap_packet_group_ring_state(struct packet_group *group)
{
	(void)group;
	looks++;
	return ring;
}

uint32_t __wrap_packet_group_read_drops(struct packet_group *group);

uint32_t __wrap_packet_group_read_drops(struct packet_group *group)
{
	const uint32_t lost = drops;

	assert_non_null(group);
	drops = 0;
	return lost;
}

uint64_t __wrap_urxe_next_deadline(const struct urxe_dev *dev);

uint64_t __wrap_urxe_next_deadline(const struct urxe_dev *dev)
{
	(void)dev;
	return deadline;
}

static int setup(void **state)
{
	(void)state;
	deadline = URXE_NEVER;
	now = 1000 * MS;
	asked = closed = declined = looks = 0;
	ring = PACKET_RING_RUNS;
	loop = loop_adapter_open(1500);
	adapter.welcome.port.uplink_generation = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	adapter_lock();
	adapter_close_uplink();
	adapter_unlock();
	loop_adapter_close(loop);
	return 0;
}

/* As the engine thread in each of its rounds. */
static void run_round(void)
{
	adapter_lock();
	if (adapter_uplink_stale())
		adapter_renew_uplink();
	adapter_unlock();
}

static void a_process_without_descriptors_asks_again(void **state)
{
	static const int errors[] = {-EMFILE, -ENFILE, -ENOMEM, -ENOBUFS};

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		answer = errors[i];
		run_round();
		assert_int_equal(asked, i + 1);
		run_round();
		assert_int_equal(asked, i + 1);
		assert_null(adapter.uplink);
		now += 20 * MS << i;
	}
	answer = 1;
	run_round();
	assert_non_null(adapter.uplink);
	now += 3600 * 1000 * MS;
	run_round();
	assert_int_equal(asked, 5);
	assert_int_equal(closed, 0);
}

static void a_refused_process_does_not_ask_again(void **state)
{
	(void)state;
	answer = -EPERM;
	run_round();
	now += 3600 * 1000 * MS;
	run_round();
	assert_int_equal(asked, 1);
}

/* The process was stopped while the daemon sent that many notices. */
static void a_process_asks_again_after_256_changes(void **state)
{
	(void)state;
	answer = 1;
	run_round();
	assert_int_equal(asked, 1);
	adapter.welcome.port.uplink_generation += 256;
	run_round();
	assert_int_equal(asked, 2);
	run_round();
	assert_int_equal(asked, 2);
}

/* Also if the program polls without end. */
static void the_engine_thread_wakes_for_the_next_attempt(void **state)
{
	struct thread_sleep sleep = {0};

	(void)state;
	answer = -EMFILE;
	run_round();
	adapter_lock();
	thread_sleep_prepare(&sleep, now, true);
	assert_int_equal(sleep.until, now + 20 * MS);
	adapter_unlock();
	adapter_polling.grant_ns = POLL_GRANT_NS;
	adapter_polling.grant_until = sleep.until = now + POLL_GRANT_NS;
	thread_sleep_wait(&sleep, now);
	run_round();
	assert_int_equal(asked, 2);
}

static void a_stopped_ring_is_replaced(void **state)
{
	struct thread_sleep sleep = {0};

	(void)state;
	answer = 1;
	run_round();
	run_round();
	assert_int_equal(looks, 0);
	adapter_lock();
	thread_sleep_prepare(&sleep, now, true);
	assert_int_equal(sleep.until, now + 100 * MS);
	adapter_unlock();
	now += 100 * MS;
	run_round();
	run_round();
	assert_int_equal(looks, 1);
	assert_int_equal(asked, 1);
	/* No frame has come since the start. */
	now += 100 * MS;
	run_round();
	assert_int_equal(looks, 1);
	now += 900 * MS;
	ring = PACKET_RING_STOPPED;
	run_round();
	assert_int_equal(looks, 2);
	assert_int_equal(asked, 2);
	assert_int_equal(closed, 1);
	ring = PACKET_RING_RUNS;
	/* While frames come, the next look is soon. */
	for (uint32_t i = 0; i < 3; i++) {
		adapter_polling.heard_at = now;
		now += 100 * MS;
		run_round();
		assert_int_equal(looks, 3 + i);
	}
	assert_int_equal(asked, 2);
}

/* The switch delivers the packets that the sockets have received so far. */
static void the_daemon_learns_when_the_sockets_are_closed(void **state)
{
	(void)state;
	adapter.welcome.port.uplink_generation = 0;
	run_round();
	assert_int_equal(declined, 0);
	answer = 1;
	adapter.welcome.port.uplink_generation = 2;
	run_round();
	assert_non_null(adapter.uplink);
	adapter.welcome.port.uplink_generation = 0;
	run_round();
	run_round();
	assert_int_equal(closed, 1);
	assert_int_equal(declined, 1);
}

/* Until the daemon learns that, the switch does not deliver what the old sockets receive. */
static void old_sockets_are_closed_before_new_ones_are_declined(void **state)
{
	(void)state;
	answer = 1;
	run_round();
	answer = -EMFILE;
	adapter.welcome.port.uplink_generation++;
	run_round();
	assert_int_equal(closed, 1);
	assert_int_equal(declined, 1);
}

/* The kernel's count ends with the sockets. */
static void frames_that_a_replaced_ring_has_lost_count(void **state)
{
	(void)state;
	answer = 1;
	run_round();
	drops = 5;
	adapter.welcome.port.uplink_generation++;
	run_round();
	assert_int_equal(closed, 1);
	assert_int_equal(adapter_counter(VNIC_BYPASS_UPLINK_MISSED), 5);
	drops = 2;
	adapter_lock();
	adapter_count_missed();
	adapter_count_missed();
	adapter_close_uplink();
	adapter_count_missed();
	adapter_unlock();
	assert_int_equal(adapter_counter(VNIC_BYPASS_UPLINK_MISSED), 7);
}

/* The process sends requests just after a look, and no answer comes. */
static void a_stopped_ring_is_found_before_the_retries_end(void **state)
{
	(void)state;
	answer = 1;
	run_round();
	now += 100 * MS;
	run_round();
	assert_int_equal(looks, 1);
	for (uint32_t i = 0; i < 2; i++) {
		deadline = now + 67 * MS;
		run_round();
		assert_int_equal(looks, 1);
		now += 67 * MS;
	}
	run_round();
	assert_int_equal(looks, 2);
	/* The engine thread runs no round while the program polls. */
	deadline = URXE_NEVER;
	now += 100 * MS;
	run_round();
	adapter_polling.state = POLL_PROGRAM;
	run_round();
	assert_int_equal(looks, 3);
	assert_true(adapter.uplink_look_at <= now + 100 * MS);
	adapter_polling.state = POLL_ASLEEP;
}

/* Stops the ring; the adapter has no uplink for `pause` then. */
static void stop_ring(uint64_t pause)
{
	const uint32_t before = asked;

	now += 100 * MS;
	adapter_polling.heard_at = now;
	drops = 3;
	ring = PACKET_RING_STOPPED;
	run_round();
	ring = PACKET_RING_RUNS;
	assert_int_equal(asked, before + !pause);
	assert_int_equal(!adapter.uplink, pause != 0);
	if (!pause)
		return;
	now += pause - 1;
	run_round();
	assert_int_equal(asked, before);
	now++;
	run_round();
	assert_int_equal(asked, before + 1);
	assert_non_null(adapter.uplink);
}

/* Another station repeats the packet. */
static void a_ring_that_stops_again_is_replaced_later_each_time(void **state)
{
	const uint64_t missed = adapter_counter(VNIC_BYPASS_UPLINK_MISSED);

	(void)state;
	answer = 1;
	run_round();
	stop_ring(0);
	for (uint32_t i = 0; i < 13; i++)
		stop_ring(i < 12 ? 20 * MS << i : 60 * 1000 * MS);
	assert_int_equal(declined, 13);
	assert_int_equal(adapter_counter(VNIC_BYPASS_UPLINK_MISSED), missed + 3 * 14);
	now += 11 * 1000 * MS;
	stop_ring(0);
	stop_ring(20 * MS);
}

/* No packet of another station has stopped it. */
static void a_ring_that_was_full_before_a_silence_costs_no_pause(void **state)
{
	(void)state;
	answer = 1;
	run_round();
	ring = PACKET_RING_SUSPECT;
	for (uint32_t i = 0; i < 50; i++) {
		now += 100 * MS;
		adapter_polling.heard_at = now;
		run_round();
		assert_non_null(adapter.uplink);
		assert_int_equal(asked, 2);
	}
	now += 10 * 1000 * MS;
	run_round();
	assert_int_equal(asked, 3);
	assert_int_equal(declined, 0);
	/* The first real stop costs none either. */
	stop_ring(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_process_without_descriptors_asks_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_refused_process_does_not_ask_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_process_asks_again_after_256_changes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_engine_thread_wakes_for_the_next_attempt, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_stopped_ring_is_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stopped_ring_is_found_before_the_retries_end,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_ring_that_stops_again_is_replaced_later_each_time,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_ring_that_was_full_before_a_silence_costs_no_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(the_daemon_learns_when_the_sockets_are_closed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(old_sockets_are_closed_before_new_ones_are_declined,
						setup, teardown),
		cmocka_unit_test_setup_teardown(frames_that_a_replaced_ring_has_lost_count, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
