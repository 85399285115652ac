/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The transmit path: frames that go to an inbox, frames that go to the switch, frames that wait,
 * and how long they wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vnic/regs.h>

#include "adapter/adapter.h"
#include "craft.h"
#include "engine/crc.h"
#include "engine/tx.h"
#include "samehost/published.h"
#include "vnic_loop.h"

#define MTU    1500
#define LEN    100
#define LONG   1200 /* length of a stream's frames */
#define T0     1000000000ull
#define OURS   0x1000u   /* QPNs: ours, */
#define MORE   0x9000u   /* of our second block, */
#define PEER   0x5000u   /* QPN of a process with a known inbox */
#define FAR    0x7000u   /* QPN of a process without */
#define MANY   0xffffffu /* the multicast QPN */
#define CHOSEN 0xabcdefu /* a QPN that an HCA has chosen */

static struct packet_group *no_uplink;

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t group_mac[6] = {1, 0, 0x5e, 0, 0, 1};

struct fixture {
	struct vnic_loop *loop;
	struct vnic_inbox *inbox;
	struct tx tx;
	uint32_t len;    /* of frames */
	uint8_t next;    /* first byte of the next frame's payload */
	uint8_t seen[8]; /* first bytes of the payloads that arrived */
};

static void allow(struct vnic_loop *loop, bool on)
{
	*(uint32_t *)((uint8_t *)loop->bars + VNIC_REG_BYPASS) = on;
}

static void dup_fds(const struct vnic_inbox *inbox, int fds[VNIC_INBOX_FDS])
{
	vnic_inbox_fds(inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
}

static void meet(struct fixture *f)
{
	int fds[VNIC_INBOX_FDS];

	dup_fds(f->inbox, fds);
	assert_int_equal(tx_add_inbox(&f->tx, our_mac, PEER + 7, false, fds), 0);
}

static int setup(void **state)
{
	struct vnic_attach_welcome who = {.mtu = MTU, .qpn_first = OURS};
	static struct fixture f;

	f = (struct fixture){.len = LEN};
	memcpy(who.mac, our_mac, 6);
	assert_int_equal(crc_load(), 0);
	assert_int_equal(vnic_loop_open(MTU, &f.loop), 0);
	allow(f.loop, true);
	assert_int_equal(vnic_inbox_create(MTU, &f.inbox), 0);
	adapter_init_peers();
	assert_int_equal(tx_init(&f.tx, f.loop->driver, &no_uplink, &adapter_peers, &who), 0);
	meet(&f);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tx_destroy(&f->tx);
	vnic_inbox_destroy(f->inbox);
	vnic_loop_close(f->loop);
	return 0;
}

static void make(struct fixture *f, struct urxe_frame *frame, const uint8_t mac[6], uint32_t qpn)
{
	assert_true(frame->room >= f->len);
	memset(frame->data, f->next++, f->len);
	memcpy(frame->data, mac, 6);
	frame->len = f->len;
	frame->dest_qpn = qpn;
}

/* Sends a frame to each of n destinations, together. */
static bool send_to(struct fixture *f, uint64_t now, const uint8_t *const *macs,
		    const uint32_t *qpns, uint32_t n)
{
	struct urxe_frame frames[TX_BURST];

	assert_int_equal(tx_reserve(&f->tx, now, frames, n), n);
	for (uint32_t i = 0; i < n; i++)
		make(f, &frames[i], macs[i], qpns[i]);
	return tx_send(&f->tx, now, frames, n);
}

/* Sends n frames to the peer. */
static bool send_n(struct fixture *f, uint64_t now, uint32_t n)
{
	const uint8_t *macs[TX_BURST];
	uint32_t qpns[TX_BURST];

	for (uint32_t i = 0; i < n; i++) {
		macs[i] = our_mac;
		qpns[i] = PEER;
	}
	return send_to(f, now, macs, qpns, n);
}

static uint32_t by_inbox(struct fixture *f, uint32_t max)
{
	struct vnic_frame frames[8];
	uint32_t n = vnic_inbox_rx(f->inbox, frames, max);

	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(frames[i].len, f->len - URXE_ICRC_LEN);
		f->seen[i] = frames[i].data[f->len - URXE_ICRC_LEN - 1];
	}
	vnic_inbox_rx_release(f->inbox, n);
	return n;
}

static uint32_t by_switch(struct fixture *f)
{
	struct vnic_tx_frame frames[8];
	uint32_t n = vnic_device_tx(f->loop->device, 0, frames, 8);

	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(frames[i].len, f->len);
		f->seen[i] = frames[i].data[f->len - 1];
	}
	vnic_device_tx_done(f->loop->device, 0, n);
	return n;
}

static uint64_t counted(const struct fixture *f, enum vnic_bypass_counter counter)
{
	return f->tx.counters[counter];
}

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
	uint64_t now = T0 + TX_INBOX_STALLED_NS;

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
	assert_true(send_n(f, now + TX_DETOUR_NS - 1, 1));
	assert_int_equal(by_switch(f), 1);
	assert_true(send_n(f, now + TX_DETOUR_NS, 1));
	assert_int_equal(by_switch(f), 0);
	assert_int_equal(counted(f, VNIC_BYPASS_FULL), 3);
	/* The inbox took one frame: the time limit starts again. */
	now += TX_DETOUR_NS;
	assert_false(send_n(f, now, 8));
	assert_int_equal(tx_deadline(&f->tx), now + TX_RETRY_NS);
}

