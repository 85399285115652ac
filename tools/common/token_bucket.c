/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/token_bucket.h"

bool token_bucket_take(struct token_bucket *b, uint64_t now, uint32_t burst, uint64_t period_ns)
{
	const uint64_t back = now > b->since ? (now - b->since) / period_ns : 0;

	if (back >= b->spent) {
		b->spent = 0;
		b->since = now;
	} else {
		b->spent -= (uint32_t)back;
		b->since += back * period_ns;
	}
	if (b->spent == burst)
		return false;
	b->spent++;
	return true;
}
