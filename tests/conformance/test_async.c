/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events (IBA 11.6.3). Those of a SRQ's limit are tested with SRQs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "asleep.h"
#include "hca.h"
#include "rule.h"
#include "suite.h"

static void expect(enum ibv_event_type type, const void *object, const char *what)
{
	struct ibv_async_event event;

	rule(next_event(&event) && event.event_type == type &&
		     (const void *)event.element.qp == object,
	     "%s: %s", what, ibv_event_type_str(type));
}

static void descriptor(void)
{
	struct pollfd pfd = {hca.context->async_fd, POLLIN, 0};
	struct ibv_async_event event;

	rule(poll(&pfd, 1, 0) == 0, "at first there is no event");
	MUST(!fcntl(pfd.fd, F_SETFL, fcntl(pfd.fd, F_GETFL) | O_NONBLOCK));
	errno = 0;
	rule(ibv_get_async_event(hca.context, &event) == -1 && errno == EAGAIN,
	     "a descriptor that does not block says EAGAIN");
}

/* A CQ that is full: it and its QPs are told (IBA 11.6.3.2, 10.2.6.3). */
static void overflow(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct side s = {.cq = ibv_create_cq(hca.context, 1, NULL, NULL, 0)};
	int size = s.cq ? s.cq->cqe : 0;

	MUST(s.cq);
	side_create(&s, IBV_QPT_UD, 0);
	side_up(&s, NULL, IBV_QPS_RTS);
	sge = side_sge(&s, 0, 8);
	wr = side_wr(&s, IBV_WR_SEND, &sge, &s);
	MUST(size < SIDE_DEPTH);
	for (int i = 0; i <= size; i++)
		MUST(!post_send(&s, &wr));
	expect(IBV_EVENT_CQ_ERR, s.cq, "a CQ that overflows");
	expect(IBV_EVENT_QP_FATAL, s.qp, "and its QP");
	rule(side_state(&s) == IBV_QPS_ERR, "which is in error");
	rule_errno(0, ibv_destroy_qp(s.qp), "a QP goes after such an event");
	rule_errno(0, ibv_destroy_cq(s.cq), "and a CQ");
}

static void last_receive(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct side s = {.srq = ibv_create_srq(hca.pd, &init)};

	MUST(s.srq);
	side_create(&s, IBV_QPT_RC, 0);
	side_up(&s, &s, IBV_QPS_RTS);
	MUST(!side_step(&s, NULL, IBV_QPS_ERR));
	expect(IBV_EVENT_QP_LAST_WQE_REACHED, s.qp, "a QP with a SRQ that is in error");
}

static void drained(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct side pair[2] = {0};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	pair_open(pair, IBV_QPT_RC, 0);
	sge = side_sge(&pair[0], 0, 4096);
	wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
	MUST(!post_send(&pair[0], &wr));
	MUST(!ibv_modify_qp(pair[0].qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	expect(IBV_EVENT_SQ_DRAINED, pair[0].qp, "a send queue that has drained");
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS, "after what it had to send");
	MUST(!post_send(&pair[0], &wr));
	rule(!any_wc(pair[0].cq, &wc), "what is posted then waits");
	attr.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(pair[0].qp, &attr, IBV_QP_STATE));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS, "until the QP is in RTS again");
}

static void established(void)
{
	struct side pair[2] = {0};
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	side_create(&pair[0], IBV_QPT_RC, 0);
	side_create(&pair[1], IBV_QPT_RC, 0);
	side_up(&pair[0], &pair[1], IBV_QPS_RTS);
	side_up(&pair[1], &pair[0], IBV_QPS_RTR);
	MUST(!post_recv(&pair[1], 1, 0, 64));
	sge = side_sge(&pair[0], 0, 8);
	wr = side_wr(&pair[0], IBV_WR_SEND, &sge, &pair[1]);
	MUST(!post_send(&pair[0], &wr));
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	expect(IBV_EVENT_COMM_EST, pair[1].qp, "the first packet of a QP that is ready to receive");
}

static void violated(void)
{
	struct side pair[2] = {0};
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	pair_open(pair, IBV_QPT_RC, 0);
	sge = side_sge(&pair[0], 0, 8);
	wr = side_wr(&pair[0], IBV_WR_RDMA_WRITE, &sge, &pair[1]);
	wr.wr.rdma.rkey ^= 0x55555500;
	MUST(!post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_REM_ACCESS_ERR);
	expect(IBV_EVENT_QP_ACCESS_ERR, pair[1].qp, "a peer that accesses what it may not");
	rule(side_state(&pair[1]) == IBV_QPS_ERR, "and the QP is in error");
}

/* A SRQ that nothing uses any more, with an event that nobody has read: its limit. */
static struct ibv_srq *with_event(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct pollfd pfd = {hca.context->async_fd, POLLIN, 0};
	struct side s = {.srq = ibv_create_srq(hca.pd, &init)};
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	MUST(s.srq);
	side_create(&s, IBV_QPT_UD, 0);
	side_up(&s, NULL, IBV_QPS_RTS);
	MUST(!post_srq_recv(&s, 1, 0, 64) && !ibv_modify_srq(s.srq, &limit, IBV_SRQ_LIMIT));
	sge = side_sge(&s, 4096, 8);
	wr = side_wr(&s, IBV_WR_SEND, &sge, &s);
	MUST(!post_send(&s, &wr));
	MUST(poll(&pfd, 1, WAIT_MS) == 1);
	MUST(!ibv_destroy_qp(s.qp));
	return s.srq;
}

static _Atomic pid_t destroyer;
static volatile bool destroyed;

static void *destroy(void *srq)
{
	destroyer = gettid();
	MUST(!ibv_destroy_srq(srq));
	destroyed = true;
	return NULL;
}

static void acknowledging(void)
{
	struct ibv_srq *srq = with_event();
	struct ibv_async_event event;
	pthread_t thread;

	MUST(!ibv_get_async_event(hca.context, &event));
	MUST(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
	MUST(!pthread_create(&thread, NULL, destroy, srq));
	while (!destroyer)
		sched_yield();
	asleep_await(destroyer);
	rule(!destroyed, "an object waits for its events to be acknowledged");
	ibv_ack_async_event(&event);
	MUST(!pthread_join(thread, NULL));
	rule(destroyed, "and goes then");
}

static void unread(void)
{
	struct pollfd pfd = {hca.context->async_fd, POLLIN, 0};
	struct ibv_srq *srq = with_event();

	rule_errno(0, ibv_destroy_srq(srq), "an object goes with an event that nobody has read");
	rule(poll(&pfd, 1, 0) == 0, "and its event with it");
}

const struct test async_tests[] = {
	{"descriptor", descriptor},
	{"overflow", overflow},
	{"last_receive", last_receive},
	{"drained", drained},
	{"established", established},
	{"violated", violated},
	{"acknowledging", acknowledging},
	{"unread", unread},
	{NULL, NULL},
};
