/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions (IBA 10.6, 11.2.8). The tests of QPs check the rights of their keys. */
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

/* Registers and deregisters; returns the errno value. */
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

static void test_registration(void)
{
	char *room = map(8192, PROT_READ | PROT_WRITE);
	struct ibv_mr *one, *two;

	one = ibv_reg_mr(hca.pd, room, 8192, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	two = ibv_reg_mr(hca.pd, room + 1, 100, IBV_ACCESS_LOCAL_WRITE);
	MUST(one && two);
	rule(one->lkey != two->lkey, "memory may be registered twice, with two keys");
	rule(one->rkey != two->rkey, "and they have two remote keys");
	rule(one->addr == room && one->length == 8192 && one->pd == hca.pd && two->addr == room + 1,
	     "a region has its attributes");
	rule_errno(0, ibv_dereg_mr(one), "a region can be deregistered");
	rule_errno(0, ibv_dereg_mr(two), "the other one can be released, too");
	rule_errno(0, try_reg(room, 1, 0),
		   "a region may have one byte, and allow local reading only");
}

static void test_access_rights(void)
{
	char *room = map(4096, PROT_READ | PROT_WRITE);
	struct ibv_device_attr_ex attr;
	int n;

	rule_errno(EINVAL, try_reg(room, 64, IBV_ACCESS_REMOTE_WRITE),
		   "remote writing needs local writing (IBA 11.2.8.2)");
	rule_errno(EINVAL, try_reg(room, 64, IBV_ACCESS_REMOTE_ATOMIC),
		   "remote atomics need local writing (IBA 11.2.8.2)");
	rule_errno(0, try_reg(room, 64, IBV_ACCESS_REMOTE_READ),
		   "remote read access needs no other right");
	rule_errno(0, try_reg(room, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING),
		   "optional access flags are accepted");
	rule_errno(EINVAL, try_reg(room, 64, 1 << 19), "unknown access rights are refused");
	n = try_reg(room, 64, IBV_ACCESS_ON_DEMAND);
	MUST(!ibv_query_device_ex(hca.context, NULL, &attr));
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		rule(n == EINVAL || n == EOPNOTSUPP,
		     "on-demand paging is refused on a device without it");
}

static void test_bad_ranges_are_refused(void)
{
	char *room = map(4 * 4096, PROT_READ | PROT_WRITE), *readable = map(4096, PROT_READ);
	char *hole = map(4 * 4096, PROT_READ | PROT_WRITE), *none = map(4096, PROT_NONE);
	int write = IBV_ACCESS_LOCAL_WRITE;

	MUST(!munmap(hole + 2 * page, page));
	rule_errno(EINVAL, try_reg(room, 0, write),
		   "a region of length 0 at the start of a page is refused");
	rule_errno(0, try_reg(room + 1, 0, write),
		   "a region of length 0 within a page is accepted (ib_umem_get)");
	rule_errno(EFAULT, try_reg(hole + 2 * page + 1, 0, write),
		   "a region of length 0 in a hole is refused");
	rule_errno(EFAULT, try_reg(hole, 4 * page, write), "a region with a hole is refused");
	rule_errno(0, try_reg(hole, 2 * page, write), "a region before a hole is accepted");
	rule_errno(EFAULT, try_reg(none, page, 0), "a region without access permission is refused");
	rule_errno(EFAULT, try_reg(readable, page, write),
		   "a writable region on read-only memory is refused");
	rule_errno(EFAULT, try_reg(readable, page, IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ),
		   "nor one whose rights a window may extend (ib_access_writable)");
	rule_errno(0, try_reg(readable, page, 0),
		   "a read-only region on read-only memory is accepted");
	rule_errno(EINVAL, try_reg(room, SIZE_MAX - 4096, write),
		   "a region does not wrap around the address space");
	rule_errno(EINVAL, try_reg((void *)(UINTPTR_MAX - 4095), 8192, write),
		   "a region at the end of the address space does not wrap");
	rule_errno(EFAULT, try_reg(NULL, page, write), "a region at address 0 is refused");
}

/* Such a region grants nothing. A message of 0 bytes needs no key (C9-88). */
static void test_length_0(void)
{
	struct side pair[2] = {0};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	pair_open(pair, IBV_QPT_RC, 0);
	mr = ibv_reg_mr(hca.pd, pair[1].room + 1, 0, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	MUST(mr);
	rule(mr->length == 0, "a region may have length 0");
	sge = side_sge(&pair[0], 0, 1);
	wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
	wr.wr.rdma.rkey = mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)pair[1].room + 1;
	wr.num_sge = 0;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS,
	     "a WRITE of 0 bytes by its key succeeds");
	wr.num_sge = 1;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_REM_ACCESS_ERR,
	     "a WRITE of one byte by its key is refused");
	pair_close(pair);
	rule_errno(0, ibv_dereg_mr(mr), "a region of length 0 can be deregistered");
}

