/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * No process keeps another process from connecting to a remote QP: two processes connect to the
 * same remote QP, in each order, and after reset, error, destroy and death of the first one.
 */
#include <err.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define GID_INDEX  1
#define REMOTE_QPN 0x777777

struct side {
	enum ibv_qp_type type;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void open_side(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	s->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	s->pd = s->context ? ibv_alloc_pd(s->context) : NULL;
	s->cq = s->pd ? ibv_create_cq(s->context, 4, NULL, NULL, 0) : NULL;
	if (!s->cq)
		err(1, "cannot open the device");
}

static void create(struct side *s)
{
	struct ibv_qp_init_attr init = {.send_cq = s->cq,
					.recv_cq = s->cq,
					.qp_type = s->type,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};

	s->qp = ibv_create_qp(s->pd, &init);
	if (!s->qp)
		err(1, "ibv_create_qp");
}

/* Brings the QP from any state to INIT. */
static void make_ready(struct side *s)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	if (!s->qp)
		create(s);
	if (ibv_modify_qp(s->qp, &reset, IBV_QP_STATE) ||
	    ibv_modify_qp(s->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		err(1, "cannot bring a QP to INIT");
}

/* Result of the transition to RTR: 0 or an errno value. */
static int connect_to(struct side *s)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = REMOTE_QPN,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = GID_INDEX}},
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (s->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	make_ready(s);
	if (ibv_query_gid(s->context, 1, GID_INDEX, &attr.ah_attr.grh.dgid))
		err(1, "ibv_query_gid");
	return ibv_modify_qp(s->qp, &attr, mask);
}

static void fail(struct side *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (ibv_modify_qp(s->qp, &attr, IBV_QP_STATE))
		err(1, "cannot bring a QP to the error state");
}

static void destroy(struct side *s)
{
	if (ibv_destroy_qp(s->qp))
		err(1, "ibv_destroy_qp");
	s->qp = NULL;
}

/* Executes c(onnect), r(eset), f(ail) or d(estroy). Returns connect's result, or 0. */
static int act(struct side *s, char what)
{
	switch (what) {
	case 'c': return connect_to(s);
	case 'r': make_ready(s); return 0;
	case 'f': fail(s); return 0;
	default: destroy(s); return 0;
	}
}

static void serve(struct side *s, int socket)
{
	char what;
	int answer;

	open_side(s);
	while (read(socket, &what, 1) == 1) {
		answer = act(s, what);
		if (write(socket, &answer, sizeof(answer)) < 0)
			break;
	}
	_exit(0);
}

static int ask(int socket, char what)
{
	int answer;

	if (write(socket, &what, 1) != 1 || read(socket, &answer, sizeof(answer)) != sizeof(answer))
		errx(1, "the other process has gone");
	return answer;
}

static void expect(int got, int want, const char *what)
{
	if (got != want)
		errx(1, "%s: %d instead of %d", what, got, want);
}

/* Both processes connect; `give_up` is the action by which each ends its connection. */
static void take_turns(struct side *me, int other, char give_up)
{
	expect(ask(other, 'c'), 0, "the first one");
	expect(connect_to(me), 0, "the second one");
	ask(other, give_up);
	expect(connect_to(me), 0, "after the first one gave it up");
	expect(ask(other, 'c'), 0, "the first one again");
	act(me, give_up);
	expect(ask(other, 'c'), 0, "after the second one gave it up");
	ask(other, 'r');
}

/* The daemon notices the death of a process after some time. */
static void inherit(struct side *me, int other, pid_t pid)
{
	expect(ask(other, 'c'), 0, "a process that is going to die");
	kill(pid, SIGKILL);
	expect(connect_to(me), 0, "as it dies");
	waitpid(pid, NULL, 0);
	expect(connect_to(me), 0, "after its death");
}

static void run(enum ibv_qp_type type)
{
	struct side me = {.type = type};
	int sockets[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		err(1, "socketpair");
	/* Before the device is opened: a child cannot use an inherited device. */
	pid = fork();
	if (pid == 0) {
		close(sockets[0]);
		serve(&me, sockets[1]);
	}
	open_side(&me);
	expect(connect_to(&me), 0, "alone");
	expect(connect_to(&me), 0, "alone, once more");
	destroy(&me);
	take_turns(&me, sockets[0], 'r');
	take_turns(&me, sockets[0], 'f');
	take_turns(&me, sockets[0], 'd');
	inherit(&me, sockets[0], pid);
	if (ibv_destroy_qp(me.qp) || ibv_destroy_cq(me.cq) || ibv_dealloc_pd(me.pd) ||
	    ibv_close_device(me.context))
		err(1, "cannot close what was opened");
	close(sockets[0]);
	close(sockets[1]);
}

int main(void)
{
	run(IBV_QPT_RC);
	run(IBV_QPT_UC);
	return 0;
}
