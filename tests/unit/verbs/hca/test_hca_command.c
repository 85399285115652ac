/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands of a program, from the uverbs ABI to a slow HCA, which a provider double plays. The test
 * plays the program and the engine thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hca/hca.h>
#include <rxe/offload.h>

#include "adapter/adapter.h"
#include "asleep.h"
#include "attach/attach.h"
#include "checkpoint/quiesce.h"
#include "daemon/adapter_hca.h"
#include "daemon/port_attributes.h"
#include "engine/clock.h"
#include "fake_hca.h"
#include "hca_program.h"
#include "poll/engine_wake.h"
#include "poll/polling.h"
#include "queues/publish.h"
#include "queues/verbs_qp.h"
#include "requests/daemon_requests.h"
#include "requests/told_qp_requests.h"
#include "slow_thread.h"
#include "uverbs/ucontext.h"
#include "uverbs/uverbs.h"
#include "uverbs/uverbs_command.h"

#define MTU       4200
#define QUEUE     100 /* the HCA's CQ has room for those of one queue pair */
#define CQ_HANDLE 0x11u

static struct vnic_loop *loop;

int __wrap_told_qp_add(uint32_t qpn, bool reachable, struct told_qp **added);

int __wrap_told_qp_add(uint32_t qpn, bool reachable, struct told_qp **added)
{
	(void)qpn;
	(void)reachable;
	(void)added;
	return -EEXIST;
}

static int setup(void **state)
{
	(void)state;
	fake_hca_init();
	slow_thread_init();
	loop = open_with_hca(MTU);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_with_hca(loop);
	assert_int_equal(fake_hca.pds + fake_hca.cqs + fake_hca.srqs + fake_hca.qps, 0);
	return 0;
}

/* --- A command that the HCA delays. */

static int slow_rc;

/* --- A child of the thread that waits for the HCA. */

static sem_t forked;
static volatile pid_t child;

static void fork_in_handler(int signal_number)
{
	(void)signal_number;
	child = fork();
	if (!child)
		alarm(60); /* ends a child that waits for ever */
	sem_post(child ? &forked : &fake_hca.go_on);
}

/* The child returns from the handler to the command. */
static void *limit_srq(void *arg)
{
	const pid_t parent = getpid();
	const struct ib_uverbs_modify_srq request = {
		.srq_handle = srq, .attr_mask = IBV_SRQ_LIMIT, .srq_limit = 2};

	slow_rc = COMMAND(MODIFY_SRQ, request, NULL);
	if (getpid() != parent)
		_exit(0);
	return arg;
}

/* The child's handler closes the parent's device, and opens one of its own. */
static void reopen_in_handler(int signal_number)
{
	struct uverbs_file *parents = uverbs_file_lookup(device);

	(void)signal_number;
	child = fork();
	if (child) {
		sem_post(&forked);
		return;
	}
	close_own(device);
	if (uverbs_file_alloc() == parents)
		_exit(1);
	sem_post(&fake_hca.go_on);
}

static int fork_during(pthread_t thread, void (*handler)(int))
{
	int status;

	signal(SIGUSR1, handler);
	sem_init(&forked, 0, 0);
	pthread_kill(thread, SIGUSR1);
	sem_wait(&forked);
	assert_int_equal(waitpid(child, &status, 0), child);
	signal(SIGUSR1, SIG_DFL);
	return status;
}

/* It has no engine thread to wake: it writes to no descriptor of the program, such as 0. */
static void a_forked_child_writes_to_no_descriptor(void **state)
{
	const int input = dup(STDIN_FILENO);
	pthread_t thread;
	int status, ends[2];

	(void)state;
	assert_int_equal(create_srq(), 0);
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDIN_FILENO);
	thread = start_slow(FAKE_HCA_MODIFY_SRQ, limit_srq);
	status = fork_during(thread, fork_in_handler);
	dup2(input, STDIN_FILENO);
	close(input);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(status, 0);
	assert_false(is_readable(ends[0]));
	close(ends[0]);
	close(ends[1]);
}

