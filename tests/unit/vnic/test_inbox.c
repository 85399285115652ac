/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The inbox: order, laps, a full ring, and the traces of dead, stopped and hostile senders. */
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
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vnic/regs.h>

#include "inbox.h"
#include "populate.h"
#include "vnic_loop.h"

/*
 * How many instructions of a sender's call the tests try: all, unless forks are slow and
 * instructions many.
 */
#ifdef __SANITIZE_ADDRESS__
#define STEPS 40
#else
#define STEPS 500
#endif

static void test_frames_keep_their_order(void **state)
{
	struct fixture *f = *state;

	/* A burst size that does not divide a lap: every burst ends at another position. */
	for (uint32_t i = 0; i < 5 * VNIC_INBOX_FRAMES; i++) {
		send_all(f, i % 3 ? f->first : f->second, 29);
		assert_int_equal(receive(f), 29);
	}
	assert_int_equal(vnic_inbox_broker_holder(f->broker), 0);
}

static void test_full_inbox_refuses_frames(void **state)
{
	struct fixture *f = *state;
	enum vnic_outbox_status status;
	struct vnic_frame frame;

	for (uint32_t lap = 0; lap < 4; lap++) {
		uint32_t sent = send_from(f, f->first, VNIC_INBOX_FRAMES + 1, &status);

		assert_in_range(sent, VNIC_INBOX_FRAMES - KEPT_BACK, VNIC_INBOX_FRAMES);
		assert_int_equal(status, VNIC_OUTBOX_FULL);
		assert_int_equal(send_from(f, f->second, 1, &status), 0);
		assert_int_equal(status, VNIC_OUTBOX_FULL);
		/* A frame that the receiver holds keeps its buffer. */
		assert_int_equal(vnic_inbox_rx(f->inbox, &frame, 1), 1);
		assert_int_equal(send_from(f, f->second, 1, &status), 0);
		check_frame(&frame, f->due++);
		vnic_inbox_rx_release(f->inbox, 1);
		send_all(f, f->second, 1);
		assert_int_equal(receive(f), sent);
	}
}

/* Sets both ends to the position, as if so many frames had been sent and received. */
static void set_position(struct fixture *f, uint32_t position)
{
	const uint32_t room = position + VNIC_INBOX_FRAMES;

	/* The position is in the second word, and in the word of the third cache line. */
	memcpy(f->memory + 4, &position, sizeof(position));
	memcpy(f->memory + 128, &room, sizeof(room));
}

/*
 * Also for a sender that has not looked since: its last known position is more than half of the
 * number space behind.
 */
static void test_long_idle_sender_sees_a_full_inbox(void **state)
{
	for (uint32_t quarter = 1; quarter <= 4; quarter++) {
		struct fixture *f = *state;
		enum vnic_outbox_status status;

		set_position(f, quarter * (UINT32_C(1) << 30) - 2 * VNIC_INBOX_FRAMES);
		assert_int_equal(send_from(f, f->first, VNIC_INBOX_FRAMES + 1, &status),
				 VNIC_INBOX_FRAMES);
		assert_int_equal(status, VNIC_OUTBOX_FULL);
		renew(state);
	}
}

/*
 * From the reservation on the sender holds the lock; other senders overwrite frames that were not
 * committed.
 */
static void test_reservation_holds_the_lock(void **state)
{
	struct fixture *f = *state;
	struct vnic_frame frames[3], more;
	enum vnic_outbox_status status;

	assert_int_equal(vnic_outbox_reserve(f->first, frames, 3), 3);
	assert_int_equal(vnic_inbox_broker_holder(f->broker), FIRST);
	assert_int_equal(vnic_outbox_reserve(f->second, &more, 1), 0);
	assert_int_equal(send_from(f, f->second, 1, &status), 0);
	assert_int_equal(status, VNIC_OUTBOX_BUSY);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(frames[i].room, VNIC_FRAME_MAX(MTU));
		memset(frames[i].data, i ? 99 : f->next, LEN);
		frames[i].len = LEN;
	}
	assert_int_equal(receive(f), 0);
	vnic_outbox_commit(f->first, frames, 1);
	f->next++;
	assert_int_equal(vnic_inbox_broker_holder(f->broker), 0);
	send_all(f, f->second, 2);
	assert_int_equal(receive(f), 3);
	/* A sender may commit no frame at all. */
	assert_int_equal(vnic_outbox_reserve(f->second, frames, 3), 3);
	vnic_outbox_commit(f->second, frames, 0);
	send_all(f, f->first, 1);
	assert_int_equal(receive(f), 1);
	assert_false(vnic_inbox_irq_unmask(f->inbox));
	assert_int_equal(vnic_outbox_reserve(f->second, frames, 3), 3);
	vnic_outbox_commit(f->second, frames, 0);
	assert_false(interrupted(f));
}

