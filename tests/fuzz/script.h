/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A fuzzer's input as a script: bytes that select the next actions; 0 after the end. */
#ifndef URXE_FUZZ_SCRIPT_H
#define URXE_FUZZ_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

struct script {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t script_get8(struct script *s)
{
	if (!s->left)
		return 0;
	s->left--;
	return *s->at++;
}

/* Little-endian. */
static inline uint16_t script_get16(struct script *s)
{
	uint8_t low = script_get8(s);

	return (uint16_t)(script_get8(s) << 8 | low);
}

static inline uint32_t script_get32(struct script *s)
{
	uint16_t low = script_get16(s);

	return (uint32_t)script_get16(s) << 16 | low;
}

#endif
