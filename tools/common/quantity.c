/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/quantity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024.0

const struct quantity_unit quantity_count[] = {{"", 1}, {NULL, 0}};
const struct quantity_unit quantity_time[] = {{"", 1},     {"ns", 1},  {"us", 1e3},
					      {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
const struct quantity_unit quantity_bytes[] = {
	{"", 1}, {"K", KIB}, {"M", KIB *KIB}, {"G", KIB *KIB *KIB}, {NULL, 0}};
const struct quantity_unit quantity_rate[] = {{"", 1},    {"k", 1e3}, {"K", 1e3},
					      {"M", 1e6}, {"G", 1e9}, {NULL, 0}};

/* A whole number without a unit is read exactly, any other number as a double. */
bool quantity_read(const char *text, const struct quantity_unit *units, uint64_t *value)
{
	char *end;
	double number;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (!*end)
		return !errno;
	number = strtod(text, &end);
	if (end != text + strspn(text, "0123456789."))
		return false;
	for (; units->name; units++) {
		if (strcmp(end, units->name))
			continue;
		number *= units->factor;
		if (number >= 1e19)
			return false;
		*value = (uint64_t)number;
		return (double)*value == number;
	}
	return false;
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
