/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * DPDK ports on a veth pair between two network namespaces, a tap, a ring and a capture. An echo
 * process at the far end of the veth pair sleeps on the descriptor of its port. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netdev/netdev.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cable.h"

#define ROCE_V1 0x8915
#define IPV4    0x0800
#define MTU     9000

static struct {
	const char *skip;
	struct netdev *port;
	uint8_t mac[6], peer_mac[6];
	pid_t echo;
	int to_echo, from_echo;
} lab;

/* --- The far end */

static void echo_frames(struct netdev *port)
{
	struct netdev_frame frames[32];
	uint8_t mac[6], copy[MTU + 18];
	uint32_t count;

	netdev_mac(port, mac);
	while ((count = netdev_rx(port, 0, frames, 32)))
		for (uint32_t i = 0; i < count; i++) {
			if (memcmp(frames[i].data, mac, 6))
				continue;
			memcpy(copy, frames[i].data, frames[i].len);
			memcpy(copy, frames[i].data + 6, 6);
			memcpy(copy + 6, mac, 6);
			netdev_tx(port, 0, &(struct netdev_frame){copy, frames[i].len}, 1);
		}
}

/* Sleeps without a time limit, so a lost wake-up makes the test fail. */
static void echo_until_closed(struct netdev *port, int control)
{
	struct pollfd fds[2] = {{control, POLLIN, 0}, {netdev_wait_fd(port), POLLIN, 0}};

	do {
		echo_frames(port);
		poll(fds, 2, -1);
	} while (!fds[0].revents);
}

static void echo_main(int control, int report)
{
	struct netdev *port;
	uint8_t mac[6];
	char error[256], byte;

	if (unshare(CLONE_NEWNET) || write(report, "n", 1) != 1 || read(control, &byte, 1) != 1)
		_exit(1);
	if (cable_shell("ip link set vb addrgenmode none && ip link set vb up") ||
	    netdev_dpdk_open("af_packet:vb", 0, &port, error, sizeof(error)))
		_exit(2);
	netdev_mac(port, mac);
	if (write(report, mac, 6) != 6)
		_exit(3);
	echo_until_closed(port, control);
	netdev_close(port);
	exit(0);
}

/* --- Setting up */

static bool start_echo(void)
{
	int control[2], report[2];
	char byte;

	if (pipe(control) || pipe(report))
		return false;
	lab.echo = fork();
	if (!lab.echo) {
		close(control[1]);
		close(report[0]);
		echo_main(control[0], report[1]);
	}
	close(control[0]);
	close(report[1]);
	lab.to_echo = control[1];
	lab.from_echo = report[0];
	return lab.echo > 0 && read(lab.from_echo, &byte, 1) == 1;
}

static int setup(void **state)
{
	char error[256];

	(void)state;
	if (geteuid() || unshare(CLONE_NEWNET) || cable_shell("ip link set lo up 2>/dev/null")) {
		lab.skip = "needs root, network namespaces and ip(8)";
		return 0;
	}
	if (!start_echo())
		return -1;
	/* Without IPv6 addresses: neighbour discovery would wake the sleeping processes. */
	if (cable_shell("ip link add va mtu %d type veth peer name vb mtu %d netns %d && "
			"ip link set va addrgenmode none && ip link set va up",
			MTU, MTU, (int)lab.echo)) {
		lab.skip = "needs veth interfaces";
		return 0;
	}
	if (write(lab.to_echo, "g", 1) != 1 || read(lab.from_echo, lab.peer_mac, 6) != 6)
		return -1;
	if (netdev_dpdk_open("af_packet:va", 0, &lab.port, error, sizeof(error))) {
		fprintf(stderr, "%s\n", error);
		return -1;
	}
	netdev_mac(lab.port, lab.mac);
	return 0;
}

static int teardown(void **state)
{
	int status = 0;

	(void)state;
	netdev_close(lab.port);
	if (lab.echo <= 0)
		return 0;
	close(lab.to_echo);
	waitpid(lab.echo, &status, 0);
	return lab.skip || (WIFEXITED(status) && !WEXITSTATUS(status)) ? 0 : -1;
}

static void skip_without_lab(void)
{
	if (!lab.skip)
		return;
	print_message("skipped: %s\n", lab.skip);
	skip();
}

/* --- Helpers */

