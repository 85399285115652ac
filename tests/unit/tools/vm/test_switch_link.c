/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How often the device process looks for a daemon, and which frames it drops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "common/clock.h"
#include "common/unix_packet.h"
#include "urxed/report/state_reader.h"
#include "urxed/uplink/vm_port_protocol.h"
#include "vm/host/machine_state.h"
#include "vm/host/switch_link.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static unsigned waits;

/* The linker puts this function in the place of poll: no time passes in a wait. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	(void)fds, (void)n, (void)timeout;
	waits++;
	return 0;
}

/* A socket of a daemon that has stopped: the kernel accepts connections, and nothing answers. */
static int listen_silently(const char *directory, struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(unix_packet_address(address, directory, VM_PORT_SOCKET_NAME), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
	assert_int_equal(listen(fd, 16), 0);
	waits = 0;
	return fd;
}

static void test_a_silent_daemon_is_asked_rarely(void **state)
{
	const uint64_t begin = 100 * NS_PER_SEC;
	char directory[] = "/tmp/urxe-link-XXXXXX";
	struct sockaddr_un address;
	struct switch_link link;
	bool joined;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(directory));
	fd = listen_silently(directory, &address);
	assert_int_equal(switch_link_open(&link, directory, "", mac), -ETIMEDOUT);
	assert_int_equal(waits, 1);
	for (uint64_t now = begin; now < begin + 60 * NS_PER_SEC; now += NS_PER_SEC / 20)
		assert_true(switch_link_tick(&link, now, &joined) > now);
	assert_in_range(waits, 4, 8);
	/* After a save the machine wants its port back. */
	switch_link_leave(&link);
	waits = 0;
	assert_int_equal(switch_link_return(&link), -ETIMEDOUT);
	switch_link_tick(&link, now_ns(), &joined);
	assert_int_equal(waits, 1);
	switch_link_close(&link);
	close(fd);
	unlink(address.sun_path);
	/* Without a daemon no look waits, so they are frequent. */
	assert_int_equal(switch_link_open(&link, directory, "", mac), -ENOENT);
	switch_link_tick(&link, begin, &joined);
	assert_true(switch_link_tick(&link, begin, &joined) <= begin + NS_PER_SEC / 10);
	switch_link_close(&link);
	rmdir(directory);
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

/* The file system may give the new daemon's socket the old one's inode. */
static void test_the_daemon_after_a_silent_one_is_asked_at_once(void **state)
{
	char directory[] = "/tmp/urxe-link-XXXXXX", sessions[64];
	const uint64_t begin = 100 * NS_PER_SEC;
	struct sockaddr_un address;
	struct switch_link link;
	bool joined;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(sessions, sizeof(sessions), "%s/" VNIC_SOCKET_NAME, directory);
	make_file(sessions);
	fd = listen_silently(directory, &address);
	assert_int_equal(switch_link_open(&link, directory, "", mac), -ETIMEDOUT);
	switch_link_tick(&link, begin, &joined);
	switch_link_tick(&link, begin + NS_PER_SEC, &joined);
	assert_int_equal(waits, 2);
	assert_int_equal(unlink(sessions), 0);
	usleep(20000); /* longer than the step of the clock that dates files */
	make_file(sessions);
	switch_link_tick(&link, begin + 2 * NS_PER_SEC, &joined);
	assert_int_equal(waits, 3);
	switch_link_close(&link);
	close(fd);
	unlink(address.sun_path);
	unlink(sessions);
	rmdir(directory);
}

/* Of a process that waits for a machine, or whose machine has left: the MAC is another host's. */
static void test_a_link_without_a_port_is_taken_over_without_one(void **state)
{
	struct switch_link_handover handover = {.mtu = 1500, .socket = -1, .fds = {-1, -1, -1}};
	struct switch_link link;
	bool joined;

	(void)state;
	assert_int_equal(switch_link_adopt(&link, "/tmp/urxe-link-none", "", mac, &handover), 0);
	assert_int_equal(switch_link_tick(&link, now_ns(), &joined), UINT64_MAX);
	assert_false(joined);
	assert_int_equal(switch_link_return(&link), -ENOENT);
	assert_true(switch_link_tick(&link, now_ns(), &joined) < UINT64_MAX);
	switch_link_close(&link);
}

/* Returns the counter that urxe show shows for a machine with this link; -1: none. */
static json_int_t shown_drops(const struct switch_link *link)
{
	static const struct machine_peers peers;
	static const struct machine_hca hca;
	struct pvrdma_attr attr = {.mtu = 1500};
	struct state_limits limits = {.units = 1000};
	struct vnic_attach_state reply;
	struct unix_packet_extras extras;
	char text[4096], error[STATE_ERROR];
	json_t *state, *counter;
	json_int_t drops;
	struct pvrdma *dev;
	ssize_t n;
	int ends[2];

	assert_int_equal(vnic_guest_memory_create(&attr.memory), 0);
	assert_int_equal(pvrdma_create(&attr, &dev), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	vm_state_send(dev, &peers, &hca, link, "vm", ends[0]);
	/* The first reply says that the state follows. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(unix_packet_recv(ends[1], &reply, sizeof(reply), &extras),
				 sizeof(reply));
	n = pread(extras.fds[0], text, sizeof(text), 0);
	assert_in_range(n, 1, sizeof(text) - 1);
	state = state_read(text, (size_t)n, &limits, error);
	assert_non_null(state);
	counter = json_object_get(json_object_get(state, "counters"), "link_dropped");
	drops = counter ? json_integer_value(counter) : -1;
	json_decref(state);
	unix_packet_close_fds(&extras);
	close(ends[1]);
	pvrdma_destroy(dev);
	vnic_guest_memory_destroy(attr.memory);
	return drops;
}

static void test_dropped_frames_are_shown(void **state)
{
	const uint8_t frame[60] = {0};
	struct switch_link link;

	(void)state;
	assert_int_equal(switch_link_open_away(&link, "/tmp/urxe-link-none", "", mac, 1500), 0);
	/* Processes state no counter that is 0. */
	assert_int_equal(shown_drops(&link), -1);
	switch_link_send(&link, frame, sizeof(frame));
	switch_link_send(&link, frame, sizeof(frame));
	assert_int_equal(shown_drops(&link), 2);
	switch_link_close(&link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_silent_daemon_is_asked_rarely),
		cmocka_unit_test(test_the_daemon_after_a_silent_one_is_asked_at_once),
		cmocka_unit_test(test_a_link_without_a_port_is_taken_over_without_one),
		cmocka_unit_test(test_dropped_frames_are_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
