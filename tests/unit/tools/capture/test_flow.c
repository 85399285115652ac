/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rxe/opcode.h>
#include <rxe/psn.h>

#include "capture/flow.h"

/* Requester A with QP 0x11 at address 1, responder B with QP 0x22 at address 2. */
enum side { A = 1, B = 2 };
static const uint32_t qpn_of[] = {[A] = 0x11, [B] = 0x22};

static struct flow_table *t;

static int setup(void **state)
{
	(void)state;
	t = flow_table_create();
	return !t;
}

static int teardown(void **state)
{
	(void)state;
	flow_table_destroy(t);
	return 0;
}

static struct urxe_packet packet(enum side from, uint8_t opcode, uint32_t psn)
{
	struct urxe_packet p = {.net = URXE_NET_IPV4, .opcode = opcode, .psn = psn & URXE_PSN_MASK};
	enum side to = from == A ? B : A;

	p.sgid.raw[15] = from;
	p.dgid.raw[15] = to;
	p.dest_qpn = qpn_of[to];
	return p;
}

static void put(enum side from, uint8_t opcode, uint32_t psn, uint32_t payload_len)
{
	struct urxe_packet p = packet(from, opcode, psn);

	p.payload_len = payload_len;
	assert_int_equal(flow_input(t, &p), 0);
}

static void ack(uint32_t psn, uint8_t syndrome)
{
	struct urxe_packet p = packet(B, URXE_OP_ACKNOWLEDGE, psn);

	p.aeth.syndrome = syndrome;
	assert_int_equal(flow_input(t, &p), 0);
}

static void read_request(uint32_t psn, uint32_t len)
{
	struct urxe_packet p = packet(A, URXE_OP_READ_REQUEST, psn);

	p.reth.length = len;
	assert_int_equal(flow_input(t, &p), 0);
}

static void sends(uint32_t psn, uint32_t n)
{
	while (n--)
		put(A, URXE_OP_SEND_ONLY, psn++, 8);
}

static const struct flow_track *requests(void)
{
	return &flow_at(t, 0)->requests;
}

#define CHECK(t_, gaps_, missing_, late_, duplicates_)           \
	do {                                                     \
		assert_int_equal((t_)->gaps, gaps_);             \
		assert_int_equal((t_)->missing, missing_);       \
		assert_int_equal((t_)->late, late_);             \
		assert_int_equal((t_)->duplicates, duplicates_); \
	} while (0)

static void packets_across_the_psn_wrap_are_no_gap(void **state)
{
	(void)state;
	sends(0xfffffe, 5);
	CHECK(requests(), 0, 0, 0, 0);
	assert_int_equal(requests()->packets, 5);
	assert_int_equal(requests()->first_psn, 0xfffffe);
	assert_int_equal(requests()->last_psn, 2);
}

static void a_gap_is_filled_by_retransmission(void **state)
{
	(void)state;
	sends(10, 2);
	sends(14, 2); /* 12 and 13 are lost */
	CHECK(requests(), 1, 2, 0, 0);
	sends(12, 4); /* go back N */
	CHECK(requests(), 1, 0, 2, 2);
	sends(16, 1);
	CHECK(requests(), 1, 0, 2, 2);
}

static void holes_are_filled_in_any_order(void **state)
{
	(void)state;
	sends(0, 1);
	sends(6, 1); /* 1 to 5 are missing */
	sends(3, 1); /* in the middle */
	sends(1, 1);
	sends(5, 1);
	CHECK(requests(), 1, 2, 3, 0);
	sends(2, 1);
	sends(4, 1);
	CHECK(requests(), 1, 0, 5, 0);
	sends(4, 1);
	CHECK(requests(), 1, 0, 5, 1);
}

/* Each second packet is missing, and each other one comes twice, as in a capture of two ports. The
 * PSNs wrap. */
static void many_holes_are_found(void **state)
{
	const uint32_t n = 30000, first = 0xff8000;

	(void)state;
	for (uint32_t i = 0; i < n; i++)
		sends(first + 2 * i, 1);
	for (uint32_t i = 0; i < n; i++)
		sends(first + 2 * i, 1);
	CHECK(requests(), n - 1, n - 1, 0, n);
	for (uint32_t i = 0; i < n - 1; i++)
		sends(first + 2 * (i * 7919u % (n - 1)) + 1, 1);
	CHECK(requests(), n - 1, 0, n - 1, n);
}

