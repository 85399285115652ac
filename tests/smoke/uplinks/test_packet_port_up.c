/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A packet port on an interface that comes up before, while and after the kernel makes the port's
 * ring: the port receives in each case. A ring that a virtual machine's packet stops is found.
 * Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/virtio_net.h>
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

static void skip_without_interfaces(void)
{
	if (available)
		return;
	cable_skip("needs root, network namespaces and ip(8)");
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
	skip_without_interfaces();
	cable_plug();
	for (useconds_t i = 0; i < ROUNDS; i++)
		open_while_interface_comes_up(i * DELAY_US);
	cable_remove();
}

/* --- A ring that stops */

static struct packet_port *open_accepting_port(void)
{
	const uint16_t block = BLOCK;
	struct packet_port_ring ring;
	struct packet_port *port;
	int fd = packet_port_create(if_nametoindex(INTERFACE), MTU, NULL, &ring);

	assert_true(fd >= 0);
	assert_int_equal(packet_port_open(fd, &ring, &port), 0);
	assert_int_equal(packet_port_accept(fd, &block, 1), 0);
	return port;
}

/* Sends a RoCEv2 packet to the interface's MAC; gso_type: of virtio's header. */
static void send_as_machine(int tap, uint8_t gso_type)
{
	struct ifreq request = {.ifr_name = INTERFACE};
	uint8_t frame[14 + 20 + 8 + 300] = {
		[6] = 2,          [12] = 8,           [14] = 0x45,      [23] = 17,
		[36] = 4791 >> 8, [37] = 4791 & 0xff, [48] = BLOCK << 4};

	assert_int_equal(ioctl(tap, SIOCGIFHWADDR, &request), 0);
	memcpy(frame, request.ifr_hwaddr.sa_data, 6);
	cable_tap_send(tap, frame, sizeof(frame), gso_type);
}

static uint32_t drain(struct packet_port *port)
{
	struct packet_port_frame frames[8];
	uint32_t count = 0, n;

	while ((n = packet_port_rx(port, frames, 8))) {
		count += n;
		packet_port_release(port);
	}
	return count;
}

static void test_stopped_ring_is_found(void **state)
{
	struct packet_port *port;
	uint32_t got;
	int tap;

	(void)state;
	skip_without_interfaces();
	tap = cable_tap();
	if (tap < 0)
		cable_skip("needs tap interfaces");
	port = open_accepting_port();
	/* A ring that was full has dropped packets, too, but goes on. */
	for (int i = 0; i < 2000; i++)
		send_as_machine(tap, VIRTIO_NET_HDR_GSO_NONE);
	assert_int_equal(packet_port_ring_state(port), PACKET_RING_RUNS);
	assert_in_range(drain(port), 1, 1999);
	assert_int_equal(packet_port_ring_state(port), PACKET_RING_RUNS);
	send_as_machine(tap, VIRTIO_NET_HDR_GSO_NONE);
	assert_int_equal(drain(port), 1);
	assert_int_equal(packet_port_ring_state(port), PACKET_RING_RUNS);
	/* Nor does a silence after that show a stop. */
	for (int i = 0; i < 2000; i++)
		send_as_machine(tap, VIRTIO_NET_HDR_GSO_NONE);
	assert_in_range(drain(port), 1, 1999);
	for (int i = 0; i < 3; i++)
		assert_true(packet_port_ring_state(port) != PACKET_RING_STOPPED);
	send_as_machine(tap, VIRTIO_NET_HDR_GSO_NONE);
	assert_int_equal(drain(port), 1);
	assert_int_equal(packet_port_ring_state(port), PACKET_RING_RUNS);
	assert_true(packet_port_read_drops(port) > 0);

	send_as_machine(tap, VIRTIO_NET_HDR_GSO_UDP);
	send_as_machine(tap, VIRTIO_NET_HDR_GSO_NONE);
	got = drain(port); /* both packets, if the port has no UDP GSO */
	assert_int_equal(packet_port_ring_state(port),
			 got ? PACKET_RING_RUNS : PACKET_RING_STOPPED);
	packet_port_close(port);
	close(tap);
}

/* Whether such a packet stops a ring of this kernel. */
static bool kernel_stops_rings(int tap)
{
	struct packet_port *port = open_accepting_port();
	uint32_t got;

	send_as_machine(tap, VIRTIO_NET_HDR_GSO_UDP);
	got = drain(port);
	packet_port_close(port);
	return !got;
}

/* No packet comes after the one that stops the ring, and the drop of that one is counted. */
static void test_stop_is_found_though_frames_came_or_drops_were_read(void **state)
{
	struct packet_port *port;
	int tap;

	(void)state;
	skip_without_interfaces();
	tap = cable_tap();
	if (tap < 0)
		cable_skip("needs tap interfaces");
	if (!kernel_stops_rings(tap))
		cable_skip("this kernel's rings do not stop");
	port = open_accepting_port();
	send_as_machine(tap, VIRTIO_NET_HDR_GSO_NONE);
	assert_int_equal(drain(port), 1);
	send_as_machine(tap, VIRTIO_NET_HDR_GSO_NONE);
	send_as_machine(tap, VIRTIO_NET_HDR_GSO_UDP);
	assert_int_equal(packet_port_ring_state(port), PACKET_RING_RUNS);
	assert_int_equal(drain(port), 1);
	assert_int_equal(packet_port_ring_state(port), PACKET_RING_RUNS);
	assert_int_equal(packet_port_ring_state(port), PACKET_RING_SUSPECT);
	packet_port_close(port);

	port = open_accepting_port();
	send_as_machine(tap, VIRTIO_NET_HDR_GSO_UDP);
	assert_int_equal(packet_port_read_drops(port), 1);
	assert_int_equal(packet_port_ring_state(port), PACKET_RING_SUSPECT);
	packet_port_close(port);
	close(tap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port_receives_after_interface_came_up),
		cmocka_unit_test(test_stopped_ring_is_found),
		cmocka_unit_test(test_stop_is_found_though_frames_came_or_drops_were_read),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