/* Receives the next frame of an EtherType; both kernels send frames of their own, too. */
static bool receive_type(struct netdev *port, uint16_t type, struct netdev_frame *frame)
{
	struct pollfd fd = {netdev_wait_fd(port), POLLIN, 0};

	for (;;) {
		while (netdev_rx(port, 0, frame, 1))
			if (frame->len >= 14 && frame->data[12] == type >> 8 &&
			    frame->data[13] == (uint8_t)type)
				return true;
		if (poll(&fd, 1, CABLE_PATIENCE_MS) <= 0)
			return false;
	}
}

static void echo_one(uint32_t payload, uint8_t seed)
{
	uint8_t sent[MTU + 18];
	struct netdev_frame got;
	uint32_t length = cable_frame(sent, lab.peer_mac, lab.mac, ROCE_V1, payload, seed);

	cable_send(lab.port, sent, length);
	assert_true(receive_type(lab.port, ROCE_V1, &got));
	assert_int_equal(got.len, length);
	assert_int_equal(got.wire_len, length);
	assert_memory_equal(got.data, lab.mac, 6);
	assert_memory_equal(got.data + 6, lab.peer_mac, 6);
	assert_memory_equal(got.data + 12, sent + 12, length - 12);
}

/* --- af_packet */

static void test_frames_of_all_sizes_are_echoed(void **state)
{
	(void)state;
	skip_without_lab();
	assert_int_equal(netdev_mtu(lab.port), MTU);
	assert_true(netdev_wait_fd(lab.port) >= 0);
	for (uint32_t payload = 46; payload <= MTU; payload += payload < 64 ? 1 : 199)
		echo_one(payload, payload);
	echo_one(MTU, 1);
}

/* Both ends sleep between frames, so one lost wake-up makes the test fail. */
static void test_each_frame_wakes_both_ends(void **state)
{
	uint64_t frames;

	(void)state;
	skip_without_lab();
	frames = cable_counter(lab.port, NETDEV_TX_FRAMES);
	for (uint32_t i = 0; i < 3000; i++)
		echo_one(64, i);
	assert_int_equal(cable_counter(lab.port, NETDEV_TX_FRAMES), frames + 3000);
}

static void test_bursts_arrive_in_order(void **state)
{
	uint8_t sent[200][128];
	struct netdev_frame frames[200], got;

	(void)state;
	skip_without_lab();
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t length = cable_frame(sent[i], lab.peer_mac, lab.mac, ROCE_V1, 100, i);

		frames[i] = (struct netdev_frame){sent[i], length};
	}
	for (uint32_t i = 0; i < 200;) {
		uint32_t taken = netdev_tx(lab.port, 0, frames + i, 200 - i);

		assert_int_not_equal(taken, 0);
		i += taken;
	}
	for (uint32_t i = 0; i < 200; i++) {
		assert_true(receive_type(lab.port, ROCE_V1, &got));
		assert_memory_equal(got.data + 14, sent[i] + 14, 100);
	}
}

static void test_too_long_frames_are_counted(void **state)
{
	uint8_t sent[MTU + 100];
	uint64_t before;

	(void)state;
	skip_without_lab();
	before = cable_counter(lab.port, NETDEV_TX_TOO_LONG);
	cable_send(lab.port, sent, cable_frame(sent, lab.peer_mac, lab.mac, ROCE_V1, MTU + 5, 0));
	assert_int_equal(cable_counter(lab.port, NETDEV_TX_TOO_LONG), before + 1);
	echo_one(64, 9);
}

/* The receiving kernel removes the VLAN tag; the port must insert it again. */
static void test_vlan_tag_is_restored(void **state)
{
	uint8_t sent[128];
	struct netdev_frame got;

	(void)state;
	skip_without_lab();
	cable_frame(sent, lab.peer_mac, lab.mac, 0x8100, 100, 3);
	memcpy(sent + 14, (uint8_t[]){0x60, 0x07, ROCE_V1 >> 8, ROCE_V1 & 0xff}, 4);
	cable_send(lab.port, sent, 114);
	assert_true(receive_type(lab.port, 0x8100, &got));
	assert_int_equal(got.len, 114);
	assert_memory_equal(got.data + 12, sent + 12, 102);
}

/* The port does not receive frames that the host itself sends through the interface. */
static void test_frames_of_the_own_host_are_ignored(void **state)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = 6};
	uint8_t sent[128];
	struct netdev_frame got;
	int fd;

	(void)state;
	skip_without_lab();
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	to.sll_ifindex = if_nametoindex("va");
	cable_frame(sent, lab.peer_mac, lab.mac, ROCE_V1, 100, 5);
	assert_int_equal(sendto(fd, sent, 114, 0, (struct sockaddr *)&to, sizeof(to)), 114);
	close(fd);
	/* The port receives only the echo. */
	assert_true(receive_type(lab.port, ROCE_V1, &got));
	assert_memory_equal(got.data, lab.mac, 6);
}

