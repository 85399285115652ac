/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What urxed sends of a program's events: replies to later commands with them, and withdrawals. */
#include <sys/epoll.h>

#include "ucma_programs.h"

/* errno values of the daemon's calls that fail; 0: they succeed. */
static int send_error, watch_error, reply_error;

ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags)
{
	errno = send_error;
	return send_error ? -1 : __real_send(fd, data, len, flags);
}

int __real_epoll_ctl(int set, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int set, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	if (!watch_error || op != EPOLL_CTL_ADD)
		return __real_epoll_ctl(set, op, fd, event);
	errno = watch_error;
	return -1;
}

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (!reply_error || fd == a.fd)
		return __real_sendmsg(fd, message, flags);
	errno = reply_error;
	return -1;
}

/* --- Cached replies in events */

/* Compares each cached reply with the reply to its command; returns the number of replies. */
static uint32_t check_cached(const struct loop_program *p, uint32_t id)
{
	const uint8_t *at = last.bytes + last.head.out, *end = at + last.head.cached;
	struct rdma_ucm_query question = {.id = id};
	struct cm_attach_cached head;
	uint32_t n = 0;

	for (; at < end; at += head.out, n++) {
		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		question.option = head.option;
		assert_int_equal(loop_command(&loop, p, head.command, &question, sizeof(question),
					      CM_ATTACH_BYTES, &answer),
				 0);
		assert_int_equal(answer.reply.out, head.out);
		assert_memory_equal(answer.out, at, head.out);
	}
	assert_ptr_equal(at, end);
	return n;
}

static void cached_replies_equal_the_real_ones(void **state)
{
	uint32_t id, child;

	(void)state;
	listener(5);
	id = create(&a, RDMA_PS_TCP, 0xa);
	assert_int_equal(resolve(&a, id), 0);
	get_event(&a, CMA_ADDR_RESOLVED);
	assert_int_equal(check_cached(&a, id), 2);
	assert_int_equal(resolve_route(&a, id), 0);
	get_event(&a, CMA_ROUTE_RESOLVED);
	assert_int_equal(check_cached(&a, id), 2);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	child = get_event(&b, CMA_CONNECT_REQUEST).id;
	assert_int_equal(check_cached(&b, child), 6);
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), 0);
	loop_run(&loop);
	get_event(&a, CMA_CONNECT_RESPONSE);
	assert_int_equal(check_cached(&a, id), 3);
	assert_int_equal(accept_it(&a, id, 0, 0), 0);
	loop_run(&loop);
	get_event(&b, CMA_ESTABLISHED);
	assert_int_equal(check_cached(&b, child), 0);
}

