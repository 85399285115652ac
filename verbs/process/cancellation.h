/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread with a pending pthread_cancel(3) must not end while it has a lock of urxe or counts as a
 * user of an object: other threads would wait for ever. Code between the two calls runs to its end;
 * the thread ends at the program's next cancellation point.
 */
#ifndef URXE_VERBS_PROCESS_CANCELLATION_H
#define URXE_VERBS_PROCESS_CANCELLATION_H

#include <pthread.h>

/* Returns the argument for cancellation_restore. */
static inline int cancellation_disable(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void cancellation_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

#endif
