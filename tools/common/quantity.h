/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers with units, as users write them in options: "64K", "20us", "1.5%". */
#ifndef URXE_COMMON_QUANTITY_H
#define URXE_COMMON_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

struct quantity_unit {
	const char *name; /* NULL ends the list */
	uint64_t factor;
};

extern const struct quantity_unit quantity_count[]; /* no unit */
extern const struct quantity_unit quantity_time[];  /* ns by default; us, ms, s */
extern const struct quantity_unit quantity_bytes[]; /* K, M, G: powers of 1024 */
extern const struct quantity_unit quantity_rate[];  /* bit/s; k, M, G: powers of 1000 */

/*
 * Reads a number, with at most 10 digits after the point, and one of the units, and multiplies it
 * by the unit's factor. Returns true if the product is a whole number from 0 to UINT64_MAX: "1.5K"
 * is 1536 bytes. False: it is not, or the text is not such a number with such a unit.
 */
bool quantity_read(const char *text, const struct quantity_unit *units, uint64_t *value);
/* Reads a number from 0 to 1, or a percentage with %, as a fraction. False: it is neither. */
bool quantity_fraction(const char *text, double *value);

#endif