/* The new ID may be destroyed before its CONNECT_REQUEST is fetched. */
static void event_of_a_destroyed_id_has_no_cached_replies(void **state)
{
	uint32_t id, child;

	(void)state;
	listener(5);
	id = client(RDMA_PS_TCP);
	assert_int_equal(connect_to(&a, id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	child = TAILQ_FIRST(&LIST_FIRST(&loop.ucma.files)->events)->child->id->number;
	destroy(&b, child);
	expect_withdrawn(&b, 1);
	get_event(&b, CMA_CONNECT_REQUEST);
	assert_int_equal(last.head.cached, 0);
}

/* Commands for an ID change the cached replies of an event that was already sent. */
static void cached_replies_follow_later_commands(void **state)
{
	const struct {
		struct rdma_ucm_set_option option;
		uint8_t timeout;
	} set = {{.id = client(RDMA_PS_TCP),
		  .level = RDMA_OPTION_ID,
		  .optname = RDMA_OPTION_ID_ACK_TIMEOUT,
		  .optlen = 1},
		 23};
	uint32_t child, len = (uint32_t)offsetof(typeof(set), timeout) + 1;

	(void)state;
	listener(5);
	assert_int_equal(connect_to(&a, set.option.id, LOOP_QPN, 0), 0);
	loop_run(&loop);
	child = get_event(&b, CMA_CONNECT_REQUEST).id;
	assert_int_equal(accept_it(&b, child, 0xc, LOOP_QPN + 1), 0);
	loop_run(&loop);
	assert_int_equal(
		loop_command(&loop, &a, RDMA_USER_CM_CMD_SET_OPTION, &set, len, 0, &answer), 0);
	expect_withdrawn(&a, 1);
	get_event(&a, CMA_CONNECT_RESPONSE);
	assert_int_equal(check_cached(&a, set.option.id), 3);
	/* An event without cached replies is not withdrawn. */
	assert_int_equal(accept_it(&a, set.option.id, 0, 0), 0);
	loop_run(&loop);
	assert_int_equal(disconnect(&b, child), 0);
	expect_withdrawn(&b, 0);
	get_event(&b, CMA_ESTABLISHED);
}

/* --- Packets of events */

static uint32_t resolving_on(const struct loop_program *p)
{
	uint32_t id = create(p, RDMA_PS_TCP, 0xa);

	assert_int_equal(resolve(p, id), 0);
	return id;
}

static uint32_t resolving(void)
{
	return resolving_on(&a);
}

/* Events before and behind a cancelled one still come in their order, and are not sent again. */
static void cancelled_event_leaves_other_events(void **state)
{
	uint32_t first = resolving(), second = resolving(), third;

	(void)state;
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, first);
	third = resolving();
	assert_int_equal(destroy(&a, first), 1);
	expect_cancelled(0);
	first = resolving();
	assert_int_equal(destroy(&a, third), 0);
	expect_cancelled(1);
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, second);
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, first);
	expect_no_event(&a);
	assert_int_equal(destroy(&a, second), 1);
}

/* A program need not skip more than CM_ATTACH_TO_SKIP packets: then the events are sent again. */
static void many_cancelled_events_are_withdrawn(void **state)
{
	uint32_t first = resolving(), last_one;

	(void)state;
	for (uint32_t i = 0; i < CM_ATTACH_TO_SKIP; i++) {
		assert_int_equal(destroy(&a, resolving()), 0);
		expect_cancelled(1);
	}
	last_one = resolving();
	assert_int_equal(destroy(&a, resolving()), 0);
	expect_withdrawn(&a, CM_ATTACH_TO_SKIP + 3);
	assert_int_equal(destroy(&a, resolving()), 0);
	expect_cancelled(1);
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, first);
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, last_one);
	expect_no_event(&a);
}

/* A listener's events may be more than a reply has room for. */
static void events_beyond_a_reply_are_withdrawn(void **state)
{
	uint32_t server = listener(16), other = resolving_on(&b);

	(void)state;
	for (uint32_t i = 0; i <= CM_ATTACH_CANCELLED; i++)
		assert_int_equal(connect_to(&a, client(RDMA_PS_TCP), LOOP_QPN + i, 0), 0);
	loop_run(&loop);
	assert_int_equal(destroy(&b, server), 0);
	expect_withdrawn(&b, CM_ATTACH_CANCELLED + 2);
	assert_int_equal(answer.reply.n_cancelled, 0);
	assert_int_equal(get_event(&b, CMA_ADDR_RESOLVED).id, other);
	expect_no_event(&b);
}

/* --- A kernel without memory */

static void expect_late_event(int send_errno, int watch_errno)
{
	uint32_t id;

	send_error = send_errno;
	watch_error = watch_errno;
	id = resolving();
	assert_in_range(ucma_tick(&loop.ucma, loop.now), loop.now, loop.now + SECOND);
	send_error = watch_error = 0;
	loop_pass(&loop, SECOND);
	assert_int_equal(recv(a.event_fd, &last, sizeof(last), MSG_DONTWAIT | MSG_PEEK) > 0, 1);
	assert_int_equal(get_event(&a, CMA_ADDR_RESOLVED).id, id);
}

