/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SipHash-2-4 of one 64-bit word (Aumasson and Bernstein, 2012): a keyed function whose results
 * reveal neither the key nor other results. conn.c draws IDs with it and hashes its tables. */
#ifndef URXE_CM_SIPHASH_H
#define URXE_CM_SIPHASH_H

#include <stdint.h>

struct siphash_key {
	uint64_t k[2];
};

uint64_t siphash_word(const struct siphash_key *key, uint64_t word);

#endif