/* A closed inbox gives no buffers; an inbox that closes after the reservation delivers nothing. */
static void test_closed_inbox_delivers_no_reserved_frame(void **state)
{
	struct fixture *f = *state;
	struct vnic_frame frames[2];

	assert_int_equal(vnic_outbox_reserve(f->first, frames, 2), 2);
	vnic_inbox_broker_revoke(f->broker);
	frames[0].len = LEN;
	vnic_outbox_commit(f->first, frames, 1);
	assert_true(vnic_outbox_closed(f->first));
	assert_int_equal(vnic_outbox_reserve(f->first, frames, 2), 0);
}

/* Before it sleeps, the receiver posts the buffers that it holds back between single frames. */
static void test_held_buffers_are_posted_before_sleep(void **state)
{
	struct fixture *f = *state;
	enum vnic_outbox_status status;

	for (uint32_t i = 0; i < 3 * VNIC_INBOX_FRAMES + KEPT_BACK; i++) {
		send_all(f, f->first, 1);
		assert_int_equal(receive(f), 1);
	}
	assert_false(vnic_inbox_irq_unmask(f->inbox));
	assert_int_equal(send_from(f, f->first, VNIC_INBOX_FRAMES + 1, &status), VNIC_INBOX_FRAMES);
	assert_int_equal(receive(f), VNIC_INBOX_FRAMES);
}

static void test_locked_inbox_is_busy(void **state)
{
	struct fixture *f = *state;
	enum vnic_outbox_status status;

	/* The lock is the memory's first word. */
	f->memory[0] = FIRST;
	assert_int_equal(vnic_inbox_broker_holder(f->broker), FIRST);
	assert_int_equal(send_from(f, f->second, 1, &status), 0);
	assert_int_equal(status, VNIC_OUTBOX_BUSY);
	/* The death of another process does not release the lock. */
	vnic_inbox_broker_unlock(f->broker, SECOND);
	assert_int_equal(send_from(f, f->second, 1, &status), 0);
	vnic_inbox_broker_unlock(f->broker, FIRST);
	send_all(f, f->second, 1);
	assert_int_equal(receive(f), 1);
}

static void check_closed(struct fixture *f)
{
	enum vnic_outbox_status status;

	assert_true(vnic_outbox_closed(f->first));
	assert_int_equal(vnic_inbox_broker_holder(f->broker), 0);
	vnic_inbox_broker_unlock(f->broker, FIRST);
	assert_int_equal(send_from(f, f->first, 1, &status), 0);
	assert_int_equal(status, VNIC_OUTBOX_CLOSED);
	assert_int_equal(send_from(f, f->second, 1, &status), 0);
	assert_int_equal(status, VNIC_OUTBOX_CLOSED);
}

static void test_receiver_closes_the_inbox(void **state)
{
	struct fixture *f = *state;

	send_all(f, f->first, 1);
	assert_false(vnic_outbox_closed(f->first));
	vnic_inbox_destroy(f->inbox);
	f->inbox = NULL;
	check_closed(f);
}

static void test_daemon_closes_the_inbox(void **state)
{
	struct fixture *f = *state;

	vnic_inbox_broker_revoke(f->broker);
	check_closed(f);
	assert_int_equal(receive(f), 0);
}

