/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine thread of liburxe.so, for other threads: what wakes it. attach/engine_loop.h has the
 * thread itself. Functions need the lock of the adapter.
 */
#ifndef URXE_VERBS_POLL_ENGINE_THREAD_H
#define URXE_VERBS_POLL_ENGINE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct engine_thread {
	pthread_t thread;
	int wake_fd; /* eventfd */
	bool stop;
	/* When the thread wakes by itself, clock_now(); 0: it is awake. The thread itself writes to
	 * it without adapter.lock, too. */
	_Atomic uint64_t wake_at;
	/* Nanoseconds between two looks at the grant of a program that polls without end. */
	_Atomic uint64_t look;
};

/* Under adapter.lock, except where the members say otherwise. */
extern struct engine_thread adapter_thread;

/* Wakes the thread if the engine has work before the thread wakes by itself. */
void engine_thread_schedule(void);
/* A program got or renewed the poll grant: wakes the thread if it would not look at that in time.
 */
void engine_thread_granted(uint64_t now);
void engine_thread_wake(void);

#endif
