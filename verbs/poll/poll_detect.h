/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Will a program that has taken its completions poll again soon? ib_write_lat does not: it spins on
 * its memory. Such a program must not keep the poll grant (poll/polling.h), because no thread would
 * receive its packets until the grant ends.
 *
 * The time away runs from the verbs call in which the program takes completions to its next call. A
 * program that spins on memory is away for long, but one long time away proves nothing: any thread
 * loses its processor now and then. Two prove nothing either where everything is slow, as in an
 * emulated machine. But a program that spins on memory spends less time in verbs calls than outside
 * them. So a second long time away counts if it begins before the first is forgotten, and lasts
 * longer than the time between the two. A mistake is cheap: if a program that polls gives back the
 * grant, each message costs one or two system calls.
 *
 * A program that computes between its polls, as a solver does, is away for as long. But it comes
 * back by itself; a program that spins on memory comes back when a peer has changed that memory. So
 * a time away counts only if the engine executed a one-sided request meanwhile: a WRITE without
 * immediate data, a READ or an atomic. A READ changes no memory, but its requester waits.
 *
 * Times are nanoseconds of one clock, and not 0. Any thread may call any function without a lock:
 * the members are atomic hints. For polling.c and engine_run.c.
 */
#ifndef URXE_VERBS_POLL_POLL_DETECT_H
#define URXE_VERBS_POLL_POLL_DETECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A time away of at most this length, in ns, is short: the engine thread could not react faster. */
#define POLL_DETECT_SHORT_NS 20000u
/* A longer time away, in ns, is forgotten later (FORGET_LOST): half of the shortest poll grant. */
#define POLL_DETECT_LOST_NS 500000u
/*
 * Numbers of short times away after which earlier long times away are forgotten: DOUBT after one
 * long time away; FORGET_LONG after two; FORGET_LOST after two of which the second was longer than
 * POLL_DETECT_LOST_NS. While more than DOUBT are left, the program counts as one that spins.
 */
#define POLL_DETECT_DOUBT       64u
#define POLL_DETECT_FORGET_LONG (POLL_DETECT_DOUBT + 64u)
#define POLL_DETECT_FORGET_LOST (POLL_DETECT_DOUBT + 1024u)

struct poll_detect {
	_Atomic uint64_t since;   /* when the present time away began; 0: the program is not away */
	_Atomic uint64_t back_at; /* when the last long time away ended */
	_Atomic uint32_t score;   /* number of further short times away until the long ones are
				     forgotten; 0: none is remembered */
	_Atomic bool one_sided;   /* a one-sided request was executed since the program went away */
};

/* Call it when the program has taken completions: the time away begins. */
void poll_detect_begin(struct poll_detect *detect, uint64_t now);
/* Call it when the engine has executed a one-sided request of a peer: the present time away counts
 * if it is long. */
static inline void poll_detect_note_one_sided(struct poll_detect *detect)
{
	atomic_store_explicit(&detect->one_sided, true, memory_order_relaxed);
}
/* Call it when the program makes a verbs call: the time away ends, and changes the score. Returns
 * the nanoseconds away; 0: the program was not away. */
uint64_t poll_detect_end(struct poll_detect *detect, uint64_t now);

/* Whether a long time away is not forgotten yet. If so, the caller of poll_detect_begin() first
 * reads the clock again, so that the new time away begins exactly. */
static inline bool poll_detect_doubted(const struct poll_detect *detect)
{
	return atomic_load_explicit(&detect->score, memory_order_relaxed) > 0;
}

/* Whether the program is expected to be away for long after its next completions. */
static inline bool poll_detect_expected(const struct poll_detect *detect)
{
	return atomic_load_explicit(&detect->score, memory_order_relaxed) > POLL_DETECT_DOUBT;
}

#endif
