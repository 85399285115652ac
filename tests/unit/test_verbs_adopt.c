/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that is moved to where peers have it mapped: which is, which is not, and that it is the
 * program's own again; how another process's is reached, whatever that one offers; and copies that
 * are bound to a word.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rxe/rxe.h>
#include <vnic/inbox.h>

#include "adopt.h"
#include "arena.h"
#include "fault.h"
#include "fd.h"
#include "maps.h"
#include "peer.h"
#include "registered.h"
#include "rseq.h"
#include "threads.h"

#define PAGE  4096u
#define PAGES 8u
#define SIZE  (PAGES * PAGE)
#define SKIP  77
#define BOTH  (PROT_READ | PROT_WRITE)

static uint8_t *take(int prot, int flags, int fd)
{
	uint8_t *bytes = mmap(NULL, SIZE, prot, flags, fd, 0);

	assert_ptr_not_equal(bytes, MAP_FAILED);
	return bytes;
}

static uint8_t *take_own(void)
{
	uint8_t *bytes = take(BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	for (uint32_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	return bytes;
}

static bool holds(const uint8_t *bytes, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (bytes[i] != (uint8_t)(i * 7 + i / 256))
			return false;
	return true;
}

static bool is_shared(const void *at)
{
	bool shared = false;
	struct lines maps;
	struct mapping m;

	assert_true(maps_open(&maps));
	while (maps_next(&maps, &m))
		if (m.start <= (uintptr_t)at && (uintptr_t)at < m.end)
			shared = m.shared;
	lines_close(&maps);
	return shared;
}

/* Whether they were moved; they come back. */
static bool is_adopted(uint8_t *bytes, uint64_t length)
{
	const struct urxe_extent extent = {bytes, length};
	struct urxe_shared shared;
	bool adopted = adopt(&extent, &shared);

	if (adopted)
		adopt_release(&extent);
	return adopted;
}

static int begin(void **state)
{
	static _Alignas(64) uint8_t card[VNIC_INBOX_PUBLISHED_SIZE], book[VNIC_INBOX_SHARED_SIZE];

	(void)state;
	fd_owner_is_me();
	return peer_init(card, book) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	adopt_done();
	peer_done();
	return 0;
}

/* --- Which. */

static void test_whole_pages(void **state)
{
	uint8_t *bytes = take_own();
	const struct urxe_extent extent = {bytes + 100, SIZE - 200};
	struct urxe_shared shared;

	(void)state;
	assert_true(adopt(&extent, &shared));
	assert_ptr_equal(shared.addr, bytes + PAGE);
	assert_int_equal(shared.length, SIZE - 2 * PAGE);
	assert_false(is_shared(bytes));
	assert_true(is_shared(bytes + PAGE));
	assert_true(is_shared(bytes + SIZE - PAGE - 1));
	assert_false(is_shared(bytes + SIZE - PAGE));
	assert_true(holds(bytes, 0, SIZE));
	assert_memory_equal(arena_at(shared.window), bytes + PAGE, SIZE - 2 * PAGE);
	arena_at(shared.window)[5] = 0x99;
	assert_int_equal(bytes[PAGE + 5], 0x99);
	adopt_release(&extent);
	assert_false(is_shared(bytes + PAGE));
	assert_int_equal(bytes[PAGE + 5], 0x99);
	assert_true(holds(bytes, PAGE + 6, SIZE) && holds(bytes, 0, PAGE + 5));
	/* What the next one finds in its place. */
	assert_int_equal(arena_at(shared.window)[5], 0);
	munmap(bytes, SIZE);
}

static void test_none_whole(void **state)
{
	uint8_t *bytes = take_own();

	(void)state;
	assert_false(is_adopted(bytes + 1, PAGE));
	assert_false(is_adopted(bytes + 1, 2 * PAGE - 2));
	assert_true(is_adopted(bytes + 1, 2 * PAGE - 1));
	munmap(bytes, SIZE);
}

static void test_other_mappings(void **state)
{
	int fd = memfd_create("some", 0);
	uint8_t *bytes;

	(void)state;
	assert_int_equal(ftruncate(fd, SIZE), 0);
	bytes = take(BOTH, MAP_SHARED | MAP_ANONYMOUS, -1);
	assert_false(is_adopted(bytes, SIZE));
	munmap(bytes, SIZE);
	bytes = take(BOTH, MAP_PRIVATE, fd);
	assert_false(is_adopted(bytes, SIZE));
	munmap(bytes, SIZE);
	bytes = take(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	assert_false(is_adopted(bytes, SIZE));
	munmap(bytes, SIZE);
	bytes = take(BOTH | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	assert_false(is_adopted(bytes, SIZE));
	munmap(bytes, SIZE);
	/* A hole, and two of which one is protected. */
	bytes = take_own();
	munmap(bytes + PAGE, PAGE);
	assert_false(is_adopted(bytes, SIZE));
	assert_int_equal(mprotect(bytes + 4 * PAGE, PAGE, PROT_READ), 0);
	assert_false(is_adopted(bytes + 2 * PAGE, 4 * PAGE));
	assert_true(holds(bytes, 2 * PAGE, SIZE));
	munmap(bytes, SIZE);
	close(fd);
}

static void test_stack(void **state)
{
	uint8_t bytes[4 * PAGE];

	(void)state;
	memset(bytes, 1, sizeof(bytes));
	assert_false(is_adopted(bytes, sizeof(bytes)));
}

static void test_locked(void **state)
{
	uint8_t *bytes = take_own();

	(void)state;
	/* By the kernel's own call: with AddressSanitizer mlock(3) does nothing. Skips where the
	 * user may lock nothing (RLIMIT_MEMLOCK). */
	if (syscall(SYS_mlock, bytes, PAGE))
		skip();
	assert_false(is_adopted(bytes, SIZE));
	assert_int_equal(syscall(SYS_munlock, bytes, PAGE), 0);
	assert_true(is_adopted(bytes, SIZE));
	munmap(bytes, SIZE);
}

static void expect_refused_with(int fd)
{
	uint8_t *bytes = take_own();

	assert_true(fd >= 0);
	assert_false(is_adopted(bytes, SIZE));
	close(fd);
	assert_true(is_adopted(bytes, SIZE));
	munmap(bytes, SIZE);
}

/* By which the kernel may hold pages. */
static void test_what_is_open(void **state)
{
	uint8_t params[120] = {0}; /* struct io_uring_params */
	int fd = (int)syscall(SYS_io_uring_setup, 4, params);

	(void)state;
	if (fd >= 0)
		expect_refused_with(fd);
	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1);
	if (fd >= 0)
		expect_refused_with(fd);
	fd = socket(AF_XDP, SOCK_RAW, 0);
	if (fd >= 0)
		expect_refused_with(fd);
	fd = open("/dev/net/tun", O_RDWR);
	if (fd >= 0)
		expect_refused_with(fd);
}

static void test_aio(void **state)
{
	unsigned long context = 0;
	uint8_t *bytes = take_own();

	(void)state;
	/* A kernel without aio, or a sandbox that forbids it. */
	if (syscall(SYS_io_setup, 1, &context))
		skip();
	assert_false(is_adopted(bytes, SIZE));
	syscall(SYS_io_destroy, context);
	assert_true(is_adopted(bytes, SIZE));
	munmap(bytes, SIZE);
}

static void *wait_for(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

static void test_threads(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint8_t *bytes = take_own();
	pthread_t thread;

	(void)state;
	assert_true(threads_alone());
	pthread_mutex_lock(&lock);
	assert_int_equal(pthread_create(&thread, NULL, wait_for, &lock), 0);
	assert_false(threads_alone());
	assert_false(is_adopted(bytes, SIZE));
	/* As one of ours. */
	threads_created();
	assert_true(threads_alone());
	assert_true(is_adopted(bytes, SIZE));
	threads_ending();
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	munmap(bytes, SIZE);
}

/* Peers may write to what is another region's already. */
static void test_registered(void **state)
{
	uint8_t *bytes = take_own();

	(void)state;
	assert_int_equal(registered_add((uintptr_t)bytes + SIZE - 1, 1), 0);
	assert_false(is_adopted(bytes, SIZE));
	registered_remove((uintptr_t)bytes + SIZE - 1, 1);
	assert_true(is_adopted(bytes, SIZE));
	munmap(bytes, SIZE);
}

static void test_limits(void **state)
{
	const uint64_t length = (uint64_t)64 << 20;
	uint8_t *bytes = mmap(NULL, length, BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct urxe_extent all = {bytes, length};
	struct urxe_shared shared;
	uint32_t n = 0;

	(void)state;
	assert_false(is_adopted(bytes, length));
	for (uint64_t at = 0; at < length; at += (uint64_t)4 << 20)
		n += adopt(&(struct urxe_extent){bytes + at, (uint64_t)4 << 20}, &shared);
	assert_int_equal(n, 4);
	adopt_release(&all);
	for (n = 0; adopt(&(struct urxe_extent){bytes + (uint64_t)n * 2 * PAGE, PAGE}, &shared);)
		n++;
	assert_int_equal(n, ARENA_PLACES - 1);
	adopt_release(&all);
	assert_true(is_adopted(bytes, PAGE));
	munmap(bytes, length);
}

/* No arena by limits: nothing is moved, nothing is left open. */
static void test_no_arena(void **state)
{
	static const int limits[] = {RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_NOFILE};
	static const rlim_t least[] = {1 << 20, (rlim_t)1 << 31, 3};

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		uint8_t *bytes = take_own();
		struct rlimit was, now;
		int first;

		adopt_done();
		first = dup(0);
		close(first);
		assert_int_equal(getrlimit((__rlimit_resource_t)limits[i], &was), 0);
		now = was;
		now.rlim_cur = least[i];
		assert_int_equal(setrlimit((__rlimit_resource_t)limits[i], &now), 0);
		assert_false(is_adopted(bytes, SIZE));
		assert_int_equal(setrlimit((__rlimit_resource_t)limits[i], &was), 0);
		assert_int_equal(dup(0), first);
		close(first);
		assert_true(is_adopted(bytes, SIZE));
		munmap(bytes, SIZE);
	}
}

/* --- And back. */

/* Programs close what is not theirs: the number may be another's. */
static void test_descriptor_closed(void **state)
{
	uint8_t *bytes = take_own(), *more = take_own();
	const struct urxe_extent extent = {bytes, SIZE};
	struct urxe_shared shared;
	int fd;

	(void)state;
	assert_true(adopt(&extent, &shared));
	fd = arena_descriptor();
	close(fd);
	assert_int_equal(dup2(1, fd), fd);
	assert_false(is_adopted(more, SIZE));
	adopt_release(&extent);
	assert_false(is_shared(bytes));
	assert_true(holds(bytes, 0, SIZE));
	munmap(bytes, SIZE);
	munmap(more, SIZE);
	adopt_done();
	/* Not ours to close. */
	assert_int_equal(fcntl(fd, F_GETFD) < 0, 0);
	close(fd);
}

/* What the program has put in its place unseen is the program's. */
static void test_mapped_over(void **state)
{
	uint8_t *bytes = take_own();
	const struct urxe_extent extent = {bytes, SIZE};
	struct urxe_shared shared;

	(void)state;
	assert_true(adopt(&extent, &shared));
	assert_ptr_equal(
		mmap(bytes + PAGE, PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		bytes + PAGE);
	memset(bytes + PAGE, 0x42, PAGE);
	munmap(bytes + 3 * PAGE, PAGE);
	assert_int_equal(mprotect(bytes + 5 * PAGE, PAGE, PROT_READ), 0);
	adopt_release(&extent);
	assert_true(holds(bytes, 0, PAGE) && holds(bytes, 2 * PAGE, 3 * PAGE));
	assert_int_equal(bytes[PAGE], 0x42);
	assert_true(holds(bytes, 4 * PAGE, SIZE));
	assert_int_equal(mprotect(bytes + 3 * PAGE, PAGE, PROT_READ), -1);
	assert_false(is_shared(bytes) || is_shared(bytes + 5 * PAGE));
	munmap(bytes, SIZE);
}

/* Moved elsewhere, unseen: it stays what it is, and its place is nobody else's. */
static void test_gone_astray(void **state)
{
	uint8_t *bytes = take_own(), *to = take_own(), *more = take_own();
	const struct urxe_extent extent = {bytes, SIZE};
	struct urxe_shared shared, next;

	(void)state;
	assert_true(adopt(&extent, &shared));
	assert_ptr_equal(mremap(bytes, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	adopt_release(&extent);
	assert_true(holds(to, 0, SIZE));
	assert_true(adopt(&(struct urxe_extent){more, SIZE}, &next));
	assert_int_not_equal(next.window, shared.window);
	adopt_release(&(struct urxe_extent){more, SIZE});
	assert_true(holds(to, 0, SIZE));
	munmap(to, SIZE);
	munmap(more, SIZE);
}

/* The kernel may hold the pages by now: they stay, for as long as the program does. */
static void test_kept(void **state)
{
	uint8_t *bytes = take_own();
	const struct urxe_extent extent = {bytes, SIZE};
	struct urxe_shared shared;
	int fd = open("/dev/net/tun", O_RDWR), status;
	pid_t child;

	(void)state;
	/* It stands for any device; a container may have none that is not a terminal. */
	if (fd < 0)
		skip();
	close(fd);
	assert_true(adopt(&extent, &shared));
	fd = open("/dev/net/tun", O_RDWR);
	adopt_release(&extent);
	assert_true(is_shared(bytes) && holds(bytes, 0, SIZE));
	adopt_before_fork();
	child = fork();
	if (!child) {
		adopt_in_child();
		_exit(!holds(bytes, 0, SIZE) || is_shared(bytes) ||
		      memset(bytes, 1, SIZE) != bytes);
	}
	adopt_after_fork();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(holds(bytes, 0, SIZE));
	adopt_give_up(&(struct urxe_extent){bytes + PAGE, PAGE});
	assert_int_equal(bytes[PAGE] | bytes[2 * PAGE - 1], 0);
	assert_true(holds(bytes, 0, PAGE) && holds(bytes, 2 * PAGE, SIZE));
	munmap(bytes, SIZE);
	close(fd);
}

/* --- Others' arenas. */

static void test_reach(void **state)
{
	uint64_t token = 0x1234567812345678;
	uint8_t *view;
	int fd, pair[2];

	(void)state;
	assert_true(arena_open(token));
	view = arena_reach(getpid(), arena_descriptor(), token);
	assert_non_null(view);
	view[PAGE] = 7;
	assert_int_equal(arena_at(PAGE)[0], 7);
	arena_leave(view);
	assert_null(arena_reach(getpid(), arena_descriptor(), token + 1));
	assert_null(arena_reach(getpid(), 1000, token));
	assert_null(arena_reach(getpid(), -1, token));
	assert_null(arena_reach(0x3fffffff, arena_descriptor(), token));
	/* One that could be made shorter, and one that is. */
	fd = memfd_create("some", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, (off_t)ARENA_SIZE), 0);
	assert_int_equal(pwrite(fd, &token, sizeof(token), 0), sizeof(token));
	assert_null(arena_reach(getpid(), fd, token));
	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_null(arena_reach(getpid(), fd, token));
	close(fd);
	assert_int_equal(pipe(pair), 0);
	assert_null(arena_reach(getpid(), pair[0], token));
	close(pair[0]);
	close(pair[1]);
	arena_leave(NULL);
}

/* A connection of the program with itself maps the arena once more, and keeps no place from being
 * freed. */
static void test_reached_by_ourselves(void **state)
{
	uint8_t *bytes = take_own(), *view;
	const struct urxe_extent extent = {bytes, SIZE};
	struct urxe_shared shared;
	uint64_t token;

	(void)state;
	assert_true(adopt(&extent, &shared));
	memcpy(&token, arena_at(0), sizeof(token));
	view = arena_reach(getpid(), arena_descriptor(), token);
	assert_non_null(view);
	assert_memory_equal(view + shared.window, bytes, SIZE);
	adopt_release(&extent);
	assert_true(holds(bytes, 0, SIZE));
	assert_int_equal(arena_at(shared.window)[5], 0);
	arena_leave(view);
	munmap(bytes, SIZE);
}

/* --- Copies and atomics that a word decides about. */

static void test_copy(void **state)
{
	static uint8_t from[2 * RSEQ_COPY_MAX], to[2 * RSEQ_COPY_MAX];
	uint64_t word = 5;

	(void)state;
	for (uint32_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 11 + i / 256 + 1);
	for (uint32_t n = 1; n <= RSEQ_COPY_MAX; n += n < 1100 ? 1 : 97) {
		uint32_t at = n % 19;

		memset(to, 0, sizeof(to));
		while (rseq_copy(to + at, from + n % 7, n, &word, 5) == RSEQ_INTERRUPTED)
			;
		assert_memory_equal(to + at, from + n % 7, n);
		assert_int_equal(to[at + n], 0);
		assert_true(!at || !to[at - 1]);
		memset(to, 0, sizeof(to));
		assert_int_equal(rseq_copy(to, from, n, &word, 4), RSEQ_CHANGED);
		assert_int_equal(to[0], 0);
	}
}

static void test_atomics(void **state)
{
	uint64_t word = 5, count = 40;
	struct rseq_atomic op = {.at = &count, .operand = 2};

	(void)state;
	assert_int_equal(rseq_atomic(&op, &word, 4), RSEQ_CHANGED);
	assert_int_equal(count, 40);
	while (rseq_atomic(&op, &word, 5) == RSEQ_INTERRUPTED)
		;
	assert_int_equal(op.original, 40);
	assert_int_equal(count, 42);
	op = (struct rseq_atomic){.at = &count, .compare_swap = true, .operand = 7, .compare = 41};
	while (rseq_atomic(&op, &word, 5) == RSEQ_INTERRUPTED)
		;
	assert_int_equal(op.original, 42);
	assert_int_equal(count, 42);
	op.compare = 42;
	while (rseq_atomic(&op, &word, 5) == RSEQ_INTERRUPTED)
		;
	assert_int_equal(op.original, 42);
	assert_int_equal(count, 7);
}

static void copy_there(void *arg)
{
	uint64_t word = 5;
	uint8_t bytes[600] = {0};

	while (rseq_copy(arg, bytes, sizeof(bytes), &word, 5) == RSEQ_INTERRUPTED)
		;
	fail_msg("memory that is not there was written to");
}

/* On either side of a copy. */
static void test_fault(void **state)
{
	uint8_t *none = take(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	uint8_t some[8];
	const struct urxe_extent bytes = {none, SIZE}, other = {some, sizeof(some)};

	(void)state;
	assert_int_equal(fault_install(), 0);
	assert_false(fault_guard(NULL, &bytes, &other, copy_there, none));
	assert_false(fault_guard(NULL, &other, &bytes, copy_there, none));
	munmap(none, SIZE);
}

static uint8_t *stack;
static bool was_refused;

static void *on_stack(void *unused)
{
	const struct urxe_extent below = {stack, (uint64_t)1 << 20};
	struct urxe_shared shared;

	(void)unused;
	/* The thread that waits for us is as good as none. */
	threads_created();
	was_refused = threads_alone() && !adopt(&below, &shared);
	threads_ending();
	return NULL;
}

/* A program may have made its stack itself: our own frames are there. */
static void test_own_stack(void **state)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)state;
	stack = mmap(NULL, (size_t)1 << 20, BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(stack, MAP_FAILED);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, stack, (size_t)1 << 20), 0);
	assert_int_equal(pthread_create(&thread, &attr, on_stack, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	assert_true(was_refused);
	munmap(stack, (size_t)1 << 20);
}

/* Last: for the rest of the program's life. */
static void test_no_more(void **state)
{
	uint8_t *bytes = take_own();

	(void)state;
	assert_true(is_adopted(bytes, SIZE));
	adopt_no_more();
	assert_false(is_adopted(bytes, SIZE));
	munmap(bytes, SIZE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole_pages),
		TEST(test_none_whole),
		TEST(test_other_mappings),
		TEST(test_stack),
		TEST(test_locked),
		TEST(test_what_is_open),
		TEST(test_aio),
		TEST(test_threads),
		TEST(test_registered),
		TEST(test_limits),
		TEST(test_no_arena),
		TEST(test_descriptor_closed),
		TEST(test_mapped_over),
		TEST(test_gone_astray),
		TEST(test_reach),
		TEST(test_reached_by_ourselves),
		TEST(test_copy),
		TEST(test_atomics),
		TEST(test_fault),
		TEST(test_own_stack),
		TEST(test_kept),
		TEST(test_no_more),
	};

	if (!rseq_usable())
		return SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