/* The receiving kernel removes that tag, too. */
static void test_service_vlan_is_no_vlan(void **state)
{
	uint8_t service[114], vlan[114];
	struct netdev_frame got;
	struct netdev *port;
	int far;

	(void)state;
	skip_without_lab();
	port = cable_open("af_packet:pa");
	far = cable_socket("pb");
	cable_frame(service, lab.mac, lab.peer_mac, 0x88a8, 100, 3);
	cable_frame(vlan, lab.mac, lab.peer_mac, 0x8100, 100, 3);
	memcpy(service + 14, (uint8_t[]){0, 7, ROCE_V1 >> 8, ROCE_V1 & 0xff}, 4);
	memcpy(vlan + 14, (uint8_t[]){0, 8, ROCE_V1 >> 8, ROCE_V1 & 0xff}, 4);
	for (int all = 0; all <= 1; all++) {
		assert_int_equal(netdev_set_promiscuous(port, all), 0);
		assert_int_equal(send(far, service, sizeof(service), 0), sizeof(service));
		assert_int_equal(send(far, vlan, sizeof(vlan), 0), sizeof(vlan));
		assert_true(receive_type(port, 0x8100, &got));
		assert_memory_equal(got.data, vlan, sizeof(vlan));
	}
	close(far);
	netdev_close(port);
	cable_remove();
}

static void send_datagram_to(const uint8_t mac[6], int fd, uint16_t port, uint8_t seed)
{
	uint8_t sent[128];

	cable_frame(sent, mac, (uint8_t[6]){2, 0, 0, 0, 0, seed}, IPV4, 100, 0);
	memset(sent + 14, 0, 28);
	sent[14] = 0x45;
	sent[14 + 9] = IPPROTO_UDP;
	sent[14 + 22] = port >> 8;
	sent[14 + 23] = port;
	assert_int_equal(send(fd, sent, 114, 0), 114);
}

static void send_datagram(int fd, uint16_t port, uint8_t seed)
{
	send_datagram_to(lab.mac, fd, port, seed);
}

/* Receives the next frame that neither kernel generated. */
static bool next_datagram(struct netdev *port, struct netdev_frame *got)
{
	while (netdev_rx(port, 0, got, 1))
		if (got->len == 114 && got->data[13] == 0)
			return true;
	return false;
}

/*
 * Frames that are not RoCE neither wake the port's user nor fill its ring, so a RoCE frame always
 * finds room. A port with virtual machines behind it receives all frames but the host's own.
 */
static void test_other_traffic_does_not_fill_the_ring(void **state)
{
	struct pollfd wait = {.events = POLLIN};
	struct netdev_frame got;
	struct netdev *port;
	int far, near;
	uint8_t mac[6];

	(void)state;
	skip_without_lab();
	port = cable_open("af_packet:pa");
	wait.fd = netdev_wait_fd(port);
	far = cable_socket("pb");
	near = cable_socket("pa");
	while (netdev_rx(port, 0, &got, 1))
		;
	for (uint32_t i = 0; i < 6000; i++)
		send_datagram(far, 9, (uint8_t)i);
	send_datagram(near, 4791, 7);
	assert_int_equal(poll(&wait, 1, 0), 0);
	send_datagram(far, 4791, 8);
	assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
	assert_true(next_datagram(port, &got));
	assert_int_equal(got.data[11], 8);
	assert_false(next_datagram(port, &got));

	assert_int_equal(netdev_set_promiscuous(port, true), 0);
	assert_true(netdev_mac(port, mac));
	send_datagram_to(mac, far, 9, 12);
	send_datagram(far, 9, 9);
	assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
	assert_true(next_datagram(port, &got));
	assert_int_equal(got.data[11], 9);
	assert_false(next_datagram(port, &got));

	assert_int_equal(netdev_set_promiscuous(port, false), 0);
	send_datagram(far, 9, 10);
	send_datagram(far, 4791, 11);
	assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
	assert_true(next_datagram(port, &got));
	assert_int_equal(got.data[11], 11);
	assert_false(next_datagram(port, &got));
	close(far);
	close(near);
	netdev_close(port);
	cable_remove();
}

