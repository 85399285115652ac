/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory windows (IBA 10.6.7, 11.2.8.7 and following) and their invalidation. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

#define WINDOW 4096 /* offset of the bound range */
#define LENGTH 512

#define OPS                                                                                 \
	(IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV | \
	 IBV_QP_EX_WITH_RDMA_WRITE)

/* pair[1] owns the windows and their region; pair[0] writes. */
static struct side pair[2];
static struct ibv_mr *region;

static void open_windows(int access)
{
	if (!hca.attr.max_mw || !(hca.attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW))
		skip("no memory windows");
	pair_open(pair, IBV_QPT_RC, OPS);
	region = ibv_reg_mr(hca.pd, pair[1].room, SIDE_ROOM, access);
	MUST(region && pair[0].qpx && pair[1].qpx);
}

static void need_type_2(void)
{
	if (!(hca.attr.device_cap_flags &
	      (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)))
		skip("no windows of type 2");
}

#define OWNER (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

static struct ibv_mw *alloc(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(hca.pd, type);

	MUST(mw);
	return mw;
}

/* WRITEs with an rkey; returns the status. The bytes must arrive if and only if it succeeds. */
static enum ibv_wc_status write_through(uint32_t rkey, uint32_t offset, uint32_t length)
{
	struct ibv_qp_ex *q = pair[0].qpx;
	enum ibv_wc_status status;
	bool there;

	memset(pair[0].room, (int)rkey | 1, SIDE_ROOM);
	memset(pair[1].room, 0, SIDE_ROOM);
	ibv_wr_start(q);
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(q, rkey, (uintptr_t)pair[1].room + WINDOW + offset);
	ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)pair[0].room, length);
	MUST(!ibv_wr_complete(q));
	status = next_wc(pair[0].cq).status;
	there = !memcmp(pair[1].room + WINDOW + offset, pair[0].room, length);
	if (there == (status != IBV_WC_SUCCESS))
		rule(false, "only the written bytes change");
	if (status)
		pair_again(pair);
	return status;
}

static struct ibv_mw_bind_info info(uint64_t length, unsigned int access)
{
	return (struct ibv_mw_bind_info){.mr = region,
					 .addr = (uintptr_t)pair[1].room + WINDOW,
					 .length = length,
					 .mw_access_flags = access};
}

static enum ibv_wc_status bind_1(struct ibv_mw *mw, struct ibv_mw_bind_info what)
{
	struct ibv_mw_bind bind = {.wr_id = 7, .send_flags = IBV_SEND_SIGNALED, .bind_info = what};
	struct ibv_wc wc;

	errno = ibv_bind_mw(pair[1].qp, mw, &bind);
	MUST(!errno);
	wc = next_wc(pair[1].cq);
	if (!wc.status)
		rule(wc.opcode == IBV_WC_BIND_MW && wc.wr_id == 7,
		     "a bind completes with opcode BIND_MW");
	return wc.status;
}

static void test_allocation(void)
{
	struct ibv_mw *one, *two;

	open_windows(OWNER);
	one = alloc(IBV_MW_TYPE_1);
	two = alloc(IBV_MW_TYPE_1);
	rule(one->rkey != two->rkey && one->pd == hca.pd && one->type == IBV_MW_TYPE_1,
	     "a window has its attributes");
	errno = 0;
	rule_errno(EINVAL, ibv_alloc_mw(hca.pd, (enum ibv_mw_type)3) ? 0 : errno,
		   "window type 3 is refused");
	rule_errno(0, ibv_dealloc_mw(one), "an unbound window can be deallocated");
	rule_errno(0, ibv_dealloc_mw(two), "the other one can be released, too");
}

static void test_type_1_windows(void)
{
	struct ibv_mw *mw;
	uint32_t key;

	open_windows(OWNER);
	mw = alloc(IBV_MW_TYPE_1);
	key = mw->rkey;
	rule(write_through(key, 0, 8) == IBV_WC_REM_ACCESS_ERR,
	     "an unbound window grants no access");
	MUST(bind_1(mw, info(LENGTH, IBV_ACCESS_REMOTE_WRITE)) == IBV_WC_SUCCESS);
	rule(mw->rkey != key, "a binding changes the key");
	rule(write_through(mw->rkey, 0, LENGTH) == IBV_WC_SUCCESS,
	     "a peer can write through a window to a region without remote access");
	rule(write_through(mw->rkey, 1, LENGTH) == IBV_WC_REM_ACCESS_ERR,
	     "a peer cannot write beyond the window");
	rule(write_through(region->rkey, 0, 8) == IBV_WC_REM_ACCESS_ERR,
	     "a peer cannot write by the region's own key");
	rule_errno(EBUSY, ibv_dereg_mr(region),
		   "a region with a bound window cannot be deregistered");
	key = mw->rkey;
	MUST(bind_1(mw, info(LENGTH / 2, IBV_ACCESS_REMOTE_WRITE)) == IBV_WC_SUCCESS);
	rule(write_through(mw->rkey, 0, LENGTH / 2) == IBV_WC_SUCCESS,
	     "a type 1 window can be bound again");
	rule(write_through(key, 0, 8) == IBV_WC_REM_ACCESS_ERR,
	     "the old key of a rebound window is invalid");
	rule(bind_1(mw, info(LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)) ==
		     IBV_WC_SUCCESS,
	     "a window with local write access can be bound");
	rule(write_through(mw->rkey, 0, 8) == IBV_WC_REM_ACCESS_ERR,
	     "a read-only window cannot be written");
	rule(bind_1(mw, info(LENGTH, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_RELAXED_ORDERING |
					     IBV_ACCESS_HUGETLB)) == IBV_WC_SUCCESS,
	     "a window may have access flags that have no effect");
	MUST(bind_1(mw, info(0, 0)) == IBV_WC_SUCCESS);
	rule_errno(0, ibv_dereg_mr(region), "a window bound to length 0 releases its region");
	rule_errno(0, ibv_dealloc_mw(mw), "a window bound to length 0 can be deallocated");
}

