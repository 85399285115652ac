/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Scatter/gather lists: copies between a message and the segments of a work request. */
#ifndef URXE_MEMORY_SG_LIST_H
#define URXE_MEMORY_SG_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

struct sge_list {
	const struct urxe_seg *segs;
	uint32_t n;
	uint32_t pd;
};

/* Sum of the lengths of n segments, bytes. */
uint64_t sge_length(const struct urxe_seg *segs, uint32_t n);

/*
 * Copies len bytes at an offset of the list; the caller has checked that the list is long enough.
 * False: a key does not grant the access, or memory is unmapped; a part may have been copied.
 */
bool sge_gather(struct urxe_dev *dev, const struct sge_list *list, uint64_t offset, uint8_t *dst,
		uint32_t len);
bool sge_scatter(struct urxe_dev *dev, const struct sge_list *list, uint64_t offset,
		 const uint8_t *src, uint32_t len);

/* A range of the bytes of an sge_list, and the access that the caller needs to it. */
struct sge_bytes {
	uint64_t offset;
	uint32_t length;
	uint32_t access; /* enum urxe_access; 0 = local read */
};

/*
 * Lists the contiguous parts of the bytes; the caller has checked that the list is long enough.
 * Returns how many bytes the parts have: fewer than bytes->length if there are more than max parts,
 * 0 if a key does not grant the access, or memory is unmapped.
 */
uint32_t sge_extents(const struct urxe_dev *dev, const struct sge_list *list,
		     const struct sge_bytes *bytes, struct urxe_extent *extents, uint32_t max);

#endif
