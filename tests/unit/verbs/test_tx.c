/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The transmit path: frames that go to an inbox, frames that go to the switch, frames that wait,
 * and how long they wait.
 */
#include "tx_fixture.h"

static void test_frames_go_by_inbox_or_switch_per_destination(void **state)
{
	const uint8_t *const macs[] = {our_mac, our_mac, other_mac, our_mac, group_mac, our_mac};
	const uint32_t qpns[] = {PEER, FAR, PEER, PEER + 4095, MANY, PEER};
	struct fixture *f = *state;

	assert_true(send_to(f, T0, macs, qpns, 6));
	assert_int_equal(by_inbox(f, 8), 3);
	assert_memory_equal(f->seen, ((uint8_t[]){0, 3, 5}), 3);
	assert_int_equal(by_switch(f), 3);
	assert_memory_equal(f->seen, ((uint8_t[]){1, 2, 4}), 3);
	assert_int_equal(counted(f, VNIC_BYPASS_SENT), 3);
	assert_int_equal(tx_deadline(&f->tx), URXE_NEVER);
}

/* Fills the inbox until n more frames fit. */
static void fill_up(struct fixture *f, uint32_t n)
{
	for (uint32_t i = n; i < VNIC_INBOX_FRAMES; i++)
		assert_true(send_n(f, T0, 1));
}

/* Frames behind a waiting one wait too, in order, frames for the switch as well. */
static void test_frames_wait_behind_a_full_inbox(void **state)
{
	const uint8_t *const macs[] = {our_mac, our_mac, our_mac, our_mac, our_mac, our_mac};
	const uint32_t qpns[] = {FAR, PEER, FAR, PEER, PEER, FAR};
	struct fixture *f = *state;
	uint32_t first = VNIC_INBOX_FRAMES - 1;

	fill_up(f, 1);
	assert_false(send_to(f, T0, macs, qpns, 6));
	assert_int_equal(by_switch(f), 2);
	assert_memory_equal(f->seen, ((uint8_t[]){255, 1}), 2);
	assert_int_equal(tx_deadline(&f->tx), T0 + TX_RETRY_NS);
	assert_false(tx_flush(&f->tx, T0 + TX_RETRY_NS));
	assert_int_equal(by_switch(f), 0);
	assert_int_equal(by_inbox(f, 1), 1);
	assert_false(tx_flush(&f->tx, T0 + 2 * TX_RETRY_NS));
	assert_int_equal(by_inbox(f, 1), 1);
	assert_true(tx_flush(&f->tx, T0 + 3 * TX_RETRY_NS));
	assert_int_equal(tx_deadline(&f->tx), URXE_NEVER);
	assert_int_equal(by_switch(f), 1);
	assert_int_equal(f->seen[0], 4);
	for (uint32_t i = 2; i < first; i++)
		assert_int_equal(by_inbox(f, 1), 1);
	assert_int_equal(by_inbox(f, 8), 3);
	assert_memory_equal(f->seen, ((uint8_t[]){0, 2, 3}), 3);
	assert_int_equal(counted(f, VNIC_BYPASS_FULL), 0);
}

static void test_stalled_inbox_falls_back_to_the_switch(void **state)
{
	struct fixture *f = *state;
	uint64_t now = T0 + PEER_ROUTE_STALLED_NS;

	fill_up(f, 0);
	assert_false(send_n(f, T0, 2));
	assert_false(tx_flush(&f->tx, now - 1));
	assert_int_equal(by_switch(f), 0);
	assert_true(tx_flush(&f->tx, now));
	assert_int_equal(by_switch(f), 2);
	assert_int_equal(counted(f, VNIC_BYPASS_FULL), 2);
	/*
	 * The inbox has room again, and frames for the inbox and for the switch stay in their
	 * order.
	 */
	assert_int_equal(by_inbox(f, 8), 8);
	assert_true(send_n(f, now + PEER_ROUTE_DETOUR_NS - 1, 1));
	assert_int_equal(by_switch(f), 1);
	assert_true(send_n(f, now + PEER_ROUTE_DETOUR_NS, 1));
	assert_int_equal(by_switch(f), 0);
	assert_int_equal(counted(f, VNIC_BYPASS_FULL), 3);
	/* The inbox took one frame: the time limit starts again. */
	now += PEER_ROUTE_DETOUR_NS;
	assert_false(send_n(f, now, 8));
	assert_int_equal(tx_deadline(&f->tx), now + TX_RETRY_NS);
}

