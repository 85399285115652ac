/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The direct transport between processes: whose memory is written to, whatever becomes of its
 * owner, and whatever the other one says of itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rxe/rxe.h>
#include <vnic/loop.h>
#include <vnic/regs.h>

#include "peer.h"
#include "port.h"
#include "rseq.h"

#define MTU   1500
#define OURS  0x1000u /* QPNs: ours, */
#define PEER  0x5000u /* and the other process's */
#define PAGE  4096u
#define AREA  (16 * PAGE)
#define SKIP  77
#define AGAIN "again" /* this program, as the one that is executed */

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};

/* At the same address in each process: what is written to. */
static _Alignas(4096) uint8_t area[AREA];
/* What all see. */
static struct {
	_Atomic uint32_t step;
	_Atomic int32_t tid;
} * shared;

struct world {
	struct vnic_loop *loop;
	struct vnic_inbox *inbox; /* of the other process, or of ours where the other one visits */
	uint8_t *published;       /* as its owner has it */
	pid_t pid;
};
static struct world w;

static void await_step(uint32_t step)
{
	while (atomic_load(&shared->step) < step) {
		assert_int_equal(waitpid(w.pid, NULL, WNOHANG), 0);
		sched_yield();
	}
}

/* This process is one that others could visit, by a card and book that nobody has. */
static bool be_somebody(void)
{
	static _Alignas(64) uint8_t card[VNIC_INBOX_PUBLISHED_SIZE], book[VNIC_INBOX_SHARED_SIZE];

	return peer_init(card, book);
}

/* --- A visitor's way to an inbox. */

static void open_way(bool own)
{
	struct vnic_attach_welcome who = {.mtu = MTU, .qpn_first = own ? PEER : OURS};
	int fds[VNIC_INBOX_FDS];

	memcpy(who.mac, mac, sizeof(mac));
	assert_int_equal(egress_init(&port.egress, w.loop->driver, &who), 0);
	vnic_inbox_fds(w.inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = dup(fds[i]);
	assert_int_equal(egress_add(&port.egress, PEER, fds), 0);
}

static const struct urxe_direct_table *enter(void)
{
	return peer_ops.enter(NULL, mac, PEER);
}

/* How many parts were copied. */
static uint32_t run(struct urxe_direct_copy *job)
{
	const struct urxe_direct_table *table = enter();
	uint32_t done;

	if (!table)
		return 0;
	job->state = table->state.word;
	done = peer_ops.copy(NULL, job);
	peer_ops.leave(NULL);
	return done;
}

/* Copies between `local` and the other's area. */
static bool copy(bool write, uint8_t *local, uint32_t offset, uint32_t length)
{
	const struct urxe_extent extent = {local, length};
	const struct urxe_direct_part part = {(uintptr_t)area + offset, &extent, 1};

	return run(&(struct urxe_direct_copy){.parts = &part, .n_parts = 1, .write = write});
}

/* --- Whose memory it is. */

static void *live(void *arg)
{
	peer_live();
	atomic_store(&shared->tid, gettid());
	pause();
	return arg;
}

static void hand_out(void)
{
	pthread_t thread;

	assert_non_null(peer_init(vnic_inbox_published(w.inbox), vnic_inbox_shared(w.inbox)));
	atomic_store(&shared->tid, 0);
	assert_int_equal(pthread_create(&thread, NULL, live, NULL), 0);
	while (!atomic_load(&shared->tid))
		sched_yield();
}

/* A process that is the owner, and does something then. */
static void start_owner(void (*then)(void))
{
	w.pid = fork();
	assert_true(w.pid >= 0);
	if (w.pid) {
		await_step(1);
		return;
	}
	peer_in_child();
	hand_out();
	atomic_store(&shared->step, 1);
	then();
	pause();
	_exit(0);
}

static void nothing(void)
{
}

static int open_world(void **state)
{
	(void)state;
	atomic_store(&shared->step, 0);
	memset(area, 0, sizeof(area));
	assert_int_equal(vnic_loop_open(MTU, &w.loop), 0);
	*(uint32_t *)((uint8_t *)w.loop->bars + VNIC_REG_DIRECT) = 1;
	assert_int_equal(vnic_inbox_create(MTU, &w.inbox), 0);
	w.published = vnic_inbox_published(w.inbox);
	assert_true(be_somebody());
	open_way(false);
	w.pid = 0;
	return 0;
}

static int end_process(void)
{
	int status = 0;

	if (w.pid) {
		kill(w.pid, SIGKILL);
		assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
	}
	w.pid = 0;
	return status;
}

static int close_world(void **state)
{
	(void)state;
	end_process();
	egress_done(&port.egress);
	peer_done();
	vnic_inbox_destroy(w.inbox);
	vnic_loop_close(w.loop);
	return 0;
}

/* --- A stream of frames, which holds the lock of the inbox that it goes to. */

static const uint32_t *lock;

static void send_large(struct urxe_frame frames[2])
{
	for (int n = 0; n < 2; n++) {
		memcpy(frames[n].data, mac, sizeof(mac));
		frames[n].len = MTU;
		frames[n].dest_qpn = PEER;
	}
	assert_true(egress_send(&port.egress, 1, frames, 2));
}

/* Its next frames are to be made. */
static void begin_stream(struct urxe_frame frames[2])
{
	int fds[VNIC_INBOX_FDS];

	vnic_inbox_fds(w.inbox, fds);
	lock = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fds[VNIC_INBOX_MEMORY], 0);
	assert_ptr_not_equal(lock, MAP_FAILED);
	assert_int_equal(egress_reserve(&port.egress, 1, frames, 2), 2);
	send_large(frames);
	assert_int_equal(*lock, 0);
	assert_int_equal(egress_reserve(&port.egress, 1, frames, 2), 2);
	assert_int_not_equal(*lock, 0);
}

