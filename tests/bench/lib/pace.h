/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sends messages at a fixed rate from one process to another, and measures the CPU time of both. */
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

/* Creates memory that the caller shares with its later children. */
struct pace *pace_create(double period);
/* The sender sleeps until the next message is due, and the receiver has got the previous one. */
void pace_wait(struct pace *pace);
/* Call just before a message is sent. */
void pace_send(struct pace *pace);
/* Call after a message has arrived. */
void pace_hear(struct pace *pace);
/*
 * The CPU share of both processes, with all their threads, without the first tenth of the messages.
 * The sender calls it after all messages have arrived.
 */
double pace_share(const struct pace *pace);

#endif