/* The interrupted command still counts as a user of the parent's context. */
static void a_forked_child_may_open_a_device_during_a_command(void **state)
{
	pthread_t thread;
	int status;

	(void)state;
	assert_int_equal(create_srq(), 0);
	thread = start_slow(FAKE_HCA_MODIFY_SRQ, limit_srq);
	status = fork_during(thread, reopen_in_handler);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(status, 0);
}

static void *create_limited_srq(void *arg)
{
	const pid_t parent = getpid();

	slow_rc = create_srq();
	if (getpid() != parent)
		_exit(slow_rc == -EIO && !handle_counts[OBJECT_SRQ] ? 0 : 1);
	return arg;
}

/* The HCA refuses the child's command, because the child has closed the HCA's descriptor. */
static void a_forked_child_counts_no_handles_of_its_parent(void **state)
{
	pthread_t thread;
	int status;

	(void)state;
	fake_hca.srq_error = EBADF;
	thread = start_slow(FAKE_HCA_MODIFY_SRQ, create_limited_srq);
	status = fork_during(thread, fork_in_handler);
	let_go_on(thread);
	assert_int_equal(slow_rc, -EBADF);
	assert_int_equal(status, 0);
}

/* --- Queue pairs. */

static uint32_t cq;

static void arm_cq(void)
{
	const struct ib_uverbs_req_notify_cq arm = {.cq_handle = cq};

	assert_int_equal(COMMAND(REQ_NOTIFY_CQ, arm, NULL), 0);
}

static int open_cq_of(uint32_t cqe)
{
	const struct ib_uverbs_create_comp_channel create_channel = {0};
	struct ib_uverbs_create_cq create = {.user_handle = CQ_HANDLE, .cqe = cqe};
	uint32_t channel;

	assert_int_equal(COMMAND(CREATE_COMP_CHANNEL, create_channel, &channel), 0);
	create.comp_channel = (int)channel;
	assert_int_equal(COMMAND(CREATE_CQ, create, &cq), 0);
	arm_cq();
	return (int)channel;
}

static int open_cq(void)
{
	return open_cq_of(1000);
}

static int create_qp(uint32_t *handle)
{
	const struct ib_uverbs_create_qp request = {.pd_handle = pd,
						    .send_cq_handle = cq,
						    .recv_cq_handle = cq,
						    .max_send_wr = QUEUE,
						    .max_recv_wr = QUEUE,
						    .max_send_sge = 1,
						    .max_recv_sge = 1,
						    .qp_type = IBV_QPT_UD};

	return COMMAND(CREATE_QP, request, handle);
}

static uint32_t first_qp, second_qp;

static void *create_second_qp(void *arg)
{
	const pid_t parent = getpid();

	slow_rc = create_qp(&second_qp);
	if (getpid() != parent)
		_exit(slow_rc == -EIO ? 0 : 1);
	return arg;
}

/* A UD queue pair, whose receive requests the HCA has. */
static struct fake_qp *open_qp(uint32_t receives)
{
	struct ib_uverbs_modify_qp modify = {.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX |
							  IBV_QP_PORT | IBV_QP_QKEY,
					     .qp_state = IBV_QPS_INIT,
					     .port_num = 1};
	const struct qp *qp;

	assert_int_equal(create_qp(&first_qp), 0);
	modify.qp_handle = first_qp;
	assert_int_equal(COMMAND(MODIFY_QP, modify, NULL), 0);
	adapter_lock();
	qp = (struct qp *)handle_find(&uverbs_file_lookup(device)->handles, OBJECT_QP, first_qp);
	assert_non_null(qp);
	for (uint64_t i = 0; i < receives; i++) {
		const struct urxe_recv_wr wr = {.wr_id = i};

		assert_int_equal(urxe_post_recv(qp->recv.rq, &wr), 0);
	}
	urxe_offload_refill(qp->recv.rq);
	adapter_unlock();
	assert_int_equal(fake_hca.last_qp->n_recvs, receives);
	return fake_hca.last_qp;
}

/* The next transition of the first queue pair. */
static void *modify_first_qp(void *arg)
{
	const struct ib_uverbs_modify_qp modify = {
		.qp_handle = first_qp, .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_ERR};
	const pid_t parent = getpid();

	slow_rc = COMMAND(MODIFY_QP, modify, NULL);
	if (getpid() != parent)
		_exit(slow_rc == -EIO ? 0 : 1);
	return arg;
}