/* A receiver that has exceeded the limit once, and still has no room, delays no further frame. */
static void test_stalled_inbox_delays_once_only(void **state)
{
	struct fixture *f = *state;
	uint64_t now = T0 + PEER_ROUTE_STALLED_NS;

	fill_up(f, 0);
	assert_false(send_n(f, T0, 1));
	assert_true(tx_flush(&f->tx, now));
	assert_true(send_n(f, now + PEER_ROUTE_DETOUR_NS, 1));
	assert_int_equal(by_switch(f), 2);
}

/* A thread reads the clock before it takes the lock, so the time may go back. */
static void test_time_that_goes_back_stalls_no_inbox(void **state)
{
	struct fixture *f = *state;

	fill_up(f, 0);
	assert_false(send_n(f, T0, 1));
	assert_false(tx_flush(&f->tx, T0 - 1));
	assert_int_equal(by_switch(f), 0);
	assert_true(tx_flush(&f->tx, T0 - 1 + PEER_ROUTE_STALLED_NS));
}

/* Holds the inbox's lock, which is its first word. */
static uint32_t *hold_lock(const struct fixture *f)
{
	int fds[VNIC_INBOX_FDS];
	uint32_t *lock;

	vnic_inbox_fds(f->inbox, fds);
	lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[VNIC_INBOX_MEMORY], 0);
	assert_ptr_not_equal(lock, MAP_FAILED);
	*lock = 9;
	return lock;
}

static void test_locked_inbox_lets_frames_wait(void **state)
{
	struct fixture *f = *state;
	uint32_t *lock = hold_lock(f);

	assert_false(send_n(f, T0, 3));
	assert_false(tx_flush(&f->tx, T0 + PEER_ROUTE_STALLED_NS - 1));
	assert_true(tx_flush(&f->tx, T0 + PEER_ROUTE_STALLED_NS));
	assert_int_equal(by_switch(f), 3);
	assert_int_equal(counted(f, VNIC_BYPASS_BUSY), 3);
	*lock = 0;
	assert_true(send_n(f, T0 + PEER_ROUTE_STALLED_NS + PEER_ROUTE_DETOUR_NS, 3));
	assert_int_equal(by_inbox(f, 8), 3);
	munmap(lock, 4096);
}

/* Before a queue pair ends, also frames that wait already. */
static void test_frames_in_a_hurry_do_not_wait_for_an_inbox(void **state)
{
	struct fixture *f = *state;

	fill_up(f, 0);
	assert_false(send_n(f, T0, 2));
	tx_hurry(&f->tx, true);
	assert_true(tx_flush(&f->tx, T0 + 1));
	assert_int_equal(by_switch(f), 2);
	assert_true(send_n(f, T0 + 2, 1));
	assert_int_equal(by_switch(f), 1);
	tx_hurry(&f->tx, false);
	assert_false(send_n(f, T0 + 3, 1));
	assert_int_equal(counted(f, VNIC_BYPASS_FULL), 3);
	assert_int_equal(counted(f, VNIC_BYPASS_BUSY), 0);
}

static void test_frames_in_a_hurry_do_not_wait_for_a_lock(void **state)
{
	struct fixture *f = *state;
	uint32_t *lock = hold_lock(f);

	assert_false(send_n(f, T0, 2));
	tx_hurry(&f->tx, true);
	assert_true(tx_flush(&f->tx, T0 + 1));
	assert_true(send_n(f, T0 + 2, 1));
	assert_int_equal(by_switch(f), 3);
	assert_int_equal(counted(f, VNIC_BYPASS_BUSY), 3);
	assert_int_equal(counted(f, VNIC_BYPASS_FULL), 0);
	munmap(lock, 4096);
}

