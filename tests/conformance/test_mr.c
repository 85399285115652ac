/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions (IBA 10.6, 11.2.8). What their keys allow is tested with the QPs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static size_t page;

static void *map(size_t length, int protection)
{
	void *p =
		mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	page = (size_t)sysconf(_SC_PAGESIZE);
	MUST(p != MAP_FAILED);
	return p;
}

/* The errno value of a registration, which is taken back. */
static int try_reg(void *address, size_t length, int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(hca.pd, address, length, access);
	if (!mr)
		return errno;
	MUST(!ibv_dereg_mr(mr));
	return 0;
}

static void registration(void)
{
	char *room = map(8192, PROT_READ | PROT_WRITE);
	struct ibv_mr *one, *two;

	one = ibv_reg_mr(hca.pd, room, 8192, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	two = ibv_reg_mr(hca.pd, room + 1, 100, IBV_ACCESS_LOCAL_WRITE);
	MUST(one && two);
	rule(one->lkey != two->lkey, "memory may be registered twice, with two keys");
	rule(one->rkey != two->rkey, "and they have two remote keys");
	rule(one->addr == room && one->length == 8192 && one->pd == hca.pd && two->addr == room + 1,
	     "a region says what it is");
	rule_errno(0, ibv_dereg_mr(one), "a region is given back");
	rule_errno(0, ibv_dereg_mr(two), "and the other one");
	rule_errno(0, try_reg(room, 1, 0),
		   "a region may have one byte, and allow local reading only");
}

static void access_rights(void)
{
	char *room = map(4096, PROT_READ | PROT_WRITE);
	int n;

	rule_errno(EINVAL, try_reg(room, 64, IBV_ACCESS_REMOTE_WRITE),
		   "remote writing needs local writing (IBA 11.2.8.2)");
	rule_errno(EINVAL, try_reg(room, 64, IBV_ACCESS_REMOTE_ATOMIC),
		   "remote atomics need local writing (IBA 11.2.8.2)");
	rule_errno(0, try_reg(room, 64, IBV_ACCESS_REMOTE_READ),
		   "remote reading needs nothing else");
	rule_errno(0, try_reg(room, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING),
		   "what is optional is never refused");
	rule_errno(EINVAL, try_reg(room, 64, 1 << 19), "rights that nobody knows are refused");
	n = try_reg(room, 64, IBV_ACCESS_ON_DEMAND);
	if (!(hca.attr.device_cap_flags & (1 << 31)))
		rule(n == EINVAL || n == EOPNOTSUPP,
		     "paging on demand is refused where there is none");
}

static void bad_ranges(void)
{
	char *room = map(4 * 4096, PROT_READ | PROT_WRITE), *readable = map(4096, PROT_READ);
	char *hole = map(4 * 4096, PROT_READ | PROT_WRITE), *none = map(4096, PROT_NONE);
	int write = IBV_ACCESS_LOCAL_WRITE;

	MUST(!munmap(hole + 2 * page, page));
	rule_errno(EINVAL, try_reg(room, 0, write), "a region has a byte at least");
	rule_errno(EFAULT, try_reg(hole, 4 * page, write), "a region is mapped throughout");
	rule_errno(0, try_reg(hole, 2 * page, write), "a region in front of a hole is one");
	rule_errno(EFAULT, try_reg(none, page, 0), "a region can be accessed");
	rule_errno(EFAULT, try_reg(readable, page, write), "what is written is writable");
	rule_errno(0, try_reg(readable, page, 0), "what is read need not be writable");
	rule_errno(EINVAL, try_reg(room, SIZE_MAX - 4096, write),
		   "a region does not wrap around the address space");
	rule_errno(EINVAL, try_reg((void *)(UINTPTR_MAX - 4095), 8192, write),
		   "nor does a short one at its end");
	rule_errno(EFAULT, try_reg(NULL, page, write), "there is no region at address 0");
}

static void chosen_address(void)
{
	struct side pair[2] = {0};
	uint64_t iova = 0x123400000000;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr_iova(hca.pd, pair[1].room, 4096, iova + 1, IBV_ACCESS_LOCAL_WRITE);
	rule_errno(EINVAL, mr ? 0 : errno,
		   "address and chosen address have one offset in the page");
	mr = ibv_reg_mr_iova(hca.pd, pair[1].room, SIDE_ROOM, iova,
			     IBV_ACCESS_LOCAL_WRITE | REMOTE);
	MUST(mr);
	pair_open(pair, IBV_QPT_RC, 0);
	sge = side_sge(&pair[0], 0, 512);
	wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
	wr.wr.rdma.rkey = mr->rkey;
	wr.wr.rdma.remote_addr = iova + 1000;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS &&
		     !memcmp(pair[1].room + 1000, pair[0].room, 512),
	     "a peer finds a region at the address that was chosen for it");
	wr.wr.rdma.remote_addr = (uintptr_t)pair[1].room;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_REM_ACCESS_ERR, "and not at its own");
}

