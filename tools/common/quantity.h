/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers with units, as people write them in options. */
#ifndef URXE_COMMON_QUANTITY_H
#define URXE_COMMON_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

struct quantity_unit {
	const char *name; /* NULL ends a list */
	double factor;
};

extern const struct quantity_unit quantity_count[]; /* no unit */
extern const struct quantity_unit quantity_time[];  /* ns, or with us, ms, s */
extern const struct quantity_unit quantity_bytes[]; /* K, M, G: powers of 1024 */
extern const struct quantity_unit quantity_rate[];  /* bit/s; k, M, G: powers of 1000 */

/* False: the text is no whole number of what is counted, from 0 to UINT64_MAX. */
bool quantity_read(const char *text, const struct quantity_unit *units, uint64_t *value);
/* A share from 0 to 1, or one with %. */
bool quantity_fraction(const char *text, double *value);

#endif
