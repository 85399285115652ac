/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "siphash.h"

/* "somepseudorandomlygeneratedbytes", the constants of the algorithm. */
#define INIT_0 UINT64_C(0x736f6d6570736575)
#define INIT_1 UINT64_C(0x646f72616e646f6d)
#define INIT_2 UINT64_C(0x6c7967656e657261)
#define INIT_3 UINT64_C(0x7465646279746573)

#define WORD_ROUNDS  2
#define FINAL_ROUNDS 4
#define LAST_WORD    (UINT64_C(8) << 56) /* top byte: the message has 8 bytes; no other bytes */

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void mix_state(uint64_t v[4], unsigned rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[1] = rotate_left(v[1], 13) ^ v[0];
		v[0] = rotate_left(v[0], 32);
		v[2] += v[3];
		v[3] = rotate_left(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate_left(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate_left(v[1], 17) ^ v[2];
		v[2] = rotate_left(v[2], 32);
	}
}

static void absorb_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix_state(v, WORD_ROUNDS);
	v[0] ^= word;
}

uint64_t siphash_word(const struct siphash_key *key, uint64_t word)
{
	uint64_t v[4] = {key->k[0] ^ INIT_0, key->k[1] ^ INIT_1, key->k[0] ^ INIT_2,
			 key->k[1] ^ INIT_3};

	absorb_word(v, word);
	absorb_word(v, LAST_WORD);
	v[2] ^= 0xff;
	mix_state(v, FINAL_ROUNDS);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