/* In a forked child the inbox still belongs to the parent. */
static void test_forked_child_abandons_the_inbox(void **state)
{
	struct fixture *f = *state;
	struct vnic_inbox *inbox;
	struct vnic_outbox *outbox;
	enum vnic_outbox_status status;

	assert_int_equal(vnic_inbox_create(MTU, &inbox), 0);
	outbox = open_outbox(inbox, FIRST);
	vnic_inbox_abandon(inbox);
	assert_int_equal(send_from(f, outbox, 1, &status), 1);
	assert_int_equal(status, VNIC_OUTBOX_OK);
	vnic_outbox_close(outbox);
}

/* --- A sender that stops after a given number of instructions. */

/* A call by address: the dynamic linker adds no instructions to _exit. */
static void (*const volatile end)(int) = _exit;

/* The forked child: stops, sends one frame, and reports by its status that the call returned. */
static void traced_sender(const struct fixture *f)
{
	uint8_t data[LEN];
	const struct vnic_frame frame = {.data = data, .len = LEN};
	enum vnic_outbox_status status;

	memset(data, f->next, LEN);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(2);
	raise(SIGSTOP);
	end(send_frames(f, f->first, &frame, 1, &status) != 1);
}

/* A sender that has executed so many instructions of its call; 0 = it has ended before. */
static pid_t start_sender(struct fixture *f, uint32_t steps)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		traced_sender(f);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		skip(); /* this environment forbids ptrace */
	while (steps-- && !WIFEXITED(status)) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	if (!WIFEXITED(status))
		return pid;
	assert_int_equal(WEXITSTATUS(status), 0);
	return 0;
}

/* A larger step for a call with many instructions, so that the test ends in time in every build. */
static uint32_t step_size(struct fixture *f)
{
	uint32_t steps = 0;
	int status;
	pid_t pid;

	/* One call here first, so that the dynamic linker has resolved the function. */
	vnic_inbox_irq_unmask(f->inbox);
	send_all(f, f->first, 1);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 1);
	vnic_inbox_irq_unmask(f->inbox);
	pid = start_sender(f, 0);

	do {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		steps++;
	} while (!WIFEXITED(status));
	f->next++; /* the child counted this frame in its own memory */
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 1);
	vnic_inbox_irq_unmask(f->inbox);
	return steps / STEPS + 1;
}

/* Receives `count` frames of the second sender, and the first sender's frame at most once. */
static bool receive_both(struct fixture *f, uint32_t count, uint8_t stray)
{
	struct vnic_frame frames[5];
	uint32_t n = vnic_inbox_rx(f->inbox, frames, 5), ours = 0, strays = 0;

	assert_false(vnic_inbox_broken(f->inbox));
	for (uint32_t i = 0; i < n; i++) {
		if (frames[i].data[0] == stray) {
			check_frame(&frames[i], stray);
			strays++;
		} else {
			check_frame(&frames[i], f->due++);
			ours++;
		}
	}
	assert_int_equal(ours, count);
	assert_in_range(strays, 0, 1);
	vnic_inbox_rx_release(f->inbox, n);
	return strays;
}

/* The child's frame has a number far from the second sender's numbers. */
static pid_t start_stray(struct fixture *f, uint32_t steps, uint8_t *stray)
{
	uint8_t next = f->next;
	pid_t pid;

	*stray = f->next = (uint8_t)(next + 128);
	pid = start_sender(f, steps);
	f->next = next;
	return pid;
}

/*
 * Kills a sender after so many instructions, and tells the broker, as the daemon does. True: its
 * call had returned. The sender knows the free room beforehand, since the look for room would take
 * a varying number of instructions.
 */