static void acknowledgements_are_counted_by_syndrome(void **state)
{
	static const uint8_t syndromes[] = {0x00, 0x1f, 0x2e, 0x60, 0x61, 0x62, 0x63, 0x64, 0x40};
	const struct flow *f;
	uint32_t i;

	(void)state;
	sends(0, 1);
	for (i = 0; i < sizeof(syndromes); i++)
		ack(0, syndromes[i]);
	f = flow_at(t, 1);
	assert_int_equal(f->acks[FLOW_ACK_ACK], 2);
	assert_int_equal(f->acks[FLOW_ACK_RNR], 1);
	assert_int_equal(f->acks[FLOW_ACK_SEQUENCE], 1);
	assert_int_equal(f->acks[FLOW_ACK_INVALID], 1);
	assert_int_equal(f->acks[FLOW_ACK_ACCESS], 1);
	assert_int_equal(f->acks[FLOW_ACK_OPERATION], 1);
	assert_int_equal(f->acks[FLOW_ACK_OTHER], 2);
	assert_string_equal(flow_ack_name(FLOW_ACK_SEQUENCE), "nak_sequence");
	assert_null(flow_ack_name(FLOW_ACK_COUNT));
}

static void directions_are_matched_by_psn(void **state)
{
	struct urxe_packet p;

	(void)state;
	sends(1000, 3);
	/* Another connection of the same hosts, with other PSNs. */
	p = packet(A, URXE_OP_SEND_ONLY, 500000);
	p.dest_qpn = 0x33;
	assert_int_equal(flow_input(t, &p), 0);
	ack(1002, 0);
	assert_ptr_equal(flow_at(t, 2)->peer, flow_at(t, 0));
	assert_ptr_equal(flow_at(t, 0)->peer, flow_at(t, 2));
	assert_null(flow_at(t, 1)->peer);
	assert_null(flow_at(t, 3));
}

static void a_stray_ack_matches_nobody(void **state)
{
	(void)state;
	sends(1000, 3);
	ack(999, 0);
	ack(1003, 0);
	assert_null(flow_at(t, 1)->peer);
}

static void read_takes_a_psn_for_each_response(void **state)
{
	const struct flow_track *responses;

	(void)state;
	read_request(100, 4 * 1024);
	put(B, URXE_OP_READ_RESPONSE_FIRST, 100, 1024);
	put(B, URXE_OP_READ_RESPONSE_MIDDLE, 101, 1024);
	put(B, URXE_OP_READ_RESPONSE_MIDDLE, 102, 1024);
	put(B, URXE_OP_READ_RESPONSE_LAST, 103, 1024);
	read_request(104, 100);
	put(B, URXE_OP_READ_RESPONSE_ONLY, 104, 100);
	read_request(105, 0);
	put(B, URXE_OP_READ_RESPONSE_ONLY, 105, 0);
	sends(106, 1);
	CHECK(requests(), 0, 0, 0, 0);
	responses = &flow_at(t, 1)->responses;
	CHECK(responses, 0, 0, 0, 0);
	assert_int_equal(responses->packets, 6);
	assert_int_equal(flow_at(t, 0)->mtu, 1024);
	assert_ptr_equal(flow_at(t, 1)->peer, flow_at(t, 0));
}

static void read_psns_without_its_responses(void **state)
{
	(void)state;
	/* Three packets at 1024, and at no other MTU. */
	read_request(100, 3000);
	sends(103, 1);
	CHECK(requests(), 0, 0, 0, 0);
	assert_int_equal(flow_at(t, 0)->mtu, 1024);
	read_request(104, 3000);
	sends(108, 1); /* one PSN is missing now that the MTU is known */
	CHECK(requests(), 1, 1, 0, 0);
}

static void read_that_fits_no_mtu_leaves_a_gap(void **state)
{
	(void)state;
	read_request(100, 4096);
	sends(105, 1); /* 4096 bytes are 1, 2, 4, 8 or 16 packets, not 5 */
	CHECK(requests(), 1, 4, 0, 0);
}

