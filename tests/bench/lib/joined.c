/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "joined.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GID_INDEX 1
#define PORT      1
#define SIZE      8
#define RECEIVES  2 /* receives for each outstanding request */
#define PAGE      4096
#define POLLS     64 /* polls between two checks of the other process's counters */

/* The progress of both processes in shared memory; each process writes its own half. */
struct joined_side {
	uint32_t qpns[JOINED_MAX];
	uint64_t addr;
	uint32_t rkey;
};

static struct joined_side *own(const struct joined *p)
{
	return &p->sides[p->index];
}

static const struct joined_side *other(const struct joined *p)
{
	return &p->sides[!p->index];
}

/* Writes the counters without which the other process would wait. */
static void tell(const struct joined *p)
{
	char byte = 0;

	if (write(p->peer, &byte, 1) != 1)
		err(1, "the other process has gone");
}

static bool told(const struct joined *p, int flags)
{
	char byte;
	ssize_t n = recv(p->peer, &byte, 1, flags);

	if (n == 0)
		errx(1, "the other process has gone");
	return n == 1;
}

void joined_meet(const struct joined *p)
{
	tell(p);
	while (!told(p, 0))
		;
}

/* Not for receives: the other process may have started to send again. */
static void joined_attend(struct joined *p)
{
	tell(p);
	do
		for (int i = 0; i < POLLS; i++)
			joined_poll(p, p->send_cq);
	while (!told(p, MSG_DONTWAIT));
}

/* --- Objects */

