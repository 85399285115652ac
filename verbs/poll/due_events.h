/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that runs the engine sends completion events after it has released adapter.lock. An
 * event wakes a thread of the program, which calls ibv_req_notify_cq at once and needs the lock. If
 * the woken thread preempted a sender that held the lock, the woken thread would sleep again.
 *
 * comp_channel_send_later() makes an event due; adapter_unlock() calls due_events_unlock_and_send()
 * if an event is due. From then until the thread has sent it, without the lock, an event is in
 * flight: it can be neither withdrawn nor saved.
 */
#ifndef URXE_VERBS_POLL_DUE_EVENTS_H
#define URXE_VERBS_POLL_DUE_EVENTS_H

#include <stdbool.h>

/* Releases adapter.lock, and sends the due events. */
void due_events_unlock_and_send(void);

/*
 * With adapter.lock. A thread that wants to withdraw or save events first calls
 * due_events_begin_drain(): from then on all threads send completion events at once. While
 * due_events_any() returns true, because an event is due or in flight, the thread releases the lock
 * and takes it again. At the end it calls due_events_end_drain().
 */
void due_events_begin_drain(void);
bool due_events_any(void);
void due_events_end_drain(void);

#endif
