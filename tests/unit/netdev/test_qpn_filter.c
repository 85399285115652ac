/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The filter's instructions, run by libpcap's interpreter of classic BPF. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include <netdev/packet_port.h>

#include "packet/qpn_filter.h"

#define OTHER 7u /* verdict behind the filter's instructions */

enum network { IPV4, IPV4_OPTIONS, IPV6, ROCEV1 };

struct frame {
	uint8_t data[160];
	uint32_t len;
};

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value & 0xff;
}

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

static uint32_t run_filter(const struct frame *f, const uint16_t *blocks, uint32_t n,
			   uint32_t verdict)
{
	const struct sock_filter other = BPF_STMT(BPF_RET | BPF_K, OTHER);
	struct sock_filter all[BPF_MAXINSNS];
	uint32_t length = qpn_filter_write(all, BPF_MAXINSNS - 1, blocks, n, verdict);

	assert_int_not_equal(length, 0);
	all[length] = other;
	/* libpcap's instructions have the kernel's layout: pcap/bpf.h. */
	assert_true(bpf_validate((const struct bpf_insn *)all, (int)length + 1));
	return bpf_filter((const struct bpf_insn *)all, f->data, f->len, f->len);
}

static void packets_to_the_blocks_get_the_verdict(void **state)
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

			assert_int_equal(run_filter(&f, blocks, 3, QPN_FILTER_PASS),
					 rows[i].in ? QPN_FILTER_PASS : OTHER);
			assert_int_equal(run_filter(&f, blocks, 3, 0), rows[i].in ? 0 : OTHER);
			assert_int_equal(run_filter(&f, blocks, 0, QPN_FILTER_PASS), OTHER);
		}
	}
}

static void expect_other(const struct frame *f)
{
	static const uint16_t block = 0x123;

	assert_int_equal(run_filter(f, &block, 1, QPN_FILTER_PASS), OTHER);
}

static void other_frames_pass_the_instructions(void **state)
{
	struct frame f;

	(void)state;
	f = make_frame(IPV4, 0x123456);
	f.data[23] = 6; /* TCP */
	expect_other(&f);
	f = make_frame(IPV4, 0x123456);
	put16(f.data + 36, 4792);
	expect_other(&f);
	f = make_frame(IPV4, 0x123456);
	put16(f.data + 20, 0x2000); /* the first fragment */
	expect_other(&f);
	f = make_frame(IPV4, 0x123456);
	put16(f.data + 20, 1); /* a later fragment */
	expect_other(&f);
	f = make_frame(IPV4, 0x123456);
	put16(f.data + 20, 0x4000); /* don't fragment */
	assert_int_equal(run_filter(&f, &(const uint16_t){0x123}, 1, 3), 3);
	f = make_frame(IPV6, 0x123456);
	f.data[20] = 60; /* destination options */
	expect_other(&f);
	f = make_frame(IPV6, 0x123456);
	put16(f.data + 56, 4792);
	expect_other(&f);
	f = make_frame(ROCEV1, 0x123456);
	put16(f.data + 12, 0x0806);
	expect_other(&f);
}

/* The kernel's interpreter drops a frame that ends before a load, too. */
static void short_frames_are_dropped(void **state)
{
	static const uint16_t block = 0x123;

	(void)state;
	for (enum network network = IPV4; network <= ROCEV1; network++) {
		struct frame f = make_frame(network, 0x123456);

		for (f.len -= 4 + 12 - 6; f.len; f.len--)
			assert_int_not_equal(run_filter(&f, &block, 1, 9), 9);
	}
}

static void the_kernel_s_limit_is_kept(void **state)
{
	static uint16_t blocks[PACKET_PORT_BLOCKS];
	struct sock_filter all[BPF_MAXINSNS];
	struct frame f = make_frame(IPV4, 0x3ff000);

	(void)state;
	for (uint32_t i = 0; i < PACKET_PORT_BLOCKS; i++)
		blocks[i] = (uint16_t)i;
	assert_int_equal(run_filter(&f, blocks, PACKET_PORT_BLOCKS, 9), 9);
	f = make_frame(IPV4, 0x400000);
	assert_int_equal(run_filter(&f, blocks, PACKET_PORT_BLOCKS, 9), OTHER);
	assert_int_equal(qpn_filter_write(all, 10, blocks, 1, 9), 0);
	assert_int_equal(packet_port_accept(-1, blocks, PACKET_PORT_BLOCKS + 1), -E2BIG);
	assert_int_equal(packet_port_accept(-1, blocks, PACKET_PORT_BLOCKS), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_to_the_blocks_get_the_verdict),
		cmocka_unit_test(other_frames_pass_the_instructions),
		cmocka_unit_test(short_frames_are_dropped),
		cmocka_unit_test(the_kernel_s_limit_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