static void test_zero_based(void)
{
	struct side pair[2] = {0};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	mr = ibv_reg_mr(hca.pd, pair[1].room, SIDE_ROOM,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED | REMOTE);
	if (!mr)
		skip("no regions whose addresses begin at 0");
	pair_open(pair, IBV_QPT_RC, 0);
	sge = side_sge(&pair[0], 0, 512);
	wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
	wr.wr.rdma.rkey = mr->rkey;
	wr.wr.rdma.remote_addr = 1000;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS &&
		     !memcmp(pair[1].room + 1000, pair[0].room, 512),
	     "a peer accesses a zero based region by offsets");
	pair_close(pair);
	MUST(!ibv_dereg_mr(mr));
}

static void test_chosen_iova(void)
{
	struct side pair[2] = {0};
	uint64_t iova = 0x123400000000;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr_iova(hca.pd, pair[1].room, 4096, iova + 1, IBV_ACCESS_LOCAL_WRITE);
	rule_errno(EINVAL, mr ? 0 : errno, "an IOVA with another page offset is refused");
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
	     "a peer reaches a region at its chosen IOVA");
	wr.wr.rdma.remote_addr = (uintptr_t)pair[1].room;
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_REM_ACCESS_ERR,
	     "a peer does not reach the region at its virtual address");
}

/* A peer can reach every byte of a region of more than 4 GiB, and none beyond. */
static void test_region_of_more_than_4_gib(void)
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

	/* With huge zero pages the region needs almost no memory. */
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
	     "a large region is accessible up to its last byte");
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

/* Whether a peer can write to the address and read from it. */
static bool reaches(struct side pair[2], const struct ibv_mr *mr, uint64_t address,
		    const uint8_t *memory)
{
	memset(pair[0].room, (int)(address >> 6 | 1), 64);
	if (transfer(pair, IBV_WR_RDMA_WRITE, mr, address) || memcmp(memory, pair[0].room, 64))
		return false;
	memset(pair[0].room, 0, 64);
	return !transfer(pair, IBV_WR_RDMA_READ, mr, address) && !memcmp(memory, pair[0].room, 64);
}

/* The longest mapping that the kernel permits; only touched pages need memory. */
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

static void test_region_of_the_whole_address_space(void)
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
	rule(reaches(pair, mr, (uintptr_t)room, room),
	     "the first bytes of the longest region are accessible");
	rule(reaches(pair, mr, (uintptr_t)room + length / 2, room + length / 2),
	     "the middle of the longest region is accessible");
	rule(reaches(pair, mr, (uintptr_t)room + length - 64, room + length - 64),
	     "the last bytes of the longest region are accessible");
	rule(transfer(pair, IBV_WR_RDMA_WRITE, mr, (uintptr_t)room + length - 63) ==
		     IBV_WC_REM_ACCESS_ERR,
	     "bytes after the longest region are not accessible");
	rule(transfer(pair, IBV_WR_RDMA_READ, mr, (uintptr_t)room - 1) == IBV_WC_REM_ACCESS_ERR,
	     "bytes before the longest region are not accessible");
	rule_errno(0, ibv_dereg_mr(mr), "the region can be deregistered");
}