static void *attach_first_qp(void *arg)
{
	const struct ib_uverbs_attach_mcast attach = {.qp_handle = first_qp,
						      .gid = {0xff, 0x0e, [15] = 1}};
	const pid_t parent = getpid();

	slow_rc = COMMAND(ATTACH_MCAST, attach, NULL);
	if (getpid() != parent)
		_exit(slow_rc == -EIO ? 0 : 1);
	return arg;
}

static int destroy_first_qp(void)
{
	const struct ib_uverbs_destroy_qp destroy = {.qp_handle = first_qp};
	uint32_t reported;

	return COMMAND(DESTROY_QP, destroy, &reported);
}

static void a_queue_pair_that_changes_is_not_destroyed(void **state)
{
	pthread_t thread;
	int channel;

	(void)state;
	channel = open_cq();
	open_qp(1);
	thread = start_slow(FAKE_HCA_MODIFY_QP, modify_first_qp);
	assert_int_equal(destroy_first_qp(), -EBUSY);
	assert_int_equal(fake_hca.qps, 1);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(destroy_first_qp(), 0);
	assert_int_equal(fake_hca.qps, 0);
	assert_int_equal(destroy_first_qp(), -ENOENT);
	close_own(channel);
}

/* --- close() while another thread's command waits for the HCA. */

static uint32_t second_pd;

static void *alloc_second_pd(void *arg)
{
	const struct ib_uverbs_alloc_pd alloc = {0};

	slow_rc = COMMAND(ALLOC_PD, alloc, &second_pd);
	return arg;
}

/* All objects of the context end after the command, also that of the command. */
static void close_during(enum fake_hca_delay function, void *(*call)(void *))
{
	struct fake_hca before;
	pthread_t thread;
	int channel;

	channel = open_cq();
	open_qp(1);
	before = fake_hca;
	thread = start_slow(function, call);
	close_own(device);
	assert_int_equal(fake_hca.qps, before.qps);
	assert_true(fake_hca.pds >= before.pds);
	let_go_on(thread);
	assert_int_equal(fake_hca.pds + fake_hca.cqs + fake_hca.qps, 0);
	close_own(channel);
	close_own(events);
	/* teardown() closes those of another context. */
	open_context();
}

static void a_context_may_be_closed_while_a_queue_pair_is_made(void **state)
{
	(void)state;
	close_during(FAKE_HCA_CREATE_QP, create_second_qp);
}

static void a_context_may_be_closed_while_a_queue_pair_changes(void **state)
{
	(void)state;
	close_during(FAKE_HCA_MODIFY_QP, modify_first_qp);
}

static void a_context_may_be_closed_while_a_domain_is_made(void **state)
{
	(void)state;
	close_during(FAKE_HCA_ALLOC_PD, alloc_second_pd);
}

/* --- A child that returns from the handler to a command of a queue pair. */

static void fork_during_command(enum fake_hca_delay function, void *(*call)(void *))
{
	pthread_t thread;
	int channel, status;

	end_by_faults();
	channel = open_cq();
	open_qp(1);
	thread = start_slow(function, call);
	status = fork_during(thread, fork_in_handler);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(status, 0);
	close_own(channel);
}

static void a_forked_child_makes_no_queue_pair(void **state)
{
	(void)state;
	fork_during_command(FAKE_HCA_CREATE_QP, create_second_qp);
}

static void a_forked_child_changes_no_queue_pair(void **state)
{
	(void)state;
	fork_during_command(FAKE_HCA_MODIFY_QP, modify_first_qp);
}

static void a_forked_child_joins_no_group(void **state)
{
	(void)state;
	fork_during_command(FAKE_HCA_CHANGE_MCAST, attach_first_qp);
}

static int second_rc;

static void *query_first_qp(void *arg)
{
	const struct ib_uverbs_query_qp query = {.qp_handle = first_qp};
	const pid_t parent = getpid();
	uint32_t word;

	second_rc = COMMAND(QUERY_QP, query, &word);
	if (getpid() != parent)
		_exit(second_rc == -EIO ? 0 : 1);
	return arg;
}