static void a_lost_response_is_a_gap(void **state)
{
	const struct flow_track *responses;

	(void)state;
	read_request(100, 4 * 1024);
	put(B, URXE_OP_READ_RESPONSE_FIRST, 100, 1024);
	put(B, URXE_OP_READ_RESPONSE_LAST, 103, 1024);
	responses = &flow_at(t, 1)->responses;
	CHECK(responses, 1, 2, 0, 0);
	/* The requester repeats the READ from the first missing packet. */
	read_request(101, 3 * 1024);
	put(B, URXE_OP_READ_RESPONSE_FIRST, 101, 1024);
	put(B, URXE_OP_READ_RESPONSE_MIDDLE, 102, 1024);
	put(B, URXE_OP_READ_RESPONSE_LAST, 103, 1024);
	CHECK(responses, 1, 0, 2, 1);
	CHECK(requests(), 0, 0, 0, 1);
}

static void response_without_first_packet_counts_a_gap(void **state)
{
	(void)state;
	read_request(100, 3 * 1024);
	put(B, URXE_OP_READ_RESPONSE_MIDDLE, 101, 1024);
	put(B, URXE_OP_READ_RESPONSE_LAST, 102, 1024);
	assert_int_equal(flow_at(t, 1)->responses.packets, 2);
	/* Packets are missing, but their number is unknown. */
	assert_int_equal(flow_at(t, 1)->responses.gaps, 1);
	CHECK(requests(), 0, 0, 0, 0);
}

static void a_new_connection_of_the_same_qp_is_no_gap(void **state)
{
	(void)state;
	sends(1000, 3);
	sends(0x800000, 3);
	CHECK(requests(), 0, 0, 0, 0);
	assert_int_equal(requests()->restarts, 1);
}

static void a_new_connection_restarts_the_responses_too(void **state)
{
	(void)state;
	read_request(1000, 8);
	put(B, URXE_OP_READ_RESPONSE_ONLY, 1000, 8);
	read_request(0x700000, 8);
	put(B, URXE_OP_READ_RESPONSE_ONLY, 0x700000, 8);
	assert_int_equal(requests()->restarts, 1);
	assert_int_equal(flow_at(t, 1)->responses.restarts, 1);
}

/* The capture begins in the middle of B's READ. */
static void the_first_request_in_a_capture_restarts_nothing(void **state)
{
	(void)state;
	put(A, URXE_OP_READ_RESPONSE_MIDDLE, 0x700000, 1024);
	sends(100, 1);
	ack(100, 0);
	put(B, URXE_OP_SEND_ONLY, 0x700010, 8);
	put(A, URXE_OP_READ_RESPONSE_MIDDLE, 0x700001, 1024);
	put(A, URXE_OP_READ_RESPONSE_LAST, 0x700002, 1024);
	assert_int_equal(flow_at(t, 0)->responses.restarts, 0);
	assert_int_equal(flow_at(t, 0)->responses.duplicates, 0);
}

/* The requests are not in the capture. */
static void responses_alone_restart_only_backwards(void **state)
{
	(void)state;
	put(B, URXE_OP_READ_RESPONSE_ONLY, 100, 8);
	put(B, URXE_OP_READ_RESPONSE_ONLY, 100000, 8);
	assert_int_equal(flow_at(t, 0)->responses.restarts, 0);
	put(B, URXE_OP_READ_RESPONSE_ONLY, 100, 8);
	assert_int_equal(flow_at(t, 0)->responses.restarts, 1);
}

static void many_sends_between_two_reads_are_no_new_connection(void **state)
{
	(void)state;
	read_request(100, 1024);
	put(B, URXE_OP_READ_RESPONSE_ONLY, 100, 1024);
	sends(101, 70000);
	read_request(70101, 1024);
	put(B, URXE_OP_READ_RESPONSE_ONLY, 70101, 1024);
	assert_int_equal(requests()->restarts, 0);
	assert_int_equal(flow_at(t, 1)->responses.restarts, 0);
	CHECK(&flow_at(t, 1)->responses, 0, 0, 0, 0);
}

/* The capture lacks most of the 9 million SENDs between the READs. */
static void a_response_after_half_of_all_psns_is_new(void **state)
{
	const struct flow_track *responses;
	uint32_t psn = 101;

	(void)state;
	read_request(100, 1024);
	put(B, URXE_OP_READ_RESPONSE_ONLY, 100, 1024);
	responses = &flow_at(t, 1)->responses;
	for (; psn < 9000000; psn += 60000)
		sends(psn, 1);
	read_request(psn, 1024);
	put(B, URXE_OP_READ_RESPONSE_ONLY, psn, 1024);
	CHECK(responses, 0, 0, 0, 0);
	put(B, URXE_OP_READ_RESPONSE_ONLY, psn, 1024);
	CHECK(responses, 0, 0, 0, 1);
	read_request(psn + 1, 1024);
	put(B, URXE_OP_READ_RESPONSE_ONLY, psn + 1, 1024);
	CHECK(responses, 0, 0, 0, 1);
	assert_int_equal(responses->restarts, 0);
}

