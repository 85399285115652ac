/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The socket filter of packet ports, run by libpcap's interpreter of classic BPF; and sending by a
 * descriptor that is no socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include <netdev/gso_packet.h>
#include <netdev/packet_port.h>

#include "packet_bytes.h"

enum network { IPV4, IPV4_OPTIONS, IPV6, ROCEV1 };

struct frame {
	uint8_t data[160];
	uint32_t len;
};

static void add_ipv4(struct frame *f, uint32_t options)
{
	put16(f->data + 12, 0x0800);
	f->data[14] = 0x45 + options / 4;
	f->data[23] = 17;
	f->len = 34 + options;
}

static void add_ipv6(struct frame *f)
{
	put16(f->data + 12, 0x86dd);
	f->data[20] = 17;
	f->len = 54;
}

static void add_udp(struct frame *f)
{
	put16(f->data + f->len, 49152);
	put16(f->data + f->len + 2, 4791);
	f->len += 8;
}

static struct frame make_frame(enum network network, uint32_t qpn)
{
	struct frame f = {.len = 54};

	if (network == ROCEV1)
		put16(f.data + 12, 0x8915);
	else if (network == IPV6)
		add_ipv6(&f);
	else
		add_ipv4(&f, network == IPV4 ? 0 : 8);
	if (network != ROCEV1)
		add_udp(&f);
	f.data[f.len + 5] = (uint8_t)(qpn >> 16);
	put16(f.data + f.len + 6, qpn & 0xffff);
	f.len += 12 + 4;
	return f;
}

/* The kernel accepts the filter on any socket, and gives it back. */
static bool passes(const struct frame *f, const uint16_t *blocks, uint32_t n)
{
	struct sock_filter all[BPF_MAXINSNS];
	socklen_t length = BPF_MAXINSNS;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(packet_port_accept(fd, blocks, n), 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, all, &length), 0);
	close(fd);
	/* libpcap's instructions have the kernel's layout: pcap/bpf.h. */
	return bpf_filter((const struct bpf_insn *)all, f->data, f->len, f->len) >= f->len;
}

static void packets_to_the_blocks_pass(void **state)
{
	static const uint16_t blocks[] = {1, 0x123, 0xffe};

	(void)state;
	for (enum network network = IPV4; network <= ROCEV1; network++) {
		static const struct {
			uint32_t qpn;
			bool in;
		} rows[] = {
			{0x1000, true},   {0x1fff, true},    {0x2000, false},   {0xfff, false},
			{0x123000, true}, {0x123abc, true},  {0x124000, false}, {0x122fff, false},
			{0xffe001, true}, {0xffffff, false}, {1, false},        {0x001230, true},
		};

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct frame f = make_frame(network, rows[i].qpn);

			assert_int_equal(passes(&f, blocks, 3), rows[i].in);
			assert_false(passes(&f, blocks, 0));
		}
	}
}

static void expect_drop(const struct frame *f)
{
	static const uint16_t block = 0x123;

	assert_false(passes(f, &block, 1));
}

static void other_frames_are_dropped(void **state)
{
	struct frame f;

	(void)state;
	f = make_frame(IPV4, 0x123456);
	f.data[23] = 6; /* TCP */
	expect_drop(&f);
	f = make_frame(IPV4, 0x123456);
	put16(f.data + 36, 4792);
	expect_drop(&f);
	f = make_frame(IPV4, 0x123456);
	put16(f.data + 20, 0x2000); /* the first fragment */
	expect_drop(&f);
	f = make_frame(IPV4, 0x123456);
	put16(f.data + 20, 1); /* a later fragment */
	expect_drop(&f);
	f = make_frame(IPV4, 0x123456);
	put16(f.data + 20, 0x4000); /* don't fragment */
	assert_true(passes(&f, &(const uint16_t){0x123}, 1));
	f = make_frame(IPV6, 0x123456);
	f.data[20] = 60; /* destination options */
	expect_drop(&f);
	f = make_frame(IPV6, 0x123456);
	put16(f.data + 56, 4792);
	expect_drop(&f);
	f = make_frame(ROCEV1, 0x123456);
	put16(f.data + 12, 0x0806);
	expect_drop(&f);
}

static void short_frames_are_dropped(void **state)
{
	static const uint16_t block = 0x123;

	(void)state;
	for (enum network network = IPV4; network <= ROCEV1; network++) {
		struct frame f = make_frame(network, 0x123456);

		for (f.len -= 4 + 12 - 6; f.len; f.len--)
			assert_false(passes(&f, &block, 1));
	}
}