static uint32_t users_of(enum object_type type, uint32_t handle)
{
	uint32_t users;

	adapter_lock();
	users = handle_find(&uverbs_file_lookup(device)->handles, type, handle)->users;
	adapter_unlock();
	return users;
}

/* A command counts itself before it waits for the queue pair. */
static void a_forked_child_does_not_wait_for_a_command(void **state)
{
	pthread_t slow, second;
	int channel, status;

	(void)state;
	end_by_faults();
	channel = open_cq();
	open_qp(1);
	slow = start_slow(FAKE_HCA_MODIFY_QP, modify_first_qp);
	assert_int_equal(pthread_create(&second, NULL, query_first_qp, NULL), 0);
	while (users_of(OBJECT_QP, first_qp) < 2)
		sched_yield();
	status = fork_during(second, fork_in_handler);
	let_go_on(slow);
	pthread_join(second, NULL);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(second_rc, 0);
	assert_int_equal(status, 0);
	close_own(channel);
}

/* After the close, the command's thread ends the objects. */
static void a_forked_child_ends_no_objects(void **state)
{
	pthread_t thread;
	int channel, status;

	(void)state;
	end_by_faults();
	channel = open_cq();
	open_qp(1);
	thread = start_slow(FAKE_HCA_MODIFY_QP, modify_first_qp);
	close_own(device);
	status = fork_during(thread, fork_in_handler);
	let_go_on(thread);
	assert_int_equal(status, 0);
	assert_int_equal(fake_hca.pds + fake_hca.cqs + fake_hca.qps, 0);
	close_own(channel);
	close_own(events);
	/* teardown() closes those of another context. */
	open_context();
}

/* --- A request to a daemon that has gone: it waits for the next daemon. */

static atomic_int asker_tid;

static void *ask_daemon(void *arg)
{
	const pid_t parent = getpid();

	asker_tid = gettid();
	second_rc = adapter_query_qpn(fake_gid.raw, 5);
	if (getpid() != parent)
		_exit(second_rc == -EIO && uses == 2 && !adapter.nic_users ? 0 : 1);
	return arg;
}

static void set_adapter(bool reconnecting, bool dead)
{
	adapter_lock();
	adapter.reconnecting = reconnecting;
	adapter.dead = dead;
	lock_notify(&adapter.reconnects_ended);
	adapter_unlock();
}

/* The request counts as a use of the parent's adapter, not of the child's. */
static void a_forked_child_does_not_wait_for_the_next_daemon(void **state)
{
	pthread_t asker;
	int status;

	(void)state;
	end_by_faults();
	asker_tid = 0;
	set_adapter(true, false);
	assert_int_equal(pthread_create(&asker, NULL, ask_daemon, NULL), 0);
	while (!asker_tid)
		sched_yield();
	asleep_await(asker_tid);
	status = fork_during(asker, fork_in_handler);
	set_adapter(false, true);
	pthread_join(asker, NULL);
	set_adapter(false, false);
	assert_int_equal(second_rc, -EIO);
	assert_int_equal(uses, 1);
	assert_int_equal(status, 0);
}

/* --- Completions. */

static bool is_thread_woken(void)
{
	uint64_t wakes;

	return read(adapter_thread.wake_fd, &wakes, sizeof(wakes)) > 0;
}

static void complete_receives(struct fake_qp *qp, uint32_t n)
{
	while (n--)
		fake_hca_complete_recv(qp, IBV_WC_SUCCESS, 100);
	fake_hca.comp_event = qp->init.recv_cq;
	handle_hca_events();
}

