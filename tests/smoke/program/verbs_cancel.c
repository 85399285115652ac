/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that pthread_cancel(3) is to end creates a queue pair, connects it, posts, and destroys
 * it. It ends at the program's next cancellation point and not in these calls: urxe's locks would
 * stay taken. Afterwards the other thread does the same. A thread that waits for an event of
 * rdma_cm ends there.
 */
#include <err.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "loop.h"

#define REMOTE_QPN 0x777777

#define GID_INDEX 1

static struct ibv_context *context;
static union ibv_gid gid;
static bool done;

static void use_device(void)
{
	static const struct loop_retries retries = {.timeout = 14, .retry_cnt = 7};
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;

	if (!qp)
		err(1, "cannot create a queue pair");
	loop_connect_to(qp, REMOTE_QPN, &gid, &retries);
	if (ibv_post_send(qp, &wr, &bad) || ibv_poll_cq(cq, 1, &wc) < 0)
		err(1, "cannot post or poll");
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
		err(1, "cannot destroy the objects");
}

static void *use_device_when_cancelled(void *arg)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(state, NULL);
	use_device();
	done = true;
	pthread_testcancel();
	return arg;
}

static void *await_event(void *channel)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(channel, &event);
	return NULL;
}

static void cancel_waiter(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	pthread_t thread;
	void *result;

	if (!channel || pthread_create(&thread, NULL, await_event, channel))
		err(1, "cannot wait for an event");
	usleep(100000); /* so that the thread waits */
	if (pthread_cancel(thread) || pthread_join(thread, &result) || result != PTHREAD_CANCELED)
		errx(1, "the thread that waits for an event was not cancelled");
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	pthread_t thread;
	void *result;

	alarm(60); /* ends a program that waits for a lock */
	context = loop_open();
	loop_query_gid(context, &gid);
	use_device();
	if (pthread_create(&thread, NULL, use_device_when_cancelled, NULL) ||
	    pthread_join(thread, &result))
		errx(1, "cannot start a thread");
	if (!done)
		warnx("the thread ended in a verbs call");
	if (result != PTHREAD_CANCELED)
		errx(1, "the thread was not cancelled");
	use_device();
	ibv_close_device(context);
	cancel_waiter();
	return !done;
}
