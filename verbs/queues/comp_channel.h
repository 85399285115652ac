/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion and asynchronous event channels.
 *
 * The application's end is a SOCK_SEQPACKET socket that carries the ABI's event
 * descriptors: blocking read, O_NONBLOCK, poll and epoll work by themselves, one
 * read gives one event as with the kernel, and, unlike a pipe, a reader that has
 * gone raises no SIGPIPE in us. What does not fit the socket waits in a list.
 * All functions but channel_create want the port's lock.
 */
#ifndef URXE_VERBS_QUEUES_COMP_CHANNEL_H
#define URXE_VERBS_QUEUES_COMP_CHANNEL_H

#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "interpose/own_fd.h"

/* ib_uverbs_comp_event_desc and ib_uverbs_async_event_desc begin with what they are about. */
struct channel_event {
	uint64_t element;
	uint32_t type; /* asynchronous events only */
	uint32_t reserved;
};

struct channel {
	struct fd_object fd;
	uint32_t users; /* the descriptors together, and each CQ or context that sends to it */
	int reader;     /* duplicate of the application's end, to take events back */
	int writer;
	uint32_t event_size;
	struct channel_event *waiting;
	uint32_t n_waiting;
	uint32_t room;
	LIST_ENTRY(channel) waiting_link;
	LIST_ENTRY(channel) free_link;
};
LIST_HEAD(channel_list, channel);

/* A channel for events of event_size bytes; *fd is the application's end, in the fd table. */
int channel_create(uint32_t event_size, struct channel **channel, int *fd);
static inline void channel_use(struct channel *channel)
{
	channel->users++;
}
void channel_put(struct channel *channel);
void channel_send(struct channel *channel, const struct channel_event *event);
/* Takes back the events about element that were not read; returns how many. */
uint32_t channel_withdraw(struct channel *channel, uint64_t element);
/* Sends what waits. */
void channel_flush(struct channel *channel);

#endif
