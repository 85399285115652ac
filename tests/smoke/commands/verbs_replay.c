/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A connection between two QPs of this process, and one scene on it, for a capture with --state:
 *
 *   success  SENDs, WRITEs, READs and atomics that succeed
 *   access   a WRITE with a wrong key, which ends in a remote access error
 *   rnr      a SEND without a receive, which ends when the RNR retries are used up
 *   drop     a datagram with a wrong Q_Key, which is dropped, and one with the right Q_Key
 *
 * Prints "connected" and waits for a line on standard input. Exits with 0 if the scene ends as it
 * has to.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "loop.h"

#define GID_INDEX 1
#define SIZE      20000
#define ROUNDS    20
#define QKEY      0x1234

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *sender, *receiver;
static uint8_t memory[4 * SIZE] __attribute__((aligned(64)));

static struct ibv_qp *create_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		err(1, "ibv_create_qp");
	return qp;
}

static const struct loop_retries few = {
	.min_rnr_timer = 1, /* 0.01 ms */
	.timeout = 18,      /* 1 s, for busy machines */
	.retry_cnt = 2,
	.rnr_retry = 3,
};

static void set_up(void)
{
	context = loop_open();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 256, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), LOOP_ACCESS);
	if (!pd || !cq || !mr)
		err(1, "cannot set the device up");
	sender = create_qp();
	receiver = create_qp();
	loop_connect_retrying(receiver, sender->qp_num, &few);
	loop_connect_retrying(sender, receiver->qp_num, &few);
}

static void tear_down(void)
{
	if (ibv_destroy_qp(sender) || ibv_destroy_qp(receiver) || ibv_dereg_mr(mr) ||
	    ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(context))
		err(1, "cannot close the device");
}

/* --- Requests. */

static void post_send(enum ibv_wr_opcode opcode, uint32_t length, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)memory, length, mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = (uint64_t)opcode + 1,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = opcode,
				       .send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = (uintptr_t)memory + 2 * SIZE;
	wr.wr.rdma.rkey = rkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)memory + 2 * SIZE;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = rkey;
	}
	if (ibv_post_send(sender, &wr, &bad))
		err(1, "ibv_post_send");
}

static void post_recv(void)
{
	struct ibv_sge sge = {(uintptr_t)memory + SIZE, SIZE, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(receiver, &wr, &bad))
		err(1, "ibv_post_recv");
}

/* Waits for n completions; the last one must have this status, the others success. */
static void expect(int n, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	while (n--) {
		while (!ibv_poll_cq(cq, 1, &wc))
			;
		if (wc.status != (n ? IBV_WC_SUCCESS : status))
			errx(1, "a completion has the status %s", ibv_wc_status_str(wc.status));
	}
}

/* --- Scenes. */

static void succeed(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		post_recv();
		post_send(IBV_WR_SEND, SIZE, 0);
		expect(2, IBV_WC_SUCCESS);
		post_send(IBV_WR_RDMA_WRITE, SIZE, mr->rkey);
		post_send(IBV_WR_RDMA_READ, SIZE, mr->rkey);
		post_send(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, mr->rkey);
		expect(3, IBV_WC_SUCCESS);
	}
}

static void use_wrong_key(void)
{
	post_send(IBV_WR_RDMA_WRITE, SIZE, mr->rkey);
	expect(1, IBV_WC_SUCCESS);
	post_send(IBV_WR_RDMA_WRITE, SIZE, mr->rkey ^ 0x100);
	expect(1, IBV_WC_REM_ACCESS_ERR);
}

static void find_no_receive(void)
{
	post_send(IBV_WR_SEND, 100, 0);
	expect(1, IBV_WC_RNR_RETRY_EXC_ERR);
}

static struct ibv_qp *create_datagram_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp ||
	    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		err(1, "cannot create a QP for datagrams");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		err(1, "cannot receive datagrams");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		err(1, "cannot send datagrams");
	return qp;
}

static void send_datagram(struct ibv_qp *from, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = {(uintptr_t)memory, 100, mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = qkey,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.ud = {ah, qpn, qkey}};

	if (ibv_post_send(from, &wr, &bad))
		err(1, "ibv_post_send");
}

static void send_wrong_qkey(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = GID_INDEX, .hop_limit = 64}};
	struct ibv_qp *from = create_datagram_qp(), *to = create_datagram_qp();
	struct ibv_sge sge = {(uintptr_t)memory + SIZE, SIZE, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 78, .sg_list = &sge, .num_sge = 1};
	struct ibv_ah *ah;

	if (ibv_query_gid(context, 1, GID_INDEX, &attr.grh.dgid))
		err(1, "ibv_query_gid");
	ah = ibv_create_ah(pd, &attr);
	if (!ah || ibv_post_recv(to, &wr, &bad))
		err(1, "cannot prepare a datagram");
	send_datagram(from, ah, to->qp_num, QKEY + 1);
	send_datagram(from, ah, to->qp_num, QKEY);
	expect(3, IBV_WC_SUCCESS);
	if (ibv_destroy_ah(ah) || ibv_destroy_qp(from) || ibv_destroy_qp(to))
		err(1, "cannot destroy the QPs for datagrams");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(void);
	} scenes[] = {{"success", succeed},
		      {"access", use_wrong_key},
		      {"rnr", find_no_receive},
		      {"drop", send_wrong_qkey}};

	set_up();
	puts("connected");
	fflush(stdout);
	if (getchar() == EOF)
		errx(1, "no line on standard input");
	for (size_t i = 0; argc == 2 && i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		if (strcmp(scenes[i].name, argv[1]) != 0)
			continue;
		scenes[i].play();
		tear_down();
		return 0;
	}
	errx(2, "usage: verbs_replay success|access|rnr|drop");
}