/* The switch carries no references: such a frame waits again after the hurry. */
static void test_reference_in_a_hurry_is_not_lost(void **state)
{
	struct fixture *f = *state;
	struct urxe_frame frames[3];

	fill_up(f, 0);
	assert_int_equal(tx_reserve(&f->tx, T0, frames, 3), 3);
	for (uint32_t i = 0; i < 3; i++)
		make(f, &frames[i], our_mac, PEER);
	frames[1].reference.length = 9000;
	assert_false(tx_send(&f->tx, T0, frames, 3));
	tx_hurry(&f->tx, true);
	assert_true(tx_flush(&f->tx, T0 + 1));
	assert_true(send_n(f, T0 + 1, 1));
	assert_int_equal(by_switch(f), 3);
	tx_hurry(&f->tx, false);
	assert_int_not_equal(tx_deadline(&f->tx), URXE_NEVER);
	assert_false(tx_flush(&f->tx, T0 + 2));
	for (uint32_t i = 0; i < VNIC_INBOX_FRAMES; i++)
		assert_int_equal(by_inbox(f, 1), 1);
	assert_true(tx_flush(&f->tx, T0 + 3));
	assert_int_equal(by_inbox(f, 1), 1);
	assert_int_equal(counted(f, VNIC_BYPASS_LOST), 0);
	assert_true(send_n(f, T0 + 4, 1));
	assert_int_equal(by_inbox(f, 1), 1);
}

static bool is_last_frame(struct fixture *f, const uint8_t *data, uint32_t len)
{
	struct vnic_tx_frame last;

	return vnic_device_last_frame(f->loop->device, &last) && last.len == len &&
	       !memcmp(last.data, data, len);
}

/* If the process ends before its ACK leaves, the daemon sends it. */
static void test_daemon_has_a_copy_of_an_ack_that_waits(void **state)
{
	struct fixture *f = *state;
	struct urxe_frame frames[2];
	struct vnic_tx_frame last;
	uint8_t ack[CRAFT_MAX];
	uint32_t len = craft(ack, our_mac);

	fill_up(f, 0);
	assert_int_equal(tx_reserve(&f->tx, T0, frames, 2), 2);
	make(f, &frames[0], our_mac, PEER);
	memcpy(frames[1].data, ack, len - URXE_ICRC_LEN);
	frames[1].len = len;
	frames[1].dest_qpn = PEER;
	frames[1].acknowledges = true;
	assert_false(tx_send(&f->tx, T0, frames, 2));
	assert_true(is_last_frame(f, ack, len));
	assert_int_equal(by_inbox(f, 1), 1);
	assert_false(tx_flush(&f->tx, T0 + TX_RETRY_NS));
	assert_true(is_last_frame(f, ack, len));
	assert_int_equal(by_inbox(f, 1), 1);
	assert_true(tx_flush(&f->tx, T0 + 2 * TX_RETRY_NS));
	assert_false(vnic_device_last_frame(f->loop->device, &last));
}

static void test_closed_inbox_falls_back_to_the_switch(void **state)
{
	struct fixture *f = *state;

	assert_true(tx_has_inbox(&f->tx, our_mac, PEER));
	assert_true(send_n(f, T0, 1));
	vnic_inbox_destroy(f->inbox);
	f->inbox = NULL;
	assert_false(tx_has_inbox(&f->tx, our_mac, PEER));
	assert_true(send_n(f, T0, 3));
	assert_int_equal(by_switch(f), 3);
	assert_int_equal(counted(f, VNIC_BYPASS_CLOSED), 1);
	assert_false(tx_has_inbox(&f->tx, our_mac, PEER));
	/* Its successor. */
	assert_int_equal(vnic_inbox_create(MTU, &f->inbox), 0);
	meet(f);
	assert_true(send_n(f, T0, 3));
	assert_int_equal(by_inbox(f, 8), 3);
}

