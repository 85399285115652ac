/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/host/content.h"

#include <string.h>

#include "sim/rand.h"

#define PAINT 0xa5

void content_fill(uint64_t stream_seed, uint64_t index, uint8_t *data, uint32_t length)
{
	struct rand r = {stream_seed ^ (index + 1) * 0xd6e8feb86659fd93u};

	rand_fill(&r, data, length);
	memcpy(data, &index, length < sizeof(index) ? length : sizeof(index));
}

void layout_make(struct layout *layout, struct rand *rand, uint64_t base, uint32_t length,
		 uint32_t max_segs)
{
	uint64_t at = base + LAYOUT_GAP;

	if (max_segs > LAYOUT_MAX_SEGS)
		max_segs = LAYOUT_MAX_SEGS;
	layout->n = rand_in(rand, 1, max_segs);
	for (uint32_t i = 0; i < layout->n; i++) {
		bool last = i + 1 == layout->n;
		uint32_t piece = last                     ? length
				 : rand_chance(rand, 0.2) ? 0
							  : rand_below(rand, length + 1);

		layout->offset[i] = at;
		layout->length[i] = piece;
		at += piece + LAYOUT_GAP;
		length -= piece;
	}
}

void layout_copy_in(const struct layout *layout, uint8_t *mem, const uint8_t *data, uint32_t length)
{
	for (uint32_t i = 0; i < layout->n && length; i++) {
		uint32_t n = layout->length[i] < length ? layout->length[i] : length;

		memcpy(mem + layout->offset[i], data, n);
		data += n;
		length -= n;
	}
}

void layout_copy_out(const struct layout *layout, const uint8_t *mem, uint8_t *data,
		     uint32_t length)
{
	for (uint32_t i = 0; i < layout->n && length; i++) {
		uint32_t n = layout->length[i] < length ? layout->length[i] : length;

		memcpy(data, mem + layout->offset[i], n);
		data += n;
		length -= n;
	}
}

void layout_paint_gaps(const struct layout *layout, uint8_t *mem)
{
	memset(mem + layout->offset[0] - LAYOUT_GAP, PAINT, LAYOUT_GAP);
	for (uint32_t i = 0; i < layout->n; i++)
		memset(mem + layout->offset[i] + layout->length[i], PAINT, LAYOUT_GAP);
}

static bool is_painted(const uint8_t *at)
{
	for (unsigned i = 0; i < LAYOUT_GAP; i++)
		if (at[i] != PAINT)
			return false;
	return true;
}

bool layout_gaps_intact(const struct layout *layout, const uint8_t *mem)
{
	if (!is_painted(mem + layout->offset[0] - LAYOUT_GAP))
		return false;
	for (uint32_t i = 0; i < layout->n; i++)
		if (!is_painted(mem + layout->offset[i] + layout->length[i]))
			return false;
	return true;
}
