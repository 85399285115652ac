/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/poll_detect.h"

void poll_detect_begin(struct poll_detect *detect, uint64_t now)
{
	atomic_store_explicit(&detect->one_sided, false, memory_order_relaxed);
	atomic_store_explicit(&detect->since, now, memory_order_relaxed);
}

/*
 * Returns the new poll_detect.score, at least `score`, after the program was away for a long time,
 * `away` ns. `present`: ns from the end of the last long time away to the beginning of this one. If
 * the last one is not forgotten (score > 0) and `present` is shorter than `away`, the program
 * counts as one that spins on memory: poll_detect_expected() becomes true.
 */
static uint32_t new_score(uint32_t score, uint64_t present, uint64_t away)
{
	uint32_t least = POLL_DETECT_DOUBT;

	if (score && present < away)
		least = away > POLL_DETECT_LOST_NS ? POLL_DETECT_FORGET_LOST
						   : POLL_DETECT_FORGET_LONG;
	return score > least ? score : least;
}

static void update_score(struct poll_detect *detect, uint64_t since, uint64_t now)
{
	uint32_t score = atomic_load_explicit(&detect->score, memory_order_relaxed);
	uint64_t back_at = atomic_load_explicit(&detect->back_at, memory_order_relaxed);
	uint64_t present = since > back_at ? since - back_at : 0;

	if (now - since > POLL_DETECT_SHORT_NS &&
	    atomic_load_explicit(&detect->one_sided, memory_order_relaxed)) {
		score = new_score(score, present, now - since);
		atomic_store_explicit(&detect->back_at, now, memory_order_relaxed);
	} else if (score) {
		score--;
	}
	atomic_store_explicit(&detect->score, score, memory_order_relaxed);
}

uint64_t poll_detect_end(struct poll_detect *detect, uint64_t now)
{
	uint64_t since = atomic_load_explicit(&detect->since, memory_order_relaxed);

	if (!since)
		return 0;
	atomic_store_explicit(&detect->since, 0, memory_order_relaxed);
	/* Another thread has taken the completions at a time that this thread's clock has not
	 * reached: the clocks of threads differ by microseconds (engine/clock.h). */
	if (now < since)
		return 0;
	update_score(detect, since, now);
	return now - since;
}
