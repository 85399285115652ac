/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion events are sent after adapter.lock was released. The thread that an event wakes calls
 * ibv_req_notify_cq at once, which needs the lock. If the sender still held it, and the woken
 * thread took its processor, that thread would have to sleep again.
 *
 * comp_channel_send_later() adds the events; adapter_unlock() calls due_events_release() if one is
 * due. An event that a thread without the lock has not sent yet is in flight: it can be neither
 * withdrawn nor saved.
 */
#ifndef URXE_VERBS_POLL_DUE_EVENTS_H
#define URXE_VERBS_POLL_DUE_EVENTS_H

#include <stdbool.h>

/* Releases adapter.lock, and sends the due events. */
void due_events_release(void);

/*
 * With adapter.lock. Between due_events_hold() and due_events_unhold() completion events are sent
 * at once. A thread that wants to withdraw or save events releases the lock as long as
 * due_events_any() returns true: an event is due, or in flight.
 */
void due_events_hold(void);
bool due_events_any(void);
void due_events_unhold(void);

#endif
