/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A capture has a UDP GSO packet as one frame; replay cuts it into the packets of the cable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <rxe/packet.h>
#include <rxe/rxe.h>

#include "capture/gso_run.h"
#include "common/ether.h"

#define PACKETS   6
#define FIRST_PSN 0xfffffd /* the PSNs wrap */
#define ROOM      2048
#define BTH       12
#define ICRC      4

static uint8_t packets[PACKETS][ROOM];
static struct packet_port_frame frames[PACKETS];
static uint8_t run[PACKETS * ROOM];
static struct gso_packet cut;
static uint32_t psn_step = 1;

static uint32_t headers_of(bool ipv6)
{
	return 14 + (ipv6 ? 40 : 20) + 8;
}

static uint32_t psn_of(uint32_t i)
{
	return (FIRST_PSN + i * psn_step) & 0xffffff;
}

static void make_packet(uint32_t i, bool ipv6, uint32_t payload)
{
	uint32_t headers = headers_of(ipv6), len = headers + BTH + payload + ICRC;
	uint8_t *ip = packets[i] + 14, *udp = packets[i] + headers - 8, *bth = udp + 8;

	memset(packets[i], 0, ROOM);
	ether_put16(packets[i] + 12, ipv6 ? 0x86dd : 0x0800);
	ip[0] = ipv6 ? 0x60 : 0x45;
	ip[ipv6 ? 6 : 9] = 17;
	if (!ipv6)
		ether_put16(ip + 4, (uint16_t)i);
	ether_put16(ip + (ipv6 ? 4 : 2), (uint16_t)(len - 14 - (ipv6 ? 40 : 0)));
	ether_put16(udp, 50000);
	ether_put16(udp + 2, 4791);
	ether_put16(udp + 4, (uint16_t)(len - headers + 8));
	bth[0] = 0x07; /* RC WRITE_MIDDLE */
	ether_put16(bth + 2, 0xffff);
	bth[7] = 9;
	bth[9] = (uint8_t)(psn_of(i) >> 16);
	ether_put16(bth + 10, (uint16_t)psn_of(i));
	memset(bth + BTH, (int)(0x40 + i), payload);
	urxe_frame_add_icrc(packets[i], len);
	frames[i] = (struct packet_port_frame){packets[i], len, i > 0};
}

/* The frame that a capture has of a run, whose last packet has `last` bytes of payload. */
static uint32_t make_run(bool ipv6, uint32_t payload, uint32_t last)
{
	struct virtio_net_hdr vnet;
	uint32_t len, headers = headers_of(ipv6);

	for (uint32_t i = 0; i < PACKETS; i++)
		make_packet(i, ipv6, i + 1 == PACKETS ? last : payload);
	assert_int_equal(gso_count(frames, PACKETS), PACKETS);
	len = gso_write_headers(frames, PACKETS, run, &vnet);
	for (uint32_t i = 0; i < PACKETS; i++) {
		memcpy(run + len, packets[i] + headers, frames[i].len - headers);
		len += frames[i].len - headers;
	}
	return len;
}

static void assert_cut_into_packets(void)
{
	struct packet_port_frame f;
	struct urxe_packet p;

	for (uint32_t i = 0; i < PACKETS; i++) {
		assert_true(gso_packet_next(&cut, &f));
		assert_int_equal(f.len, frames[i].len);
		assert_int_equal(urxe_packet_parse(&p, f.data, f.len), 0);
		assert_int_equal(p.psn, psn_of(i));
		assert_true(urxe_packet_icrc_ok(&p));
	}
	assert_false(gso_packet_next(&cut, &f));
}

static void run_becomes_its_packets(void **state)
{
	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		assert_true(gso_run_cut(&cut, run, make_run(ipv6, 1024, 1024)));
		assert_cut_into_packets();
		assert_true(gso_run_cut(&cut, run, make_run(ipv6, 256, 12)));
		assert_cut_into_packets();
		assert_true(gso_run_cut(&cut, run, make_run(ipv6, 4, 4)));
		assert_cut_into_packets();
	}
}

/* READ responses and requests of a QP share a run, and have PSNs of two directions. */
static void psns_of_a_run_need_not_be_consecutive(void **state)
{
	(void)state;
	psn_step = 2;
	assert_true(gso_run_cut(&cut, run, make_run(false, 1024, 1024)));
	assert_cut_into_packets();
	psn_step = 1;
}

static void packet_is_no_run(void **state)
{
	(void)state;
	make_run(false, 1024, 1024);
	assert_false(gso_run_cut(&cut, packets[0], frames[0].len));
	for (uint32_t len = 0; len < 80; len++)
		assert_false(gso_run_cut(&cut, run, len));
}

/* A wrong ICRC stays wrong: of the first packet, the run is not cut; of another, replay sees it. */
static void corrupt_run_has_wrong_icrc(void **state)
{
	uint32_t len = make_run(false, 1024, 1024), wrong = 0;
	struct packet_port_frame f;
	struct urxe_packet p;

	(void)state;
	run[headers_of(false) + BTH + 5] ^= 1;
	assert_false(gso_run_cut(&cut, run, len));
	len = make_run(false, 1024, 1024);
	run[len - 20] ^= 1;
	assert_true(gso_run_cut(&cut, run, len));
	while (gso_packet_next(&cut, &f))
		wrong += urxe_packet_parse(&p, f.data, f.len) || !urxe_packet_icrc_ok(&p);
	assert_int_equal(wrong, 1);
}

static int create(void **state)
{
	(void)state;
	return gso_packet_create(&cut) ? 0 : -1;
}

static int destroy(void **state)
{
	(void)state;
	gso_packet_destroy(&cut);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_becomes_its_packets),
		cmocka_unit_test(psns_of_a_run_need_not_be_consecutive),
		cmocka_unit_test(packet_is_no_run),
		cmocka_unit_test(corrupt_run_has_wrong_icrc),
	};

	return cmocka_run_group_tests(tests, create, destroy);
}