static void test_capture_forbids_inboxes(void **state)
{
	struct fixture *f = *state;

	allow(f->loop, false);
	assert_true(send_n(f, T0, 2));
	assert_int_equal(by_switch(f), 2);
	assert_int_equal(counted(f, VNIC_BYPASS_OFF), 2);
	allow(f->loop, true);
	assert_true(send_n(f, T0, 2));
	assert_int_equal(by_inbox(f, 8), 2);
}

/*
 * The daemon was restarted: frames that waited are lost, as on a network; inboxes and counters
 * stay.
 */
static void test_new_nic_drops_waiting_frames(void **state)
{
	struct fixture *f = *state;
	struct vnic_loop *old = f->loop;

	fill_up(f, 0);
	assert_false(send_n(f, T0, 2));
	assert_int_equal(vnic_loop_open(MTU, &f->loop), 0);
	allow(f->loop, true);
	tx_set_nic(&f->tx, f->loop->driver);
	vnic_loop_close(old);
	assert_int_equal(tx_deadline(&f->tx), URXE_NEVER);
	assert_int_equal(counted(f, VNIC_BYPASS_SENT), VNIC_INBOX_FRAMES);
	assert_int_equal(by_inbox(f, 2), 2);
	assert_true(send_n(f, T0, 2));
	assert_int_equal(by_switch(f), 0);
	assert_int_equal(counted(f, VNIC_BYPASS_SENT), VNIC_INBOX_FRAMES + 2);
}

/* Sends until the NIC has no buffer. */
static void fill_switch(struct fixture *f, uint64_t now)
{
	struct urxe_frame frame;

	while (tx_reserve(&f->tx, now, &frame, 1)) {
		memset(frame.data, 0, LEN);
		memcpy(frame.data, other_mac, 6);
		frame.len = LEN;
		frame.dest_qpn = PEER;
		assert_true(tx_send(&f->tx, now, &frame, 1));
	}
}

/* While the switch stalls, frames to an inbox are still sent. */
static void test_stalled_switch_does_not_stop_inboxes(void **state)
{
	const uint8_t *const macs[] = {our_mac, other_mac, our_mac, our_mac};
	const uint32_t qpns[] = {PEER, PEER, FAR, PEER};
	struct urxe_frame frames[TX_BURST];
	struct fixture *f = *state;
	uint64_t now = T0 + TX_SWITCH_FULL_NS;

	fill_switch(f, T0);
	assert_int_equal(tx_reserve(&f->tx, now - 1, frames, 4), 0);
	assert_true(send_to(f, now, macs, qpns, 4));
	assert_int_equal(by_inbox(f, 8), 2);
	assert_memory_equal(f->seen, ((uint8_t[]){0, 3}), 2);
	assert_int_equal(counted(f, VNIC_BYPASS_LOST), 2);
	/* It wakes up. */
	while (by_switch(f))
		;
	assert_true(send_to(f, now, macs, qpns, 4));
	assert_int_equal(by_switch(f), 2);
	assert_int_equal(counted(f, VNIC_BYPASS_LOST), 2);
	/* The limit is 100 ms again. */
	fill_switch(f, now);
	assert_int_equal(tx_reserve(&f->tx, now + TX_SWITCH_FULL_NS - 1, frames, 4), 0);
}

/* Whichever way a frame comes to the switch, its ICRC is right there. */
static void test_frames_by_the_switch_have_an_icrc(void **state)
{
	struct fixture *f = *state;
	uint64_t now = T0 + PEER_ROUTE_STALLED_NS;

	/* To another user's process, and to another host. */
	assert_true(send_crafted(f, T0, our_mac, FAR));
	expect_crafted_by_switch(f, our_mac, 1);
	assert_true(send_crafted(f, T0, other_mac, FAR));
	expect_crafted_by_switch(f, other_mac, 1);
	/* While a capture runs. */
	allow(f->loop, false);
	assert_true(send_crafted(f, T0, our_mac, PEER));
	expect_crafted_by_switch(f, our_mac, 1);
	allow(f->loop, true);
	/* Written to the inbox of a stream, but for another receiver. */
	assert_true(send_n(f, T0, 1));
	assert_true(send_n(f, T0, 1));
	assert_non_null(f->tx.stream);
	assert_true(send_crafted(f, T0, our_mac, FAR));
	expect_crafted_by_switch(f, our_mac, 1);
	/* After the receiver has stalled. */
	fill_up(f, 2);
	assert_false(send_crafted(f, T0, our_mac, PEER));
	assert_true(tx_flush(&f->tx, now));
	expect_crafted_by_switch(f, our_mac, 1);
}