/* A machine gets each packet of a UDP GSO run, also of a run that is shorter than the MTU. */
static void test_runs_to_machines_are_cut(void **state)
{
	static const uint8_t machine[6] = {2, 0, 0, 0, 0, 0x77};
	struct netdev *port;

	(void)state;
	skip_without_lab();
	port = cable_open("af_packet:pa");
	assert_int_equal(netdev_set_promiscuous(port, true), 0);
	if (!cable_send_run("pb", machine, 4, 1000))
		cable_skip("packet sockets send no UDP GSO packets before Linux 6.2");
	cable_expect_run(port, machine, 4, 1000);
	assert_true(cable_send_run("pb", machine, 4, 100));
	cable_expect_run(port, machine, 4, 100);
	netdev_close(port);
	cable_remove();
}

/*
 * The kernel would copy each frame that the interface sends for a socket in a fanout group, and
 * compute a flow hash of each.
 */
static void test_no_socket_is_in_a_fanout_group(void **state)
{
	uint32_t sockets = 0;

	(void)state;
	skip_without_lab();
	for (int fd = 0; fd < 1024; fd++) {
		int domain = 0, group = 0, ignores = 0;
		socklen_t length = sizeof(int);

		getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
		if (domain != AF_PACKET)
			continue;
		sockets++;
		assert_int_equal(getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, &length), 0);
		assert_int_equal(group, 0);
		getsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &ignores, &length);
		assert_int_equal(ignores, 1);
	}
	assert_int_equal(sockets, 3); /* the port's ring, that of QP1, and the one for machines */
}

/* Counts the reads of sockets' errors. */
static uint32_t error_reads;

int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length);

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	error_reads += level == SOL_SOCKET && option == SO_ERROR;
	return __real_getsockopt(fd, level, option, value, length);
}

/* Counts the reads of the socket for virtual machines, and the packets. */
static uint32_t machine_reads, machine_packets;

int __real_recvmmsg(int fd, struct mmsghdr *messages, unsigned int n, int flags,
		    struct timespec *timeout);
int __wrap_recvmmsg(int fd, struct mmsghdr *messages, unsigned int n, int flags,
		    struct timespec *timeout);

int __wrap_recvmmsg(int fd, struct mmsghdr *messages, unsigned int n, int flags,
		    struct timespec *timeout)
{
	int count = __real_recvmmsg(fd, messages, n, flags, timeout);

	machine_reads++;
	machine_packets += count > 0 ? (uint32_t)count : 0;
	return count;
}

/* The last virtual machine has left. */
static void test_port_without_machines_reads_no_socket_for_them(void **state)
{
	struct netdev_frame got;
	struct netdev *port;

	(void)state;
	skip_without_lab();
	port = cable_open("af_packet:pa");
	assert_int_equal(netdev_set_promiscuous(port, true), 0);
	assert_int_equal(netdev_set_promiscuous(port, false), 0);
	while (netdev_rx(port, 0, &got, 1))
		;
	machine_reads = 0;
	for (int i = 0; i < 100; i++)
		netdev_rx(port, 0, &got, 1);
	assert_int_equal(machine_reads, 0);
	netdev_close(port);
	cable_remove();
}

/* Sends RoCE to the MAC; returns how many packets came by the socket for machines. */
static uint32_t count_machine_packets(struct netdev *port, int far, const uint8_t mac[6])
{
	struct pollfd wait = {.fd = netdev_wait_fd(port), .events = POLLIN};
	struct netdev_frame got;

	machine_packets = 0;
	send_datagram_to(mac, far, 4791, 1);
	assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
	assert_true(next_datagram(port, &got));
	assert_memory_equal(got.data, mac, 6);
	assert_false(next_datagram(port, &got));
	return machine_packets;
}

/* A member of a bond receives the host's frames by a MAC that is not its own. */
static void test_roce_to_an_added_mac_takes_the_ring(void **state)
{
	static const uint8_t bond[6] = {2, 0, 0, 0, 0, 0x66}, machine[6] = {2, 0, 0, 0, 0, 0x77};
	static const uint8_t similar[6] = {2, 1, 0, 0, 0, 0x66}, probe[6] = {2, 0, 0, 0, 1, 0x66};
	struct netdev *port;
	int far;

	(void)state;
	skip_without_lab();
	port = cable_open("af_packet:pa");
	far = cable_socket("pb");
	assert_int_equal(netdev_add_mac(port, bond), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(netdev_set_promiscuous(port, true), 0);
		assert_int_equal(netdev_add_mac(port, probe), 0);
		assert_int_equal(count_machine_packets(port, far, bond), 0);
		assert_int_equal(count_machine_packets(port, far, probe), 0);
		assert_int_equal(count_machine_packets(port, far, machine), 1);
		assert_int_equal(count_machine_packets(port, far, similar), 1);
		assert_int_equal(netdev_set_promiscuous(port, false), 0);
		assert_int_equal(count_machine_packets(port, far, bond), 0);
	}
	close(far);
	netdev_close(port);
	cable_remove();
}