static void event_is_sent_once_there_is_memory(void **state)
{
	(void)state;
	expect_late_event(ENOBUFS, 0);
	expect_late_event(ENOMEM, 0);
	/* The socket is full, and the user has no watch left (fs.epoll.max_user_watches). */
	expect_late_event(EAGAIN, ENOSPC);
}

static void send_without_waiting(uint32_t number, const void *in, uint32_t size)
{
	const struct cm_attach_command head = {
		.command = number, .in = size, .out = CM_ATTACH_BYTES};
	uint8_t bytes[sizeof(head) + CM_ATTACH_BYTES];

	memcpy(bytes, &head, sizeof(head));
	if (size)
		memcpy(bytes + sizeof(head), in, size);
	assert_int_equal(unix_packet_send(a.fd, bytes, (uint32_t)sizeof(head) + size, NULL, 0), 0);
	ucma_input(&loop.ucma, loop.now);
}

static void expect_no_reply(void)
{
	assert_int_equal(recv(a.fd, &answer, sizeof(answer), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void expect_reply(int status)
{
	assert_in_range(recv(a.fd, &answer, sizeof(answer), MSG_DONTWAIT), sizeof(answer.reply),
			sizeof(answer));
	assert_int_equal(answer.reply.status, status);
}

/* Repeated, the command would find a listener, and fail. */
static void reply_is_sent_once_there_is_memory(void **state)
{
	const struct rdma_ucm_listen request = {.id = create(&a, RDMA_PS_TCP, 0xa)};

	(void)state;
	assert_int_equal(bind_to(&a, request.id, INADDR_ANY, PORT), 0);
	reply_error = ENOBUFS;
	send_without_waiting(RDMA_USER_CM_CMD_LISTEN, &request, sizeof(request));
	assert_in_range(ucma_tick(&loop.ucma, loop.now), loop.now, loop.now + SECOND);
	expect_no_reply();
	reply_error = ENOMEM;
	loop_pass(&loop, SECOND);
	expect_no_reply();
	reply_error = 0;
	loop_pass(&loop, SECOND);
	expect_reply(0);
	expect_no_reply();
}

/* A program that gives up waiting for the reply to a command of a checkpoint sends the next one. */
static void late_replies_keep_their_order(void **state)
{
	(void)state;
	reply_error = ENOBUFS;
	send_without_waiting(CM_ATTACH_FREEZE, NULL, 0);
	send_without_waiting(CM_ATTACH_FREEZE, NULL, 0);
	expect_no_reply();
	reply_error = 0;
	ucma_input(&loop.ucma, loop.now);
	expect_reply(0);
	expect_reply(-EALREADY);
	assert_int_equal(loop_command(&loop, &a, CM_ATTACH_THAW, NULL, 0, 0, &answer), 0);
}

static void program_may_end_before_its_reply(void **state)
{
	(void)state;
	reply_error = ENOBUFS;
	send_without_waiting(RDMA_USER_CM_CMD_GET_EVENT, NULL, 0);
	assert_int_equal(loop.ucma.n, 2);
	shutdown(a.fd, SHUT_RDWR);
	ucma_input(&loop.ucma, loop.now);
	reply_error = 0;
	ucma_input(&loop.ucma, loop.now);
	assert_int_equal(loop.ucma.n, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cached_replies_equal_the_real_ones),
		TEST(event_of_a_destroyed_id_has_no_cached_replies),
		TEST(cached_replies_follow_later_commands),
		TEST(cancelled_event_leaves_other_events),
		TEST(many_cancelled_events_are_withdrawn),
		TEST(events_beyond_a_reply_are_withdrawn),
		TEST(event_is_sent_once_there_is_memory),
		TEST(reply_is_sent_once_there_is_memory),
		TEST(late_replies_keep_their_order),
		TEST(program_may_end_before_its_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
