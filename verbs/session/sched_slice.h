/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_VERBS_SESSION_SCHED_SLICE_H
#define URXE_VERBS_SESSION_SCHED_SLICE_H

/*
 * Asks the scheduler (EEVDF, Linux 6.12) for time slices of 0.1 ms for the calling thread: a thread
 * with short slices gets the CPU sooner, even beside an application that spins. Older kernels
 * ignore the request, and a thread with another policy keeps it (sched_setattr(2)). The daemon, a
 * vhost process and the engine thread call this.
 */
void sched_request_short_slice(void);

#endif
