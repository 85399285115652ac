/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine thread of liburxe.so: it runs the engine while no thread of the program does, waits
 * for the daemon's notices, and looks for the next daemon. docs/locking.md says when it runs.
 */
#ifndef URXE_VERBS_ATTACH_ENGINE_THREAD_H
#define URXE_VERBS_ATTACH_ENGINE_THREAD_H

/* Starts the thread, and waits until it runs. adapter.lock must not be held. 0 or a negative errno
 * value. */
int engine_thread_start(void);
/* Ends the thread, and waits for its end. adapter.lock must not be held. */
void engine_thread_stop(void);
/* In a forked child, which has no engine thread: closes the child's copy of the parent thread's
 * eventfd. */
void engine_thread_abandon(void);

#endif
