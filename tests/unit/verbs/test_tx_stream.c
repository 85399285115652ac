/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Streams of frames that the engine writes straight into an inbox, and references to payloads. */
#include "tx_fixture.h"

/* --- Streams: the engine writes frames straight into the inbox. */

/* The inbox's lock is its first word. */
static bool locked(struct fixture *f)
{
	const uint32_t *lock;
	int fds[VNIC_INBOX_FDS];
	bool held;

	vnic_inbox_fds(f->inbox, fds);
	lock = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[VNIC_INBOX_MEMORY], 0);
	assert_ptr_not_equal(lock, MAP_FAILED);
	held = *lock != 0;
	munmap((void *)lock, 4096);
	return held;
}

/* Whether the engine writes n frames into the inbox: it holds the inbox's lock meanwhile. */
static bool n_ahead(struct fixture *f, uint32_t n)
{
	struct urxe_frame frames[2];
	bool held;

	assert_int_equal(tx_reserve(&f->tx, T0, frames, n), n);
	held = locked(f);
	assert_true(tx_send(&f->tx, T0, frames, 0));
	assert_false(locked(f));
	return held;
}

static bool ahead(struct fixture *f)
{
	return n_ahead(f, 2);
}

static bool single_ahead(struct fixture *f)
{
	return n_ahead(f, 1);
}

static void begin_stream(struct fixture *f)
{
	f->len = LONG;
	assert_true(send_n(f, T0, 2));
	assert_int_equal(by_inbox(f, 8), 2);
	assert_true(ahead(f));
	f->next = 0;
}

/* After large frames to one process of this host, more such frames are expected. */
static void test_large_frames_begin_a_stream(void **state)
{
	const uint8_t *const macs[] = {our_mac, our_mac}, *const others[] = {other_mac, other_mac};
	const uint32_t peer[] = {PEER, PEER}, apart[] = {PEER, FAR}, far[] = {FAR, FAR};
	struct fixture *f = *state;

	assert_false(ahead(f));
	assert_true(send_n(f, T0, 2));
	assert_false(ahead(f));
	f->len = LONG;
	assert_true(send_to(f, T0, macs, far, 2));
	assert_false(ahead(f));
	assert_true(send_to(f, T0, others, peer, 2));
	assert_false(ahead(f));
	assert_true(send_to(f, T0, macs, peer, 2));
	assert_true(ahead(f));
	assert_true(send_to(f, T0, macs, apart, 2));
	assert_false(ahead(f));
	assert_true(send_to(f, T0, macs, peer, 2));
	assert_true(ahead(f));
	f->len = LEN;
	assert_true(send_to(f, T0, macs, peer, 2));
	assert_false(ahead(f));
}

/* Frames of the burst for other destinations reach them, and no frame overtakes another. */
static void test_stream_keeps_other_destinations_in_order(void **state)
{
	const uint8_t *const macs[] = {our_mac, our_mac, other_mac, our_mac, group_mac, our_mac};
	const uint32_t qpns[] = {PEER, PEER, PEER, FAR, MANY, PEER};
	struct fixture *f = *state;

	begin_stream(f);
	assert_true(send_to(f, T0, macs, qpns, 6));
	assert_int_equal(by_inbox(f, 8), 3);
	assert_memory_equal(f->seen, ((uint8_t[]){0, 1, 5}), 3);
	assert_int_equal(by_switch(f), 3);
	assert_memory_equal(f->seen, ((uint8_t[]){2, 3, 4}), 3);
	assert_int_equal(counted(f, VNIC_BYPASS_SENT), 5);
}

/* The burst takes as many buffers as there are; further frames wait like other frames. */
static void test_stream_uses_all_buffers(void **state)
{
	struct urxe_frame frames[TX_BURST];
	struct fixture *f = *state;
	uint32_t sent;

	begin_stream(f);
	for (sent = 0; sent < VNIC_INBOX_FRAMES - 5; sent++)
		assert_true(send_n(f, T0, 1));
	assert_int_equal(tx_reserve(&f->tx, T0, frames, 8), 3);
	assert_true(tx_send(&f->tx, T0, frames, 0));
	assert_true(send_n(f, T0, 3));
	assert_false(send_n(f, T0, 8));
	assert_int_equal(tx_deadline(&f->tx), T0 + TX_RETRY_NS);
	for (uint32_t i = 0; i < sent + 3; i++)
		assert_int_equal(by_inbox(f, 1), 1);
	assert_true(tx_flush(&f->tx, T0 + TX_RETRY_NS));
	assert_int_equal(by_inbox(f, 8), 8);
	assert_int_equal(f->seen[7], (uint8_t)(sent + 3 + 7));
	assert_int_equal(by_switch(f), 0);
	assert_true(ahead(f));
}