/* A daemon under load finds its rings empty all the time. */
static void test_empty_rings_cost_few_system_calls(void **state)
{
	struct pollfd wait = {.events = POLLIN};
	struct netdev_frame got;
	struct netdev *port;

	(void)state;
	skip_without_lab();
	port = cable_open("af_packet:pa");
	wait.fd = netdev_wait_fd(port);
	error_reads = 0;
	for (uint64_t now = 0; now < 500000; now += 1000)
		netdev_rx(port, now, &got, 1);
	assert_in_range(error_reads, 1, 2); /* the sockets of both rings */

	assert_int_equal(cable_shell("ip link set pa down"), 0);
	assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
	netdev_rx(port, 2000000, &got, 1);
	assert_int_equal(poll(&wait, 1, 0), 0);
	netdev_close(port);
	cable_remove();
}

/* A sleeping user is woken once when the interface goes down, and receives frames when it is up
 * again. */
static void test_interface_down_wakes_once(void **state)
{
	struct pollfd wait = {.events = POLLIN};
	struct netdev_frame got;
	struct netdev *port;
	int far;

	(void)state;
	skip_without_lab();
	port = cable_open("af_packet:pa");
	wait.fd = netdev_wait_fd(port);
	assert_int_equal(cable_shell("ip link set pa down"), 0);
	assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
	assert_int_equal(netdev_rx(port, 0, &got, 1), 0);
	assert_int_equal(poll(&wait, 1, 0), 0);

	assert_int_equal(cable_shell("ip link set pa up"), 0);
	far = cable_socket("pb");
	/* The kernel at the far end sends only after it has noticed that this end is up. */
	for (int i = 0; i < CABLE_PATIENCE_MS / 10; i++) {
		send_datagram(far, 4791, 1);
		if (poll(&wait, 1, 10))
			break;
	}
	assert_true(next_datagram(port, &got));
	close(far);
	netdev_close(port);
	cable_remove();
}

static bool is_shown(const char *iface, const char *text)
{
	return !cable_shell("ip -d link show %s | grep -q '%s'", iface, text);
}

/* Opens a port of an interface on which the administrator has set that mode, or not. */
static void check_promiscuity(const char *spec, const char *iface, bool of_administrator)
{
	const char *ours = of_administrator ? "promiscuity 2 " : "promiscuity 1 ";
	const char *others = of_administrator ? "promiscuity 1 " : "promiscuity 0 ";
	struct netdev *port;
	char error[512];

	cable_shell("ip link set %s promisc %s", iface, of_administrator ? "on" : "off");
	if (netdev_dpdk_open(spec, 0, &port, error, sizeof(error)))
		fail_msg("%s", error);
	assert_true(is_shown(iface, others));
	assert_int_equal(netdev_set_promiscuous(port, true), 0);
	assert_true(is_shown(iface, ours));
	assert_int_equal(netdev_set_promiscuous(port, false), 0);
	assert_true(is_shown(iface, others));
	assert_int_equal(netdev_set_promiscuous(port, true), 0);
	netdev_close(port);
	assert_true(is_shown(iface, others));
	assert_int_equal(is_shown(iface, "PROMISC"), of_administrator);
}

/* Also if urxed is killed: the kernel ends the memberships of its sockets. */
static void test_promiscuous_mode_of_the_administrator_stays(void **state)
{
	(void)state;
	skip_without_lab();
	cable_plug();
	check_promiscuity("af_packet:pa", "pa", false);
	check_promiscuity("af_packet:pa", "pa", true);
	cable_remove();
}

/* An option that the kernel refuses; level -1: none. */
static struct {
	int level, option;
} refused = {-1, 0};

int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t length);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t length);

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	if (level == refused.level && option == refused.option) {
		errno = ENOMEM;
		return -1;
	}
	return __real_setsockopt(fd, level, option, value, length);
}

static void refuse(int level, int option)
{
	refused.level = level;
	refused.option = option;
}