static void test_frames_in_an_inbox_have_no_icrc(void **state)
{
	struct vnic_frame received;
	struct fixture *f = *state;
	struct urxe_frame frame;
	uint8_t data[CRAFT_MAX];
	uint32_t len = craft(data, our_mac);

	/* By the NIC's buffers, and straight into the inbox. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f->tx.stream != NULL, i == 2);
		assert_true(send_crafted(f, T0, our_mac, PEER));
		assert_int_equal(vnic_inbox_rx(f->inbox, &received, 1), 1);
		assert_int_equal(received.len, len - URXE_ICRC_LEN);
		assert_memory_equal(received.data, data, received.len);
		assert_true(tx_convert_received(&f->tx, &received, true, &frame));
		assert_int_equal(frame.len, len);
		assert_true(frame.without_icrc);
		vnic_inbox_rx_release(f->inbox, 1);
	}
	/* The ICRC of a frame from the switch is checked, whatever MAC address it names. */
	received = (struct vnic_frame){.data = data, .len = len};
	assert_true(tx_convert_received(&f->tx, &received, false, &frame));
	assert_int_equal(frame.len, len);
	assert_false(frame.without_icrc);
}

static void expect_crafted_by_inbox(struct fixture *f)
{
	struct vnic_frame received;
	uint8_t data[CRAFT_MAX];
	uint32_t len = craft(data, other_mac);

	assert_int_equal(vnic_inbox_rx(f->inbox, &received, 1), 1);
	assert_int_equal(received.len, len - URXE_ICRC_LEN);
	assert_memory_equal(received.data, data, received.len);
	vnic_inbox_rx_release(f->inbox, 1);
}

/* By the NIC's buffers, straight into the inbox, and by the switch, where the ICRC is right. */
static void test_frames_to_a_machine_get_an_icrc_by_the_switch(void **state)
{
	struct fixture *f = *state;
	uint64_t now = T0 + PEER_ROUTE_STALLED_NS;

	meet_machine(f);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f->tx.stream != NULL, i == 2);
		assert_true(send_crafted(f, T0, other_mac, PEER));
		expect_crafted_by_inbox(f);
	}
	/* The same QPN of the host, and another process of the machine's MAC. */
	assert_true(send_crafted(f, T0, our_mac, PEER));
	expect_crafted_by_switch(f, our_mac, 1);
	assert_true(send_crafted(f, T0, other_mac, FAR));
	expect_crafted_by_switch(f, other_mac, 1);
	allow(f->loop, false);
	assert_true(send_crafted(f, T0, other_mac, PEER));
	expect_crafted_by_switch(f, other_mac, 1);
	allow(f->loop, true);
	for (int i = 0; i < VNIC_INBOX_FRAMES; i++)
		send_crafted(f, T0, other_mac, PEER);
	assert_false(send_crafted(f, T0, other_mac, PEER));
	assert_true(tx_flush(&f->tx, now));
	expect_crafted_by_switch(f, other_mac, 1);
}

/* Frames wait for a machine's inbox, which ends meanwhile: they go by the switch as they were. */
static void test_frames_to_an_ended_machine_take_the_switch(void **state)
{
	struct fixture *f = *state;

	meet_machine(f);
	for (int i = 0; i < VNIC_INBOX_FRAMES; i++)
		send_crafted(f, T0, other_mac, PEER);
	assert_false(send_crafted(f, T0, other_mac, PEER));
	vnic_inbox_destroy(f->inbox);
	f->inbox = NULL;
	assert_true(tx_flush(&f->tx, T0 + TX_RETRY_NS));
	expect_crafted_by_switch(f, other_mac, 1);
	assert_int_equal(counted(f, VNIC_BYPASS_CLOSED), 1);
}

