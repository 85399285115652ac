/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/quantity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIB UINT64_C(1024)
/* The digits of a fraction are below this number, so that their product with the largest factor
 * (2^30) fits uint64_t. */
#define DECIMALS_MAX UINT64_C(10000000000)

const struct quantity_unit quantity_count[] = {{"", 1}, {NULL, 0}};
const struct quantity_unit quantity_time[] = {{"", 1},         {"ns", 1},         {"us", 1000},
					      {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
const struct quantity_unit quantity_bytes[] = {
	{"", 1}, {"K", KIB}, {"M", KIB *KIB}, {"G", KIB *KIB *KIB}, {NULL, 0}};
const struct quantity_unit quantity_rate[] = {{"", 1},        {"k", 1000},       {"K", 1000},
					      {"M", 1000000}, {"G", 1000000000}, {NULL, 0}};

/* Reads the fraction as digits / scale, because a double has no exact value for most decimals. */
bool quantity_read(const char *text, const struct quantity_unit *units, uint64_t *value)
{
	uint64_t digits = 0, scale = 1;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno)
		return false;
	end += *end == '.';
	for (; end[0] >= '0' && end[0] <= '9' && scale < DECIMALS_MAX; end++, scale *= 10)
		digits = digits * 10 + (uint64_t)(end[0] - '0');
	while (units->name && strcmp(end, units->name))
		units++;
	if (!units->name || digits * units->factor % scale)
		return false;
	return !__builtin_mul_overflow(*value, units->factor, value) &&
	       !__builtin_add_overflow(*value, digits * units->factor / scale, value);
}

bool quantity_fraction(const char *text, double *value)
{
	char *end;

	if (*text < '0' || *text > '9' || strpbrk(text, "xX"))
		return false;
	*value = strtod(text, &end);
	if (!strcmp(end, "%")) {
		*value /= 100;
		end++;
	}
	return !*end && *value >= 0 && *value <= 1;
}
