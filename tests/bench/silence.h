/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that each follow a silence of at least 1 ms. Both processes sleep meanwhile, and so does
 * each thread that stays awake for a while for what may come next: urxe's does for 50 us.
 */
#ifndef URXE_BENCH_SILENCE_H
#define URXE_BENCH_SILENCE_H

#include <stdint.h>

#include "laps.h"

#define SILENCE_MESSAGES 150

/* Memory that the sender and the receiver share. */
struct silence {
	_Atomic uint32_t sent, heard; /* messages */
	double at;                    /* time of the last message, as of bench_now() */
};

/* For the caller, and for children that it forks later. */
struct silence *silence_create(void);
/*
 * The sender's thread sleeps for the silence, and until the receiver has got the previous message.
 */
void silence_keep(const struct silence *silence);
/* Call just before a message is sent. */
void silence_end(struct silence *silence);
/* The message has arrived: a lap. */
void silence_heard(struct silence *silence, struct laps *laps);

#endif
