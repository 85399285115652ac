/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reliable connections: operations and errors (IBA 9.7, 11.4.1, 11.6.2). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

static struct side pair[2];

#define OPS                                                                               \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE | \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                  \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

/* Posts a request; returns its completion. */
static struct ibv_wc post_and_complete(struct ibv_send_wr *wr)
{
	errno = abs(post_send(&pair[0], wr));
	MUST(!errno);
	return next_wc(pair[0].cq);
}

static bool same(uint32_t to, uint32_t from, uint32_t length)
{
	return !memcmp(pair[1].room + to, pair[0].room + from, length);
}

static void test_sends(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_RC, 0);
	sge = side_sge(&pair[0], 100, 3000);
	wr = side_wr(&pair[0], IBV_WR_SEND, &sge, &pair[1]);
	wr.wr_id = 0x1122334455667788;
	MUST(!post_recv(&pair[1], 0x8877665544332211, 0, 4000));
	wc = post_and_complete(&wr);
	rule(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND && wc.wr_id == wr.wr_id &&
		     wc.qp_num == pair[0].qp->qp_num,
	     "a send completes with its opcode and wr_id");
	wc = next_wc(pair[1].cq);
	rule(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len == 3000 &&
		     wc.wr_id == 0x8877665544332211 && wc.qp_num == pair[1].qp->qp_num &&
		     !(wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)),
	     "its receive completes with the length");
	rule(same(0, 100, 3000), "the receive has the bytes");
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htobe32(0x01020304);
	MUST(!post_recv(&pair[1], 2, 0, 4000));
	MUST(post_and_complete(&wr).status == IBV_WC_SUCCESS);
	wc = next_wc(pair[1].cq);
	rule(wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htobe32(0x01020304),
	     "immediate data arrive");
	wr = side_wr(&pair[0], IBV_WR_SEND, NULL, &pair[1]);
	MUST(!post_recv(&pair[1], 3, 0, 0));
	rule(post_and_complete(&wr).status == IBV_WC_SUCCESS && next_wc(pair[1].cq).byte_len == 0,
	     "an empty message and a receive without segments are accepted");
	wr = side_wr(&pair[0], IBV_WR_SEND, &sge, &pair[1]);
	wr.send_flags = 0;
	MUST(!post_recv(&pair[1], 4, 0, 4000) && !post_recv(&pair[1], 5, 0, 4000));
	MUST(!post_send(&pair[0], &wr));
	wr.wr_id = 6;
	wr.send_flags = IBV_SEND_SIGNALED;
	rule(post_and_complete(&wr).wr_id == 6, "a send that is not signaled does not complete");
	rule(!any_wc(pair[0].cq, &wc), "an unsignaled send does not complete later, either");
}

static void test_writes_and_reads(void)
{
	struct ibv_sge sge, parts[2];
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_RC, 0);
	sge = side_sge(&pair[0], 0, 5000);
	wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
	wc = post_and_complete(&wr);
	rule(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_WRITE && same(0, 0, 5000),
	     "an RDMA WRITE writes the peer's memory");
	rule(!ibv_poll_cq(pair[1].cq, 1, &wc), "an RDMA WRITE causes no completion at the peer");
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = htobe32(77);
	MUST(!post_recv(&pair[1], 9, 0, 0));
	MUST(post_and_complete(&wr).status == IBV_WC_SUCCESS);
	wc = next_wc(pair[1].cq);
	rule(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 5000 && wc.wr_id == 9 &&
		     wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htobe32(77),
	     "an RDMA WRITE with immediate data completes a receive with its length");
	memset(pair[0].room, 0, 600);
	parts[0] = side_sge(&pair[0], 0, 100);
	parts[1] = side_sge(&pair[0], 300, 200);
	wr = side_wr(&pair[0], IBV_WR_RDMA_READ, parts, &pair[1]);
	wr.num_sge = 2;
	wr.wr.rdma.remote_addr += 1000;
	wc = post_and_complete(&wr);
	rule(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_READ && wc.byte_len == 300,
	     "an RDMA READ completes with its length");
	rule(same(1000, 0, 100) && same(1100, 300, 200) && !pair[0].room[200],
	     "an RDMA READ scatters exactly the bytes that it has read");
	wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE, NULL, &pair[1]);
	wr.wr.rdma.rkey = 0x77777777;
	wr.wr.rdma.remote_addr = 1;
	rule(post_and_complete(&wr).status == IBV_WC_SUCCESS,
	     "a WRITE of no bytes needs no valid key (IBA 9.7.4.1.4)");
}