static void test_region_at_the_last_address(void)
{
	struct side pair[2] = {0};
	uint64_t iova = UINT64_MAX - SIDE_ROOM + 1;
	int access = IBV_ACCESS_LOCAL_WRITE | REMOTE;
	struct ibv_mr *mr;

	pair_open(pair, IBV_QPT_RC, 0);
	errno = 0;
	mr = ibv_reg_mr_iova(hca.pd, pair[1].room, SIDE_ROOM, iova + 4096, access);
	rule_errno(EINVAL, mr ? 0 : errno, "a region beyond the last address is refused");
	errno = 0;
	mr = ibv_reg_mr_iova(hca.pd, pair[1].room, SIDE_ROOM, iova, access);
	if (!rule_errno(0, mr ? 0 : errno, "a region may end at the last address"))
		return;
	rule(reaches(pair, mr, iova, pair[1].room),
	     "a region at the last address is accessible at its beginning");
	rule(reaches(pair, mr, UINT64_MAX - 63, pair[1].room + SIDE_ROOM - 64),
	     "a region at the last address is accessible at its end");
	rule(transfer(pair, IBV_WR_RDMA_WRITE, mr, UINT64_MAX - 62) == IBV_WC_REM_ACCESS_ERR,
	     "an access at the last address does not wrap");
}

/* On a device without reregistration the region stays as it was. */
static void test_reregistration(void)
{
	char *room = map(8192, PROT_READ | PROT_WRITE);
	struct ibv_pd *other = ibv_alloc_pd(hca.context);
	struct ibv_mr *mr = ibv_reg_mr(hca.pd, room, 4096, IBV_ACCESS_LOCAL_WRITE);
	uint32_t key;
	int rc;

	MUST(mr && other);
	key = mr->lkey;
	rule(ibv_rereg_mr(mr, 1 << 20, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT,
	     "an unknown change is bad input");
	rule(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, room, 0, 0) ==
		     IBV_REREG_MR_ERR_INPUT,
	     "a change to length 0 is refused");
	rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0);
	rule((!rc && mr->pd == other) || (rc == IBV_REREG_MR_ERR_CMD && mr->pd == hca.pd),
	     "a region changes its PD, or the command fails without a change");
	rule(!rc || mr->lkey == key, "an unchanged region keeps its keys");
	rule_errno(0, ibv_dereg_mr(mr), "the region can be deregistered in both cases");
	rule_errno(0, ibv_dealloc_pd(other), "the PD survives DEREG_MR with its handle");
}

static void test_max_mr_can_be_created(void)
{
	int n = limit_of(hca.attr.max_mr), made;
	struct ibv_mr **mr = calloc((size_t)n, sizeof(struct ibv_mr *));
	static char room[4096];

	MUST(mr);
	for (made = 0; made < n; made++)
		if (!(mr[made] = ibv_reg_mr(hca.pd, room, sizeof(room), IBV_ACCESS_LOCAL_WRITE)))
			break;
	rule(made == n, "max_mr regions can be created");
	if (n == hca.attr.max_mr)
		rule(!ibv_reg_mr(hca.pd, room, sizeof(room), IBV_ACCESS_LOCAL_WRITE),
		     "one region more is refused");
	while (made--)
		MUST(!ibv_dereg_mr(mr[made]));
}

const struct test mr_tests[] = {
	{"registration", test_registration},
	{"access_rights", test_access_rights},
	{"bad_ranges", test_bad_ranges_are_refused},
	{"length_0", test_length_0},
	{"zero_based", test_zero_based},
	{"chosen_address", test_chosen_iova},
	{"large", test_region_of_more_than_4_gib},
	{"address_space", test_region_of_the_whole_address_space},
	{"last_address", test_region_at_the_last_address},
	{"reregistration", test_reregistration},
	{"many", test_max_mr_can_be_created},
	{NULL, NULL},
};
