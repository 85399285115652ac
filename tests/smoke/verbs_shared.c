/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process registers memory of its own, and another one writes to it, reads it and counts in it,
 * as it is told. Whether they share that memory or not, all that the program does with it goes as
 * with any other: it forks, gives it back, grows it, protects a part of it.
 *
 * "shared" or "apart" says which it must be, as /proc/self/maps has it; "closed": shared, by a
 * program that closes what is not its own.
 */
#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"
#include "exchange.h"

#define PAGE 4096u
#define SIZE (16 * PAGE)
#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static const struct endpoint_attr attr = {
	.device = "urxe0",
	.type = IBV_QPT_RC,
	.gid_index = 1,
	.mtu = IBV_MTU_4096,
	.size = 2 * SIZE,
};

static struct endpoint ep;
static int peer;       /* the connection to it */
static bool may_share; /* memory is to be shared where it can be */

static void require(bool is, const char *what)
{
	if (!is)
		errx(1, "not so: %s", what);
}

/* --- What the other process is told to do, and has done. */

struct order {
	uint32_t opcode; /* enum ibv_wr_opcode */
	uint32_t rkey;
	uint64_t addr;
	uint32_t length;
	uint32_t at; /* in its own memory */
	uint64_t operand, compare;
	uint8_t seed;     /* WRITE: of the bytes */
	bool lock;        /* all its memory, before it does so */
	uint32_t numbers; /* WRITE: so many from 1 on, 8 bytes each, one behind the other */
};
struct outcome {
	uint32_t status;
	uint64_t sum;   /* READ: of the bytes */
	uint64_t value; /* atomics: what was there */
	bool has_arena; /* ours or its own is mapped there */
};

static uint8_t byte(uint8_t seed, uint32_t i)
{
	return (uint8_t)(seed + i * 7 + i / 251);
}

static void post(const struct order *o)
{
	struct ibv_sge sge = {(uintptr_t)ep.memory + o->at, o->length, ep.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.opcode = o->opcode;
	if (wr.opcode == IBV_WR_RDMA_WRITE || wr.opcode == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = o->addr;
		wr.wr.rdma.rkey = o->rkey;
	} else {
		wr.wr.atomic.remote_addr = o->addr;
		wr.wr.atomic.rkey = o->rkey;
		wr.wr.atomic.compare_add =
			wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? o->compare : o->operand;
		wr.wr.atomic.swap = o->operand;
	}
	if (ibv_post_send(ep.qp, &wr, &bad))
		errx(1, "ibv_post_send");
}

static uint32_t write_numbers(struct order o)
{
	uint32_t status = 0;

	for (uint64_t i = 1; i <= o.numbers && !status; i++, o.addr += sizeof(i)) {
		memcpy(ep.memory + o.at, &i, sizeof(i));
		post(&o);
		status = endpoint_completion(&ep).status;
	}
	return status;
}

static uint32_t execute(const struct order *o)
{
	if (o->numbers)
		return write_numbers(*o);
	post(o);
	return endpoint_completion(&ep).status;
}

/* Nothing is filled by it: the limit may be low, or the memory a sanitizer's. */
static void lock_all(void)
{
	if (mlockall(MCL_CURRENT | MCL_ONFAULT))
		printf("memory cannot be locked here\n");
	else
		munlockall();
}

static bool has_arena(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool has = false;

	while (maps && fgets(line, sizeof(line), maps))
		has |= strstr(line, "urxe-arena") != NULL;
	if (maps)
		fclose(maps);
	return has;
}

static int obey(int fd)
{
	struct order o;

	endpoint_open(&ep, &attr, fd);
	for (exchange_recv(fd, &o, sizeof(o)); o.length; exchange_recv(fd, &o, sizeof(o))) {
		uint8_t *bytes = ep.memory + o.at;
		struct outcome done = {0};

		for (uint32_t i = 0; i < o.length; i++)
			bytes[i] = o.opcode == IBV_WR_RDMA_WRITE ? byte(o.seed, i) : 0;
		if (o.lock)
			lock_all();
		done.status = execute(&o);
		done.has_arena = has_arena();
		for (uint32_t i = 0; i < o.length; i++)
			done.sum += (uint64_t)bytes[i] * (i + 1);
		memcpy(&done.value, bytes, o.length < 8 ? o.length : 8);
		exchange_send(fd, &done, sizeof(done));
	}
	endpoint_close(&ep);
	return 0;
}

static struct outcome tell(const struct order *o)
{
	struct outcome done;

	exchange_send(peer, o, sizeof(*o));
	exchange_recv(peer, &done, sizeof(done));
	return done;
}

static struct outcome order(struct order o)
{
	struct outcome done = tell(&o);

	if (done.status)
		errx(1, "opcode %u, %u bytes: %s", o.opcode, o.length,
		     ibv_wc_status_str(done.status));
	return done;
}

static void write_to(const struct ibv_mr *mr, const uint8_t *to, uint32_t length, uint8_t seed)
{
	order((struct order){.opcode = IBV_WR_RDMA_WRITE,
			     .rkey = mr->rkey,
			     .addr = (uintptr_t)to,
			     .length = length,
			     .at = seed % 16,
			     .seed = seed});
}

static bool holds(const uint8_t *bytes, uint32_t length, uint8_t seed)
{
	for (uint32_t i = 0; i < length; i++)
		if (bytes[i] != byte(seed, i))
			return false;
	return true;
}

static bool is_all(const uint8_t *bytes, uint32_t length, uint8_t value)
{
	for (uint32_t i = 0; i < length; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

/* --- Memory. */

/* Whether others may have it mapped. */
static bool is_shared(const void *at)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512], s;
	bool shared = false;

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*3c%c", &start, &end, &s) == 3 &&
		    start <= (uintptr_t)at && (uintptr_t)at < end)
			shared = s == 's';
	if (maps)
		fclose(maps);
	return shared;
}

