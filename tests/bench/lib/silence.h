/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages after a silence of at least 1 ms. Both processes sleep in the silence, and so does
 * urxe's engine thread, which stays awake for 50 us after a message.
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

/* Creates memory that the caller shares with its later children. */
struct silence *silence_create(void);
/*
 * The sender's thread sleeps for the silence, and until the receiver has got the previous message.
 */
void silence_keep(const struct silence *silence);
/* Call just before a message is sent. */
void silence_end(struct silence *silence);
/* Call after a message has arrived; records its time as a lap. */
void silence_heard(struct silence *silence, struct laps *laps);

#endif
