/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory windows (IBA 10.6.7, 11.2.8.7 and following), and what invalidates them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca.h"
#include "rule.h"
#include "suite.h"

#define WINDOW 4096 /* offset of what is bound */
#define LENGTH 512

#define OPS                                                                                 \
	(IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV | \
	 IBV_QP_EX_WITH_RDMA_WRITE)

/* The second one owns the windows and their region; the first one writes. */
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

/* What a WRITE through a key ends in; whether the bytes are there must go with it. */
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
		rule(false, "what was written is there, and nothing else");
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
		rule(wc.opcode == IBV_WC_BIND_MW && wc.wr_id == 7, "a binding completes as itself");
	return wc.status;
}

static void allocation(void)
{
	struct ibv_mw *one, *two;

	open_windows(OWNER);
	one = alloc(IBV_MW_TYPE_1);
	two = alloc(IBV_MW_TYPE_1);
	rule(one->rkey != two->rkey && one->pd == hca.pd && one->type == IBV_MW_TYPE_1,
	     "a window says what it is");
	errno = 0;
	rule_errno(EINVAL, ibv_alloc_mw(hca.pd, (enum ibv_mw_type)3) ? 0 : errno,
		   "there is no third type of window");
	rule_errno(0, ibv_dealloc_mw(one), "a window is given back unbound");
	rule_errno(0, ibv_dealloc_mw(two), "and the other one");
}

static void type_1(void)
{
	struct ibv_mw *mw;
	uint32_t key;

	open_windows(OWNER);
	mw = alloc(IBV_MW_TYPE_1);
	key = mw->rkey;
	rule(write_through(key, 0, 8) == IBV_WC_REM_ACCESS_ERR,
	     "a window that is not bound shows nothing");
	MUST(bind_1(mw, info(LENGTH, IBV_ACCESS_REMOTE_WRITE)) == IBV_WC_SUCCESS);
	rule(mw->rkey != key, "a binding changes the key");
	rule(write_through(mw->rkey, 0, LENGTH) == IBV_WC_SUCCESS,
	     "a peer writes through a window to a region that is not open to it");
	rule(write_through(mw->rkey, 1, LENGTH) == IBV_WC_REM_ACCESS_ERR,
	     "and not beyond the window");
	rule(write_through(region->rkey, 0, 8) == IBV_WC_REM_ACCESS_ERR, "nor by the region's key");
	rule_errno(EBUSY, ibv_dereg_mr(region),
		   "a region stays as long as a window is bound to it");
	key = mw->rkey;
	MUST(bind_1(mw, info(LENGTH / 2, IBV_ACCESS_REMOTE_WRITE)) == IBV_WC_SUCCESS);
	rule(write_through(mw->rkey, 0, LENGTH / 2) == IBV_WC_SUCCESS, "a window is bound anew");
	rule(write_through(key, 0, 8) == IBV_WC_REM_ACCESS_ERR, "and its old key is none");
	rule(bind_1(mw, info(LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)) ==
		     IBV_WC_SUCCESS,
	     "the right to local writes may be asked for");
	rule(write_through(mw->rkey, 0, 8) == IBV_WC_REM_ACCESS_ERR,
	     "a window for reading is not written");
	MUST(bind_1(mw, info(0, 0)) == IBV_WC_SUCCESS);
	rule_errno(0, ibv_dereg_mr(region), "a window bound to no bytes lets its region go");
	rule_errno(0, ibv_dealloc_mw(mw), "and is given back");
}

