/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions: the one place that turns a key and an address into a pointer. */
#ifndef URXE_MR_H
#define URXE_MR_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* A range of one key's address space, and for what it is wanted. */
struct mr_range {
	uint32_t pd;
	uint32_t key;
	uint64_t addr;
	uint64_t length;
	uint32_t access; /* enum urxe_access that the region must grant; 0 = local read */
};

/* Whether the key grants the range. */
bool mr_check(const struct urxe_dev *dev, const struct mr_range *range);

/*
 * Copies to or from a range, which is checked again: a region may go between
 * two packets of one message. False where it is not granted; then what was
 * copied so far is undefined.
 */
bool mr_write(const struct urxe_dev *dev, const struct mr_range *range, const uint8_t *src);
bool mr_read(const struct urxe_dev *dev, const struct mr_range *range, uint8_t *dst);

/* The 8 bytes of an atomic operation; NULL where not granted, or not in one piece. */
uint64_t *mr_atomic(const struct urxe_dev *dev, const struct mr_range *range);

#endif
