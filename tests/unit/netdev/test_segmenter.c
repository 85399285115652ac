/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets of the kernel that become the frames of a NIC without offloads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/virtio_net.h>
#include <string.h>

#include <netdev/segmenter.h>

#include "packet_bytes.h"

#define ETHERNET 14
#define TCP      32 /* with 12 bytes of options */
#define UDP      8
#define SEQUENCE 0xfffff000u
#define FIN_PSH  0x09
#define ACK      0x10
#define CWR      0x80

static uint8_t packet[SEGMENTER_PACKET_MAX], frame[SEGMENTER_FRAME_MAX];

struct shape {
	bool ipv6, tcp, tagged;
	uint32_t payload, size;
};

static uint32_t ip_len(const struct shape *shape)
{
	return shape->ipv6 ? 40 : 20;
}

static uint32_t headers_of(const struct shape *shape)
{
	return ETHERNET + ip_len(shape) + (shape->tcp ? TCP : UDP);
}

/* The sum of the pseudo header (RFC 793, RFC 8200). */
static uint32_t pseudo_sum(const struct shape *shape, const uint8_t *ip, uint32_t len)
{
	return internet_sum(ip + (shape->ipv6 ? 8 : 12), shape->ipv6 ? 32 : 8,
			    len + (shape->tcp ? 6 : 17));
}

static void make_ip(const struct shape *shape, uint8_t *ip, uint32_t len)
{
	ip[0] = shape->ipv6 ? 0x60 : 0x45;
	memset(ip + (shape->ipv6 ? 8 : 12), 0x5c, shape->ipv6 ? 32 : 8);
	ip[shape->ipv6 ? 6 : 9] = shape->tcp ? 6 : 17;
	put16(ip + (shape->ipv6 ? 4 : 2), shape->ipv6 ? len : 20 + len);
	if (!shape->ipv6)
		put16(ip + 4, 0xffff); /* identification */
}

/* As the kernel gives it to a packet socket: with the sum of the pseudo header only. */
static struct virtio_net_hdr make_packet(const struct shape *shape)
{
	uint32_t headers = headers_of(shape), l4 = ETHERNET + ip_len(shape);
	uint32_t len = headers - l4 + shape->payload;
	uint8_t *ip = packet + ETHERNET, *transport = packet + l4;

	memset(packet, 0, headers);
	memset(packet, 0xaa, 12);
	put16(packet + 12, shape->ipv6 ? 0x86dd : 0x0800);
	make_ip(shape, ip, len);
	if (shape->tcp) {
		put16(transport + 4, SEQUENCE >> 16);
		put16(transport + 6, SEQUENCE & 0xffff);
		transport[12] = TCP / 4 << 4;
		transport[13] = CWR | ACK | FIN_PSH;
	} else {
		put16(transport + 4, len);
	}
	put16(transport + (shape->tcp ? 16 : 6), pseudo_sum(shape, ip, len));
	for (uint32_t i = 0; i < shape->payload; i++)
		packet[headers + i] = (uint8_t)(i * 7 + i / 256);
	return (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = !shape->size  ? VIRTIO_NET_HDR_GSO_NONE
			    : !shape->tcp ? 5 /* VIRTIO_NET_HDR_GSO_UDP_L4 */
					  : (shape->ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6
							 : VIRTIO_NET_HDR_GSO_TCPV4) |
						    VIRTIO_NET_HDR_GSO_ECN,
		.gso_size = (uint16_t)shape->size,
		.csum_start = (uint16_t)l4,
		.csum_offset = shape->tcp ? 16 : 6,
	};
}

static uint32_t start(const struct shape *shape, struct segmenter *s)
{
	struct virtio_net_hdr vnet = make_packet(shape);
	uint32_t len = headers_of(shape) + shape->payload;
	const uint16_t tci = 0x6005;

	assert_true(segmenter_start(s, &vnet, shape->tagged ? &tci : NULL, packet, len));
	return len;
}

