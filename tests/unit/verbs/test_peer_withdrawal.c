/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rights that the parent withdraws during the copy of the child. */
#include "peer_pair.h"

/* In the first call of a copy that takes several. */
static void stop(void)
{
	w.before_write = NULL;
	raise(SIGSTOP);
}

static void spin(void)
{
	atomic_store(&shared->step, 3);
	for (;;)
		atomic_load(&shared->step);
}

/* The child copies bytes of value 7 to two pages of the parent's area. */
static void copy_here(void (*before)(void))
{
	static uint8_t sevens[PAGE];
	const struct urxe_extent extent = {sevens, PAGE};
	const struct urxe_remote_extent remotes[] = {{(uintptr_t)area, PAGE},
						     {(uintptr_t)area + PAGE, PAGE}};
	const struct urxe_copy_part parts[] = {{&remotes[0], 1, 1, &extent},
					       {&remotes[1], 1, 1, &extent}};

	memset(sevens, 7, sizeof(sevens));
	w.before_write = before;
	atomic_store(&shared->copied,
		     1 + run(&(struct urxe_copy_job){.parts = parts, .n_parts = 2, .write = true}));
	w.before_write = NULL;
}

static void copy_stopped(void)
{
	copy_here(stop);
}

static void copy_spinning(void)
{
	copy_here(spin);
}

static void copy_when_told(void)
{
	await_step(3);
	copy_here(NULL);
}

static void await_stop(void)
{
	int status;

	assert_int_equal(waitpid(w.pid, &status, WUNTRACED), w.pid);
	assert_true(WIFSTOPPED(status));
}

static uint32_t await_copy(void)
{
	while (!atomic_load(&shared->copied))
		sched_yield();
	return atomic_load(&shared->copied) - 1;
}

/* The copy has not written to the parent's memory. */
static void expect_untouched(void)
{
	for (uint32_t i = 0; i < AREA; i++)
		assert_int_equal(area[i], 0);
}

/*
 * The child is stopped after all checks and before the system call: when it continues, the call
 * copies nothing.
 */
static void test_stopped_peer_copies_nothing_after_a_withdrawal(void **state)
{
	(void)state;
	start_child(copy_stopped);
	await_stop();
	withdraw();
	assert_true(settled());
	kill(w.pid, SIGCONT);
	assert_int_equal(await_copy(), 0);
	expect_untouched();
}

/* A process with more QPs than a block has several blocks, and one number. */
static void test_copy_by_a_later_block_is_awaited(void **state)
{
	(void)state;
	w.later_block = true;
	start_child(copy_spinning);
	await_step(3);
	withdraw();
	assert_false(settled());
	end_process();
	assert_true(settled());
	expect_untouched();
}

static void test_peer_in_a_debugger_is_settled(void **state)
{
	int status;

	(void)state;
	start_child(copy_spinning);
	await_step(3);
	withdraw();
	assert_false(settled());
	assert_int_equal(ptrace(PTRACE_SEIZE, w.pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, w.pid, 0, 0), 0);
	assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
	assert_true(settled());
}

/* A stop without a withdrawal has no effect. */
static void test_stop_without_withdrawal_has_no_effect(void **state)
{
	(void)state;
	start_child(copy_stopped);
	await_stop();
	kill(w.pid, SIGCONT);
	assert_int_equal(await_copy(), 2);
	assert_int_equal(area[2 * PAGE - 1], 7);
}

static void test_killed_peer_copies_nothing(void **state)
{
	(void)state;
	start_child(copy_spinning);
	await_step(3);
	withdraw();
	assert_false(settled());
	end_process();
	assert_true(settled());
	withdraw();
	assert_true(settled());
	expect_untouched();
}

/* A thread that has published a copy, but sleeps in another system call, does not copy. */
static void mark(void)
{
	atomic_store(&published_by_child()->copying, copying_word(gettid(), PARENT, 1));
	atomic_store(&shared->step, 3);
}

static void mark_and_pause(void)
{
	mark();
	pause();
}

static void test_copy_mark_of_a_sleeping_thread_is_settled(void **state)
{
	(void)state;
	start_child(mark_and_pause);
	await_step(3);
	withdraw();
	await_settled();
}

static void end_after_a_while(void)
{
	mark();
	while (atomic_load(&shared->step) < 4)
		;
	atomic_store(&published_by_child()->copying, 0);
	atomic_store(&shared->copied, 1);
	while (atomic_load(&shared->step) < 5)
		;
	atomic_store(&shared->copied, table_of(PARENT) ? 2 : 3);
}