/* The inbox closes during a stream. */
static void test_closed_inbox_ends_a_stream(void **state)
{
	struct fixture *f = *state;

	begin_stream(f);
	allow(f->loop, false);
	assert_false(ahead(f));
	assert_true(send_n(f, T0, 2));
	assert_int_equal(by_switch(f), 2);
	allow(f->loop, true);
	assert_true(ahead(f));
	vnic_inbox_destroy(f->inbox);
	assert_true(send_n(f, T0, 2));
	assert_int_equal(by_switch(f), 2);
	assert_int_equal(counted(f, VNIC_BYPASS_CLOSED), 1);
	assert_int_equal(vnic_inbox_create(MTU, &f->inbox), 0);
	meet(f);
	assert_false(ahead(f));
	begin_stream(f);
	/* A second inbox of the same process. */
	meet(f);
	assert_false(ahead(f));
}

/* Another process sends a frame, into the next buffer. */
static void send_as_another(struct fixture *f, uint8_t carries)
{
	uint8_t data[LONG];
	struct vnic_frame frame = {.data = data, .len = f->len - URXE_ICRC_LEN};
	enum vnic_outbox_status status;
	struct vnic_outbox *outbox;
	int fds[VNIC_INBOX_FDS];

	memset(data, carries, sizeof(data));
	dup_fds(f->inbox, fds);
	assert_int_equal(vnic_outbox_open(fds, MTU, 9, &outbox), 0);
	assert_int_equal(vnic_outbox_send(outbox, &frame, 1, &status), 1);
	vnic_outbox_close(outbox);
}

/*
 * Another sender takes the lock in the middle of a burst: the frames written so far arrive before
 * its frame.
 */
static void test_vacated_stream_keeps_the_order(void **state)
{
	struct fixture *f = *state;
	struct urxe_frame frames[3];

	begin_stream(f);
	assert_int_equal(tx_reserve(&f->tx, T0, frames, 3), 3);
	make(f, &frames[0], our_mac, PEER);
	make(f, &frames[1], our_mac, PEER);
	assert_true(locked(f));
	tx_unlock_inbox(&f->tx);
	assert_false(locked(f));
	send_as_another(f, 99);
	make(f, &frames[2], our_mac, PEER);
	tx_unlock_inbox(&f->tx);
	assert_true(tx_send(&f->tx, T0, frames, 3));
	assert_int_equal(by_inbox(f, 8), 4);
	assert_memory_equal(f->seen, ((uint8_t[]){0, 1, 99, 2}), 4);
	assert_true(ahead(f));
	/* A reservation without frames does not take the lock again. */
	assert_int_equal(tx_reserve(&f->tx, T0, frames, 3), 3);
	tx_unlock_inbox(&f->tx);
	assert_true(tx_send(&f->tx, T0, frames, 0));
	assert_false(ahead(f));
}

static struct fixture *receiver;

/* Takes its frames as soon as it is woken, and overwrites their buffers. */
static void receive_at_once(int number)
{
	struct vnic_frame frames[8];
	uint32_t n = vnic_inbox_rx(receiver->inbox, frames, 8);

	(void)number;
	for (uint32_t i = 0; i < n; i++)
		memset(frames[i].data, 0xff, frames[i].len);
	vnic_inbox_rx_release(receiver->inbox, n);
}

/*
 * The prediction of the next burst depends on the frames sent, not on what the receiver wrote to
 * their buffers.
 */
static void test_stream_received_at_once(void **state)
{
	struct fixture *f = *state;
	int fds[VNIC_INBOX_FDS], wake[2];

	/*
	 * A pipe in the place of the eventfd: the kernel sends this process a signal at the
	 * wake-up.
	 */
	assert_int_equal(pipe2(wake, O_CLOEXEC), 0);
	assert_int_equal(fcntl(wake[0], F_SETOWN, getpid()), 0);
	assert_int_equal(fcntl(wake[0], F_SETFL, O_ASYNC), 0);
	dup_fds(f->inbox, fds);
	assert_int_equal(dup3(wake[1], fds[VNIC_INBOX_WAKE], O_CLOEXEC), fds[VNIC_INBOX_WAKE]);
	assert_int_equal(tx_add_inbox(&f->tx, our_mac, PEER, false, fds), 0);
	begin_stream(f);
	receiver = f;
	signal(SIGIO, receive_at_once);
	assert_false(vnic_inbox_irq_unmask(f->inbox));
	assert_true(send_n(f, T0, 2));
	signal(SIGIO, SIG_DFL);
	assert_int_equal(by_inbox(f, 8), 0);
	assert_true(ahead(f));
	close(wake[0]);
	close(wake[1]);
}

