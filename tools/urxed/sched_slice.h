/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_URXED_SCHED_SLICE_H
#define URXE_URXED_SCHED_SLICE_H

/*
 * Asks the scheduler (EEVDF, Linux 6.12) for short slices: a thread that runs
 * briefly gets the processor soon, also from an application that spins on it.
 * Older kernels do not know the request, and nothing is lost.
 */
void sched_request_short_slice(void);

#endif
