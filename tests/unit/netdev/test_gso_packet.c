/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames that become one UDP GSO packet, and the packet that becomes frames again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <netdev/gso_packet.h>

#include "packet_bytes.h"

#define ETHERNET 14
#define UDP      8
#define MOST     64
#define ROOM     4400

static uint8_t memory[MOST][ROOM];
static struct packet_port_frame frames[MOST];

static uint32_t headers_of(bool ipv6)
{
	return ETHERNET + (ipv6 ? 40 : 20) + UDP;
}

/* Frame i of a run, with `payload` bytes behind its UDP header. */
static void make_frame(uint32_t i, bool ipv6, uint32_t payload)
{
	uint32_t headers = headers_of(ipv6);
	uint8_t *frame = memory[i], *ip = frame + ETHERNET, *udp = frame + headers - UDP;

	memset(frame, 0xaa, ETHERNET - 2);
	put16(frame + 12, ipv6 ? 0x86dd : 0x0800);
	memset(ip, 0, headers - ETHERNET);
	ip[0] = ipv6 ? 0x60 : 0x45;
	ip[ipv6 ? 6 : 9] = 17;
	memset(ip + (ipv6 ? 8 : 12), 0x5c, ipv6 ? 32 : 8);
	if (ipv6) {
		put16(ip + 4, UDP + payload);
	} else {
		put16(ip + 2, 20 + UDP + payload);
		put16(ip + 4, 7 + i);
	}
	put16(udp, 50000);
	put16(udp + 2, 4791);
	put16(udp + 4, UDP + payload);
	for (uint32_t k = 0; k < payload; k++)
		frame[headers + k] = (uint8_t)(i * 31 + k);
	frames[i] = (struct packet_port_frame){frame, headers + payload, i > 0};
}

/* n frames, the last of another length. */
static void make_run(bool ipv6, uint32_t n, uint32_t payload, uint32_t last)
{
	for (uint32_t i = 0; i < n; i++)
		make_frame(i, ipv6, i + 1 == n ? last : payload);
}

/* --- Which frames one packet can carry */

static void test_run_ends_at_64_segments_64_kib_or_its_message(void **state)
{
	(void)state;
	make_run(false, 15, 4112, 4112);
	assert_int_equal(gso_count(frames, 15), 15);
	assert_int_equal(gso_count(frames, 4), 4);
	assert_int_equal(gso_count(frames, 1), 1);
	make_run(false, 16, 4112, 4112); /* 65,792 bytes */
	assert_int_equal(gso_count(frames, 16), 15);
	make_run(true, 64, 64, 16);
	assert_int_equal(gso_count(frames, 64), 64);
	frames[5].continues = false;
	assert_int_equal(gso_count(frames, 64), 5);
}

static void test_run_ends_with_a_frame_of_another_length(void **state)
{
	(void)state;
	make_run(false, 4, 512, 512);
	make_frame(1, false, 100); /* shorter: the last */
	assert_int_equal(gso_count(frames, 4), 2);
	make_frame(1, false, 600); /* longer: another packet */
	assert_int_equal(gso_count(frames, 4), 1);
	make_frame(1, false, 0); /* nothing */
	assert_int_equal(gso_count(frames, 4), 1);
}

static void test_rocev1_vlan_and_ip_options_form_no_run(void **state)
{
	(void)state;
	make_run(false, 3, 512, 512);
	put16(memory[0] + 12, 0x8915);
	assert_int_equal(gso_count(frames, 3), 1);
	put16(memory[0] + 12, 0x8100);
	assert_int_equal(gso_count(frames, 3), 1);
	make_run(false, 3, 512, 512);
	memory[0][ETHERNET] = 0x46; /* options */
	assert_int_equal(gso_count(frames, 3), 1);
	make_run(true, 3, 512, 512);
	memory[0][ETHERNET + 6] = 0; /* hop-by-hop options */
	assert_int_equal(gso_count(frames, 3), 1);
}

/* --- There and back */

struct packet {
	uint8_t data[1 << 17];
	uint32_t len, headers;
	struct virtio_net_hdr vnet;
};

/* What the kernel makes of the message: the headers, and what the frames have behind theirs. */
static void join(struct packet *p, uint32_t n)
{
	uint32_t headers = gso_headers(frames[0].data, frames[0].len);

	p->headers = p->len = gso_write_headers(frames, n, p->data, &p->vnet);
	assert_int_equal(p->headers, headers);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(p->data + p->len, frames[i].data + headers, frames[i].len - headers);
		p->len += frames[i].len - headers;
	}
}

/* The sum of an intact IPv4 header is 0xffff (RFC 1071). */
static void expect_ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += get16(ip + i);
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
}

