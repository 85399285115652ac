/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * On-demand paging (ibv_reg_mr(3), ibv_query_device_ex(3)): regions of memory that is not mapped
 * when it is registered, or is unmapped and mapped again, and the region of all memory.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

#define ACCESS                                                                    \
	(IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define RC_ALL                                                                 \
	(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | \
	 IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV)
#define LENGTH 64

static struct side pair[2];
static size_t page;

static struct ibv_odp_caps caps(void)
{
	struct ibv_device_attr_ex attr;

	page = (size_t)sysconf(_SC_PAGESIZE);
	MUST(!ibv_query_device_ex(hca.context, NULL, &attr));
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		skip("no on-demand paging");
	return attr.odp_caps;
}

static void need(uint32_t rc_caps)
{
	if ((caps().per_transport_caps.rc_odp_caps & rc_caps) != rc_caps)
		skip("no on-demand paging of these operations");
}

static void need_implicit(void)
{
	if (!(caps().general_caps & IBV_ODP_SUPPORT_IMPLICIT))
		skip("no implicit on-demand paging");
}

/* Address space without access permission. */
static uint8_t *reserve(size_t length)
{
	void *p = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

/* Maps new memory of zeros at the address. */
static void map_at(uint8_t *at, size_t length)
{
	MUST(mmap(at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		  0) == at);
}

/* A request of side 0 by keys. After an error the queue pairs are in RTS again. */
static enum ibv_wc_status transfer(enum ibv_wr_opcode opcode, void *local, uint32_t lkey,
				   void *remote, uint32_t rkey)
{
	bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_sge sge = {(uintptr_t)local, atomic ? 8 : LENGTH, lkey};
	struct ibv_send_wr wr = side_wr(&pair[0], opcode, &sge, &pair[1]);
	enum ibv_wc_status status;

	if (atomic) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote;
		wr.wr.rdma.rkey = rkey;
	}
	MUST(!post_send(&pair[0], &wr));
	status = next_wc(pair[0].cq).status;
	if (status)
		pair_again(pair);
	return status;
}

static enum ibv_wc_status peer_writes(void *remote, uint32_t rkey, int value)
{
	memset(pair[0].room, value, LENGTH);
	return transfer(IBV_WR_RDMA_WRITE, pair[0].room, pair[0].mr->lkey, remote, rkey);
}

static enum ibv_wc_status peer_reads(void *remote, uint32_t rkey)
{
	memset(pair[0].room, 0, LENGTH);
	return transfer(IBV_WR_RDMA_READ, pair[0].room, pair[0].mr->lkey, remote, rkey);
}

/* Whether a peer can write to the memory, read it, and execute an atomic operation on it. */
static bool is_reached(uint8_t *memory, uint32_t rkey, int value)
{
	uint64_t sum;

	if (peer_writes(memory, rkey, value) || memcmp(memory, pair[0].room, LENGTH) ||
	    peer_reads(memory, rkey) || memcmp(memory, pair[0].room, LENGTH))
		return false;
	memcpy(&sum, memory, sizeof(sum));
	if (transfer(IBV_WR_ATOMIC_FETCH_AND_ADD, pair[0].room, pair[0].mr->lkey, memory, rkey))
		return false;
	return *(uint64_t *)(void *)pair[0].room == sum && *(uint64_t *)(void *)memory == sum + 1;
}

static void test_capabilities(void)
{
	struct ibv_odp_caps c = caps();

	rule(c.per_transport_caps.rc_odp_caps || c.per_transport_caps.uc_odp_caps ||
		     c.per_transport_caps.ud_odp_caps,
	     "a device with on-demand paging has it for a service");
	rule(!(c.per_transport_caps.ud_odp_caps &
	       (IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC)),
	     "datagrams have no RDMA, nor on-demand paging for it");
}

static void test_memory_that_comes_later(void)
{
	struct ibv_mr *mr;
	uint8_t *memory;

	need(RC_ALL & ~(uint32_t)IBV_ODP_SUPPORT_SRQ_RECV);
	pair_open(pair, IBV_QPT_RC, 0);
	memory = reserve(4 * page);
	errno = 0;
	mr = ibv_reg_mr(hca.pd, memory, 4 * page, ACCESS);
	rule_errno(0, mr ? 0 : errno, "memory without access permission can be registered");
	MUST(mr);
	rule(peer_writes(memory, mr->rkey, 1) == IBV_WC_REM_ACCESS_ERR,
	     "a peer does not write to memory without access permission");
	rule(peer_reads(memory, mr->rkey) == IBV_WC_REM_ACCESS_ERR,
	     "a peer does not read memory without access permission");
	MUST(!mprotect(memory, 2 * page, PROT_READ | PROT_WRITE));
	rule(is_reached(memory, mr->rkey, 2), "a peer reaches memory that became accessible");
	MUST(!mprotect(memory, page, PROT_READ));
	rule(peer_writes(memory, mr->rkey, 3) == IBV_WC_REM_ACCESS_ERR,
	     "a peer does not write to memory that became read-only");
	rule(peer_reads(memory, mr->rkey) == IBV_WC_SUCCESS && pair[0].room[20] == 2,
	     "a peer reads memory that became read-only");
	rule(peer_writes(memory + 2 * page - LENGTH / 2, mr->rkey, 4) == IBV_WC_REM_ACCESS_ERR,
	     "a peer does not write across the end of the accessible memory");
	MUST(!munmap(memory, 4 * page));
	rule_errno(0, ibv_dereg_mr(mr), "a region of unmapped memory can be deregistered");
}

static void test_memory_that_is_replaced(void)
{
	struct ibv_mr *mr;
	uint8_t *memory;

	need(RC_ALL & ~(uint32_t)IBV_ODP_SUPPORT_SRQ_RECV);
	pair_open(pair, IBV_QPT_RC, 0);
	memory = reserve(2 * page);
	map_at(memory, 2 * page);
	mr = ibv_reg_mr(hca.pd, memory, 2 * page, ACCESS);
	MUST(mr);
	rule(is_reached(memory, mr->rkey, 1), "a peer reaches mapped memory");
	map_at(memory, 2 * page);
	rule(is_reached(memory, mr->rkey, 2), "a peer reaches memory that replaced other memory");
	MUST(!munmap(memory, 2 * page));
	rule(peer_reads(memory, mr->rkey) == IBV_WC_REM_ACCESS_ERR,
	     "a peer does not reach unmapped memory");
	map_at(memory, 2 * page);
	rule(is_reached(memory, mr->rkey, 3), "a peer reaches memory that was mapped again");
	MUST(!madvise(memory, 2 * page, MADV_DONTNEED));
	rule(peer_reads(memory, mr->rkey) == IBV_WC_SUCCESS && !pair[0].room[0],
	     "a peer reads zeros where the program has discarded pages");
	rule(peer_reads(memory + 2 * page - LENGTH + 1, mr->rkey) == IBV_WC_REM_ACCESS_ERR,
	     "a peer does not read behind the region");
	rule(peer_reads(memory, mr->rkey ^ 0x5500) == IBV_WC_REM_ACCESS_ERR,
	     "a peer does not read by another key");
	MUST(!ibv_dereg_mr(mr));
	rule(peer_reads(memory, mr->rkey) == IBV_WC_REM_ACCESS_ERR,
	     "a peer does not read by the key of a deregistered region");
	MUST(!munmap(memory, 2 * page));
}

static void test_local_memory(void)
{
	struct ibv_mr *mr;
	uint8_t *memory;

	need(RC_ALL & ~(uint32_t)IBV_ODP_SUPPORT_SRQ_RECV);
	pair_open(pair, IBV_QPT_RC, 0);
	memory = reserve(page);
	mr = ibv_reg_mr(hca.pd, memory, page, ACCESS);
	MUST(mr);
	rule(transfer(IBV_WR_RDMA_WRITE, memory, mr->lkey, pair[1].room, pair[1].mr->rkey) ==
		     IBV_WC_LOC_PROT_ERR,
	     "a request with missing memory has a protection error");
	map_at(memory, page);
	memset(memory, 5, LENGTH);
	rule(transfer(IBV_WR_RDMA_WRITE, memory, mr->lkey, pair[1].room, pair[1].mr->rkey) ==
			     IBV_WC_SUCCESS &&
		     !memcmp(memory, pair[1].room, LENGTH),
	     "a request sends memory that came later");
	MUST(!munmap(memory, page));
	map_at(memory, page);
	rule(transfer(IBV_WR_RDMA_READ, memory, mr->lkey, pair[1].room, pair[1].mr->rkey) ==
			     IBV_WC_SUCCESS &&
		     !memcmp(memory, pair[1].room, LENGTH),
	     "a READ places its data in memory that was mapped again");
	MUST(!ibv_dereg_mr(mr));
	MUST(!munmap(memory, page));
}

/* All memory of the process, also memory that is mapped after the registration. */
static void test_implicit_region(void)
{
	struct ibv_mr *mr;
	uint8_t *memory;
	int on_stack[LENGTH / sizeof(int)] = {0};

	need(RC_ALL & ~(uint32_t)IBV_ODP_SUPPORT_SRQ_RECV);
	need_implicit();
	errno = 0;
	mr = ibv_reg_mr(hca.pd, NULL, SIZE_MAX, ACCESS & ~IBV_ACCESS_ON_DEMAND);
	rule_errno(EINVAL, mr ? 0 : errno, "only on-demand regions can be implicit");
	errno = 0;
	mr = ibv_reg_mr(hca.pd, NULL, SIZE_MAX, ACCESS);
	rule_errno(0, mr ? 0 : errno, "all memory can be registered");
	MUST(mr);
	pair_open(pair, IBV_QPT_RC, 0);
	memory = reserve(2 * page);
	rule(peer_writes(memory, mr->rkey, 1) == IBV_WC_REM_ACCESS_ERR,
	     "the implicit region grants no memory without access permission");
	map_at(memory, 2 * page);
	rule(is_reached(memory, mr->rkey, 2), "the implicit region grants memory that came later");
	rule(peer_writes(memory + page - LENGTH / 2, mr->rkey, 3) == IBV_WC_SUCCESS &&
		     memory[page] == 3,
	     "an access crosses pages");
	rule(peer_writes(on_stack, mr->rkey, 4) == IBV_WC_SUCCESS && on_stack[1] == 0x04040404,
	     "the implicit region grants the stack");
	memset(memory, 5, LENGTH);
	rule(transfer(IBV_WR_RDMA_WRITE, memory, mr->lkey, on_stack, mr->rkey) == IBV_WC_SUCCESS &&
		     on_stack[1] == 0x05050505,
	     "the implicit region is both source and destination");
	rule(peer_reads(NULL, mr->rkey) == IBV_WC_REM_ACCESS_ERR,
	     "the implicit region grants nothing at address 0");
	rule(peer_reads((void *)0x123456789abcdef0, mr->rkey) == IBV_WC_REM_ACCESS_ERR,
	     "the implicit region grants nothing at an address that no process has");
	rule(peer_reads((void *)(UINTPTR_MAX - LENGTH), mr->rkey) == IBV_WC_REM_ACCESS_ERR,
	     "the implicit region grants nothing at the last address");
	rule(peer_reads(memory, mr->rkey ^ 0x5500) == IBV_WC_REM_ACCESS_ERR,
	     "a peer does not read all memory by another key");
	MUST(!munmap(memory, 2 * page));
	rule(peer_reads(memory, mr->rkey) == IBV_WC_REM_ACCESS_ERR,
	     "the implicit region grants no unmapped memory");
	rule_errno(0, ibv_dereg_mr(mr), "the implicit region can be deregistered");
}

static void receive_datagram(const struct ibv_mr *mr, uint8_t *memory, bool by_srq)
{
	struct ibv_sge sge = {(uintptr_t)memory, LENGTH + 40, mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_sge source = side_sge(&pair[0], 0, LENGTH);
	struct ibv_send_wr wr = side_wr(&pair[0], IBV_WR_SEND, &source, NULL);

	MUST(by_srq ? !ibv_post_srq_recv(pair[1].srq, &recv, &bad)
		    : !ibv_post_recv(pair[1].qp, &recv, &bad));
	memset(pair[0].room, 7, LENGTH);
	wr_to(&wr, &pair[0], &pair[1]);
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS, "a datagram is sent");
	rule(next_wc(pair[1].cq).status == IBV_WC_SUCCESS &&
		     !memcmp(memory + 40, pair[0].room, LENGTH),
	     by_srq ? "a datagram is received by an SRQ, in memory that came later"
		    : "a datagram is received in memory that came later");
}

static void check_datagram(bool by_srq)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	uint32_t needed = by_srq ? IBV_ODP_SUPPORT_SRQ_RECV : IBV_ODP_SUPPORT_RECV;
	struct ibv_mr *mr;
	uint8_t *memory;

	if (!(caps().per_transport_caps.ud_odp_caps & needed))
		skip("no on-demand paging of received datagrams");
	memory = reserve(page);
	mr = ibv_reg_mr(hca.pd, memory, page, ACCESS);
	MUST(mr);
	if (by_srq)
		pair[1].srq = ibv_create_srq(hca.pd, &init);
	pair_open(pair, IBV_QPT_UD, 0);
	map_at(memory, page);
	receive_datagram(mr, memory, by_srq);
}

static void test_datagram(void)
{
	check_datagram(false);
}

static void test_datagram_of_srq(void)
{
	check_datagram(true);
}

const struct test odp_tests[] = {
	{"capabilities", test_capabilities},
	{"later", test_memory_that_comes_later},
	{"replaced", test_memory_that_is_replaced},
	{"local", test_local_memory},
	{"implicit", test_implicit_region},
	{"datagram", test_datagram},
	{"srq", test_datagram_of_srq},
	{NULL, NULL},
};