/* The requester goes back to the first of two READs and to the SEND between them. */
static void a_repeated_long_read_is_no_new_connection(void **state)
{
	(void)state;
	read_request(100, 100000 * 1024);
	put(B, URXE_OP_READ_RESPONSE_FIRST, 100, 1024);
	sends(100100, 1);
	read_request(100101, 100000 * 1024);
	read_request(101, 99999 * 1024);
	put(B, URXE_OP_READ_RESPONSE_FIRST, 101, 1024);
	sends(100100, 1);
	read_request(100101, 100000 * 1024);
	assert_int_equal(requests()->restarts, 0);
	CHECK(requests(), 0, 0, 0, 3);
	assert_int_equal(flow_at(t, 1)->responses.restarts, 0);
}

static void a_new_connection_repeats_no_read_of_the_last(void **state)
{
	(void)state;
	read_request(100, 100000 * 1024);
	put(B, URXE_OP_READ_RESPONSE_FIRST, 100, 1024);
	sends(0x700000, 1);
	sends(0x700000 - 70000, 1);
	assert_int_equal(requests()->restarts, 2);
}

static void datagrams_are_kept_by_sender(void **state)
{
	struct urxe_packet p = packet(A, URXE_SERVICE_UD | URXE_OP_SEND_ONLY, 7);

	(void)state;
	p.deth.src_qpn = 0x11;
	assert_int_equal(flow_input(t, &p), 0);
	p.psn = 20; /* the PSNs between went to another QP */
	assert_int_equal(flow_input(t, &p), 0);
	p.deth.src_qpn = 0x12;
	assert_int_equal(flow_input(t, &p), 0);
	CHECK(requests(), 0, 0, 0, 0);
	assert_int_equal(requests()->packets, 2);
	assert_int_equal(flow_at(t, 1)->src_qpn, 0x12);
}

static void any_packets_in_any_order_add_up(void **state)
{
	uint32_t i, n = 0;
	uint64_t sum = 0;

	(void)state;
	srandom(11);
	for (i = 0; i < 20000; i++) {
		struct urxe_packet p = packet(random() & 1 ? A : B, 0, (uint32_t)random() % 300);

		do
			p.opcode = (uint8_t)random();
		while (!urxe_opcodes[p.opcode].known);
		p.payload_len = (uint32_t)random() % 5000;
		p.reth.length = (uint32_t)random();
		p.aeth.syndrome = (uint8_t)random();
		assert_int_equal(flow_input(t, &p), 0);
	}
	for (; flow_at(t, n); n++)
		sum += flow_at(t, n)->packets;
	assert_int_equal(sum, 20000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets_across_the_psn_wrap_are_no_gap),
		TEST(a_gap_is_filled_by_retransmission),
		TEST(holes_are_filled_in_any_order),
		TEST(many_holes_are_found),
		TEST(acknowledgements_are_counted_by_syndrome),
		TEST(directions_are_matched_by_psn),
		TEST(a_stray_ack_matches_nobody),
		TEST(read_takes_a_psn_for_each_response),
		TEST(read_psns_without_its_responses),
		TEST(read_that_fits_no_mtu_leaves_a_gap),
		TEST(a_lost_response_is_a_gap),
		TEST(response_without_first_packet_counts_a_gap),
		TEST(a_new_connection_of_the_same_qp_is_no_gap),
		TEST(a_new_connection_restarts_the_responses_too),
		TEST(the_first_request_in_a_capture_restarts_nothing),
		TEST(responses_alone_restart_only_backwards),
		TEST(many_sends_between_two_reads_are_no_new_connection),
		TEST(a_response_after_half_of_all_psns_is_new),
		TEST(a_repeated_long_read_is_no_new_connection),
		TEST(a_new_connection_repeats_no_read_of_the_last),
		TEST(datagrams_are_kept_by_sender),
		TEST(any_packets_in_any_order_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