static void end_stream(struct urxe_frame frames[2])
{
	send_large(frames);
	munmap((void *)lock, PAGE);
}

/* It is not held while memory is copied. */
static void test_copies_without_lock(void **state)
{
	struct urxe_frame frames[2];
	uint32_t copied = 1;

	(void)state;
	start_owner(nothing);
	assert_non_null(enter());
	peer_ops.leave(NULL);
	begin_stream(frames);
	/* What is copied is the lock itself: as it is in the meantime. */
	assert_true(copy(true, (uint8_t *)lock, 0, sizeof(*lock)));
	end_stream(frames);
	assert_true(copy(false, (uint8_t *)&copied, 0, sizeof(copied)));
	assert_int_equal(copied, 0);
}

/* Nor while we find out whether the other one is who he says, and look for a slot in his book. */
static void test_meets_without_lock(void **state)
{
	struct urxe_frame frames[2];

	(void)state;
	start_owner(nothing);
	begin_stream(frames);
	assert_non_null(enter());
	assert_int_equal(*lock, 0);
	peer_ops.leave(NULL);
	end_stream(frames);
}

/* --- What is copied, and where to. */

static void test_copies(void **state)
{
	uint8_t out[1000], in[1000] = {0};

	(void)state;
	start_owner(nothing);
	memset(out, 7, sizeof(out));
	assert_true(copy(true, out, 100, sizeof(out)));
	assert_true(copy(false, in, 100, sizeof(in)));
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(area[100], 0); /* ours */
}

#define PIECES 3u

/* Requests of several pieces each, wherever their last 8 bytes begin. */
static void test_copies_together(void **state)
{
	static const uint32_t rows[][PIECES] = {{1, 1, 1},  {8, 1, 1},  {1, 8, 1},   {1, 1, 8},
						{20, 3, 2}, {3, 20, 4}, {3, 4, 1000}};
	const uint32_t n = sizeof(rows) / sizeof(rows[0]), room = 2000;
	struct urxe_extent extents[sizeof(rows) / sizeof(rows[0]) * PIECES];
	struct urxe_direct_part parts[sizeof(rows) / sizeof(rows[0])];
	static uint8_t out[AREA], in[AREA];

	(void)state;
	start_owner(nothing);
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7 + 1);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *from = out + i * room;

		parts[i] = (struct urxe_direct_part){(uintptr_t)area + i * room,
						     &extents[i * PIECES], PIECES};
		for (uint32_t k = 0; k < PIECES; from += rows[i][k++])
			extents[i * PIECES + k] = (struct urxe_extent){from, rows[i][k]};
	}
	assert_int_equal(
		run(&(struct urxe_direct_copy){.parts = parts, .n_parts = n, .write = true}), n);
	assert_true(copy(false, in, 0, AREA));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t length = rows[i][0] + rows[i][1] + rows[i][2];

		assert_memory_equal(in + i * room, out + i * room, length);
		assert_int_equal(in[i * room + length], 0);
	}
}

