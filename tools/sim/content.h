/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a message consists of: made again from its number wherever it is checked. */
#ifndef URXE_SIM_CONTENT_H
#define URXE_SIM_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/types.h>

/* Messages from this length on say which one they are; shorter ones need immediate data. */
#define CONTENT_ID_LEN 8

/* Bytes of message `index` of a stream; the first eight are the index where they fit. */
void content_fill(uint64_t stream_seed, uint64_t index, uint8_t *data, uint32_t length);

/* A region cut into segments with gaps between them, to gather from or scatter to. */
#define LAYOUT_MAX_SEGS 5
#define LAYOUT_GAP      7
#define LAYOUT_ROOM(n)  ((n) + (LAYOUT_MAX_SEGS + 1) * LAYOUT_GAP) /* for n bytes */

struct rand;

struct layout {
	uint32_t n;
	uint64_t offset[LAYOUT_MAX_SEGS]; /* in the host's memory */
	uint32_t length[LAYOUT_MAX_SEGS];
};

/* Cuts `length` bytes into at most max_segs segments, some of them empty. */
void layout_make(struct layout *layout, struct rand *rand, uint64_t base, uint32_t length,
		 uint32_t max_segs);
void layout_copy_in(const struct layout *layout, uint8_t *mem, const uint8_t *data,
		    uint32_t length);
void layout_copy_out(const struct layout *layout, const uint8_t *mem, uint8_t *data,
		     uint32_t length);
/* Paints the gaps; layout_gaps_intact tells whether somebody wrote there since. */
void layout_paint_gaps(const struct layout *layout, uint8_t *mem);
bool layout_gaps_intact(const struct layout *layout, const uint8_t *mem);

#endif