static void the_kernel_s_limit_is_kept(void **state)
{
	static uint16_t blocks[PACKET_PORT_QPN_BLOCKS_MAX];
	struct frame f = make_frame(IPV4, 0x3ff000);

	(void)state;
	for (uint32_t i = 0; i < PACKET_PORT_QPN_BLOCKS_MAX; i++)
		blocks[i] = (uint16_t)i;
	assert_true(passes(&f, blocks, PACKET_PORT_QPN_BLOCKS_MAX));
	f = make_frame(IPV4, 0x400000);
	assert_false(passes(&f, blocks, PACKET_PORT_QPN_BLOCKS_MAX));
	assert_int_equal(packet_port_accept(-1, blocks, PACKET_PORT_QPN_BLOCKS_MAX + 1), -E2BIG);
	assert_int_equal(packet_port_accept(-1, blocks, PACKET_PORT_QPN_BLOCKS_MAX), -EBADF);
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);

/* A memfd, which takes the place of the socket, cannot be in an epoll set. */
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	(void)epoll, (void)op, (void)fd, (void)event;
	return 0;
}

static uint32_t rings; /* that the kernel was asked for */

int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t length);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t length);
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length);

static int rmem_max; /* of a process without CAP_NET_ADMIN of the initial namespace; 0: with it */

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	if (level == SOL_SOCKET && option == SO_RCVBUFFORCE && rmem_max) {
		errno = EPERM;
		return -1;
	}
	if (level == SOL_SOCKET && option == SO_RCVBUF)
		return __real_setsockopt(fd, level, option, &rmem_max, sizeof(rmem_max));
	rings += level == SOL_PACKET && option == PACKET_RX_RING;
	return level == SOL_PACKET ? 0 : __real_setsockopt(fd, level, option, value, length);
}

static int vnet; /* packets have virtio-net headers */

int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length);

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	if (level != SOL_PACKET || option != PACKET_VNET_HDR)
		return __real_getsockopt(fd, level, option, value, length);
	memcpy(value, &vnet, sizeof(vnet));
	return 0;
}

/* Packet sockets need a privilege. */
int __wrap_socket(int domain, int type, int protocol)
{
	return __real_socket(domain == AF_PACKET ? AF_UNIX : domain, type, protocol);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)fd, (void)address, (void)length;
	return 0;
}

int __wrap_uname(struct utsname *name);

int __wrap_uname(struct utsname *name)
{
	*name = (struct utsname){.release = "6.2.0"};
	return 0;
}

/* As for root of a rootless container. */
static void the_queue_is_limited_without_the_capability(void **state)
{
	struct packet_port_ring ring;

	(void)state;
	for (rmem_max = 0; rmem_max <= 65536; rmem_max += 65536) {
		int fd = packet_port_create(1, 1500, NULL, &ring);

		assert_true(fd >= 0);
		assert_int_equal(packet_port_queue_is_short(fd), rmem_max != 0);
		close(fd);
	}
	rmem_max = 0;
}

/* The kernel takes long for a ring, and urxed would serve no other process meanwhile. */
static void the_process_makes_the_ring(void **state)
{
	struct packet_port_ring ring;
	struct packet_port *port;
	int memory = memfd_create("ring", MFD_CLOEXEC), fd;

	(void)state;
	rings = 0;
	fd = packet_port_create(1, 1500, NULL, &ring);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(rings, 0);
	assert_int_equal(ftruncate(memory, (off_t)ring.blocks * PACKET_PORT_RING_BLOCK_SIZE), 0);
	assert_int_equal(packet_port_open(memory, &ring, &port), 0);
	assert_int_equal(rings, 1);
	packet_port_close(port);
	ring.frame_size = 0;
	assert_int_equal(packet_port_open(dup(STDERR_FILENO), &ring, &port), -EPROTO);
}

static void refused_frames_keep_errno(void **state)
{
	const struct packet_port_ring ring = {.frame_size = 2048, .blocks = 1};
	uint8_t data[64] = {0};
	const struct packet_port_frame frames[2] = {{data, sizeof(data)}, {data, sizeof(data)}};
	int fd = memfd_create("ring", MFD_CLOEXEC);
	struct packet_port *port;
	uint32_t lost;

	(void)state;
	assert_int_equal(ftruncate(fd, PACKET_PORT_RING_BLOCK_SIZE), 0);
	assert_int_equal(packet_port_open(fd, &ring, &port), 0);
	errno = EDOM;
	assert_int_equal(packet_port_tx(port, frames, 2, &lost), 2);
	assert_int_equal(lost, 2);
	assert_int_equal(errno, EDOM);
	packet_port_close(port);
}

