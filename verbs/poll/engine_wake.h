/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wakes the engine thread of liburxe.so from other threads. attach/engine_thread.h has the thread
 * itself. The callers of engine_wake_for_work and engine_wake_for_grant hold adapter.lock; the
 * other functions need no lock.
 */
#ifndef URXE_VERBS_POLL_ENGINE_WAKE_H
#define URXE_VERBS_POLL_ENGINE_WAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct engine_thread {
	pthread_t thread;
	/* An eventfd that ends the thread's sleep; 0 or -1: the process has no thread. Any thread
	 * reads it without adapter.lock. */
	atomic_int wake_fd;
	bool stop; /* the thread has to end */
	/* When the sleeping thread wakes up by itself, by clock_now(); 0: it is awake, or woken by
	 * engine_wake. The thread and engine_wake also write this without adapter.lock. */
	_Atomic uint64_t wake_at;
	/* Interval, in ns, at which the thread checks whether the poll grant (poll/polling.h) has
	 * ended, while a program polls without end: 1 ms, or up to 8 ms if its last wake-ups were
	 * late. Only the engine thread writes this, also without adapter.lock. */
	_Atomic uint64_t look;
};

/* Under adapter.lock, except where the members say otherwise. */
extern struct engine_thread adapter_thread;
/* The main thread has ended, by pthread_exit or pthread_cancel. attach/main_thread.c writes it; any
 * thread reads it. */
extern atomic_bool adapter_main_thread_ended;

/*
 * Call it after a step of the engine in another thread. Wakes the sleeping engine thread at once if
 * it has to watch another completion channel, if the NIC is broken, or if the HCA has failed.
 * Otherwise wakes it for work of the engine that is due before `wake_at`, unless a program has the
 * poll grant: then that program's polls do the work. No effect while the adapter has neither a
 * daemon nor a direct uplink: the engine's time stands still.
 */
void engine_wake_for_work(void);
/* Call it when a program has got or renewed the poll grant: wakes the thread if its sleep would
 * last longer than to the next check of the grant (`look`). */
void engine_wake_for_grant(uint64_t now);
/* Wakes the thread in any case. The caller makes sure that the thread exists. */
void engine_wake(void);
/*
 * The number of the thread's eventfd if it is within `first` to `last`, else -1; also -1 in a child
 * of vfork, and in a child of fork until the child opens a device. The program must not close this
 * descriptor: nothing would wake the thread then, and the last close() of a device would wait for
 * the thread's end for ever. Any thread.
 */
int engine_wake_fd_within(unsigned int first, unsigned int last);

#endif