/* What is behind one that cannot be copied is not, and those before it are said to be. */
static void test_copies_some(void **state)
{
	static uint8_t out[PAGE];
	const struct urxe_extent extent = {out, PAGE};
	struct urxe_direct_part parts[4];
	uint8_t in[4] = {0};

	(void)state;
	memset(out, 7, sizeof(out));
	for (uint32_t i = 0; i < 4; i++)
		parts[i] = (struct urxe_direct_part){(uintptr_t)area + i * PAGE, &extent, 1};
	assert_int_equal(mprotect(area + 2 * PAGE, PAGE, PROT_NONE), 0);
	start_owner(nothing);
	assert_int_equal(mprotect(area + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(
		run(&(struct urxe_direct_copy){.parts = parts, .n_parts = 4, .write = true}), 2);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2)
			assert_true(copy(false, &in[i], i * PAGE, 1));
	assert_memory_equal(in, "\7\7\0\0", 4);
}

/* The word of a card that holds a value, of those that say who it is. */
static uint32_t *find(uint32_t value)
{
	uint32_t *words = (uint32_t *)w.published;

	for (uint32_t i = 0; i < 16; i++)
		if (words[i] == value)
			return &words[i];
	fail();
	return NULL;
}

/* Who has been met once cannot become another. */
static void test_another_process(void **state)
{
	uint8_t byte = 7, in = 0;

	(void)state;
	start_owner(nothing);
	assert_true(copy(true, &byte, 0, 1));
	*find((uint32_t)w.pid) = (uint32_t)getpid();
	byte = 8;
	assert_true(copy(true, &byte, 0, 1));
	assert_true(copy(false, &in, 0, 1));
	assert_int_equal(in, 8);
	assert_int_equal(area[0], 0);
}

/* All that it says is true of this process, by which it is read. */
static void test_says_it_is_us(void **state)
{
	uint8_t byte = 7;

	(void)state;
	hand_out();
	assert_false(copy(true, &byte, 0, 1));
	assert_int_equal(area[0], 0);
	/* It is by the way to our own queue pairs. */
	egress_done(&port.egress);
	open_way(true);
	assert_true(copy(true, &byte, 0, 1));
	assert_int_equal(area[0], 7);
}

/* The pieces come in order: what is behind memory that is not there is not written. */
static void test_last_bytes_last(void **state)
{
	static uint8_t out[AREA];
	uint64_t last = 0;

	(void)state;
	memset(out, 7, sizeof(out));
	assert_int_equal(mprotect(area + PAGE, PAGE, PROT_NONE), 0);
	start_owner(nothing);
	assert_int_equal(mprotect(area + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_false(copy(true, out, 0, sizeof(out)));
	assert_true(copy(false, (uint8_t *)&last, AREA - sizeof(last), sizeof(last)));
	assert_int_equal(last, 0);
}

#define WRITES 2000u

/* Spins on the last word, as programs do; all before it is there then, of this write or a later. */
static void watch(void)
{
	const volatile uint64_t *words = (const volatile uint64_t *)area;
	const uint32_t n = AREA / sizeof(*words);

	for (uint64_t seen = 0; seen < WRITES;) {
		uint64_t last = words[n - 1];

		if (last == seen)
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (words[i] < last)
				_exit(1);
		seen = last;
	}
	_exit(0);
}

static void test_watched(void **state)
{
	static uint64_t out[AREA / sizeof(uint64_t)];
	int status;

	(void)state;
	start_owner(watch);
	for (uint64_t i = 1; i <= WRITES; i++) {
		for (uint32_t word = 0; word < AREA / sizeof(uint64_t); word++)
			out[word] = i;
		assert_true(copy(true, (uint8_t *)out, 0, AREA));
	}
	assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
	w.pid = 0;
	assert_int_equal(status, 0);
}

/* --- What becomes of it. */

static void test_stopped(void **state)
{
	uint8_t byte = 7, in = 0;
	int status;

	(void)state;
	start_owner(nothing);
	kill(w.pid, SIGSTOP);
	assert_int_equal(waitpid(w.pid, &status, WUNTRACED), w.pid);
	assert_true(copy(true, &byte, 0, 1));
	kill(w.pid, SIGCONT);
	/* Nor does a debugger's stop keep anybody. */
	assert_int_equal(ptrace(PTRACE_SEIZE, w.pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, w.pid, 0, 0), 0);
	do
		assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
	while (!WIFSTOPPED(status));
	byte = 8;
	assert_true(copy(true, &byte, 0, 1));
	assert_true(copy(false, &in, 0, 1));
	assert_int_equal(in, 8);
}

static void test_killed(void **state)
{
	uint8_t byte = 7;

	(void)state;
	start_owner(nothing);
	assert_true(copy(true, &byte, 0, 1));
	end_process();
	assert_false(copy(true, &byte, 0, 1));
	assert_false(copy(false, &byte, 0, 1));
}

static void execute(void)
{
	while (atomic_load(&shared->step) < 2)
		sched_yield();
	execl("/proc/self/exe", "test_verbs_peer", AGAIN, (char *)NULL);
	_exit(127);
}

/* The program that comes in its place has the same addresses, and nobody writes there. */
static void test_executes(void **state)
{
	static uint8_t out[AREA];
	uint32_t copies = 0;
	int status;

	(void)state;
	memset(out, 7, sizeof(out));
	start_owner(execute);
	assert_true(copy(true, out, 0, AREA));
	atomic_store(&shared->step, 2);
	while (copy(true, out, 0, AREA))
		copies++;
	assert_false(copy(true, out, 0, AREA));
	kill(w.pid, SIGUSR1);
	assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
	w.pid = 0;
	assert_int_equal(status, 0);
	print_message("%u writes before it was another program\n", copies);
}

/* What is executed: until it is told, nothing of its memory changes. */
static int executed(void)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &number);
	for (uint32_t i = 0; i < AREA; i++)
		if (area[i])
			return 1;
	return 0;
}

/* --- Whether its engine is awake. */

static void turn(void)
{
	for (;;) {
		peer_turn();
		sched_yield();
	}
}

/* Looks once a microsecond, of time that the test makes up. */
static bool look(uint64_t *now)
{
	bool awake;

	assert_non_null(enter());
	*now += 1000;
	awake = peer_ops.awake(NULL, *now);
	peer_ops.leave(NULL);
	return awake;
}

static void test_awake(void **state)
{
	uint64_t now = 1000000000;

	(void)state;
	start_owner(turn);
	while (!look(&now))
		await_step(1);
	kill(w.pid, SIGSTOP);
	assert_int_equal(waitpid(w.pid, NULL, WUNTRACED), w.pid);
	while (look(&now))
		;
	assert_false(look(&now));
}

/* One that sleeps is woken, without a frame. */
static void test_roused(void **state)
{
	uint64_t now = 1000000000;
	eventfd_t count;

	(void)state;
	start_owner(nothing);
	assert_false(vnic_inbox_irq_unmask(w.inbox, VNIC_INBOX_THREAD, false));
	for (int i = 0; i < 100; i++)
		assert_false(look(&now));
	assert_int_equal(eventfd_read(vnic_inbox_irq_fd(w.inbox, VNIC_INBOX_THREAD), &count), 0);
}

/* It has our core: it is as good as asleep. */
static void test_own_engine(void **state)
{
	uint64_t now = 1000000000;

	(void)state;
	hand_out();
	egress_done(&port.egress);
	open_way(true);
	for (int i = 0; i < 100; i++) {
		peer_turn();
		assert_false(look(&now));
	}
}

/* --- Visitors, and their host that takes rights back. */

/* A process that comes in, and does something instead of leaving. */
static void start_visitor(void (*then)(void))
{
	w.pid = fork();
	assert_true(w.pid >= 0);
	if (w.pid) {
		await_step(1);
		return;
	}
	peer_in_child();
	if (!be_somebody() || !enter())
		_exit(1);
	atomic_store(&shared->step, 1);
	then();
	_exit(1);
}

static void spin(void)
{
	for (;;)
		atomic_load(&shared->step);
}

static void wait_elsewhere(void)
{
	pause();
}

static bool open_to_all(void)
{
	uint8_t byte = 0;

	/* By our own visit, for which there is room in the book. */
	egress_done(&port.egress);
	open_way(true);
	return copy(false, &byte, 0, 1);
}

static void test_waits_elsewhere(void **state)
{
	(void)state;
	hand_out();
	start_visitor(wait_elsewhere);
	peer_ops.drain(NULL);
	assert_true(open_to_all());
}

static void leave_unlocked(void)
{
	while (__atomic_load_n(lock, __ATOMIC_RELAXED))
		;
	peer_ops.leave(NULL);
	pause();
}

/* Nor while somebody who copies is waited for; here it is until then. */
static void test_waits_without_lock(void **state)
{
	struct urxe_frame frames[2];

	(void)state;
	hand_out();
	begin_stream(frames);
	start_visitor(leave_unlocked);
	peer_ops.drain(NULL);
	assert_int_equal(*lock, 0);
	end_stream(frames);
	assert_true(open_to_all());
}

static void test_in_a_debugger(void **state)
{
	int status;

	(void)state;
	hand_out();
	start_visitor(spin);
	assert_int_equal(ptrace(PTRACE_SEIZE, w.pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, w.pid, 0, 0), 0);
	assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
	peer_ops.drain(NULL);
	assert_true(open_to_all());
}

static void test_visitor_is_stopped(void **state)
{
	int status;

	(void)state;
	hand_out();
	start_visitor(spin);
	kill(w.pid, SIGSTOP);
	assert_int_equal(waitpid(w.pid, &status, WUNTRACED), w.pid);
	peer_ops.drain(NULL);
	assert_true(open_to_all());
}

/* It uses more time than any copy takes: nobody comes in any more, and nobody is waited for. */
static void test_liar(void **state)
{
	(void)state;
	hand_out();
	start_visitor(spin);
	peer_ops.drain(NULL);
	assert_false(open_to_all());
	peer_ops.drain(NULL);
}

/* Bytes of any kind in the book, which everybody writes to. */
static void test_damaged_book(void **state)
{
	/* Process 1 has a thread 1. */
	const uint32_t values[] = {1, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX, (uint32_t)getpid()};
	uint32_t *book = vnic_inbox_shared(w.inbox);

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		hand_out();
		for (uint32_t word = 0; word < VNIC_INBOX_SHARED_SIZE / sizeof(*book); word++)
			book[word] = values[i];
		peer_ops.drain(NULL);
		egress_done(&port.egress);
		open_way(true);
		enter(); /* or not: there may be no free slot */
		peer_ops.drain(NULL);
	}
}

/* Programs that are executed have the same addresses. */
static void stay_in_place(char **argv)
{
	int now = personality(UINT32_MAX);

	if (now < 0 || now & ADDR_NO_RANDOMIZE ||
	    personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0)
		return;
	execv("/proc/self/exe", argv);
}

static bool may_reach_others(void)
{
	uint8_t from = 0, to;
	const struct iovec there = {&from, 1}, here = {&to, 1};

	/* Where Yama keeps children from their parents. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	return rseq_usable() && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_copies, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_copies_together, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_copies_some, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_copies_without_lock, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_meets_without_lock, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_another_process, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_says_it_is_us, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_last_bytes_last, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_watched, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_stopped, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_killed, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_executes, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_awake, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_roused, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_own_engine, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_waits_elsewhere, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_waits_without_lock, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_in_a_debugger, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_visitor_is_stopped, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_liar, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_damaged_book, open_world, close_world),
	};

	sigset_t told;

	if (argc > 1 && !strcmp(argv[1], AGAIN))
		return executed();
	stay_in_place(argv);
	if (!may_reach_others())
		return SKIP;
	sigemptyset(&told);
	sigaddset(&told, SIGUSR1);
	sigprocmask(SIG_BLOCK, &told, NULL);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
