/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether a program that has taken its completions comes back at once, or waits otherwise, as
 * ib_write_lat does, which spins on its memory: such a one must not keep the lease (progress.h),
 * for nobody would receive until that ends.
 *
 * It shows by long absences. One alone proves nothing: any thread loses its core now and then, to
 * the engine's own among others, and to take a program that polls for one that stays away costs a
 * system call or two for each message. Nor do two: where all takes longer, as in an emulated
 * machine, the kernel's tick makes one, and few completions come between two ticks. But who stays
 * away is there for less time than he is away. So a second one counts that comes before the first
 * is forgotten, and is longer than the time from the first to it.
 *
 * Times are nanoseconds of one clock, none of them 0. Any thread may call any function, without a
 * lock: what is kept are hints, and atomic.
 */
#ifndef URXE_VERBS_ENGINE_POLL_DETECT_H
#define URXE_VERBS_ENGINE_POLL_DETECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Back sooner than this, a program polls in a loop; the engine's thread could not be quicker. */
#define POLL_DETECT_SHORT_NS 20000u
/* And this is half of a lease. */
#define POLL_DETECT_LOST_NS 500000u
/* Short absences in a row that make up for one long one; */
#define POLL_DETECT_DOUBT 64u
/* for two of them, and for two of which the second has cost a lease. */
#define POLL_DETECT_FORGET_LONG (POLL_DETECT_DOUBT + 64u)
#define POLL_DETECT_FORGET_LOST (POLL_DETECT_DOUBT + 1024u)

struct poll_detect {
	_Atomic uint64_t since;   /* when it found its completions; 0 = it has come back */
	_Atomic uint64_t back_at; /* when the last long absence ended */
	_Atomic uint32_t score;   /* short absences until the long ones are forgotten */
};

/* It has found completions. */
void poll_detect_begin(struct poll_detect *absence, uint64_t now);
/* It is back, with any call. Returns for how long it was away; 0 = it was not. */
uint64_t poll_detect_end(struct poll_detect *absence, uint64_t now);

/* It was away for long, not long ago: what it does next is to be looked at closely. */
static inline bool poll_detect_doubted(const struct poll_detect *absence)
{
	return atomic_load_explicit(&absence->score, memory_order_relaxed) > 0;
}

/* It will stay away for long once it has found something. */
static inline bool poll_detect_expected(const struct poll_detect *absence)
{
	return atomic_load_explicit(&absence->score, memory_order_relaxed) > POLL_DETECT_DOUBT;
}

#endif
