/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payloads that stay in their sender's memory: when the engine may leave them there, what becomes
 * of them where the frame goes another way, and what a receiver reads, whatever it is told. This
 * process sends to itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rxe/rxe.h>
#include <vnic/loop.h>
#include <vnic/regs.h>

#include "adopt.h"
#include "arena.h"
#include "fd.h"
#include "peer.h"
#include "port.h"

#define MTU     4200
#define NUMBER  5u
#define OWN     (NUMBER << 12) /* a QPN of ours, */
#define FAR     0x7000u        /* and of a process that we do not know */
#define SIZE    65536u
#define HEADERS 58u
#define PAYLOAD 4094u /* with two bytes of padding */
#define TAIL    (2 + URXE_ICRC_LEN)

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};

static struct {
	struct vnic_loop *loop;
	struct vnic_inbox *inbox;
	uint8_t *memory; /* a region, */
	struct urxe_shared shared;
	struct urxe_frame frames[2];
} w;

static void add(const struct vnic_inbox *inbox, uint32_t qpn)
{
	int fds[VNIC_INBOX_FDS];

	vnic_inbox_fds(inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = dup(fds[i]);
	assert_int_equal(egress_add(&port.egress, qpn, fds), 0);
}

static void open_for(const char *transport)
{
	struct vnic_attach_welcome who = {.mtu = MTU, .qpn_first = OWN};
	struct urxe_extent region;

	fd_owner_is_me();
	assert_int_equal(setenv("URXE_TRANSPORT", transport, 1), 0);
	assert_int_equal(vnic_loop_open(MTU, &w.loop), 0);
	*(uint32_t *)((uint8_t *)w.loop->bars + VNIC_REG_DIRECT) = 1;
	assert_int_equal(vnic_inbox_create(MTU, &w.inbox), 0);
	assert_int_equal(!peer_init(vnic_inbox_published(w.inbox), vnic_inbox_shared(w.inbox)),
			 !strcmp(transport, "packet"));
	memcpy(who.mac, mac, sizeof(mac));
	assert_int_equal(egress_init(&port.egress, w.loop->driver, &who), 0);
	add(w.inbox, OWN);
	w.memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(w.memory, MAP_FAILED);
	for (uint32_t i = 0; i < SIZE; i++)
		w.memory[i] = (uint8_t)(i * 7 + i / 256);
	region = (struct urxe_extent){w.memory, SIZE};
	assert_true(adopt(&region, &w.shared));
}

static int open_world(void **state)
{
	(void)state;
	open_for("auto");
	return 0;
}

static int open_for_packets(void **state)
{
	(void)state;
	open_for("packet");
	return 0;
}

static int close_world(void **state)
{
	const struct urxe_extent region = {w.memory, SIZE};

	(void)state;
	adopt_release(&region);
	egress_done(&port.egress);
	adopt_done();
	peer_done();
	vnic_inbox_destroy(w.inbox);
	vnic_loop_close(w.loop);
	munmap(w.memory, SIZE);
	return 0;
}

/* --- Sending. */

static uint64_t count(enum vnic_direct_counter counter)
{
	return port.egress.counters[counter];
}

static void reserve(void)
{
	memset(w.frames, 0, sizeof(w.frames));
	assert_int_equal(egress_reserve(&port.egress, 1, w.frames, 2), 2);
}

static bool lends(uint32_t qpn)
{
	return egress_lends(&port.egress, mac, qpn) != URXE_LENDS_NOT;
}

/* As the engine makes one: what its headers and its end say is no concern here. */
static void make(struct urxe_frame *frame, uint32_t qpn, uint32_t at)
{
	memset(frame->data, 1, HEADERS);
	memcpy(frame->data, mac, sizeof(mac));
	frame->dest_qpn = qpn;
	frame->len = HEADERS + PAYLOAD + TAIL;
	if (lends(qpn)) {
		frame->lent = PAYLOAD;
		frame->trusted = egress_lends(&port.egress, mac, qpn) == URXE_LENDS_TRUSTED;
		frame->payload = w.memory + at;
		frame->window = w.shared.window + at;
	} else {
		memcpy(frame->data + HEADERS, w.memory + at, PAYLOAD);
	}
	memset(frame->data + frame->len - frame->lent - TAIL, 2, TAIL);
}

static void send_two(uint32_t first, uint32_t second)
{
	make(&w.frames[0], first, 100);
	make(&w.frames[1], second, 5000);
	assert_true(egress_send(&port.egress, 1, w.frames, 2));
}

/* --- What has come. */

static bool is_part(const uint8_t *at, uint8_t byte, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (at[i] != byte)
			return false;
	return true;
}

static void expect_whole(const uint8_t *data, uint32_t len, uint32_t at)
{
	assert_int_equal(len, HEADERS + PAYLOAD + TAIL);
	assert_true(is_part(data + sizeof(mac), 1, HEADERS - sizeof(mac)));
	assert_memory_equal(data + HEADERS, w.memory + at, PAYLOAD);
	assert_true(is_part(data + HEADERS + PAYLOAD, 2, TAIL));
}

static void expect_lent(const struct urxe_frame *frame, uint32_t at)
{
	assert_int_equal(frame->lent, PAYLOAD);
	assert_int_equal(frame->len, HEADERS + PAYLOAD + TAIL);
	assert_ptr_not_equal(frame->payload, w.memory + at);
	assert_memory_equal(frame->payload, w.memory + at, PAYLOAD);
	assert_true(is_part(frame->data + HEADERS, 2, TAIL));
}

/* False: what comes next is for us alone. */
static bool receive(bool lent, uint32_t at)
{
	struct vnic_frame buffer;
	struct urxe_frame frame;
	bool is;

	assert_int_equal(vnic_inbox_rx(w.inbox, &buffer, 1), 1);
	is = egress_take_in(&port.egress, &buffer, &frame);
	if (is && lent) {
		expect_lent(&frame, at);
	} else if (is) {
		assert_int_equal(frame.lent, 0);
		expect_whole(frame.data, frame.len, at);
	}
	vnic_inbox_rx_release(w.inbox, 1);
	return is;
}

/* A stream to ourselves, of which we have our memory mapped: the next frames may lend. */
static void begin_stream(void)
{
	reserve();
	send_two(OWN, OWN);
	assert_true(receive(false, 100));
	assert_true(receive(false, 5000));
	/* With the next ones comes the wish, which is no frame. */
	reserve();
	assert_false(lends(OWN));
	send_two(OWN, OWN);
	assert_false(receive(false, 0));
	assert_true(receive(false, 100));
	assert_true(receive(false, 5000));
	reserve();
	assert_true(lends(OWN));
}

static void test_stream(void **state)
{
	(void)state;
	begin_stream();
	for (int i = 0; i < 1000; i++) {
		send_two(OWN, OWN);
		assert_true(receive(true, 100));
		assert_true(receive(true, 5000));
		reserve();
	}
	assert_int_equal(count(VNIC_DIRECT_LENT), 2000);
	assert_int_equal(count(VNIC_DIRECT_BORROWED), 2000);
	assert_int_equal(count(VNIC_DIRECT_UNREACHED), 0);
	send_two(OWN, OWN);
}

/* A wish that nobody hears is told ever more seldom. */
static void test_unheard(void **state)
{
	uint32_t wishes = 0;
	struct vnic_frame buffer;

	(void)state;
	for (int i = 0; i < 100; i++) {
		reserve();
		assert_false(lends(OWN));
		send_two(OWN, OWN);
		while (vnic_inbox_rx(w.inbox, &buffer, 1)) {
			wishes += buffer.loan.lender == NUMBER;
			vnic_inbox_rx_release(w.inbox, 1);
		}
	}
	assert_in_range(wishes, 2, 8);
}

/* --- Trust. */

/* The next frame of the inbox, as the engine gets it. */
static struct urxe_frame take_next(void)
{
	struct vnic_frame buffer;
	struct urxe_frame frame;

	assert_int_equal(vnic_inbox_rx(w.inbox, &buffer, 1), 1);
	assert_true(egress_take_in(&port.egress, &buffer, &frame));
	vnic_inbox_rx_release(w.inbox, 1);
	return frame;
}

static void test_trusted(void **state)
{
	const struct urxe_extent region = {w.memory, SIZE};
	struct urxe_frame frame;

	(void)state;
	begin_stream();
	assert_int_equal(egress_lends(&port.egress, mac, OWN), URXE_LENDS_TRUSTED);
	send_two(OWN, OWN);
	frame = take_next();
	assert_true(frame.trusted);
	assert_int_equal(*frame.recalls, frame.recalled);
	/* Before its memory goes. */
	adopt_release(&region);
	assert_int_not_equal(*frame.recalls, frame.recalled);
	frame = take_next();
	assert_int_not_equal(*frame.recalls, frame.recalled);
}

/* Who has packets alone has an ICRC over each, and trusts nobody who says that he is trusted. */
static void test_packets_alone(void **state)
{
	const struct vnic_loan loan = {4096, 1, 4096, NUMBER};
	static uint8_t data[HEADERS + TAIL];
	const struct vnic_frame buffer = {
		.data = data, .len = sizeof(data), .room = MTU + 18, .loan = loan};
	struct urxe_frame frame;

	(void)state;
	begin_stream();
	assert_int_equal(egress_lends(&port.egress, mac, OWN), URXE_LENDS_CHECKED);
	send_two(OWN, OWN);
	assert_false(take_next().trusted);
	assert_false(take_next().trusted);
	assert_false(egress_take_in(&port.egress, &buffer, &frame));
	assert_int_equal(count(VNIC_DIRECT_UNREACHED), 1);
}

/* --- Frames that go another way. */

static void expect_by_switch(uint32_t at)
{
	struct vnic_tx_frame frame;

	assert_int_equal(vnic_device_tx(w.loop->device, 0, &frame, 1), 1);
	expect_whole(frame.data, frame.len, at);
	vnic_device_tx_done(w.loop->device, 0, 1);
}

/* To whom nothing is lent: another process, or another host's of the same number. */
static void test_elsewhere(void **state)
{
	static const uint8_t other[6] = {2, 0, 0, 0, 0, 2};

	(void)state;
	begin_stream();
	assert_false(lends(FAR));
	assert_int_equal(egress_lends(&port.egress, other, OWN), URXE_LENDS_NOT);
	send_two(OWN, FAR);
	assert_true(receive(true, 100));
	expect_by_switch(5000);
}

/* What is lent stands behind what was written there for another one. */
static void test_behind_another(void **state)
{
	(void)state;
	begin_stream();
	send_two(FAR, OWN);
	assert_true(receive(true, 5000));
	expect_by_switch(100);
}

/* What was made when the inbox is given back is handed over. */
static void test_vacated(void **state)
{
	(void)state;
	begin_stream();
	make(&w.frames[0], OWN, 100);
	egress_vacate(&port.egress);
	assert_true(receive(true, 100));
	assert_false(lends(OWN));
	make(&w.frames[1], OWN, 5000);
	assert_true(egress_send(&port.egress, 1, w.frames, 2));
	assert_true(receive(false, 5000));
	assert_int_equal(count(VNIC_DIRECT_LENT), 1);
}

/* And what was made for another one is moved. */
static void test_vacated_elsewhere(void **state)
{
	(void)state;
	begin_stream();
	make(&w.frames[0], FAR, 100);
	egress_vacate(&port.egress);
	make(&w.frames[1], OWN, 5000);
	assert_true(egress_send(&port.egress, 1, w.frames, 2));
	assert_true(receive(false, 5000));
	expect_by_switch(100);
}

/* A capture sees whole frames. */
static void test_captured(void **state)
{
	(void)state;
	begin_stream();
	send_two(OWN, OWN);
	*(uint32_t *)((uint8_t *)w.loop->bars + VNIC_REG_DIRECT) = 0;
	reserve();
	assert_false(lends(OWN));
	send_two(OWN, OWN);
	expect_by_switch(100);
	expect_by_switch(5000);
}

/* --- Whatever a loan says. */

static bool take_in(struct vnic_loan loan)
{
	static uint8_t data[HEADERS + TAIL];
	const struct vnic_frame buffer = {
		.data = data, .len = sizeof(data), .room = MTU + 18, .loan = loan};
	struct urxe_frame frame;
	bool is = egress_take_in(&port.egress, &buffer, &frame);

	if (is) {
		/* There is memory. */
		assert_int_equal(frame.lent, loan.len);
		assert_true(!memcmp(frame.payload, frame.payload, loan.len));
	}
	return is;
}

static void test_forged(void **state)
{
	const uint64_t end = ARENA_SIZE;
	const struct vnic_loan wrong[] = {
		{end - 4096, 1, 4097, NUMBER},
		{0, 1, URXE_LENT_MAX + 1, NUMBER},
		{end, 0, 1, NUMBER},
		{end - 1, 0, 2, NUMBER},
		{end - 4096, 0, 4097, NUMBER},
		{UINT64_MAX, 0, 1, NUMBER},
		{UINT64_MAX - 4095, 0, 4096, NUMBER},
		{0, 0, MTU + 19, NUMBER},
		{0, 0, UINT16_MAX, NUMBER},
		{0, 0, 4096, NUMBER + 1},
		{0, 0, 4096, VNIC_PROCESSES},
		{0, 0, 4096, UINT16_MAX},
		{0, 0, 65536 + 4096, NUMBER},
		{0, 0, UINT32_MAX, NUMBER},
		{0, 0, 4096, 65536 + NUMBER},
		{0, 0, 4096, UINT32_MAX},
	};
	const uint32_t n = sizeof(wrong) / sizeof(*wrong);

	(void)state;
	assert_false(
		take_in((struct vnic_loan){4096, 0, 4096, NUMBER})); /* nothing is mapped yet */
	begin_stream();
	send_two(OWN, OWN);
	for (uint32_t i = 0; i < n; i++)
		assert_false(take_in(wrong[i]));
	assert_int_equal(count(VNIC_DIRECT_UNREACHED), n + 1);
	assert_true(take_in((struct vnic_loan){end - 4096, 0, 4096, NUMBER}));
	assert_true(take_in((struct vnic_loan){0, 0, MTU + 18, NUMBER}));
	assert_true(take_in((struct vnic_loan){0, 1, URXE_LENT_MAX, NUMBER}));
}

/* What is said to be lent may lie in memory that is no longer mapped. */
static void test_left(void **state)
{
	(void)state;
	begin_stream();
	send_two(OWN, OWN);
	peer_leave_arenas();
	assert_false(receive(true, 100));
	assert_false(receive(true, 5000));
	assert_int_equal(count(VNIC_DIRECT_UNREACHED), 2);
	reserve();
	assert_false(lends(OWN));
	send_two(OWN, OWN);
}

/* --- Processes that end. */

static uint32_t mapped(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	uint32_t n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += !!strstr(line, name);
	assert_int_equal(fclose(maps), 0);
	return n;
}

/* Who only hears from them never meets their closed inboxes. */
static void test_ended(void **state)
{
	uint32_t inboxes = mapped("urxe-inbox");

	(void)state;
	for (uint32_t i = 1; i < 10; i++) {
		struct vnic_inbox *inbox;

		assert_int_equal(vnic_inbox_create(MTU, &inbox), 0);
		add(inbox, OWN + (i << 12));
		vnic_inbox_destroy(inbox);
		assert_int_equal(mapped("urxe-inbox"), inboxes + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stream, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_unheard, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_trusted, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_packets_alone, open_for_packets, close_world),
		cmocka_unit_test_setup_teardown(test_elsewhere, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_behind_another, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_vacated, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_vacated_elsewhere, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_captured, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_forged, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_left, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_ended, open_world, close_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
