/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * one_thread write|send GID_INDEX prints the latency of 2 bytes, in seconds one way, between two
 * queue pairs of one thread: half of the median round trip. The thread polls for both ends, as the
 * two processes of perftest do, but it needs only one processor.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "lib/laps.h"
#include "lib/two.h"

#define PORT    1
#define PAGE    4096
#define SIZE    2
#define WARM_UP 100 /* round trips */

struct end {
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	volatile uint8_t *memory; /* [0, SIZE) is received, [PAGE / 2, PAGE / 2 + SIZE) is sent */
};

static void create(struct end *e, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	void *memory = aligned_alloc(PAGE, PAGE);

	if (!memory)
		err(1, "memory");
	memset(memory, 0, PAGE);
	e->memory = memory;
	e->mr = ibv_reg_mr(pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = e->send_cq = ibv_create_cq(pd->context, 4, NULL, NULL, 0);
	init.recv_cq = e->recv_cq = ibv_create_cq(pd->context, 4, NULL, NULL, 0);
	e->qp = e->mr && e->send_cq && e->recv_cq ? ibv_create_qp(pd, &init) : NULL;
	if (!e->qp)
		err(1, "cannot create the objects of a queue pair");
}

static void connect_to(const struct end *e, const struct end *peer, uint8_t gid_index)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = PORT,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = PORT,
			    .grh = {.sgid_index = gid_index, .hop_limit = 1}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};

	if (ibv_query_gid(e->qp->context, PORT, gid_index, &rtr.ah_attr.grh.dgid) ||
	    ibv_modify_qp(e->qp, &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(e->qp, &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER) ||
	    ibv_modify_qp(e->qp, &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		err(1, "cannot connect a queue pair");
}

static void post_send(const struct end *from, const struct end *to, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {(uintptr_t)from->memory + PAGE / 2, SIZE, from->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = opcode,
		      .wr.rdma = {.remote_addr = (uintptr_t)to->memory, .rkey = to->mr->rkey}};

	if (ibv_post_send(from->qp, &wr, &bad))
		errx(1, "ibv_post_send");
}

static void post_receive(const struct end *e)
{
	struct ibv_sge sge = {(uintptr_t)e->memory, SIZE, e->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(e->qp, &wr, &bad))
		errx(1, "ibv_post_recv");
}

static void await(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status)
		errx(1, "a message fails: %s",
		     n < 0 ? "ibv_poll_cq" : ibv_wc_status_str(wc.status));
}

static void write_once(const struct end *from, const struct end *to, uint8_t value)
{
	from->memory[PAGE / 2] = from->memory[PAGE / 2 + 1] = value;
	post_send(from, to, IBV_WR_RDMA_WRITE);
	while (to->memory[0] != value || to->memory[1] != value)
		;
	await(from->send_cq);
}

static void send_once(const struct end *from, const struct end *to, uint8_t value)
{
	from->memory[PAGE / 2] = from->memory[PAGE / 2 + 1] = value;
	post_send(from, to, IBV_WR_SEND);
	await(to->recv_cq);
	if (to->memory[0] != value || to->memory[1] != value)
		errx(1, "a message has another content");
	post_receive(to);
	await(from->send_cq);
}

static double measure(const struct end ends[2],
		      void (*once)(const struct end *, const struct end *, uint8_t))
{
	struct laps laps = {0};

	for (int i = 0; i < WARM_UP + LAPS_MAX; i++) {
		if (i == WARM_UP)
			laps_start(&laps);
		once(&ends[0], &ends[1], (uint8_t)(2 * i + 1));
		once(&ends[1], &ends[0], (uint8_t)(2 * i + 1));
		if (i >= WARM_UP)
			laps_mark(&laps);
	}
	return laps_median(&laps) / 2;
}

int main(int argc, char **argv)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct end ends[2];

	if (argc != 3 || (strcmp(argv[1], "write") && strcmp(argv[1], "send")))
		errx(2, "usage: one_thread write|send GID_INDEX");
	if (!pd)
		errx(1, "no RDMA device");
	for (int i = 0; i < 2; i++)
		create(&ends[i], pd);
	for (int i = 0; i < 2; i++)
		connect_to(&ends[i], &ends[!i], (uint8_t)atoi(argv[2]));
	for (int i = 0; i < 2; i++)
		post_receive(&ends[i]);
	printf("%.9g\n", measure(ends, strcmp(argv[1], "write") ? send_once : write_once));
	return 0;
}