static bool kill_stray(struct fixture *f, uint32_t steps, uint8_t *stray)
{
	pid_t pid;

	vnic_outbox_close(f->first);
	f->first = open_outbox(f->inbox, FIRST);
	pid = start_stray(f, steps, stray);

	if (pid) {
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	vnic_inbox_broker_unlock(f->broker, FIRST);
	return !pid;
}

/* The killed sender's frame arrives or not, and the receiver looks before the next frame or not. */
static void check_killed(struct fixture *f, bool look_first)
{
	uint32_t size = step_size(f), delivered = 0, steps;
	bool ended = false;
	uint8_t stray;

	for (steps = 0; !ended; steps += size) {
		bool came = false;

		ended = kill_stray(f, steps, &stray);
		if (look_first)
			came = receive_both(f, 0, stray);
		send_all(f, f->second, 3);
		assert_true(interrupted(f));
		came |= receive_both(f, 3, stray);
		/* A single instruction commits the frame. */
		assert_true(came || !delivered);
		delivered += came;
		assert_false(vnic_inbox_irq_unmask(f->inbox));
	}
	assert_in_range(delivered, 2, steps / size - 2);
}

static void test_killed_sender_leaves_a_usable_ring(void **state)
{
	check_killed(*state, false);
}

static void test_frames_around_a_killed_sender_are_received(void **state)
{
	check_killed(*state, true);
}

/* Two senders are killed one after the other, at the same instruction. */
static void test_two_killed_senders_leave_a_usable_ring(void **state)
{
	struct fixture *f = *state;
	uint32_t size = step_size(f);
	bool ended = false;

	for (uint32_t steps = 0; !ended; steps += size) {
		for (uint32_t i = 0; i < 2; i++) {
			uint8_t stray;

			ended = kill_stray(f, steps, &stray);
			receive_both(f, 0, stray);
		}
		send_all(f, f->second, 3);
		assert_true(interrupted(f));
		receive_both(f, 3, f->next);
		assert_false(vnic_inbox_irq_unmask(f->inbox));
	}
}

/*
 * A receiver that has taken all frames and sleeps: it unmasks after an interrupt, and otherwise is
 * unmasked already. The next sender wakes it.
 */
static void check_awake(struct fixture *f)
{
	if (interrupted(f))
		assert_false(vnic_inbox_irq_unmask(f->inbox));
	send_all(f, f->second, 1);
	assert_true(interrupted(f));
	assert_int_equal(receive(f), 1);
}

/* The receiver keeps senders out for a time. A closed inbox stays closed. */
static void test_receiver_holds_the_lock(void **state)
{
	struct fixture *f = *state;
	enum vnic_outbox_status status;

	assert_true(vnic_inbox_lock(f->inbox, SECOND + 1));
	assert_int_equal(send_from(f, f->first, 1, &status), 0);
	assert_int_equal(status, VNIC_OUTBOX_BUSY);
	assert_false(vnic_outbox_closed(f->first));
	vnic_inbox_unlock(f->inbox, SECOND + 1);
	send_all(f, f->first, 1);
	assert_int_equal(receive(f), 1);
	assert_true(vnic_inbox_lock(f->inbox, SECOND + 1));
	vnic_inbox_close(f->inbox);
	vnic_inbox_unlock(f->inbox, SECOND + 1);
	assert_true(vnic_outbox_closed(f->first));
	assert_false(vnic_inbox_lock(f->inbox, SECOND + 1));
}

/*
 * No other sender takes the lock from a stopped holder; other senders continue in the other cases,
 * and the stopped one does so later.
 */
static void test_stopped_sender_keeps_the_lock(void **state)
{
	struct fixture *f = *state;
	uint32_t size = step_size(f), busy = 0, steps;
	enum vnic_outbox_status status;
	uint8_t stray;
	pid_t pid;

	for (steps = 0;; steps += size) {
		bool locked;

		vnic_inbox_irq_unmask(f->inbox);
		pid = start_stray(f, steps, &stray);
		if (!pid)
			break;
		locked = vnic_inbox_broker_holder(f->broker) == FIRST;
		busy += locked;
		if (locked) {
			assert_int_equal(send_from(f, f->second, 3, &status), 0);
			assert_int_equal(status, VNIC_OUTBOX_BUSY);
		} else {
			send_all(f, f->second, 3);
			assert_true(interrupted(f));
			vnic_inbox_irq_unmask(f->inbox);
		}
		assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(vnic_inbox_broker_holder(f->broker), 0);
		if (locked)
			send_all(f, f->second, 3);
		assert_true(receive_both(f, 3, stray));
		check_awake(f);
	}
	assert_in_range(busy, 3, steps / size);
}

/* --- Loans. */

static uint32_t send_reference(struct fixture *f, uint32_t len,
			       const struct vnic_reference *reference)
{
	uint8_t data[LEN];
	struct vnic_frame frame = {.data = data, .len = len, .reference = *reference};
	enum vnic_outbox_status status;

	memset(data, f->next++, len);
	if (!f->in_place)
		return vnic_outbox_send(f->first, &frame, 1, &status);
	if (!vnic_outbox_reserve(f->first, &frame, 1))
		return 0;
	memset(frame.data, data[0], len);
	frame.len = len;
	frame.reference = *reference;
	vnic_outbox_commit(f->first, &frame, 1);
	return 1;
}

static void expect_reference(struct fixture *f, uint32_t len,
			     const struct vnic_reference *reference)
{
	struct vnic_frame frame;

	assert_int_equal(vnic_inbox_rx(f->inbox, &frame, 1), 1);
	assert_int_equal(frame.len, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(frame.data[i], f->due);
	f->due++;
	assert_memory_equal(&frame.reference, reference, sizeof(*reference));
	vnic_inbox_rx_release(f->inbox, 1);
}

/* A payload reference arrives with its own frame and no other. */
static void test_references_arrive_with_their_frame(void **state)
{
	static const struct vnic_reference none;
	const struct vnic_reference all = {UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
					   UINT32_MAX};
	const struct vnic_reference bare = {.length = 1};
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 2 * VNIC_INBOX_FRAMES; i++) {
		const struct vnic_reference some = {i, i + 1, i + 2, i + 3, i + 4};

		assert_int_equal(send_reference(f, LEN - i % LEN, &some), 1);
		assert_int_equal(send_reference(f, LEN, &none), 1);
		assert_int_equal(send_reference(f, i % LEN, &all), 1);
		assert_int_equal(send_reference(f, 0, &bare), 1);
		expect_reference(f, LEN - i % LEN, &some);
		expect_reference(f, LEN, &none);
		expect_reference(f, i % LEN, &all);
		expect_reference(f, 0, &bare);
	}
	assert_false(vnic_inbox_broken(f->inbox));
}

#define PIECE ((uint32_t)sizeof(struct vnic_reference_piece))

/* The pieces of a reference arrive behind their frame. */
static void test_pieces_arrive_behind_their_frame(void **state)
{
	static const uint32_t counts[] = {1, 2, 3};
	struct fixture *f = *state;

	for (uint32_t i = 0; i < VNIC_INBOX_FRAMES + 3; i++) {
		uint8_t data[VNIC_FRAME_MAX(MTU)];
		struct vnic_frame frame = {.data = data, .len = i % 30, .room = sizeof(data)};
		enum vnic_outbox_status status;

		frame.reference.length = 3;
		frame.reference.n_pieces = counts[i % 3];
		for (uint32_t b = 0; b < sizeof(data); b++)
			data[b] = (uint8_t)(i + b);
		assert_true(vnic_frame_bytes(&frame) + sizeof(frame.reference) <=
			    VNIC_FRAME_MAX(MTU));
		if (f->in_place) {
			struct vnic_frame slot;

			assert_int_equal(vnic_outbox_reserve(f->first, &slot, 1), 1);
			memcpy(slot.data, data, vnic_frame_bytes(&frame));
			frame.data = slot.data;
			vnic_outbox_commit(f->first, &frame, 1);
		} else {
			assert_int_equal(vnic_outbox_send(f->first, &frame, 1, &status), 1);
		}
		assert_int_equal(vnic_inbox_rx(f->inbox, &frame, 1), 1);
		assert_int_equal(frame.len, i % 30);
		assert_int_equal(frame.reference.n_pieces, counts[i % 3]);
		assert_memory_equal(frame.data, data, vnic_frame_bytes(&frame));
		vnic_inbox_rx_release(f->inbox, 1);
	}
}

/* A sender claims more pieces than its frame has bytes, or than a reference may have. */
static void test_too_many_pieces_break_the_inbox(void **state)
{
	static const struct {
		uint32_t len, pieces;
	} rows[] = {{0, VNIC_PIECES_MAX + 1}, {0, UINT32_MAX}, {2 * PIECE - 1, 2}};
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 3; i++) {
		uint8_t data[VNIC_FRAME_MAX(MTU)] = {0};
		struct vnic_reference forged = {.length = 1, .n_pieces = rows[i].pieces};
		struct vnic_frame frame = {.data = data, .reference = {.length = 1}};
		enum vnic_outbox_status status;
		uint8_t *at;

		/* The frame's last bytes become a reference. */
		frame.reference.address = UINT64_C(0x1234567898765432);
		frame.len = rows[i].len;
		assert_int_equal(vnic_outbox_send(f->first, &frame, 1, &status), 1);
		at = memmem(f->memory, f->size, &frame.reference, sizeof(frame.reference));
		assert_non_null(at);
		memcpy(at, &forged, sizeof(forged));
		assert_int_equal(vnic_inbox_rx(f->inbox, &frame, 1), 0);
		assert_true(vnic_inbox_broken(f->inbox));
		renew(state);
		f = *state;
	}
}

