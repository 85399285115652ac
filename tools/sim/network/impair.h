/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Decides from a seed which frames the network loses, duplicates, reorders or corrupts. */
#ifndef URXE_SIM_NETWORK_IMPAIR_H
#define URXE_SIM_NETWORK_IMPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/rand.h"
#include "sim/scenario/scenario.h"

/* The number of times that the network has lost or corrupted a packet. */
struct packet_losses {
	uint64_t packet; /* sender, QPN and PSN; 0 = the entry is free */
	uint32_t count;
};

struct impair {
	const struct scenario *scenario;
	struct rand rand;
	uint64_t reorder_time; /* ns; maximum delay of a reordered frame */
	uint64_t n_sent;       /* frames of all hosts so far */
	double enter_bad;      /* Gilbert's model: probability that a burst begins with a frame */
	double leave_bad;      /* probability that a burst has ended before a frame */
	bool *bad;             /* for each host: its cable is within a burst */
	/* Hash table (open addressing) of the packets that were lost. */
	struct packet_losses *losses;
	uint32_t n_losses, mask;
};

void impair_init(struct impair *impair, const struct scenario *scenario, uint64_t seed);
void impair_free(struct impair *impair);

/* Is this frame lost? `n_sent` counts the frames of all hosts, so call it once for each. */
bool impair_lose(struct impair *impair, uint32_t host, const uint8_t *data, uint32_t len);
/* Does the network deliver the frame twice? */
bool impair_duplicate(struct impair *impair);
/* Additional delay of the frame in ns; 0 = none. */
uint64_t impair_reorder(struct impair *impair);
/* Decides whether the network corrupts this frame. True: one bit of `data` is flipped. */
bool impair_corrupt(struct impair *impair, uint32_t host, uint8_t *data, uint32_t len);

#endif