/* What a peer may reach of a region that was registered over more than 4 GiB. */
static void large(void)
{
	size_t length = ((size_t)4 << 30) + 8192;
	char *room = map(length, PROT_READ | PROT_WRITE);
	struct side pair[2] = {0};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	char *last;

	if ((size_t)sysconf(_SC_AVPHYS_PAGES) < length / page)
		skip_here("no memory for a region of 4 GiB");

	/* Huge pages of zeros where there are some: nothing here is to need the memory. */
	madvise(room, length, MADV_HUGEPAGE);
	last = room + length - 64;
	memset(last, 0x77, 64);
	MUST(!mprotect(room, length, PROT_READ));
	errno = 0;
	mr = ibv_reg_mr(hca.pd, room, length, IBV_ACCESS_REMOTE_READ);
	if (!mr && errno == ENOMEM)
		skip_here("no memory for a region of 4 GiB");
	MUST(mr);
	rule(mr->length == length, "a region may have more than 4 GiB");
	pair_open(pair, IBV_QPT_RC, 0);
	sge = side_sge(&pair[0], 0, 64);
	wr = side_wr(&pair[0], IBV_WR_RDMA_READ, &sge, &pair[1]);
	wr.wr.rdma.rkey = mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)last;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS && !memcmp(pair[0].room, last, 64),
	     "and is accessible up to its last byte");
	wr.wr.rdma.remote_addr++;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_REM_ACCESS_ERR, "and not beyond");
}

static enum ibv_wc_status transfer(struct side pair[2], enum ibv_wr_opcode opcode,
				   const struct ibv_mr *mr, uint64_t address)
{
	struct ibv_sge sge = side_sge(&pair[0], 0, 64);
	struct ibv_send_wr wr = side_wr(&pair[0], opcode, &sge, &pair[1]);
	enum ibv_wc_status status;

	wr.wr.rdma.rkey = mr->rkey;
	wr.wr.rdma.remote_addr = address;
	MUST(!post_send(&pair[0], &wr));
	status = next_wc(pair[0].cq).status;
	if (status)
		pair_again(pair);
	return status;
}

/* Writes there, finds it there, and reads it from there. */
static bool reaches(struct side pair[2], const struct ibv_mr *mr, uint64_t address,
		    const uint8_t *memory)
{
	memset(pair[0].room, (int)(address >> 6 | 1), 64);
	if (transfer(pair, IBV_WR_RDMA_WRITE, mr, address) || memcmp(memory, pair[0].room, 64))
		return false;
	memset(pair[0].room, 0, 64);
	return !transfer(pair, IBV_WR_RDMA_READ, mr, address) && !memcmp(memory, pair[0].room, 64);
}