static void test_atomics(void)
{
	uint64_t *mine = (uint64_t *)(void *)pair[0].room,
		 *theirs = (uint64_t *)(void *)pair[1].room;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	if (hca.attr.atomic_cap == IBV_ATOMIC_NONE)
		skip("no atomics");
	pair_open(pair, IBV_QPT_RC, 0);
	theirs[0] = 41;
	sge = side_sge(&pair[0], 0, 8);
	wr = side_wr(&pair[0], IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, &pair[1]);
	wr.wr.atomic.compare_add = 2;
	wc = post_and_complete(&wr);
	rule(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_FETCH_ADD && wc.byte_len == 8,
	     "fetch-and-add completes with its opcode");
	rule(mine[0] == 41 && theirs[0] == 43,
	     "fetch-and-add adds, and returns the original value");
	wr = side_wr(&pair[0], IBV_WR_ATOMIC_CMP_AND_SWP, &sge, &pair[1]);
	wr.wr.atomic.compare_add = 43;
	wr.wr.atomic.swap = 99;
	rule(post_and_complete(&wr).opcode == IBV_WC_COMP_SWAP && mine[0] == 43 && theirs[0] == 99,
	     "compare-and-swap swaps an equal value");
	rule(post_and_complete(&wr).status == IBV_WC_SUCCESS && mine[0] == 99 && theirs[0] == 99,
	     "compare-and-swap keeps a different value and returns it");
	memset(pair[0].room, 0x5a, 64);
	sge.length = 64;
	wc = post_and_complete(&wr);
	rule(wc.status == IBV_WC_SUCCESS && mine[0] == 99 && mine[1] == 0x5a5a5a5a5a5a5a5a,
	     "an atomic takes the first 8 bytes of a longer segment");
	sge.length = 8;
	wr.wr.atomic.remote_addr += 4;
	errno = abs(post_send(&pair[0], &wr));
	rule(errno == EINVAL || next_wc(pair[0].cq).status == IBV_WC_REM_INV_REQ_ERR,
	     "an atomic has a natural alignment (IBA 9.4.5)");
}

/* More READs than may be outstanding: the others wait. */
static void test_more_reads_than_outstanding(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	bool right = true;

	pair_open(pair, IBV_QPT_RC, 0);
	for (uint32_t i = 0; i < SIDE_DEPTH; i++) {
		sge = side_sge(&pair[0], i * 512, 512);
		wr = side_wr(&pair[0], IBV_WR_RDMA_READ, &sge, &pair[1]);
		wr.wr.rdma.remote_addr += (uint64_t)(SIDE_DEPTH - 1 - i) * 512;
		wr.wr_id = i;
		MUST(!post_send(&pair[0], &wr));
	}
	for (uint32_t i = 0; i < SIDE_DEPTH; i++) {
		struct ibv_wc wc = next_wc(pair[0].cq);

		right &= wc.status == IBV_WC_SUCCESS && wc.wr_id == i &&
			 same((SIDE_DEPTH - 1 - i) * 512, i * 512, 512);
	}
	rule(right, "more READs than may be outstanding wait, and complete in order");
}

