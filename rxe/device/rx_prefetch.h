/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Of many QPs nothing is in the caches: a frame waits for one line after another. But those behind
 * it are there, too, and so the lines of their QPs are fetched meanwhile, all at once.
 */
#ifndef URXE_AHEAD_H
#define URXE_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct urxe_dev;
struct urxe_frame;
struct urxe_qp;

/* Frames between two steps of fetching: what one follows, the one before has brought. */
#define AHEAD_STEP 2
/* The QP, what its members and its owner's lead to. */
#define AHEAD_STEPS 3
/* Frames that one is fetched ahead of its turn. */
#define AHEAD_FRAMES (AHEAD_STEPS * AHEAD_STEP)

/* A burst of frames, and the QPs of those that are next. */
struct ahead {
	struct urxe_dev *dev;
	const struct urxe_frame *frames;
	uint32_t n;
	struct urxe_qp *qps[AHEAD_FRAMES];
};

/* Begins a burst: of each QP the place in the table. */
struct ahead ahead_burst(struct urxe_dev *dev, const struct urxe_frame *frames, uint32_t n);
/* What the QP's next request needs of it to be posted and sent. */
void ahead_fetch_requester(const struct urxe_qp *qp);
/* For each i from 0 on, before frame i - AHEAD_FRAMES is handled. */
void ahead_fetch(struct ahead *ahead, uint32_t i);

#endif