static uint8_t *take_pages(void)
{
	uint8_t *bytes =
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (bytes == MAP_FAILED)
		err(1, "mmap");
	memset(bytes, 0xee, SIZE);
	return bytes;
}

static struct ibv_mr *offer(void *at, uint64_t length)
{
	struct ibv_mr *mr = ibv_reg_mr(ep.pd, at, length, ALL);

	if (!mr)
		err(1, "ibv_reg_mr");
	return mr;
}

static void give_back(struct ibv_mr *mr)
{
	if (ibv_dereg_mr(mr))
		errx(1, "ibv_dereg_mr");
}

/* Pages are another program's no longer, and behave as pages do. */
static void expect_own(uint8_t *bytes)
{
	require(!is_shared(bytes), "what was given back is the program's own");
	require(!madvise(bytes, SIZE, MADV_DONTNEED) && is_all(bytes, SIZE, 0),
		"pages that are given up are zero");
	memset(bytes, 1, SIZE);
}

/* --- Checks. */

static void check_bytes(void)
{
	static const uint32_t lengths[] = {511,   512,   513,   519,   520,   521,   4096, 16383,
					   16384, 16385, 16391, 16392, 16393, 32768, 60000};
	uint8_t *bytes = take_pages(), seed = 1;
	struct ibv_mr *mr = offer(bytes, SIZE);

	require(is_shared(bytes) == may_share, "pages are shared, or not");
	for (uint32_t i = 1; i <= 40 + sizeof(lengths) / sizeof(lengths[0]); i++, seed++) {
		uint32_t length = i <= 40 ? i : lengths[i - 41], at = 8 + i % 11;

		memset(bytes, 0xee, SIZE);
		write_to(mr, bytes + at, length, seed);
		require(holds(bytes + at, length, seed), "what was written is there");
		require(is_all(bytes, at, 0xee) &&
				is_all(bytes + at + length, SIZE - at - length, 0xee),
			"nothing is written beside it");
	}
	give_back(mr);
	expect_own(bytes);
	munmap(bytes, SIZE);
}

static void check_read(void)
{
	uint8_t *bytes = take_pages();
	struct ibv_mr *mr = offer(bytes, SIZE);

	for (uint32_t i = 0; i < SIZE; i++)
		bytes[i] = byte(9, i);
	for (uint32_t length = 1; length <= SIZE - 3; length = length * 3 / 2 + 1) {
		struct outcome done = order((struct order){.opcode = IBV_WR_RDMA_READ,
							   .rkey = mr->rkey,
							   .addr = (uintptr_t)bytes + 3,
							   .length = length,
							   .at = length % 16});
		uint64_t sum = 0;

		for (uint32_t i = 0; i < length; i++)
			sum += (uint64_t)bytes[3 + i] * (i + 1);
		require(sum == done.sum, "what is read is what is there");
	}
	give_back(mr);
	munmap(bytes, SIZE);
}

