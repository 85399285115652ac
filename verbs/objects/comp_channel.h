/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion channels, and the channel of asynchronous events of a context.
 *
 * The application's end is a SOCK_SEQPACKET socket that carries the ABI's event descriptors. So
 * blocking read, O_NONBLOCK, poll and epoll work without further code, and one read returns one
 * event, as with the kernel. Unlike a pipe, a socket whose reader has closed raises no SIGPIPE in
 * this library. If the socket is full, or the kernel has no memory, events wait in a list of the
 * channel. All functions need adapter.lock, but for comp_channel_create, which takes the lock
 * itself, comp_channel_use and comp_channel_try_send.
 */
#ifndef URXE_VERBS_OBJECTS_COMP_CHANNEL_H
#define URXE_VERBS_OBJECTS_COMP_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "process/emulated_fd.h"

struct uverbs_file;

/*
 * The members that ib_uverbs_comp_event_desc and ib_uverbs_async_event_desc begin with. `element`
 * is the user handle of the object; of events of the port its number, of events of the device 0.
 */
struct comp_channel_event {
	uint64_t element;
	uint32_t type; /* asynchronous events only */
	uint32_t reserved;
};

struct comp_channel {
	struct fd_object fd;
	/* One for all descriptors of the program together, one for each CQ or context that sends
	 * events here, and one for each due event (poll/due_events.h). Threads without adapter.lock
	 * decrement it, too. */
	_Atomic uint32_t users;
	int reader; /* duplicate of the application's end, to withdraw events; -1: closed */
	int writer; /* this library's end of the socket; -1: closed */
	uint32_t event_size; /* bytes of an event in the ABI */
	/* Events that the socket did not take, or that adapter_publish() has to send; `room`
	 * elements are allocated. */
	struct comp_channel_event *waiting;
	uint32_t n_waiting;
	uint32_t room;
	bool lacks_memory; /* the kernel had no memory to send the first waiting event: poll(2) may
			      report room in the socket meanwhile */
	LIST_ENTRY(comp_channel) waiting_link;
	LIST_ENTRY(comp_channel) free_link;
	/* The open context whose completion channel this is. NULL: the context is closed or not
	 * known yet, or the channel is that of asynchronous events. */
	struct uverbs_file *file;
	bool context_unknown; /* a restored channel: the next CQ binds it to a context */
	LIST_ENTRY(comp_channel) context_link;
};

/*
 * Creates a channel for events of event_size bytes. *fd becomes the application's end, which is in
 * the table of emulated_fd.h. `few`: the socket holds only a handful of events, for asynchronous
 * events. Many programs never read these, and a withdrawal reads and sends again all events in the
 * socket. `file`: the context whose completion channel it is; NULL: an asynchronous channel, or
 * comp_channel_bind() follows. 0, -EIO: the context or the device is not alive, or another negative
 * errno value.
 */
int comp_channel_create(uint32_t event_size, bool few, struct uverbs_file *file,
			struct comp_channel **channel, int *fd);
/* comp_channel_use counts one user more, comp_channel_put one less; the last user's put closes the
 * channel. */
static inline void comp_channel_use(struct comp_channel *channel)
{
	atomic_fetch_add(&channel->users, 1);
}
void comp_channel_put(struct comp_channel *channel);
/* Adds the channel to the completion channels of an open context. */
void comp_channel_bind(struct comp_channel *channel, struct uverbs_file *file);
/*
 * Closes the channel, which has no user. A thread of the program that still reads there goes on
 * waiting, as in the kernel, until a signal comes, the channel's context is closed or the device
 * dies.
 */
void comp_channel_free(struct comp_channel *channel);
/*
 * Makes blocked and later reads return 0 after the events that the socket holds;
 * ibv_get_cq_event() then returns -1, as after the kernel's EIO. Events that wait for room, and
 * later ones, are lost.
 */
void comp_channel_end(struct comp_channel *channel);
/* Ends the waits at all completion channels of a context, also at closed ones. */
void comp_channels_end(struct uverbs_file *file);
/* For a context whose restoration has failed: removes all channels from its list, and leaves them
 * open. */
void comp_channels_unbind(struct uverbs_file *file);
/*
 * In a forked child: closes this library's descriptors of all channels of an inherited context,
 * also of the asynchronous one. They would keep open a socket that parent and child have closed,
 * and the parent's epoll sets would still contain it.
 */
void comp_channels_abandon(struct uverbs_file *file);
/* Sends the event, or adds it to the waiting events if the socket does not take it. Never blocks.
 * False: the event is lost, because there is no memory. */
bool comp_channel_send(struct comp_channel *channel, const struct comp_channel_event *event);
/*
 * For asynchronous events: adapter_publish() sends the event, after it has made the completions
 * visible that the engine added before. Until then the event is a waiting one. False: the event is
 * lost, because there is no memory.
 */
bool comp_channel_send_published(struct comp_channel *channel,
				 const struct comp_channel_event *event);
/*
 * For completion events: adapter_unlock() sends the event after it has released adapter.lock
 * (poll/due_events.h). This function sends it at once in three cases: a thread has called
 * due_events_begin_drain(), 16 events are due, or no engine thread has started yet. False: the
 * event is lost, because there is no memory. A due event may be lost, too (cq_event_lost in
 * queues/verbs_cq.h).
 */
bool comp_channel_send_later(struct comp_channel *channel, uint64_t element);
/* Sends a completion event about `element`, without adapter.lock. False: the socket is full, or the
 * kernel has no memory. Keeps errno. */
bool comp_channel_try_send(const struct comp_channel *channel, uint64_t element);
/*
 * Withdraws the events about `element` that the application has not read. `sent` is the number of
 * events about `element` that comp_channel_send and its variants got and did not lose; none of them
 * is due or in flight (poll/due_events.h). Returns how many of them the application has read.
 */
uint32_t comp_channel_withdraw(struct comp_channel *channel, uint64_t element, uint32_t sent);
/* comp_channel_peek calls `event` for each event that the application has not read, in the order of
 * the events, which stay unread. For a checkpoint. */
typedef void comp_channel_event_fn(void *arg, const struct comp_channel_event *event);
void comp_channel_peek(const struct comp_channel *channel, comp_channel_event_fn *event, void *arg);
/* Sends as many of the waiting events as the socket takes. */
void comp_channel_flush(struct comp_channel *channel);
/* comp_channel_flush() for all channels of the process that have waiting events. */
void comp_channels_flush(void);

#endif
