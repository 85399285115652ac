/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "cable.h"

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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

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
