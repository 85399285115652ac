/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/network/impair.h"

#include <stdlib.h>

#include <rxe/packet.h>

#include "sim/alloc.h"

#define FIRST_LOSSES 256 /* a power of two */

/*
 * Bursts follow Gilbert's model: a cable in its bad state loses all frames. Before each frame, the
 * cable leaves this state with probability 1/B, so that a burst has B frames on average, and enters
 * it with a probability that makes the share of lost frames equal to `loss`.
 */
static void init_bursts(struct impair *impair, const struct scenario *scenario)
{
	impair->leave_bad = 1.0 / (double)scenario->burst;
	impair->enter_bad = scenario->loss / ((double)scenario->burst * (1 - scenario->loss));
	impair->bad = sim_calloc(scenario->nodes, sizeof(*impair->bad));
}

void impair_init(struct impair *impair, const struct scenario *scenario, uint64_t seed)
{
	*impair = (struct impair){.scenario = scenario, .rand = {seed}};
	impair->reorder_time =
		scenario_or(scenario->reorder_time, rand_in(&impair->rand, 1, 100000));
	if (scenario->burst > 1)
		init_bursts(impair, scenario);
	impair->mask = FIRST_LOSSES - 1;
	impair->losses = sim_calloc(FIRST_LOSSES, sizeof(*impair->losses));
}

void impair_free(struct impair *impair)
{
	free(impair->losses);
	free(impair->bad);
}

/* --- The limit of losses of one packet. */

static struct packet_losses *find_losses(const struct impair *impair, uint64_t packet)
{
	uint32_t i = (uint32_t)(packet * 0x9e3779b97f4a7c15u >> 32) & impair->mask;

	while (impair->losses[i].packet && impair->losses[i].packet != packet)
		i = (i + 1) & impair->mask;
	return &impair->losses[i];
}

static void grow_losses(struct impair *impair)
{
	struct packet_losses *old = impair->losses;
	uint32_t n = impair->mask + 1;

	impair->mask = 2 * n - 1;
	impair->losses = sim_calloc(2 * (size_t)n, sizeof(*impair->losses));
	for (uint32_t i = 0; i < n; i++)
		if (old[i].packet)
			*find_losses(impair, old[i].packet) = old[i];
	free(old);
}

/* May the network lose this packet once more? If so, counts the loss. */
static bool may_lose(struct impair *impair, uint32_t host, const uint8_t *data, uint32_t len)
{
	struct packet_losses *losses;
	struct urxe_packet p;
	uint64_t packet;

	if (!impair->scenario->max_losses || urxe_packet_parse(&p, data, len))
		return true;
	packet = (uint64_t)(host + 1) << 48 | (uint64_t)p.dest_qpn << 24 | p.psn;
	losses = find_losses(impair, packet);
	if (losses->count >= impair->scenario->max_losses)
		return false;
	losses->packet = packet;
	if (losses->count++ == 0 && ++impair->n_losses > impair->mask / 2)
		grow_losses(impair);
	return true;
}

/* --- Impairments. */

static bool choose_loss(struct impair *impair, uint32_t host)
{
	bool *bad;

	if (impair->scenario->burst <= 1)
		return rand_chance(&impair->rand, impair->scenario->loss);
	bad = &impair->bad[host];
	*bad = *bad ? !rand_chance(&impair->rand, impair->leave_bad)
		    : rand_chance(&impair->rand, impair->enter_bad);
	return *bad;
}

bool impair_lose(struct impair *impair, uint32_t host, const uint8_t *data, uint32_t len)
{
	const uint64_t n = impair->n_sent++;

	if (n < 64 && impair->scenario->drop_mask >> n & 1)
		return true;
	return impair->scenario->loss > 0 && choose_loss(impair, host) &&
	       may_lose(impair, host, data, len);
}

bool impair_duplicate(struct impair *impair)
{
	return impair->scenario->duplicate > 0 &&
	       rand_chance(&impair->rand, impair->scenario->duplicate);
}

uint64_t impair_reorder(struct impair *impair)
{
	if (impair->scenario->reorder <= 0 ||
	    !rand_chance(&impair->rand, impair->scenario->reorder))
		return 0;
	return 1 + rand_below(&impair->rand, (uint32_t)impair->reorder_time);
}

/* A corrupted packet counts as lost, because the ICRC rejects it. */
bool impair_corrupt(struct impair *impair, uint32_t host, uint8_t *data, uint32_t len)
{
	uint32_t bit;

	if (impair->scenario->corrupt <= 0 ||
	    !rand_chance(&impair->rand, impair->scenario->corrupt) ||
	    !may_lose(impair, host, data, len))
		return false;
	bit = rand_below(&impair->rand, len * 8);
	data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	return true;
}
