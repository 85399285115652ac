/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Uses verbs on command, while a test stops and starts daemons. Each letter on standard input is a
 * command, and the program repeats the letter on standard output after it has executed it.
 *
 *   c  connects two RC QPs of this process to each other
 *   w  WRITEs from one QP's memory to the other QP's, and compares it
 *   o  opens and closes a second context
 *   j  joins a multicast group
 *   s  sends to the group
 *   h  waits for a datagram of the group
 *   f  forks a child, which opens the device itself
 *   J  joins a multicast group in a thread of its own
 *   e  waits for the end of that thread
 *   d  opens all descriptors that the process may have
 *   p  waits for the event of a changed P_Key table
 *   l  expects the opened device in a new list of devices
 *   g  queries the GID
 */
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "orders.h"
#include "pattern.h"

#define GID_INDEX 1
#define SIZE      65536
#define WRITES    64
#define QKEY      0x11111111
#define GRH       40
#define SECONDS   20

static const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *pair[2], *member;
static uint8_t memory[2 * SIZE];

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *opened = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (list)
		ibv_free_device_list(list);
	return opened;
}

static struct ibv_qp *create_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.sq_sig_all = 1,
		.cap = {WRITES, 1, 1, 1, 0},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qkey = QKEY,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp || ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 (type == IBV_QPT_RC ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)))
		err(1, "cannot create a QP");
	return qp;
}

static void open_all(void)
{
	context = open_device();
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, 4 * WRITES, NULL, NULL, 0) : NULL;
	mr = cq ? ibv_reg_mr(pd, memory, sizeof(memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		: NULL;
	if (!mr)
		err(1, "cannot use the device");
	pair[0] = create_qp(IBV_QPT_RC);
	pair[1] = create_qp(IBV_QPT_RC);
	member = create_qp(IBV_QPT_UD);
}

static void await_completions(enum ibv_wc_opcode opcode, int n)
{
	time_t end = time(NULL) + SECONDS;
	struct ibv_wc wc;

	while (n) {
		if (ibv_poll_cq(cq, 1, &wc) != 1) {
			if (time(NULL) > end)
				errx(1, "%d completions are missing", n);
			continue;
		}
		if (wc.status)
			errx(1, "completion: %s", ibv_wc_status_str(wc.status));
		n -= wc.opcode == opcode;
	}
}

static void connect_to(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = *gid, .sgid_index = GID_INDEX}},
	};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		err(1, "cannot connect");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 1, .max_rd_atomic = 1};
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		err(1, "cannot send");
}

static union ibv_gid query_gid(void)
{
	union ibv_gid gid;

	if (ibv_query_gid(context, 1, GID_INDEX, &gid))
		err(1, "no GID");
	return gid;
}

static void connect_pair(void)
{
	const union ibv_gid gid = query_gid();

	connect_to(pair[0], pair[1]->qp_num, &gid);
	connect_to(pair[1], pair[0]->qp_num, &gid);
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (ibv_post_send(qp, wr, &bad))
		err(1, "cannot post");
}

static void write_all(void)
{
	static uint32_t seed;

	pattern_fill(memory, ++seed, SIZE);
	for (uint32_t i = 0; i < WRITES; i++) {
		uint64_t at = (uintptr_t)memory + i * (SIZE / WRITES);
		struct ibv_sge sge = {at, SIZE / WRITES, mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .wr.rdma = {at + SIZE, mr->rkey}};

		post(pair[0], &wr);
	}
	await_completions(IBV_WC_RDMA_WRITE, WRITES);
	if (pattern_differs(memory + SIZE, seed, 0, SIZE))
		errx(1, "what was written is not what is there");
}

static void open_another(void)
{
	struct ibv_context *other = open_device();

	if (!other || ibv_close_device(other))
		err(1, "no second context");
}

static void ready_member(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};

	if (ibv_modify_qp(member, &attr, IBV_QP_STATE))
		err(1, "cannot receive");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(member, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		err(1, "cannot send");
}

static void join_group(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, GRH + 1, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	ready_member();
	if (ibv_attach_mcast(member, &group, 0) || ibv_post_recv(member, &wr, &bad))
		err(1, "cannot join a group");
}

static void send_to_group(void)
{
	struct ibv_ah_attr to = {.is_global = 1,
				 .port_num = 1,
				 .grh = {.dgid = group, .sgid_index = GID_INDEX, .hop_limit = 1}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .wr.ud = {ibv_create_ah(pd, &to), 0xffffff, QKEY}};

	if (!wr.wr.ud.ah)
		err(1, "no address handle for a group");
	ready_member();
	post(member, &wr);
	await_completions(IBV_WC_SEND, 1);
}

static void fork_child(void)
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(!open_device());
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "a child cannot open the device");
}

static pthread_t joiner;

static void *join_in_thread(void *unused)
{
	join_group();
	return unused;
}

static void begin_join(void)
{
	if (pthread_create(&joiner, NULL, join_in_thread, NULL))
		errx(1, "no thread");
}

static void end_join(void)
{
	if (pthread_join(joiner, NULL))
		errx(1, "cannot await the thread");
}

static void open_descriptors(void)
{
	while (open("/dev/null", O_RDONLY) >= 0)
		;
}

static void await_pkey_change(void)
{
	struct pollfd pfd = {.fd = context->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	bool changed;

	do {
		if (poll(&pfd, 1, SECONDS * 1000) != 1 || ibv_get_async_event(context, &event))
			errx(1, "no event of the P_Key table");
		changed = event.event_type == IBV_EVENT_PKEY_CHANGE;
		ibv_ack_async_event(&event);
	} while (!changed);
}

/* libibverbs lists a device that stays by the same pointer. */
static void list_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || list[0] != context->device)
		errx(1, "the list has another device");
	ibv_free_device_list(list);
}

static void run_command(int order)
{
	switch (order) {
	case 'c': connect_pair(); break;
	case 'w': write_all(); break;
	case 'o': open_another(); break;
	case 'j': join_group(); break;
	case 's': send_to_group(); break;
	case 'h': await_completions(IBV_WC_RECV, 1); break;
	case 'f': fork_child(); break;
	case 'J': begin_join(); break;
	case 'e': end_join(); break;
	case 'd': open_descriptors(); break;
	case 'p': await_pkey_change(); break;
	case 'l': list_device(); break;
	case 'g': query_gid(); break;
	default: errx(2, "no such order: %c", order);
	}
}

int main(void)
{
	open_all();
	take_orders(run_command);
	return 0;
}