static void test_inline_data(void)
{
	struct ibv_sge parts[2];
	struct ibv_send_wr wr;

	pair_open(pair, IBV_QPT_RC, 0);
	parts[0] = (struct ibv_sge){(uintptr_t)pair[0].room, 20, 0xdead};
	parts[1] = (struct ibv_sge){(uintptr_t)pair[0].room + 500, 30, 0xbeef};
	wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE, parts, &pair[1]);
	wr.num_sge = 2;
	wr.send_flags |= IBV_SEND_INLINE;
	rule(post_and_complete(&wr).status == IBV_WC_SUCCESS && same(0, 0, 20) && same(20, 500, 30),
	     "inline data are gathered, and need no key");
}

/* A refused request ends a list; the requests before it are executed. */
static void test_lists_of_requests(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr[3], *bad = NULL;

	pair_open(pair, IBV_QPT_RC, 0);
	sge = side_sge(&pair[0], 0, 8);
	for (uint64_t i = 0; i < 3; i++) {
		wr[i] = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
		wr[i].wr_id = i;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	MUST(!ibv_post_send(pair[0].qp, wr, &bad));
	for (uint64_t i = 0; i < 3; i++)
		rule(next_wc(pair[0].cq).wr_id == i, "request %d of a list completes in order",
		     (int)i);
	wr[1].num_sge = SIDE_SGES + 100;
	rule(ibv_post_send(pair[0].qp, wr, &bad) && bad == &wr[1],
	     "a list stops at a wrong request");
	rule(next_wc(pair[0].cq).wr_id == 0, "requests before the wrong one are executed");
}

/* --- Errors */

static struct ibv_sge one_sge;

static struct ibv_send_wr simple_wr(enum ibv_wr_opcode opcode, uint32_t length)
{
	one_sge = side_sge(&pair[0], 0, length);
	return side_wr(&pair[0], opcode, &one_sge, &pair[1]);
}

/* The request fails with this status, the QP goes to the error state, and later requests are
 * flushed. */
static void check_failure(struct ibv_send_wr wr, enum ibv_wc_status status, const char *what)
{
	struct ibv_sge sge = side_sge(&pair[0], 0, 8);
	struct ibv_send_wr next = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
	struct ibv_wc wc;

	next.wr_id = 2;
	wr.wr_id = 1;
	MUST(!post_send(&pair[0], &wr));
	wc = next_wc(pair[0].cq);
	rule(wc.status == status && wc.wr_id == 1, "%s: %s", what, ibv_wc_status_str(status));
	rule(side_state(&pair[0]) == IBV_QPS_ERR, "%s: the QP goes to the error state", what);
	MUST(!post_send(&pair[0], &next));
	wc = next_wc(pair[0].cq);
	rule(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 2, "%s: later requests are flushed",
	     what);
	pair_again(pair);
}

static void test_local_errors(void)
{
	struct ibv_pd *other = ibv_alloc_pd(hca.context);
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	pair_open(pair, IBV_QPT_RC, 0);
	MUST(other);
	mr = ibv_reg_mr(other, pair[0].room, SIDE_ROOM, IBV_ACCESS_LOCAL_WRITE);
	MUST(mr);
	sge = side_sge(&pair[0], 0, 8);
	wr = simple_wr(IBV_WR_RDMA_WRITE, 8);
	wr.sg_list = &sge;
	sge.lkey ^= 0x55555500;
	check_failure(wr, IBV_WC_LOC_PROT_ERR, "an unknown local key");
	sge = side_sge(&pair[0], SIDE_ROOM - 4, 8);
	check_failure(wr, IBV_WC_LOC_PROT_ERR, "memory beyond the region");
	sge = (struct ibv_sge){(uintptr_t)pair[0].room, 8, mr->lkey};
	check_failure(wr, IBV_WC_LOC_PROT_ERR, "a region of another PD");
	MUST(!ibv_dereg_mr(mr));
	mr = ibv_reg_mr(hca.pd, pair[0].room, SIDE_ROOM, 0);
	MUST(mr);
	wr.opcode = IBV_WR_RDMA_READ;
	sge.lkey = mr->lkey;
	check_failure(wr, IBV_WC_LOC_PROT_ERR, "a READ into a read-only region");
	MUST(!ibv_dereg_mr(mr));
	wr.opcode = IBV_WR_RDMA_WRITE;
	check_failure(wr, IBV_WC_LOC_PROT_ERR, "a deregistered region");
}

static void test_remote_errors(void)
{
	struct ibv_pd *other = ibv_alloc_pd(hca.context);
	struct ibv_send_wr wr;
	struct ibv_mr *mr;

	pair_open(pair, IBV_QPT_RC, 0);
	MUST(other);
	wr = simple_wr(IBV_WR_RDMA_WRITE, 8);
	wr.wr.rdma.rkey ^= 0x55555500;
	check_failure(wr, IBV_WC_REM_ACCESS_ERR, "an unknown remote key");
	wr = simple_wr(IBV_WR_RDMA_WRITE, 8);
	wr.wr.rdma.remote_addr += SIDE_ROOM - 4;
	check_failure(wr, IBV_WC_REM_ACCESS_ERR, "a WRITE beyond the region");
	wr = simple_wr(IBV_WR_RDMA_READ, 8);
	wr.wr.rdma.remote_addr -= 1;
	check_failure(wr, IBV_WC_REM_ACCESS_ERR, "a READ before the region");
	wr = simple_wr(IBV_WR_RDMA_WRITE, 8);
	wr.wr.rdma.remote_addr = UINT64_MAX - 3;
	check_failure(wr, IBV_WC_REM_ACCESS_ERR, "a WRITE that wraps around the address space");
	mr = ibv_reg_mr(other, pair[1].room, SIDE_ROOM,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	MUST(mr);
	wr = simple_wr(IBV_WR_RDMA_WRITE, 8);
	wr.wr.rdma.rkey = mr->rkey;
	check_failure(wr, IBV_WC_REM_ACCESS_ERR, "a remote region of another PD");
	MUST(!ibv_dereg_mr(mr));
	mr = ibv_reg_mr(hca.pd, pair[1].room, SIDE_ROOM, IBV_ACCESS_REMOTE_READ);
	MUST(mr);
	wr.wr.rdma.rkey = mr->rkey;
	check_failure(wr, IBV_WC_REM_ACCESS_ERR, "a WRITE to a read-only region");
	MUST(!ibv_dereg_mr(mr));
	mr = ibv_reg_mr(hca.pd, pair[1].room, SIDE_ROOM,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	MUST(mr);
	wr = simple_wr(IBV_WR_RDMA_READ, 8);
	wr.wr.rdma.rkey = mr->rkey;
	check_failure(wr, IBV_WC_REM_ACCESS_ERR, "a READ of a write-only region");
	if (hca.attr.atomic_cap != IBV_ATOMIC_NONE) {
		wr = simple_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
		wr.wr.atomic.rkey = mr->rkey;
		check_failure(wr, IBV_WC_REM_ACCESS_ERR,
			      "an atomic on a region without atomic access");
	}
}

/* The QP lacks the access right, although the region has it. */
static void test_qp_access_rights(void)
{
	static const struct {
		int access;
		enum ibv_wr_opcode opcode;
		const char *what;
	} rows[] = {
		{IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE, "a WRITE to a QP without that right"},
		{IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, "a READ from a QP without that right"},
		{IBV_ACCESS_REMOTE_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD,
		 "an atomic on a QP without that right"},
	};

	pair_open(pair, IBV_QPT_RC, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_qp_attr attr = {.qp_access_flags = (unsigned int)rows[i].access};

		MUST(!ibv_modify_qp(pair[1].qp, &attr, IBV_QP_ACCESS_FLAGS));
		check_failure(simple_wr(rows[i].opcode, 8), IBV_WC_REM_INV_REQ_ERR, rows[i].what);
	}
}

static void test_receive_errors(void)
{
	struct ibv_sge wrong;
	struct ibv_recv_wr recv = {.wr_id = 3, .sg_list = &wrong, .num_sge = 1}, *bad;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_RC, 0);
	MUST(!post_recv(&pair[1], 3, 0, 50));
	check_failure(simple_wr(IBV_WR_SEND, 51), IBV_WC_REM_INV_REQ_ERR,
		      "a message longer than its receive");
	MUST(!post_recv(&pair[1], 3, 0, 50));
	struct ibv_send_wr wr = simple_wr(IBV_WR_SEND, 51);
	MUST(!post_send(&pair[0], &wr));
	wc = next_wc(pair[1].cq);
	rule(wc.status == IBV_WC_LOC_LEN_ERR && wc.wr_id == 3,
	     "the receive of a too long message has a length error");
	rule(side_state(&pair[1]) == IBV_QPS_ERR, "the receiver's QP is in ERR");
	next_wc(pair[0].cq);
	pair_again(pair);
	wrong = side_sge(&pair[1], 0, 64);
	wrong.lkey ^= 0x55555500;
	MUST(!ibv_post_recv(pair[1].qp, &recv, &bad));
	wr = simple_wr(IBV_WR_SEND, 51);
	MUST(!post_send(&pair[0], &wr));
	wc = next_wc(pair[0].cq);
	rule(wc.status == IBV_WC_REM_OP_ERR,
	     "a receive with a wrong key is a remote operational error");
	wc = next_wc(pair[1].cq);
	rule(wc.status == IBV_WC_LOC_PROT_ERR && wc.wr_id == 3,
	     "a receive with a wrong key has a protection error");
}

/* Connects pair[0] again, with this timeout and these retry counts. */
static void set_retries(uint32_t dest, uint8_t timeout, uint8_t retries, uint8_t rnr_retries)
{
	struct ibv_qp_attr attr;
	int mask;

	MUST(!side_step(&pair[0], NULL, IBV_QPS_RESET));
	MUST(!side_step(&pair[0], &pair[1], IBV_QPS_INIT));
	mask = side_attr(&pair[0], &pair[1], IBV_QPS_RTR, &attr);
	attr.dest_qp_num = dest;
	MUST(!ibv_modify_qp(pair[0].qp, &attr, mask));
	mask = side_attr(&pair[0], &pair[1], IBV_QPS_RTS, &attr);
	attr.timeout = timeout;
	attr.retry_cnt = retries;
	attr.rnr_retry = rnr_retries;
	MUST(!ibv_modify_qp(pair[0].qp, &attr, mask));
}

static void test_retry_counts(void)
{
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_RC, 0);
	set_retries(pair[1].qp->qp_num, 14, 7, 0);
	check_failure(simple_wr(IBV_WR_SEND, 8), IBV_WC_RNR_RETRY_EXC_ERR,
		      "a message without a receive, with RNR retry count 0");
	wr = simple_wr(IBV_WR_SEND, 8);
	MUST(!post_send(&pair[0], &wr));
	rule(!any_wc(pair[0].cq, &wc), "with RNR retry count 7 a message waits for its receive");
	MUST(!post_recv(&pair[1], 4, 0, 8));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS && next_wc(pair[1].cq).wr_id == 4,
	     "a waiting message arrives when a receive is posted");
	/* pair[1] is connected to another QP and does not answer. */
	MUST(!side_step(&pair[1], NULL, IBV_QPS_RESET));
	set_retries(pair[1].qp->qp_num, 8, 1, 7);
	wr = simple_wr(IBV_WR_RDMA_WRITE, 8);
	MUST(!post_send(&pair[0], &wr));
	rule(next_wc(pair[0].cq).status == IBV_WC_RETRY_EXC_ERR,
	     "a silent peer exhausts the retries");
}

