/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads post datagrams and poll an empty CQ until the process is killed. A line on standard
 * output says that all threads run.
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define GID_INDEX 1
#define THREADS   3 /* that post, and as many that poll: more than a small machine's CPUs */
#define DEPTH     16
#define SIZE      64
#define QKEY      0x11111111

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static uint8_t memory[SIZE];

static void open_all(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = GID_INDEX, .hop_limit = 64}};
	struct ibv_device **list = ibv_get_device_list(NULL);

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, DEPTH, NULL, NULL, 0) : NULL;
	mr = cq ? ibv_reg_mr(pd, memory, sizeof(memory), 0) : NULL;
	if (!mr || ibv_query_gid(context, 1, GID_INDEX, &attr.grh.dgid))
		err(1, "cannot open the device");
	ah = ibv_create_ah(pd, &attr);
	if (!ah)
		err(1, "ibv_create_ah");
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq, .cap = {DEPTH, 1, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	int rc = -1;

	if (qp)
		rc = ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	if (!rc)
		rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!rc)
		rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (rc)
		err(1, "cannot make a QP");
	return qp;
}

/* Posts datagrams to the own QP, which has no receives and so drops them. */
static void *post(void *argument)
{
	struct ibv_qp *qp = argument;
	struct ibv_sge sge = {(uintptr_t)memory, SIZE, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .wr.ud = {ah, qp->qp_num, QKEY}},
			   *bad;
	int rc;

	do {
		rc = ibv_post_send(qp, &wr, &bad);
	} while (!rc || rc == ENOMEM);
	errno = rc;
	err(1, "ibv_post_send");
}

static void *poll_for_ever(void *unused)
{
	struct ibv_wc wc;

	(void)unused;
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	errx(1, "a completion that nobody asked for");
}

static void start(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, run, argument);
	if (errno)
		err(1, "pthread_create");
}

int main(void)
{
	open_all();
	for (int i = 0; i < THREADS; i++) {
		start(post, make_qp());
		start(poll_for_ever, NULL);
	}
	if (write(STDOUT_FILENO, "busy\n", 5) != 5)
		err(1, "standard output");
	for (;;)
		pause();
}