/* The port works without machines, and the interface stays as it is. */
static void test_port_without_a_socket_for_machines_refuses_them(void **state)
{
	struct netdev *port;

	(void)state;
	skip_without_lab();
	refuse(SOL_PACKET, PACKET_VNET_HDR);
	port = cable_open("af_packet:pa");
	refuse(-1, 0);
	assert_int_equal(netdev_set_promiscuous(port, true), -EOPNOTSUPP);
	assert_true(is_shown("pa", "promiscuity 0 "));
	assert_true(netdev_can_exclude_qpns(port));
	assert_int_equal(netdev_set_promiscuous(port, false), 0);
	netdev_close(port);
	cable_remove();
}

/* The daemon does not undo a mode that it did not get. */
static void test_port_that_cannot_receive_all_frames_receives_what_it_did(void **state)
{
	static const int options[][2] = {{SOL_PACKET, PACKET_ADD_MEMBERSHIP},
					 {SOL_SOCKET, SO_ATTACH_FILTER}};
	struct pollfd wait = {.events = POLLIN};
	struct netdev_frame got;
	struct netdev *port;
	int far;

	(void)state;
	skip_without_lab();
	port = cable_open("af_packet:pa");
	wait.fd = netdev_wait_fd(port);
	far = cable_socket("pb");
	for (int i = 0; i < 2; i++) {
		refuse(options[i][0], options[i][1]);
		assert_int_equal(netdev_set_promiscuous(port, true), -ENOMEM);
		refuse(-1, 0);
		assert_true(is_shown("pa", "promiscuity 0 "));
		assert_true(netdev_can_exclude_qpns(port));
		send_datagram(far, 9, 1);
		send_datagram(far, 4791, 2);
		assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
		assert_true(next_datagram(port, &got));
		assert_int_equal(got.data[11], 2);
		assert_false(next_datagram(port, &got));
	}
	close(far);
	netdev_close(port);
	cable_remove();
}

/* An interface that stays promiscuous does not keep the port's other filters as they are. */
static void test_failed_filter_does_not_keep_the_others(void **state)
{
	struct pollfd wait = {.events = POLLIN};
	struct netdev_frame got;
	struct netdev *port;
	int far;

	(void)state;
	skip_without_lab();
	port = cable_open("af_packet:pa");
	wait.fd = netdev_wait_fd(port);
	far = cable_socket("pb");
	assert_int_equal(netdev_set_promiscuous(port, true), 0);
	refuse(SOL_PACKET, PACKET_DROP_MEMBERSHIP);
	assert_int_equal(netdev_set_promiscuous(port, false), -ENOMEM);
	refuse(-1, 0);
	send_datagram(far, 9, 1);
	assert_false(poll(&wait, 1, 100) && next_datagram(port, &got));
	assert_int_equal(netdev_set_promiscuous(port, false), 0);
	assert_true(is_shown("pa", "promiscuity 0 "));
	send_datagram(far, 4791, 2);
	assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
	assert_true(next_datagram(port, &got));
	assert_int_equal(got.data[11], 2);
	close(far);
	netdev_close(port);
	cable_remove();
}

/* veth has no multicast filter; the test reads the flag that makes hardware pass all multicast. */
static void test_port_sets_allmulti(void **state)
{
	(void)state;
	skip_without_lab();
	assert_int_equal(cable_shell("ip -d link show va | grep -q 'allmulti 1'"), 0);
}

static void test_second_port_on_an_interface_is_refused(void **state)
{
	struct netdev *port = NULL;
	char error[256];

	(void)state;
	skip_without_lab();
	assert_int_equal(netdev_dpdk_open("af_packet:va", 0, &port, error, sizeof(error)), -EEXIST);
	assert_non_null(strstr(error, "already"));
	echo_one(64, 1);
	netdev_close(lab.port);
	lab.port = NULL;
	assert_int_equal(netdev_dpdk_open("af_packet:va", 4200, &lab.port, error, sizeof(error)),
			 0);
	assert_int_equal(netdev_mtu(lab.port), 4200);
	echo_one(4200, 2);
}

/* An interface may be renamed while its port is open, and another one gets its name. */
static void test_names_change_between_interfaces(void **state)
{
	struct netdev *a, *b;
	char error[256];

	(void)state;
	skip_without_lab();
	a = cable_open("af_packet:pa");
	assert_int_equal(netdev_dpdk_open("af_packet:pb", 0, &b, error, sizeof(error)), 0);
	/* Linux before 6.2 renames only interfaces that are down. */
	assert_int_equal(cable_shell("ip link set pa down && ip link set pb down && "
				     "ip link set pa name px && ip link set pb name pa && "
				     "ip link set px name pb && "
				     "ip link set pa up && ip link set pb up"),
			 0);
	netdev_close(a);
	if (netdev_dpdk_open("af_packet:pb", 0, &a, error, sizeof(error)))
		fail_msg("%s", error);
	netdev_close(a);
	netdev_close(b);
	cable_remove();
}

