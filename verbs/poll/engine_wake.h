/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wakes the engine thread of liburxe.so from other threads. attach/engine_thread.h has the thread
 * itself. All functions but engine_wake() need adapter.lock.
 */
#ifndef URXE_VERBS_POLL_ENGINE_WAKE_H
#define URXE_VERBS_POLL_ENGINE_WAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct engine_thread {
	pthread_t thread;
	/* An eventfd that ends the thread's sleep. Its number changes if the program closes it. */
	atomic_int wake_fd;
	bool stop; /* the thread has to end */
	/* When the thread wakes by itself, clock_now(); 0: it is awake. The thread itself writes to
	 * it without adapter.lock, too. */
	_Atomic uint64_t wake_at;
	/* Nanoseconds from one look at the poll grant (poll/polling.h) to the next, while a program
	 * polls without end: 1 ms, or up to 8 ms if the thread's last wake-ups were late. Only the
	 * engine thread writes it, also without adapter.lock. */
	_Atomic uint64_t look;
};

/* Under adapter.lock, except where the members say otherwise. */
extern struct engine_thread adapter_thread;

/* Wakes the thread if the engine has work before the thread wakes by itself, and no program
 * polls. */
void engine_wake_for_work(void);
/* Call it when a program has got or renewed the poll grant: wakes the thread if its sleep would
 * last longer than to the next look at the grant (`look`). */
void engine_wake_for_grant(uint64_t now);
/* Wakes the thread in any case. The caller makes sure that the thread exists. adapter.lock is not
 * needed. */
void engine_wake(void);
/*
 * Call it before the program closes the descriptors `first` to `last`, or replaces them: moves the
 * thread's eventfd to another number if it is one of them. Programs that become daemons close all
 * numbers that there may be, often the highest ones first. Nothing would wake the thread then, so
 * the last close() of a device would wait for the end of the thread for ever. Any thread; errno is
 * unchanged.
 */
void engine_wake_keep(unsigned int first, unsigned int last);

#endif