/* Puts a frame into a place of a ring, and returns the place. */
static uint8_t *fill_place(uint8_t *memory, const struct packet_port_ring *ring, uint32_t i,
			   uint32_t status)
{
	uint8_t *place = memory + (size_t)i * ring->frame_size;

	*(struct tpacket2_hdr *)(void *)place = (struct tpacket2_hdr){
		.tp_status = status, .tp_mac = 128, .tp_snaplen = 64, .tp_len = 64};
	return place;
}

/* In place of a socket whose ring has one block; maps the ring. */
static int make_ring_memory(uint8_t **memory)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, PACKET_PORT_RING_BLOCK_SIZE), 0);
	*memory =
		mmap(NULL, PACKET_PORT_RING_BLOCK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(*memory != MAP_FAILED);
	return fd;
}

/* A packet that is in no queue of a socket is dropped; no frame of the ring is with the caller. */
static void dropped_packets_free_their_places(void **state)
{
	const struct packet_port_ring ring = {.frame_size = 2048, .blocks = 1};
	const uint32_t places = PACKET_PORT_RING_BLOCK_SIZE / 2048;
	int fd;
	struct packet_port_frame frame;
	struct packet_port *port;
	uint8_t *memory;

	(void)state;
	fd = make_ring_memory(&memory);
	assert_int_equal(packet_port_open(fd, &ring, &port), 0);
	for (uint32_t i = 0; i < 2 * places; i++) {
		fill_place(memory, &ring, i % places, TP_STATUS_USER | TP_STATUS_COPY);
		assert_int_equal(packet_port_rx(port, &frame, 1), 0);
		assert_false(packet_port_irq_unmask(port));
	}
	assert_int_equal(packet_port_read_drops(port), 2 * places);
	fill_place(memory, &ring, 0, TP_STATUS_USER);
	assert_int_equal(packet_port_rx(port, &frame, 1), 1);
	packet_port_close(port);
	munmap(memory, PACKET_PORT_RING_BLOCK_SIZE);
}

#define RUN_HEADERS 42 /* Ethernet, IPv4 and UDP */
#define RUN_PAYLOAD 80 /* of each of two packets */

/* A UDP GSO packet of two packets, whose VLAN tag the kernel has taken out. */
static void fill_tagged_run(uint8_t *memory, const struct packet_port_ring *ring)
{
	uint8_t *place = fill_place(memory, ring, 0, TP_STATUS_USER | TP_STATUS_VLAN_VALID);
	struct tpacket2_hdr *header = (struct tpacket2_hdr *)(void *)place;
	const struct virtio_net_hdr virtio = {.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
					      .gso_size = RUN_PAYLOAD};
	struct frame f = {.len = 0};

	add_ipv4(&f, 0);
	add_udp(&f);
	assert_int_equal(f.len, RUN_HEADERS);
	header->tp_vlan_tci = 0x2005;
	header->tp_snaplen = header->tp_len = RUN_HEADERS + 2 * RUN_PAYLOAD;
	memcpy(place + 128 - sizeof(virtio), &virtio, sizeof(virtio));
	memcpy(place + 128, f.data, f.len);
	memset(place + 128 + RUN_HEADERS, 1, RUN_PAYLOAD);
	memset(place + 128 + RUN_HEADERS + RUN_PAYLOAD, 2, RUN_PAYLOAD);
}

static void expect_tagged_packet(const struct packet_port_frame *frame, uint8_t payload)
{
	const uint8_t *data = frame->data;

	assert_int_equal(frame->len, 4 + RUN_HEADERS + RUN_PAYLOAD);
	assert_int_equal(get16(data + 12), 0x8100);
	assert_int_equal(get16(data + 14), 0x2005);
	assert_int_equal(get16(data + 16), 0x0800);
	assert_int_equal(get16(data + 20), RUN_HEADERS - 14 + RUN_PAYLOAD);
	assert_int_equal(get16(data + 40), 4791);
	assert_int_equal(data[4 + RUN_HEADERS], payload);
	assert_int_equal(data[4 + RUN_HEADERS + RUN_PAYLOAD - 1], payload);
}

/* The peer sends without a tag, and a switch adds one. */
static void a_tagged_run_becomes_tagged_packets(void **state)
{
	const struct packet_port_ring ring = {.frame_size = 2048, .blocks = 1};
	int fd;
	struct packet_port_frame frame;
	struct packet_port *port;
	uint8_t *memory;

	(void)state;
	fd = make_ring_memory(&memory);
	vnet = 1;
	assert_int_equal(packet_port_open(fd, &ring, &port), 0);
	vnet = 0;
	fill_tagged_run(memory, &ring);
	for (uint8_t i = 1; i <= 2; i++) {
		assert_int_equal(packet_port_rx(port, &frame, 1), 1);
		expect_tagged_packet(&frame, i);
	}
	packet_port_release(port);
	assert_int_equal(packet_port_rx(port, &frame, 1), 0);
	assert_int_equal(packet_port_read_drops(port), 0);
	packet_port_close(port);
	munmap(memory, PACKET_PORT_RING_BLOCK_SIZE);
}

