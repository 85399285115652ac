/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events (IBA 11.6.3). test_srq.c tests the event of a SRQ's limit. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "asleep.h"
#include "hca.h"
#include "rule.h"
#include "suite.h"

static void expect_event(enum ibv_event_type type, const void *object, const char *what)
{
	struct ibv_async_event event;

	rule(next_event(&event) && event.event_type == type &&
		     (const void *)event.element.qp == object,
	     "%s: %s", what, ibv_event_type_str(type));
}

static void test_descriptor_becomes_readable(void)
{
	struct pollfd pfd = {hca.context->async_fd, POLLIN, 0};
	struct ibv_async_event event;

	rule(poll(&pfd, 1, 0) == 0, "no event is pending at first");
	MUST(!fcntl(pfd.fd, F_SETFL, fcntl(pfd.fd, F_GETFL) | O_NONBLOCK));
	errno = 0;
	rule(ibv_get_async_event(hca.context, &event) == -1 && errno == EAGAIN,
	     "a non-blocking descriptor without events returns EAGAIN");
}

/* A CQ overflow raises an event of the CQ and an event of each of its QPs (IBA 11.6.3.2, 10.2.6.3).
 */
static void test_cq_overflow_raises_events(void)
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
	expect_event(IBV_EVENT_CQ_ERR, s.cq, "a CQ overflow");
	expect_event(IBV_EVENT_QP_FATAL, s.qp, "the QP of an overflowed CQ");
	rule(side_state(&s) == IBV_QPS_ERR, "the QP of an overflowed CQ is in ERR");
	rule_errno(0, ibv_destroy_qp(s.qp), "a QP with an acknowledged event can be destroyed");
	rule_errno(0, ibv_destroy_cq(s.cq), "a CQ with an acknowledged event can be destroyed");
}

static void test_last_wqe_reached_is_raised(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct side s = {.srq = ibv_create_srq(hca.pd, &init)};

	MUST(s.srq);
	side_create(&s, IBV_QPT_RC, 0);
	side_up(&s, &s, IBV_QPS_RTS);
	MUST(!side_step(&s, NULL, IBV_QPS_ERR));
	expect_event(IBV_EVENT_QP_LAST_WQE_REACHED, s.qp, "a QP with an SRQ in ERR");
}

static void test_sq_drained_is_raised(void)
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
	expect_event(IBV_EVENT_SQ_DRAINED, pair[0].qp, "a drained send queue");
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS,
	     "the earlier request completes before SQ_DRAINED");
	MUST(!post_send(&pair[0], &wr));
	rule(!any_wc(pair[0].cq, &wc), "a request posted in SQD waits");
	attr.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(pair[0].qp, &attr, IBV_QP_STATE));
	rule(next_wc(pair[0].cq).status == IBV_WC_SUCCESS,
	     "a waiting request completes after the return to RTS");
}

static void test_comm_est_is_raised(void)
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
	expect_event(IBV_EVENT_COMM_EST, pair[1].qp, "the first packet to a QP in RTR");
}

static void test_access_violation_is_raised(void)
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
	expect_event(IBV_EVENT_QP_ACCESS_ERR, pair[1].qp, "a forbidden access of a peer");
	rule(side_state(&pair[1]) == IBV_QPS_ERR, "the QP of the access violation is in ERR");
}

/* Creates a SRQ without QPs whose limit event is unread. */
static struct ibv_srq *create_srq_with_event(void)
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

static void test_destroy_waits_for_acknowledgement(void)
{
	struct ibv_srq *srq = create_srq_with_event();
	struct ibv_async_event event;
	pthread_t thread;

	MUST(!ibv_get_async_event(hca.context, &event));
	MUST(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
	MUST(!pthread_create(&thread, NULL, destroy, srq));
	while (!destroyer)
		sched_yield();
	asleep_await(destroyer);
	rule(!destroyed, "destruction waits for the acknowledgement of events");
	ibv_ack_async_event(&event);
	MUST(!pthread_join(thread, NULL));
	rule(destroyed, "destruction ends after the acknowledgement");
}

static void test_unread_events_end_with_their_object(void)
{
	struct pollfd pfd = {hca.context->async_fd, POLLIN, 0};
	struct ibv_srq *srq = create_srq_with_event();

	rule_errno(0, ibv_destroy_srq(srq), "an object with an unread event can be destroyed");
	rule(poll(&pfd, 1, 0) == 0, "an unread event disappears with its object");
}

const struct test async_tests[] = {
	{"descriptor", test_descriptor_becomes_readable},
	{"overflow", test_cq_overflow_raises_events},
	{"last_receive", test_last_wqe_reached_is_raised},
	{"drained", test_sq_drained_is_raised},
	{"established", test_comm_est_is_raised},
	{"violated", test_access_violation_is_raised},
	{"acknowledging", test_destroy_waits_for_acknowledgement},
	{"unread", test_unread_events_end_with_their_object},
	{NULL, NULL},
};
