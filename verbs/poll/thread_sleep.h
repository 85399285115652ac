/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The sleep of the engine thread: how long, and which descriptors end it. For engine_thread.c. */
#ifndef URXE_VERBS_POLL_THREAD_SLEEP_H
#define URXE_VERBS_POLL_THREAD_SLEEP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Full event channels that the thread watches at a time. */
#define THREAD_SLEEP_CHANNELS 8
#define THREAD_SLEEP_FDS      (8 + THREAD_SLEEP_CHANNELS)

struct thread_sleep {
	struct pollfd fds[THREAD_SLEEP_FDS];
	nfds_t n;
	uint64_t until;  /* clock_now() */
	uint32_t grants; /* polling.grants at the last sleep */
	/* Of the last sleep: */
	bool interrupt; /* an interrupt of the vNIC or of the inbox ended it */
	bool inbox;     /* the interrupt of the inbox ended it */
	bool notice;    /* the daemon has sent a notice */
	bool hangup;    /* the daemon has ended */
	bool hca;       /* the HCA has events */
};

/* With the lock of the adapter. `idle`: no frame waits. */
void thread_sleep_prepare(struct thread_sleep *sleep, uint64_t now, bool idle);
/* adapter.lock must not be held. */
void thread_sleep_wait(struct thread_sleep *sleep, uint64_t now);
/* With the lock, in another thread while the engine thread sleeps: wakes it if that sleep lasts
 * longer than the engine's deadline. */
void thread_sleep_shorten(void);

#endif