/* The application chooses the destination QPN, with all 32 bits. */
static void test_any_destination_qpn_is_accepted(void **state)
{
	struct fixture *f = *state;
	int fds[VNIC_INBOX_FDS];

	assert_false(tx_has_inbox(&f->tx, our_mac, UINT32_MAX));
	dup_fds(f->inbox, fds);
	assert_int_equal(tx_add_inbox(&f->tx, our_mac, UINT32_MAX, false, fds), 0);
	assert_true(tx_has_inbox(&f->tx, our_mac, UINT32_MAX));
	/* A descriptor that is not an inbox's is refused. */
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(tx_add_inbox(&f->tx, our_mac, FAR, false, fds), -EPERM);
	assert_false(tx_has_inbox(&f->tx, our_mac, FAR));
}

/* --- Numbers that an HCA has chosen. */

static void add_second(struct fixture *f, struct vnic_inbox *inbox, bool of_hca)
{
	int fds[VNIC_INBOX_FDS];

	dup_fds(inbox, fds);
	assert_int_equal(tx_add_inbox(&f->tx, our_mac, CHOSEN, of_hca, fds), 0);
}

static void expect_received(struct fixture *f, struct vnic_inbox *inbox)
{
	const uint8_t *const macs[] = {our_mac};
	const uint32_t qpns[] = {CHOSEN};
	struct vnic_frame frame;

	assert_true(send_to(f, T0, macs, qpns, 1));
	assert_int_equal(vnic_inbox_rx(inbox, &frame, 1), 1);
	vnic_inbox_rx_release(inbox, 1);
}

/* A process destroys a queue pair, and the HCA gives its number to another process. */
static void test_chosen_number_passes_to_another_process(void **state)
{
	const uint8_t *const macs[] = {our_mac};
	const uint32_t qpns[] = {CHOSEN};
	struct fixture *f = *state;
	struct vnic_inbox *second;

	assert_int_equal(vnic_inbox_create(MTU, &second), 0);
	((struct published *)vnic_inbox_published(f->inbox))->process = VNIC_BLOCK(PEER);
	((struct published *)vnic_inbox_published(second))->process = VNIC_BLOCK(FAR);
	add_second(f, f->inbox, true);
	expect_received(f, f->inbox);
	/* So the adapter asks the daemon again before it connects a queue pair. */
	assert_false(tx_has_inbox(&f->tx, our_mac, CHOSEN));
	add_second(f, second, true);
	expect_received(f, second);
	/* Without the HCA, too. */
	add_second(f, f->inbox, false);
	expect_received(f, f->inbox);
	assert_true(tx_has_inbox(&f->tx, our_mac, FAR));
	/* The daemon knows the number no more. */
	tx_forget_qpn(&f->tx, CHOSEN);
	assert_true(send_to(f, T0, macs, qpns, 1));
	assert_int_equal(by_switch(f), 1);
	vnic_inbox_destroy(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_frames_go_by_inbox_or_switch_per_destination,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames_wait_behind_a_full_inbox, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_stalled_inbox_falls_back_to_the_switch, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_stalled_inbox_delays_once_only, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_time_that_goes_back_stalls_no_inbox, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_locked_inbox_lets_frames_wait, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frames_in_a_hurry_do_not_wait_for_an_inbox,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames_in_a_hurry_do_not_wait_for_a_lock,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_reference_in_a_hurry_is_not_lost, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_daemon_has_a_copy_of_an_ack_that_waits, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_closed_inbox_falls_back_to_the_switch, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_capture_forbids_inboxes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_new_nic_drops_waiting_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stalled_switch_does_not_stop_inboxes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frames_by_the_switch_have_an_icrc, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frames_in_an_inbox_have_no_icrc, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_frames_to_a_machine_get_an_icrc_by_the_switch,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames_to_an_ended_machine_take_the_switch,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_any_destination_qpn_is_accepted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_chosen_number_passes_to_another_process, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
