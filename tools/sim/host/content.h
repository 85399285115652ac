/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Contents and segments of messages. A message's content follows from its stream and number, so the
 * checks compute what must arrive.
 */
#ifndef URXE_SIM_HOST_CONTENT_H
#define URXE_SIM_HOST_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/types.h>

/*
 * Messages of UC and UD with at least this length contain their number; shorter ones have it as
 * immediate data.
 */
#define CONTENT_ID_LEN 8

/* Writes the content of message `index`. It begins with the eight bytes of the index, cut to
 * `length`. */
void content_fill(uint64_t stream_seed, uint64_t index, uint8_t *data, uint32_t length);

/* Most segments of a message's scatter or gather list, and bytes of the gaps around them. */
#define LAYOUT_MAX_SEGS 5
#define LAYOUT_GAP      7
#define LAYOUT_ROOM(n)  ((n) + (LAYOUT_MAX_SEGS + 1) * LAYOUT_GAP) /* n bytes, gaps */

struct rand;

struct layout {
	uint32_t n;
	uint64_t offset[LAYOUT_MAX_SEGS]; /* in the host's memory */
	uint32_t length[LAYOUT_MAX_SEGS];
};

/*
 * Cuts `length` bytes into at most max_segs segments, some of them empty. The first gap begins at
 * offset `base` of the host's memory.
 */
void layout_make(struct layout *layout, struct rand *rand, uint64_t base, uint32_t length,
		 uint32_t max_segs);
/* Copy up to `length` bytes of data into the segments, or out of them. `mem`: the host's memory. */
void layout_copy_in(const struct layout *layout, uint8_t *mem, const uint8_t *data,
		    uint32_t length);
void layout_copy_out(const struct layout *layout, const uint8_t *mem, uint8_t *data,
		     uint32_t length);
/* Fills the gaps with a pattern; layout_gaps_intact checks that the pattern is unchanged. */
void layout_paint_gaps(const struct layout *layout, uint8_t *mem);
bool layout_gaps_intact(const struct layout *layout, const uint8_t *mem);

#endif