/* --- Unsignaled requests */

#define MOST_SLOTS 256

/* Writes n bytes of this value with a request each, which are posted together and not signaled. */
static int post_writes(uint32_t n, uint8_t value)
{
	struct ibv_send_wr wrs[MOST_SLOTS];
	struct ibv_sge sge = side_sge(&pair[0], 0, 1);

	pair[0].room[0] = value;
	for (uint32_t i = 0; i < n; i++) {
		wrs[i] = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
		wrs[i].wr.rdma.remote_addr += i;
		wrs[i].send_flags = 0;
		wrs[i].next = i + 1 < n ? &wrs[i + 1] : NULL;
	}
	return post_send(&pair[0], wrs);
}

static int post_writes_by_ibv_wr(uint32_t n, uint8_t value)
{
	struct ibv_qp_ex *q = pair[0].qpx;

	pair[0].room[0] = value;
	ibv_wr_start(q);
	q->wr_flags = 0;
	for (uint32_t i = 0; i < n; i++) {
		ibv_wr_rdma_write(q, pair[1].mr->rkey, (uintptr_t)pair[1].room + i);
		ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)pair[0].room, 1);
	}
	return ibv_wr_complete(q);
}

static bool has_arrived(uint32_t n, uint8_t value)
{
	const volatile uint8_t *last = &pair[1].room[n - 1];

	for (int ms = 0; *last != value && ms < WAIT_MS; ms++)
		usleep(1000);
	return *last == value;
}

