/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The median of the times of short laps. perftest's latency is a median as well, so interruptions
 * by other programs affect both figures equally.
 */
#ifndef URXE_BENCH_LAPS_H
#define URXE_BENCH_LAPS_H

#define LAPS_MAX 1024

struct laps {
	double start;
	unsigned int n;
	double seconds[LAPS_MAX];
};

/* Starts the first lap. */
void laps_start(struct laps *laps);

/* Ends a lap and starts the next; laps beyond LAPS_MAX do not count. */
void laps_mark(struct laps *laps);

/* Ends a lap that began at `start`, a value of bench_now(). */
void laps_since(struct laps *laps, double start);

/* The median in seconds. It sorts the laps, so no laps may follow. */
double laps_median(struct laps *laps);

#endif