static void check_checksums(const struct shape *shape, const uint8_t *ip, uint32_t len)
{
	uint32_t sum = pseudo_sum(shape, ip, len);

	assert_int_equal(internet_sum(ip + ip_len(shape), len, sum), 0xffff);
}

static void check_ip(const struct shape *shape, const uint8_t *ip, uint32_t len, uint32_t i)
{
	assert_int_equal(get16(ip + (shape->ipv6 ? 4 : 2)), shape->ipv6 ? len : 20 + len);
	if (shape->ipv6)
		return;
	assert_int_equal(get16(ip + 4), (0xffff + i) & 0xffff);
	assert_int_equal(internet_sum(ip, 20, 0), 0xffff);
}

static void check_transport(const struct shape *shape, const uint8_t *transport, uint32_t len,
			    uint32_t i, bool last)
{
	if (!shape->tcp) {
		assert_int_equal(get16(transport + 4), len);
		return;
	}
	assert_int_equal(get32(transport + 4), SEQUENCE + i * shape->size);
	assert_int_equal(transport[13], ACK | (last ? FIN_PSH : 0) | (i ? 0 : CWR));
}

static void check_segment(const struct shape *shape, uint32_t len, uint32_t i)
{
	uint32_t tag = shape->tagged ? 4 : 0, headers = headers_of(shape), at = i * shape->size;
	uint32_t payload = len - tag - headers, l4 = headers - ETHERNET - ip_len(shape) + payload;
	const uint8_t *ip = frame + ETHERNET + tag;
	bool last = at + payload == shape->payload;

	assert_int_equal(payload, last ? shape->payload - at : shape->size);
	assert_memory_equal(frame, packet, 12);
	if (tag)
		assert_memory_equal(frame + 12, "\x81\x00\x60\x05", 4);
	assert_memory_equal(frame + 12 + tag, packet + 12, 2);
	check_ip(shape, ip, l4, i);
	check_transport(shape, ip + ip_len(shape), l4, i, last);
	assert_memory_equal(frame + tag + headers, packet + headers + at, payload);
	check_checksums(shape, ip, l4);
}

static void cut(const struct shape *shape)
{
	uint32_t len, i = 0, n = (shape->payload + shape->size - 1) / shape->size;
	struct segmenter s;

	start(shape, &s);
	while ((len = segmenter_next(&s, frame, sizeof(frame))))
		check_segment(shape, len, i++);
	assert_int_equal(i, n);
	assert_null(s.packet);
}

/* --- */

static void test_packets_are_cut_as_a_nic_does(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		struct shape shape = {i & 1, i & 2, i & 4, 5001, 1000};

		cut(&shape);
		shape.payload = 2000; /* the last frame is full, too */
		cut(&shape);
		shape.payload = 999;
		cut(&shape);
		shape.payload = 65000; /* 722 frames */
		shape.size = 90;
		cut(&shape);
	}
}

static void test_unfinished_checksum_is_completed(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		const struct shape shape = {i & 1, i & 2, i & 4, 333, 0};
		uint32_t tag = shape.tagged ? 4 : 0, len;
		struct segmenter s;

		len = start(&shape, &s);
		assert_int_equal(segmenter_next(&s, frame, sizeof(frame)), len + tag);
		check_checksums(&shape, frame + ETHERNET + tag, len - ETHERNET - ip_len(&shape));
		assert_int_equal(segmenter_next(&s, frame, sizeof(frame)), 0);
	}
}

static void test_other_frames_stay_as_they_are(void **state)
{
	const struct virtio_net_hdr none = {0};
	struct segmenter s;

	(void)state;
	memset(packet, 0x5a, 100);
	assert_true(segmenter_start(&s, &none, NULL, packet, 100));
	assert_int_equal(segmenter_next(&s, frame, sizeof(frame)), 100);
	assert_memory_equal(frame, packet, 100);
}