/* The completion before a sent frame, in the inbox's memory. */
static uint8_t *find_completion(const struct fixture *f, uint32_t lead)
{
	uint8_t *at = memmem(f->memory, f->size, &lead, sizeof(lead));

	assert_non_null(at);
	return at - sizeof(uint16_t);
}

#define GEN       0x8000u /* generation bit of the first lap */
#define REFERENCE 0x4000u

/* Whatever a completion contains, the frame and its reference come from the slot. */
static void try_completion(struct fixture *f, uint16_t completion)
{
	const uint32_t lead = 0x5eed5eed, len = completion & ~(GEN | REFERENCE);
	const uint32_t reference = completion & REFERENCE ? sizeof(struct vnic_reference) : 0;
	uint8_t data[LEN] = {0};
	struct vnic_frame frame = {.data = data, .len = LEN};
	enum vnic_outbox_status status;
	bool good = len <= VNIC_FRAME_MAX(MTU) && len >= reference;

	memcpy(data, &lead, sizeof(lead));
	assert_int_equal(vnic_outbox_send(f->first, &frame, 1, &status), 1);
	memcpy(find_completion(f, lead), &completion, sizeof(completion));
	assert_int_equal(vnic_inbox_rx(f->inbox, &frame, 1), completion & GEN && good);
	assert_int_equal(vnic_inbox_broken(f->inbox), completion & GEN && !good);
	if (completion & GEN && good)
		assert_int_equal(frame.len, len - reference);
}

