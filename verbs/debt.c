/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "debt.h"

static uint64_t since(const struct debt *debt)
{
	return atomic_load_explicit(&debt->since, memory_order_relaxed);
}

static uint32_t prompt(const struct debt *debt)
{
	return atomic_load_explicit(&debt->prompt, memory_order_relaxed);
}

static void set_prompt(struct debt *debt, uint32_t times)
{
	atomic_store_explicit(&debt->prompt, times, memory_order_relaxed);
}

void debt_returned(struct debt *debt, uint64_t away)
{
	uint32_t times = prompt(debt);

	if (away > DEBT_PROMPT_NS)
		times = 0;
	else if (times < DEBT_PROMPT_TIMES)
		times++;
	set_prompt(debt, times);
}

void debt_acknowledged(struct debt *debt)
{
	set_prompt(debt, 0);
}

void debt_received(struct debt *debt, uint32_t frames)
{
	debt->frames += frames;
}

bool debt_owed(const struct debt *debt)
{
	return since(debt) != 0;
}

bool debt_overdue(const struct debt *debt, uint64_t now)
{
	uint64_t at = since(debt);

	return at && now - at >= DEBT_NS;
}

bool debt_allowed(const struct debt *debt, uint64_t now)
{
	return debt->frames < DEBT_FRAMES && !debt_overdue(debt, now) &&
	       prompt(debt) >= DEBT_PROMPT_TIMES;
}

bool debt_of_stream(struct debt *debt, uint64_t silent)
{
	if (debt->frames >= DEBT_FRAMES) {
		debt->doubt = 0;
		return false;
	}
	if (debt->at_once) {
		debt->at_once--;
		return false;
	}
	if (silent < DEBT_SILENCE_NS)
		return true;
	debt->doubt = debt->doubt < DEBT_DOUBT_MAX / 2 ? 2 * debt->doubt + 1 : DEBT_DOUBT_MAX;
	debt->at_once = debt->doubt;
	return false;
}

void debt_incur(struct debt *debt, uint64_t now)
{
	if (!since(debt))
		atomic_store_explicit(&debt->since, now, memory_order_relaxed);
}

void debt_settle(struct debt *debt)
{
	debt->frames = 0;
	atomic_store_explicit(&debt->since, 0, memory_order_relaxed);
}
