/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies between the memory of two processes: the bytes copied, the effect of the end, a stop or a
 * lie of either process, and that no copy uses withdrawn rights.
 */
#include "peer_pair.h"

static void nothing(void)
{
}

/* --- A stream of frames, whose sender holds the lock of the receiver's inbox. */

static const uint32_t *lock;

static void send_large(struct urxe_frame frames[2])
{
	for (int n = 0; n < 2; n++) {
		memcpy(frames[n].data, mac, sizeof(mac));
		frames[n].len = MTU;
		frames[n].dest_qpn = QPN(CHILD);
	}
	assert_true(tx_send(&adapter.tx, 1, frames, 2));
}

/* Reserves buffers for the next frames of the stream. */
static void begin_stream(struct urxe_frame frames[2])
{
	int fds[VNIC_INBOX_FDS];

	vnic_inbox_fds(w.inbox[1], fds);
	lock = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fds[VNIC_INBOX_MEMORY], 0);
	assert_ptr_not_equal(lock, MAP_FAILED);
	assert_int_equal(tx_reserve(&adapter.tx, 1, frames, 2), 2);
	send_large(frames);
	assert_int_equal(*lock, 0);
	assert_int_equal(tx_reserve(&adapter.tx, 1, frames, 2), 2);
	assert_int_not_equal(*lock, 0);
}

static void end_stream(struct urxe_frame frames[2])
{
	send_large(frames);
	munmap((void *)lock, PAGE);
}

/* The sender releases the inbox's lock during a copy. */
static void test_copies_without_lock(void **state)
{
	struct urxe_frame frames[2];
	uint32_t copied = 1;

	(void)state;
	start_child(nothing);
	begin_stream(frames);
	/* The copy reads the lock word itself, which shows its value meanwhile. */
	assert_true(copy(true, (uint8_t *)lock, 0, sizeof(*lock)));
	end_stream(frames);
	assert_true(copy(false, (uint8_t *)&copied, 0, sizeof(copied)));
	assert_int_equal(copied, 0);
}

/* --- The bytes copied, and their destination. */

static void test_copies_read_and_write(void **state)
{
	uint8_t out[1000], in[1000] = {0};

	(void)state;
	start_child(nothing);
	memset(out, 7, sizeof(out));
	assert_true(copy(true, out, 100, sizeof(out)));
	assert_true(copy(false, in, 100, sizeof(in)));
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(area[100], 0); /* ours */
}

#define PIECES 3u

/* Requests of several pieces each, for each position of their last 8 bytes. */
static void test_requests_are_copied_together(void **state)
{
	static const uint32_t rows[][PIECES] = {{1, 1, 1},  {8, 1, 1},  {1, 8, 1},   {1, 1, 8},
						{20, 3, 2}, {3, 20, 4}, {3, 4, 1000}};
	const uint32_t n = sizeof(rows) / sizeof(rows[0]), room = 2000;
	struct urxe_extent extents[sizeof(rows) / sizeof(rows[0]) * PIECES];
	struct urxe_remote_extent remotes[sizeof(rows) / sizeof(rows[0])];
	struct urxe_copy_part parts[sizeof(rows) / sizeof(rows[0])];
	static uint8_t out[AREA], in[AREA];

	(void)state;
	start_child(nothing);
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7 + 1);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *from = out + i * room;

		remotes[i] = (struct urxe_remote_extent){(uintptr_t)area + i * room,
							 rows[i][0] + rows[i][1] + rows[i][2]};
		parts[i] = (struct urxe_copy_part){&remotes[i], 1, PIECES, &extents[i * PIECES]};
		for (uint32_t k = 0; k < PIECES; from += rows[i][k++])
			extents[i * PIECES + k] = (struct urxe_extent){from, rows[i][k]};
	}
	assert_int_equal(run(&(struct urxe_copy_job){.parts = parts, .n_parts = n, .write = true}),
			 n);
	assert_true(copy(false, in, 0, AREA));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t length = rows[i][0] + rows[i][1] + rows[i][2];

		assert_memory_equal(in + i * room, out + i * room, length);
		assert_int_equal(in[i * room + length], 0);
	}
}

/*
 * A request that cannot be copied ends the copy: later requests are not copied, and the earlier
 * ones count as copied.
 */