/* Sends a frame without a payload reference, and a frame of our QP with one. */
static bool send_reference(struct fixture *f, uint64_t now, uint32_t src_qpn)
{
	struct urxe_frame frames[2];

	assert_int_equal(tx_reserve(&f->tx, now, frames, 2), 2);
	for (int i = 0; i < 2; i++)
		make(f, &frames[i], our_mac, PEER);
	frames[1].reference = (struct urxe_reference){
		.address = 0x123456789a,
		.length = 65536,
		.packets = 16,
		.generation = 3,
		.src_qpn = src_qpn,
	};
	return tx_send(&f->tx, now, frames, 2);
}

static void expect_reference(struct fixture *f, uint32_t src_qpn)
{
	struct urxe_frame frame;
	struct vnic_frame frames[3];

	assert_int_equal(vnic_inbox_rx(f->inbox, frames, 3), 2);
	assert_int_equal(frames[0].reference.length, 0);
	assert_int_equal(frames[1].len, f->len - URXE_ICRC_LEN);
	assert_int_equal(frames[1].reference.qpn, src_qpn);
	assert_int_equal(frames[1].reference.address, 0x123456789a);
	assert_int_equal(frames[1].reference.length, 65536);
	assert_int_equal(frames[1].reference.packets, 16);
	assert_int_equal(frames[1].reference.generation, 3);
	vnic_inbox_rx_release(f->inbox, 2);
	/* The receiver accepts references of its own peers only. */
	assert_false(tx_convert_received(&f->tx, &frames[1], true, &frame));
	frames[1].reference.qpn = PEER;
	assert_true(tx_convert_received(&f->tx, &frames[1], true, &frame));
	assert_int_equal(frame.reference.address, 0x123456789a);
	assert_int_equal(frame.reference.packets, 16);
	assert_ptr_equal(frame.reference.sender, tx_peer(&f->tx, our_mac, PEER));
	frames[1].reference.qpn = UINT32_MAX;
	assert_false(tx_convert_received(&f->tx, &frames[1], true, &frame));
}

/* Through the NIC's buffers, and straight into the inbox in a stream. */
static void test_references_arrive_with_their_frame(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++) {
		assert_true(send_reference(f, T0, OURS + 2));
		assert_int_equal(f->tx.stream != NULL, true);
		expect_reference(f, OURS + 2);
	}
	assert_int_equal(f->tx.counters[VNIC_BYPASS_REFERRED], 3);
	/* The receiver may know this process by a later block only. */
	assert_true(send_reference(f, T0, MORE + 1));
	expect_reference(f, MORE + 1);
}

/*
 * Of a queue pair whose number an HCA has chosen. The receiver knows that process by the number
 * that it publishes.
 */
static void test_references_name_a_chosen_number(void **state)
{
	const uint32_t chosen[] = {LOW, CHOSEN};
	struct vnic_frame frames[2];
	struct fixture *f = *state;
	struct urxe_frame frame;
	int fds[VNIC_INBOX_FDS];

	((struct published *)vnic_inbox_published(f->inbox))->process = VNIC_BLOCK(FAR);
	for (int i = 0; i < 2; i++) {
		dup_fds(f->inbox, fds);
		assert_int_equal(tx_add_inbox(&f->tx, our_mac, chosen[i], true, fds), 0);
		assert_true(send_reference(f, T0, chosen[i]));
		assert_int_equal(vnic_inbox_rx(f->inbox, frames, 2), 2);
		assert_int_equal(frames[1].reference.length, 65536);
		assert_true(tx_convert_received(&f->tx, &frames[1], true, &frame));
		assert_int_equal(frame.reference.length, 65536);
		assert_ptr_equal(frame.reference.sender, tx_peer(&f->tx, our_mac, chosen[i]));
		assert_ptr_equal(frame.reference.sender, tx_peer(&f->tx, our_mac, FAR));
		vnic_inbox_rx_release(f->inbox, 2);
	}
}

