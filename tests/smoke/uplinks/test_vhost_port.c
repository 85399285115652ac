/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wake-ups of DPDK ports with interrupts: a vhost port, and a guest process with virtio-user that
 * echoes frames. Both sleep on the descriptors of their ports between frames.
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
/* Other tests on the machine may delay a process for this long. */
#define PATIENCE (20 * SECOND)
/* With a later deadline the port must wake its sleeping user by its descriptor. */
#define FAR_AWAY (SECOND / 2)
#define LENGTH   64
#define MTU      4200
#define LONG     4000 /* longer than a packet buffer of the guest */
#define TAGGED   1518 /* with a VLAN tag; a packet buffer holds it */
#define MANY     4096 /* more frames than the guest's ring has buffers */
#define SKIP     (SECOND / 20)

static struct {
	char folder[32], path[40];
	struct netdev *port;
	pid_t guest;
	uint64_t skipped; /* ns by which the port's time is ahead of the kernel's */
} lab;

static uint64_t kernel_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* The port's time. */
static uint64_t now_ns(void)
{
	return kernel_ns() + lab.skipped;
}

static bool has_near_deadline(struct netdev *port, uint64_t now)
{
	return netdev_next_deadline(port) < now + FAR_AWAY;
}

/* Sleeps until a frame arrives, or until the port's deadline if it is near, or else `until`; both
 * in the port's time. */
static void sleep_on(struct netdev *port, uint64_t until)
{
	struct pollfd fd = {netdev_wait_fd(port), POLLIN, 0};
	uint64_t now = now_ns(),
		 ns = has_near_deadline(port, now) ? netdev_next_deadline(port) : until;
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

/* `options`: of the guest's device, "" or ",name=value". */
static void start_guest_with(const char *options)
{
	char path[64];

	snprintf(path, sizeof(path), "%s%s", lab.path, options);
	lab.guest = fork();
	if (!lab.guest) {
		execl("/proc/self/exe", "guest", path, NULL);
		_exit(1);
	}
	assert_true(lab.guest > 0);
}

static void start_guest(void)
{
	start_guest_with("");
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
	if (!netdev_dpdk_open(spec, MTU, &lab.port, error, sizeof(error)))
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

/*
 * Runs the port until no frame arrives and its deadline is far away. A port polls a new guest for
 * seconds; their greatest part is skipped.
 */
static void wait_until_asleep(void)
{
	struct pollfd fd = {netdev_wait_fd(lab.port), POLLIN, 0};
	uint64_t end = kernel_ns() + PATIENCE;
	struct netdev_frame got;

	for (;;) {
		assert_true(kernel_ns() < end);
		if (netdev_rx(lab.port, now_ns(), &got, 1))
			continue;
		if (!has_near_deadline(lab.port, now_ns()) && !poll(&fd, 1, 0))
			return;
		sleep_on(lab.port, now_ns() + PATIENCE);
		lab.skipped += SKIP;
	}
}

static void send_all(const struct netdev_frame *frames, uint32_t n)
{
	uint64_t end = kernel_ns() + PATIENCE;
	uint32_t sent = 0;

	while (sent < n) {
		assert_true(kernel_ns() < end);
		sent += netdev_tx(lab.port, now_ns(), frames + sent, n - sent);
	}
}

static uint64_t count_too_long(void)
{
	uint64_t counters[NETDEV_COUNTER_COUNT];

	netdev_counters(lab.port, counters);
	return counters[NETDEV_TX_TOO_LONG];
}

/* Sleeps until a frame arrives, which must begin with the text. Returns the time of its arrival. */
static uint64_t expect_frame(const char *text)
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

static uint64_t send_and_expect_echo(const char *text)
{
	uint8_t frame[LENGTH] = {0};

	memcpy(frame, text, strlen(text));
	assert_int_equal(netdev_tx(lab.port, now_ns(), &(struct netdev_frame){frame, LENGTH}, 1),
			 1);
	return expect_frame(text);
}

/* Echoes a frame after both ends have gone to sleep, as often as `rounds` says. */
static void echo_between_sleepers(uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		wait_until_asleep();
		usleep(20000);
		send_and_expect_echo("are you there?");
	}
}

/* --- */

static void test_connecting_guest_wakes_the_port(void **state)
{
	(void)state;
	assert_true(netdev_wait_fd(lab.port) >= 0);
	wait_until_asleep();
	start_guest();
	expect_frame("hello");
}

static void test_frame_wakes_both_ends(void **state)
{
	(void)state;
	echo_between_sleepers(50);
	for (uint32_t i = 0; i < 1000; i++)
		send_and_expect_echo("and now?");
}

/* The end of the guest makes the descriptor readable once; no frame comes in between. */
static void test_guest_that_left_wakes_the_port_once(void **state)
{
	struct pollfd fd = {netdev_wait_fd(lab.port), POLLIN, 0};
	uint64_t end = kernel_ns() + PATIENCE;

	(void)state;
	kill_guest();
	do {
		assert_true(kernel_ns() < end);
		wait_until_asleep();
	} while (poll(&fd, 1, 200));
	assert_int_equal(netdev_wait_fd(lab.port), fd.fd);
}

static void test_guests_reconnect(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		wait_until_asleep();
		start_guest();
		expect_frame("hello");
		echo_between_sleepers(3);
		kill_guest();
	}
}