static struct outcome count(const struct ibv_mr *mr, const void *at, uint32_t opcode,
			    uint64_t operand, uint64_t compare)
{
	return tell(&(struct order){.opcode = opcode,
				    .rkey = mr->rkey,
				    .addr = (uintptr_t)at,
				    .length = 8,
				    .operand = operand,
				    .compare = compare});
}

static void check_atomics(void)
{
	uint8_t *bytes = take_pages();
	struct ibv_mr *mr = offer(bytes, SIZE);
	uint64_t *word = (uint64_t *)(void *)(bytes + PAGE);

	*word = 40;
	require(count(mr, word, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0).value == 40 && *word == 42,
		"a number is added");
	require(count(mr, word, IBV_WR_ATOMIC_CMP_AND_SWP, 7, 41).value == 42 && *word == 42,
		"what is another is not swapped");
	require(count(mr, word, IBV_WR_ATOMIC_CMP_AND_SWP, 7, 42).value == 42 && *word == 7,
		"what is the same is swapped");
	give_back(mr);
	munmap(bytes, SIZE);
}

/* The pages that it has only a part of are others', too. */
static void check_heap(void)
{
	const uint32_t length = 3 * PAGE + 100;
	uint8_t *before = malloc(1000), *bytes = malloc(length), *behind = malloc(1000);
	struct ibv_mr *mr;

	require(before && bytes && behind, "memory");
	memset(before, 0xaa, 1000);
	memset(bytes, 0xee, length);
	memset(behind, 0xbb, 1000);
	mr = offer(bytes, length);
	require(is_shared(bytes + PAGE) == may_share && !is_shared(bytes),
		"whole pages are shared");
	for (uint8_t i = 0; i < 50; i++) {
		write_to(mr, bytes + i, length - 2 * i, i);
		behind[i] = i;
		require(holds(bytes + i, length - 2 * i, i), "what was written is there");
	}
	give_back(mr);
	require(holds(bytes + 49, length - 98, 49) && !is_shared(bytes + PAGE), "it stays");
	require(is_all(before, 1000, 0xaa) && is_all(behind + 50, 950, 0xbb), "neighbours stay");
	bytes = realloc(bytes, 100 * PAGE);
	require(bytes && holds(bytes + 49, length - 98, 49), "it is there when it has grown");
	free(bytes);
	bytes = calloc(1, 100 * PAGE);
	require(bytes && is_all(bytes, 100 * PAGE, 0), "what is cleared is zero");
	free(before);
	free(bytes);
	free(behind);
}

/* What was written before is the child's, too, and nothing that comes later. */
static void check_fork(void)
{
	uint8_t *bytes = take_pages();
	struct ibv_mr *mr = offer(bytes, SIZE);
	int go[2], status;
	pid_t child;
	char c;

	write_to(mr, bytes, SIZE, 1);
	if (pipe(go))
		err(1, "pipe");
	child = fork();
	if (!child) {
		if (read(go[0], &c, 1) != 1 || !holds(bytes, SIZE, 1))
			_exit(1);
		memset(bytes, 0x55, SIZE);
		_exit(0);
	}
	write_to(mr, bytes, SIZE, 2);
	require(write(go[1], "", 1) == 1 && waitpid(child, &status, 0) == child && !status,
		"a child has what was there before");
	require(holds(bytes, SIZE, 2), "what a child writes is its own");
	write_to(mr, bytes, SIZE, 3);
	require(holds(bytes, SIZE, 3), "a parent is written to");
	give_back(mr);
	require(holds(bytes, SIZE, 3), "it stays");
	expect_own(bytes);
	munmap(bytes, SIZE);
	close(go[0]);
	close(go[1]);
}

/* What comes while the pages are moved back is not lost with those that they were. */
static void fork_meanwhile(uint64_t *numbers, uint32_t n)
{
	struct ibv_mr *mr = offer(numbers, n * sizeof(*numbers));
	struct outcome done;
	pid_t child;

	exchange_send(peer,
		      &(struct order){.opcode = IBV_WR_RDMA_WRITE,
				      .rkey = mr->rkey,
				      .addr = (uintptr_t)numbers,
				      .length = sizeof(*numbers),
				      .numbers = n},
		      sizeof(struct order));
	while (!((volatile uint64_t *)numbers)[n / 50])
		;
	child = fork();
	if (!child)
		_exit(0);
	require(waitpid(child, NULL, 0) == child, "waitpid");
	exchange_recv(peer, &done, sizeof(done));
	require(!done.status, "all was written");
	for (uint32_t i = 0; i < n; i++)
		require(numbers[i] == i + 1, "what is written during a fork is there");
	give_back(mr);
}

