/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages at a fixed pace from one process to another, and the processor time of both. */
#ifndef URXE_BENCH_PACE_H
#define URXE_BENCH_PACE_H

#include <stdint.h>

#define PACE_MESSAGES 1000

/* Memory that the sender and the receiver share. */
struct pace {
	double period;                /* seconds */
	double next;                  /* time when the next message is due, as of bench_now() */
	double start[2], took[2];     /* processor seconds of each process */
	_Atomic uint32_t sent, heard; /* messages */
};

/* For the caller, and for children that it forks later. */
struct pace *pace_create(double period);
/* The sender sleeps until the next message is due, and the receiver has got the previous one. */
void pace_wait(struct pace *pace);
/* Call just before a message is sent. */
void pace_send(struct pace *pace);
/* It is there. */
void pace_hear(struct pace *pace);
/*
 * The share of a processor that both processes use at that pace, with all their threads. For the
 * sender, when all messages have arrived. The first tenth does not count.
 */
double pace_share(const struct pace *pace);

#endif