/* The user polls a port that was busy just now, so a busy guest need not send an interrupt. */
static void test_busy_port_is_polled_within_1_ms(void **state)
{
	struct netdev_frame got;
	uint64_t now;

	(void)state;
	start_guest();
	expect_frame("hello");
	now = send_and_expect_echo("busy?") + 1000;
	assert_int_equal(netdev_rx(lab.port, now, &got, 1), 0);
	assert_in_range(netdev_next_deadline(lab.port), now, now + 1000000);
}

/* The driver may lose an interrupt, so a sleeping user polls the port now and then. */
static void test_sleeping_port_is_polled_within_1_s(void **state)
{
	struct netdev_frame got;
	uint64_t now;

	(void)state;
	wait_until_asleep();
	now = now_ns();
	assert_int_equal(netdev_rx(lab.port, now, &got, 1), 0);
	assert_in_range(netdev_next_deadline(lab.port), now, now + SECOND);
}

/* net_vhost makes the announcement of a migrated guest without an interrupt. */
static void test_new_guest_is_polled_for_announcements(void **state)
{
	struct netdev_frame got;
	uint64_t now;

	(void)state;
	kill_guest();
	wait_until_asleep();
	start_guest();
	now = expect_frame("hello") + SECOND / 20;
	assert_int_equal(netdev_rx(lab.port, now, &got, 1), 0);
	assert_in_range(netdev_next_deadline(lab.port), now, now + SECOND / 100);
	now += 3 * SECOND;
	assert_int_equal(netdev_rx(lab.port, now, &got, 1), 0);
	assert_false(has_near_deadline(lab.port, now));
}

/* A guest that joins no buffers must not lose the frames behind a frame that it cannot take. */
static void test_frame_longer_than_a_buffer_is_dropped_alone(void **state)
{
	static const uint8_t data[LONG], text[LENGTH] = "behind it";
	const struct netdev_frame frames[] = {{data, LONG}, {data, LONG}, {text, LENGTH}};

	(void)state;
	send_all(frames, 1);
	assert_int_equal(count_too_long(), 0);
	kill_guest();
	wait_until_asleep();
	start_guest_with(",mrg_rxbuf=0");
	expect_frame("hello");
	send_all(frames, 3);
	expect_frame("behind it");
	assert_int_equal(count_too_long(), 2);
}

/* The guest takes such frames as soon as it runs again. */
static void test_full_ring_drops_no_frame_that_a_buffer_holds(void **state)
{
	static const uint8_t data[TAGGED] = "tagged";
	const struct netdev_frame frame = {data, TAGGED};
	const uint64_t dropped = count_too_long();
	uint32_t sent = 0;

	(void)state;
	kill_guest();
	wait_until_asleep();
	start_guest_with(",mrg_rxbuf=0");
	expect_frame("hello");
	kill(lab.guest, SIGSTOP);
	waitpid(lab.guest, NULL, WUNTRACED);
	while (sent < MANY && netdev_tx(lab.port, now_ns(), &frame, 1))
		sent++;
	assert_in_range(sent, 1, MANY - 1);
	kill(lab.guest, SIGCONT);
	send_all(&frame, 1);
	assert_int_equal(count_too_long(), dropped);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connecting_guest_wakes_the_port),
		cmocka_unit_test(test_frame_wakes_both_ends),
		cmocka_unit_test(test_guest_that_left_wakes_the_port_once),
		cmocka_unit_test(test_guests_reconnect),
		cmocka_unit_test(test_busy_port_is_polled_within_1_ms),
		cmocka_unit_test(test_sleeping_port_is_polled_within_1_s),
		cmocka_unit_test(test_new_guest_is_polled_for_announcements),
		cmocka_unit_test(test_frame_longer_than_a_buffer_is_dropped_alone),
		cmocka_unit_test(test_full_ring_drops_no_frame_that_a_buffer_holds),
	};

	if (argc == 2 && !strcmp(argv[0], "guest"))
		return guest_main(argv[1]);
	return cmocka_run_group_tests(tests, setup, teardown);
}
