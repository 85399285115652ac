/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The busy poll of the engine thread. While a program gets a stream of packets and makes no verbs
 * call, the engine thread looks for frames without sleeping: the next frames come before the thread
 * could fall asleep and wake up.
 */
#ifndef URXE_VERBS_POLL_BUSY_POLL_H
#define URXE_VERBS_POLL_BUSY_POLL_H

/*
 * In the engine thread, with adapter.lock, which it releases between looks. Returns when no frame
 * has come for 50 us, other threads want the processor, or the engine may not run any more
 * (adapter_running); the state is POLL_BUSY then. Returns also when another thread has set another
 * state, or the engine thread must end. Returns at once during the pause that follows useless busy
 * polls.
 */
void busy_poll(void);

#endif