/* --- Groups */

#define GROUP_FRAMES 3 /* in the ring of each member */

/* A ring with frames, whose first byte is the member's number. */
static int make_filled_ring(const struct packet_port_ring *ring, uint8_t member)
{
	uint8_t *memory;
	int fd = make_ring_memory(&memory);

	for (uint32_t i = 0; i < GROUP_FRAMES; i++)
		fill_place(memory, ring, i, TP_STATUS_USER)[128] = member;
	munmap(memory, PACKET_PORT_RING_BLOCK_SIZE);
	return fd;
}

static void members_take_turns(void **state)
{
	const struct packet_port_ring ring = {.frame_size = 2048, .blocks = 1};
	const int fds[] = {make_filled_ring(&ring, 0), make_filled_ring(&ring, 1)};
	struct packet_port_frame frames[2];
	struct packet_group *group;

	(void)state;
	assert_int_equal(packet_group_open(fds, 2, &ring, &group), 0);
	assert_int_equal(packet_group_size(group), 2);
	for (uint8_t i = 0; i < 4; i++) {
		assert_int_equal(packet_group_rx(group, frames, 2), i < 2 ? 2 : 1);
		assert_int_equal(packet_group_rx_member(group), i % 2);
		assert_int_equal(frames[0].data[0], i % 2);
		packet_group_release(group);
	}
	assert_int_equal(packet_group_rx(group, frames, 2), 0);
	packet_group_close(group);
}

/* One bad ring: the group closes all descriptors. */
static void a_group_opens_all_members_or_none(void **state)
{
	const struct packet_port_ring ring = {.frame_size = 2048, .blocks = 1}, bad = {.blocks = 1};
	const int fds[] = {make_filled_ring(&ring, 0), make_filled_ring(&ring, 1)};
	struct packet_group *group;

	(void)state;
	assert_int_equal(packet_group_open(fds, 2, &bad, &group), -EPROTO);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
}

static void count_flows(uint32_t n, uint32_t carriers, uint32_t counts[PACKET_GROUP_MAX])
{
	memset(counts, 0, PACKET_GROUP_MAX * sizeof(*counts));
	for (uint32_t flow = 0; flow < 840; flow++)
		counts[packet_group_choose(flow, n, carriers)]++;
}

static void flows_use_all_members_alike(void **state)
{
	uint32_t counts[PACKET_GROUP_MAX];

	(void)state;
	for (uint32_t n = 1; n <= PACKET_GROUP_MAX; n++) {
		count_flows(n, (1u << n) - 1, counts);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(counts[i], 840 / n);
		count_flows(n, 0, counts); /* unknown carriers */
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(counts[i], 840 / n);
	}
}

static void flows_leave_only_a_member_that_fails(void **state)
{
	uint32_t counts[PACKET_GROUP_MAX];

	(void)state;
	for (uint32_t n = 2; n <= PACKET_GROUP_MAX; n++)
		for (uint32_t lost = 0; lost < n; lost++) {
			const uint32_t all = (1u << n) - 1, carriers = all & ~(1u << lost);

			for (uint32_t flow = 0; flow < 840; flow++) {
				uint32_t before = packet_group_choose(flow, n, all);

				if (before != lost)
					assert_int_equal(packet_group_choose(flow, n, carriers),
							 before);
			}
			count_flows(n, carriers, counts);
			assert_int_equal(counts[lost], 0);
			for (uint32_t i = 0; i < n; i++)
				assert_true(i == lost || counts[i] > 840 / n);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_to_the_blocks_pass),
		cmocka_unit_test(other_frames_are_dropped),
		cmocka_unit_test(short_frames_are_dropped),
		cmocka_unit_test(the_kernel_s_limit_is_kept),
		cmocka_unit_test(the_queue_is_limited_without_the_capability),
		cmocka_unit_test(the_process_makes_the_ring),
		cmocka_unit_test(refused_frames_keep_errno),
		cmocka_unit_test(dropped_packets_free_their_places),
		cmocka_unit_test(a_tagged_run_becomes_tagged_packets),
		cmocka_unit_test(members_take_turns),
		cmocka_unit_test(a_group_opens_all_members_or_none),
		cmocka_unit_test(flows_use_all_members_alike),
		cmocka_unit_test(flows_leave_only_a_member_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
