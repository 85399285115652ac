/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The busy poll of the engine thread: a stream of packets to a program that makes no verbs call
 * keeps the engine thread awake, because the next frames come before it would have slept and been
 * woken.
 */
#ifndef URXE_VERBS_POLL_BUSY_POLL_H
#define URXE_VERBS_POLL_BUSY_POLL_H

/*
 * In the engine thread, with the lock of the adapter, which is released between looks. Returns in
 * POLL_BUSY when no frame has come for a while, and else in the state that another thread has set.
 */
void busy_poll(void);

#endif
