/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verbs_many COUNT: two processes create COUNT QPs each. They connect the first, the last, and the
 * QPs at the borders of leased QPN blocks, and send in both directions on each. They send again
 * after a line on standard input, and destroy everything at the end.
 */
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define GID_INDEX 1
#define PORT      1
#define BLOCK     4096 /* QPNs of a lease */
#define CHOSEN    64   /* maximum number of connected QPs */

struct process {
	uint32_t count;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp **qps;
	uint32_t chosen[CHOSEN]; /* indices */
	uint32_t n_chosen;
	int peer; /* socket */
	uint32_t out[CHOSEN], in[CHOSEN];
};

static void open_device(struct process *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	p->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	p->pd = p->context ? ibv_alloc_pd(p->context) : NULL;
	p->cq = p->pd ? ibv_create_cq(p->context, 2 * CHOSEN, NULL, NULL, 0) : NULL;
	p->mr = p->cq ? ibv_reg_mr(p->pd, p, sizeof(*p), IBV_ACCESS_LOCAL_WRITE) : NULL;
	p->qps = calloc(p->count, sizeof(struct ibv_qp *));
	if (!p->mr || !p->qps)
		err(1, "cannot open the device");
}

static struct ibv_qp *create(const struct process *p)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	errno = 0;
	return ibv_create_qp(p->pd, &init);
}

static void create_all(struct process *p)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(p->context, &attr))
		err(1, "ibv_query_device");
	for (uint32_t i = 0; i < p->count; i++) {
		p->qps[i] = create(p);
		if (!p->qps[i])
			err(1, "queue pair %u of %u", i + 1, p->count);
		if (i == 0 || i == p->count - 1 || i % BLOCK == 0 || i % BLOCK == BLOCK - 1)
			p->chosen[p->n_chosen++] = i;
	}
	if (p->count != (uint32_t)attr.max_qp)
		return;
	/* Linux' rxe returns this errno, too. */
	if (create(p) || errno != EINVAL)
		err(1, "one more than max_qp");
	if (ibv_destroy_qp(p->qps[p->count / 2]))
		err(1, "ibv_destroy_qp");
	p->qps[p->count / 2] = create(p);
	if (!p->qps[p->count / 2])
		err(1, "in the place of one that was given back");
}

/* --- Connections */

/* Sends a word to the other process and receives one. */
static uint32_t swap(const struct process *p, uint32_t word)
{
	if (write(p->peer, &word, sizeof(word)) != sizeof(word) ||
	    read(p->peer, &word, sizeof(word)) != sizeof(word))
		errx(1, "the other process has gone");
	return word;
}

static void connect_one(const struct process *p, struct ibv_qp *qp)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = swap(p, qp->qp_num),
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = PORT, .grh = {.sgid_index = GID_INDEX}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};

	if (ibv_query_gid(p->context, PORT, GID_INDEX, &rtr.ah_attr.grh.dgid) ||
	    ibv_modify_qp(qp, &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(qp, &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER) ||
	    ibv_modify_qp(qp, &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		err(1, "cannot connect QP %#x to %#x", qp->qp_num, rtr.dest_qp_num);
}

static struct ibv_sge segment(const struct process *p, uint32_t *word)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)word, .length = sizeof(*word), .lkey = p->mr->lkey};
}

static void post_receive(struct process *p, uint32_t i)
{
	struct ibv_sge sge = segment(p, &p->in[i]);
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	p->in[i] = 0;
	if (ibv_post_recv(p->qps[p->chosen[i]], &wr, &bad))
		errx(1, "ibv_post_recv");
}

static void post_send(struct process *p, uint32_t i, uint32_t word)
{
	struct ibv_sge sge = segment(p, &p->out[i]);
	struct ibv_send_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND},
			   *bad;

	p->out[i] = word;
	if (ibv_post_send(p->qps[p->chosen[i]], &wr, &bad))
		errx(1, "ibv_post_send");
}

/* Each process sends the number of the connection on each connection, so a misdelivery shows. */
static void exchange(struct process *p, uint32_t round)
{
	struct ibv_wc wc;
	uint32_t i;
	int n;

	for (i = 0; i < p->n_chosen; i++)
		post_receive(p, i);
	swap(p, 0);
	for (i = 0; i < p->n_chosen; i++)
		post_send(p, i, round + p->chosen[i]);
	for (i = 0; i < 2 * p->n_chosen; i++) {
		while (!(n = ibv_poll_cq(p->cq, 1, &wc)))
			;
		if (n < 0 || wc.status)
			errx(1, "QP %#x: %s", wc.qp_num, ibv_wc_status_str(wc.status));
		if (wc.qp_num != p->qps[p->chosen[wc.wr_id]]->qp_num)
			errx(1, "a completion of QP %#x is another's", wc.qp_num);
	}
	for (i = 0; i < p->n_chosen; i++)
		if (p->in[i] != round + p->chosen[i])
			errx(1, "connection %u has %u", i, p->in[i]);
}

static void give_back(struct process *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (ibv_destroy_qp(p->qps[i]))
			err(1, "ibv_destroy_qp");
	free(p->qps);
	if (ibv_dereg_mr(p->mr) || ibv_destroy_cq(p->cq) || ibv_dealloc_pd(p->pd) ||
	    ibv_close_device(p->context))
		err(1, "cannot close what was opened");
}

static void run(struct process *p, bool leads)
{
	open_device(p);
	create_all(p);
	for (uint32_t i = 0; i < p->n_chosen; i++)
		connect_one(p, p->qps[p->chosen[i]]);
	exchange(p, 1000000);
	if (leads) {
		puts("ready");
		fflush(stdout);
		getchar();
	}
	swap(p, 0);
	exchange(p, 2000000);
	swap(p, 0);
	give_back(p);
}

int main(int argc, char **argv)
{
	static struct process p;
	int sockets[2], status;
	pid_t child;

	p.count = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	if (!p.count)
		errx(2, "usage: verbs_many COUNT");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		err(1, "socketpair");
	/* Before the device is opened: a child cannot use an inherited device. */
	child = fork();
	p.peer = sockets[!!child];
	close(sockets[!child]);
	run(&p, child);
	if (!child)
		return 0;
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "the other process: %#x", status);
	return 0;
}
