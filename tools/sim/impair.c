/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/impair.h"

#include <stdlib.h>

#include <rxe/packet.h>

#include "sim/alloc.h"

#define FIRST_LOSSES 256 /* a power of two */

/*
 * Bursts follow Gilbert's model: a cable in its bad state loses everything. With
 * a mean burst of B frames it leaves that state with probability 1/B a frame,
 * and enters it so often that the share P of all frames is lost.
 */
static void init_bursts(struct impair *faults, const struct scenario *scenario)
{
	faults->leave_bad = 1.0 / (double)scenario->burst;
	faults->enter_bad = scenario->loss / ((double)scenario->burst * (1 - scenario->loss));
	faults->bad = sim_calloc(scenario->nodes, sizeof(*faults->bad));
}

void impair_init(struct impair *faults, const struct scenario *scenario, uint64_t seed)
{
	*faults = (struct impair){.scenario = scenario, .rand = {seed}};
	faults->reorder_time =
		scenario_or(scenario->reorder_time, rand_in(&faults->rand, 1, 100000));
	if (scenario->burst > 1)
		init_bursts(faults, scenario);
	faults->mask = FIRST_LOSSES - 1;
	faults->losses = sim_calloc(FIRST_LOSSES, sizeof(*faults->losses));
}

void impair_free(struct impair *faults)
{
	free(faults->losses);
	free(faults->bad);
}

/* --- The bound on losses of one packet. */

static struct packet_losses *find(const struct impair *faults, uint64_t packet)
{
	uint32_t i = (uint32_t)(packet * 0x9e3779b97f4a7c15u >> 32) & faults->mask;

	while (faults->losses[i].packet && faults->losses[i].packet != packet)
		i = (i + 1) & faults->mask;
	return &faults->losses[i];
}

static void grow(struct impair *faults)
{
	struct packet_losses *old = faults->losses;
	uint32_t n = faults->mask + 1;

	faults->mask = 2 * n - 1;
	faults->losses = sim_calloc(2 * (size_t)n, sizeof(*faults->losses));
	for (uint32_t i = 0; i < n; i++)
		if (old[i].packet)
			*find(faults, old[i].packet) = old[i];
	free(old);
}

/* Whether the network is still allowed to lose this packet; if so, counts it. */
static bool may_lose(struct impair *faults, uint32_t host, const uint8_t *data, uint32_t len)
{
	struct packet_losses *losses;
	struct urxe_packet p;
	uint64_t packet;

	if (!faults->scenario->max_losses || urxe_packet_parse(&p, data, len))
		return true;
	packet = (uint64_t)(host + 1) << 48 | (uint64_t)p.dest_qpn << 24 | p.psn;
	losses = find(faults, packet);
	if (losses->count >= faults->scenario->max_losses)
		return false;
	losses->packet = packet;
	if (losses->count++ == 0 && ++faults->n_losses > faults->mask / 2)
		grow(faults);
	return true;
}

/* --- The faults. */

static bool struck(struct impair *faults, uint32_t host)
{
	bool *bad;

	if (faults->scenario->burst <= 1)
		return rand_chance(&faults->rand, faults->scenario->loss);
	bad = &faults->bad[host];
	*bad = *bad ? !rand_chance(&faults->rand, faults->leave_bad)
		    : rand_chance(&faults->rand, faults->enter_bad);
	return *bad;
}

bool impair_lose(struct impair *faults, uint32_t host, const uint8_t *data, uint32_t len)
{
	const uint64_t n = faults->n_sent++;

	if (n < 64 && faults->scenario->drop_mask >> n & 1)
		return true;
	return faults->scenario->loss > 0 && struck(faults, host) &&
	       may_lose(faults, host, data, len);
}

bool impair_duplicate(struct impair *faults)
{
	return faults->scenario->duplicate > 0 &&
	       rand_chance(&faults->rand, faults->scenario->duplicate);
}

uint64_t impair_reorder(struct impair *faults)
{
	if (faults->scenario->reorder <= 0 ||
	    !rand_chance(&faults->rand, faults->scenario->reorder))
		return 0;
	return 1 + rand_below(&faults->rand, (uint32_t)faults->reorder_time);
}

/* A corrupted packet is as good as lost. */
bool impair_corrupt(struct impair *faults, uint32_t host, uint8_t *data, uint32_t len)
{
	uint32_t bit;

	if (faults->scenario->corrupt <= 0 ||
	    !rand_chance(&faults->rand, faults->scenario->corrupt) ||
	    !may_lose(faults, host, data, len))
		return false;
	bit = rand_below(&faults->rand, len * 8);
	data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	return true;
}
