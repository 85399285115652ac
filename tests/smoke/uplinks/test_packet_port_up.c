/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A packet port on an interface that comes up before, while and after the kernel makes the port's
 * ring. The port receives in each case. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netdev/packet_port.h>

#include "cable.h"

#define INTERFACE "pa"
#define MTU       9000
#define FRAME     80 /* bytes */
#define BLOCK     1
#define ROUNDS    30
/* The interface comes up later by this time in each round. The kernel takes 10 ms or more for a
 * ring. */
#define DELAY_US 750
#define WAIT_MS  10 /* from one packet to the next */

static bool available;

static int setup(void **state)
{
	(void)state;
	available = !geteuid() && !unshare(CLONE_NEWNET) &&
		    !cable_shell("ip link set lo up 2>/dev/null");
	return 0;
}

static void set_up(bool up)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq request = {.ifr_name = INTERFACE};

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &request), 0);
	request.ifr_flags = (short)(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
}

struct delayed_up {
	pthread_barrier_t start;
	useconds_t delay;
};

static void *set_up_later(void *ctx)
{
	struct delayed_up *up = ctx;

	pthread_barrier_wait(&up->start);
	usleep(up->delay);
	set_up(true);
	return NULL;
}

/* A RoCEv1 packet to the first QPN of the block. */
static void send_packet(int far)
{
	uint8_t frame[FRAME] = {[6] = 2, [12] = 0x89, [13] = 0x15, [14 + 40 + 6] = BLOCK << 4};

	memset(frame, 0xff, 6);
	assert_int_equal(send(far, frame, sizeof(frame), 0), sizeof(frame));
}

static bool receives(struct packet_port *port, int far)
{
	struct pollfd wait = {packet_port_irq_fd(port), POLLIN, 0};
	struct packet_port_frame frame;
	uint32_t n;

	send_packet(far);
	if (!packet_port_irq_unmask(port))
		poll(&wait, 1, WAIT_MS);
	packet_port_irq_read(port);
	n = packet_port_rx(port, &frame, 1);
	packet_port_release(port);
	return n && frame.len == FRAME;
}

/* The kernel drops packets until the cable's other end has noticed its carrier. */
static void check_receives(struct packet_port *port)
{
	const uint16_t block = BLOCK;
	int far = cable_socket("pb");
	uint32_t waits = 0;

	assert_int_equal(packet_port_accept(packet_port_fd(port), &block, 1), 0);
	while (!receives(port, far))
		assert_in_range(++waits, 0, CABLE_PATIENCE_MS / WAIT_MS);
	close(far);
}

static void open_while_interface_comes_up(useconds_t delay)
{
	struct delayed_up up = {.delay = delay};
	struct packet_port_ring ring;
	struct packet_port *port;
	pthread_t thread;
	int fd;

	set_up(false);
	fd = packet_port_create(if_nametoindex(INTERFACE), MTU, NULL, &ring);
	assert_true(fd >= 0);
	assert_int_equal(pthread_barrier_init(&up.start, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, set_up_later, &up), 0);
	pthread_barrier_wait(&up.start);
	assert_int_equal(packet_port_open(fd, &ring, &port), 0);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&up.start);
	check_receives(port);
	packet_port_close(port);
}

static void test_port_receives_after_interface_came_up(void **state)
{
	(void)state;
	if (!available) {
		print_message("skipped: needs root, network namespaces and ip(8)\n");
		skip();
	}
	cable_plug();
	for (useconds_t i = 0; i < ROUNDS; i++)
		open_while_interface_comes_up(i * DELAY_US);
	cable_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port_receives_after_interface_came_up),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
