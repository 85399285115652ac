/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The program unmaps, protects, moves or truncates memory that it has registered. Each access fails
 * for its owner and for the requester, also if other memory is mapped at the address. All other
 * accesses succeed, and the program keeps its own handlers of SIGSEGV and SIGBUS.
 */
#include <err.h>
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <linux/mman.h>

#include "loop.h"

#define ROOM    ((size_t)16 * 4096)
#define LENGTH  (3 * 4096) /* of a message, except of atomics: several packets */
#define SECONDS 60

#define HUGE_PAGE ((size_t)2 << 20)

static struct ibv_context *context;
static struct ibv_pd *pd;

struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *room;
	int file; /* that backs the room */
};

static void create(struct side *s)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};

	s->file = memfd_create("room", MFD_CLOEXEC);
	if (s->file < 0 || ftruncate(s->file, ROOM))
		err(1, "no file");
	s->room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, s->file, 0);
	s->mr = s->room != MAP_FAILED ? ibv_reg_mr(pd, s->room, ROOM, LOOP_ACCESS) : NULL;
	s->cq = ibv_create_cq(context, 32, NULL, NULL, 0);
	init.send_cq = init.recv_cq = s->cq;
	s->qp = s->mr && s->cq ? ibv_create_qp(pd, &init) : NULL;
	if (!s->qp)
		err(1, "cannot create a QP");
}

static void open_pair(struct side pair[2])
{
	create(&pair[0]);
	create(&pair[1]);
	loop_connect(pair[0].qp, pair[1].qp->qp_num);
	loop_connect(pair[1].qp, pair[0].qp->qp_num);
}

static void close_pair(struct side pair[2])
{
	for (int i = 0; i < 2; i++) {
		if (ibv_destroy_qp(pair[i].qp) || ibv_destroy_cq(pair[i].cq) ||
		    ibv_dereg_mr(pair[i].mr))
			err(1, "cannot destroy an object");
		munmap(pair[i].room, ROOM);
		close(pair[i].file);
	}
}

static void post_recv(struct side *s)
{
	struct ibv_sge sge = {(uintptr_t)s->room, LENGTH, s->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(s->qp, &wr, &bad))
		err(1, "cannot post a receive");
}

static void post_send(struct side *s, enum ibv_wr_opcode opcode, const struct side *peer)
{
	bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_sge sge = {(uintptr_t)s->room, atomic ? 8 : LENGTH, s->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr = {.rdma = {(uintptr_t)peer->room, peer->mr->rkey}}},
			   *bad;

	if (atomic) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->room;
		wr.wr.atomic.rkey = peer->mr->rkey;
	}
	if (ibv_post_send(s->qp, &wr, &bad))
		err(1, "cannot post a send");
}

static enum ibv_wc_status completion(struct side *s)
{
	time_t end = time(NULL) + SECONDS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(s->cq, 1, &wc)))
		if (time(NULL) > end)
			errx(1, "no completion");
	if (n < 0)
		errx(1, "ibv_poll_cq");
	return wc.status;
}

static void expect(enum ibv_wc_status wanted, struct side *s, const char *what)
{
	enum ibv_wc_status got = completion(s);

	if (got != wanted)
		errx(1, "%s: %s instead of %s", what, ibv_wc_status_str(got),
		     ibv_wc_status_str(wanted));
}

/* --- Harm to registered memory, and the errors that follow */

static void unmap(struct side *s)
{
	if (munmap(s->room, ROOM))
		err(1, "munmap");
}

/* A raw system call, which the library does not intercept: it learns of the harm by a fault. */
static void unmap_unseen(struct side *s)
{
	if (syscall(SYS_munmap, s->room, ROOM))
		err(1, "munmap");
}

/* Unmaps the memory behind the first packets, which arrive before the others fail. */
static void unmap_the_rest(struct side *s)
{
	if (munmap(s->room + 4096, ROOM - 4096))
		err(1, "munmap");
}

static void truncate_file(struct side *s)
{
	if (ftruncate(s->file, 0))
		err(1, "ftruncate");
}

