/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of the program's main thread by pthread_exit(3). libc ends a process with its last
 * thread, but counts the engine thread, which does not end. So the engine thread looks
 * whether only threads of this library are left, and then ends the process.
 */
#ifndef URXE_VERBS_ATTACH_MAIN_THREAD_H
#define URXE_VERBS_ATTACH_MAIN_THREAD_H

#include <stdbool.h>

/* pthread_exit calls it in each thread; it has no effect outside of the main thread. */
void main_thread_note_exit(void);
/* For the engine thread, without locks: whether the main thread and all other threads of the
 * program have ended. Looks each 10 ms at most. */
bool main_thread_was_last(void);
/* Another thread of this library counts itself: 1 at its start, -1 at its end. */
void main_thread_count_own(int change);
/* In a forked child, which has none of these threads. */
void main_thread_fork_child(void);

#endif