static void test_forged_references_are_refused(void **state)
{
	static const uint16_t flags[] = {0, REFERENCE, GEN, GEN | REFERENCE};

	for (int i = 0; i < 4; i++) {
		for (uint32_t len = 0; len < 2 * MTU; len++) {
			try_completion(*state, (uint16_t)(flags[i] | len));
			renew(state);
		}
		try_completion(*state, flags[i] | 0x3fffu);
		renew(state);
	}
}

/* --- Hostile memory. */

/* Whatever value one word has, both ends work, and no frame is longer than a buffer. */
static void use_damaged(struct fixture *f)
{
	struct vnic_frame frames[BURST];
	enum vnic_outbox_status status;
	uint32_t n;

	for (uint32_t i = 0; i < 3; i++) {
		send_from(f, f->first, BURST, &status);
		n = vnic_inbox_rx(f->inbox, frames, BURST);
		for (uint32_t j = 0; j < n; j++)
			assert_true(frames[j].len <= frames[j].room &&
				    frames[j].room == VNIC_FRAME_MAX(MTU));
		vnic_inbox_rx_release(f->inbox, n);
	}
	vnic_inbox_irq_unmask(f->inbox);
}

static void test_damaged_memory_does_no_harm(void **state)
{
	static const uint32_t values[] = {0, 1, 255, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX};
	/* Everything but the buffers lies first. */
	uint32_t words =
		(uint32_t)(((struct fixture *)*state)->size / 4) - VNIC_INBOX_FRAMES * MTU / 4;
	uint32_t broken = 0, closed = 0;

	for (uint32_t word = 0; word < words; word++) {
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			struct fixture *f = *state;
			enum vnic_outbox_status status;

			use_damaged(f);
			memcpy(f->memory + word * 4, &values[i], 4);
			use_damaged(f);
			broken += vnic_inbox_broken(f->inbox);
			send_from(f, f->second, 1, &status);
			closed += status == VNIC_OUTBOX_CLOSED;
			if (word < 64 || vnic_inbox_broken(f->inbox))
				renew(state);
		}
	}
	assert_true(broken && closed);
}

