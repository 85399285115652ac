/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A command of the kernel's RDMA drivers runs to its end, also in a thread that pthread_cancel(3)
 * is to end. Here commands use libc's cancellation points: a thread that ended there would leave
 * locks taken and counts of users too high. So it ends at the program's next cancellation point.
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
