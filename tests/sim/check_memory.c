/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "check.h"

#include <inttypes.h>

#include "world.h"

/* RC: exactly the model. UC: each byte is what it was, or what its one WRITE made of it. Even a
 * good cable does not keep a WRITE with immediate that finds no receive request. */
static void check_target(struct stream *stream)
{
	const uint8_t *memory = stream->world->pair->node[!stream->side]->mem + stream->target;
	bool lossy = stream->conn->attr.type == URXE_QPT_UC;

	for (uint32_t i = 0; i < STREAM_TARGET; i++) {
		if (memory[i] == stream->model[i] || (lossy && memory[i] == stream->initial[i]))
			continue;
		world_fail(stream->world, "target of qp %06x at %u holds %02x, not %02x",
			   stream->conn->end[stream->side].qpn, i, memory[i], stream->model[i]);
		return;
	}
}

static void check_words(struct stream *stream)
{
	const uint8_t *memory = stream->world->pair->node[!stream->side]->mem + stream->words;

	if (memcmp(memory, stream->word_model, sizeof(stream->word_model)))
		world_fail(stream->world, "atomics of qp %06x do not add up",
			   stream->conn->end[stream->side].qpn);
}

static void check_all_delivered(struct stream *stream)
{
	bool lossy = stream->conn->attr.type != URXE_QPT_RC;

	for (uint32_t i = 0; i < stream->n && !lossy; i++)
		if (stream->request[i].consumes && !stream->request[i].delivered)
			world_fail(stream->world, "message %u of qp %06x never arrived", i,
				   stream->conn->end[stream->side].qpn);
	if (stream->arrivals > stream->n + stream->world->pair->link[stream->side].duplicated)
		world_fail(stream->world, "more messages arrived than the cable carried");
}

void check_memory(struct world *world)
{
	for (uint32_t i = 0; i < world->n_conns; i++)
		for (unsigned side = 0; side < 2; side++) {
			check_target(&world->conn[i].stream[side]);
			check_words(&world->conn[i].stream[side]);
			check_all_delivered(&world->conn[i].stream[side]);
		}
	for (unsigned side = 0; side < 2; side++) {
		uint64_t sum;

		memcpy(&sum, world->pair->node[side]->mem + world->shared_word[side], 8);
		if (sum != world->shared_sum[side])
			world_fail(world, "additions make %" PRIu64 ", not %" PRIu64, sum,
				   world->shared_sum[side]);
	}
}
