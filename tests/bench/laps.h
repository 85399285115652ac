/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Times of short laps, of which the median is the figure: perftest's latency is a median, too, and
 * what another program takes out of some laps must not count for one and not for the other.
 */
#ifndef URXE_BENCH_LAPS_H
#define URXE_BENCH_LAPS_H

#define LAPS_MAX 1024

struct laps {
	double start;
	unsigned int n;
	double seconds[LAPS_MAX];
};

/* The first lap begins. */
void laps_start(struct laps *laps);

/* A lap ends and the next one begins; those beyond LAPS_MAX do not count. */
void laps_mark(struct laps *laps);

/* A lap that began at `start`, bench_now(), ends now. */
void laps_since(struct laps *laps, double start);

/* Seconds. It sorts the laps: no more of them after it. */
double laps_median(struct laps *laps);

#endif
