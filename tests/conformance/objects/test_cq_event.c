/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion channels, and the conditions of completion events (IBA 11.4.2.2). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "asleep.h"
#include "hca.h"
#include "rule.h"
#include "suite.h"

static struct ibv_comp_channel *channel;
static struct side pair[2]; /* the second one has the channel */

static void open_channel(void)
{
	channel = ibv_create_comp_channel(hca.context);
	MUST(channel);
	pair[1].cq = ibv_create_cq(hca.context, 64, &pair[1], channel, 0);
	MUST(pair[1].cq);
	pair_open(pair, IBV_QPT_RC, 0);
}

/* Sends a message from pair[0] to pair[1] and polls the sender's completion only. */
static void send_message(unsigned int flags)
{
	struct ibv_sge sge = side_sge(&pair[0], 0, 8);
	struct ibv_send_wr wr = side_wr(&pair[0], IBV_WR_SEND, &sge, &pair[1]);

	wr.send_flags |= flags;
	MUST(!post_recv(&pair[1], 1, 0, 8));
	MUST(!post_send(&pair[0], &wr));
	MUST(next_wc(pair[0].cq).status == IBV_WC_SUCCESS);
}

static bool has_event(int ms)
{
	struct pollfd pfd = {channel->fd, POLLIN, 0};

	return poll(&pfd, 1, ms) == 1 && pfd.revents & POLLIN;
}

static void take_event(void)
{
	struct ibv_cq *cq;
	void *context;

	MUST(!ibv_get_cq_event(channel, &cq, &context));
	rule(cq == pair[1].cq && context == &pair[1],
	     "an event names its CQ and that one's context");
	ibv_ack_cq_events(cq, 1);
}

static void test_armed_cq_raises_one_event(void)
{
	struct ibv_wc wc;

	open_channel();
	send_message(0);
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	rule(!has_event(0), "a CQ that is not armed raises no event");
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	rule(!has_event(0), "an armed CQ without completions raises no event");
	send_message(0);
	rule(has_event(WAIT_MS), "an armed CQ raises an event for a completion");
	take_event();
	send_message(0);
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	rule(!has_event(0), "a CQ raises one event for each arming");
	send_message(0);
	while (!ibv_poll_cq(pair[1].cq, 0, &wc) && has_event(0))
		;
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	send_message(0);
	rule(has_event(WAIT_MS), "a CQ that is armed twice raises an event");
	take_event();
	rule(!has_event(0), "a CQ armed twice raises one event only");
}

/* As with mlx4 and mlx5. UCX polls, arms the CQ, and sleeps without another poll. */
static void test_arming_reports_unread_completions(void)
{
	open_channel();
	send_message(0);
	MUST(!ibv_req_notify_cq(pair[1].cq, 1));
	rule(!has_event(0), "arming for solicited events reports no other unread completion");
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	if (!rule(has_event(WAIT_MS), "arming reports an unread completion that came before"))
		return;
	take_event();
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	send_message(IBV_SEND_SOLICITED);
	rule(!has_event(0), "a CQ armed twice raises one event only");
	MUST(!ibv_req_notify_cq(pair[1].cq, 1));
	if (!rule(has_event(WAIT_MS), "arming reports an unread solicited completion"))
		return;
	take_event();
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	rule(!has_event(0), "arming reports no completion that was read");
}

static void test_solicited_only_arming(void)
{
	open_channel();
	MUST(!ibv_req_notify_cq(pair[1].cq, 1));
	send_message(0);
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	rule(!has_event(0), "a CQ armed for solicited events raises none for other completions");
	send_message(IBV_SEND_SOLICITED);
	rule(has_event(WAIT_MS),
	     "a CQ armed for solicited events raises one for a solicited completion");
	take_event();
	MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	MUST(!ibv_req_notify_cq(pair[1].cq, 1));
	MUST(!post_recv(&pair[1], 1, 0, 8));
	MUST(!side_step(&pair[1], NULL, IBV_QPS_ERR));
	rule(has_event(WAIT_MS), "a completion in error is a solicited event (IBA 11.4.2.2)");
	take_event();
	next_wc(pair[1].cq);
	pair_again(pair);
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	MUST(!ibv_req_notify_cq(pair[1].cq, 1));
	send_message(0);
	rule(has_event(WAIT_MS), "a CQ armed for all events stays so after solicited-only arming");
}