/* The sum 0 of UDP would mean: no checksum (RFC 768). */
static void test_udp_checksum_is_never_0(void **state)
{
	const struct shape shape = {.payload = 2};
	uint8_t *udp = packet + ETHERNET + 20;
	struct virtio_net_hdr vnet = make_packet(&shape);
	struct segmenter s;

	(void)state;
	put16(udp + UDP, 0);
	put16(udp + UDP, 0xffff - internet_sum(udp, UDP + 2, 0));
	assert_true(segmenter_start(&s, &vnet, NULL, packet, ETHERNET + 20 + UDP + 2));
	segmenter_next(&s, frame, sizeof(frame));
	assert_int_equal(get16(frame + ETHERNET + 20 + 6), 0xffff);
}

static void test_frame_without_room_waits(void **state)
{
	const struct shape shape = {.tcp = true, .payload = 1500, .size = 1000};
	uint32_t whole = headers_of(&shape) + 1000;
	struct segmenter s;

	(void)state;
	start(&shape, &s);
	assert_int_equal(segmenter_next(&s, frame, whole - 1), 0);
	assert_int_equal(segmenter_next(&s, frame, whole), whole);
	assert_int_equal(segmenter_next(&s, frame, whole), headers_of(&shape) + 500);
}

/* A NIC's own LRO has checked the checksum, and leaves no offsets. */
static void test_packet_of_lro_is_cut(void **state)
{
	(void)state;
	for (uint32_t ipv6 = 0; ipv6 < 2; ipv6++) {
		const struct shape shape = {
			.ipv6 = ipv6, .tcp = true, .payload = 2500, .size = 1000};
		struct virtio_net_hdr vnet = make_packet(&shape);
		struct segmenter s;
		uint32_t len, i = 0;

		vnet.flags = VIRTIO_NET_HDR_F_DATA_VALID;
		vnet.csum_start = vnet.csum_offset = 0;
		assert_true(segmenter_start(&s, &vnet, NULL, packet, headers_of(&shape) + 2500));
		while ((len = segmenter_next(&s, frame, sizeof(frame))))
			check_segment(&shape, len, i++);
		assert_int_equal(i, 3);
	}
}

/* Inserts bytes into the packet of `len` bytes. */
static void insert(uint32_t at, const char *bytes, uint32_t n, uint32_t len)
{
	memmove(packet + at + n, packet + at, len - at);
	memcpy(packet + at, bytes, n);
}

/* The kernel takes the outer tag out only. */
static void test_second_tag_stays_in_each_frame(void **state)
{
	const struct shape shape = {.tcp = true, .tagged = true, .payload = 2000, .size = 1000};
	struct virtio_net_hdr vnet = make_packet(&shape);
	uint32_t len = headers_of(&shape) + 2000;
	const uint16_t tci = 0x6005;
	struct segmenter s;

	(void)state;
	insert(12, "\x81\x00\x00\x07", 4, len);
	vnet.csum_start += 4;
	assert_true(segmenter_start(&s, &vnet, &tci, packet, len + 4));
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(segmenter_next(&s, frame, sizeof(frame)),
				 headers_of(&shape) + 1008);
		assert_memory_equal(frame + 12, "\x81\x00\x60\x05\x81\x00\x00\x07\x08\x00", 10);
		check_ip(&shape, frame + 22, TCP + 1000, i);
		check_checksums(&shape, frame + 22, TCP + 1000);
	}
}

