/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The busy poll of the engine thread. While a program gets a stream of packets and makes no verbs
 * call, the engine thread looks for frames without sleeping: the next frames come before it could
 * fall asleep and wake up.
 */
#ifndef URXE_VERBS_POLL_BUSY_POLL_H
#define URXE_VERBS_POLL_BUSY_POLL_H

/*
 * In the engine thread, with adapter.lock, which it releases between looks. Returns in the state
 * POLL_BUSY when no frame has come for a while or other threads want the processor, and else in the
 * state that another thread has set. Returns at once while an earlier useless busy poll forbids
 * one.
 */
void busy_poll(void);

#endif
