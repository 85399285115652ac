/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of the program's main thread by pthread_exit(3) or pthread_cancel(3). libc ends a process
 * with its last thread, but counts the threads of this library, which do not end. So each of them
 * looks whether only such threads are left, and the oldest of them then ends the process.
 */
#ifndef URXE_VERBS_ATTACH_MAIN_THREAD_H
#define URXE_VERBS_ATTACH_MAIN_THREAD_H

#include <stdbool.h>

/* Any thread calls it: if the caller is the main thread, the library notices that thread's end,
 * unless the program uses all keys of pthread_key_create. */
void main_thread_watch(void);
/* In a forked child: its main thread is the thread that forked, so main_thread_ended() is false
 * again, and the library watches this thread. */
void main_thread_fork_child(void);
/* At its end the main thread calls wake(), for a thread of this library beside the engine thread.
 */
void main_thread_wake_at_end(void (*wake)(void));
/* Whether the main thread has called pthread_exit or was cancelled. */
bool main_thread_ended(void);
/* Threads of this library call it while they hold no lock: ends the process if the main thread and
 * all other threads of the program have ended. Reads /proc each 10 ms at most. */
void main_thread_end_process_if_last(void);

#endif
