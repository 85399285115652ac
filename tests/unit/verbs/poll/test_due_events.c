/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion events, which a thread sends after it has released adapter.lock. */
#include "poll/due_events.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop_adapter.h"
#include "objects/comp_channel.h"
#include "objects/uverbs_file.h"
#include "queues/verbs_cq.h"

#define MTU        1500
#define EVENT_SIZE 8

ssize_t __real_send(int socket, const void *buffer, size_t length, int flags);
ssize_t __wrap_send(int socket, const void *buffer, size_t length, int flags);

static struct vnic_loop *loop;
static struct comp_channel *channel;
static int fd; /* the program's end of the channel */

static void (*while_sending)(void); /* called once, after the first event was sent */

ssize_t __wrap_send(int socket, const void *buffer, size_t length, int flags)
{
	const ssize_t sent = __real_send(socket, buffer, length, flags);
	void (*call)(void) = while_sending;

	if (call) {
		while_sending = NULL;
		call();
	}
	return sent;
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool no_memory;

void *__wrap_realloc(void *memory, size_t size)
{
	return no_memory ? NULL : __real_realloc(memory, size);
}

static int setup(void **state)
{
	(void)state;
	loop = loop_adapter_open(MTU);
	adapter.due_events.unlock_and_send = due_events_unlock_and_send;
	while_sending = NULL;
	return comp_channel_create(EVENT_SIZE, false, NULL, &channel, &fd);
}

static void close_channel(void)
{
	fd_remove(fd);
	close(fd);
	fd = -1;
}

static int teardown(void **state)
{
	(void)state;
	if (fd >= 0)
		close_channel();
	loop_adapter_close(loop);
	return 0;
}

static bool readable(void)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

static uint64_t next_event(void)
{
	uint64_t element = 0;

	assert_int_equal(recv(fd, &element, sizeof(element), MSG_DONTWAIT), EVENT_SIZE);
	return element;
}

/* Adds events of the elements 1 to n. */
static void add_events(uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++)
		comp_channel_send_later(channel, i);
}

static void an_event_is_sent_after_the_lock_was_released(void **state)
{
	(void)state;
	adapter_lock();
	add_events(2);
	assert_false(readable());
	assert_true(due_events_any());
	adapter_unlock();
	assert_int_equal(next_event(), 1);
	assert_int_equal(next_event(), 2);
	assert_false(readable());
	assert_false(due_events_any());
}

static void take_lock_while_sending(void)
{
	assert_true(adapter_trylock());
	assert_true(due_events_any());
	adapter_unlock();
}

static void other_threads_get_the_lock_while_events_are_sent(void **state)
{
	(void)state;
	while_sending = take_lock_while_sending;
	adapter_lock();
	add_events(3);
	adapter_unlock();
	assert_null(while_sending);
	assert_false(due_events_any());
}

static void events_are_sent_at_once_while_they_are_held(void **state)
{
	(void)state;
	adapter_lock();
	due_events_begin_drain();
	add_events(1);
	assert_int_equal(next_event(), 1);
	assert_false(due_events_any());
	due_events_end_drain();
	add_events(1);
	assert_false(readable());
	adapter_unlock();
	assert_int_equal(next_event(), 1);
}

static void no_event_is_lost_when_many_are_due(void **state)
{
	bool seen[4 * DUE_EVENTS_MAX + 1] = {false};

	(void)state;
	adapter_lock();
	add_events(4 * DUE_EVENTS_MAX);
	adapter_unlock();
	for (int i = 0; i < 4 * DUE_EVENTS_MAX; i++)
		seen[next_event()] = true;
	for (int i = 1; i <= 4 * DUE_EVENTS_MAX; i++)
		assert_true(seen[i]);
}

static void events_wait_for_room_in_a_full_socket(void **state)
{
	uint32_t sent = 0;

	(void)state;
	while (!channel->n_waiting) {
		adapter_lock();
		comp_channel_send_later(channel, 7);
		adapter_unlock();
		sent++;
	}
	assert_false(due_events_any());
	/* The program has read none. */
	adapter_lock();
	assert_int_equal(comp_channel_withdraw(channel, 7, sent), 0);
	adapter_unlock();
	assert_false(readable());
}

