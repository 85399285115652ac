/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "memory/sg_list.h"

#include "memory/mr.h"

uint64_t sge_length(const struct urxe_seg *segs, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += segs[i].length;
	return sum;
}

/* The segment that contains the offset; *offset becomes the offset into that segment. */
static const struct urxe_seg *seek_offset(const struct sge_list *list, uint64_t *offset)
{
	const struct urxe_seg *seg = list->segs, *end = list->segs + list->n;

	while (seg < end && *offset >= seg->length) {
		*offset -= seg->length;
		seg++;
	}
	return seg;
}

/* The range of a segment from the offset on, at most `left` bytes. */
static struct mr_range segment_part(const struct sge_list *list, const struct urxe_seg *seg,
				    uint64_t offset, uint32_t left, uint32_t access)
{
	uint64_t rest = seg->length - offset;

	return (struct mr_range){
		.pd = list->pd,
		.key = seg->lkey,
		.addr = seg->addr + offset,
		.length = rest < left ? rest : left,
		.access = access,
	};
}

bool sge_gather(struct urxe_dev *dev, const struct sge_list *list, uint64_t offset, uint8_t *dst,
		uint32_t len)
{
	const struct urxe_seg *seg = seek_offset(list, &offset);

	for (; len; seg++, offset = 0) {
		struct mr_range range = segment_part(list, seg, offset, len, 0);

		if (range.length && !mr_read(dev, &range, dst))
			return false;
		dst += range.length;
		len -= (uint32_t)range.length;
	}
	return true;
}

bool sge_scatter(struct urxe_dev *dev, const struct sge_list *list, uint64_t offset,
		 const uint8_t *src, uint32_t len)
{
	const struct urxe_seg *seg = seek_offset(list, &offset);

	for (; len; seg++, offset = 0) {
		struct mr_range range =
			segment_part(list, seg, offset, len, URXE_ACCESS_LOCAL_WRITE);

		if (range.length && !mr_write(dev, &range, src))
			return false;
		src += range.length;
		len -= (uint32_t)range.length;
	}
	return true;
}

static uint32_t length_of(const struct urxe_extent *extents, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += extents[i].length;
	return (uint32_t)sum;
}

uint32_t sge_extents(const struct urxe_dev *dev, const struct sge_list *list,
		     const struct sge_bytes *bytes, struct urxe_extent *extents, uint32_t max)
{
	uint64_t offset = bytes->offset;
	const struct urxe_seg *seg = seek_offset(list, &offset);
	uint32_t n = 0, left = bytes->length;

	for (; left && n < max; seg++, offset = 0) {
		struct mr_range range = segment_part(list, seg, offset, left, bytes->access);

		if (range.length && !mr_list_extents(dev, &range, extents, max, &n) && n < max)
			return 0;
		left -= (uint32_t)range.length;
	}
	return length_of(extents, n);
}