/* A program that never asks for a completion learns from its own messages that they were sent. */
static void test_unsignaled_requests_free_their_slots(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;
	uint32_t n;

	pair_open(pair, IBV_QPT_RC, OPS);
	MUST(!ibv_query_qp(pair[0].qp, &attr, IBV_QP_CAP, &init));
	n = attr.cap.max_send_wr;
	MUST(n <= MOST_SLOTS);
	for (uint8_t value = 1; value < 7; value++) {
		const bool by_ibv_wr = value % 2;

		rule_errno(0, by_ibv_wr ? post_writes_by_ibv_wr(n, value) : post_writes(n, value),
			   "a queue whose unsignaled requests are done takes max_send_wr others");
		MUST(has_arrived(n, value));
		rule(!any_wc(pair[0].cq, &wc), "unsignaled WRITEs do not complete");
	}
}

/* --- ibv_wr_* */

static void test_posting_by_ibv_wr(void)
{
	uint64_t *theirs = (uint64_t *)(void *)pair[1].room,
		 *mine = (uint64_t *)(void *)pair[0].room;
	struct ibv_qp_ex *q;
	struct ibv_data_buf bufs[2];
	struct ibv_sge sges[2];
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_RC, OPS);
	q = pair[0].qpx;
	MUST(q);
	for (int i = 0; i < 4; i++)
		MUST(!post_recv(&pair[1], 10 + (uint64_t)i, 4096, 64));
	ibv_wr_start(q);
	q->wr_id = 1;
	q->wr_flags = 0;
	ibv_wr_send(q);
	ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)pair[0].room, 30);
	q->wr_id = 2;
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(q, htobe32(5));
	ibv_wr_set_inline_data(q, pair[0].room, 16);
	q->wr_id = 3;
	sges[0] = side_sge(&pair[0], 0, 10);
	sges[1] = side_sge(&pair[0], 100, 10);
	ibv_wr_rdma_write_imm(q, pair[1].mr->rkey, (uintptr_t)pair[1].room + 2048, htobe32(6));
	ibv_wr_set_sge_list(q, 2, sges);
	rule_errno(0, ibv_wr_complete(q), "a batch of three is posted");
	rule(next_wc(pair[0].cq).wr_id == 2 && next_wc(pair[0].cq).wr_id == 3,
	     "signaled requests of a batch complete");
	rule(next_wc(pair[1].cq).byte_len == 30, "the first request of a batch is a send");
	wc = next_wc(pair[1].cq);
	rule(wc.byte_len == 16 && wc.imm_data == htobe32(5),
	     "the second request of a batch has inline and immediate data");
	wc = next_wc(pair[1].cq);
	rule(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == htobe32(6) &&
		     same(2048, 0, 10) && same(2058, 100, 10),
	     "the third request of a batch writes the gathered bytes");

	theirs[0] = 5;
	ibv_wr_start(q);
	q->wr_id = 4;
	ibv_wr_atomic_fetch_add(q, pair[1].mr->rkey, (uintptr_t)theirs, 3);
	ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)&mine[0], 8);
	q->wr_id = 5;
	ibv_wr_atomic_cmp_swp(q, pair[1].mr->rkey, (uintptr_t)theirs, 8, 100);
	ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)&mine[1], 8);
	q->wr_id = 6;
	ibv_wr_rdma_read(q, pair[1].mr->rkey, (uintptr_t)theirs);
	ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)&mine[2], 8);
	rule_errno(0, ibv_wr_complete(q), "a batch of atomics and a READ is posted");
	for (uint64_t id = 4; id < 7; id++)
		rule(next_wc(pair[0].cq).wr_id == id, "request %d of a batch completes in order",
		     (int)id);
	rule(mine[0] == 5 && mine[1] == 8 && mine[2] == 100 && theirs[0] == 100,
	     "each request of a batch sees the results of earlier ones");

	bufs[0] = (struct ibv_data_buf){pair[0].room, 8};
	bufs[1] = (struct ibv_data_buf){pair[0].room + 64, 8};
	ibv_wr_start(q);
	q->wr_id = 7;
	ibv_wr_rdma_write(q, pair[1].mr->rkey, (uintptr_t)pair[1].room);
	ibv_wr_set_inline_data_list(q, 2, bufs);
	rule_errno(0, ibv_wr_complete(q), "a list of inline data is posted");
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
	rule(same(0, 0, 8) && same(8, 64, 8), "inline data are written in one piece");
	ibv_wr_start(q);
	q->wr_id = 8;
	ibv_wr_rdma_write(q, pair[1].mr->rkey, (uintptr_t)pair[1].room);
	ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)pair[0].room, 8);
	ibv_wr_abort(q);
	ibv_wr_start(q);
	q->wr_id = 9;
	ibv_wr_rdma_write(q, pair[1].mr->rkey, (uintptr_t)pair[1].room);
	ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)pair[0].room, 8);
	MUST(!ibv_wr_complete(q));
	rule(next_wc(pair[0].cq).wr_id == 9, "an aborted batch is not posted");
}