static void check_refused(const int inbox[VNIC_INBOX_FDS], uint16_t mtu, int error)
{
	struct vnic_inbox_broker *broker;
	int fds[VNIC_INBOX_FDS];

	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = dup(inbox[i]);
	assert_int_equal(vnic_inbox_broker_open(fds, mtu, &broker), error);
	/* The broker closes the descriptors nevertheless. */
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
}

/* One descriptor is replaced by another: the inbox is refused. */
static void check_replaced(const struct fixture *f, enum vnic_inbox_fd place, int fd, int error)
{
	struct vnic_outbox *outbox;
	int fds[VNIC_INBOX_FDS];

	vnic_inbox_fds(f->inbox, fds);
	fds[place] = fd;
	check_refused(fds, MTU, error);
	if (place == VNIC_INBOX_WAKE)
		return;
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = dup(fds[i]);
	assert_int_equal(vnic_outbox_open(fds, MTU, FIRST, &outbox), error);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
}

static void test_bad_descriptors_are_refused(void **state)
{
	struct fixture *f = *state;
	int fds[VNIC_INBOX_FDS], ends[2], unsealed = memfd_create("unsealed", MFD_CLOEXEC);

	vnic_inbox_fds(f->inbox, fds);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(ftruncate(unsealed, (off_t)f->size), 0);
	check_refused(fds, MTU + 64, -EINVAL);
	check_replaced(f, VNIC_INBOX_WAKE, ends[1], -EINVAL);
	check_replaced(f, VNIC_INBOX_MEMORY, unsealed, -EPERM);
	check_replaced(f, VNIC_INBOX_MEMORY, ends[0], -EPERM);
	check_replaced(f, VNIC_INBOX_MEMORY, fds[VNIC_INBOX_PUBLISHED], -EPERM);
	check_replaced(f, VNIC_INBOX_PUBLISHED, unsealed, -EPERM);
	check_replaced(f, VNIC_INBOX_PUBLISHED, ends[0], -EPERM);
	/* A writable descriptor: another process could write to the memory. */
	check_replaced(f, VNIC_INBOX_PUBLISHED, fds[VNIC_INBOX_MEMORY], -EPERM);
	close(unsealed);
	close(ends[0]);
	close(ends[1]);
}

/* The broker's close of a file frees its pages, so its owner must not add any later. */
static void test_published_memory_that_may_grow_is_refused(void **state)
{
	struct fixture *f = *state;
	int growing = memfd_create("growing", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(growing, VNIC_INBOX_PUBLISHED_SIZE), 0);
	assert_int_equal(fcntl(growing, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), 0);
	check_replaced(f, VNIC_INBOX_PUBLISHED, growing, -EPERM);
	close(growing);
}

static void test_published_memory_with_pages_behind_its_end_is_refused(void **state)
{
	struct fixture *f = *state;
	int large = memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(large, VNIC_INBOX_PUBLISHED_SIZE), 0);
	assert_int_equal(fallocate(large, FALLOC_FL_KEEP_SIZE, 1 << 30, 1 << 27), 0);
	assert_int_equal(
		fcntl(large, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE), 0);
	check_replaced(f, VNIC_INBOX_PUBLISHED, large, -EPERM);
	close(large);
}