static void test_uncopyable_request_ends_the_copy(void **state)
{
	static uint8_t out[PAGE];
	const struct urxe_extent extent = {out, PAGE};
	struct urxe_remote_extent remotes[4];
	struct urxe_copy_part parts[4];
	uint8_t in[4] = {0};

	(void)state;
	memset(out, 7, sizeof(out));
	for (uint32_t i = 0; i < 4; i++) {
		remotes[i] = (struct urxe_remote_extent){(uintptr_t)area + i * PAGE, PAGE};
		parts[i] = (struct urxe_copy_part){&remotes[i], 1, 1, &extent};
	}
	assert_int_equal(mprotect(area + 2 * PAGE, PAGE, PROT_NONE), 0);
	start_child(nothing);
	assert_int_equal(mprotect(area + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(run(&(struct urxe_copy_job){.parts = parts, .n_parts = 4, .write = true}),
			 2);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2)
			assert_true(copy(false, &in[i], i * PAGE, 1));
	assert_memory_equal(in, "\7\7\0\0", 4);
}

/* Memory of a virtual machine: pieces at either end that begin and end at different bytes. */
static void test_scattered_pieces_are_copied(void **state)
{
	enum { N = URXE_COPY_EXTENTS, LENGTH = 64 };
	static struct urxe_remote_extent remotes[N];
	static uint8_t out[N * LENGTH], in[N * LENGTH];
	const struct urxe_extent extents[] = {{out, 3 * LENGTH + 5},
					      {out + 3 * LENGTH + 5, sizeof(out) - 3 * LENGTH - 5}};
	const struct urxe_extent whole = {in, sizeof(in)};
	const struct urxe_copy_part to = {remotes, N, 2, extents}, from = {remotes, N, 1, &whole};

	(void)state;
	start_child(nothing);
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7 + i / 251);
	/* Backwards, with holes. */
	for (uint32_t i = 0; i < N; i++)
		remotes[i] = (struct urxe_remote_extent){(uintptr_t)area + (N - 1 - i) * (AREA / N),
							 LENGTH};
	assert_int_equal(run(&(struct urxe_copy_job){.parts = &to, .n_parts = 1, .write = true}),
			 1);
	assert_int_equal(run(&(struct urxe_copy_job){.parts = &from, .n_parts = 1}), 1);
	assert_memory_equal(in, out, sizeof(in));
	assert_true(copy(false, in, (N - 1) * (AREA / N), LENGTH + 1));
	assert_memory_equal(in, out, LENGTH);
	assert_int_equal(in[LENGTH], 0);
}

/* The identity of a connected peer cannot change to another process. */
static void test_peer_identity_cannot_change(void **state)
{
	uint8_t byte = 7;

	(void)state;
	start_child(nothing);
	assert_true(copy(true, &byte, 0, 1));
	published_by_child()->table.state.owner = (uint32_t)gettid();
	assert_false(copy(true, &byte, 0, 1));
	assert_int_equal(area[0], 0);
}

/* The peer publishes the identity of a process that has another token in its memory. */
static void test_token_is_read_in_the_peer(void **state)
{
	uint8_t byte = 7;

	(void)state;
	start_child(nothing);
	assert_true(copy(true, &byte, 0, 1));
	area[0] = 0;
	published_by_child()->token ^= 2;
	tx_destroy(&adapter.tx);
	open_way(PARENT, CHILD);
	assert_false(copy(true, &byte, 0, 1));
	assert_int_equal(area[0], 0);
}

/* The peer publishes the identity of this process. */
static void test_peer_with_our_identity_is_not_copied_to(void **state)
{
	uint8_t byte = 7;

	(void)state;
	publish(PARENT);
	memcpy(published_by_child(), vnic_inbox_published(w.inbox[0]),
	       offsetof(struct published, copying));
	published_by_child()->table.state.owner = (uint32_t)atomic_load(&shared->tid);
	atomic_store(&published_by_child()->reached[PARENT], published_by_child()->token);
	open_way(PARENT, CHILD);
	assert_false(copy(true, &byte, 0, 1));
	assert_int_equal(area[0], 0);
}

