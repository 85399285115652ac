/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/comp_channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "objects/uverbs_file.h"
#include "process/cancellation.h"
#include "process/high_fd.h"
#include "process/log.h"

/* Channels without a user. A channel whose `writer` is closed may be used again; until then a
 * thread of the program may still read at its end of the socket. */
static struct comp_channel_list unused = LIST_HEAD_INITIALIZER(unused);

static void release_channel(struct fd_object *object)
{
	adapter_lock();
	comp_channel_put((struct comp_channel *)object);
	adapter_unlock();
}

/* Whether the application's end of the socket is gone: all its descriptors are closed, and no
 * thread is still in a read(2) of it. */
static bool is_unread(const struct comp_channel *channel)
{
	uint8_t byte;

	return recv(channel->writer, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) >= 0 ||
	       errno != EAGAIN;
}

void comp_channel_bind(struct comp_channel *channel, struct uverbs_file *file)
{
	LIST_INSERT_HEAD(&file->channels, channel, context_link);
	channel->file = file;
	channel->context_unknown = false;
}

static void leave_context(struct comp_channel *channel)
{
	if (channel->file)
		LIST_REMOVE(channel, context_link);
	channel->file = NULL;
}

static void drop_waiting(struct comp_channel *channel)
{
	if (channel->n_waiting)
		LIST_REMOVE(channel, waiting_link);
	channel->n_waiting = 0;
}

/* Closes this library's ends of the channels in `unused`. Leaves those at which a thread of the
 * program still reads: that read(2) ends with the context. */
static void close_unread(void)
{
	struct comp_channel *channel;

	LIST_FOREACH(channel, &unused, free_link)
	{
		if (channel->writer < 0 || (channel->file && !is_unread(channel)))
			continue;
		leave_context(channel);
		close(channel->writer);
		channel->writer = -1;
	}
}

void comp_channel_end(struct comp_channel *channel)
{
	drop_waiting(channel);
	leave_context(channel);
	/* shutdown(), not close(): a thread without adapter.lock may be sending a due event by the
	 * descriptor. */
	(void)shutdown(channel->writer, SHUT_WR);
}

void comp_channels_end(struct uverbs_file *file)
{
	const int saved = errno, cancel = cancellation_disable();
	struct comp_channel *channel;

	while ((channel = LIST_FIRST(&file->channels)))
		comp_channel_end(channel);
	close_unread();
	cancellation_restore(cancel);
	errno = saved;
}

void comp_channels_unbind(struct uverbs_file *file)
{
	struct comp_channel *channel;

	while ((channel = LIST_FIRST(&file->channels)))
		leave_context(channel);
}

static void abandon_channel(struct comp_channel *channel)
{
	drop_waiting(channel);
	leave_context(channel);
	close(channel->reader);
	close(channel->writer);
	channel->reader = channel->writer = -1;
}

void comp_channels_abandon(struct uverbs_file *file)
{
	struct comp_channel *channel;

	while ((channel = LIST_FIRST(&file->channels)))
		abandon_channel(channel);
	if (file->async)
		abandon_channel(file->async);
}

void comp_channel_free(struct comp_channel *channel)
{
	const int saved = errno, cancel = cancellation_disable();

	drop_waiting(channel);
	close(channel->reader);
	channel->reader = -1;
	LIST_INSERT_HEAD(&unused, channel, free_link);
	close_unread();
	cancellation_restore(cancel);
	errno = saved;
}

/* First closes the descriptors of channels that the program has closed: the new channel may need
 * descriptors at the limit (RLIMIT_NOFILE). */
static struct comp_channel *comp_channel_alloc(void)
{
	const int saved = errno, cancel = cancellation_disable();
	struct comp_channel *channel;

	adapter_lock();
	close_unread();
	LIST_FOREACH(channel, &unused, free_link)
	{
		if (channel->writer < 0)
			break;
	}
	if (channel)
		LIST_REMOVE(channel, free_link);
	adapter_unlock();
	cancellation_restore(cancel);
	errno = saved;
	return channel ? channel : calloc(1, sizeof(*channel));
}