/* Errors of a bind that the send queue detects (IBA 11.4.1.1): the QP goes to the error state. */
static void test_bad_bindings_fail(void)
{
	struct ibv_pd *other = ibv_alloc_pd(hca.context);
	struct ibv_mw_bind_info what;
	struct ibv_mr *closed, *foreign;
	struct ibv_mw *mw;
	int rc;

	open_windows(OWNER);
	MUST(other);
	mw = alloc(IBV_MW_TYPE_1);
	closed = ibv_reg_mr(hca.pd, pair[1].room, SIDE_ROOM, IBV_ACCESS_LOCAL_WRITE);
	foreign = ibv_reg_mr(other, pair[1].room, SIDE_ROOM, OWNER);
	MUST(closed && foreign);
	what = info(LENGTH, IBV_ACCESS_REMOTE_WRITE);
	what.mr = closed;
	rule(bind_1(mw, what) == IBV_WC_MW_BIND_ERR,
	     "a region without MW_BIND access takes no window");
	pair_again(pair);
	what = info(SIDE_ROOM, IBV_ACCESS_REMOTE_WRITE);
	rule(bind_1(mw, what) == IBV_WC_MW_BIND_ERR, "a window lies within its region");
	pair_again(pair);
	MUST(!ibv_dereg_mr(region));
	region = ibv_reg_mr(hca.pd, pair[1].room, SIDE_ROOM, IBV_ACCESS_MW_BIND);
	MUST(region);
	rule(bind_1(mw, info(LENGTH, IBV_ACCESS_REMOTE_WRITE)) == IBV_WC_MW_BIND_ERR,
	     "a writable window needs a region with local write access (IBA 10.6.7.2.3)");
	pair_again(pair);
	what = info(LENGTH, IBV_ACCESS_REMOTE_READ);
	what.mr = foreign;
	rc = ibv_bind_mw(pair[1].qp, mw,
			 &(struct ibv_mw_bind){.send_flags = IBV_SEND_SIGNALED, .bind_info = what});
	rule(rc == EPERM || rc == EINVAL ||
		     (!rc && next_wc(pair[1].cq).status == IBV_WC_MW_BIND_ERR),
	     "window and region must have the same PD");
	need_type_2();
	rule(ibv_bind_mw(pair[1].qp, alloc(IBV_MW_TYPE_2),
			 &(struct ibv_mw_bind){
				 .bind_info = info(LENGTH, IBV_ACCESS_REMOTE_READ)}) == EINVAL,
	     "ibv_bind_mw is for type 1");
}

static enum ibv_wc_status bind_2(struct ibv_mw *mw)
{
	struct ibv_mw_bind_info what = info(LENGTH, IBV_ACCESS_REMOTE_WRITE);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_qp_ex *q = pair[1].qpx;
	enum ibv_wc_status status;

	ibv_wr_start(q);
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(q, mw, rkey, &what);
	MUST(!ibv_wr_complete(q));
	status = next_wc(pair[1].cq).status;
	if (!status)
		mw->rkey = rkey;
	return status;
}

static enum ibv_wc_status local_invalidate(uint32_t rkey)
{
	struct ibv_qp_ex *q = pair[1].qpx;
	struct ibv_wc wc;

	ibv_wr_start(q);
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_local_inv(q, rkey);
	MUST(!ibv_wr_complete(q));
	wc = next_wc(pair[1].cq);
	if (!wc.status)
		rule(wc.opcode == IBV_WC_LOCAL_INV,
		     "an invalidation completes with opcode LOCAL_INV");
	return wc.status;
}

/* The peer invalidates the window by a SEND with invalidate. */
static void send_invalidate(uint32_t rkey)
{
	struct ibv_qp_ex *q = pair[0].qpx;
	struct ibv_wc wc;

	MUST(!post_recv(&pair[1], 1, 0, 64));
	ibv_wr_start(q);
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_inv(q, rkey);
	ibv_wr_set_sge(q, pair[0].mr->lkey, (uintptr_t)pair[0].room, 64);
	MUST(!ibv_wr_complete(q));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS, "a SEND with invalidate succeeds");
	wc = next_wc(pair[1].cq);
	rule(!wc.status && wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == rkey,
	     "the receiver's completion has the invalidated key");
}