/* Whether this process copies a byte to itself. */
static bool copies_to_itself(void)
{
	uint8_t byte = 7;
	const struct urxe_extent extent = {&byte, 1};
	const struct urxe_remote_extent remote = {(uintptr_t)area, 1};
	const struct urxe_copy_part part = {&remote, 1, 1, &extent};

	area[0] = 0;
	return run_to(PARENT,
		      &(struct urxe_copy_job){.parts = &part, .n_parts = 1, .write = true}) == 1 &&
	       area[0] == 7;
}

/* Two queue pairs of one process. */
static void test_qps_of_one_process_are_copied(void **state)
{
	(void)state;
	publish(PARENT);
	open_way(PARENT, PARENT);
	assert_true(copies_to_itself());
}

/* Reached by a QPN of its second block. */
static void test_qps_of_two_blocks_are_copied(void **state)
{
	static struct lease_block block;

	(void)state;
	publish(PARENT);
	w.later_block = true;
	block.qpn_first = QPN(PARENT) + LATER_BLOCK;
	adapter.leases.by_qpn[VNIC_BLOCK(block.qpn_first)] = &block;
	open_way(PARENT, PARENT);
	assert_true(copies_to_itself());
	adapter.leases.by_qpn[VNIC_BLOCK(block.qpn_first)] = NULL;
}

/* A process copies only to a peer that has proven that it can interrupt the copy. */
static void test_unproven_peer_is_not_copied_to(void **state)
{
	uint8_t byte = 7;

	(void)state;
	start_child(nothing);
	assert_true(copy(true, &byte, 0, 1));
	atomic_store(&published_by_child()->reached[PARENT], 0);
	assert_false(copy(true, &byte, 0, 1));
}