static void shrink_buffer(int socket)
{
	const int least = 1; /* the kernel raises this to its minimum */

	(void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
}

/*
 * Adds the program's end, `fd`, to the table of emulated_fd.h, and the channel to its context. Both
 * happen with adapter.lock: otherwise a checkpointer's stream could name the channel's descriptor
 * without the channel. 0 or a negative errno value; -EIO: the context is closed or the device is
 * dead, so nothing would end a wait at the channel.
 */
static int install(struct comp_channel *channel, struct uverbs_file *file, int fd)
{
	int rc;

	/* If the program closed the number by a raw system call, the table still has its entry.
	 * Removed before this function takes adapter.lock, because its release takes that lock. */
	fd_remove(fd);
	adapter_lock();
	if (file && (!file->live || adapter.dead))
		rc = -EIO;
	else
		rc = fd_install(fd, &channel->fd);
	if (!rc && file)
		comp_channel_bind(channel, file);
	adapter_unlock();
	return rc;
}

int comp_channel_create(uint32_t event_size, bool few, struct uverbs_file *file,
			struct comp_channel **out, int *fd)
{
	struct comp_channel *channel = comp_channel_alloc();
	int ends[2];
	int rc;

	if (!channel)
		return -ENOMEM;
	channel->fd.kind = FD_CHANNEL;
	channel->fd.release = release_channel;
	channel->event_size = event_size;
	channel->context_unknown = false;
	atomic_store(&channel->users, 1);
	channel->reader = channel->writer = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		rc = -errno;
		goto fail;
	}
	channel->writer = high_fd(ends[1]);
	if (few)
		shrink_buffer(channel->writer);
	channel->reader = high_fd_duplicate(ends[0]);
	rc = channel->reader < 0 ? -errno : install(channel, file, ends[0]);
	if (rc) {
		close(ends[0]);
		goto fail;
	}
	*out = channel;
	*fd = ends[0];
	return 0;
fail:
	adapter_lock();
	comp_channel_free(channel);
	adapter_unlock();
	return rc;
}

void comp_channel_put(struct comp_channel *channel)
{
	if (atomic_fetch_sub(&channel->users, 1) == 1)
		comp_channel_free(channel);
}

/* Whether to send the event again later, after this error of send(2). After any other error no
 * thread reads at the socket any more, or is_forbidden(). */
static bool is_temporary(int error)
{
	return error == EAGAIN || error == ENOBUFS || error == ENOMEM;
}

/* Whether a seccomp filter of the program may have refused the call: a reader waits in vain. */
static bool is_forbidden(int error)
{
	return error == EPERM || error == EACCES || error == ENOSYS;
}

/* Once in the process, because a program that asks for many events would lose them all. */
static void log_forbidden(int error)
{
	static atomic_bool written;

	if (log_level >= LOG_ERROR && !atomic_exchange(&written, true))
		log_write("events of completion channels are lost: send: %s", strerror(error));
}

/* Sends the event to the program. 0, also if no thread can read it any more; else the error, as a
 * positive errno value: the socket is full, or the kernel has no memory. Uses libc's send(), from
 * which ThreadSanitizer learns that the receiver runs after the sender. */