static void test_withdrawal_waits_for_a_running_copy(void **state)
{
	(void)state;
	start_child(end_after_a_while);
	await_step(3);
	withdraw();
	assert_false(settled());
	atomic_store(&shared->step, 4);
	await_settled();
	assert_int_equal(await_copy(), 0);
	atomic_store(&shared->step, 5);
	while (atomic_load(&shared->copied) < 2)
		sched_yield();
	assert_int_equal(atomic_load(&shared->copied), 2); /* may copy again */
}

/*
 * This process closes the peer during the peer's copy: the wait continues, and no later copy
 * begins.
 */
static void test_closed_peer_is_awaited_and_copies_no_more(void **state)
{
	(void)state;
	start_child(end_after_a_while);
	await_step(3);
	tx_destroy(&adapter.tx);
	assert_false(settled());
	atomic_store(&shared->step, 4);
	await_settled();
	atomic_store(&shared->step, 5);
	while (atomic_load(&shared->copied) < 2)
		sched_yield();
	assert_int_equal(atomic_load(&shared->copied), 3); /* may not */
}

static void copy_until_refused(void)
{
	uint8_t byte = 7;

	while (copy(true, &byte, 0, 1))
		atomic_store(&shared->step, 3);
	atomic_store(&shared->copied, 1);
}

/*
 * The process has registered memory with userfaultfd, so its page faults may wait. This is the last
 * test: the refusal is permanent.
 */
static void test_userfaultfd_refuses_copies(void **state)
{
	const struct published *published = vnic_inbox_published(w.inbox[0]);
	static uint8_t to[3 * PAGE];
	uint32_t generation;
	uint8_t byte = 0;

	(void)state;
	start_child(copy_until_refused);
	await_step(3);
	generation = published->table.references;
	assert_true(peer_pulls(tx_peer(&adapter.tx, mac, QPN(CHILD))));
	assert_true(copy(true, &byte, PAGE, 1));
	assert_true(pull((uintptr_t)area, 0, to));
	/* As of a child of vfork, or before the first opening: the owner's own call withdraws all
	 * the same. */
	adapter_refuse_copies();
	assert_true(peers_refusing(&adapter_peers));
	fd_set_owner();
	adapter_refuse_copies();
	area[0] = 0;
	assert_int_equal(await_copy(), 0);
	expect_untouched();
	assert_false(peer_pulls(tx_peer(&adapter.tx, mac, QPN(CHILD))));
	/* This process's own requests go in packets, too. */
	assert_false(copy(false, &byte, 0, 1));
	assert_false(copy(true, &byte, 0, 1));
	/* References in flight have ended: the child's to this process, and this process's. */
	assert_false(pull((uintptr_t)area, 0, to));
	assert_int_equal(published->table.references, generation + 1);
}

/*
 * A published copy of a thread that has used more CPU time than any copy takes does not count any
 * more.
 */
static void test_stale_copy_mark_is_ignored(void **state)
{
	(void)state;
	start_child(copy_spinning);
	await_step(3);
	withdraw();
	assert_false(settled());
	await_settled();
	withdraw();
	assert_true(settled());
	assert_int_equal(
		atomic_load(
			&((struct published *)vnic_inbox_published(w.inbox[0]))->reached[CHILD]),
		0);
}

/*
 * The system call has begun with valid pieces, and sleeps in a page fault: the withdrawal waits for
 * its end.
 */
static void test_withdrawal_waits_for_a_copy_in_a_fault(void **state)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.range = {(uintptr_t)area, PAGE},
				      .mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffd_msg fault;
	struct uffdio_zeropage zero = {.range = {(uintptr_t)area, PAGE}};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	(void)state;
	/* The kernel may refuse userfaultfd(2) to users other than root. */
	if (fd < 0)
		skip();
	assert_int_equal(ioctl(fd, UFFDIO_API, &api), 0);
	start_child(copy_when_told);
	assert_int_equal(madvise(area, PAGE, MADV_DONTNEED), 0);
	assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &reg), 0);
	atomic_store(&shared->step, 3);
	/* The kernel reports the child's page fault. */
	while (read(fd, &fault, sizeof(fault)) != sizeof(fault))
		sched_yield();
	withdraw();
	assert_false(settled());
	assert_int_equal(ioctl(fd, UFFDIO_ZEROPAGE, &zero), 0);
	await_settled();
	await_copy();
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stopped_peer_copies_nothing_after_a_withdrawal,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_copy_by_a_later_block_is_awaited, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_peer_in_a_debugger_is_settled, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_stop_without_withdrawal_has_no_effect,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_killed_peer_copies_nothing, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_copy_mark_of_a_sleeping_thread_is_settled,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_withdrawal_waits_for_a_running_copy,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_closed_peer_is_awaited_and_copies_no_more,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_stale_copy_mark_is_ignored, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(test_withdrawal_waits_for_a_copy_in_a_fault,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(test_userfaultfd_refuses_copies, open_world,
						close_world),
	};

	sigset_t told;

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
