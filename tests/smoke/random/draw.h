/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random numbers that depend on the seed and on the number of the operation alone. */
#ifndef URXE_SMOKE_RANDOM_DRAW_H
#define URXE_SMOKE_RANDOM_DRAW_H

#include <stdbool.h>
#include <stdint.h>

/* Both sides begin an operation with the same numbers, whatever they have drawn before. */
void draw_start(uint64_t seed, uint32_t operation);
/* A number below n, which is not 0. */
uint32_t draw_below(uint32_t n);
/* True once in n times. */
bool draw_one_in(uint32_t n);
/* A message's length: 0 to 200,000 bytes, mostly at a limit of packets, pages or copies. */
uint32_t draw_length(void);

#endif
