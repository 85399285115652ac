/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/due_events.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "adapter/adapter.h"
#include "objects/comp_channel.h"
#include "poll/engine_wake.h"

/* The engine thread sends the event when the program has made room. */
static void wait_for_room(const struct due_event *due, uint32_t forks)
{
	const struct comp_channel_event event = {.element = due->element};

	adapter_lock();
	if (!adapter_is_parents(forks)) {
		comp_channel_send(due->channel, &event);
		if (adapter.dev && !adapter_thread.stop)
			engine_wake();
	}
	adapter_unlock();
}

/* As comp_channel_put, which needs the lock, but takes it for the last user only. */
static void put_channel(struct comp_channel *channel)
{
	if (atomic_fetch_sub(&channel->users, 1) > 1)
		return;
	adapter_lock();
	comp_channel_free(channel);
	adapter_unlock();
}

/* 0 stays 0: a handler may have forked since adapter_is_parents(), and the child's adapter has no
 * event. */
static void count_off(void)
{
	uint32_t n = atomic_load(&adapter.due_events.in_flight);

	while (n && !atomic_compare_exchange_weak(&adapter.due_events.in_flight, &n, n - 1))
		;
}

static void send_due(const struct due_event *due, uint32_t forks)
{
	if (!comp_channel_try_send(due->channel, due->element))
		wait_for_room(due, forks);
	if (adapter_is_parents(forks))
		return;
	put_channel(due->channel);
	count_off();
}

void due_events_release(void)
{
	struct due_event list[DUE_EVENTS_MAX];
	const uint32_t n = adapter.due_events.n, forks = adapter_forks;

	memcpy(list, adapter.due_events.list, n * sizeof(list[0]));
	adapter.due_events.n = 0;
	atomic_fetch_add(&adapter.due_events.in_flight, n);
	lock_release(&adapter.lock);
	/* From here on a handler that forks takes the lock, and its child forgets the adapter. */
	adapter_inside = false;
	if (adapter.lock.orphaned) {
		adapter_unlock_orphaned();
		return;
	}
	for (uint32_t i = 0; i < n && !adapter_is_parents(forks); i++)
		send_due(&list[i], forks);
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
	/* In a forked child, which has another adapter, nothing is held. */
	if (adapter.due_events.drains)
		adapter.due_events.drains--;
}
