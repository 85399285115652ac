/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/due_events.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "adapter/adapter.h"
#include "objects/comp_channel.h"
#include "poll/engine_wake.h"
#include "queues/verbs_cq.h"

/* For a full completion channel: adds the event to the channel's waiting events, and wakes the
 * engine thread, which sends the event when the program has read others. `generation`:
 * adapter_fork_generation before the lock was released. No effect in a child that a signal handler
 * has forked since. */
static void wait_for_room(const struct due_event *due, uint32_t generation)
{
	const struct comp_channel_event event = {.element = due->element};

	adapter_lock();
	if (!adapter_is_parents(generation)) {
		if (!comp_channel_send(due->channel, &event))
			cq_event_lost(due->channel, due->element);
		if (adapter.dev && !adapter_thread.stop)
			engine_wake();
	}
	adapter_unlock();
}

/* As comp_channel_put, without adapter.lock: takes the lock only if the caller was the last user.
 */
static void put_channel(struct comp_channel *channel)
{
	if (atomic_fetch_sub(&channel->users, 1) > 1)
		return;
	adapter_lock();
	comp_channel_free(channel);
	adapter_unlock();
}

/* Counts one event less that is in flight. 0 stays 0: a signal handler may have forked since
 * adapter_is_parents(), and in the child no event is in flight. */
static void count_off(void)
{
	uint32_t n = atomic_load(&adapter.due_events.in_flight);

	while (n && !atomic_compare_exchange_weak(&adapter.due_events.in_flight, &n, n - 1))
		;
}

static void send_due(const struct due_event *due, uint32_t generation)
{
	if (!comp_channel_try_send(due->channel, due->element))
		wait_for_room(due, generation);
	if (adapter_is_parents(generation))
		return;
	put_channel(due->channel);
	count_off();
}

void due_events_unlock_and_send(void)
{
	struct due_event list[DUE_EVENTS_MAX];
	const uint32_t n = adapter.due_events.n, generation = adapter_fork_generation;

	memcpy(list, adapter.due_events.list, n * sizeof(list[0]));
	adapter.due_events.n = 0;
	atomic_fetch_add(&adapter.due_events.in_flight, n);
	lock_release(&adapter.lock);
	/* If a signal handler forks from here on, the handlers of fork take the lock, and make the
	 * child forget the adapter. */
	adapter_inside = false;
	if (adapter.lock.orphaned) {
		adapter_unlock_orphaned();
		return;
	}
	for (uint32_t i = 0; i < n && !adapter_is_parents(generation); i++)
		send_due(&list[i], generation);
}

void due_events_begin_drain(void)
{
	adapter.due_events.drains++;
}

bool due_events_any(void)
{
	return adapter.due_events.n || atomic_load(&adapter.due_events.in_flight);
}

void due_events_end_drain(void)
{
	/* `drains` is 0 in a child that a signal handler has forked since the drain began. */
	if (adapter.due_events.drains)
		adapter.due_events.drains--;
}