static void make_nonblocking(int fd)
{
	MUST(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

static void test_poll_reports_the_event(void)
{
	struct epoll_event wanted = {.events = EPOLLIN | EPOLLET}, event;
	struct timeval second = {.tv_sec = WAIT_MS / 1000};
	struct ibv_cq *cq;
	void *context;
	fd_set set;
	int epoll;

	open_channel();
	rule(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC, "a channel is not inherited by exec");
	make_nonblocking(channel->fd);
	errno = 0;
	rule(ibv_get_cq_event(channel, &cq, &context) == -1 && errno == EAGAIN,
	     "a non-blocking channel without events returns EAGAIN");
	epoll = epoll_create1(0);
	MUST(epoll >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &wanted));
	for (int i = 0; i < 3; i++) {
		MUST(!ibv_req_notify_cq(pair[1].cq, 0));
		send_message(0);
		rule(epoll_wait(epoll, &event, 1, WAIT_MS) == 1 && event.events & EPOLLIN,
		     "edge-triggered epoll reports event %d", i);
		take_event();
		MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	}
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	send_message(0);
	FD_ZERO(&set);
	FD_SET(channel->fd, &set);
	rule(select(channel->fd + 1, &set, NULL, NULL, &second) == 1, "select reports an event");
	take_event();
}

static void *send_one(void *unused)
{
	send_message(0);
	return unused;
}

static void ignore_signal(int number)
{
	(void)number;
}

static pthread_t waiter;
static volatile bool interrupted;

static void *interrupt(void *unused)
{
	while (!interrupted) {
		pthread_kill(waiter, SIGUSR1);
		usleep(1000);
	}
	return unused;
}

static void test_get_cq_event_blocks(void)
{
	struct sigaction act = {.sa_handler = ignore_signal};
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	open_channel();
	waiter = pthread_self();
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	MUST(!sigaction(SIGUSR1, &act, NULL));
	MUST(!pthread_create(&thread, NULL, interrupt, NULL));
	errno = 0;
	rule(ibv_get_cq_event(channel, &cq, &context) == -1 && errno == EINTR,
	     "a signal ends the wait for an event");
	interrupted = true;
	MUST(!pthread_join(thread, NULL));
	MUST(!pthread_create(&thread, NULL, send_one, NULL));
	take_event();
	MUST(!pthread_join(thread, NULL));
}

static _Atomic int signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static _Atomic pid_t waiter_id;

static void *send_after_signals(void *unused)
{
	for (int i = 0; i < 3; i++) {
		asleep_await(waiter_id);
		pthread_kill(waiter, SIGUSR1);
		while (signals == i)
			sched_yield();
	}
	asleep_await(waiter_id);
	send_message(0);
	return unused;
}

/* A wait that a signal with SA_RESTART interrupts continues (signal(7)). */
static void test_wait_restarts_after_a_signal(void)
{
	struct sigaction act = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
	pthread_t thread;

	open_channel();
	waiter = pthread_self();
	waiter_id = gettid();
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	MUST(!sigaction(SIGUSR1, &act, NULL));
	MUST(!pthread_create(&thread, NULL, send_after_signals, NULL));
	take_event();
	rule(signals == 3, "a wait continues after signals with SA_RESTART");
	MUST(!pthread_join(thread, NULL));
}

static sigjmp_buf out;

static void jump(int number)
{
	siglongjmp(out, number);
}

static void *signal_waiter(void *unused)
{
	asleep_await(waiter_id);
	pthread_kill(waiter, SIGUSR1);
	return unused;
}

/* A signal handler leaves a wait by a jump; later calls work as before. */
static void test_jump_out_of_a_wait(void)
{
	struct sigaction act = {.sa_handler = jump};
	struct ibv_cq *cq;
	struct ibv_wc wc;
	pthread_t thread;
	void *context;

	open_channel();
	waiter = pthread_self();
	waiter_id = gettid();
	MUST(!sigaction(SIGUSR1, &act, NULL));
	for (int i = 0; i < 3; i++) {
		MUST(!ibv_req_notify_cq(pair[1].cq, 0));
		MUST(!pthread_create(&thread, NULL, signal_waiter, NULL));
		if (!sigsetjmp(out, 1)) {
			ibv_get_cq_event(channel, &cq, &context);
			rule(false, "no event arrives without a completion");
		}
		MUST(!pthread_join(thread, NULL));
		MUST(!ibv_poll_cq(pair[1].cq, 1, &wc));
		send_message(0);
		if (i)
			rule(has_event(WAIT_MS), "an event arrives after a jump out of a wait");
		take_event();
		MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	}
}

static void *wait_in_vain(void *unused)
{
	struct ibv_cq *cq;
	void *context;

	waiter_id = gettid();
	ibv_get_cq_event(channel, &cq, &context);
	return unused;
}

/* A waiting thread can be cancelled, because read is a cancellation point (pthreads(7)). */
static void test_waiting_thread_can_be_cancelled(void)
{
	pthread_t thread;
	void *result;

	open_channel();
	for (int i = 0; i < 3; i++) {
		waiter_id = 0;
		MUST(!ibv_req_notify_cq(pair[1].cq, 0));
		MUST(!pthread_create(&thread, NULL, wait_in_vain, NULL));
		while (!waiter_id)
			sched_yield();
		asleep_await(waiter_id);
		MUST(!pthread_cancel(thread) && !pthread_join(thread, &result));
		rule(result == PTHREAD_CANCELED,
		     "a thread that waits for an event can be cancelled");
		send_message(0);
		if (i)
			rule(has_event(WAIT_MS), "an event arrives after a cancelled wait");
		take_event();
		MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	}
}

static void *await_the_end(void *of)
{
	struct ibv_cq *cq;
	void *context;

	waiter_id = gettid();
	return ibv_get_cq_event(of, &cq, &context) == -1 ? of : NULL;
}

/* While the program has another context. */
static void test_wait_ends_with_its_context(void)
{
	for (int destroyed_first = 0; destroyed_first < 2; destroyed_first++) {
		struct ibv_context *second = ibv_open_device(hca.context->device);
		struct ibv_comp_channel *of;
		pthread_t thread;
		void *result;

		MUST(second);
		of = ibv_create_comp_channel(second);
		MUST(of);
		waiter_id = 0;
		MUST(!pthread_create(&thread, NULL, await_the_end, of));
		while (!waiter_id)
			sched_yield();
		asleep_await(waiter_id);
		MUST(!destroyed_first || !ibv_destroy_comp_channel(of));
		MUST(!ibv_close_device(second));
		MUST(!pthread_join(thread, &result));
		rule(result, "closing a context ends waits for events at %s channels of it",
		     destroyed_first ? "destroyed" : "open");
	}
}

static void test_channel_of_another_context(void)
{
	struct ibv_context *second = ibv_open_device(hca.context->device);
	struct ibv_cq_init_attr_ex attr = {.cqe = 64};
	struct ibv_comp_channel *of;

	MUST(second);
	of = ibv_create_comp_channel(second);
	MUST(of);
	attr.channel = of;
	rule_errno(EBADF, ibv_create_cq(hca.context, 64, NULL, of, 0) ? 0 : errno,
		   "a CQ cannot have the completion channel of another context");
	rule_errno(EBADF, ibv_create_cq_ex(hca.context, &attr) ? 0 : errno,
		   "an extended CQ cannot have the completion channel of another context");
	MUST(!ibv_destroy_comp_channel(of) && !ibv_close_device(second));
}

static _Atomic int sent;

/* Sends messages at varying times after the beginning of the wait. */
static void *send_many(void *times)
{
	for (int i = 0; i < *(int *)times; i++) {
		while (sent == i)
			sched_yield();
		for (volatile int k = i % 256 * 32; k; k--)
			;
		send_message(0);
	}
	return NULL;
}

/* Events arrive while a wait begins. */
static void test_event_at_the_beginning_of_a_wait(void)
{
	int times = 32768;
	pthread_t thread;

	open_channel();
	MUST(!pthread_create(&thread, NULL, send_many, &times));
	for (int i = 0; i < times; i++) {
		MUST(!ibv_req_notify_cq(pair[1].cq, 0));
		sent++;
		take_event();
		MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	}
	MUST(!pthread_join(thread, NULL));
	rule(true, "each wait gets its event, whatever the time of the event");
}

static void *await_other(void *other)
{
	struct ibv_cq *cq;
	void *context;

	waiter_id = gettid();
	MUST(!ibv_get_cq_event(other, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	return cq;
}

/* Two threads wait on channels of their own; either wait may end first. */
static void test_two_threads_wait_on_two_channels(void)
{
	struct ibv_comp_channel *other = ibv_create_comp_channel(hca.context);
	pthread_t thread, sender;
	struct ibv_cq *cq;
	void *got;

	MUST(other);
	cq = ibv_create_cq(hca.context, 64, NULL, other, 0);
	MUST(cq);
	pair[0].cq = cq;
	open_channel();
	for (int i = 0; i < 3; i++) {
		waiter_id = 0;
		MUST(!ibv_req_notify_cq(pair[1].cq, 0) && !ibv_req_notify_cq(cq, 0));
		MUST(!pthread_create(&thread, NULL, await_other, other));
		while (!waiter_id)
			sched_yield();
		asleep_await(waiter_id);
		MUST(!pthread_create(&sender, NULL, send_one, NULL));
		take_event();
		MUST(!pthread_join(thread, &got) && !pthread_join(sender, NULL));
		rule(got == cq, "each of two waiting threads gets the event of its channel");
		MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	}
}

static _Atomic pid_t destroyer;
static volatile bool destroyed;

static void *destroy(void *cq)
{
	destroyer = gettid();
	MUST(!ibv_destroy_cq(cq));
	destroyed = true;
	return NULL;
}

/* ibv_destroy_cq(3) returns only after all events are acknowledged. */
static void test_destroy_waits_for_acknowledgement(void)
{
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	open_channel();
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	send_message(0);
	MUST(has_event(WAIT_MS) && !ibv_get_cq_event(channel, &cq, &context));
	rule_errno(EBUSY, ibv_destroy_comp_channel(channel),
		   "a channel with a CQ cannot be destroyed");
	MUST(!ibv_destroy_qp(pair[1].qp));
	MUST(!pthread_create(&thread, NULL, destroy, cq));
	while (!destroyer)
		sched_yield();
	asleep_await(destroyer);
	rule(!destroyed, "ibv_destroy_cq waits for the acknowledgement of events");
	ibv_ack_cq_events(cq, 1);
	MUST(!pthread_join(thread, NULL));
	rule(destroyed, "destruction ends after the acknowledgement");
	rule_errno(0, ibv_destroy_comp_channel(channel), "a channel can be destroyed after its CQ");
}

static void test_unread_events_end_with_the_cq(void)
{
	open_channel();
	MUST(!ibv_req_notify_cq(pair[1].cq, 0));
	send_message(0);
	MUST(has_event(WAIT_MS));
	MUST(!ibv_destroy_qp(pair[1].qp));
	rule_errno(0, ibv_destroy_cq(pair[1].cq), "a CQ with an unread event can be destroyed");
	rule(!has_event(0), "an unread event disappears with its object");
}

static void *spin(void *unused)
{
	for (;;)
		;
	return unused;
}

/* Confines the library's threads to this CPU with SCHED_IDLE, and starts a thread that keeps it
 * busy.
 */
static void starve_others(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct sched_param none = {0};
	struct dirent *task;
	pthread_t thread;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	MUST(tasks);
	while ((task = readdir(tasks))) {
		pid_t tid = atoi(task->d_name);

		if (tid && tid != gettid())
			MUST(!sched_setaffinity(tid, sizeof(one), &one) &&
			     !sched_setscheduler(tid, SCHED_IDLE, &none));
	}
	closedir(tasks);
	MUST(!pthread_create(&thread, NULL, spin, NULL));
	MUST(!pthread_setaffinity_np(thread, sizeof(one), &one));
}

/* More events than the library delivers to the channel at a time. */
static void test_many_events_arrive(void)
{
	enum { EVENTS = 400 };

	open_channel();
	starve_others();
	for (int i = 0; i < EVENTS; i++) {
		MUST(!ibv_req_notify_cq(pair[1].cq, 0));
		send_message(0);
		MUST(next_wc(pair[1].cq).status == IBV_WC_SUCCESS);
	}
	for (int i = 0; i < EVENTS; i++)
		take_event();
	rule(!has_event(0), "the channel has no more events than were raised");
}

static void test_cqs_share_a_channel(void)
{
	struct ibv_cq *cq, *got[2];
	void *context;

	open_channel();
	cq = ibv_create_cq(hca.context, 64, &cq, channel, 0);
	MUST(cq);
	MUST(!ibv_destroy_qp(pair[0].qp) && !ibv_destroy_qp(pair[1].qp));
	pair[0].cq = cq;
	pair_open(pair, IBV_QPT_RC, 0);
	MUST(!ibv_req_notify_cq(pair[0].cq, 0) && !ibv_req_notify_cq(pair[1].cq, 0));
	send_message(0);
	for (int i = 0; i < 2; i++) {
		MUST(has_event(WAIT_MS) && !ibv_get_cq_event(channel, &got[i], &context));
		ibv_ack_cq_events(got[i], 1);
	}
	rule(got[0] != got[1] && (got[0] == cq || got[1] == cq),
	     "two CQs of one channel raise one event each");
}

const struct test cq_event_tests[] = {
	{"arming", test_armed_cq_raises_one_event},
	{"solicited", test_solicited_only_arming},
	{"unread_at_arming", test_arming_reports_unread_completions},
	{"waiting", test_poll_reports_the_event},
	{"blocking", test_get_cq_event_blocks},
	{"restarted", test_wait_restarts_after_a_signal},
	{"left", test_jump_out_of_a_wait},
	{"cancelled", test_waiting_thread_can_be_cancelled},
	{"closed", test_wait_ends_with_its_context},
	{"other_context", test_channel_of_another_context},
	{"racing", test_event_at_the_beginning_of_a_wait},
	{"two_waiters", test_two_threads_wait_on_two_channels},
	{"acknowledging", test_destroy_waits_for_acknowledgement},
	{"unread", test_unread_events_end_with_the_cq},
	{"many", test_many_events_arrive},
	{"shared", test_cqs_share_a_channel},
	{NULL, NULL},
};
