/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows as programs use them, over two connected QPs of one process:
 * ibv_bind_mw for type 1, posted bindings for type 2, and both kinds of invalidation;
 * and ATOMIC WRITE through one.
 */
#include <err.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#define GID_INDEX 1
#define ROOM      8192
#define WINDOW    4096 /* offset of what is bound */
#define LENGTH    512
#define SECONDS   10

static uint8_t memory[2][ROOM]; /* [1] is the owner's of the windows */

struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr[2];

static struct side open_side(void)
{
	struct side side = {.cq = ibv_create_cq(context, 32, NULL, NULL, 0)};
	struct ibv_qp_init_attr_ex init = {
		.send_cq = side.cq,
		.recv_cq = side.cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
				  IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_ATOMIC_WRITE,
	};

	if (!side.cq)
		err(1, "ibv_create_cq");
	side.qp = ibv_create_qp_ex(context, &init);
	if (!side.qp)
		err(1, "ibv_create_qp_ex");
	side.qpx = ibv_qp_to_qp_ex(side.qp);
	return side;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	errno = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);
	if (errno)
		err(1, "ibv_modify_qp to state %d", attr->qp_state);
}

static void connect_side(struct ibv_qp *qp, const struct ibv_qp *peer, const union ibv_gid *gid)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = peer->qp_num,
				  .max_dest_rd_atomic = 1,
				  .ah_attr = {.is_global = 1,
					      .port_num = 1,
					      .grh = {.dgid = *gid, .sgid_index = GID_INDEX}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1};

	modify(qp, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(qp, &rtr,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(qp, &rts,
	       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

static void open_pair(struct side side[2])
{
	union ibv_gid gid;

	if (ibv_query_gid(context, 1, GID_INDEX, &gid))
		err(1, "ibv_query_gid");
	side[0] = open_side();
	side[1] = open_side();
	connect_side(side[0].qp, side[1].qp, &gid);
	connect_side(side[1].qp, side[0].qp, &gid);
}

static void close_pair(struct side side[2])
{
	for (int i = 0; i < 2; i++)
		if (ibv_destroy_qp(side[i].qp) || ibv_destroy_cq(side[i].cq))
			err(1, "cannot destroy a QP");
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device_attr attr;

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	if (!pd || ibv_query_device(context, &attr))
		err(1, "cannot open the device");
	if (!attr.max_mw || !(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW) ||
	    !(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		errx(1, "the device has no memory windows");
	for (int i = 0; i < 2; i++) {
		mr[i] = ibv_reg_mr(pd, memory[i], ROOM,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		if (!mr[i])
			err(1, "ibv_reg_mr");
	}
}

static struct ibv_wc completion(struct side *side)
{
	time_t end = time(NULL) + SECONDS;
	struct ibv_wc wc;

	while (!ibv_poll_cq(side->cq, 1, &wc))
		if (time(NULL) > end)
			errx(1, "no completion in %d s", SECONDS);
	return wc;
}

static void expect(struct side *side, enum ibv_wc_status status, const char *what)
{
	struct ibv_wc wc = completion(side);

	if (wc.status != status)
		errx(1, "%s: %s", what, ibv_wc_status_str(wc.status));
}

static void write_to(struct side *side, uint32_t rkey, uint32_t length, enum ibv_wc_status status,
		     const char *what)
{
	memset(memory[0], (int)rkey, ROOM);
	memset(memory[1], ~(int)rkey, ROOM);
	ibv_wr_start(side->qpx);
	ibv_wr_rdma_write(side->qpx, rkey, (uintptr_t)memory[1] + WINDOW);
	ibv_wr_set_sge(side->qpx, mr[0]->lkey, (uintptr_t)memory[0], length);
	if (ibv_wr_complete(side->qpx))
		err(1, "cannot post a write");
	expect(side, status, what);
	if (!memcmp(memory[1] + WINDOW, memory[0], length) == !!status)
		errx(1, "%s: the bytes are wrong", what);
}

static struct ibv_mw_bind_info bind_info(void)
{
	return (struct ibv_mw_bind_info){.mr = mr[1],
					 .addr = (uintptr_t)memory[1] + WINDOW,
					 .length = LENGTH,
					 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
}

static struct ibv_mw *alloc(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, type);

	if (!mw)
		err(1, "ibv_alloc_mw");
	return mw;
}

static void bind_type_1(struct side *side, struct ibv_mw *mw, uint64_t length)
{
	struct ibv_mw_bind bind = {.bind_info = bind_info(), .send_flags = IBV_SEND_SIGNALED};

	bind.bind_info.length = length;
	errno = ibv_bind_mw(side->qp, mw, &bind);
	if (errno)
		err(1, "ibv_bind_mw");
	expect(side, IBV_WC_SUCCESS, "bind type 1");
}

static void atomic_write(struct side *side, uint32_t rkey)
{
	struct ibv_wc wc;

	ibv_wr_start(side->qpx);
	ibv_wr_atomic_write(side->qpx, rkey, (uintptr_t)memory[1] + WINDOW + 8, "12345678");
	if (ibv_wr_complete(side->qpx))
		err(1, "cannot post an atomic write");
	wc = completion(side);
	if (wc.status || wc.opcode != IBV_WC_ATOMIC_WRITE)
		errx(1, "atomic write: %s", ibv_wc_status_str(wc.status));
	if (memcmp(memory[1] + WINDOW + 8, "12345678", 8))
		errx(1, "atomic write: the bytes are wrong");
}

static void type_1(void)
{
	struct ibv_mw *mw = alloc(IBV_MW_TYPE_1);
	struct side side[2];

	open_pair(side);
	bind_type_1(&side[1], mw, LENGTH);
	write_to(&side[0], mw->rkey, LENGTH, IBV_WC_SUCCESS, "write through type 1");
	atomic_write(&side[0], mw->rkey);
	if (ibv_dereg_mr(mr[1]) != EBUSY)
		errx(1, "a region goes away under its window");
	bind_type_1(&side[1], mw, LENGTH / 2);
	write_to(&side[0], mw->rkey, LENGTH / 2, IBV_WC_SUCCESS, "write after binding again");
	write_to(&side[0], mw->rkey, LENGTH, IBV_WC_REM_ACCESS_ERR, "write too much");
	if (ibv_dealloc_mw(mw))
		err(1, "ibv_dealloc_mw");
	close_pair(side);
}

static void bind_type_2(struct side *side, struct ibv_mw *mw, enum ibv_wc_status status)
{
	struct ibv_mw_bind_info info = bind_info();
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	ibv_wr_start(side->qpx);
	ibv_wr_bind_mw(side->qpx, mw, rkey, &info);
	if (ibv_wr_complete(side->qpx))
		err(1, "cannot post a binding");
	expect(side, status, "bind type 2");
	mw->rkey = rkey;
}

/* The peer invalidates it with a message that says so. */
static void send_invalidate(struct side side[2], uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)memory[1], 64, mr[1]->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc;

	if (ibv_post_recv(side[1].qp, &recv, &bad))
		err(1, "cannot post a receive");
	ibv_wr_start(side[0].qpx);
	ibv_wr_send_inv(side[0].qpx, rkey);
	ibv_wr_set_sge(side[0].qpx, mr[0]->lkey, (uintptr_t)memory[0], 64);
	if (ibv_wr_complete(side[0].qpx))
		err(1, "cannot post a send");
	expect(&side[0], IBV_WC_SUCCESS, "send with invalidate");
	wc = completion(&side[1]);
	if (wc.status || !(wc.wc_flags & IBV_WC_WITH_INV) || wc.invalidated_rkey != rkey)
		errx(1, "the receiver does not hear which key is invalid");
}

static void local_invalidate(struct side *side, uint32_t rkey, enum ibv_wc_status status)
{
	ibv_wr_start(side->qpx);
	ibv_wr_local_inv(side->qpx, rkey);
	if (ibv_wr_complete(side->qpx))
		err(1, "cannot post an invalidation");
	expect(side, status, "local invalidate");
}

static void type_2(void)
{
	struct ibv_mw *mw = alloc(IBV_MW_TYPE_2);
	struct side side[2];

	open_pair(side);
	bind_type_2(&side[1], mw, IBV_WC_SUCCESS);
	write_to(&side[0], mw->rkey, LENGTH, IBV_WC_SUCCESS, "write through type 2");
	local_invalidate(&side[1], mw->rkey, IBV_WC_SUCCESS);
	bind_type_2(&side[1], mw, IBV_WC_SUCCESS);
	write_to(&side[0], mw->rkey, LENGTH, IBV_WC_SUCCESS, "write after binding again");
	send_invalidate(side, mw->rkey);
	write_to(&side[0], mw->rkey, LENGTH, IBV_WC_REM_ACCESS_ERR, "write after invalidation");
	close_pair(side);

	/* Bound twice, and invalidated twice: errors that end the QP. */
	open_pair(side);
	bind_type_2(&side[1], mw, IBV_WC_SUCCESS);
	bind_type_2(&side[1], mw, IBV_WC_MW_BIND_ERR);
	close_pair(side);
	open_pair(side);
	local_invalidate(&side[1], mw->rkey, IBV_WC_LOC_QP_OP_ERR);
	close_pair(side);
	if (ibv_dereg_mr(mr[1])) /* its window went with the QP that bound it */
		err(1, "ibv_dereg_mr");
}

int main(void)
{
	open_device();
	type_1();
	type_2(); /* one window is left for the library to clean up */
	return 0;
}