/* ibv_destroy_cq would wait until the program has acknowledged the event. */
static void an_event_that_is_lost_does_not_count(void **state)
{
	const uint32_t max[OBJECT_TYPES] = {[OBJECT_CQ] = 1};
	uint32_t counts[OBJECT_TYPES] = {0};
	struct uverbs_file context = {.handles = {.max = max, .counts = counts}};
	struct cq cq = {.object = {.type = OBJECT_CQ, .user_handle = 7},
			.channel = channel,
			.comp_events = 1};

	(void)state;
	assert_int_equal(handle_add(&context.handles, &cq.object), 0);
	adapter_lock();
	LIST_INSERT_HEAD(&adapter.files, &context, link);
	while (comp_channel_try_send(channel, 6))
		;
	no_memory = true;
	assert_true(comp_channel_send_later(channel, 7));
	adapter_unlock();
	no_memory = false;
	LIST_REMOVE(&context, link);
	handle_table_free(&context.handles);
	assert_int_equal(channel->n_waiting, 0);
	assert_int_equal(cq.comp_events, 0);
}

static void a_channel_that_closes_meanwhile_stays_until_its_event_is_sent(void **state)
{
	const int writer = channel->writer;

	(void)state;
	while_sending = close_channel;
	adapter_lock();
	add_events(1);
	adapter_unlock();
	assert_int_equal(fd, -1);
	assert_int_equal(fcntl(writer, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
	assert_false(due_events_any());
}

static pid_t child;

static void fork_while_sending(void)
{
	child = fork();
}

/*
 * As if the handler interrupted adapter_unlock() between the release of the lock and the note that
 * this thread is not inside any more.
 */
static void fork_inside(void)
{
	adapter_inside = true;
	child = fork();
	adapter_inside = false;
}

/* As a signal handler that forks, whose child returns into the interrupted call. */
static void a_forked_child_sends_none_of_its_parents_events(void **state)
{
	int status;

	(void)state;
	while_sending = fork_while_sending;
	adapter_lock();
	add_events(3);
	adapter_unlock();
	if (!child)
		_exit(due_events_any() || adapter.due_events.drains);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(next_event(), i);
	assert_false(readable());
}

static void a_child_forked_inside_sends_none_of_its_parents_events(void **state)
{
	int status;

	(void)state;
	while_sending = fork_inside;
	adapter_lock();
	add_events(3);
	adapter_unlock();
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(next_event(), i);
	assert_false(readable());
}

/* As a handler that forks after the release of the lock: the thread still counts as inside. */
static void release_and_fork(void)
{
	adapter.due_events.n = 0;
	lock_release(&adapter.lock);
	child = fork();
}

/* Otherwise a thread that then waits without the lock, as for an HCA, would wait for ever. */
static void a_child_forked_after_the_release_forgets_the_adapter(void **state)
{
	int status;

	(void)state;
	adapter_lock();
	add_events(1);
	adapter.due_events.unlock_and_send = release_and_fork;
	adapter_unlock();
	if (!child)
		_exit(adapter.lock.orphaned || adapter_inside || adapter.tx.routes);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: later channels have memory of earlier ones. */
		CASE(an_event_that_is_lost_does_not_count),
		CASE(an_event_is_sent_after_the_lock_was_released),
		CASE(other_threads_get_the_lock_while_events_are_sent),
		CASE(events_are_sent_at_once_while_they_are_held),
		CASE(no_event_is_lost_when_many_are_due),
		CASE(events_wait_for_room_in_a_full_socket),
		CASE(a_channel_that_closes_meanwhile_stays_until_its_event_is_sent),
		CASE(a_forked_child_sends_none_of_its_parents_events),
		CASE(a_child_forked_inside_sends_none_of_its_parents_events),
		CASE(a_child_forked_after_the_release_forgets_the_adapter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