/* The errors of a binding that the queue finds (IBA 11.4.1.1): it ends in one. */
static void bad_bindings(void)
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
	rule(bind_1(mw, what) == IBV_WC_MW_BIND_ERR, "a region that is not for windows takes none");
	pair_again(pair);
	what = info(SIDE_ROOM, IBV_ACCESS_REMOTE_WRITE);
	rule(bind_1(mw, what) == IBV_WC_MW_BIND_ERR, "a window lies within its region");
	pair_again(pair);
	MUST(!ibv_dereg_mr(region));
	region = ibv_reg_mr(hca.pd, pair[1].room, SIDE_ROOM, IBV_ACCESS_MW_BIND);
	MUST(region);
	rule(bind_1(mw, info(LENGTH, IBV_ACCESS_REMOTE_WRITE)) == IBV_WC_MW_BIND_ERR,
	     "a window for writing needs a region that is written locally (IBA 10.6.7.2.3)");
	pair_again(pair);
	what = info(LENGTH, IBV_ACCESS_REMOTE_READ);
	what.mr = foreign;
	rc = ibv_bind_mw(pair[1].qp, mw,
			 &(struct ibv_mw_bind){.send_flags = IBV_SEND_SIGNALED, .bind_info = what});
	rule(rc == EPERM || rc == EINVAL ||
		     (!rc && next_wc(pair[1].cq).status == IBV_WC_MW_BIND_ERR),
	     "window and region are of one domain");
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
		rule(wc.opcode == IBV_WC_LOCAL_INV, "an invalidation completes as itself");
	return wc.status;
}

/* The peer invalidates it with a message that says so. */
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
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS, "a message that invalidates is sent");
	wc = next_wc(pair[1].cq);
	rule(!wc.status && wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == rkey,
	     "and the receiver hears which key is invalid");
}

static void type_2(void)
{
	struct ibv_mw *mw;

	open_windows(OWNER);
	need_type_2();
	mw = alloc(IBV_MW_TYPE_2);
	rule(bind_2(mw) == IBV_WC_SUCCESS, "a window of type 2 is bound by a request");
	rule(write_through(mw->rkey, 0, LENGTH) == IBV_WC_SUCCESS, "and a peer writes through it");
	rule(local_invalidate(mw->rkey) == IBV_WC_SUCCESS, "its owner invalidates it");
	rule(bind_2(mw) == IBV_WC_SUCCESS, "and binds it again");
	rule(write_through(mw->rkey, 0, LENGTH) == IBV_WC_SUCCESS, "with another key");
	send_invalidate(mw->rkey);
	rule(write_through(mw->rkey, 0, LENGTH) == IBV_WC_REM_ACCESS_ERR, "then it shows nothing");
	MUST(bind_2(mw) == IBV_WC_SUCCESS);
	rule(bind_2(mw) == IBV_WC_MW_BIND_ERR,
	     "a window that is bound is not bound again (IBA 10.6.7.2.2)");
	pair_again(pair);
	rule_errno(0, ibv_dealloc_mw(mw), "it is given back, bound");
	rule_errno(0, ibv_dereg_mr(region), "and its region after it");
}

static void invalid_twice(void)
{
	struct ibv_mw *mw;

	open_windows(OWNER);
	need_type_2();
	mw = alloc(IBV_MW_TYPE_2);
	MUST(bind_2(mw) == IBV_WC_SUCCESS && local_invalidate(mw->rkey) == IBV_WC_SUCCESS);
	rule(local_invalidate(mw->rkey) != IBV_WC_SUCCESS, "what is invalid is not invalidated");
	MUST(!ibv_destroy_qp(pair[1].qp));
	rule_errno(0, ibv_dereg_mr(region), "a window goes with the QP that bound it");
}

static void atomic_write(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE};
	struct ibv_qp_ex *q;
	struct ibv_wc wc;

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
	rule(!wc.status && wc.opcode == IBV_WC_ATOMIC_WRITE, "an ATOMIC WRITE completes as itself");
	rule(!memcmp(pair[1].room + 8, "12345678", 8), "and has written its eight bytes");
}

static void many(void)
{
	int n = limit_of(hca.attr.max_mw), made;
	struct ibv_mw **mw = calloc((size_t)n + 1, sizeof(struct ibv_mw *));

	MUST(mw);
	for (made = 0; made < n; made++)
		if (!(mw[made] = ibv_alloc_mw(hca.pd, IBV_MW_TYPE_1)))
			break;
	rule(made == n, "there are as many windows as the device says");
	while (made--)
		MUST(!ibv_dealloc_mw(mw[made]));
}

const struct test mw_tests[] = {
	{"allocation", allocation},
	{"type_1", type_1},
	{"bad_bindings", bad_bindings},
	{"type_2", type_2},
	{"invalid_twice", invalid_twice},
	{"atomic_write", atomic_write},
	{"many", many},
	{NULL, NULL},
};