static void protect(struct side *s)
{
	if (mprotect(s->room, ROOM, PROT_NONE))
		err(1, "mprotect");
}

static void move(struct side *s)
{
	void *to = mremap(s->room, ROOM, ROOM, MREMAP_MAYMOVE | MREMAP_FIXED,
			  mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	if (to == MAP_FAILED || munmap(to, ROOM))
		err(1, "mremap");
}

static const struct {
	const char *name;
	void (*harm)(struct side *s);
	bool atomics; /* atomics fail, too */
} harms[] = {{"unmapped unseen", unmap_unseen, true},
	     {"unmapped in part", unmap_the_rest, false},
	     {"truncated", truncate_file, true},
	     {"protected", protect, true},
	     {"moved", move, true},
	     {"unmapped", unmap, true}};

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	int side; /* whose memory is harmed; 0 = the requester's */
	enum ibv_wc_status status;
	enum ibv_wc_status recv_status;
} operations[] = {
	{"a send of", IBV_WR_SEND, 0, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS},
	{"a write of", IBV_WR_RDMA_WRITE, 0, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS},
	{"a read into", IBV_WR_RDMA_READ, 0, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS},
	{"an atomic into", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS},
	{"a receive into", IBV_WR_SEND, 1, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR},
	{"a write to", IBV_WR_RDMA_WRITE, 1, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{"a read of", IBV_WR_RDMA_READ, 1, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{"an atomic on", IBV_WR_ATOMIC_FETCH_AND_ADD, 1, IBV_WC_REM_ACCESS_ERR,
	 IBV_WC_WR_FLUSH_ERR},
};

static void check_harm(unsigned int harm, unsigned int operation)
{
	struct side pair[2];
	char what[64];

	snprintf(what, sizeof(what), "%s memory that was %s", operations[operation].name,
		 harms[harm].name);
	open_pair(pair);
	post_recv(&pair[1]);
	harms[harm].harm(&pair[operations[operation].side]);
	post_send(&pair[0], operations[operation].opcode, &pair[1]);
	expect(operations[operation].status, &pair[0], what);
	if (operations[operation].recv_status)
		expect(operations[operation].recv_status, &pair[1], what);
	close_pair(pair);
}

static void exchange(struct side pair[2], uint8_t content)
{
	memset(pair[0].room, content, LENGTH);
	memset(pair[1].room, 0, LENGTH);
	post_recv(&pair[1]);
	post_send(&pair[0], IBV_WR_SEND, &pair[1]);
	expect(IBV_WC_SUCCESS, &pair[0], "a send of others");
	expect(IBV_WC_SUCCESS, &pair[1], "a receive of others");
	if (memcmp(pair[0].room, pair[1].room, LENGTH))
		errx(1, "others' bytes are wrong");
}

static void check_all_harms(void)
{
	struct side others[2];
	uint8_t content = 0;

	open_pair(others);
	for (unsigned int h = 0; h < sizeof(harms) / sizeof(harms[0]); h++)
		for (unsigned int o = 0; o < sizeof(operations) / sizeof(operations[0]); o++) {
			if (operations[o].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD &&
			    !harms[h].atomics)
				continue;
			check_harm(h, o);
			exchange(others, ++content);
		}
	close_pair(others);
}

/* --- Other memory at the address of registered memory */

static void *map(void *at, int flags)
{
	void *mapped =
		mmap(at, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (mapped == MAP_FAILED || (at && mapped != at))
		err(1, "mmap at a place");
	return mapped;
}

static void replace_in_two(struct side *s)
{
	unmap(s);
	map(s->room, MAP_FIXED_NOREPLACE);
}

static void replace_in_one(struct side *s)
{
	map(s->room, MAP_FIXED);
}

/* Linux removes the old mapping before it asks the file, which cannot be mapped. */
static void replace_after_failure(struct side *s)
{
	int file = socket(AF_UNIX, SOCK_STREAM, 0);

	if (mmap(s->room, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) !=
	    MAP_FAILED)
		errx(1, "a socket is mapped");
	close(file);
	map(s->room, MAP_FIXED_NOREPLACE);
}

static void move_away(struct side *s)
{
	if (mremap(s->room, ROOM, ROOM, MREMAP_MAYMOVE | MREMAP_FIXED, map(NULL, 0)) == MAP_FAILED)
		err(1, "mremap");
	map(s->room, MAP_FIXED_NOREPLACE);
}

static void move_over(struct side *s)
{
	if (mremap(map(NULL, 0), ROOM, ROOM, MREMAP_MAYMOVE | MREMAP_FIXED, s->room) != s->room)
		err(1, "mremap");
}

/* The kernel rounds the new length up to 4096. */
static void shrink(struct side *s)
{
	if (mremap(s->room, ROOM, 4000, 0) != s->room)
		err(1, "mremap");
	if (mmap(s->room + 4096, ROOM - 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != s->room + 4096)
		err(1, "mmap at a place");
}

static const struct {
	const char *name;
	void (*replace)(struct side *s);
	size_t kept; /* bytes that stay registered */
} replacements[] = {
	{"unmapped and mapped anew", replace_in_two, 0},
	{"mapped over", replace_in_one, 0},
	{"mapped over by a call that fails", replace_after_failure, 0},
	{"moved away", move_away, 0},
	{"moved over", move_over, 0},
	{"shrunk", shrink, 4096},
};

/* The new memory at the address does not belong to the region. */
static void check_replacement(unsigned int how, unsigned int operation)
{
	struct side pair[2], *side;
	char what[80];

	snprintf(what, sizeof(what), "%s memory that was %s", operations[operation].name,
		 replacements[how].name);
	open_pair(pair);
	side = &pair[operations[operation].side];
	memset(pair[0].room, 0x11, ROOM);
	memset(pair[1].room, 0x22, ROOM);
	post_recv(&pair[1]);
	replacements[how].replace(side);
	memset(side->room + replacements[how].kept, 0x5a, ROOM - replacements[how].kept);
	post_send(&pair[0], operations[operation].opcode, &pair[1]);
	expect(operations[operation].status, &pair[0], what);
	if (operations[operation].recv_status)
		expect(operations[operation].recv_status, &pair[1], what);
	for (size_t i = replacements[how].kept; i < ROOM; i++)
		if (side->room[i] != 0x5a)
			errx(1, "%s: byte %zu of the other memory is %#x", what, i, side->room[i]);
	close_pair(pair);
}

static void check_all_replacements(void)
{
	for (unsigned int h = 0; h < sizeof(replacements) / sizeof(replacements[0]); h++)
		for (unsigned int o = 0; o < sizeof(operations) / sizeof(operations[0]); o++)
			if (operations[o].opcode != IBV_WR_ATOMIC_FETCH_AND_ADD ||
			    !replacements[h].kept)
				check_replacement(h, o);
}

/* A System V shared memory segment is detached, and another one attached in its place. */
static void check_shmdt(void)
{
	int id = shmget(IPC_PRIVATE, ROOM, 0600);
	struct side pair[2];
	uint8_t *segment = shmat(id, NULL, 0);
	struct ibv_mr *mr;

	shmctl(id, IPC_RMID, NULL);
	mr = segment != MAP_FAILED ? ibv_reg_mr(pd, segment, ROOM, LOOP_ACCESS) : NULL;
	if (!mr)
		err(1, "no segment");
	open_pair(pair);
	if (shmdt(segment))
		err(1, "shmdt");
	map(segment, MAP_FIXED_NOREPLACE);
	post_send(&pair[0], IBV_WR_RDMA_WRITE, &(struct side){.room = segment, .mr = mr});
	expect(IBV_WC_REM_ACCESS_ERR, &pair[0], "a write to a segment that was detached");
	if (segment[0] || ibv_dereg_mr(mr) || munmap(segment, ROOM))
		errx(1, "a segment that was detached is still written");
	close_pair(pair);
}

/* The call detaches also what lies behind a hole. */
static void check_shmdt_behind_a_hole(void)
{
	int id = shmget(IPC_PRIVATE, ROOM, 0600);
	struct side pair[2], behind;
	uint8_t *segment = shmat(id, NULL, 0);

	shmctl(id, IPC_RMID, NULL);
	behind = (struct side){.room = segment + ROOM - LENGTH};
	behind.mr = ibv_reg_mr(pd, behind.room, LENGTH, LOOP_ACCESS);
	if (!behind.mr)
		err(1, "no segment");
	open_pair(pair);
	if (munmap(segment, 4096) || shmdt(segment))
		err(1, "shmdt");
	map(segment, MAP_FIXED_NOREPLACE);
	post_send(&pair[0], IBV_WR_RDMA_WRITE, &behind);
	expect(IBV_WC_REM_ACCESS_ERR, &pair[0], "a write behind a hole of a detached segment");
	if (ibv_dereg_mr(behind.mr) || munmap(segment, ROOM))
		err(1, "memory that is given back");
	close_pair(pair);
}

/*
 * The kernel replaces a whole huge page, though the program asks for less. Without a reservation it
 * needs none: nothing accesses it before the program maps other memory there.
 */
static void check_huge_page(int flags, int file)
{
	uint8_t *room = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *start = (uint8_t *)(((uintptr_t)room + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	struct ibv_mr *mr = ibv_reg_mr(pd, start, HUGE_PAGE, LOOP_ACCESS);
	struct side pair[2];

	if (!mr)
		err(1, "no region");
	if (mmap(start, 1, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_NORESERVE | flags, file, 0) !=
		    start ||
	    syscall(SYS_munmap, start, HUGE_PAGE) ||
	    mmap(start, HUGE_PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != start)
		err(1, "a huge page");
	open_pair(pair);
	post_send(&pair[0], IBV_WR_RDMA_WRITE,
		  &(struct side){.room = start + HUGE_PAGE - ROOM, .mr = mr});
	expect(IBV_WC_REM_ACCESS_ERR, &pair[0], "a write to what a huge page has replaced");
	close_pair(pair);
	if (ibv_dereg_mr(mr) || munmap(room, 2 * HUGE_PAGE))
		err(1, "memory that is given back");
}

static void check_huge_pages(void)
{
	int file = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	struct statfs fs;

	/* The kernel may have no huge pages, or others by default. */
	if (file < 0 || fstatfs(file, &fs) || fs.f_bsize != HUGE_PAGE)
		return;
	check_huge_page(MAP_SHARED, file);
	check_huge_page(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	check_huge_page(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB, -1);
	close(file);
}

/* Calls that unmap nothing, or other memory. */
static void check_unrelated_calls(void)
{
	struct side pair[2];
	uint8_t *near;
	pid_t child;
	int status;

	open_pair(pair);
	near = map(NULL, 0);
	if (munmap(near, ROOM) || munmap(pair[1].room + 1, ROOM) != -1 || errno != EINVAL ||
	    mmap(pair[1].room, ROOM, PROT_READ, MAP_SHARED | MAP_FIXED, -1, 0) != MAP_FAILED ||
	    errno != EBADF ||
	    mmap(pair[1].room, ROOM, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		 -1, 0) != MAP_FAILED ||
	    errno != EEXIST || mremap(pair[1].room, ROOM, ROOM, 0) != pair[1].room ||
	    shmdt(pair[1].room) != -1)
		err(1, "calls that unmap nothing");
	child = fork();
	if (!child)
		_exit(munmap(pair[1].room, ROOM));
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		err(1, "a child that unmaps");
	exchange(pair, 0x33);
	close_pair(pair);
}

/* A call fails over memory of which a part is mapped: only that part stays in its region. */
static void check_failure_over_a_hole(void)
{
	const size_t hole = (size_t)4 * 4096;
	struct side pair[2], behind;

	open_pair(pair);
	if (syscall(SYS_munmap, pair[1].room + hole, 4096) ||
	    mmap(pair[1].room, ROOM, PROT_READ, MAP_SHARED | MAP_FIXED, -1, 0) != MAP_FAILED ||
	    mmap(pair[1].room + hole, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
		err(1, "a hole");
	behind = (struct side){.room = pair[1].room + hole + 4096, .mr = pair[1].mr};
	post_send(&pair[0], IBV_WR_RDMA_WRITE, &behind);
	expect(IBV_WC_SUCCESS, &pair[0], "a write behind a hole");
	exchange(pair, 0x55);
	behind.room -= 4096;
	post_send(&pair[0], IBV_WR_RDMA_WRITE, &behind);
	expect(IBV_WC_REM_ACCESS_ERR, &pair[0], "a write to memory that fills a hole");
	if (pair[1].room[hole])
		errx(1, "memory that fills a hole was written");
	close_pair(pair);
}

/* Memory that was replaced and is registered again, while its old region still exists. */
static void check_registered_again(void)
{
	struct side pair[2];
	struct ibv_mr *old;

	open_pair(pair);
	replace_in_one(&pair[1]);
	old = pair[1].mr;
	pair[1].mr = ibv_reg_mr(pd, pair[1].room, ROOM, LOOP_ACCESS);
	if (!pair[1].mr)
		err(1, "ibv_reg_mr");
	exchange(pair, 0x44);
	if (ibv_dereg_mr(pair[1].mr))
		err(1, "ibv_dereg_mr");
	pair[1].mr = old;
	post_send(&pair[0], IBV_WR_RDMA_WRITE, &pair[1]);
	expect(IBV_WC_REM_ACCESS_ERR, &pair[0], "a write to the region of before");
	close_pair(pair);
}

/*
 * A peer writes without pause. When the unmapping call returns, no access may be in flight: a later
 * write would change the new memory.
 */
static void *write_endlessly(void *arg)
{
	struct side *pair = arg;

	do
		post_send(&pair[0], IBV_WR_RDMA_WRITE, &pair[1]);
	while (completion(&pair[0]) == IBV_WC_SUCCESS);
	return NULL;
}

static void check_no_access_in_flight(void)
{
	for (int i = 0; i < 50; i++) {
		struct side pair[2];
		pthread_t writer;

		open_pair(pair);
		memset(pair[0].room, 0x11, ROOM);
		if (pthread_create(&writer, NULL, write_endlessly, pair))
			errx(1, "no thread");
		while (*(volatile uint8_t *)pair[1].room != 0x11)
			sched_yield();
		replace_in_one(&pair[1]);
		memset(pair[1].room, 0x5a, ROOM);
		pthread_join(writer, NULL);
		for (size_t n = 0; n < ROOM; n++)
			if (pair[1].room[n] != 0x5a)
				errx(1, "a write came after the memory was replaced");
		close_pair(pair);
	}
}

/* --- One thread unmaps; another one maps and registers memory at the same address */

static volatile bool enough;

static void *unmap_endlessly(void *unused)
{
	while (!enough) {
		uint8_t *room = map(NULL, 0);
		struct ibv_mr *mr = ibv_reg_mr(pd, room, ROOM, LOOP_ACCESS);

		if (!mr || munmap(room, ROOM) || ibv_dereg_mr(mr))
			err(1, "memory that is unmapped before it is given back");
	}
	return unused;
}

static void check_beside_unmapping_threads(void)
{
	pthread_t threads[2];
	struct side pair[2];

	open_pair(pair);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, unmap_endlessly, NULL))
			errx(1, "no thread");
	for (int i = 0; i < 6000; i++) {
		struct side here = {.room = map(NULL, 0)};

		here.mr = ibv_reg_mr(pd, here.room, ROOM, LOOP_ACCESS);
		if (!here.mr)
			err(1, "ibv_reg_mr");
		post_send(&pair[0], IBV_WR_RDMA_WRITE, &here);
		expect(IBV_WC_SUCCESS, &pair[0], "a write beside threads that unmap");
		if (ibv_dereg_mr(here.mr) || munmap(here.room, ROOM))
			err(1, "memory that is given back");
	}
	enough = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	close_pair(pair);
}

/* After fork a peer writes to the parent's memory, whether parent or child copies the page. */
static void check_fork(void)
{
	struct side pair[2];
	int ends[2], status;
	pid_t child;
	char byte = 0;

	open_pair(pair);
	if (ibv_dereg_mr(pair[1].mr))
		err(1, "ibv_dereg_mr");
	map(pair[1].room, MAP_FIXED);
	pair[1].mr = ibv_reg_mr(pd, pair[1].room, ROOM, LOOP_ACCESS);
	if (!pair[1].mr || pipe(ends))
		err(1, "private memory");
	memset(pair[1].room, 1, LENGTH);
	child = fork();
	if (!child)
		_exit(read(ends[0], &byte, 1) != 1 || pair[1].room[0] != 1);
	memset(pair[0].room, 2, LENGTH);
	post_send(&pair[0], IBV_WR_RDMA_WRITE, &pair[1]);
	expect(IBV_WC_SUCCESS, &pair[0], "a write after fork");
	if (memcmp(pair[0].room, pair[1].room, LENGTH))
		errx(1, "a write after fork is not the parent's");
	if (write(ends[1], &byte, 1) != 1 || waitpid(child, &status, 0) != child || status)
		errx(1, "a write after fork is in the child");
	close(ends[0]);
	close(ends[1]);
	close_pair(pair);
}

/* --- Signals */

/* A function of X/Open before 2008, which the headers no longer declare. */
sighandler_t bsd_signal(int number, sighandler_t handler);

static sigjmp_buf back;
static void *volatile fault_at;
static volatile int faults;
static volatile bool masked;

static void on_fault(int number, siginfo_t *info, void *unused)
{
	sigset_t now;

	(void)unused;
	fault_at = info->si_addr;
	faults++;
	sigprocmask(SIG_BLOCK, NULL, &now);
	masked = sigismember(&now, number) && sigismember(&now, SIGUSR2);
	siglongjmp(back, 1);
}

static void on_signal(int number)
{
	(void)number;
	faults++;
}

/* Makes the program itself fault at the address. */
static void fault(uint8_t *at)
{
	if (!sigsetjmp(back, 1))
		*(volatile uint8_t *)at = 1;
}

static void expect_own_handler(uint8_t *at, const char *when)
{
	int before = faults;

	fault(at);
	if (faults != before + 1 || fault_at != at || !masked)
		errx(1, "the program's handler %s: %d faults at %p for one at %p%s", when,
		     faults - before, fault_at, (void *)at, masked ? "" : ", its mask is not set");
}

static struct sigaction own_action(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, SIGUSR2);
	return act;
}

static void check_handler(void)
{
	uint8_t *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction act = own_action(), was;

	/* main set this handler before it opened the device. */
	expect_own_handler(nowhere + 8, "of before");
	if (sigaction(SIGSEGV, NULL, &was) || was.sa_sigaction != on_fault ||
	    !sigismember(&was.sa_mask, SIGUSR2))
		errx(1, "sigaction does not tell what was set before");
	act.sa_flags |= (int)SA_RESETHAND;
	if (sigaction(SIGSEGV, &act, &was) || was.sa_sigaction != on_fault)
		errx(1, "sigaction does not tell what was set");
	check_harm(0, 0);
	expect_own_handler(nowhere + 16, "for once");
	if (signal(SIGSEGV, on_signal) != SIG_DFL)
		errx(1, "SA_RESETHAND does not reset");
	check_harm(0, 5);
	faults = 0;
	if (kill(getpid(), SIGSEGV) || faults != 1)
		errx(1, "a signal that was sent does not arrive");
	if (signal(SIGSEGV, SIG_IGN) != on_signal || kill(getpid(), SIGSEGV) || faults != 1)
		errx(1, "a signal that was sent is not ignored");
	check_harm(0, 5);
	munmap(nowhere, 4096);
}

static void use_verbs(int number)
{
	(void)number;
	for (unsigned int h = 0; h < sizeof(harms) / sizeof(harms[0]); h++)
		check_harm(h, 0);
	faults++;
}

static void *signal_itself(void *unused)
{
	faults = 0;
	if (raise(SIGSEGV) || faults != 1)
		errx(1, "a handler that uses verbs does not end");
	return unused;
}

/* The program's handler sends memory that it unmaps: in a thread that has used verbs before, if the
 * handler does not block SIGSEGV, and in a new thread. */
static void check_verbs_in_handler(void)
{
	struct sigaction act = {.sa_handler = use_verbs, .sa_flags = SA_NODEFER};
	pthread_t thread;

	sigfillset(&act.sa_mask);
	sigdelset(&act.sa_mask, SIGSEGV);
	sigdelset(&act.sa_mask, SIGBUS);
	sigaction(SIGSEGV, &act, NULL);
	signal_itself(NULL);
	sigfillset(&act.sa_mask);
	act.sa_flags = 0;
	sigaction(SIGSEGV, &act, NULL);
	if (pthread_create(&thread, NULL, signal_itself, NULL))
		errx(1, "pthread_create");
	pthread_join(thread, NULL);
}

/* sigset and sigignore are deprecated. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Every function that sets a handler sets the program's own; sysv_signal resets it after one
 * signal. */
static void check_other_calls(void)
{
	static const struct {
		const char *name;
		sighandler_t (*set)(int, sighandler_t);
		bool once;
	} calls[] = {{"signal", signal, false},
		     {"bsd_signal", bsd_signal, false},
		     {"ssignal", ssignal, false},
		     {"sysv_signal", sysv_signal, true},
		     {"__sysv_signal", __sysv_signal, true}};

	signal(SIGSEGV, SIG_DFL);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		faults = 0;
		if (calls[i].set(SIGSEGV, SIG_ERR) != SIG_ERR || errno != EINVAL ||
		    calls[i].set(SIGSEGV, on_signal) != SIG_DFL || kill(getpid(), SIGSEGV) ||
		    faults != 1)
			errx(1, "%s sets no handler", calls[i].name);
		check_harm(0, 5);
		if (calls[i].set(SIGSEGV, SIG_DFL) != (calls[i].once ? SIG_DFL : on_signal))
			errx(1, "%s: what is set afterwards is wrong", calls[i].name);
	}
	if (sigset(SIGSEGV, on_signal) != SIG_DFL || sigset(SIGSEGV, SIG_HOLD) != on_signal ||
	    sigset(SIGSEGV, on_signal) != SIG_HOLD)
		errx(1, "sigset");
	check_harm(0, 5);
	if (sigignore(SIGSEGV) || kill(getpid(), SIGSEGV))
		err(1, "sigignore");
	check_harm(0, 5);
}

static int access_nothing(int number)
{
	volatile uint8_t *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*nowhere = 1;
	return number;
}

/* As the kernel reports a memory error that no instruction of the program has met. */
static int report_memory_error(int number)
{
	siginfo_t info = {.si_signo = number, .si_code = BUS_MCEERR_AO};

	return (int)syscall(SYS_rt_sigqueueinfo, getpid(), number, &info);
}

/* With the default action, or with an ignored fault, the process ends. */
static void check_end(int number, sighandler_t action, int (*cause)(int number))
{
	int status;
	pid_t child = fork();

	if (!child) {
		const struct rlimit none = {0};

		setrlimit(RLIMIT_CORE, &none);
		loop_open();
		signal(number, action);
		_exit(cause(number));
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		err(1, "no child");
	if (!WIFSIGNALED(status) || WTERMSIG(status) != number)
		errx(1, "signal %d: status %#x", number, (unsigned int)status);
}

/* A thread that blocks every signal, as threads of many programs do. */
static void *block_all_signals(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (unsigned int o = 0; o < sizeof(operations) / sizeof(operations[0]); o++)
		check_harm(2, o);
	return unused;
}

static volatile bool opened;

static void *set_endlessly(void *unused)
{
	const struct sigaction act = own_action();
	struct sigaction was;

	while (!opened)
		if (sigaction(SIGSEGV, &act, &was) || was.sa_sigaction != on_fault)
			errx(1, "sigaction tells what the program has not set");
	return unused;
}

/* Other threads set actions while this thread opens the device for the first time. */
static int open_beside_setters(void)
{
	struct sigaction act = own_action();
	pthread_t setters[2];

	if (sigaction(SIGSEGV, &act, NULL))
		return 1;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&setters[i], NULL, set_endlessly, NULL))
			return 1;
	context = loop_open();
	pd = ibv_alloc_pd(context);
	opened = true;
	for (int i = 0; i < 2; i++)
		pthread_join(setters[i], NULL);
	check_harm(3, 5);
	return faults;
}

static void check_setters(void)
{
	for (int i = 0; i < 10; i++) {
		int status = 0;
		pid_t child = fork();

		if (!child)
			_exit(open_beside_setters());
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			errx(1, "a handler set while the device is opened: status %#x",
			     (unsigned int)status);
	}
}

/* Process 1 of a PID namespace survives a signal that would end another process. */
static int survive_signal(void)
{
	int status;
	pid_t child = unshare(CLONE_NEWPID) ? -1 : fork();

	if (child < 0)
		return 0; /* forbidden here */
	if (!child) {
		context = loop_open();
		pd = ibv_alloc_pd(context);
		signal(SIGSEGV, SIG_DFL);
		if (kill(getpid(), SIGSEGV) || raise(SIGSEGV))
			err(1, "kill");
		check_harm(0, 0);
		_exit(0);
	}
	return waitpid(child, &status, 0) != child || status;
}

static void check_survivor(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(survive_signal());
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		errx(1, "no guard after a signal that the process survived");
}

static double divide_one_by_three(void)
{
	volatile double one = 1, three = 3;

	return one / three;
}

/* A fault in the engine leaves the rounding mode of the program's FPU unchanged. */
static void check_rounding(void)
{
	double nearest = divide_one_by_three(), upward;

	if (fesetround(FE_UPWARD))
		errx(1, "fesetround");
	upward = divide_one_by_three();
	if (upward <= nearest)
		errx(1, "nothing is rounded upward");
	for (unsigned int h = 0; h < sizeof(harms) / sizeof(harms[0]); h++) {
		check_harm(h, 0);
		if (divide_one_by_three() != upward || fegetround() != FE_UPWARD)
			errx(1, "memory that was %s changes how numbers are rounded",
			     harms[h].name);
	}
	if (fesetround(FE_TONEAREST))
		errx(1, "fesetround");
}

int main(void)
{
	struct sigaction act = own_action();
	pthread_t thread;

	check_setters();
	check_survivor();
	if (sigaction(SIGSEGV, &act, NULL))
		err(1, "sigaction");
	context = loop_open();
	pd = ibv_alloc_pd(context);
	if (!pd)
		err(1, "ibv_alloc_pd");
	check_all_harms();
	if (faults)
		errx(1, "the program's handler got %d faults that are not its own", faults);
	check_rounding();
	check_all_replacements();
	check_shmdt();
	check_shmdt_behind_a_hole();
	check_huge_pages();
	/* In a new IPC namespace the first segment has ID 0, which must work, too. */
	if (!unshare(CLONE_NEWIPC))
		check_shmdt();
	check_unrelated_calls();
	check_failure_over_a_hole();
	check_registered_again();
	check_no_access_in_flight();
	check_beside_unmapping_threads();
	check_fork();
	check_handler();
	check_verbs_in_handler();
	check_other_calls();
	if (pthread_create(&thread, NULL, block_all_signals, NULL) || pthread_join(thread, NULL))
		errx(1, "no thread");
	check_end(SIGSEGV, SIG_IGN, access_nothing);
	check_end(SIGSEGV, SIG_DFL, raise);
	check_end(SIGBUS, SIG_DFL, raise);
	check_end(SIGBUS, SIG_DFL, report_memory_error);
	puts("all as it should be");
	return 0;
}