static int api_for(enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_cq *cq = ibv_create_cq(hca.context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex init = {.send_cq = cq,
					   .recv_cq = cq,
					   .qp_type = type,
					   .cap = {.max_send_wr = 1, .max_recv_wr = 1},
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .pd = hca.pd,
					   .send_ops_flags = ops};

	MUST(cq);
	errno = 0;
	return ibv_create_qp_ex(hca.context, &init) ? 0 : errno;
}

static void test_ibv_wr_misuse_is_refused(void)
{
	rule_errno(EOPNOTSUPP, api_for(IBV_QPT_RC, UINT64_C(1) << 50),
		   "unknown operations are refused");
	rule_errno(EOPNOTSUPP, api_for(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_READ), "UD has no READ");
	rule_errno(EOPNOTSUPP, api_for(IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP),
		   "UC has no atomics");
}

const struct test qp_rc_tests[] = {
	{"sends", test_sends},
	{"rdma", test_writes_and_reads},
	{"atomics", test_atomics},
	{"many_reads", test_more_reads_than_outstanding},
	{"inline", test_inline_data},
	{"lists", test_lists_of_requests},
	{"local_errors", test_local_errors},
	{"remote_errors", test_remote_errors},
	{"qp_rights", test_qp_access_rights},
	{"receive_errors", test_receive_errors},
	{"retries", test_retry_counts},
	{"unsignaled", test_unsignaled_requests_free_their_slots},
	{"posting_api", test_posting_by_ibv_wr},
	{"posting_api_refused", test_ibv_wr_misuse_is_refused},
	{NULL, NULL},
};