static int try_send_event(const struct comp_channel *channel,
			  const struct comp_channel_event *event)
{
	const int saved = errno, cancel = cancellation_disable();
	int error = 0;

	if (send(channel->writer, event, channel->event_size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		error = errno;
	if (is_forbidden(error))
		log_forbidden(error);
	cancellation_restore(cancel);
	errno = saved;
	return is_temporary(error) ? error : 0;
}

/* Sends the event, and sets channel->lacks_memory if the kernel had no memory for it. False: it
 * must be sent later. With adapter.lock. */
static bool send_event(struct comp_channel *channel, const struct comp_channel_event *event)
{
	const int error = try_send_event(channel, event);

	channel->lacks_memory = error && error != EAGAIN;
	return !error;
}

/* Adds the event to the waiting ones. False: the event is lost, because there is no memory. */
static bool queue_event(struct comp_channel *channel, const struct comp_channel_event *event)
{
	if (channel->n_waiting == channel->room) {
		uint32_t room = channel->room ? channel->room * 2 : 64;
		struct comp_channel_event *waiting =
			realloc(channel->waiting, room * sizeof(*waiting));

		if (!waiting) {
			log_error("an event is lost: no memory");
			return false;
		}
		channel->waiting = waiting;
		channel->room = room;
	}
	if (!channel->n_waiting) {
		LIST_INSERT_HEAD(&adapter.waiting_channels, channel, waiting_link);
		adapter.channel_waits = true;
	}
	channel->waiting[channel->n_waiting++] = *event;
	return true;
}

bool comp_channel_send(struct comp_channel *channel, const struct comp_channel_event *event)
{
	return (!channel->n_waiting && send_event(channel, event)) || queue_event(channel, event);
}

bool comp_channel_send_published(struct comp_channel *channel,
				 const struct comp_channel_event *event)
{
	adapter.events_due = true;
	return queue_event(channel, event);
}

bool comp_channel_try_send(const struct comp_channel *channel, uint64_t element)
{
	const struct comp_channel_event event = {.element = element};

	return !try_send_event(channel, &event);
}

bool comp_channel_send_later(struct comp_channel *channel, uint64_t element)
{
	const struct comp_channel_event event = {.element = element};
	struct due_events *due = &adapter.due_events;

	if (!due->unlock_and_send || due->drains || due->n == DUE_EVENTS_MAX)
		return comp_channel_send(channel, &event);
	comp_channel_use(channel);
	due->list[due->n++] = (struct due_event){.channel = channel, .element = element};
	return true;
}

void comp_channel_flush(struct comp_channel *channel)
{
	uint32_t sent = 0;

	while (sent < channel->n_waiting && send_event(channel, &channel->waiting[sent]))
		sent++;
	if (!sent)
		return;
	channel->n_waiting -= sent;
	memmove(channel->waiting, channel->waiting + sent,
		channel->n_waiting * sizeof(*channel->waiting));
	if (!channel->n_waiting)
		LIST_REMOVE(channel, waiting_link);
}

void comp_channels_flush(void)
{
	struct comp_channel *channel = LIST_FIRST(&adapter.waiting_channels);

	adapter.events_due = false;
	while (channel) {
		struct comp_channel *next = LIST_NEXT(channel, waiting_link);

		comp_channel_flush(channel);
		channel = next;
	}
	if (LIST_EMPTY(&adapter.waiting_channels))
		adapter.channel_waits = false;
}

/* Withdraws up to `most` events about `element` that wait in the list, and returns their number. */
static uint32_t withdraw_queued(struct comp_channel *channel, uint64_t element, uint32_t most)
{
	uint32_t kept = 0, taken = 0;

	for (uint32_t i = 0; i < channel->n_waiting; i++)
		if (taken < most && channel->waiting[i].element == element)
			taken++;
		else
			channel->waiting[kept++] = channel->waiting[i];
	if (taken && !kept)
		LIST_REMOVE(channel, waiting_link);
	channel->n_waiting = kept;
	return taken;
}

static bool set_peek_offset(const struct comp_channel *channel, int offset)
{
	return !setsockopt(channel->reader, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset));
}

/* Calls `event` for each unread event in the socket. */
static void peek_sent(const struct comp_channel *channel, comp_channel_event_fn *event, void *arg)
{
	struct comp_channel_event sent = {0};

	/* Reads from offset 0 on: each MSG_PEEK then moves to the next packet. */
	if (!set_peek_offset(channel, 0))
		return;
	while (recv(channel->reader, &sent, channel->event_size, MSG_PEEK | MSG_DONTWAIT) > 0)
		event(arg, &sent);
	set_peek_offset(channel, -1);
}

static void count_event(void *n, const struct comp_channel_event *event)
{
	(void)event;
	++*(uint32_t *)n;
}

/*
 * Withdraws up to `most` unread events about `element` from the socket, and returns their number.
 * For that it reads all events in the socket, and sends those about other objects again; they find
 * room, and keep their order unless a thread of the program reads meanwhile. An event that the
 * kernel cannot send for lack of memory goes to the list of waiting events. If there is no memory
 * for the list either, the event is lost, and counts as read.
 */
static uint32_t withdraw_sent(struct comp_channel *channel, uint64_t element, uint32_t most)
{
	struct comp_channel_event event = {0};
	uint32_t left = 0, taken = 0;

	peek_sent(channel, count_event, &left);
	while (left-- && recv(channel->reader, &event, channel->event_size, MSG_DONTWAIT) > 0)
		if (taken < most && event.element == element)
			taken++;
		else if (!send_event(channel, &event))
			queue_event(channel, &event);
	comp_channel_flush(channel);
	return taken;
}

uint32_t comp_channel_withdraw(struct comp_channel *channel, uint64_t element, uint32_t sent)
{
	if (sent)
		sent -= withdraw_queued(channel, element, sent);
	if (sent)
		sent -= withdraw_sent(channel, element, sent);
	return sent;
}

void comp_channel_peek(const struct comp_channel *channel, comp_channel_event_fn *event, void *arg)
{
	peek_sent(channel, event, arg);
	for (uint32_t i = 0; i < channel->n_waiting; i++)
		event(arg, &channel->waiting[i]);
}