static void expect_headers(const struct packet *p, bool ipv6, uint32_t payload)
{
	const uint8_t *ip = p->data + ETHERNET, *udp = p->data + p->headers - UDP;

	assert_int_equal(p->vnet.gso_type, 5);
	assert_int_equal(p->vnet.gso_size, payload);
	assert_int_equal(p->vnet.csum_start, p->headers - UDP);
	assert_int_equal(p->vnet.csum_offset, 6);
	assert_int_equal(get16(udp + 4), p->len - p->headers + UDP);
	assert_int_equal(get16(ip + (ipv6 ? 4 : 2)), p->len - ETHERNET - (ipv6 ? 40 : 0));
	if (!ipv6)
		expect_ipv4_checksum(ip);
}

static bool receive(struct gso_packet *to, const struct packet *p, uint32_t known)
{
	struct iovec parts[GSO_SEGMENTS];
	uint32_t n, at = p->headers;

	if (!gso_packet_start(to, &p->vnet, p->data, known, p->len))
		return false;
	n = gso_packet_parts(to, parts);
	for (uint32_t i = 0; i < n; at += (uint32_t)parts[i++].iov_len)
		memcpy(parts[i].iov_base, p->data + at, parts[i].iov_len);
	assert_int_equal(at, p->len);
	gso_packet_finish(to);
	return true;
}

/* Checksums are not compared: the ICRC leaves them out. */
static void expect_frame(const struct packet_port_frame *got, uint32_t i, bool ipv6)
{
	assert_int_equal(got->len, frames[i].len);
	if (!ipv6)
		memcpy(got->data + ETHERNET + 10, frames[i].data + ETHERNET + 10, 2);
	memset(got->data + headers_of(ipv6) - 2, 0, 2);
	assert_memory_equal(got->data, frames[i].data, got->len);
}

static void test_run_is_split_into_the_same_frames(void **state)
{
	static const struct {
		uint32_t n, payload, last;
	} rows[] = {{2, 4112, 4112}, {15, 4112, 20},  {15, 4112, 4112}, {32, 1040, 1040},
		    {64, 272, 16},   {64, 1015, 500}, {2, 1, 1}};
	static struct packet p;
	struct gso_packet to;

	(void)state;
	assert_true(gso_packet_create(&to));
	for (uint32_t row = 0; row < 2 * sizeof(rows) / sizeof(rows[0]); row++) {
		uint32_t n = rows[row / 2].n, i = 0;
		struct packet_port_frame got;
		bool ipv6 = row % 2;

		make_run(ipv6, n, rows[row / 2].payload, rows[row / 2].last);
		if (frames[0].len < GSO_HEADERS)
			continue;
		assert_int_equal(gso_count(frames, n), n);
		join(&p, n);
		expect_headers(&p, ipv6, rows[row / 2].payload);
		assert_true(receive(&to, &p, 100));
		for (; gso_packet_next(&to, &got); i++)
			expect_frame(&got, i, ipv6);
		assert_int_equal(i, n);
	}
	gso_packet_destroy(&to);
}

static void test_gso_packets_with_wrong_headers_are_refused(void **state)
{
	static struct packet p;
	struct gso_packet to;

	(void)state;
	assert_true(gso_packet_create(&to));
	make_run(false, 4, 512, 512);
	join(&p, 4);
	assert_true(receive(&to, &p, 100));
	assert_false(receive(&to, &p, GSO_HEADERS - 1)); /* the headers are not known */
	p.vnet.gso_type = 1;                             /* TCP */
	assert_false(receive(&to, &p, 100));
	join(&p, 4);
	p.vnet.gso_size = 0;
	assert_false(receive(&to, &p, 100));
	p.vnet.gso_size = 4 * 512 / GSO_SEGMENTS - 1; /* one segment too many */
	assert_false(receive(&to, &p, 100));
	p.vnet.gso_size++;
	assert_true(receive(&to, &p, 100));
	p.vnet.gso_size = UINT16_MAX;
	assert_true(receive(&to, &p, 100));
	p.len = p.headers;
	assert_false(receive(&to, &p, p.headers + 40));
	p.len = ETHERNET + UINT16_MAX + 1;
	assert_false(receive(&to, &p, 100));
	p.len--;
	p.vnet.gso_size = 1024;
	assert_true(receive(&to, &p, 100));
	gso_packet_destroy(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run_ends_at_64_segments_64_kib_or_its_message),
		cmocka_unit_test(test_run_ends_with_a_frame_of_another_length),
		cmocka_unit_test(test_rocev1_vlan_and_ip_options_form_no_run),
		cmocka_unit_test(test_run_is_split_into_the_same_frames),
		cmocka_unit_test(test_gso_packets_with_wrong_headers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
