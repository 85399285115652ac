/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "cable.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <netdev/gso_packet.h>

int cable_shell(const char *format, ...)
{
	char command[256];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

void cable_plug(void)
{
	assert_int_equal(
		cable_shell("ip link add pa type veth peer name pb && "
			    "ip link set pa addrgenmode none && ip link set pb addrgenmode none && "
			    "ip link set pa up && ip link set pb up"),
		0);
}

struct netdev *cable_open(const char *spec)
{
	struct netdev *port;
	char error[512];

	cable_plug();
	if (netdev_dpdk_open(spec, 0, &port, error, sizeof(error)))
		fail_msg("%s", error);
	return port;
}

void cable_remove(void)
{
	assert_int_equal(cable_shell("ip link delete pa"), 0);
}

int cable_socket(const char *iface)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(0x0003)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(0x0003));

	address.sll_ifindex = if_nametoindex(iface);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

int cable_tap(void)
{
	struct ifreq request = {.ifr_name = "pa", .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int tap = open("/dev/net/tun", O_RDWR);

	if (tap >= 0 && ioctl(tap, TUNSETIFF, &request)) {
		close(tap);
		return -1;
	}
	if (tap >= 0)
		assert_int_equal(
			cable_shell("ip link set pa addrgenmode none && ip link set pa up"), 0);
	return tap;
}

void cable_tap_send(int tap, const uint8_t *frame, uint32_t length, uint8_t gso_type)
{
	struct virtio_net_hdr header = {
		.flags = gso_type ? VIRTIO_NET_HDR_F_NEEDS_CSUM : 0,
		.gso_type = gso_type,
		.gso_size = gso_type ? 100 : 0,
		.hdr_len = 42,
		.csum_start = 34,
		.csum_offset = 6,
	};
	const struct iovec parts[] = {{&header, sizeof(header)}, {(void *)frame, length}};

	assert_int_equal(writev(tap, parts, 2), sizeof(header) + length);
}

void cable_skip(const char *reason)
{
	print_message("skipped: %s\n", reason);
	skip();
}

#define RUN_HEADERS (14 + 20 + 8)

bool cable_send_run(const char *iface, const uint8_t to[6], uint32_t n, uint32_t payload)
{
	const struct virtio_net_hdr header = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.gso_size = (uint16_t)payload,
		.hdr_len = RUN_HEADERS,
		.csum_start = 34,
		.csum_offset = 6,
	};
	const uint32_t length = 20 + 8 + n * payload;
	uint8_t packet[sizeof(header) + RUN_HEADERS + n * payload];
	uint8_t *ip = packet + sizeof(header) + 14;
	int fd = cable_socket(iface), on = 1;
	ssize_t sent;

	memset(packet, 0, sizeof(packet));
	memcpy(packet, &header, sizeof(header));
	cable_frame(packet + sizeof(header), to, (uint8_t[6]){2}, 0x0800, 0, 0);
	ip[0] = 0x45;
	ip[2] = (uint8_t)(length >> 8);
	ip[3] = (uint8_t)length;
	ip[8] = 64;
	ip[9] = IPPROTO_UDP;
	memcpy(ip + 22, (uint8_t[]){4791 >> 8, 4791 & 0xff}, 2);
	ip[24] = (uint8_t)((length - 20) >> 8);
	ip[25] = (uint8_t)(length - 20);
	for (uint32_t i = 0; i < n; i++)
		memset(ip + 28 + i * payload + 8, (int)i, payload - 8);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
	sent = send(fd, packet, sizeof(packet), 0);
	if (sent < 0)
		assert_int_equal(errno, EINVAL);
	else
		assert_int_equal(sent, sizeof(packet));
	close(fd);
	return sent > 0;
}

/* Receives the next frame to that MAC; .data is NULL after a time without one. */
static struct netdev_frame receive_to(struct netdev *port, const uint8_t to[6])
{
	struct pollfd wait = {netdev_wait_fd(port), POLLIN, 0};
	struct netdev_frame frame;

	do {
		while (netdev_rx(port, 0, &frame, 1))
			if (!memcmp(frame.data, to, 6))
				return frame;
	} while (poll(&wait, 1, 1000) > 0);
	return (struct netdev_frame){0};
}

void cable_expect_run(struct netdev *port, const uint8_t to[6], uint32_t n, uint32_t payload)
{
	for (uint32_t i = 0; i < n; i++) {
		struct netdev_frame frame = receive_to(port, to);

		assert_non_null(frame.data);
		assert_int_equal(frame.len, RUN_HEADERS + payload);
		assert_int_equal(frame.data[16] << 8 | frame.data[17], 28 + payload);
		assert_int_equal(frame.data[18] << 8 | frame.data[19], i);
		assert_int_equal(frame.data[38] << 8 | frame.data[39], 8 + payload);
		assert_int_equal(frame.data[RUN_HEADERS + payload - 1], i);
	}
	assert_null(receive_to(port, to).data);
}

uint64_t cable_counter(struct netdev *port, enum netdev_counter which)
{
	uint64_t counters[NETDEV_COUNTER_COUNT];

	netdev_counters(port, counters);
	return counters[which];
}

uint32_t cable_frame(uint8_t *frame, const uint8_t to[6], const uint8_t from[6], uint16_t type,
		     uint32_t payload, uint8_t seed)
{
	memcpy(frame, to, 6);
	memcpy(frame + 6, from, 6);
	frame[12] = type >> 8;
	frame[13] = type;
	for (uint32_t i = 0; i < payload; i++)
		frame[14 + i] = i * 7 + seed;
	return 14 + payload;
}

void cable_send(struct netdev *port, const uint8_t *bytes, uint32_t length)
{
	assert_int_equal(netdev_tx(port, 0, &(struct netdev_frame){bytes, length}, 1), 1);
}
