/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "laps.h"

#include <stdlib.h>

#include "two.h"

void laps_start(struct laps *laps)
{
	laps->n = 0;
	laps->start = bench_now();
}

void laps_mark(struct laps *laps)
{
	const double now = bench_now();

	if (laps->n < LAPS_MAX)
		laps->seconds[laps->n++] = now - laps->start;
	laps->start = now;
}

void laps_since(struct laps *laps, double start)
{
	laps->start = start;
	laps_mark(laps);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double laps_median(struct laps *laps)
{
	qsort(laps->seconds, laps->n, sizeof(laps->seconds[0]), compare);
	return laps->seconds[laps->n / 2];
}
