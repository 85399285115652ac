/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Channels of events, as the program reads them. */
#include "objects/comp_channel.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "asleep.h"
#include "descriptor_limit.h"
#include "objects/uverbs_file.h"
#include "process/log.h"

#define EVENTS 64 /* more than the socket holds */

/* The kernel's answer to the next calls of send(), which send nothing; 0: it sends. */
static int send_errno;

ssize_t __real_send(int socket, const void *buffer, size_t length, int flags);
ssize_t __wrap_send(int socket, const void *buffer, size_t length, int flags);

ssize_t __wrap_send(int socket, const void *buffer, size_t length, int flags)
{
	if (!send_errno)
		return __real_send(socket, buffer, length, flags);
	errno = send_errno;
	return -1;
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool no_memory;

void *__wrap_realloc(void *memory, size_t size)
{
	return no_memory ? NULL : __real_realloc(memory, size);
}

/* As ibv_destroy_comp_channel. */
static void close_channel(int fd)
{
	fd_remove(fd);
	close(fd);
}

/* The socket has the older events, and a list the newer ones. */
static void a_withdrawal_keeps_the_order_of_other_events(void **state)
{
	struct comp_channel_event event = {0};
	struct comp_channel *channel;
	int fd;

	(void)state;
	fd_set_owner();
	assert_int_equal(comp_channel_create(sizeof(event), true, NULL, &channel, &fd), 0);
	adapter_lock();
	for (event.element = 1; event.element <= EVENTS; event.element++)
		comp_channel_send(channel, &event);
	assert_true(channel->n_waiting);
	assert_false(channel->lacks_memory);
	assert_int_equal(comp_channel_withdraw(channel, 2, 1), 0);
	for (uint64_t i = 1; i <= EVENTS; i++) {
		if (i == 2)
			continue;
		assert_int_equal(recv(fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
		assert_int_equal(event.element, i);
		comp_channel_flush(channel);
	}
	assert_int_equal(recv(fd, &event, sizeof(event), MSG_DONTWAIT), -1);
	adapter_unlock();
	close_channel(fd);
}

/* A program that lacks memory destroys its objects. */
static void a_withdrawal_needs_no_memory(void **state)
{
	struct comp_channel_event event = {0};
	struct comp_channel *channel;
	int fd;

	(void)state;
	assert_int_equal(comp_channel_create(8, false, NULL, &channel, &fd), 0);
	adapter_lock();
	no_memory = true;
	for (event.element = 1; event.element <= 2 * EVENTS; event.element++)
		comp_channel_send(channel, &event);
	assert_int_equal(comp_channel_withdraw(channel, 2, 1), 0);
	no_memory = false;
	adapter_unlock();
	for (uint64_t i = 1; i <= 2 * EVENTS; i++) {
		if (i == 2)
			continue;
		assert_int_equal(recv(fd, &event.element, 8, MSG_DONTWAIT), 8);
		assert_int_equal(event.element, i);
	}
	assert_int_equal(recv(fd, &event, 8, MSG_DONTWAIT), -1);
	close_channel(fd);
}

/* The kernel has no memory for a packet, as in a memory cgroup at its limit. */
static void an_event_survives_a_kernel_without_memory(void **state)
{
	static const int errors[] = {ENOBUFS, ENOMEM};
	struct comp_channel_event event = {0};
	struct comp_channel *channel;
	int fd;

	(void)state;
	assert_int_equal(comp_channel_create(sizeof(event), true, NULL, &channel, &fd), 0);
	for (uint64_t i = 0; i < 2; i++) {
		event.element = i + 1;
		adapter_lock();
		send_errno = errors[i];
		assert_false(comp_channel_try_send(channel, event.element));
		comp_channel_send(channel, &event);
		assert_true(channel->lacks_memory);
		comp_channels_flush();
		send_errno = 0;
		comp_channels_flush();
		assert_true(LIST_EMPTY(&adapter.waiting_channels));
		adapter_unlock();
		assert_int_equal(recv(fd, &event, sizeof(event), MSG_DONTWAIT), sizeof(event));
		assert_int_equal(event.element, i + 1);
		assert_int_equal(recv(fd, &event, sizeof(event), MSG_DONTWAIT), -1);
	}
	close_channel(fd);
}

/* A seccomp filter forbids sendto(2): events are lost, and the log says so once. */
static void events_that_a_filter_refuses_are_logged_once(void **state)
{
	const struct comp_channel_event event = {.element = 1};
	const int stderr_was = dup(STDERR_FILENO);
	struct comp_channel *channel;
	char text[256] = "";
	const char *line;
	int fd, ends[2];

	(void)state;
	assert_int_equal(comp_channel_create(sizeof(event), true, NULL, &channel, &fd), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	log_level = LOG_ERROR;
	adapter_lock();
	send_errno = EPERM;
	comp_channel_send(channel, &event);
	comp_channel_send(channel, &event);
	send_errno = 0;
	adapter_unlock();
	log_level = LOG_NONE;
	dup2(stderr_was, STDERR_FILENO);
	close(stderr_was);
	close(ends[1]);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	close(ends[0]);
	line = strstr(text,
		      "events of completion channels are lost: send: Operation not permitted");
	assert_non_null(line);
	assert_null(strstr(line + 1, "events"));
	close_channel(fd);
}

/* Nobody will ever read it, so nothing keeps it. */
static void an_event_without_a_reader_is_dropped(void **state)
{
	const struct comp_channel_event event = {.element = 1};
	struct comp_channel *channel;
	int fd;

	(void)state;
	assert_int_equal(comp_channel_create(sizeof(event), true, NULL, &channel, &fd), 0);
	adapter_lock();
	comp_channel_end(channel);
	comp_channel_send(channel, &event);
	assert_int_equal(channel->n_waiting, 0);
	adapter_unlock();
	close_channel(fd);
}

static atomic_int reader_tid;
static atomic_bool reader_ended;

static void *read_event(void *arg)
{
	uint64_t element;

	reader_tid = gettid();
	assert_int_equal(recv(*(int *)arg, &element, sizeof(element), 0), 0);
	reader_ended = true;
	return NULL;
}

/* Returns the thread, which waits in its read. */
static pthread_t start_reader(int *fd)
{
	pthread_t reader;

	reader_tid = 0;
	reader_ended = false;
	assert_int_equal(pthread_create(&reader, NULL, read_event, fd), 0);
	while (!reader_tid)
		sched_yield();
	asleep_await(reader_tid);
	return reader;
}

/* As in the kernel, where the reader's reference keeps the file. */
static void a_reader_waits_after_the_close_until_the_context_ends(void **state)
{
	struct uverbs_file context = {.live = true};
	struct comp_channel *channel;
	pthread_t reader;
	int fd, first = -1;

	(void)state;
	assert_int_equal(comp_channel_create(8, false, &context, &channel, &fd), 0);
	reader = start_reader(&fd);
	close_channel(fd);
	asleep_await(reader_tid);
	assert_false(reader_ended);
	/* Channels without a reader keep no descriptor. */
	for (int i = 0; i < 100; i++) {
		assert_int_equal(comp_channel_create(8, false, &context, &channel, &fd), 0);
		first = i ? first : channel->writer;
		assert_in_range(channel->writer, first - 10, first + 10);
		close_channel(fd);
	}
	adapter_lock();
	comp_channels_end(&context);
	adapter_unlock();
	assert_int_equal(pthread_join(reader, NULL), 0);
	assert_true(reader_ended);
}

/* The process has as many free descriptors as one channel needs. */
static void a_closed_channel_leaves_its_descriptors_to_the_next(void **state)
{
	struct uverbs_file context = {.live = true};
	struct comp_channel *channel;
	struct rlimit former;
	int spare[3], fd;

	(void)state;
	for (int i = 0; i < 3; i++)
		spare[i] = dup(STDERR_FILENO);
	former = descriptor_limit_reach();
	for (int i = 0; i < 3; i++)
		close(spare[i]);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(comp_channel_create(8, false, &context, &channel, &fd), 0);
		close_channel(fd);
	}
	descriptor_limit_restore(&former);
	adapter_lock();
	comp_channels_end(&context);
	adapter_unlock();
}

static void the_end_of_the_context_ends_waits_at_open_channels(void **state)
{
	struct uverbs_file context = {.live = true};
	const struct comp_channel_event event = {.element = 1};
	struct comp_channel *channel;
	pthread_t reader;
	uint64_t element;
	int fd;

	(void)state;
	assert_int_equal(comp_channel_create(8, false, &context, &channel, &fd), 0);
	reader = start_reader(&fd);
	adapter_lock();
	comp_channels_end(&context);
	comp_channel_send(channel, &event);
	adapter_unlock();
	assert_int_equal(pthread_join(reader, NULL), 0);
	assert_int_equal(recv(fd, &element, sizeof(element), MSG_DONTWAIT), 0);
	close_channel(fd);
}

/* The wait of a thread there would not end with the context or the device, which have ended. */
static void a_context_or_device_that_has_ended_gets_no_channel(void **state)
{
	struct uverbs_file context = {.live = true};
	struct comp_channel *channel;
	int fd;

	(void)state;
	adapter.dead = true;
	assert_int_equal(comp_channel_create(8, false, &context, &channel, &fd), -EIO);
	adapter.dead = false;
	context.live = false;
	assert_int_equal(comp_channel_create(8, false, &context, &channel, &fd), -EIO);
	context.live = true;
	assert_int_equal(comp_channel_create(8, false, &context, &channel, &fd), 0);
	close_channel(fd);
	adapter_lock();
	comp_channels_end(&context);
	adapter_unlock();
}

static atomic_int creator_tid;
static atomic_bool creator_stops, creator_goes_on;

/* In place of libc's: the thread that creates a channel stops here. */
int socketpair(int domain, int type, int protocol, int ends[2])
{
	creator_stops = creator_tid == gettid();
	while (creator_stops && !creator_goes_on)
		sched_yield();
	return (int)syscall(SYS_socketpair, domain, type, protocol, ends);
}

static void *create_channel(void *fd)
{
	struct comp_channel *channel;

	creator_tid = gettid();
	assert_int_equal(comp_channel_create(8, true, NULL, &channel, fd), 0);
	return NULL;
}

/* Its stream would have the descriptor, and not the channel. */
static void no_channel_comes_while_a_checkpointer_has_the_lock(void **state)
{
	pthread_t creator;
	int fd;

	(void)state;
	assert_int_equal(pthread_create(&creator, NULL, create_channel, &fd), 0);
	while (!creator_stops)
		sched_yield();
	adapter_lock();
	creator_goes_on = true;
	asleep_await(creator_tid);
	assert_int_equal(fd_next(0), -1);
	adapter_unlock();
	assert_int_equal(pthread_join(creator, NULL), 0);
	assert_int_equal(fd_next(0), fd);
	close_channel(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_withdrawal_keeps_the_order_of_other_events),
		cmocka_unit_test(a_withdrawal_needs_no_memory),
		cmocka_unit_test(an_event_survives_a_kernel_without_memory),
		cmocka_unit_test(events_that_a_filter_refuses_are_logged_once),
		cmocka_unit_test(an_event_without_a_reader_is_dropped),
		cmocka_unit_test(a_reader_waits_after_the_close_until_the_context_ends),
		cmocka_unit_test(a_closed_channel_leaves_its_descriptors_to_the_next),
		cmocka_unit_test(the_end_of_the_context_ends_waits_at_open_channels),
		cmocka_unit_test(a_context_or_device_that_has_ended_gets_no_channel),
		cmocka_unit_test(no_channel_comes_while_a_checkpointer_has_the_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