static void check_fork_meanwhile(void)
{
	const uint32_t n = 1 << 17;
	uint64_t *numbers = mmap(NULL, n * sizeof(*numbers), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(numbers != MAP_FAILED, "mmap");
	for (int i = 0; i < 5; i++) {
		memset(numbers, 0, n * sizeof(*numbers));
		fork_meanwhile(numbers, n);
	}
	munmap(numbers, n * sizeof(*numbers));
}

static void check_commands(void)
{
	uint8_t *bytes = take_pages();
	struct ibv_mr *mr = offer(bytes, SIZE);
	FILE *out;

	require(!system("true"), "a command runs");
	out = popen("cat >/dev/null", "w");
	require(out && fwrite(bytes, 1, SIZE, out) == SIZE && !pclose(out), "another one reads");
	write_to(mr, bytes, SIZE, 4);
	require(holds(bytes, SIZE, 4) && is_shared(bytes) == may_share, "nothing has changed");
	give_back(mr);
	munmap(bytes, SIZE);
}

static void check_overlap(void)
{
	uint8_t *bytes = take_pages();
	struct ibv_mr *first = offer(bytes, 8 * PAGE), *second = offer(bytes + 4 * PAGE, 12 * PAGE);

	write_to(second, bytes + 4 * PAGE, 12 * PAGE, 5);
	require(holds(bytes + 4 * PAGE, 12 * PAGE, 5), "by the second region");
	write_to(first, bytes, 8 * PAGE, 6);
	require(holds(bytes, 8 * PAGE, 6), "by the first");
	give_back(first);
	write_to(second, bytes + 4 * PAGE, 12 * PAGE, 7);
	require(holds(bytes + 4 * PAGE, 12 * PAGE, 7), "by the second, when the first has gone");
	give_back(second);
	require(holds(bytes + 4 * PAGE, 12 * PAGE, 7), "it stays");
	expect_own(bytes);
	munmap(bytes, SIZE);
}

/* Mappings are one again afterwards: only then can it grow as a whole. */
static void check_changes(void)
{
	uint8_t *bytes = take_pages(), *grown;
	struct ibv_mr *mr = offer(bytes, SIZE);

	write_to(mr, bytes, SIZE, 8);
	require(!mprotect(bytes + PAGE, PAGE, PROT_READ), "mprotect");
	require(!is_shared(bytes) && holds(bytes, SIZE, 8), "protected memory is not shared");
	require(!mprotect(bytes + PAGE, PAGE, PROT_READ | PROT_WRITE), "mprotect");
	write_to(mr, bytes, SIZE, 9);
	require(holds(bytes, SIZE, 9), "it is written to");
	give_back(mr);
	mr = offer(bytes, SIZE);
	require(is_shared(bytes) == may_share, "it is shared anew");
	write_to(mr, bytes, SIZE, 10);
	require(!madvise(bytes, PAGE, MADV_DONTNEED) && is_all(bytes, PAGE, 0), "given up is zero");
	give_back(mr);
	mr = offer(bytes, SIZE);
	write_to(mr, bytes, SIZE, 11);
	give_back(mr);
	grown = mremap(bytes, SIZE, 4 * SIZE, MREMAP_MAYMOVE);
	require(grown != MAP_FAILED && holds(grown, SIZE, 11) && is_all(grown + SIZE, 3 * SIZE, 0),
		"it grows");
	mr = offer(grown, SIZE);
	bytes = mremap(grown, 4 * SIZE, 8 * SIZE, MREMAP_MAYMOVE);
	require(bytes != MAP_FAILED && holds(bytes, SIZE, 11), "it grows while it is registered");
	give_back(mr);
	munmap(bytes, 8 * SIZE);
}

/* --- With another thread. */

static struct {
	_Atomic uint64_t *words; /* one in each page */
	atomic_bool stop;
	uint64_t rounds;
} counting;

static void *go_on_counting(void *unused)
{
	(void)unused;
	do {
		for (uint32_t i = 0; i < SIZE / PAGE; i++)
			atomic_store(&counting.words[i * PAGE / 8],
				     atomic_load(&counting.words[i * PAGE / 8]) + 1);
		counting.rounds++;
	} while (!atomic_load(&counting.stop));
	return NULL;
}

/* Nothing that it writes while regions come and go is lost. */
static void check_thread(void)
{
	uint8_t *bytes = take_pages(), *others = take_pages();
	struct ibv_mr *mr, *other;
	pthread_t thread;
	int status;
	pid_t child;

	memset(bytes, 0, SIZE);
	mr = offer(bytes, SIZE);
	require(is_shared(bytes) == may_share, "shared before there is a thread");
	counting.words = (_Atomic uint64_t *)(void *)bytes;
	require(!pthread_create(&thread, NULL, go_on_counting, NULL), "pthread_create");
	other = offer(others, SIZE);
	require(!is_shared(others), "with a thread nothing is moved");
	write_to(other, others, SIZE, 12);
	write_to(mr, bytes + 100, 3000, 13);
	give_back(mr);
	mr = offer(bytes, SIZE);
	write_to(mr, bytes + 100, 3000, 14);
	child = fork();
	if (!child)
		_exit(!holds(bytes + 100, 3000, 14));
	require(waitpid(child, &status, 0) == child && !status, "a child has all of it");
	give_back(mr);
	atomic_store(&counting.stop, true);
	pthread_join(thread, NULL);
	for (uint32_t i = 0; i < SIZE / PAGE; i++)
		require(counting.words[i * PAGE / 8] == counting.rounds, "all was counted");
	require(holds(bytes + 100, 3000, 14) && holds(others, SIZE, 12),
		"what was written is there");
	expect_own(bytes);
	give_back(other);
	munmap(bytes, SIZE);
	munmap(others, SIZE);
}

static void *wait_for(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

/* What grows does not come to have what was registered beside it. */
static void check_growth(void)
{
	const uint64_t much = (uint64_t)128 << 20;
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint8_t *bytes = take_pages(), *apart = take_pages(), *other = take_pages(), *grown;
	struct ibv_mr *mr, *next;
	pthread_t thread;

	munmap(apart, SIZE);
	mr = offer(bytes, SIZE);
	next = offer(other, SIZE);
	pthread_mutex_lock(&lock);
	require(!pthread_create(&thread, NULL, wait_for, &lock), "pthread_create");
	give_back(mr);
	grown = mremap(bytes, SIZE, (uint64_t)32 << 20, MREMAP_MAYMOVE);
	require(grown != MAP_FAILED && is_all(grown, SIZE, 0xee) &&
			is_all(grown + SIZE, (32 << 20) - SIZE, 0),
		"it grows by zeros");
	bytes = mremap(grown, (uint64_t)32 << 20, much, MREMAP_MAYMOVE);
	require(bytes == MAP_FAILED || is_all(bytes + SIZE, (uint32_t)(much - SIZE), 0),
		"it grows by zeros only");
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	give_back(next);
	munmap(other, SIZE);
	if (bytes == MAP_FAILED)
		munmap(grown, (uint64_t)32 << 20);
	else
		munmap(bytes, much);
}

static void close_arena(void)
{
	char name[32], target[64];

	for (int fd = 3; fd < 1024; fd++) {
		ssize_t n;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = 0;
		if (strstr(target, "urxe-arena"))
			close(fd);
	}
}

/* Who closes what is not his has his memory all the same, and so have his children. */
static void check_closed(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint8_t *bytes = take_pages();
	struct ibv_mr *mr = offer(bytes, SIZE);
	pthread_t thread;
	int status;
	pid_t child;

	/* The first one of a connection goes in packets. */
	write_to(mr, bytes, SIZE, 17);
	write_to(mr, bytes, SIZE, 18);
	close_arena();
	pthread_mutex_lock(&lock);
	require(!pthread_create(&thread, NULL, wait_for, &lock), "pthread_create");
	child = fork();
	if (!child) {
		bool all = holds(bytes, SIZE, 18);

		memset(bytes, 0x55, SIZE);
		_exit(!all);
	}
	require(waitpid(child, &status, 0) == child && !status, "a child has all of it");
	require(holds(bytes, SIZE, 18), "what a child writes is its own");
	write_to(mr, bytes, SIZE, 19);
	require(holds(bytes, SIZE, 19), "it is written to");
	give_back(mr);
	require(!madvise(bytes, SIZE, MADV_DONTNEED) && is_all(bytes, SIZE, 0),
		"pages that are given up are zero");
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	munmap(bytes, SIZE);
}

/* The kernel may write to the pages that it knows, at any time. */
static void check_ring(void)
{
	uint8_t params[120] = {0}; /* struct io_uring_params */
	int ring = (int)syscall(SYS_io_uring_setup, 4, params);
	uint8_t *bytes = take_pages();
	struct ibv_mr *mr;

	if (ring < 0) {
		printf("no io_uring here\n");
	} else {
		mr = offer(bytes, SIZE);
		require(!is_shared(bytes), "with a ring nothing is moved");
		write_to(mr, bytes, SIZE, 15);
		require(holds(bytes, SIZE, 15), "it is written to");
		give_back(mr);
		close(ring);
	}
	munmap(bytes, SIZE);
}

/* More regions than there are places, and more memory than is ever moved. */
static void check_many(void)
{
	struct ibv_mr *mrs[100];
	uint8_t *bytes[100];

	for (uint8_t i = 0; i < 100; i++) {
		bytes[i] = take_pages();
		mrs[i] = offer(bytes[i], SIZE);
		write_to(mrs[i], bytes[i], SIZE, i);
	}
	for (uint8_t i = 0; i < 100; i++) {
		require(holds(bytes[i], SIZE, i), "each has its own");
		give_back(mrs[i]);
		require(holds(bytes[i], SIZE, i), "and keeps it");
		expect_own(bytes[i]);
		munmap(bytes[i], SIZE);
	}
}

/* Who locks its memory must not lock gigabytes that are arenas'. Nothing is shared behind it. */
static void check_locked(void)
{
	uint8_t *bytes = take_pages();
	struct ibv_mr *mr = offer(bytes, SIZE);
	struct order o = {.opcode = IBV_WR_RDMA_WRITE,
			  .rkey = mr->rkey,
			  .addr = (uintptr_t)bytes,
			  .length = SIZE,
			  .seed = 16};

	require(is_shared(bytes) == may_share && order(o).has_arena == may_share,
		"pages are shared, or not");
	o.lock = true;
	o.seed = 17;
	require(!order(o).has_arena && holds(bytes, SIZE, 17), "one that writes has locked all");
	lock_all();
	require(!has_arena() && holds(bytes, SIZE, 17), "one that is written to has locked all");
	o.seed = 18;
	require(!order(o).has_arena && holds(bytes, SIZE, 18), "it is written to");
	give_back(mr);
	mr = offer(bytes, SIZE);
	require(!has_arena(), "nothing is shared any more");
	give_back(mr);
	munmap(bytes, SIZE);
}

static pid_t start(void)
{
	char fd[16];
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		err(1, "socketpair");
	pid = fork();
	if (pid == 0) {
		snprintf(fd, sizeof(fd), "%d", dup(pair[1]));
		execl("/proc/self/exe", "verbs_shared", "obey", fd, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	peer = pair[0];
	endpoint_open(&ep, &attr, peer);
	return pid;
}

int main(int argc, char **argv)
{
	static void (*const checks[])(void) = {
		check_bytes,          check_read,     check_atomics, check_heap,    check_fork,
		check_fork_meanwhile, check_commands, check_overlap, check_changes, check_ring,
		check_many,           check_thread,   check_growth,  check_locked};
	const struct order end = {0};
	int status;
	bool closes;
	pid_t pid;

	if (argc == 3 && !strcmp(argv[1], "obey"))
		return obey(atoi(argv[2]));
	if (argc != 2)
		errx(1, "usage: verbs_shared shared|apart|closed");
	may_share = strcmp(argv[1], "apart") != 0;
	closes = !strcmp(argv[1], "closed");
	pid = start();
	if (closes)
		check_closed();
	for (size_t i = 0; !closes && i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i]();
	exchange_send(peer, &end, sizeof(end));
	require(waitpid(pid, &status, 0) == pid && !status, "the other one ends well");
	endpoint_close(&ep);
	printf("%s: all is as it should be\n", argv[1]);
	return 0;
}