/* A receiver that has exceeded the limit once, and still has no room, delays no further frame. */
static void test_stalled_inbox_delays_once_only(void **state)
{
	struct fixture *f = *state;
	uint64_t now = T0 + TX_INBOX_STALLED_NS;

	fill_up(f, 0);
	assert_false(send_n(f, T0, 1));
	assert_true(tx_flush(&f->tx, now));
	assert_true(send_n(f, now + TX_DETOUR_NS, 1));
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
	assert_true(tx_flush(&f->tx, T0 - 1 + TX_INBOX_STALLED_NS));
}

static void test_locked_inbox_lets_frames_wait(void **state)
{
	struct fixture *f = *state;
	int fds[VNIC_INBOX_FDS];
	uint32_t *lock;

	/* The lock is the first word; the test holds it. */
	vnic_inbox_fds(f->inbox, fds);
	lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[VNIC_INBOX_MEMORY], 0);
	assert_ptr_not_equal(lock, MAP_FAILED);
	*lock = 9;
	assert_false(send_n(f, T0, 3));
	assert_false(tx_flush(&f->tx, T0 + TX_INBOX_STALLED_NS - 1));
	assert_true(tx_flush(&f->tx, T0 + TX_INBOX_STALLED_NS));
	assert_int_equal(by_switch(f), 3);
	assert_int_equal(counted(f, VNIC_BYPASS_BUSY), 3);
	*lock = 0;
	assert_true(send_n(f, T0 + TX_INBOX_STALLED_NS + TX_DETOUR_NS, 3));
	assert_int_equal(by_inbox(f, 8), 3);
	munmap(lock, 4096);
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
	assert_int_equal(frames[0].reference.process, 0);
	assert_int_equal(frames[1].len, f->len - URXE_ICRC_LEN);
	assert_int_equal(frames[1].reference.process, src_qpn >> 12);
	assert_int_equal(frames[1].reference.address, 0x123456789a);
	assert_int_equal(frames[1].reference.length, 65536);
	assert_int_equal(frames[1].reference.packets, 16);
	assert_int_equal(frames[1].reference.generation, 3);
	vnic_inbox_rx_release(f->inbox, 2);
	/* The receiver accepts references of its own peers only. */
	assert_false(tx_convert_received(&f->tx, &frames[1], true, &frame));
	frames[1].reference.process = PEER >> 12;
	assert_true(tx_convert_received(&f->tx, &frames[1], true, &frame));
	assert_int_equal(frame.reference.address, 0x123456789a);
	assert_int_equal(frame.reference.packets, 16);
	assert_ptr_equal(frame.reference.sender, tx_peer(&f->tx, our_mac, PEER));
	frames[1].reference.process = UINT32_MAX;
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

/* --- The ICRC: frames for processes of this host come without it. */

/* A SEND with a right ICRC. */
static uint32_t craft(uint8_t frame[CRAFT_MAX], const uint8_t mac[6])
{
	static const uint8_t payload[13] = {1, 2, 3};
	struct urxe_packet p = {
		.net = URXE_NET_IPV4,
		.sgid = craft_gid(URXE_NET_IPV4, 1),
		.dgid = craft_gid(URXE_NET_IPV4, 2),
		.opcode = 4,
		.dest_qpn = FAR,
		.payload = payload,
		.payload_len = sizeof(payload),
		.pad = 3,
	};

	memcpy(p.dmac, mac, 6);
	return craft_frame(frame, &p);
}

/* Sends the crafted frame with wrong bytes in place of its ICRC, if the frame stays on this host.
 */
static bool send_crafted(struct fixture *f, uint64_t now, const uint8_t mac[6], uint32_t qpn)
{
	struct urxe_frame frame;
	uint8_t data[CRAFT_MAX];
	uint32_t len = craft(data, mac);

	assert_int_equal(tx_reserve(&f->tx, now, &frame, 1), 1);
	memcpy(frame.data, data, len);
	if (mac == our_mac)
		memset((uint8_t *)frame.data + len - URXE_ICRC_LEN, 0x5a, URXE_ICRC_LEN);
	frame.len = len;
	frame.dest_qpn = qpn;
	return tx_send(&f->tx, now, &frame, 1);
}

/* The switch got n frames that are what was crafted, with the right ICRC. */
static void expect_crafted_by_switch(struct fixture *f, const uint8_t mac[6], uint32_t n)
{
	struct vnic_tx_frame frames[8];
	uint8_t data[CRAFT_MAX];
	uint32_t len = craft(data, mac);

	assert_int_equal(vnic_device_tx(f->loop->device, 0, frames, 8), n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(frames[i].len, len);
		assert_memory_equal(frames[i].data, data, len);
	}
	vnic_device_tx_done(f->loop->device, 0, n);
}

/* Whichever way a frame comes to the switch, its ICRC is right there. */
static void test_frames_by_the_switch_have_an_icrc(void **state)
{
	struct fixture *f = *state;
	uint64_t now = T0 + TX_INBOX_STALLED_NS;

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

/* --- Virtual machines, whose frames have another MAC. */

/* The inbox is that of a machine's device process. */
static void meet_machine(struct fixture *f)
{
	int fds[VNIC_INBOX_FDS];

	dup_fds(f->inbox, fds);
	assert_int_equal(tx_add_inbox(&f->tx, other_mac, PEER, false, fds), 0);
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
	uint64_t now = T0 + TX_INBOX_STALLED_NS;

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
	frames[1].reference.process = PEER >> 12;
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
		cmocka_unit_test_setup_teardown(test_frame_by_the_switch_contains_its_payload,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames_to_a_machine_get_an_icrc_by_the_switch,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames_to_an_ended_machine_take_the_switch,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_pieces_arrive_with_their_reference, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_any_destination_qpn_is_accepted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_chosen_number_passes_to_another_process, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