/* --- Other kinds */

static void test_tap_carries_frames(void **state)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = 6};
	uint8_t sent[1600], mac[6];
	struct netdev_frame got;
	struct netdev *port;
	char error[256];
	int fd;

	(void)state;
	skip_without_lab();
	if (netdev_dpdk_open("tap:utap0", 4200, &port, error, sizeof(error))) {
		print_message("skipped: %s\n", error);
		skip();
	}
	assert_int_equal(netdev_mtu(port), 1500);
	assert_int_equal(cable_shell("ip link show utap0 | grep -q 'mtu 1500'"), 0);
	assert_int_equal(cable_shell("ip link set utap0 up"), 0);
	netdev_mac(port, mac);
	fd = socket(AF_PACKET, SOCK_RAW, htons(ROCE_V1));
	to.sll_ifindex = if_nametoindex("utap0");
	to.sll_protocol = htons(ROCE_V1);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	for (uint32_t i = 0; i < 51; i++) {
		uint8_t back[1600];
		uint32_t length = cable_frame(sent, mac, lab.mac, ROCE_V1, 1000 + 10 * i, i);

		assert_int_equal(send(fd, sent, length, 0), length);
		assert_true(receive_type(port, ROCE_V1, &got));
		assert_int_equal(got.len, length);
		assert_memory_equal(got.data, sent, length);
		cable_send(port, sent, length);
		assert_int_equal(recv(fd, back, sizeof(back), 0), length);
		assert_memory_equal(back, sent, length);
	}
	close(fd);
	netdev_close(port);
	assert_int_equal(if_nametoindex("utap0"), 0);
}

static void test_ring_carries_frames(void **state)
{
	uint8_t sent[MTU + 18];
	struct netdev_frame got;
	struct netdev *port;
	char error[256];

	(void)state;
	skip_without_lab();
	assert_int_equal(netdev_dpdk_open("dpdk:net_ring0", 0, &port, error, sizeof(error)), 0);
	assert_int_equal(netdev_wait_fd(port), -1);
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t length = cable_frame(sent, lab.mac, lab.mac, ROCE_V1, 1000 + i, i);

		cable_send(port, sent, length);
		assert_int_equal(netdev_rx(port, 0, &got, 1), 1);
		assert_int_equal(got.len, length);
		assert_memory_equal(got.data, sent, length);
	}
	netdev_close(port);
}

static void test_pcap_carries_frames(void **state)
{
	char path[] = "/tmp/urxe-uplink-XXXXXX", spec[64], error[256];
	uint8_t sent[128];
	struct netdev_frame got;
	struct netdev *port;

	(void)state;
	skip_without_lab();
	close(mkstemp(path));
	assert_int_equal(netdev_pcap_create(path, &port, error, sizeof(error)), 0);
	cable_send(port, sent, cable_frame(sent, lab.mac, lab.peer_mac, ROCE_V1, 100, 1));
	netdev_close(port);
	snprintf(spec, sizeof(spec), "pcap:%s", path);
	assert_int_equal(netdev_dpdk_open(spec, 0, &port, error, sizeof(error)), 0);
	assert_int_equal(netdev_rx(port, 0, &got, 1), 1);
	assert_int_equal(got.len, 114);
	assert_memory_equal(got.data, sent, 114);
	assert_int_equal(netdev_rx(port, 0, &got, 1), 0);
	netdev_close(port);
	unlink(path);
}

/* --- Errors: each message names the cause */