/* The pieces are written in order: an unmapped piece ends the write. */
static void test_unmapped_piece_ends_the_write(void **state)
{
	static uint8_t out[AREA];
	uint64_t last = 0;

	(void)state;
	memset(out, 7, sizeof(out));
	assert_int_equal(mprotect(area + PAGE, PAGE, PROT_NONE), 0);
	start_child(nothing);
	assert_int_equal(mprotect(area + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_false(copy(true, out, 0, sizeof(out)));
	assert_true(copy(false, (uint8_t *)&last, AREA - sizeof(last), sizeof(last)));
	assert_int_equal(last, 0);
}

#define WRITES 2000u

/*
 * Spins on the last word of a WRITE, as programs do; then the rest of this WRITE, or of a later
 * one, is there.
 */
static void watch(void)
{
	const volatile uint64_t *words = (const volatile uint64_t *)area;
	const uint32_t n = AREA / sizeof(*words);
	int late = 0;

	for (uint64_t seen = 0; seen < WRITES;) {
		uint64_t last = __atomic_load_n(&words[n - 1], __ATOMIC_ACQUIRE);

		if (last == seen)
			continue;
		for (uint32_t i = 0; i < n; i++)
			late |= words[i] < last;
		seen = last;
	}
	/* The last WRITE is not complete yet, and one to a process that has ended fails. */
	await_step(3);
	_exit(late);
}

static void test_last_bytes_are_written_last(void **state)
{
	static uint64_t out[AREA / sizeof(uint64_t)];
	int status;

	(void)state;
	start_child(watch);
	for (uint64_t i = 1; i <= WRITES; i++) {
		for (uint32_t word = 0; word < AREA / sizeof(uint64_t); word++)
			out[word] = i;
		assert_true(copy(true, (uint8_t *)out, 0, AREA));
	}
	atomic_store(&shared->step, 3);
	assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
	w.pid = 0;
	assert_int_equal(status, 0);
}

/* --- Stop and end of a process. */

static void test_stopped_peer_can_be_copied_to(void **state)
{
	uint8_t byte = 7, in = 0;
	int status;

	(void)state;
	start_child(nothing);
	kill(w.pid, SIGSTOP);
	assert_int_equal(waitpid(w.pid, &status, WUNTRACED), w.pid);
	assert_true(copy(true, &byte, 0, 1));
	kill(w.pid, SIGCONT);
	/* A stop by a debugger delays no other process, either. */
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

static void test_killed_peer_is_not_copied_to(void **state)
{
	uint8_t byte = 7;

	(void)state;
	start_child(nothing);
	assert_true(copy(true, &byte, 0, 1));
	assert_true(tx_has_inbox(&adapter.tx, mac, QPN(CHILD)));
	end_process();
	assert_false(copy(true, &byte, 0, 1));
	assert_false(copy(false, &byte, 0, 1));
	/* Nobody has closed the inbox. */
	assert_false(tx_has_inbox(&adapter.tx, mac, QPN(CHILD)));
}

static void execute(void)
{
	await_step(3);
	execl("/proc/self/exe", "test_verbs_peer", AGAIN, (char *)NULL);
	_exit(127);
}

/* The new program has the same addresses, and no copy writes there. */
static void test_new_program_is_not_written_to(void **state)
{
	static uint8_t out[AREA];
	uint32_t copies = 0;
	int status;

	(void)state;
	memset(out, 7, sizeof(out));
	start_child(execute);
	assert_true(copy(true, out, 0, AREA));
	atomic_store(&shared->step, 3);
	while (copy(true, out, 0, AREA))
		copies++;
	assert_false(copy(true, out, 0, AREA));
	kill(w.pid, SIGUSR1);
	assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
	w.pid = 0;
	assert_int_equal(status, 0);
	print_message("%u writes before it was another program\n", copies);
}

/* The executed program: nothing changes its memory until the parent continues. */
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

/* --- Looks at the state of the peer's engine thread. */

static void turn(void)
{
	for (;;) {
		peers_count_poll(&adapter_peers);
		sched_yield();
	}
}

static uint32_t looked_at = CHILD;

/* One look each microsecond of the test's time. */
static bool look(uint64_t *now)
{
	bool awake;

	assert_non_null(table_of(looked_at));
	*now += 1000;
	awake = peers_copy_ops.polls_or_wake(&adapter_peers, *now);
	return awake;
}

static void test_polling_peer_counts_as_awake(void **state)
{
	uint64_t now = 1000000000;

	(void)state;
	start_child(turn);
	while (!look(&now))
		sched_yield();
	kill(w.pid, SIGSTOP);
	assert_int_equal(waitpid(w.pid, NULL, WUNTRACED), w.pid);
	while (look(&now))
		;
	assert_false(look(&now));
}

/* The requester wakes a sleeping engine thread without a frame. */
static void test_sleeping_engine_thread_is_woken(void **state)
{
	uint64_t now = 1000000000;
	eventfd_t count;

	(void)state;
	start_child(nothing);
	assert_false(vnic_inbox_irq_unmask(w.inbox[1]));
	for (int i = 0; i < 100; i++)
		assert_false(look(&now));
	assert_int_equal(eventfd_read(vnic_inbox_irq_fd(w.inbox[1]), &count), 0);
}

/* The peer's engine thread is on this core: it counts as asleep. */
static void test_engine_thread_of_this_core_counts_as_asleep(void **state)
{
	uint64_t now = 1000000000;

	(void)state;
	publish(PARENT);
	open_way(PARENT, PARENT);
	looked_at = PARENT;
	for (int i = 0; i < 100; i++) {
		peers_count_poll(&adapter_peers);
		assert_false(look(&now));
	}
	looked_at = CHILD;
}

/* --- Referenced payloads, which the receiver copies. */

static void fill_area(void)
{
	memset(area, 7, AREA);
	atomic_store(&shared->step, 3);
}

static void test_receiver_pulls_payloads(void **state)
{
	static uint8_t to[3 * PAGE];
	struct urxe_copy_table *table = &published_by_child()->table;
	const struct peer *sender;

	(void)state;
	start_child(fill_area);
	await_step(3);
	sender = tx_peer(&adapter.tx, mac, QPN(CHILD));
	assert_true(peer_pulls(sender));
	memset(to, 0, sizeof(to));
	assert_true(pull_from(sender, (uintptr_t)area, 0, to));
	assert_int_equal(to[99], 7);
	assert_int_equal(to[100], 0);
	assert_int_equal(to[200], 7);
	assert_int_equal(to[2 * PAGE + 99], 7);
	assert_int_equal(to[2 * PAGE + 100], 0);
	/* Partly not there. */
	assert_false(pull_from(sender, (uintptr_t)UINT64_MAX - PAGE, 0, to));
	/* The generation changes: the sender's program has its memory back. */
	table->references++;
	assert_false(pull_from(sender, (uintptr_t)area, 0, to));
	assert_true(pull_from(sender, (uintptr_t)area, 1, to));
	end_process();
	assert_false(pull_from(sender, (uintptr_t)area, 1, to));
}

/* Copies pages of the child's area in another order; `pieces` may be wrong. */
static bool pull_pieces(const struct urxe_reference_piece *pieces, uint32_t n, uint8_t *to)
{
	uint8_t bytes[1 + 200 * sizeof(*pieces)];
	const struct urxe_extent extents[] = {{to, 2 * PAGE}, {to + 3 * PAGE, PAGE}};
	const struct urxe_reference reference = {
		.length = 3 * PAGE,
		.packets = 3,
		.generation = w.generation,
		.n_pieces = n,
		.sender = tx_peer(&adapter.tx, mac, QPN(CHILD)),
		.pieces = bytes + 1, /* not aligned */
	};

	memcpy(bytes + 1, pieces, (n < 200 ? n : 200) * sizeof(*pieces));
	return peer_pull(NULL, &reference, extents, 2);
}

static void fill_pages(void)
{
	for (uint8_t i = 0; i < 4; i++)
		memset(area + i * PAGE, i + 1, PAGE);
	atomic_store(&shared->step, 3);
}

static void test_receiver_pulls_pieces(void **state)
{
	static uint8_t to[4 * PAGE];
	const uint64_t at = (uintptr_t)area;
	const struct urxe_reference_piece right[] = {
		{at + 3 * PAGE, 100}, {at, PAGE}, {at + PAGE, 2 * PAGE - 100}};
	struct urxe_reference_piece wrong[200];

	(void)state;
	start_child(fill_pages);
	await_step(3);
	assert_true(pull_pieces(right, 3, to));
	assert_int_equal(to[99], 4);
	assert_int_equal(to[100], 1);
	assert_int_equal(to[PAGE + 99], 1);
	assert_int_equal(to[PAGE + 100], 2);
	assert_int_equal(to[2 * PAGE], 0);
	assert_int_equal(to[3 * PAGE], 2);
	assert_int_equal(to[3 * PAGE + 100], 3);
	/* Too short, too long, absent, and more pieces than a reference may have. */
	memcpy(wrong, right, sizeof(right));
	wrong[2].length--;
	assert_false(pull_pieces(wrong, 3, to));
	wrong[2].length = UINT64_MAX;
	assert_false(pull_pieces(wrong, 3, to));
	memcpy(wrong, right, sizeof(right));
	wrong[1].address = UINT64_MAX - PAGE;
	assert_false(pull_pieces(wrong, 3, to));
	for (int i = 0; i < 200; i++)
		wrong[i] = (struct urxe_reference_piece){at, 96};
	assert_true(pull_pieces(wrong, 128, to));
	assert_false(pull_pieces(wrong, 129, to));
	assert_false(pull_pieces(wrong, UINT32_MAX, to));
}

/* A frame that another process has sent, which had the child's QPN before: the payload is not read
 * from the child. */
static void test_reference_of_an_earlier_process_is_not_pulled(void **state)
{
	const struct published *earlier = vnic_inbox_published(w.inbox[0]);
	static uint8_t to[3 * PAGE];

	(void)state;
	start_child(fill_area);
	await_step(3);
	assert_false(pull((uintptr_t)area, earlier->table.references - w.generation, to));
}

/* The reference ends during the copy: the copy does not count. */
static void end_reference(void)
{
	published_by_child()->table.references++;
}

static void test_reference_that_ended_meanwhile_is_not_pulled(void **state)
{
	static uint8_t to[3 * PAGE];

	(void)state;
	start_child(fill_area);
	await_step(3);
	w.after_read = end_reference;
	assert_false(pull((uintptr_t)area, 0, to));
}

/* The child has lost a page, which reads as zeros until its rights are withdrawn. */
static void lose_page(void)
{
	published_by_child()->shuts++;
}

static void test_lost_memory_is_not_pulled(void **state)
{
	static uint8_t to[3 * PAGE];

	(void)state;
	start_child(fill_area);
	await_step(3);
	lose_page();
	assert_false(pull((uintptr_t)area, 0, to));
	lose_page();
	assert_true(pull((uintptr_t)area, 0, to));
	w.after_read = lose_page;
	assert_false(pull((uintptr_t)area, 0, to));
	w.after_read = NULL;
	lose_page();
	/* This process has lost a page, perhaps of the receive buffer. */
	peers_shut(&adapter_peers);
	peers_shut(&adapter_peers);
	assert_false(pull((uintptr_t)area, 0, to));
	peers_reopen(&adapter_peers);
	peers_reopen(&adapter_peers);
	assert_true(pull((uintptr_t)area, 0, to));
}

static void test_lost_memory_is_not_copied(void **state)
{
	uint8_t byte = 0;

	(void)state;
	start_child(fill_area);
	await_step(3);
	lose_page();
	assert_false(copy(false, &byte, 0, 1));
	assert_false(copy(true, &byte, 0, 1));
	lose_page();
	assert_true(copy(false, &byte, 0, 1));
	w.after_read = lose_page;
	assert_false(copy(false, &byte, 0, 1));
	w.after_read = NULL;
	lose_page();
	peers_shut(&adapter_peers);
	assert_false(copy(false, &byte, 0, 1));
	peers_reopen(&adapter_peers);
	assert_true(copy(true, &byte, 0, 1));
}

/* A receiver that cannot read this process's memory gets packets with payload. */
static void test_unreadable_sender_is_not_pulled_from(void **state)
{
	struct peer *peer;

	(void)state;
	start_child(nothing);
	peer = tx_peer(&adapter.tx, mac, QPN(CHILD));
	assert_true(peer_pulls(peer));
	atomic_store(&published_by_child()->reached[PARENT], 0);
	assert_false(peer_pulls(peer));
}

/* Random bytes in the memory that the child publishes. */
static void test_damaged_memory_does_no_harm(void **state)
{
	const uint64_t values[] = {1,
				   INT32_MAX,
				   UINT32_C(1) << 31,
				   UINT64_MAX,
				   0x5005000000001,
				   copying_word(1, PARENT, 1),
				   copying_word(getpid(), PARENT, 1)};

	(void)state;
	start_child(nothing);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		uint64_t *words = (uint64_t *)published_by_child();
		const size_t n = offsetof(struct published, table.grants) / sizeof(*words);

		for (size_t word = 0; word < n; word++)
			words[word] = values[i];
		withdraw();
		await_settled();
		tx_destroy(&adapter.tx);
		open_way(PARENT, CHILD);
		table_of(CHILD);
		withdraw();
		await_settled();
	}
}

/* Disables address randomisation, so that an executed program has the same addresses. */
static void stay_in_place(char **argv)
{
	int now = personality(UINT32_MAX);

	if (now < 0 || now & ADDR_NO_RANDOMIZE ||
	    personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0)
		return;
	execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_scattered_pieces_are_copied, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_copies_read_and_write, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_requests_are_copied_together, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_uncopyable_request_ends_the_copy, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_copies_without_lock, open_world, close_world),
		cmocka_unit_test_setup_teardown(test_peer_identity_cannot_change, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_token_is_read_in_the_peer, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_peer_with_our_identity_is_not_copied_to,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_qps_of_one_process_are_copied, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_qps_of_two_blocks_are_copied, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_unproven_peer_is_not_copied_to, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_unmapped_piece_ends_the_write, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_last_bytes_are_written_last, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_stopped_peer_can_be_copied_to, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_killed_peer_is_not_copied_to, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_new_program_is_not_written_to, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_polling_peer_counts_as_awake, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_sleeping_engine_thread_is_woken, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_engine_thread_of_this_core_counts_as_asleep,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_receiver_pulls_payloads, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_receiver_pulls_pieces, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_reference_of_an_earlier_process_is_not_pulled,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_reference_that_ended_meanwhile_is_not_pulled,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_lost_memory_is_not_pulled, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_lost_memory_is_not_copied, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_unreadable_sender_is_not_pulled_from,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_damaged_memory_does_no_harm, open_world,
						close_world),
	};

	sigset_t told;

	if (argc > 1 && !strcmp(argv[1], AGAIN))
		return executed();
	stay_in_place(argv);
	if (!is_process_vm_permitted())
		return SKIP;
	sigemptyset(&told);
	sigaddset(&told, SIGUSR1);
	sigprocmask(SIG_BLOCK, &told, NULL);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
