/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The sleep of the engine thread: how long it lasts, and which descriptors end it. For
 * attach/engine_thread.c and engine_wake.c. */
#ifndef URXE_VERBS_POLL_THREAD_SLEEP_H
#define URXE_VERBS_POLL_THREAD_SLEEP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Most event channels with a full socket (objects/comp_channel.h) that the thread watches. */
#define THREAD_SLEEP_CHANNELS 8
#define THREAD_SLEEP_FDS      (8 + THREAD_SLEEP_CHANNELS)

struct thread_sleep {
	struct pollfd fds[THREAD_SLEEP_FDS];
	nfds_t n;                   /* number of fds in use */
	bool has_unwatched_channel; /* events wait at a channel whose socket is not among fds */
	uint64_t until;             /* the planned end of the sleep, clock_now() */
	uint32_t grants;            /* polling.grants at the last sleep */
	/* What the thread found after the last sleep: */
	bool interrupt; /* an interrupt of the vNIC, the inbox or the direct uplink */
	bool inbox;     /* an interrupt of the inbox */
	bool notice;    /* the daemon has sent a notice */
	bool hangup;    /* the daemon has ended */
	bool hca;       /* the HCA has events */
};

/* Chooses the descriptors and the end of the next sleep. `idle`: no frame waits; else the sleep
 * ends at once. With adapter.lock. */
void thread_sleep_prepare(struct thread_sleep *sleep, uint64_t now, bool idle);
/* Sleeps, and sets the members from `interrupt` on. While a program renews the poll grant, the
 * sleep goes on. adapter.lock must not be held. */
void thread_sleep_wait(struct thread_sleep *sleep, uint64_t now);
/* In another thread, while the engine thread sleeps: wakes it if its sleep would last longer than
 * to the engine's deadline, or to the next check of adapter.flushing_qps. With adapter.lock. */
void thread_sleep_shorten(void);

#endif
