/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A limit on the rate of what another process can cause, such as log lines: a burst, then one per
 * period. */
#ifndef URXE_COMMON_TOKEN_BUCKET_H
#define URXE_COMMON_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* A zeroed structure has all its tokens. */
struct token_bucket {
	uint64_t since; /* time up to which spent tokens were refilled */
	uint32_t spent;
};

/*
 * Takes a token; false: all `burst` tokens are spent. One comes back every `period_ns`. `now` is a
 * time of now_ns().
 */
bool token_bucket_take(struct token_bucket *b, uint64_t now, uint32_t burst, uint64_t period_ns);

#endif
