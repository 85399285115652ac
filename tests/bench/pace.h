/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages at a pace from one process to another, and what they take of processors at both ends. */
#ifndef URXE_BENCH_PACE_H
#define URXE_BENCH_PACE_H

#include <stdint.h>

#define PACE_MESSAGES 1000

/* What sender and receiver share. */
struct pace {
	double period;                /* seconds */
	double next;                  /* when the next message is due, bench_now() */
	double start[2], took[2];     /* seconds of a processor, of each process */
	_Atomic uint32_t sent, heard; /* messages */
};

/* For the caller and the children that it makes later. */
struct pace *pace_create(double period);
/* The sender sleeps until the next message is due, at least until the one before has been heard. */
void pace_wait(struct pace *pace);
/* A message is sent right behind it. */
void pace_send(struct pace *pace);
/* It is there. */
void pace_hear(struct pace *pace);
/*
 * What share of a processor both processes together take at that pace, with all their threads: for
 * the sender, once all messages are heard. The first tenth of them does not count.
 */
double pace_share(const struct pace *pace);

#endif