static void test_extension_headers_stay_in_each_frame(void **state)
{
	const struct shape shape = {.ipv6 = true, .tcp = true, .payload = 2000, .size = 1000};
	struct virtio_net_hdr vnet = make_packet(&shape);
	uint32_t len = headers_of(&shape) + 2000;
	struct segmenter s;

	(void)state;
	insert(ETHERNET + 40, "\x06\x01\x01\x0c\0\0\0\0\0\0\0\0\0\0\0\0", 16, len);
	packet[ETHERNET + 6] = 60; /* destination options */
	vnet.csum_start += 16;
	assert_true(segmenter_start(&s, &vnet, NULL, packet, len + 16));
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(segmenter_next(&s, frame, sizeof(frame)),
				 headers_of(&shape) + 1016);
		assert_int_equal(get16(frame + ETHERNET + 4), 16 + TCP + 1000);
		assert_int_equal(internet_sum(frame + ETHERNET + 56, TCP + 1000,
					      pseudo_sum(&shape, frame + ETHERNET, TCP + 1000)),
				 0xffff);
	}
	packet[ETHERNET + 6] = 17; /* a tunnel, whose inner header the kernel describes */
	assert_false(segmenter_start(&s, &vnet, NULL, packet, len + 16));
}

/* --- Headers that do not fit the packet */

static bool is_accepted(const struct virtio_net_hdr *vnet, uint32_t len)
{
	struct segmenter s;
	uint32_t room = 0;

	if (!segmenter_start(&s, vnet, NULL, packet, len)) {
		assert_null(s.packet);
		return false;
	}
	while (segmenter_next(&s, frame, sizeof(frame)))
		room++;
	return room > 0;
}

static void test_wrong_headers_are_refused(void **state)
{
	const struct shape shape = {.tcp = true, .payload = 3000, .size = 1000};
	const struct virtio_net_hdr good = make_packet(&shape);
	const uint32_t len = headers_of(&shape) + 3000;
	struct virtio_net_hdr vnet = good;

	(void)state;
	assert_true(is_accepted(&good, len));
	assert_false(is_accepted(&good, 13));
	assert_false(is_accepted(&good, headers_of(&shape)));
	assert_false(is_accepted(&good, SEGMENTER_PACKET_MAX + 1));
	vnet.gso_size = 0;
	assert_false(is_accepted(&vnet, len));
	vnet = good;
	vnet.gso_type = VIRTIO_NET_HDR_GSO_UDP; /* fragments */
	assert_false(is_accepted(&vnet, len));
	vnet = good;
	vnet.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
	assert_false(is_accepted(&vnet, len));
	vnet = good;
	vnet.csum_start = 2;
	assert_false(is_accepted(&vnet, len));
	vnet = good;
	vnet.csum_start = 0xffff;
	assert_false(is_accepted(&vnet, len));
	vnet = good;
	vnet.csum_offset = 6;
	assert_false(is_accepted(&vnet, len));
	vnet = good;
	vnet.gso_type = VIRTIO_NET_HDR_GSO_NONE;
	assert_true(is_accepted(&vnet, len));
	vnet.csum_offset = 8; /* the CRC of SCTP */
	assert_false(is_accepted(&vnet, len));
	packet[ETHERNET + 20 + 12] = 4 << 4; /* a TCP header of 16 bytes */
	assert_false(is_accepted(&good, len));
	make_packet(&shape);
	packet[ETHERNET + 9] = 17;
	assert_false(is_accepted(&good, len));
	make_packet(&shape);
	packet[ETHERNET] = 0x44;
	assert_false(is_accepted(&good, len));
	packet[12] = 0x86; /* another EtherType */
	assert_false(is_accepted(&good, len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets_are_cut_as_a_nic_does),
		cmocka_unit_test(test_unfinished_checksum_is_completed),
		cmocka_unit_test(test_other_frames_stay_as_they_are),
		cmocka_unit_test(test_udp_checksum_is_never_0),
		cmocka_unit_test(test_frame_without_room_waits),
		cmocka_unit_test(test_packet_of_lro_is_cut),
		cmocka_unit_test(test_second_tag_stays_in_each_frame),
		cmocka_unit_test(test_extension_headers_stay_in_each_frame),
		cmocka_unit_test(test_wrong_headers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
