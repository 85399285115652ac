/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which frames the network loses or spoils, and how: decided from a seed. */
#ifndef URXE_SIM_IMPAIR_H
#define URXE_SIM_IMPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/rand.h"
#include "sim/scenario.h"

/* How often a packet was lost. */
struct packet_losses {
	uint64_t packet; /* of its QPN and PSN; 0 = the entry is free */
	uint32_t count;
};

struct impair {
	const struct scenario *scenario;
	struct rand rand;
	uint64_t reorder_time;
	uint64_t n_sent;
	double enter_bad; /* Gilbert's model: chance that a burst begins with this frame... */
	double leave_bad; /* ...and that it has ended before it */
	bool *bad;        /* of each host's cable: within a burst */
	/* Open addressing; only what was lost is in it. */
	struct packet_losses *losses;
	uint32_t n_losses, mask;
};

void impair_init(struct impair *faults, const struct scenario *scenario, uint64_t seed);
void impair_free(struct impair *faults);

/* Whether the next frame, which comes from that host, is lost. To be asked once for each frame. */
bool impair_lose(struct impair *faults, uint32_t host, const uint8_t *data, uint32_t len);
/* Whether it comes twice. */
bool impair_duplicate(struct impair *faults);
/* By how many ns it comes later; 0 = not at all. */
uint64_t impair_reorder(struct impair *faults);
/* Flips one bit of some frames; true: of this one. */
bool impair_corrupt(struct impair *faults, uint32_t host, uint8_t *data, uint32_t len);

#endif