static void open_device(struct joined *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int entries = (int)(RECEIVES * p->depth * p->count);

	p->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	p->pd = p->context ? ibv_alloc_pd(p->context) : NULL;
	p->channel = p->pd ? ibv_create_comp_channel(p->context) : NULL;
	p->send_cq = p->channel ? ibv_create_cq(p->context, entries, NULL, NULL, 0) : NULL;
	p->recv_cq = p->send_cq ? ibv_create_cq(p->context, entries, NULL, p->channel, 0) : NULL;
	p->buffer = aligned_alloc(PAGE, PAGE);
	if (!p->recv_cq || !p->buffer)
		err(1, "cannot open the device");
	memset(p->buffer, 0, PAGE);
	p->mr = ibv_reg_mr(p->pd, p->buffer, PAGE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	p->qps = calloc(p->count, sizeof(struct ibv_qp *));
	p->busy = calloc(p->count, sizeof(uint16_t));
	if (!p->mr || !p->qps || !p->busy)
		err(1, "ibv_reg_mr");
	own(p)->addr = (uintptr_t)p->buffer;
	own(p)->rkey = p->mr->rkey;
	/*
	 * The page is populated from the start, so that its memory is not counted as the queue
	 * pairs'.
	 */
	memset(p->qps, 0xff, p->count * sizeof(struct ibv_qp *));
	memset(p->busy, 0, p->count * sizeof(uint16_t));
	memset(own(p)->qpns, 0xff, p->count * sizeof(uint32_t));
}

static void create(struct joined *p, uint32_t i)
{
	struct ibv_qp_init_attr init = {.send_cq = p->send_cq,
					.recv_cq = p->recv_cq,
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = p->depth,
						.max_recv_wr = RECEIVES * p->depth,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	p->qps[i] = ibv_create_qp(p->pd, &init);
	if (!p->qps[i])
		err(1, "queue pair %u of %u", i + 1, p->count);
	own(p)->qpns[i] = p->qps[i]->qp_num;
}

static void connect_one(const struct joined *p, uint32_t i)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = PORT,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = other(p)->qpns[i],
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = PORT, .grh = {.sgid_index = GID_INDEX}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};

	if (ibv_query_gid(p->context, PORT, GID_INDEX, &rtr.ah_attr.grh.dgid) ||
	    ibv_modify_qp(p->qps[i], &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(p->qps[i], &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER) ||
	    ibv_modify_qp(p->qps[i], &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		err(1, "cannot connect QP %#x", p->qps[i]->qp_num);
}

void joined_connect(struct joined *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		create(p, i);
	joined_meet(p);
	for (uint32_t i = 0; i < p->count; i++)
		connect_one(p, i);
	joined_meet(p);
}

/* --- Messages. A request's wr_id is the index of its queue pair. */

void joined_post_receive(const struct joined *p, uint64_t i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)p->buffer + PAGE / 2, .length = SIZE, .lkey = p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(p->qps[i], &wr, &bad))
		errx(1, "ibv_post_recv");
}

static void post(const struct joined *p, uint64_t i, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {.addr = (uintptr_t)p->buffer, .length = SIZE, .lkey = p->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = i,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .wr.rdma = {.remote_addr = other(p)->addr + PAGE / 2,
					     .rkey = other(p)->rkey}},
			   *bad;

	if (ibv_post_send(p->qps[i], &wr, &bad))
		errx(1, "ibv_post_send");
}

/* The next connection in turn, except those whose window is full. */
static void next_turn(struct joined *p)
{
	do
		p->next = p->next + 1 < p->count ? p->next + 1 : 0;
	while (p->busy[p->next] == p->depth);
	p->turn = p->burst;
}

void joined_post(struct joined *p, enum ibv_wr_opcode opcode)
{
	if (!p->turn || p->busy[p->next] == p->depth)
		next_turn(p);
	p->turn--;
	p->busy[p->next]++;
	post(p, p->next, opcode);
}

uint32_t joined_poll(struct joined *p, struct ibv_cq *cq)
{
	int n = ibv_poll_cq(cq, sizeof(p->wcs) / sizeof(p->wcs[0]), p->wcs);

	for (int i = 0; i < n; i++) {
		if (p->wcs[i].status)
			errx(1, "QP %#x: %s", p->wcs[i].qp_num,
			     ibv_wc_status_str(p->wcs[i].status));
		p->busy[p->wcs[i].wr_id] -= cq == p->send_cq;
	}
	if (n < 0)
		errx(1, "ibv_poll_cq");
	return (uint32_t)n;
}

static uint32_t window(const struct joined *p)
{
	uint64_t all = (uint64_t)p->depth * p->count;

	return all < JOINED_WINDOW ? (uint32_t)all : JOINED_WINDOW;
}

/* Sends `messages` in turn on each connection, with as many outstanding as the window allows. */
static void send_all(struct joined *p, enum ibv_wr_opcode opcode, uint32_t messages)
{
	uint32_t posted = 0, done = 0;

	for (; posted < window(p) && posted < messages; posted++)
		joined_post(p, opcode);
	while (done < messages) {
		uint32_t n = joined_poll(p, p->send_cq);

		done += n;
		for (; n && posted < messages; n--, posted++)
			joined_post(p, opcode);
	}
}

/* The other side of send_all: posts a receive for each message. */
static void receive_all(struct joined *p, uint32_t messages)
{
	for (uint32_t i = 0; i < messages;) {
		uint32_t n = joined_poll(p, p->recv_cq);

		for (uint32_t k = 0; k < n; k++)
			joined_post_receive(p, p->wcs[k].wr_id);
		i += n;
	}
}

void joined_transfer(struct joined *p, enum ibv_wr_opcode opcode, uint32_t messages)
{
	if (p->leads)
		send_all(p, opcode, messages);
	else if (opcode == IBV_WR_SEND)
		receive_all(p, messages);
	/* The engine sends acknowledgements and executes WRITEs meanwhile. */
	joined_attend(p);
}

/* A ring has up to twice as many places as requested, a power of two. */
void joined_warm_up(struct joined *p, enum ibv_wr_opcode opcode)
{
	joined_transfer(p, opcode, 2 * RECEIVES * p->depth * p->count);
}

/* --- Two processes */

void joined_prepare(struct joined *p)
{
	joined_connect(p);
	for (uint32_t i = 0; i < p->count * RECEIVES * p->depth; i++)
		joined_post_receive(p, i % p->count);
	joined_meet(p);
}

struct body {
	struct joined *joined;
	double (*run)(struct joined *joined);
};

static double run(const struct body *body)
{
	double value;

	open_device(body->joined);
	value = body->run(body->joined);
	/* This process's last acknowledgements must leave before it ends. */
	joined_attend(body->joined);
	return value;
}

static void follow(void *body)
{
	run(body);
}

double joined_run(const struct bench_cpus *cpus, struct joined *joined,
		  double (*run_body)(struct joined *joined))
{
	struct body body = {joined, run_body};
	int sockets[2], status;
	double value;
	pid_t child;

	if (!joined->count || joined->count > JOINED_MAX)
		errx(2, "1 to %d connections", JOINED_MAX);
	joined->depth = joined->count < JOINED_WINDOW ? JOINED_WINDOW / joined->count : 1;
	if (joined->depth < joined->burst)
		joined->depth = joined->burst;
	joined->sides = mmap(NULL, 2 * sizeof(struct joined_side), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (joined->sides == MAP_FAILED ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		err(1, "cannot start two processes");
	/* Before the device is open: a child cannot use an inherited device. */
	joined->peer = sockets[0];
	child = bench_child(cpus, follow, &body);
	joined->peer = sockets[1];
	close(sockets[0]);
	joined->index = true;
	joined->leads = true;
	bench_pin(cpus->own);
	value = run(&body);
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "the other process: %#x", status);
	return value;
}
