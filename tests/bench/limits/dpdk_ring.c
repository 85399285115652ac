/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A pointer through two DPDK rings and back: the latency of user space without a protocol. */
#include "lib/laps.h"
#include "limits.h"

#include <err.h>
#include <pthread.h>
#include <stdlib.h>

#include <rte_ring.h>

#define ROUNDS  200000
#define LAP     1000
#define ENTRIES 64

struct rings {
	struct rte_ring *to, *from;
	int cpu;
};

static struct rte_ring *make_ring(const char *name)
{
	size_t size = (size_t)rte_ring_get_memsize(ENTRIES);
	struct rte_ring *ring = aligned_alloc(RTE_CACHE_LINE_SIZE, size);

	if (!ring || rte_ring_init(ring, name, ENTRIES, RING_F_SP_ENQ | RING_F_SC_DEQ))
		errx(1, "no ring");
	return ring;
}

static void pass(struct rte_ring *from, struct rte_ring *to)
{
	void *entry;

	while (rte_ring_sc_dequeue(from, &entry))
		;
	rte_ring_sp_enqueue(to, entry);
}

static void *pass_back(void *argument)
{
	const struct rings *rings = argument;

	bench_pin(rings->cpu);
	for (int i = 0; i < ROUNDS; i++)
		pass(rings->to, rings->from);
	return NULL;
}

/* Two threads, because processes do not share a ring outside of DPDK's memory. */
double limit_ring(const struct bench_cpus *cpus, size_t size)
{
	struct rings rings = {make_ring("to"), make_ring("from"), cpus->other};
	struct laps laps;
	pthread_t other;

	(void)size;
	if (pthread_create(&other, NULL, pass_back, &rings))
		errx(1, "no thread");
	rte_ring_sp_enqueue(rings.to, &rings);
	for (int i = 1; i < ROUNDS; i++) {
		if (i == ROUNDS / 10)
			laps_start(&laps);
		else if (i > ROUNDS / 10 && i % LAP == 0)
			laps_mark(&laps);
		pass(rings.from, rings.to);
	}
	pthread_join(other, NULL);
	free(rings.to);
	free(rings.from);
	return laps_median(&laps) / LAP / 2;
}
