/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The descriptors of DPDK ports with interrupts: a vhost port and its guest, another process with
 * virtio-user, which sends back what it gets and sleeps meanwhile, as the port's user does here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netdev/netdev.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ull
/* A machine that is busy with other tests may stall a process for this long. */
#define PATIENCE (20 * SECOND)
/* A deadline that is further away than this is none: who sleeps has to be woken. */
#define FAR_AWAY (SECOND / 2)
#define LENGTH   64

static struct {
	char folder[32], path[40];
	struct netdev *port;
	pid_t guest;
} lab;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static bool asks_for_a_look(struct netdev *port, uint64_t now)
{
	return netdev_next_deadline(port) < now + FAR_AWAY;
}

/* Sleeps until a frame, the port's deadline if that is near, or that time. */
static void sleep_on(struct netdev *port, uint64_t until)
{
	struct pollfd fd = {netdev_wait_fd(port), POLLIN, 0};
	uint64_t now = now_ns(),
		 ns = asks_for_a_look(port, now) ? netdev_next_deadline(port) : until;
	struct timespec ts;

	ns = ns > now ? ns - now : 0;
	ts = (struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)};
	ppoll(&fd, 1, ns > 2 * PATIENCE ? NULL : &ts, NULL);
}

/* --- The guest */

static int guest_main(const char *path)
{
	uint8_t frame[LENGTH] = "hello";
	struct netdev_frame got;
	struct netdev *port;
	char spec[128], error[256];

	snprintf(spec, sizeof(spec), "dpdk:net_virtio_user0,path=%s,mac=02:00:00:00:00:02", path);
	if (netdev_dpdk_open(spec, 0, &port, error, sizeof(error))) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	netdev_wait_fd(port);
	while (!netdev_tx(port, now_ns(), &(struct netdev_frame){frame, LENGTH}, 1))
		usleep(1000);
	for (;;) {
		while (netdev_rx(port, now_ns(), &got, 1)) {
			memcpy(frame, got.data, LENGTH);
			netdev_tx(port, now_ns(), &(struct netdev_frame){frame, LENGTH}, 1);
		}
		sleep_on(port, UINT64_MAX);
	}
}

static void start_guest(void)
{
	lab.guest = fork();
	if (!lab.guest) {
		execl("/proc/self/exe", "guest", lab.path, NULL);
		_exit(1);
	}
	assert_true(lab.guest > 0);
}

static void kill_guest(void)
{
	if (lab.guest > 0) {
		kill(lab.guest, SIGKILL);
		waitpid(lab.guest, NULL, 0);
	}
	lab.guest = 0;
}

/* --- The port */

static int setup(void **state)
{
	char spec[64], error[256];

	(void)state;
	strcpy(lab.folder, "/tmp/urxe-vhost-XXXXXX");
	if (!mkdtemp(lab.folder))
		return -1;
	snprintf(lab.path, sizeof(lab.path), "%s/port", lab.folder);
	snprintf(spec, sizeof(spec), "vhost:%s", lab.path);
	if (!netdev_dpdk_open(spec, 0, &lab.port, error, sizeof(error)))
		return 0;
	fprintf(stderr, "%s\n", error);
	return -1;
}

static int teardown(void **state)
{
	(void)state;
	kill_guest();
	netdev_close(lab.port);
	rmdir(lab.folder);
	return 0;
}

/* Until the port is asleep: nothing comes, and it asks for no look soon. */
static void settle(void)
{
	struct pollfd fd = {netdev_wait_fd(lab.port), POLLIN, 0};
	uint64_t end = now_ns() + PATIENCE;
	struct netdev_frame got;

	for (;;) {
		assert_true(now_ns() < end);
		if (netdev_rx(lab.port, now_ns(), &got, 1))
			continue;
		if (!asks_for_a_look(lab.port, now_ns()) && !poll(&fd, 1, 0))
			return;
		sleep_on(lab.port, end);
	}
}

/* One frame that begins so, as who sleeps gets it, and when. */
static uint64_t expect(const char *text)
{
	uint64_t now = now_ns(), end = now + PATIENCE;
	struct netdev_frame got;

	while (!netdev_rx(lab.port, now, &got, 1)) {
		assert_true(now < end);
		sleep_on(lab.port, end);
		now = now_ns();
	}
	assert_int_equal(got.len, LENGTH);
	assert_string_equal((const char *)got.data, text);
	return now;
}

static uint64_t ask(const char *text)
{
	uint8_t frame[LENGTH] = {0};

	memcpy(frame, text, strlen(text));
	assert_int_equal(netdev_tx(lab.port, now_ns(), &(struct netdev_frame){frame, LENGTH}, 1),
			 1);
	return expect(text);
}

/* Both ends have been quiet for long enough to sleep. */
static void ask_sleepers(uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		settle();
		usleep(20000);
		ask("are you there?");
	}
}

/* --- */

static void test_a_guest_that_comes_wakes(void **state)
{
	(void)state;
	assert_true(netdev_wait_fd(lab.port) >= 0);
	settle();
	start_guest();
	expect("hello");
}

static void test_a_frame_wakes_both_ends(void **state)
{
	(void)state;
	ask_sleepers(50);
	for (uint32_t i = 0; i < 1000; i++)
		ask("and now?");
}

/* Without a frame in between: the guest's leaving makes it readable, and nothing after that. */
static void test_a_guest_that_left_wakes_nobody(void **state)
{
	struct pollfd fd = {netdev_wait_fd(lab.port), POLLIN, 0};
	uint64_t end = now_ns() + PATIENCE;

	(void)state;
	kill_guest();
	do {
		assert_true(now_ns() < end);
		settle();
	} while (poll(&fd, 1, 200));
	assert_int_equal(netdev_wait_fd(lab.port), fd.fd);
}

static void test_guests_come_and_go(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		settle();
		start_guest();
		expect("hello");
		ask_sleepers(3);
		kill_guest();
	}
}

/* What is only quiet for a moment is looked at, so that a guest that is busy need not tell. */
static void test_a_busy_port_is_looked_at(void **state)
{
	struct netdev_frame got;
	uint64_t now;

	(void)state;
	start_guest();
	expect("hello");
	now = ask("busy?") + 1000;
	assert_int_equal(netdev_rx(lab.port, now, &got, 1), 0);
	assert_in_range(netdev_next_deadline(lab.port), now, now + 1000000);
}

/* The driver may lose an interrupt: who sleeps looks now and then. */
static void test_a_sleeper_looks_each_second(void **state)
{
	struct netdev_frame got;
	uint64_t now;

	(void)state;
	settle();
	now = now_ns();
	assert_int_equal(netdev_rx(lab.port, now, &got, 1), 0);
	assert_in_range(netdev_next_deadline(lab.port), now, now + SECOND);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_guest_that_comes_wakes),
		cmocka_unit_test(test_a_frame_wakes_both_ends),
		cmocka_unit_test(test_a_guest_that_left_wakes_nobody),
		cmocka_unit_test(test_guests_come_and_go),
		cmocka_unit_test(test_a_busy_port_is_looked_at),
		cmocka_unit_test(test_a_sleeper_looks_each_second),
	};

	if (argc == 2 && !strcmp(argv[0], "guest"))
		return guest_main(argv[1]);
	return cmocka_run_group_tests(tests, setup, teardown);
}