/* The program sleeps in ibv_get_cq_event(), and the HCA's only event comes while the CQ grows. */
static void a_completion_during_a_command_wakes_the_program(void **state)
{
	struct ib_uverbs_comp_event_desc event;
	const int channel = open_cq();
	struct fake_qp *first = open_qp(1);
	pthread_t thread;

	(void)state;
	thread = start_slow(FAKE_HCA_RESIZE_CQ, create_second_qp);
	complete_receives(first, 1);
	assert_false(is_readable(channel));
	is_thread_woken();
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_true(is_readable(channel));
	assert_int_equal(read(channel, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event.cq_handle, CQ_HANDLE);
	/* The command has taken the only completion. */
	assert_false(is_thread_woken());
	close_own(channel);
}

/* The command takes a limited number; the event of the others has passed. */
static void completions_behind_a_command_wake_the_engine_thread(void **state)
{
	const int channel = open_cq();
	struct fake_qp *first = open_qp(QUEUE), *other = open_qp(QUEUE);
	pthread_t thread;

	(void)state;
	thread = start_slow(FAKE_HCA_RESIZE_CQ, create_second_qp);
	complete_receives(first, QUEUE);
	complete_receives(other, QUEUE);
	is_thread_woken();
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	assert_true(is_thread_woken());
	close_own(channel);
}

/* The engine polls the HCA's CQ when the HCA has made it larger for the new queue pair. */
static void a_cq_may_overrun_before_the_queue_pair_has_its_handle(void **state)
{
	const int channel = open_cq_of(QUEUE / 2);
	struct fake_qp *first = open_qp(QUEUE);
	pthread_t thread;

	(void)state;
	end_by_faults();
	thread = start_slow(FAKE_HCA_RESIZE_CQ, create_second_qp);
	complete_receives(first, QUEUE);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	expect_event(CQ_HANDLE, IBV_EVENT_CQ_ERR);
	expect_event(0, IBV_EVENT_QP_FATAL);
	expect_event(0, IBV_EVENT_QP_FATAL);
	assert_false(is_readable(events));
	close_own(channel);
}

/* --- An HCA that fails in a call of the program, while the engine thread sleeps. */

static void poll_cq(void)
{
	uint64_t now = clock_now();

	polling_empty(uverbs_file_lookup(device), cq, &now);
}

/* The HCA has a receive request, and its ibv_poll_cq() fails from now on. */
static int open_failing_hca(void)
{
	const int channel = open_cq();

	open_qp(1);
	is_thread_woken();
	adapter_thread.wake_at = 1;
	fake_hca.poll_error = true;
	return channel;
}

/* The engine thread closes the HCA. */
static void expect_end_of_hca(int channel)
{
	assert_true(is_thread_woken());
	adapter_lock();
	assert_true(adapter_hca_stale());
	adapter_hca_renew();
	adapter_unlock();
	expect_event(0, IBV_EVENT_QP_FATAL);
	assert_int_equal(fake_hca.closed, 1);
	close_own(channel);
}

static void an_hca_that_fails_in_a_poll_wakes_the_engine_thread(void **state)
{
	const int channel = open_failing_hca();

	(void)state;
	poll_cq();
	expect_end_of_hca(channel);
}

static void an_hca_that_fails_as_a_cq_is_armed_wakes_the_engine_thread(void **state)
{
	const int channel = open_failing_hca();

	(void)state;
	arm_cq();
	expect_end_of_hca(channel);
}

/* The engine polls the HCA's CQ when the HCA has made it larger. */
static void an_hca_that_fails_in_a_command_wakes_the_engine_thread(void **state)
{
	const int channel = open_failing_hca();
	pthread_t thread;

	(void)state;
	thread = start_slow(FAKE_HCA_RESIZE_CQ, create_second_qp);
	complete_receives(fake_hca.last_qp, 1);
	let_go_on(thread);
	assert_int_equal(slow_rc, 0);
	expect_end_of_hca(channel);
}

/* --- A checkpoint. */

/* The HCA refuses to stop the queue pair, so the engine flushes its requests before it is saved. */
static void a_checkpoint_saves_no_hidden_completion(void **state)
{
	struct lease_block *block = calloc(1, sizeof(*block));
	struct ib_uverbs_comp_event_desc event;
	const int channel = open_cq();
	struct qp *qp;
	bool told;

	(void)state;
	block->qpn_first = 0x1000;
	open_qp(1);
	adapter_lock();
	leases_add(&adapter.leases, block);
	qp = (struct qp *)handle_find(&uverbs_file_lookup(device)->handles, OBJECT_QP, first_qp);
	qp->number_unknown = false;
	adapter_unlock();
	fake_hca.no_error_state = true;
	assert_int_equal(quiesce_begin(60000), 0);
	told = is_readable(channel);
	assert_int_equal(quiesce_end(), 0);
	assert_int_equal(fake_hca.qps, 0);
	assert_true(told);
	assert_int_equal(read(channel, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event.cq_handle, CQ_HANDLE);
	close_own(channel);
}

/* --- P_Keys of another daemon, which has the same HCA. */

static void a_new_daemon_has_other_pkeys(void **state)
{
	const int channel = open_cq();

	(void)state;
	fake_hca.pkeys[1] = 0x8001;
	attach_to_daemon_with(0x8001);
	assert_int_equal(open_qp(0)->attr.pkey_index, 1);
	expect_event(1, IBV_EVENT_PKEY_CHANGE);
	/* The engine keeps the QP's P_Key; the program's and the HCA's tables change. */
	attach_to_daemon_with(0);
	expect_event(1, IBV_EVENT_PKEY_CHANGE);
	attach_to_daemon_with(0);
	assert_false(is_readable(events));
	attach_to_daemon_with(0x8001);
	expect_event(1, IBV_EVENT_PKEY_CHANGE);
	assert_int_equal(open_qp(0)->attr.pkey_index, 1);
	close_own(channel);
}

/* --- A smaller CQ while another command makes the HCA's CQ larger. */

static uint32_t new_size;
static int resize_rc;
static atomic_bool resized;

/* The child of a handler returns to the wait. */
static void *resize_cq(void *arg)
{
	const struct ib_uverbs_resize_cq resize = {.cq_handle = cq, .cqe = new_size};
	const pid_t parent = getpid();
	uint32_t cqe;

	resize_rc = COMMAND(RESIZE_CQ, resize, &cqe);
	if (getpid() != parent)
		_exit(resize_rc == -EIO ? 0 : 1);
	resized = true;
	return arg;
}

/* The command waits, or has ended. */
static pthread_t start_resize(uint32_t size)
{
	const uint32_t users = users_of(OBJECT_CQ, cq);
	pthread_t thread;

	new_size = size;
	resized = false;
	assert_int_equal(pthread_create(&thread, NULL, resize_cq, NULL), 0);
	while (!resized && users_of(OBJECT_CQ, cq) == users)
		sched_yield();
	return thread;
}

/* Nothing polls the HCA's CQ, so nothing shows yet whether the smaller ring has room. */
static void resize_during_growth(uint32_t completions, int expected)
{
	const int channel = open_cq();
	struct fake_qp *first = open_qp(QUEUE);
	pthread_t slow, resizing;

	slow = start_slow(FAKE_HCA_RESIZE_CQ, create_second_qp);
	complete_receives(first, completions);
	resizing = start_resize(63);
	assert_false(resized);
	let_go_on(slow);
	pthread_join(resizing, NULL);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(resize_rc, expected);
	assert_false(is_readable(events));
	close_own(channel);
}

static void a_cq_that_has_grown_shrinks(void **state)
{
	(void)state;
	resize_during_growth(1, 0);
}

/* The ring has all completions of the queue pair. */
static void a_cq_without_room_does_not_shrink(void **state)
{
	(void)state;
	resize_during_growth(QUEUE, -EINVAL);
	new_size = 200;
	resize_cq(NULL);
	assert_int_equal(resize_rc, 0);
}

static void a_cq_does_not_grow_beyond_the_limit_of_the_hca(void **state)
{
	const int channel = open_cq();

	(void)state;
	new_size = 1001;
	resize_cq(NULL);
	assert_int_equal(resize_rc, -EINVAL);
	new_size = 1000;
	resize_cq(NULL);
	assert_int_equal(resize_rc, 0);
	close_own(channel);
}

/* Threads that poll the CQ spin during the command: it ends before the HCA goes on. */
static void a_resize_does_not_wait_for_a_slow_hca(void **state)
{
	pthread_t slow, resizing;
	int channel;

	(void)state;
	channel = open_cq();
	open_qp(1);
	slow = start_slow(FAKE_HCA_RESIZE_CQ, create_second_qp);
	resizing = start_resize(63);
	pthread_join(resizing, NULL);
	assert_int_equal(resize_rc, -EBUSY);
	let_go_on(slow);
	assert_int_equal(slow_rc, 0);
	resize_cq(NULL);
	assert_int_equal(resize_rc, 0);
	close_own(channel);
}

static void a_forked_child_does_not_wait_for_growth(void **state)
{
	pthread_t slow, resizing;
	int channel, status;

	(void)state;
	end_by_faults();
	channel = open_cq();
	open_qp(1);
	slow = start_slow(FAKE_HCA_RESIZE_CQ, create_second_qp);
	resizing = start_resize(63);
	status = fork_during(resizing, fork_in_handler);
	let_go_on(slow);
	pthread_join(resizing, NULL);
	/* EBUSY: the handler waited long for its child. */
	assert_true(!resize_rc || resize_rc == -EBUSY);
	assert_int_equal(status, 0);
	close_own(channel);
}

static uint32_t third_qp;

static void *create_third_qp(void *arg)
{
	const pid_t parent = getpid();

	second_rc = create_qp(&third_qp);
	if (getpid() != parent)
		_exit(second_rc == -EIO ? 0 : 1);
	return arg;
}

/* The HCA makes the CQ larger for one queue pair at a time. */
static void a_forked_child_does_not_wait_to_make_a_cq_grow(void **state)
{
	pthread_t slow, second;
	uint32_t users;
	int channel, status;

	(void)state;
	end_by_faults();
	channel = open_cq();
	open_qp(1);
	slow = start_slow(FAKE_HCA_RESIZE_CQ, create_second_qp);
	users = users_of(OBJECT_CQ, cq);
	assert_int_equal(pthread_create(&second, NULL, create_third_qp, NULL), 0);
	while (users_of(OBJECT_CQ, cq) == users)
		sched_yield();
	status = fork_during(second, fork_in_handler);
	let_go_on(slow);
	pthread_join(second, NULL);
	assert_int_equal(slow_rc, 0);
	assert_int_equal(second_rc, 0);
	assert_int_equal(status, 0);
	close_own(channel);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_forked_child_writes_to_no_descriptor),
		TEST(a_queue_pair_that_changes_is_not_destroyed),
		TEST(a_context_may_be_closed_while_a_queue_pair_is_made),
		TEST(a_context_may_be_closed_while_a_queue_pair_changes),
		TEST(a_context_may_be_closed_while_a_domain_is_made),
		TEST(a_forked_child_may_open_a_device_during_a_command),
		TEST(a_forked_child_counts_no_handles_of_its_parent),
		TEST(a_forked_child_makes_no_queue_pair),
		TEST(a_forked_child_changes_no_queue_pair),
		TEST(a_forked_child_joins_no_group),
		TEST(a_forked_child_does_not_wait_for_a_command),
		TEST(a_forked_child_ends_no_objects),
		TEST(a_forked_child_does_not_wait_for_the_next_daemon),
		TEST(a_completion_during_a_command_wakes_the_program),
		TEST(completions_behind_a_command_wake_the_engine_thread),
		TEST(a_cq_may_overrun_before_the_queue_pair_has_its_handle),
		TEST(an_hca_that_fails_in_a_poll_wakes_the_engine_thread),
		TEST(an_hca_that_fails_as_a_cq_is_armed_wakes_the_engine_thread),
		TEST(an_hca_that_fails_in_a_command_wakes_the_engine_thread),
		TEST(a_checkpoint_saves_no_hidden_completion),
		TEST(a_new_daemon_has_other_pkeys),
		TEST(a_cq_that_has_grown_shrinks),
		TEST(a_cq_without_room_does_not_shrink),
		TEST(a_cq_does_not_grow_beyond_the_limit_of_the_hca),
		TEST(a_resize_does_not_wait_for_a_slow_hca),
		TEST(a_forked_child_does_not_wait_for_growth),
		TEST(a_forked_child_does_not_wait_to_make_a_cq_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
