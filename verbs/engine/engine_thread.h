/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine thread of liburxe.so: it runs the engine while no thread of the program does, waits
 * for the daemon's notices, and looks for the next daemon. docs/locking.md says when it runs.
 * Functions need the lock of the port, unless their comment says otherwise.
 */
#ifndef URXE_VERBS_ENGINE_ENGINE_THREAD_H
#define URXE_VERBS_ENGINE_ENGINE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct engine_thread {
	pthread_t thread;
	int wake_fd; /* eventfd */
	bool stop;
	/* When the thread wakes by itself, clock_now(); 0: it is awake. The thread itself writes to
	 * it without the lock, too. */
	_Atomic uint64_t wake_at;
	/* Nanoseconds between two looks at the grant of a program that polls without end. */
	_Atomic uint64_t look;
};

/* Without the lock. 0 or a negative errno value. */
int engine_thread_start(void);
/* Without the lock. */
void engine_thread_stop(void);
/* In a forked child: closes the parent's descriptor. */
void engine_thread_abandon(void);

/* Wakes the thread if the engine has work before the thread wakes by itself. */
void engine_thread_schedule(void);
/* A program got or renewed the poll grant: wakes the thread if it would not look at that in time.
 */
void engine_thread_granted(uint64_t now);
void engine_thread_wake(void);

/* The daemon has ended, or the NIC cannot be trusted. Any thread. */
void engine_thread_disconnected(void);

#endif