/* A frame to the switch always contains its payload. */
static void test_frame_by_the_switch_contains_its_payload(void **state)
{
	struct fixture *f = *state;

	allow(f->loop, false);
	assert_true(send_reference(f, T0, OURS));
	assert_int_equal(by_switch(f), 1);
	assert_int_equal(f->tx.counters[VNIC_BYPASS_LOST], 1);
	/* This process refuses copies. */
	allow(f->loop, true);
	assert_false(tx_may_reference(&f->tx, our_mac, PEER));
}

/* Sends two frames to the host's MAC or a machine's; the second references pieces. */
static bool send_pieces(struct fixture *f, const uint8_t mac[6], uint8_t first)
{
	struct urxe_frame frames[2];
	const uint32_t at = f->len - URXE_ICRC_LEN;

	assert_int_equal(tx_reserve(&f->tx, T0, frames, 2), 2);
	for (int i = 0; i < 2; i++)
		make(f, &frames[i], mac, PEER);
	frames[1].reference = (struct urxe_reference){
		.length = 65536, .packets = 16, .n_pieces = 20, .src_qpn = OURS};
	for (uint32_t i = 0; i < 20 * sizeof(struct urxe_reference_piece); i++)
		frames[1].data[at + i] = (uint8_t)(first + i);
	return tx_send(&f->tx, T0, frames, 2);
}

static void expect_pieces(struct fixture *f, uint8_t first)
{
	struct vnic_frame frames[3];
	struct urxe_frame frame;

	assert_int_equal(vnic_inbox_rx(f->inbox, frames, 3), 2);
	assert_int_equal(frames[1].len, f->len - URXE_ICRC_LEN);
	assert_int_equal(frames[1].reference.n_pieces, 20);
	frames[1].reference.qpn = PEER;
	assert_true(tx_convert_received(&f->tx, &frames[1], true, &frame));
	assert_int_equal(frame.reference.n_pieces, 20);
	for (uint32_t i = 0; i < 20 * sizeof(struct urxe_reference_piece); i++)
		assert_int_equal(frame.reference.pieces[i], (uint8_t)(first + i));
	vnic_inbox_rx_release(f->inbox, 2);
}

/* By the NIC's buffers, and straight into the inbox. */
static void test_pieces_arrive_with_their_reference(void **state)
{
	const uint8_t *const macs[] = {our_mac, other_mac};
	struct fixture *f = *state;

	for (uint8_t m = 0; m < 2; m++) {
		if (m)
			meet_machine(f);
		for (uint8_t i = 0; i < 3; i++) {
			assert_true(send_pieces(f, macs[m], i));
			assert_non_null(f->tx.stream);
			expect_pieces(f, i);
		}
		/* A frame for the switch ends the stream. */
		assert_true(send_crafted(f, T0, our_mac, FAR));
		expect_crafted_by_switch(f, our_mac, 1);
		assert_true(send_pieces(f, macs[m], 9));
		expect_pieces(f, 9);
	}
}

/* A single frame is written to the inbox that the last two single frames went to. */
static void test_single_frames_begin_a_stream(void **state)
{
	struct fixture *f = *state;

	assert_true(send_n(f, T0, 1));
	assert_false(single_ahead(f));
	assert_true(send_n(f, T0, 1));
	assert_true(single_ahead(f));
	/* A burst of small frames is copied. */
	assert_false(ahead(f));
	assert_true(send_n(f, T0, 2));
	assert_false(single_ahead(f));
	assert_true(send_n(f, T0, 1));
	assert_true(single_ahead(f));
	/* Frames for the switch and for the inbox in turn. */
	for (int i = 0; i < 3; i++) {
		assert_true(send_to(f, T0, (const uint8_t *[]){our_mac}, &(uint32_t){FAR}, 1));
		assert_null(f->tx.stream);
		assert_true(send_n(f, T0, 1));
		assert_null(f->tx.stream);
	}
	assert_int_equal(by_switch(f), 3);
	assert_int_equal(by_inbox(f, 8), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_single_frames_begin_a_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_frames_begin_a_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_keeps_other_destinations_in_order,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_uses_all_buffers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed_inbox_ends_a_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vacated_stream_keeps_the_order, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_stream_received_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_references_arrive_with_their_frame, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_references_name_a_chosen_number, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frame_by_the_switch_contains_its_payload,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_pieces_arrive_with_their_reference, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