/* The receiver publishes memory, which senders cannot change. */
static void test_published_memory_is_read_only(void **state)
{
	struct fixture *f = *state;
	int fds[VNIC_INBOX_FDS];
	uint8_t *published = vnic_inbox_published(f->inbox);
	const uint8_t *seen = vnic_outbox_published(f->first);

	vnic_inbox_fds(f->inbox, fds);
	assert_int_equal(seen[VNIC_INBOX_PUBLISHED_SIZE - 1], 0);
	published[VNIC_INBOX_PUBLISHED_SIZE - 1] = 7;
	assert_int_equal(seen[VNIC_INBOX_PUBLISHED_SIZE - 1], 7);
	assert_ptr_equal(mmap(NULL, VNIC_INBOX_PUBLISHED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			      fds[VNIC_INBOX_PUBLISHED], 0),
			 MAP_FAILED);
	assert_int_equal(pwrite(fds[VNIC_INBOX_PUBLISHED], "x", 1, 0), -1);
	assert_int_equal(mprotect((void *)seen, 4096, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(fcntl(fds[VNIC_INBOX_PUBLISHED], F_ADD_SEALS, F_SEAL_WRITE), -1);
}

static uint64_t resident(const struct fixture *f)
{
	int fds[VNIC_INBOX_FDS];
	struct stat st;

	vnic_inbox_fds(f->inbox, fds);
	assert_int_equal(fstat(fds[VNIC_INBOX_MEMORY], &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Populates all memory at once, if the kernel can; frames in it do not change. */
static void test_populate_keeps_frames(void **state)
{
	struct fixture *f = *state;

	send_all(f, f->first, 3);
	assert_true(resident(f) < f->size);
	vnic_inbox_populate(f->inbox);
	if (kernel_populates())
		assert_true(resident(f) >= f->size);
	assert_int_equal(receive(f), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_frames_keep_their_order, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_full_inbox_refuses_frames, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_long_idle_sender_sees_a_full_inbox, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_held_buffers_are_posted_before_sleep,
						open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_reservation_holds_the_lock, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_receiver_holds_the_lock, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_closed_inbox_delivers_no_reserved_frame,
						open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_locked_inbox_is_busy, open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_receiver_closes_the_inbox, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_daemon_closes_the_inbox, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_forked_child_abandons_the_inbox, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_killed_sender_leaves_a_usable_ring, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_frames_around_a_killed_sender_are_received,
						open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_two_killed_senders_leave_a_usable_ring,
						open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(test_stopped_sender_keeps_the_lock, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_frames_keep_their_order, open_in_place,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_full_inbox_refuses_frames, open_in_place,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_long_idle_sender_sees_a_full_inbox,
						open_in_place, close_inbox),
		cmocka_unit_test_setup_teardown(test_killed_sender_leaves_a_usable_ring,
						open_in_place, close_inbox),
		cmocka_unit_test_setup_teardown(test_frames_around_a_killed_sender_are_received,
						open_in_place, close_inbox),
		cmocka_unit_test_setup_teardown(test_two_killed_senders_leave_a_usable_ring,
						open_in_place, close_inbox),
		cmocka_unit_test_setup_teardown(test_stopped_sender_keeps_the_lock, open_in_place,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_damaged_memory_does_no_harm, open_in_place,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_damaged_memory_does_no_harm, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_references_arrive_with_their_frame, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_references_arrive_with_their_frame,
						open_in_place, close_inbox),
		cmocka_unit_test_setup_teardown(test_pieces_arrive_behind_their_frame, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_pieces_arrive_behind_their_frame,
						open_in_place, close_inbox),
		cmocka_unit_test_setup_teardown(test_too_many_pieces_break_the_inbox, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_forged_references_are_refused, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_bad_descriptors_are_refused, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_published_memory_that_may_grow_is_refused,
						open_inbox, close_inbox),
		cmocka_unit_test_setup_teardown(
			test_published_memory_with_pages_behind_its_end_is_refused, open_inbox,
			close_inbox),
		cmocka_unit_test_setup_teardown(test_published_memory_is_read_only, open_inbox,
						close_inbox),
		cmocka_unit_test_setup_teardown(test_populate_keeps_frames, open_inbox,
						close_inbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