static void test_type_2_windows(void)
{
	struct ibv_mw *mw;

	open_windows(OWNER);
	need_type_2();
	mw = alloc(IBV_MW_TYPE_2);
	rule(bind_2(mw) == IBV_WC_SUCCESS, "a type 2 window can be bound");
	rule(write_through(mw->rkey, 0, LENGTH) == IBV_WC_SUCCESS,
	     "a peer can write through a type 2 window");
	rule(local_invalidate(mw->rkey) == IBV_WC_SUCCESS,
	     "the owner can invalidate a type 2 window");
	rule(bind_2(mw) == IBV_WC_SUCCESS, "an invalidated window can be bound again");
	rule(write_through(mw->rkey, 0, LENGTH) == IBV_WC_SUCCESS,
	     "the rebound window has a new key");
	send_invalidate(mw->rkey);
	rule(write_through(mw->rkey, 0, LENGTH) == IBV_WC_REM_ACCESS_ERR,
	     "an invalidated window grants no access");
	MUST(bind_2(mw) == IBV_WC_SUCCESS);
	rule(bind_2(mw) == IBV_WC_MW_BIND_ERR,
	     "a bound type 2 window cannot be bound again (IBA 10.6.7.2.2)");
	pair_again(pair);
	rule_errno(0, ibv_dealloc_mw(mw), "a bound window can be deallocated");
	rule_errno(0, ibv_dereg_mr(region), "a region can be deregistered after its window");
}

static void test_invalid_window_cannot_be_invalidated(void)
{
	struct ibv_mw *mw;

	open_windows(OWNER);
	need_type_2();
	mw = alloc(IBV_MW_TYPE_2);
	MUST(bind_2(mw) == IBV_WC_SUCCESS && local_invalidate(mw->rkey) == IBV_WC_SUCCESS);
	rule(local_invalidate(mw->rkey) != IBV_WC_SUCCESS,
	     "an invalid window cannot be invalidated");
	MUST(!ibv_destroy_qp(pair[1].qp));
	rule_errno(0, ibv_dereg_mr(region), "destroying a QP unbinds its windows");
}

/* IB_UVERBS_DEVICE_ATOMIC_WRITE, which older headers lack. */
#define CAP_ATOMIC_WRITE (UINT64_C(1) << 40)

static void test_atomic_write(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE};
	struct ibv_device_attr_ex ex;
	struct ibv_qp_ex *q;
	struct ibv_wc wc;

	MUST(!ibv_query_device_ex(hca.context, NULL, &ex));
	if (!(ex.device_cap_flags_ex & CAP_ATOMIC_WRITE))
		skip("no atomic writes");
	pair[0].cq = ibv_create_cq(hca.context, 8, NULL, NULL, 0);
	MUST(pair[0].cq);
	init.pd = hca.pd;
	init.send_cq = init.recv_cq = pair[0].cq;
	pair[0].qp = ibv_create_qp_ex(hca.context, &init);
	if (!pair[0].qp)
		skip("no atomic writes");
	side_create(&pair[1], IBV_QPT_RC, 0);
	side_up(&pair[0], &pair[1], IBV_QPS_RTS);
	side_up(&pair[1], &pair[0], IBV_QPS_RTS);
	q = ibv_qp_to_qp_ex(pair[0].qp);
	ibv_wr_start(q);
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(q, pair[1].mr->rkey, (uintptr_t)pair[1].room + 8, "12345678");
	MUST(!ibv_wr_complete(q));
	wc = next_wc(pair[0].cq);
	rule(!wc.status && wc.opcode == IBV_WC_ATOMIC_WRITE,
	     "an ATOMIC WRITE completes with opcode ATOMIC_WRITE");
	rule(!memcmp(pair[1].room + 8, "12345678", 8),
	     "the eight bytes of an ATOMIC WRITE are in memory");
}

static void test_max_mw_can_be_created(void)
{
	int n = limit_of(hca.attr.max_mw), made;
	struct ibv_mw **mw = calloc((size_t)n + 1, sizeof(struct ibv_mw *));

	MUST(mw);
	for (made = 0; made < n; made++)
		if (!(mw[made] = ibv_alloc_mw(hca.pd, IBV_MW_TYPE_1)))
			break;
	rule(made == n, "max_mw windows can be created");
	if (n == hca.attr.max_mw)
		rule(!ibv_alloc_mw(hca.pd, IBV_MW_TYPE_1), "one window more is refused");
	while (made--)
		MUST(!ibv_dealloc_mw(mw[made]));
}

const struct test mw_tests[] = {
	{"allocation", test_allocation},
	{"type_1", test_type_1_windows},
	{"bad_bindings", test_bad_bindings_fail},
	{"type_2", test_type_2_windows},
	{"invalid_twice", test_invalid_window_cannot_be_invalidated},
	{"atomic_write", test_atomic_write},
	{"many", test_max_mw_can_be_created},
	{NULL, NULL},
};
