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

/* What sender and receiver share. */
struct silence {
	_Atomic uint32_t sent, heard; /* messages */
	double at;                    /* when the last one was sent, bench_now() */
};

/* For the caller and the children that it makes later. */
struct silence *silence_create(void);
/* The sender's thread sleeps, until the message before has been heard at least. */
void silence_keep(const struct silence *silence);
/* A message is sent right behind it. */
void silence_end(struct silence *silence);
/* It is there: a lap. */
void silence_heard(struct silence *silence, struct laps *laps);

#endif
