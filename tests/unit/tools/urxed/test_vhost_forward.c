/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The loop of a vhost: uplink's process, between urxed's port and a machine's NIC, of which one
 * takes no frames. Time passes only while the loop sleeps; a sleep without an end is urxed's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netdev/shm.h>
#include <netdev/vhost.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "mem_port.h"
#include "urxed/vhost/vhost_forward.h"

#define MTU    1500
#define FRAMES 64u

#define NS_PER_MS 1000000

static struct {
	struct netdev *port; /* urxed's */
	struct netdev_shm_fds fds;
	struct netdev_shm_peer *peer;
	struct netdev *machine[2]; /* the loop's end, and the NIC's */
	struct timespec now;
	bool kicked;     /* the machine's NIC has an event, and its port a deadline, in the past */
	uint32_t sleeps; /* while it is kicked */
} lab;

/* --- In place of the clock, the kernel and DPDK */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = lab.now;
	return 0;
}

/* urxed ends after a millisecond, or many more sleeps than one needs for it. */
static bool has_seen_enough(void)
{
	return lab.kicked && (++lab.sleeps > 1000 || lab.now.tv_nsec >= NS_PER_MS);
}

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	(void)mask;
	for (nfds_t i = 0; i < n; i++)
		fds[i].revents = 0;
	if (timeout && !has_seen_enough()) {
		if (lab.kicked && fds[1].fd >= 0)
			return fds[1].revents = POLLIN;
		lab.now.tv_nsec += timeout->tv_nsec;
		lab.now.tv_sec += timeout->tv_sec + lab.now.tv_nsec / 1000000000;
		lab.now.tv_nsec %= 1000000000;
		return 0;
	}
	netdev_shm_disconnect(lab.port);
	fds[0].revents = POLLHUP;
	return 1;
}

void netdev_vhost_hold(struct netdev *port, void **buffers)
{
	(void)port;
	(void)buffers;
}

void netdev_vhost_free(void **buffers, uint32_t n)
{
	(void)buffers;
	(void)n;
}

/* Newer versions of DPDK's vhost driver count each refusal of a frame as an error. */
void __real_netdev_counters(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT]);
void __wrap_netdev_counters(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT]);

void __wrap_netdev_counters(struct netdev *port, uint64_t counters[NETDEV_COUNTER_COUNT])
{
	__real_netdev_counters(port, counters);
	if (port == lab.machine[0])
		counters[NETDEV_TX_ERRORS] = 128000;
}

uint64_t __real_netdev_next_deadline(struct netdev *port);
uint64_t __wrap_netdev_next_deadline(struct netdev *port);

uint64_t __wrap_netdev_next_deadline(struct netdev *port)
{
	return lab.kicked && port == lab.machine[0] ? 1 : __real_netdev_next_deadline(port);
}

int __wrap_netdev_wait_fd(struct netdev *port);

int __wrap_netdev_wait_fd(struct netdev *port)
{
	(void)port;
	return lab.fds.wake;
}

/* --- */

static int setup_with(uint32_t depth)
{
	struct netdev_shm_fds fds;

	lab.kicked = false;
	lab.sleeps = 0;
	lab.now = (struct timespec){1000, 0};
	assert_int_equal(netdev_shm_create(MTU, &lab.port), 0);
	assert_int_equal(netdev_shm_connect(lab.port, &fds), 0);
	lab.fds = (struct netdev_shm_fds){dup(fds.memory), dup(fds.wake), dup(fds.kick)};
	assert_int_equal(netdev_shm_attach(&lab.fds, &lab.peer), 0);
	netdev_shm_set_ready(lab.peer);
	assert_int_equal(netdev_mem_pair(depth, lab.machine), 0);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return setup_with(1);
}

static int setup_deep(void **state)
{
	(void)state;
	return setup_with(2 * NETDEV_SHM_DEPTH);
}

static int teardown(void **state)
{
	(void)state;
	netdev_shm_detach(lab.peer);
	close(lab.fds.memory);
	close(lab.fds.wake);
	close(lab.fds.kick);
	netdev_close(lab.port);
	netdev_close(lab.machine[0]);
	netdev_close(lab.machine[1]);
	return 0;
}

static void send_frames(struct netdev *port, uint32_t n)
{
	static const uint8_t data[60];
	const struct netdev_frame frame = {data, sizeof(data), sizeof(data), 0};

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(netdev_tx(port, 0, &frame, 1), 1);
}

/* urxed's port has counted them as sent. */
static void test_frames_that_a_machine_does_not_take_are_counted(void **state)
{
	uint64_t counters[NETDEV_COUNTER_COUNT];

	(void)state;
	send_frames(lab.machine[0], 1); /* the NIC's ring is full */
	send_frames(lab.port, FRAMES);
	vhost_forward_run(lab.machine[0], lab.peer, lab.fds.kick);
	netdev_counters(lab.port, counters);
	assert_int_equal(counters[NETDEV_TX_FRAMES], FRAMES);
	assert_int_equal(counters[NETDEV_TX_ERRORS], FRAMES);
	assert_int_equal(counters[NETDEV_TX_NO_PEER], 0);
	assert_in_range(lab.now.tv_nsec, 100000000, 200000000);
}

/* It would take the processor that urxed needs to empty the ring. */
static void test_a_full_ring_to_urxed_lets_the_process_sleep(void **state)
{
	(void)state;
	send_frames(lab.machine[1], NETDEV_SHM_DEPTH + 1);
	lab.kicked = true;
	vhost_forward_run(lab.machine[0], lab.peer, lab.fds.kick);
	assert_int_equal(lab.now.tv_nsec, NS_PER_MS);
	assert_in_range(lab.sleeps, 1, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_frames_that_a_machine_does_not_take_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_full_ring_to_urxed_lets_the_process_sleep,
						setup_deep, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