static void test_open_errors_name_the_cause(void **state)
{
	static const struct {
		const char *spec;
		int err;
		const char *says;
	} bad[] = {
		{"eth0", -EINVAL, "unknown kind"},
		{"", -EINVAL, "unknown kind"},
		{"carrier_pigeon:coo", -EINVAL, "unknown kind"},
		{"af_packet:", -EINVAL, "missing"},
		{"af_packet:nosuchif0", -ENODEV, "no interface nosuchif0"},
		{"af_packet:an_interface_name_too_long", -EINVAL, "not a valid interface name"},
		{"af_packet:va,framesz=1", -EINVAL, "takes no options"},
		{"af_packet:lo", -EINVAL, "not an Ethernet interface"},
		{"af_xdp:va", -EINVAL, "xdp_prog"},
		{"af_xdp:va,xdp_prog=/nonexistent", -EINVAL, "MTU 9000"},
		{"tap:va", -EEXIST, "af_packet:va"},
		{"tap:", -EINVAL, "missing"},
		{"pcap:/proc/nonexistent", -ENOENT, "/proc/nonexistent"},
		{"pcap:", -EINVAL, "missing"},
		{"vhost:", -EINVAL, "missing"},
		{"vhost:/tmp/x,server", -EINVAL, "'server'"},
		{"vhost:/etc/passwd", -EEXIST, "not a socket"},
		{"vhost:/proc/no/x", -ENOENT, "cannot create a socket in /proc/no"},
		{"dpdk:", -EINVAL, "missing"},
		{"dpdk:0000:ff:1f.7", -EINVAL, "PCI"},
	};
	struct netdev *port = NULL;
	char error[256];

	(void)state;
	skip_without_lab();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(netdev_dpdk_open(bad[i].spec, 0, &port, error, sizeof(error)),
				 bad[i].err);
		assert_non_null(strstr(error, bad[i].says));
		assert_null(strchr(error, '\n'));
	}
	assert_true(netdev_dpdk_open("dpdk:net_nosuchdriver0", 0, &port, error, sizeof(error)) < 0);
	assert_non_null(strstr(error, "net_nosuchdriver0"));
	assert_null(strchr(error, '\n'));
	assert_null(port);
}

/* Becomes an ordinary user with only the capabilities of the mask. */
static bool drop_privilege(uint32_t capabilities)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct sets[2] = {
		{.effective = capabilities, .permitted = capabilities}};

	return !prctl(PR_SET_KEEPCAPS, 1) && !setgid(65534) && !setuid(65534) &&
	       !syscall(SYS_capset, &header, sets);
}

static void expect_refusal(uint32_t capabilities)
{
	struct netdev *port;
	char error[256];
	int status;

	if (!fork()) {
		if (!drop_privilege(capabilities))
			_exit(1);
		if (netdev_dpdk_open("af_packet:va", 0, &port, error, sizeof(error)) != -EPERM)
			_exit(2);
		_exit(strstr(error, "needs root, or CAP_NET_RAW and CAP_NET_ADMIN") ? 0 : 3);
	}
	wait(&status);
	assert_int_equal(status, 0);
}

static void test_unprivileged_open_is_refused(void **state)
{
	(void)state;
	skip_without_lab();
	expect_refusal(0);
	/* CAP_NET_RAW permits the packet socket, but DPDK sets the interface's address, too. */
	expect_refusal(UINT32_C(1) << CAP_NET_RAW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_of_all_sizes_are_echoed),
		cmocka_unit_test(test_each_frame_wakes_both_ends),
		cmocka_unit_test(test_bursts_arrive_in_order),
		cmocka_unit_test(test_too_long_frames_are_counted),
		cmocka_unit_test(test_vlan_tag_is_restored),
		cmocka_unit_test(test_service_vlan_is_no_vlan),
		cmocka_unit_test(test_frames_of_the_own_host_are_ignored),
		cmocka_unit_test(test_other_traffic_does_not_fill_the_ring),
		cmocka_unit_test(test_port_sets_allmulti),
		cmocka_unit_test(test_promiscuous_mode_of_the_administrator_stays),
		cmocka_unit_test(test_port_without_a_socket_for_machines_refuses_them),
		cmocka_unit_test(test_port_that_cannot_receive_all_frames_receives_what_it_did),
		cmocka_unit_test(test_failed_filter_does_not_keep_the_others),
		cmocka_unit_test(test_runs_to_machines_are_cut),
		cmocka_unit_test(test_no_socket_is_in_a_fanout_group),
		cmocka_unit_test(test_port_without_machines_reads_no_socket_for_them),
		cmocka_unit_test(test_roce_to_an_added_mac_takes_the_ring),
		cmocka_unit_test(test_empty_rings_cost_few_system_calls),
		cmocka_unit_test(test_interface_down_wakes_once),
		cmocka_unit_test(test_second_port_on_an_interface_is_refused),
		cmocka_unit_test(test_names_change_between_interfaces),
		cmocka_unit_test(test_tap_carries_frames),
		cmocka_unit_test(test_ring_carries_frames),
		cmocka_unit_test(test_pcap_carries_frames),
		cmocka_unit_test(test_open_errors_name_the_cause),
		cmocka_unit_test(test_unprivileged_open_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
