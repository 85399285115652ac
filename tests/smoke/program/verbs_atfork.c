/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handlers of fork that were installed before the program opens the device; one check in each run:
 *
 * - calls: the handlers post requests, poll, and open rdma_cm
 * - threads: the handlers take a lock with which another thread posts and polls
 * - memory: another thread calls verbs that allocate memory; for locking_allocator.c
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

/* Ends a program whose threads wait for each other. */
#define SECONDS 60
#define DEPTH   16

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp; /* in the error state: requests are flushed at once */
static pthread_mutex_t qp_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;
/* For a program at fixed addresses, whose PLT then has the address of malloc. */
static void *(*volatile allocate)(size_t size);

static void open_qp(void)
{
	struct ibv_context *context = loop_open();
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = DEPTH}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	pd = ibv_alloc_pd(context);
	init.send_cq = init.recv_cq = cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
	if (!qp)
		err(1, "cannot make a queue pair");
	loop_connect(qp, qp->qp_num);
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		err(1, "cannot bring a queue pair to the error state");
}

/* The number of completions. In a child, which has no device, the request fails. */
static int post_and_poll(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;

	return ibv_post_send(qp, &wr, &bad) ? 0 : ibv_poll_cq(cq, 1, &wc);
}

static void call(void)
{
	int fd;

	if (!qp)
		return;
	(void)post_and_poll();
	fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(1, "rdma_cm");
	close(fd);
}

static void lock_qp(void)
{
	pthread_mutex_lock(&qp_lock);
}

static void unlock_qp(void)
{
	pthread_mutex_unlock(&qp_lock);
}

static void *post_with_lock(void *unused)
{
	while (!stop) {
		lock_qp();
		(void)post_and_poll();
		unlock_qp();
	}
	return unused;
}

static void *register_memory(void *unused)
{
	static char room[64];
	struct ibv_mr *mr;

	while (!stop) {
		mr = ibv_reg_mr(pd, room, sizeof(room), 0);
		if (!mr || ibv_dereg_mr(mr))
			err(1, "cannot register memory");
	}
	return unused;
}

static void fork_children(int n)
{
	int status;

	for (int i = 0; i < n; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		if (child < 0 || waitpid(child, &status, 0) != child)
			err(1, "no child");
		if (status)
			errx(1, "a child's status is %#x", (unsigned int)status);
	}
}

static void check_calls(void)
{
	pthread_atfork(call, call, call);
	open_qp();
	fork_children(20);
}

static void fork_beside(void *(*work)(void *unused))
{
	pthread_t thread;

	open_qp();
	if (pthread_create(&thread, NULL, work, NULL))
		errx(1, "no thread");
	fork_children(1000);
	stop = true;
	pthread_join(thread, NULL);
}

static void check_threads(void)
{
	pthread_atfork(lock_qp, unlock_qp, unlock_qp);
	fork_beside(post_with_lock);
}

static void check_memory(void)
{
	fork_beside(register_memory);
}

static const struct {
	const char *name;
	void (*run)(void);
} checks[] = {{"calls", check_calls}, {"threads", check_threads}, {"memory", check_memory}};

int main(int argc, char **argv)
{
	alarm(SECONDS);
	allocate = malloc;
	for (size_t i = 0; argc == 2 && i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(argv[1], checks[i].name)) {
			checks[i].run();
			if (post_and_poll() != 1)
				errx(1, "the device does not go on after fork");
			return 0;
		}
	fputs("usage: verbs_atfork CHECK\n", stderr);
	return 2;
}
