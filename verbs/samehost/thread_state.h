/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Start times of processes and states of threads. For peer.c. */
#ifndef URXE_VERBS_SAMEHOST_THREAD_STATE_H
#define URXE_VERBS_SAMEHOST_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Sets *start to the process's start time, in clock ticks after the boot. False: /proc cannot be
 * read. */
bool process_started_at(int32_t pid, uint64_t *start);

enum thread_state {
	THREAD_GONE,      /* the thread or its process has ended */
	THREAD_STOPPED,   /* by a signal, a debugger or a cgroup freezer; it copies nothing */
	THREAD_ELSEWHERE, /* the thread sleeps, but not within process_vm_*() */
	THREAD_BUSY, /* the thread runs, or sleeps within process_vm_*(), or /proc cannot be read:
			it is not mounted, or the caller has no free descriptor */
};

/*
 * State of a thread of the process `pid` that started at `start`. *cpu_ticks: for THREAD_BUSY, the
 * thread's CPU time in ticks; 0 if /proc does not tell it.
 */
enum thread_state thread_state(int32_t pid, uint64_t start, int32_t tid, uint64_t *cpu_ticks);

#endif
