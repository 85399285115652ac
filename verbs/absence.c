/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "absence.h"

void absence_begin(struct absence *absence, uint64_t now)
{
	atomic_store_explicit(&absence->since, now, memory_order_relaxed);
}

/* After an absence of `away`, before which it was there for `present` since the last long one. */
static uint32_t new_score(uint32_t score, uint64_t present, uint64_t away)
{
	uint32_t least = ABSENCE_DOUBT;

	if (away <= ABSENCE_SHORT_NS)
		return score ? score - 1 : 0;
	if (score && present < away)
		least = away > ABSENCE_LOST_NS ? ABSENCE_FORGET_LOST : ABSENCE_FORGET_LONG;
	return score > least ? score : least;
}

/* It is back from `since`. */
static void judge(struct absence *absence, uint64_t since, uint64_t now)
{
	uint32_t score = atomic_load_explicit(&absence->score, memory_order_relaxed);
	uint64_t back_at = atomic_load_explicit(&absence->back_at, memory_order_relaxed);
	uint64_t present = since > back_at ? since - back_at : 0;

	score = new_score(score, present, now - since);
	atomic_store_explicit(&absence->score, score, memory_order_relaxed);
	if (now - since > ABSENCE_SHORT_NS)
		atomic_store_explicit(&absence->back_at, now, memory_order_relaxed);
}

uint64_t absence_end(struct absence *absence, uint64_t now)
{
	uint64_t since = atomic_load_explicit(&absence->since, memory_order_relaxed);

	if (!since)
		return 0;
	atomic_store_explicit(&absence->since, 0, memory_order_relaxed);
	/* Another thread found something, and its clock is ahead of ours. */
	if (now < since)
		return 0;
	judge(absence, since, now);
	return now - since;
}