/* The longest mapping that the kernel gives, of which only what is touched needs memory. */
static uint8_t *longest_mapping(size_t *length)
{
	for (*length = (size_t)1 << 47; *length > (size_t)1 << 36;
	     *length -= *length / 16 / page * page) {
		uint8_t *room = mmap(NULL, *length, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (room != MAP_FAILED)
			return room;
	}
	skip_here("there is no mapping of more than 64 GiB");
}

static void address_space(void)
{
	struct side pair[2] = {0};
	struct ibv_mr *mr;
	uint8_t *room;
	size_t length;

	page = (size_t)sysconf(_SC_PAGESIZE);
	pair_open(pair, IBV_QPT_RC, 0);
	room = longest_mapping(&length);
	errno = 0;
	mr = ibv_reg_mr(hca.pd, room, length, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	rule_errno(0, mr ? 0 : errno, "a region may be as long as a mapping");
	MUST(mr && mr->length == length);
	rule(reaches(pair, mr, (uintptr_t)room, room), "its first bytes are accessible");
	rule(reaches(pair, mr, (uintptr_t)room + length / 2, room + length / 2),
	     "those in the middle");
	rule(reaches(pair, mr, (uintptr_t)room + length - 64, room + length - 64),
	     "and the last ones");
	rule(transfer(pair, IBV_WR_RDMA_WRITE, mr, (uintptr_t)room + length - 63) ==
		     IBV_WC_REM_ACCESS_ERR,
	     "but none behind them");
	rule(transfer(pair, IBV_WR_RDMA_READ, mr, (uintptr_t)room - 1) == IBV_WC_REM_ACCESS_ERR,
	     "nor in front");
	rule_errno(0, ibv_dereg_mr(mr), "it is given back");
}

static void last_address(void)
{
	struct side pair[2] = {0};
	uint64_t iova = UINT64_MAX - SIDE_ROOM + 1;
	int access = IBV_ACCESS_LOCAL_WRITE | REMOTE;
	struct ibv_mr *mr;

	pair_open(pair, IBV_QPT_RC, 0);
	errno = 0;
	mr = ibv_reg_mr_iova(hca.pd, pair[1].room, SIDE_ROOM, iova + 4096, access);
	rule_errno(EINVAL, mr ? 0 : errno,
		   "no region goes on behind the last address that there is");
	errno = 0;
	mr = ibv_reg_mr_iova(hca.pd, pair[1].room, SIDE_ROOM, iova, access);
	if (!rule_errno(0, mr ? 0 : errno, "one may end there"))
		return;
	rule(reaches(pair, mr, iova, pair[1].room), "and is accessible at its beginning");
	rule(reaches(pair, mr, UINT64_MAX - 63, pair[1].room + SIDE_ROOM - 64),
	     "and up to its end");
	rule(transfer(pair, IBV_WR_RDMA_WRITE, mr, UINT64_MAX - 62) == IBV_WC_REM_ACCESS_ERR,
	     "from where nothing leads to its beginning, or to address 0");
}

/* Where reregistering is not there, the region is as it was. */
static void reregistration(void)
{
	char *room = map(8192, PROT_READ | PROT_WRITE);
	struct ibv_pd *other = ibv_alloc_pd(hca.context);
	struct ibv_mr *mr = ibv_reg_mr(hca.pd, room, 4096, IBV_ACCESS_LOCAL_WRITE);
	uint32_t key;
	int rc;

	MUST(mr && other);
	key = mr->lkey;
	rule(ibv_rereg_mr(mr, 1 << 20, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT,
	     "a change that nobody knows is bad input");
	rule(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, room, 0, 0) ==
		     IBV_REREG_MR_ERR_INPUT,
	     "a region is not changed to one of no bytes");
	rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0);
	rule((!rc && mr->pd == other) || (rc == IBV_REREG_MR_ERR_CMD && mr->pd == hca.pd),
	     "a region changes its domain, or the command fails and it does not");
	rule(!rc || mr->lkey == key, "a region that was not changed keeps its keys");
	rule_errno(0, ibv_dereg_mr(mr), "it is given back either way");
	rule_errno(0, ibv_dealloc_pd(other), "and so is the domain");
}

static void many(void)
{
	int n = limit_of(hca.attr.max_mr), made;
	struct ibv_mr **mr = calloc((size_t)n, sizeof(struct ibv_mr *));
	static char room[4096];

	MUST(mr);
	for (made = 0; made < n; made++)
		if (!(mr[made] = ibv_reg_mr(hca.pd, room, sizeof(room), IBV_ACCESS_LOCAL_WRITE)))
			break;
	rule(made == n, "there are as many regions as the device says");
	while (made--)
		MUST(!ibv_dereg_mr(mr[made]));
}

const struct test mr_tests[] = {
	{"registration", registration},
	{"access_rights", access_rights},
	{"bad_ranges", bad_ranges},
	{"chosen_address", chosen_address},
	{"large", large},
	{"address_space", address_space},
	{"last_address", last_address},
	{"reregistration", reregistration},
	{"many", many},
	{NULL, NULL},
};
